"""Git's hooks: tiny programs in the folder that git really uses, each with the earlier hook called first."""

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import interlock
from interlock.core.finding import Finding
from interlock.install.errors import EditError, InstallError, file_problem
from interlock.install.files import LINK, Change, File, read_raw
from interlock.install.record import Row, digest, original, recorded, shown_path
from interlock.reservations import GIT_HOOKS, KEPT_SUFFIX, git_hook, process
from interlock.reservations.git import commands as git

PREFIX: Final = "git:"
"""What the names of git's hooks begin with in the record."""

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
        raise InstallError((file_problem("INI104", str(place.folder), message, found, expected, fix),))
    changes: list[Change] = []
    problems: list[Finding] = []
    known = {row["name"]: row for row in recorded(root)}
    for name in GIT_HOOKS:
        try:
            changes += _plan_one(root, place.folder / name, name, known)
        except EditError as error:
            fix = "Move away the file that is there and run init again, or run it with --no-git-hooks."
            problems.append(error.of(str(place.folder / name), fix))
    if problems:
        raise InstallError(tuple(problems))
    return changes


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
    head, comment, *lines = git_hook(name, words).splitlines()
    # In single quotes, since the text around it is in double ones; `$0` is filled in all the same.
    back = f"mv '$0{KEPT_SUFFIX}' '$0'" if kept is not None else "rm '$0'"
    gone = [
        f"[ -x {shlex.quote(words[0])} ] && [ -e {shlex.quote(str(marker))} ] || {{",
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
        return ["/bin/sh"] if b"\0" not in kept.data[:512] else []
    words = kept.data[2:].split(b"\n", 1)[0].decode("utf-8", "replace").split()
    at = 1 if len(words) > 1 and Path(words[0]).name == "env" else 0
    known = bool(words) and Path(words[at]).name in process.PLAIN_SHELLS
    plain = all(word.startswith("-") and word.strip("-") for word in words[at + 1 :])
    return words if known and plain else []


def _plan_one(root: Path, path: Path, name: str, known: Mapping[str, Row]) -> list[Change]:
    """Return the hook's file, and before it the one that keeps what was there.

    A hook that is still what init wrote is brought up to date.
    """
    words, marker = program()
    wanted = (shlex.join(words),)
    before = read_raw(path)
    label = f"{PREFIX}{name}"
    beside = _beside(path)

    def change(after: File | None, note: str, differs: tuple[str, ...] = ()) -> Change:
        row = known.get(label)
        first = before if row is None or digest(before) != row["after"] else original(root, row)
        place = shown_path(root, path)
        return Change(label, "git", "git", place, before, after, note, {}, wanted, differs, "", first)

    if before is not None and before.mode != LINK:
        command = command_of(before.data.decode("utf-8", "replace"))
        if command:
            differs = () if command == wanted[0] else (command,)
            if differs or label not in known or digest(before) != known[label]["after"]:
                return [change(before, "left as it is" if differs else "there already", differs)]
            now = File(script(name, words, marker, read_raw(beside)).encode(), before.mode)
            return [change(now, "there already" if now == before else "brought up to date")]
    after = File(script(name, words, marker, before).encode(), 0o755)
    if before is None:
        return [change(after, "made")]
    if read_raw(beside) is not None:
        raise EditError("INI102", f"`{beside.name}` is in the way.", "a file of that name", "no file")
    note = "keeps the earlier hook, which is called first"
    kept = Change(f"{label}{KEPT_SUFFIX}", "git", "git", shown_path(root, beside), None, before, note, {})
    return [kept, change(after, "entry added")]


def _beside(path: Path) -> Path:
    return path.with_name(path.name + KEPT_SUFFIX)
