"""Git's hooks: tiny programs in the folder that git really uses, each with the earlier hook called first."""

import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import interlock
from interlock.core.finding import Finding
from interlock.install import record
from interlock.install.errors import InstallError, not_editable
from interlock.install.files import GIT, LINK, Change, File, read_raw
from interlock.reservations import GIT_HOOKS, KEPT_SUFFIX, git_hook, process
from interlock.reservations.git import commands as git

_NAMES: Final = "|".join(GIT_HOOKS)
_OURS: Final = re.compile(rf"^# Interlock: .*\n(?:.*\n)*.* hook (?:{_NAMES}) ", re.MULTILINE)
_CALL: Final = re.compile(rf"(\S.*?) hook (?:{_NAMES}) \"\$@\"\n?\Z")
PROBE: Final = "INTERLOCK_PROBE"
"""Set by `interlock doctor --prove`: the earlier hook does not run for a commit that is only tried."""

_READS: Final = frozenset({"reference-transaction"})
"""Hooks that git gives something on standard input: two programs have to read it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where git looks for the hooks of a checkout.

    Args:
        folder: The folder, without symbolic links.
        own: It belongs to this repository alone.
        configured: The value of `core.hooksPath`; empty without.
    """

    folder: Path
    own: bool
    configured: str


def find(root: Path) -> Place | None:
    """Return where git looks for hooks, or None where there is no repository, or no git.

    Linked worktrees share the folder of their repository; `core.hooksPath` names another one.
    """
    start = str(root)
    try:
        answer = git.ask(start, ["rev-parse", "--show-toplevel", "--git-common-dir", "--git-path", "hooks"])
    except git.GitError:
        return None
    top, common, hooks = (Path(os.path.realpath(root / line)) for line in os.fsdecode(answer).split("\n")[:3])
    try:
        configured = os.fsdecode(git.ask(start, ["config", "--get", "core.hooksPath"])).removesuffix("\n")
    except git.GitError:
        configured = ""
    if configured and not Path(configured).expanduser().is_absolute():
        # Git counts it from the top of the working tree, wherever it is asked.
        hooks = Path(os.path.realpath(top / configured))
    return Place(hooks, any(hooks.is_relative_to(each) for each in (top, common)), configured)


def program() -> tuple[tuple[str, ...], Path]:
    """Return the words that start this installation, whole paths, and a file that is gone when it is."""
    script = Path(sys.prefix) / "bin" / "interlock"
    # Git starts hooks without the PATH of a virtual environment, so the program is named whole.
    words = (str(script),) if os.access(script, os.X_OK) else (sys.executable, "-P", "-m", "interlock")
    return words, Path(interlock.__file__).resolve()


def plan(root: Path) -> list[Change]:
    """Return the files to write; none without a repository.

    Raises:
        InstallError: The folder serves other repositories too, or a hook there cannot be read.
    """
    place = find(root)
    if place is None:
        return []
    if not place.own:
        message = "git's hooks are in a folder outside of this repository, where they would serve others too."
        found, expected = f"core.hooksPath = `{place.configured}`", "a folder in this repository"
        fix = (
            "Give this repository a folder of its own: `git config core.hooksPath .git/hooks`, or run init with "
            "--no-git-hooks and call `interlock hook pre-commit` from your own hook."
        )
        raise InstallError(Finding("INI101", "error", "", message, found, expected, fix, path=str(place.folder)))
    changes: list[Change] = []
    problems: list[Finding] = []
    known = record.recorded(root)
    for name in GIT_HOOKS:
        path = place.folder / name
        try:
            changes += _plan_one(root, path, name, known.get(record.shown_path(root, path)))
        except InstallError as error:
            fix = "Move away the file that is there and run init again, or run it with --no-git-hooks."
            problems += error.about(str(path), fix)
    if problems:
        raise InstallError(*problems)
    return changes


def _plan_one(root: Path, path: Path, name: str, known: record.Row | None) -> list[Change]:
    """Return the hook's file, and before it the one that keeps what was there.

    A hook that is still what init wrote is brought up to date.
    """
    before, beside = read_raw(path), _beside(path)
    shown = record.shown_path(root, path)
    if known is not None and record.digest(before) == known["after"]:
        mode = 0o755 if before is None else before.mode
        after = File(script(name, *program(), read_raw(beside)).encode(), mode)
        note = "there already" if after == before else "renewed"
        return [Change(GIT, GIT, shown, before, after, note, record.original(root, known))]
    # Another worktree's init wrote it, or another installation: git has one folder of hooks for all of them.
    if before is not None and before.mode != LINK and (command := command_of(before.data.decode("utf-8", "replace"))):
        is_same = command == shlex.join(program()[0])
        note = "there already" if is_same else f"left as it is: it starts {command}; to renew it, {renew(path)}"
        return [Change(GIT, GIT, shown, before, before, note)]
    after = File(script(name, *program(), before).encode(), 0o755)
    if before is None:
        return [Change(GIT, GIT, shown, None, after, "made")]
    # The earlier hook is set aside under a name of its own, which must be free.
    if read_raw(beside) is not None:
        raise not_editable("INI102", f"`{beside.name}` is in the way.", "a file of that name", "no file")
    kept = Change(GIT, GIT, record.shown_path(root, beside), None, before, "keeps the earlier hook")
    return [kept, Change(GIT, GIT, shown, before, after, "calls the earlier hook first", before)]


def renew(path: Path) -> str:
    """Return how a hook of ours that this project's init did not write is taken out, so that init writes its own."""
    way = f"put {_beside(path).name} in its place" if os.path.lexists(_beside(path)) else f"remove {path}"
    return f"{way} and run `interlock init`"


def plan_undo_one(root: Path, path: str, row: record.Row, done: Sequence[Change]) -> Change:
    """Plan the way back of a hook; one that somebody else put there since stays, and so does what ours kept.

    Args:
        root: The project.
        path: The file, as it is recorded.
        row: What is recorded of it.
        done: What was planned before: the hook that kept an earlier one comes before its copy.

    Raises:
        InstallError: `INI103` nobody knows what of it is to stay.
    """
    now, first = read_raw(root / path), record.original(root, row)

    def change(after: File | None, note: str) -> Change:
        return Change(GIT, GIT, path, now, after, note)

    # The copy of the earlier hook goes only when that hook is back in its place; else it is all that is left of it.
    if path.endswith(KEPT_SUFFIX):
        hook = next((each for each in done if each.path == path.removesuffix(KEPT_SUFFIX)), None)
        if now is None or (hook is not None and hook.after == now):
            return change(None, "removed")
        return change(now, "left: another hook is in its place")
    if now is None or record.digest(now) == row["after"]:
        return change(first, "removed" if first is None else "restored byte for byte")
    if now == first:
        return change(now, "as it was already")
    if command_of(now.data.decode("utf-8", "replace")):
        message = "the hook was changed by hand."
        raise not_editable("INI103", message, "another text with a call of Interlock", "the text that init wrote")
    return change(now, "another hook is there now: left as it is")


def command_of(text: str) -> str:
    """Return the program that a hook of ours starts; empty when it is none of ours."""
    if not _OURS.search(text):
        return ""
    found = _CALL.search(text)
    return "" if found is None else found[1].rsplit("| ", 1)[-1].removeprefix("exec ").strip()


def is_current(path: Path, name: str) -> bool:
    """Return whether a hook is what would be written today, around the earlier hook."""
    file = read_raw(path)
    return file is not None and file.data == script(name, *program(), read_raw(_beside(path))).encode()


def script(name: str, words: Sequence[str], marker: Path, kept: File | None = None) -> str:
    """Return the text of a hook.

    The hook that was there, `kept`, is called first, and its status counts; `marker` is gone when the installation is.
    """
    # The last line becomes the program, so the earlier hook and the look whether the program is there come before it.
    head, comment, *lines = git_hook(name, words).splitlines()
    # In single quotes, since the text around it is in double ones; `$0` is filled in all the same.
    back = f"mv '$0{KEPT_SUFFIX}' '$0'" if kept is not None else "rm '$0'"
    gone = [
        f"[ -x {shlex.quote(words[0])} ] && [ -e {shlex.quote(str(marker))} ] || {{",
        # Who switched the hooks off must be able to commit after the installation is gone.
        '  [ "$INTERLOCK_HOOKS" = off ] && exit 0',
        f"""  echo "interlock is gone from this machine, so this hook refuses; take it out: {back}" >&2""",
        "  exit 1",
        "}",
    ]
    return "\n".join([head, comment, *_chained(name, kept), *lines[:-1], *gone, lines[-1], ""])


def _chained(name: str, kept: File | None) -> list[str]:
    """Return the lines that call the earlier hook; like git, they run none that is not executable."""
    if kept is None or not (kept.mode == LINK or kept.mode & 0o111):
        return []
    call = _call(kept, name)
    if name not in _READS:
        return [f'[ -n "${PROBE}" ] || {call} || exit $?']
    # What git gives on standard input can be read once: it is kept, and handed to each of the two programs.
    sent = f"""[ -n "${PROBE}" ] || printf '%s\\n' "$moves" | {call} || exit $?"""
    return ["moves=$(cat)", sent, "exec <<MOVES", "$moves", "MOVES"]


def _call(kept: File, name: str) -> str:
    """Return how the old hook is called.

    A shell script is read under the name that it had: many look for their neighbours by `$0`, and husky's for which
    hook it is. A link leads to a file that knows its own place, and other programs are started as they are.
    """
    path = f'"${{0%/*}}/{name}{KEPT_SUFFIX}"'
    words = _shell(kept)
    return f"""{shlex.join(words)} -c '. {path}' "$0" "$@\"""" if words else f'{path} "$@"'


def _shell(kept: File) -> list[str]:
    """Return the shell of a script with its options, or nothing when it is no script of a shell."""
    if kept.mode == LINK:
        return []
    if not kept.data.startswith(b"#!"):
        # A text that names no program is a script of sh, for git as for a shell.
        return ["/bin/sh"] if b"\0" not in kept.data[:512] else []
    words = kept.data[2:].split(b"\n", 1)[0].decode("utf-8", "replace").split()
    # Of `#!/usr/bin/env sh` the second word is the shell.
    at = 1 if len(words) > 1 and Path(words[0]).name == "env" else 0
    known = bool(words) and Path(words[at]).name in process.PLAIN_SHELLS
    # Any other argument is a program that the script is handed to, and not an option of the shell.
    plain = all(word.startswith("-") and word.strip("-") for word in words[at + 1 :])
    return words if known and plain else []


def _beside(path: Path) -> Path:
    return path.with_name(path.name + KEPT_SUFFIX)
