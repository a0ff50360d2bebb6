"""The guard of shell commands: what an agent's Bash tool is about to run leaves alone what other agents hold.

Best effort, and said so in docs/coverage.md: it reads plain commands, their common wrappers and git's aliases. What a
script computes, a variable holds or another program does is not seen here; git's own hooks are the second door.
"""

import os
import os.path
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from interlock.reservations import git, place
from interlock.reservations.answers import Conflict
from interlock.reservations.desk import Caller, Desk
from interlock.reservations.errors import ReservationError
from interlock.reservations.held import Hit, explain, foreign, note, open_guard, overlapping
from interlock.reservations.hooks.git_commands import ROWS, Call, judge, path_patterns
from interlock.reservations.hooks.shell import MAX_DEPTH, Command, Unreadable, Word, read
from interlock.reservations.patterns import quote
from interlock.reservations.records import key_of

FILE_FIX: Final = "work on files of your own, or ask for this one first."
_KEYWORDS: Final = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "coproc"})
_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "busybox"})
_WRAPPERS: Final[dict[str, frozenset[str]]] = {
    name: frozenset(options.split())
    for name, options in {
        "command": "", "builtin": "", "exec": "-a", "nohup": "", "setsid": "", "stdbuf": "-i -o -e", "eatmydata": "",
        "env": "-u --unset -C --chdir -S", "sudo": "-u -g -h -p -C -D -R -T -U", "doas": "-u -C", "nice": "-n",
        "ionice": "-c -n -p", "timeout": "-s --signal -k --kill-after", "time": "-f -o", "caffeinate": "-t -w",
        "xargs": "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-procs --replace",
    }.items()
}  # fmt: skip
"""Programs that run what follows, and their options that take the next word."""
_GIT_VALUED: Final = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})
_KNOWN: Final = frozenset({
    "status", "log", "diff", "show", "fetch", "push", "tag", "remote", "config", "rev-parse", "ls-files", "ls-tree",
    "blame", "grep", "describe", "cat-file", "shortlog", "reflog", "rev-list", "merge-base", "diff-tree",
    "diff-index", "diff-files", "for-each-ref", "show-ref", "name-rev", "notes", "init", "clone", "help", "version",
    "gc", "fsck", "archive", "format-patch", "range-diff", "var", "count-objects", "hash-object", "commit-tree",
    "write-tree", "mktree",
})  # fmt: skip
"""Subcommands that touch nothing of others and cannot be aliases."""
_INTERESTING: Final = re.compile(
    r">|git|\b(?:rm|mv|cp|ln|sed|perl|tee|dd|truncate|shred|unlink|rmdir|install|patch|find|rsync)\b|\beval\b|\$'"
    r"|INTERLOCK_|INTERMUTE_"
)
_OURS: Final = frozenset({"INTERLOCK_HOOKS", "INTERLOCK_AGENT_ID", "INTERMUTE_AGENT_ID"})
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=", re.ASCII)


def check_command(command: str, cwd: str, env: Mapping[str, str]) -> str | None:
    """Return the refusal of a shell command line, or None when it may run.

    Without leases of others everything passes, and costs next to nothing.

    Args:
        command: The line, as the agent's tool was given it.
        cwd: The folder it would run in, absolute.
        env: Where the identity is read from.

    Raises:
        ReservationError: The store cannot be read, so that what others hold is not known.
    """
    if not _INTERESTING.search(command):
        return None
    guard = _Guard(env)
    if not guard.world(cwd).held and not _ELSEWHERE.search(command):
        return None
    try:
        found = guard.judged(read(command), cwd, 0)
    except Unreadable as error:
        world = guard.world(cwd)
        fix = "write it in plain words or smaller pieces, so that what it touches can be seen."
        found = (f"a command that cannot be read: {error}", overlapping(world.held, "**"), fix, world)
    if found is None or not found[1]:
        return None
    action, hits, fix, world = found
    if world.opened is not None:
        # The program and its subcommand: what follows may be secret.
        note(*world.opened, "bash", " ".join(action.split(" ")[: 2 if action.startswith("git ") else 1]), hits)
    return explain(f"`{action}` would touch", hits, fix)


_ELSEWHERE: Final = re.compile(r"/|\bcd\b|-C")
"""A command may name another checkout; without one of these it cannot."""


@dataclass(frozen=True, slots=True)
class World:
    """A checkout and what others hold in it."""

    root: str
    held: Sequence[Conflict]
    opened: tuple[Desk, Caller] | None


@dataclass(slots=True)
class _Guard:
    """Walks over the commands of one line."""

    env: Mapping[str, str]
    worlds: dict[tuple[str, str], World] = field(default_factory=dict[tuple[str, str], World])

    def world(self, path: str) -> World:
        """Return the checkout around a path; each store is read once."""
        found = place.find(path)
        start = path
        while not os.path.isdir(start):
            start = os.path.dirname(start)
        # A project that the environment names is found from everywhere, from other repositories too.
        key = (found.store_path, start if self.env.get(place.PROJECT) else "")
        if key not in self.worlds:
            opened = open_guard(start, "hook", self.env)
            self.worlds[key] = World(found.root, [] if opened is None else foreign(*opened), opened)
        return replace(self.worlds[key], root=found.root)

    def judged(self, commands: Sequence[Command], cwd: str, depth: int) -> tuple[str, list[Hit], str, World] | None:
        """Return the first command that would touch something, with what and how it is done safely."""
        folders = [cwd]
        for command in commands:
            del folders[command.level + 1 :]
            folders += [folders[-1]] * (command.level + 1 - len(folders))
            here = folders[-1]
            found = self.judged(command.within, here, depth + 1) or self._redirected(command, here)
            found = found or self._program(command, list(command.words), here, depth)
            if found is not None:
                return found
            folders[-1] = _after(command, here)
        return None

    def _redirected(self, command: Command, here: str) -> tuple[str, list[Hit], str, World] | None:
        """Judge the files that the redirections write."""
        return self._files(">", command.writes, here)

    def _files(self, action: str, words: Sequence[Word], here: str) -> tuple[str, list[Hit], str, World] | None:
        """Judge files that a program writes, moves or removes; a word with a variable in it is not known."""
        for word in words:
            if not word.known or not word.text:
                continue
            path = os.path.join(here, word.text)
            world = self.world(os.path.dirname(path))
            hits: list[Hit] = []
            for pattern in _file_patterns(world.root, path, glob=word.glob):
                hits += overlapping(world.held, pattern)
            if hits:
                return f"{action} {word.text}", hits, FILE_FIX, world
        return None

    def _program(
        self, command: Command, words: list[Word], here: str, depth: int
    ) -> tuple[str, list[Hit], str, World] | None:
        """Judge one program with its arguments."""
        if disguise := self._disguised(words, here):
            return disguise
        words = _unwrapped(words)
        if not words or depth > MAX_DEPTH:
            return None
        name, rest = os.path.basename(words[0].text), words[1:]
        if name == "git":
            return self._git(command, rest, here, depth)
        if name in _SHELLS:
            return self._shell(command, rest, here, depth)
        if name == "eval":
            return self.judged(read(" ".join(word.text for word in rest), depth + 1), here, depth + 1)
        targets = _TARGETS.get(name)
        if targets is not None:
            return self._files(name, targets(rest, here), here)
        if name == "find":
            return self._find(command, rest, here, depth)
        return self._patch(command, rest, here) if name == "patch" else None

    def _disguised(self, words: Sequence[Word], here: str) -> tuple[str, list[Hit], str, World] | None:
        """Judge assignments that would turn the hooks off or pass for somebody else."""
        for word in words:
            name, sign, value = word.text.partition("=")
            if not sign or name not in _OURS:
                continue
            world = self.world(here)
            me = "" if world.opened is None else world.opened[1].name
            if world.held and (name == "INTERLOCK_HOOKS" or key_of(value) != key_of(me)):
                return f"{name}=", overlapping(world.held, "**"), "leave that to a person.", world
        return None

    def _shell(
        self, command: Command, rest: list[Word], here: str, depth: int
    ) -> tuple[str, list[Hit], str, World] | None:
        """Judge `sh -c TEXT` and a shell that reads a here-document."""
        for at, word in enumerate(rest):
            if word.text.startswith("-") and not word.text.startswith("--") and "c" in word.text and at + 1 < len(rest):
                script = next((later for later in rest[at + 1 :] if not later.text.startswith("-")), None)
                return None if script is None else self.judged(read(script.text, depth + 1), here, depth + 1)
        return self.judged(read(command.body, depth + 1), here, depth + 1) if command.body else None

    def _find(
        self, command: Command, rest: list[Word], here: str, depth: int
    ) -> tuple[str, list[Hit], str, World] | None:
        """Judge `find … -delete` and `find … -exec PROGRAM`."""
        starts: list[Word] = []
        for word in rest:
            if word.text.startswith(("-", "(", "!")):
                break
            starts.append(word)
        starts = starts or [Word(".")]
        for at, word in enumerate(rest):
            if word.text == "-delete":
                return self._files("find -delete", starts, here)
            if word.text in {"-exec", "-execdir", "-ok", "-okdir"}:
                inner = [later for later in rest[at + 1 :] if later.text not in {";", "+"}]
                spread = [part for later in inner for part in (starts if later.text == "{}" else [later])]
                return self._program(command, spread, here, depth + 1)
        return None

    def _patch(self, command: Command, rest: list[Word], here: str) -> tuple[str, list[Hit], str, World] | None:
        """Judge `patch` as git reads the same file, or the file that it names."""
        named = [word for word in rest if not word.text.startswith("-")]
        patches = command.reads + [after for word, after in pairwise(rest) if word.text == "-i"]
        if patches:
            return self._run_git("apply", [], patches, here)
        return self._files("patch", named[:1], here)

    def _git(
        self, command: Command, words: list[Word], here: str, depth: int
    ) -> tuple[str, list[Hit], str, World] | None:
        """Judge a git command: its own options, then the subcommand or what its alias stands for."""
        aliases: dict[str, str] = {}
        while words and words[0].text.startswith("-"):
            option, sign, value = words.pop(0).text.partition("=")
            if option in _GIT_VALUED and not sign:
                value = words.pop(0).text if words else ""
            if option in {"-C", "--work-tree"}:
                here = os.path.normpath(os.path.join(here, value))
            elif option == "-c" and value.lower().startswith("alias."):
                alias, _, meaning = value[6:].partition("=")
                aliases[alias] = meaning
        if not words or not os.path.isdir(here):
            return None
        name, rest = words[0].text, words[1:]
        if name in ROWS:
            return self._run_git(name, rest, command.reads, here)
        if name in _KNOWN or depth > MAX_DEPTH or not self.world(here).held:
            return None
        meaning = aliases.get(name) or _alias(here, name)
        if meaning.startswith("!"):
            world = self.world(here)
            inner = read(meaning[1:], depth + 1)
            if inner:
                inner[-1].words += rest
            return self.judged(inner, world.root, depth + 1)
        if not meaning:
            return None
        expanded = [word for part in read(meaning, depth + 1)[:1] for word in part.words]
        return self._git(command, [*expanded, *rest], here, depth + 1)

    def _run_git(
        self, name: str, words: Sequence[Word], reads: Sequence[Word], here: str
    ) -> tuple[str, list[Hit], str, World] | None:
        """Judge one git subcommand in the checkout that it works in."""
        world = self.world(here)
        if not world.held:
            return None
        call = Call(here, world.root, world.held, name, words, reads)
        try:
            verdict = judge(call)
        except git.GitFailed as error:
            if error.status is None:
                raise
            return None
        if verdict is None or not verdict[0]:
            return None
        shown = " ".join([name, *(word.text for word in words[:4] if word.known)])
        return f"git {shown}", verdict[0], verdict[1], world


def _unwrapped(words: list[Word]) -> list[Word]:
    """Return a program without what only runs it: keywords, assignments, `sudo`, `env`, `timeout 5`, `xargs`."""
    while words:
        first = words[0]
        name = os.path.basename(first.text)
        if (first.bare and first.text in _KEYWORDS) or _ASSIGNMENT.match(first.text):
            words = words[1:]
        elif name in _WRAPPERS:
            words = words[1:]
            while words and words[0].text.startswith("-"):
                words = words[2:] if words[0].text in _WRAPPERS[name] else words[1:]
            words = words[1:] if name == "timeout" else words
        else:
            return words
    return words


def _after(command: Command, here: str) -> str:
    """Return the folder that the next command runs in."""
    words = _unwrapped(list(command.words))
    if len(words) > 1 and words[0].text in {"cd", "pushd"} and words[1].known:
        return os.path.normpath(os.path.join(here, words[1].text))
    return here


def _alias(here: str, name: str) -> str:
    """Return what an alias stands for; empty without one."""
    if not re.fullmatch(r"[A-Za-z0-9-]+", name, re.ASCII):
        return ""
    try:
        return os.fsdecode(git.ask(here, ["config", "--get", f"alias.{name}"])).strip()
    except git.GitFailed as error:
        if error.status is None:
            raise
        return ""


def _file_patterns(root: str, path: str, *, glob: bool) -> list[str]:
    """Return the patterns for a file that a program names, or for what the shell makes of a wildcard."""
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    if glob:
        return path_patterns(root, real)
    inside = os.path.relpath(real, root)
    if inside == ".." or inside.startswith("../"):
        return []
    return ["**"] if inside == "." else [quote(inside), f"{quote(inside)}/**"]


def _plain(words: Sequence[Word]) -> list[Word]:
    """Return the words that are no options."""
    after = next((at for at, word in enumerate(words) if word.text == "--"), len(words))
    return [word for at, word in enumerate(words) if at > after or not word.text.startswith("-")]


def _target(words: Sequence[Word], here: str) -> list[Word]:
    """Return what a copy writes: the last word, or a file of the same name in that folder."""
    plain = _plain(words)
    into = next((after for word, after in pairwise(words) if word.text == "-t"), None)
    if into is None and len(plain) > 1:
        into, plain = plain[-1], plain[:-1]
    if into is None:
        return []
    if not os.path.isdir(os.path.join(here, into.text)):
        return [into]
    return [
        replace(
            word, text=os.path.join(into.text, os.path.basename(word.text.rstrip("/"))), known=word.known and into.known
        )
        for word in plain
    ]


def _in_place(words: Sequence[Word], _here: str) -> list[Word]:
    """Return the files that `sed -i` and `perl -pi -e` change."""
    short = [word.text for word in words if word.text.startswith("-") and not word.text.startswith("--")]
    if not any("i" in text.partition("e")[0] for text in short) and not any(
        word.text.startswith("--in-place") for word in words
    ):
        return []
    scripts = {
        at + 1 for at, word in enumerate(words) if word.text in {"-e", "-f", "-pe", "-pie", "-ne", "--expression"}
    }
    files = [word for at, word in enumerate(words) if at not in scripts and not word.text.startswith("-")]
    return files if scripts else files[1:]


_TARGETS: Final[dict[str, Callable[[Sequence[Word], str], list[Word]]]] = {
    **dict.fromkeys(("rm", "unlink", "rmdir", "shred", "tee", "truncate"), lambda words, _here: _plain(words)),
    **dict.fromkeys(("cp", "install", "ln", "rsync"), _target),
    **dict.fromkeys(("sed", "gsed", "perl", "ruby"), _in_place),
    "mv": lambda words, here: [*_plain(words)[:-1], *_target(words, here)],
    "dd": lambda words, _here: [replace(word, text=word.text[3:]) for word in words if word.text.startswith("of=")],
}
"""Program to the files that it writes, moves or removes."""


__all__ = ["ReservationError", "check_command"]
