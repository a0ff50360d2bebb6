"""Git on a command line: its own options, the variables and settings that it reads, and aliases."""

import os
import os.path
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from interlock.reservations.git import commands
from interlock.reservations.guard import git_verbs, refusals
from interlock.reservations.guard.effects import Worlds
from interlock.reservations.guard.git_command import Call, arguments, asked
from interlock.reservations.guard.judge import Feed, Judge, Spot, shown
from interlock.reservations.guard.prefilter import names
from interlock.reservations.guard.refusals import RefusedError
from interlock.reservations.guard.words import Word

MAX_ALIASES: Final = 5
_FETCHERS: Final = frozenset({"fetch", "pull", "remote", "submodule"})
_MAKERS: Final = _FETCHERS | {"branch", "tag", "worktree", "update-ref", "push", "checkout", "switch"}
"""Subcommands after which names may stand for other commits."""
_ODD: Final = re.compile(
    r"GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|NAMESPACE|EXEC_PATH|CONFIG\w*|\w+_PATHSPECS)"
)
"""Variables by which git works on another repository or working tree, by other settings, or reads paths differently."""
_ODD_OPTIONS: Final = re.compile(r"--(?:git-dir|work-tree|exec-path|config-env|\w+-pathspecs)")
_ODD_SETTINGS: Final = re.compile(r"(?i)include|alias\.|core\.(?:worktree|hookspath)$|\w+\.autostash$")
_RUN_AS_TEXT: Final = (
    r"^pager\.|(?:editor|pager|sshcommand|external|fsmonitor|command|cmd|textconv|clean|smudge|process|driver|helper|"
    r"askpass|program|uploadpack|receivepack|proxy)$"
)
"""Settings whose value is run."""
_VALUED: Final = names("-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix --attr-source")
_MESSAGES: Final = names("-m --message --author --date --trailer --into-name --reason -am -qm -qam -sm")
"""Options whose value names no file and no commit, so that it need not be known."""


class GitLines(Judge):
    """Judges git commands."""

    def __init__(self, worlds: Worlds, env: Mapping[str, str], cwd: str) -> None:
        super().__init__(worlds, env, cwd)
        self.aliases: dict[str, dict[str, str]] = {}
        self.begin()

    def begin(self) -> None:
        """Forget what the commands of the line have done."""
        self.made, self.fetched = "", False
        """What makes branches and tags was given, and whether anything was fetched."""
        self.calm, self.wrote = True, False
        """Nothing has run yet that may have removed anything; something may have written a file."""

    def text(self, spot: Spot, text: str, feed: Feed = None) -> None:
        """Judge a command line inside the command line."""
        raise NotImplementedError

    def fed_text(self, feed: Feed) -> str | None:
        """Return what reaches a standard input as one text; None where that is not known."""
        return None if feed is None or not all(word.literal for word in feed) else " ".join(feed)

    def read_files(self, spot: Spot) -> list[Word]:
        """Return the files that a command's standard input comes from."""
        parent = spot.node.parent
        nodes = [*spot.node.children, *(parent.children if parent and parent.type == "redirected_statement" else [])]
        inputs = [node for node in nodes if node.type == "file_redirect" and any(c.type == "<" for c in node.children)]
        return [word for node in inputs for word in self.fields(node.children[-1], spot)]

    def git(self, spot: Spot, given: Sequence[Word], aliased: int = 0) -> None:
        """Judge a git command: its own options, then the subcommand or what its alias stands for."""
        words = list(given)
        here, odd = self._options(spot, words)
        name, rest = (words[0].text if words and words[0].literal else ""), words[1:]
        if not words or (here is None and name in git_verbs.READS):
            return
        if not name or here is None:
            self.plainly(spot, "git …", "a subcommand that is spelled out, in a folder that is")
        if not os.path.isdir(here):
            return
        spot = spot._replace(here=here)
        if name not in git_verbs.READS and name != "config":
            for path in odd:
                self.anything(f"git {name}", refusals.TREE, path)
        self.files(spot, f"git {name}", git_verbs.written(name, rest), follow=True)
        self.wrote |= name in {"format-patch", "archive", "bundle"} or any("--o" in word.text for word in rest)
        for text in git_verbs.commands_of(name, rest):
            if not text.known:
                self.plainly(spot, f"git {name}", "a command that is spelled out")
            for folder in (here, None) if name == "submodule" else (here,):
                self.text(spot._replace(here=folder), text.text)
        if name in git_verbs.VERBS:
            self._known(spot, name, rest)
            if name == "config" and any(word.text.lower().startswith("alias.") for word in rest):
                self.set(spot, "GIT_CONFIG", Word())
            self.verb(spot, name, rest, self.read_files(spot))
        elif name in git_verbs.READS:
            self._note(name, rest)
        else:
            self._meant(spot, name, rest, aliased)

    def _options(self, spot: Spot, words: list[Word]) -> tuple[str | None, list[str]]:
        """Take git's own options off; return its folder, and the folders that an odd option or variable is about."""
        here, odd = spot.here, [""][:0]
        told = [word for name in self.values if _ODD.fullmatch(name) for row in self.values[name] for word in row]
        while words and words[0].text.startswith("-"):
            option, sign, value = words.pop(0).text.partition("=")
            if option in _VALUED and not sign:
                after = words.pop(0) if words else Word()
                if not after.literal:
                    self.plainly(spot, "git …", "git's own options spelled out")
                value = after.text
            if option == "-C":
                here = None if here is None else os.path.normpath(os.path.join(here, value))
            elif option == "-c":
                self._setting(spot, value)
            elif _ODD_OPTIONS.fullmatch(option) and (value or option != "--exec-path"):
                told.append(Word(value))
        for word in told:
            path = os.path.realpath(os.path.join(here or self.cwd, word.text))
            odd += [here or self.cwd, path, os.path.dirname(path)]
        return here, odd

    def _meant(self, spot: Spot, name: str, rest: Sequence[Word], aliased: int) -> None:
        """Judge what an alias stands for; another subcommand is a program of its own."""
        meaning = self._aliases(spot.here or self.cwd).get(name.lower(), "")
        if (meaning and not all(word.known for word in rest)) or aliased > MAX_ALIASES:
            self.plainly(spot, f"git {name}", "git's own subcommand, with arguments that are spelled out")
        if meaning.startswith("!"):
            root = self.worlds.at(spot.here or self.cwd).root
            text = f"{meaning[1:]} {git_verbs.quoted([word.text for word in rest])}".rstrip()
            self.text(spot._replace(here=root), text)
        elif meaning:
            import shlex  # noqa: PLC0415 - few lines have an alias

            self.git(spot, [*map(Word, shlex.split(meaning)), *rest], aliased + 1)

    def _known(self, spot: Spot, name: str, words: Sequence[Word]) -> None:
        """Refuse arguments that are not known, but for messages."""
        if name == "branch" and {"-d", "-D", "--delete"}.intersection(word.text for word in words):
            return  # never the branch that is checked out
        for before, word in pairwise([Word(), *words]):
            if not word.known and not (before.text in _MESSAGES and word.single):
                self.plainly(spot, f"git {name}", "arguments that are spelled out")

    def _setting(self, spot: Spot, setting: str) -> None:
        """Judge `git -c NAME=VALUE`."""
        key, _, value = setting.partition("=")
        if _ODD_SETTINGS.match(key):
            self.anything(f"git -c {key}", refusals.TREE, spot.here)
        elif re.search(_RUN_AS_TEXT, key.lower()):
            self.text(spot, value.removeprefix("!"))

    def _aliases(self, here: str) -> dict[str, str]:
        """Return git's aliases, names in small letters; they are asked for once."""
        root = self.worlds.at(here).root
        if root not in self.aliases:
            rows = asked(here, "config", "-z", "--get-regexp", r"^alias\.").split("\0")
            pairs = (row.removeprefix("alias.").partition("\n") for row in rows)
            self.aliases[root] = {name.lower(): meaning.strip() for name, _, meaning in pairs}
        return self.aliases[root]

    def _note(self, name: str, words: Sequence[Word]) -> None:
        """Note what a command makes for those behind it."""
        if name in _MAKERS and (
            name not in {"checkout", "switch"} or any(word.text[:2].lower() in {"-b", "-c"} for word in words)
        ):
            self.made += " ".join(["", *(word.text for word in words), "FETCH_HEAD" if name in _FETCHERS else ""])
        self.fetched |= name in _FETCHERS

    def verb(self, spot: Spot, name: str, words: Sequence[Word], patches: Sequence[Word], said: str = "") -> None:
        """Judge one git subcommand, or what is judged like one, in its checkout, and note what it makes."""
        here = spot.here or self.cwd
        world = self.worlds.at(here)
        if not world.held:
            return
        self.count("git commands", spot.node)
        hooks = self.env.get("INTERLOCK_HOOKS", "") != "off"
        call = Call(here, world, name, *arguments(name, words), patches, self.fed_text(spot.feed), self.made,
                    self.fetched, self.wrote, hooks)  # fmt: skip
        try:
            verdict = git_verbs.judge(call)
        except commands.GitError as error:
            if error.status is None:
                raise
            # Git does not find what is named, and will not find it when the command runs.
            return
        self._note(name, words)
        if verdict is not None and verdict[0]:
            hits, why = call.ordered(verdict[0])
            action, verb = said or shown(f"git {name}", words), "may touch" if why else "would touch"
            raise RefusedError(action, hits, verdict[1], world, verb=verb, why=why)
