"""Which commands of a line are refused: git's verbs, a short list of programs that remove or overwrite, and names.

Threats: T1, and T2 as far as plain words go.
"""

import os.path
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Final

from interlock.core.project import PROJECT
from interlock.reservations import identity
from interlock.reservations.git import commands
from interlock.reservations.guard import git_verbs
from interlock.reservations.guard.held import Checkouts
from interlock.reservations.guard.line import REMOVERS, UNKNOWN, Command, read
from interlock.reservations.store.records import key_of

_NAMES: Final = frozenset({*identity.NAMES, identity.SESSION, identity.EXPORTED, PROJECT, "INTERLOCK_HOOKS"})
"""Variables that say who an agent is, and whether hooks run."""
_ELSEWHERE: Final = re.compile(r"GIT_(?:\w*DIR\w*|WORK_TREE|INDEX_FILE|CONFIG\w*)|--(?:git-dir|work-tree|config-env)")
"""Variables and options by which git works on another repository or by other settings."""
_READS: Final = "add status log diff show tag remote rev-parse ls-files blame grep push fetch clone init"
"""The most frequent subcommands that are no alias, and have no row that matters."""
_MODULE: Final = re.compile(r"\S+ (?:-\S+ )*?-[A-Za-z]*m ?interlock(?:\.__main__)?(?: (.*)|$)", re.DOTALL)
_TESTS: Final = frozenset({"-name", "-iname", "-path", "-wholename", "-regex", "-newer", "-prune"})
"""What makes `find` go on to some files only."""
_AROUND: Final = "would bypass the guard of"

PERSON: Final = "leave that to a person."
OWN_HOOKS: Final = "clients and git call it; `interlock reserve`, `release` and `status` are for you."
PERSONS: Final = "object with `- GATE-X: OBJECTION: reason` in a BLOCKED answer, and a person decides."
TREE: Final = "run git in the checkout that it is about, by the settings that it has: `git -C FOLDER …`."


class Judge:
    """Judges one line; what may not run raises `RefusedError`."""

    def __init__(self, checkouts: Checkouts, env: Mapping[str, str], owner_of: git_verbs.OwnerOf) -> None:
        self.checkouts, self.env, self.owner_of = checkouts, env, owner_of
        self.elsewhere: list[str] = []
        """What variables of the line name as another repository."""

    def line(self, text: str, cwd: str) -> None:
        """Judge each command, in the order in which they stand there."""
        rows = read(text, cwd, self.env)
        self.elsewhere += [row.words[2] for row in rows if row.program == "=" and _ELSEWHERE.fullmatch(row.words[1])]
        for row in dict.fromkeys(rows):
            self._command(row)

    def _command(self, row: Command) -> None:
        name, words, here = row.program, row.words, row.here
        if name == "=" and words[1] in _NAMES:
            self._named(words[1], words[2], here)
        elif name == "git" or name.startswith("git-"):
            self._git(words[1:] if name == "git" else [name[4:], *words[1:]], here)
        elif name == "interlock":
            self._interlock(words[1:], here)
        elif name.startswith("python") and (found := _MODULE.match(" ".join(words))):
            self._interlock((found[1] or "").split(), here)
        elif name in REMOVERS:
            self.checkouts.remove(name, words[1:], here)
        elif name in {"mv", "rsync"}:
            is_kept = any(".git" in word and "exclude" in f"{before}{word}" for before, word in pairwise(words))
            deletes = any(word.startswith("--del") for word in words) and not is_kept
            self.checkouts.remove(name, words[1:-1] if name == "mv" else words[-1:] if deletes else [], here)
            self.checkouts.write(name, words[-1:], here)
        elif name in {">", "tee", "truncate", "cp", "ln", "install"}:
            self.checkouts.write(name, words[-1:] if name in {"cp", "ln", "install"} else words[1:], here)
        elif name == "find":
            self._find(words, here)
        elif name == "gh" and (words[1:3] == ("pr", "checkout") or words[1:] == ("repo", "sync")):
            self._anything(" ".join(words[:3]), "moves HEAD under", git_verbs.WAIT, here)

    def _anything(self, action: str, verb: str, fix: str, here: str) -> None:
        self.checkouts.at(here).refuse(action, verb, self.checkouts.at(here).all, fix)

    def _find(self, words: Sequence[str], here: str) -> None:
        runs = {os.path.basename(word) for before, word in pairwise(words) if before[:5] in {"-exec", "-ok"}}
        if "-delete" not in words and runs.isdisjoint(REMOVERS):
            return
        starts = [*takewhile(lambda word: word[:1] not in {"-", "(", "!"}, words[1:])] or ["."]
        if ("-name", ".git") in pairwise(words) and {"!", "-not", "-o", "-or"}.isdisjoint(words):
            self.checkouts.remove("find", [os.path.join(start, ".git") for start in starts], here)
        elif _TESTS.isdisjoint(words) and not {"-empty", "d"} <= {*words}:
            self.checkouts.remove("find", starts, here)

    def _named(self, name: str, value: str, here: str) -> None:
        """Judge a variable: nobody turns the hooks off or passes for another agent."""
        checkout = self.checkouts.at(here)
        me = key_of("" if checkout.opened is None else checkout.opened.caller.name)
        path = os.path.join(here, value)
        is_own = name in identity.NAMES and key_of(value) == me
        is_own |= name == identity.SESSION and key_of(identity.of_session(value)) == me
        is_own |= name == PROJECT and UNKNOWN not in path and os.path.realpath(path) == checkout.root
        if not (value and is_own):
            self._anything(name, _AROUND, PERSON, here)

    def _interlock(self, words: Sequence[str], here: str) -> None:
        """Judge our own commands: hooks are not called by hand, and nobody decides in a person's place."""
        checkout, verb = self.checkouts.at(here), words[0] if words else ""
        if verb == "hook" and checkout.opened is not None:
            said = "says who an agent is, and what it is about to do."
            raise checkout.refused("RSV207", "interlock hook", said, OWN_HOOKS)
        if verb in {"answer", "ui", UNKNOWN}:
            may_be = "may be `answer` or `ui`, which " if verb == UNKNOWN else ""
            said = f"{may_be}is for the person who owns the task, and for no agent."
            raise checkout.refused("RSV207", f"interlock {verb.replace(UNKNOWN, '…')}", said, PERSONS)
        if verb == "uninstall" or (verb == "init" and "--undo" in words):
            self._anything(f"interlock {verb}", _AROUND, PERSON, here)

    def _git(self, given: Sequence[str], here: str, aliased: int = 0) -> None:
        """Judge a git command: its own options, then its subcommand or what its alias means."""
        words, elsewhere = list(given), list(self.elsewhere)
        while words and words[0].startswith("-"):
            option, sign, value = words.pop(0).partition("=")
            takes = option in {"-C", "-c"} or _ELSEWHERE.fullmatch(option)
            value = words.pop(0) if takes and not sign and words else value
            if option == "-C" and UNKNOWN not in value:
                here = os.path.normpath(os.path.join(here, value))
            elif takes and (option != "-c" or git_verbs.GUARDED.match(value.lower())):
                elsewhere.append("" if option == "-c" else value)
        name, checkout = words[0] if words else "", self.checkouts.at(here)
        if name == UNKNOWN and checkout.all:
            raise checkout.refused("RSV215", "git …", "does not say what it does.", git_verbs.PLAIN)
        if name in git_verbs.VERBS:
            for path in elsewhere:
                self._anything(f"git {name}", "by other settings may touch", TREE, here)
                self._anything(f"git {name}", "from elsewhere may touch", TREE, os.path.join(here, path.strip(UNKNOWN)))
            self._verb(git_verbs.Call(self.checkouts, here, words, self.owner_of))
        elif name not in _READS.split() and aliased < 3 and checkout.all:
            meaning = (commands.answer(checkout.root, ["config", "--get", f"alias.{name}"]) or b"").decode().strip()
            if meaning.startswith("!"):
                self.line(meaning[1:], checkout.root)
            elif meaning:
                self._git([*meaning.split(), *words[1:]], here, aliased + 1)

    def _verb(self, call: git_verbs.Call) -> None:
        try:
            verdict = git_verbs.VERBS[call.name](call)
        except commands.GitError as error:
            if error.status is None:
                raise
            return  # git does not find what is named, and will not find it when the command runs
        if verdict is not None:
            call.checkout.refuse(f"git {call.name}", "would touch", verdict[0], verdict[1], asks=True)
