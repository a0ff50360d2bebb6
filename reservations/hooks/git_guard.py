"""The guard of shell commands: what an agent's Bash tool is about to run leaves alone what other agents hold.

Best effort, and said so in docs/coverage.md: it reads plain commands, what commonly runs them, loops over names and
git's aliases. What a script computes or another program does is not seen here; git's own hooks are the second door.
"""

import os.path
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from interlock.reservations import git, place
from interlock.reservations.errors import ReservationError
from interlock.reservations.held import Opened, explain, git_dir_of, note, place_of
from interlock.reservations.hooks import git_words, glance, ways_round
from interlock.reservations.hooks.filling import Filling, Spot, split
from interlock.reservations.hooks.findings import Finding, anything
from interlock.reservations.hooks.git_call import Call
from interlock.reservations.hooks.git_commands import ROWS, judge
from interlock.reservations.hooks.git_words import KNOWN
from interlock.reservations.hooks.judges import SHELL_FIX, judge_of
from interlock.reservations.hooks.made import MAKERS, Made
from interlock.reservations.hooks.programs import FILES, KEYWORDS, Run, spelled, unwrapped
from interlock.reservations.hooks.shell import MAX_DEPTH, Command, Excessive, Unreadable, Word, read
from interlock.reservations.hooks.walk import Walk
from interlock.reservations.hooks.ways_round import STORE_FIX
from interlock.reservations.hooks.worlds import Worlds
from interlock.reservations.records import replace
from interlock.reservations.rules import shown

__all__ = ["ReservationError", "check_command"]

MAX_STEPS: Final = 5000
"""So many commands of one line are looked at, counted anew for each folder and each value of a variable."""
MAX_FILES: Final = 2000
"""So many files of one line are looked at."""
MAX_GIT: Final = 60
"""So many git commands of one line are looked at: each may ask git several questions."""

FILE_FIX: Final = "work on files of your own, or ask for this one first."
FED_FIX: Final = "name the files, so that it can be seen whose they are: `rm FILE…`, or `find FOLDER -name … -delete`."
GIT_FIX: Final = "write the subcommand out, so that what it touches can be seen."
TREE_FIX: Final = "run git in the checkout that it is about: `git -C FOLDER …`."
READ_FIX: Final = "write it in plain words or smaller pieces, so that what it touches can be seen."

_BLOCKS: Final = KEYWORDS | {"for", "select"}
_ELSEWHERE: Final = re.compile(r"/|\bcd\b|-C|pushd|GIT_|--git-dir|hook")
"""A command may name another checkout; without one of these it cannot."""


def check_command(
    command: str, cwd: str, env: Mapping[str, str], known: Mapping[str, Opened] = MappingProxyType({})
) -> str | None:
    """Return the refusal of a shell command line, or None when it may run.

    Without leases of others everything passes, and costs next to nothing.

    Args:
        command: The line, as the agent's tool was given it.
        cwd: The folder it would run in, absolute.
        env: Where the identity is read from.
        known: Stores that are open already, by their paths.

    Raises:
        ReservationError: The store cannot be read, so that what others hold is not known.
    """
    if not glance.may_change(command):
        return None
    worlds = Worlds(env, known)
    guard = Guard(worlds)
    if not worlds.at(cwd).held and not _ELSEWHERE.search(glance.unquoted(command)):
        return None
    try:
        found = guard.judged(read(command), Walk.at([cwd]), 0)
    except (Unreadable, RecursionError) as error:
        world = next((world for world in worlds.folders.values() if world.held), worlds.at(cwd))
        why = str(error) if isinstance(error, Unreadable) else "too deep"
        what = f"a command that cannot be read: {why}"
        found = Finding(what, world.all(), READ_FIX, world, "may touch", asks=False)
        found = found if found.hits else None
    if found is None:
        return None
    action, hits, fix, world, verb, reason, asks = found
    if world.opened is not None:
        # The program and its subcommand, or the name of a variable: what follows may be secret.
        words = action.split(" ")[: 2 if action.startswith("git ") else 1]
        note(*world.opened, "bash", " ".join(words).partition("=")[0], hits)
    return explain(f"`{shown(action)}` {verb}", hits, fix, why=reason, asks=asks)


class Guard:
    """Walks over the commands of one line."""

    def __init__(self, worlds: Worlds) -> None:
        self.worlds = worlds
        self.filling = Filling(worlds)
        self.aliases: dict[str, dict[str, str]] = {}
        self.own_aliases: dict[str, str] = {}
        self.made = Made()
        self.counts = {"commands": 0, "files": 0, "git commands": 0}

    # -- the line ------------------------------------------------------------------------------------------------

    def judged(self, commands: Sequence[Command], walk: Walk, depth: int) -> Finding | None:
        """Return the first command that would touch something."""
        for at, command in enumerate(commands):
            walk.step(command.ops)
            _keywords(command, walk)
            within = self.judged(command.within, walk.inner(), depth + 1) if command.within else None
            if within is not None:
                return within
            if command.defines:
                walk.functions[command.defines] = command.within
            elif (found := self._command(commands, at, walk, depth)) is not None:
                return found
        return None

    def _command(self, commands: Sequence[Command], at: int, walk: Walk, depth: int) -> Finding | None:
        """Judge one simple command, wherever it may run and whatever its variables may hold."""
        targets: dict[str, None] = {}
        run = Run([])
        for binding in self.filling.bindings(commands[at], walk):
            for here in walk.folders:
                spot = Spot(commands, at, walk, binding, here, depth)
                run = unwrapped(self.filling.words(spot, commands[at].words))
                writes = self.filling.words(spot, commands[at].writes)
                found = self.files(">", writes, here, follow=True) or self.program(spot, run)
                if found is not None:
                    return found
                self._note(spot, run, writes)
                targets |= dict.fromkeys(self.filling.moved(run, here))
        self.filling.after(Spot(commands, at, walk, {}, walk.folders[0], depth), run, list(targets))
        return None

    def _note(self, spot: Spot, run: Run, writes: Sequence[Word]) -> None:
        """Note the files that a command writes, and what it writes to them where the line says it."""
        text = self._body(spot) if run.name == "cat" and len(run.words) == 1 else None
        for word in writes:
            self.made.write(os.path.normpath(os.path.join(spot.here, word.text)), text)
        self.made.ran |= bool(run.words) and run.name not in {"cd", "pushd", "popd"}

    def _body(self, spot: Spot) -> str | None:
        """Return the text that a here-document gives a command; None without one, or where it is not known."""
        body = spot.command.body
        words = [] if body is None else self.filling.words(spot, [body])
        return words[0].text if len(words) == 1 and words[0].known else None

    def _count(self, what: str, limit: int) -> None:
        """Count what is looked at.

        Raises:
            Excessive: That is too much.
        """
        self.counts[what] += 1
        if self.counts[what] > limit:
            raise Excessive(f"too many {what}")

    # -- programs --------------------------------------------------------------------------------------------------

    def files(
        self, action: str, words: Sequence[Word], here: str, *, follow: bool, whole: bool = False
    ) -> Finding | None:
        """Judge files that a program writes, moves or removes; a word with a variable in it is not known.

        `whole` says that the action is the whole command, as it is quoted to who wrote it.
        """
        for word in words:
            if word.fed and not word.known:
                # A name from a list, with a folder before it, lies in that folder.
                folder = os.path.dirname(word.text)
                if not folder and (found := self.unknown(action, FED_FIX, here)) is not None:
                    return found
                word = Word(f"{folder}/**" if folder else "", glob=True)  # noqa: PLW2901
            if not word.known or not word.text:
                continue
            self._count("files", MAX_FILES)
            world, hits, shared = self.worlds.hits(word, here, follow=follow)
            if hits:
                verb = "would change git's own files or the store, which guard" if shared else "would touch"
                said = action if whole else f"{action} {word.text}"
                return Finding(said, hits, STORE_FIX if shared else FILE_FIX, world, verb, asks=not shared)
        return None

    def program(self, spot: Spot, run: Run) -> Finding | None:
        """Judge one program with its arguments."""
        self._count("commands", MAX_STEPS)
        if run.folder is not None and run.folder.known:
            spot = replace(spot, here=os.path.normpath(os.path.join(spot.here, run.folder.text)))
        if (found := ways_round.disguised(run, spot.here, self.worlds)) is not None:
            return found
        for text in run.texts:
            if (found := self.text(spot, text)) is not None:
                return found
        if run.fed is not None:
            self._feed(spot, run)
        name, rest = run.name, run.words[1:]
        if not name or not run.words[0].known:
            return None
        if name.startswith("git-") and name[4:] in ROWS:
            name, rest = "git", [replace(run.words[0], text=name[4:]), *rest]
        if name == "git":
            return self._git(spot, run, rest)
        if (files := FILES.get(name)) is not None:
            removed, written = files(rest, spot.here)
            for word in (*removed, *written):
                self.made.write(os.path.normpath(os.path.join(spot.here, word.text)), None)
            said = spelled(run.words)
            found = self.files(said, removed, spot.here, follow=False, whole=True)
            return found or self.files(said, written, spot.here, follow=True, whole=True)
        row = judge_of(name)
        found = None if row is None else row(self, spot, run, rest)
        if found is None and name in spot.walk.functions and spot.depth <= MAX_DEPTH:
            found = self._called(spot, name, rest)
        return found or ways_round.shared(run, spot.here, self.worlds)

    def _called(self, spot: Spot, name: str, rest: Sequence[Word]) -> Finding | None:
        """Judge a function of the line where it is called."""
        inner = spot.walk.inner([spot.here])
        inner.give(rest)
        found = self.judged(spot.walk.functions[name], inner, spot.depth + 1)
        spot.walk.also(inner.folders)
        return found

    def text(self, spot: Spot, text: Word, given: Sequence[Word] = (), *, fed: bool = False) -> Finding | None:
        """Judge a command line inside the command line, with what it is given as `$1` and so on."""
        if text.fed and not text.known:
            return self.unknown("a command that is not known", SHELL_FIX, spot.here)
        inner = spot.walk.inner([spot.here], fed=fed)
        inner.give(given)
        return self.judged(read(text.text, spot.depth + 1), inner, spot.depth + 1)

    def unknown(self, action: str, fix: str, here: str) -> Finding | None:
        """Judge what may be anything."""
        return anything(action, fix, self.worlds.at(here))

    def _feed(self, spot: Spot, run: Run) -> None:
        """Give a program the words that `xargs` gives it."""
        fed = self.filling.piped(spot)
        words = [Word(known=False, fed=True)] if fed is None else split(fed)
        mark = run.fed.place if run.fed is not None else ""
        if not mark:
            run.words += words
            return
        given = [(word, words if mark in word.text else [Word(mark)]) for word in run.words]
        run.words = [_put(word, mark, new) if mark in word.text else word for word, news in given for new in news]

    # -- git ---------------------------------------------------------------------------------------------------------

    def _git(self, spot: Spot, run: Run, words: Sequence[Word]) -> Finding | None:
        """Judge a git command: its own options, then the subcommand or what its alias stands for."""
        told = {name: self._told(spot, run, name) for name in ("GIT_DIR", "GIT_WORK_TREE")}
        unknown = any(name.startswith("GIT_CONFIG") for name in (*run.assigned, *spot.walk.values))
        given = git_words.Given(list(words), spot.here, told, dict(self.own_aliases), unknown=unknown)
        given.read()
        words, here = given.words, given.here
        if not words or not os.path.isdir(here):
            return None
        spot = replace(spot, here=here)
        name, rest = words[0].text, words[1:]
        if not words[0].known:
            return self.unknown("git …", GIT_FIX, here)
        if (found := self._tree(name, here, given.told)) is not None:
            return found
        if (files := git_words.written(name, rest)) and (found := self.files(f"git {name}", files, here, follow=True)):
            return found
        for text, folders in git_words.commands_of(name, rest, here):
            for folder in folders:
                if (found := self.text(replace(spot, here=folder), text)) is not None:
                    return found
        if name in ROWS or name in MAKERS:
            if name == "config" and (alias := git_words.alias_set(rest)):
                self.own_aliases[alias[0]] = alias[1]
            reads = self.filling.words(spot, spot.command.reads)
            return self.run_git(name, rest, reads, spot, hooks=given.hooks)
        if name in KNOWN or spot.depth > MAX_DEPTH or not self.worlds.at(here).held:
            return None
        meaning = given.aliases.get(name.lower()) or self._aliases(here).get(name.lower(), "")
        return (
            self._alias(spot, run, meaning, rest)
            if meaning or not given.unknown
            else self.unknown("git …", GIT_FIX, here)
        )

    def _alias(self, spot: Spot, run: Run, meaning: str, rest: list[Word]) -> Finding | None:
        """Judge what an alias stands for."""
        if not meaning:
            return None
        inner = read(meaning.removeprefix("!"), spot.depth + 1)
        if meaning.startswith("!"):
            if inner:
                inner[-1].words += rest
            return self.judged(inner, spot.walk.inner([self.worlds.at(spot.here).root]), spot.depth + 1)
        expanded = [word for part in inner[:1] for word in part.words]
        return self._git(replace(spot, depth=spot.depth + 1), run, [*expanded, *rest])

    def _told(self, spot: Spot, run: Run, name: str) -> str:
        """Return what an environment variable of git's says, on this line or around it."""
        word = run.assigned.get(name)
        if word is None and (values := spot.walk.values.get(name)):
            word = values[-1]
        return word.text if word is not None else self.worlds.env.get(name, "")

    def _tree(self, name: str, here: str, told: Mapping[str, str]) -> Finding | None:
        """Judge git where it is told of another repository, or of other files, than those of the folder it runs in."""
        if not any(told.values()) or name not in ROWS or name == "config":
            return None
        root = self.worlds.at(here).root
        folder = os.path.realpath(os.path.join(here, told["GIT_DIR"])) if told["GIT_DIR"] else git_dir_of(root)
        tree = os.path.realpath(os.path.join(here, told["GIT_WORK_TREE"] or ("." if told["GIT_DIR"] else root)))
        if folder == git_dir_of(tree) and place.inside(tree, os.path.realpath(here)):
            return None
        for world in (self.worlds.of(place_of(folder, tree)), self.worlds.at(tree)):
            if world.held:
                return Finding(f"git {name}", world.all(), TREE_FIX, world, "may touch", asks=False)
        return None

    def _aliases(self, here: str) -> dict[str, str]:
        """Return git's aliases; they are asked for once."""
        root = self.worlds.at(here).root
        if root not in self.aliases:
            self.aliases[root] = git_words.aliases(here)
        return self.aliases[root]

    def run_git(
        self,
        name: str,
        words: Sequence[Word],
        reads: Sequence[Word],
        spot: Spot,
        *,
        hooks: bool = True,
        shown: str = "",
    ) -> Finding | None:
        """Judge one git subcommand, or what is judged like one, in its checkout, and note what it makes."""
        world = self.worlds.at(spot.here)
        if not world.held:
            return None
        if name in ROWS:
            self._count("git commands", MAX_GIT)
        try:
            call = Call(
                spot.here, world.root, world.held, name, words, reads=reads, body=self._body(spot), made=self.made,
                linked=world.is_linked, hooks=hooks and self.worlds.env.get("INTERLOCK_HOOKS", "") != "off",
            )  # fmt: skip
            verdict = judge(call)
        except git.GitFailed as error:
            if error.status is None:
                raise
            # Git does not find what is named, and will not find it when the command runs.
            return None
        self.made.git(call)
        if verdict is None or not verdict[0]:
            return None
        hits, why = call.ordered(verdict[0])
        action = shown or f"git {name} {spelled(words)}".rstrip()
        return Finding(action, hits, verdict[1], world, "may touch" if why else "would touch", why)


def _put(word: Word, mark: str, new: Word) -> Word:
    """Return a word with another one in the place of a mark; of a name from a list only what stands before it."""
    text = word.text.replace(mark, new.text) if new.known else word.text.partition(mark)[0]
    return replace(new, text=text, known=word.known and new.known)


def _keywords(command: Command, walk: Walk) -> None:
    """Go over the keywords at the beginning of a command."""
    for word in command.words:
        if not word.bare or word.text not in _BLOCKS:
            return
        walk.keyword(word.text)
