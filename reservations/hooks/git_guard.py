"""The guard of shell commands: what an agent's Bash tool is about to run leaves alone what other agents hold.

Best effort, and said so in docs/coverage.md: it reads plain commands, what commonly runs them, loops over names and
git's aliases. What a script computes or another program does is not seen here; git's own hooks are the second door.
"""

import os.path
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from interlock.reservations import git, identity, place
from interlock.reservations.errors import ReservationError
from interlock.reservations.held import Hit, explain, git_dir_of, note, place_of
from interlock.reservations.hooks import git_words, sources
from interlock.reservations.hooks.filling import Filling, Spot, split
from interlock.reservations.hooks.git_commands import ROWS, WAIT, Call, judge
from interlock.reservations.hooks.git_words import KNOWN
from interlock.reservations.hooks.programs import FILES, KEYWORDS, SHELLS, Fed, Run, unwrapped
from interlock.reservations.hooks.shell import MAX_DEPTH, Command, Excessive, Unreadable, Word, read
from interlock.reservations.hooks.walk import Walk, is_piped
from interlock.reservations.hooks.worlds import World, Worlds
from interlock.reservations.records import key_of
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
SHELL_FIX: Final = "write the commands out, so that what they touch can be seen."
GIT_FIX: Final = "write the subcommand out, so that what it touches can be seen."
TREE_FIX: Final = "run git in the checkout that it is about: `git -C FOLDER …`."
STORE_FIX: Final = "leave it to Interlock: `interlock status`, `interlock release`."
PERSON_FIX: Final = "leave that to a person."
READ_FIX: Final = "write it in plain words or smaller pieces, so that what it touches can be seen."

_BLOCKS: Final = KEYWORDS | {"for", "select"}
_INTERESTING: Final = re.compile(
    r">|git|\b(?:" + "|".join(sorted({*FILES, *SHELLS, "find", "patch", "eval", "gh", "sqlite3", "interlock"})) + r")\b"
    r"|INTERLOCK_|INTERMUTE_|CLAUDE_SESSION_ID"
)
_ELSEWHERE: Final = re.compile(r"/|\bcd\b|-C|pushd|GIT_|--git-dir|hook")
"""A command may name another checkout; without one of these it cannot."""
_QUOTES: Final = dict.fromkeys(map(ord, "'\"\\"))
_NAMES: Final = frozenset(identity.NAMES)
_OURS: Final = frozenset({"INTERLOCK_HOOKS", *_NAMES, identity.SESSION, identity.EXPORTED, place.PROJECT})
_READERS: Final = frozenset({
    "ls", "cat", "stat", "file", "du", "head", "tail", "wc", "echo", "printf", "test", "[", "[[", "md5sum", "sha256sum",
    "cd", "pushd", "git", "grep", "rg", "tree", "realpath", "dirname", "basename", "readlink", "mkdir", "interlock",
    "lsof", "fuser", "find", "pytest", "ruff", "pyright", "diff", "cmp", "python", "python3", "node",
})  # fmt: skip
"""Programs that may name the store: they read, or judge of their own."""


class Finding(NamedTuple):
    """What a command would touch.

    Args:
        action: The command, as far as it may be shown.
        hits: What is held; empty for what is refused whoever holds anything.
        fix: How it is done safely.
        world: The checkout.
        verb: What the command would do to what others hold.
    """

    action: str
    hits: list[Hit]
    fix: str
    world: World
    verb: str = "would touch"


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
    bare = command.translate(_QUOTES)
    if not (_INTERESTING.search(command) or _INTERESTING.search(bare) or "$'" in command):
        return None
    worlds = Worlds(env)
    guard = _Guard(worlds, Filling(worlds))
    if not worlds.at(cwd).held and not _ELSEWHERE.search(bare):
        return None
    try:
        found = guard.judged(read(command), Walk.at([cwd]), 0)
    except (Unreadable, RecursionError) as error:
        world = next((world for world in worlds.folders.values() if world.held), worlds.at(cwd))
        why = str(error) if isinstance(error, Unreadable) else "too deep"
        found = Finding(f"a command that cannot be read: {why}", world.all(), READ_FIX, world, "may touch")
        found = found if found.hits else None
    if found is None:
        return None
    action, hits, fix, world, verb = found
    if world.opened is not None:
        # The program and its subcommand: what follows may be secret.
        note(*world.opened, "bash", " ".join(action.split(" ")[: 2 if action.startswith("git ") else 1]), hits)
    return explain(f"`{shown(action)}` {verb}", hits, fix)


@dataclass(slots=True)
class _Guard:
    """Walks over the commands of one line."""

    worlds: Worlds
    filling: Filling
    aliases: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    own_aliases: dict[str, str] = field(default_factory=dict[str, str])
    steps: int = 0
    files: int = 0
    gits: int = 0

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
                found = self._files(">", writes, here, follow=True) or self._program(spot, run)
                if found is not None:
                    return found
                targets |= dict.fromkeys(self.filling.moved(run, here))
        self.filling.after(Spot(commands, at, walk, {}, walk.folders[0], depth), run, list(targets))
        return None

    # -- programs --------------------------------------------------------------------------------------------------

    def _files(self, action: str, words: Sequence[Word], here: str, *, follow: bool) -> Finding | None:
        """Judge files that a program writes, moves or removes; a word with a variable in it is not known."""
        for word in words:
            if word.fed and not word.known:
                world = self.worlds.at(here)
                if world.held:
                    return Finding(action, world.all(), FED_FIX, world, "may touch")
            if not word.known or not word.text:
                continue
            self.files += 1
            if self.files > MAX_FILES:
                raise Excessive("too many files")
            world, hits, shared = self.worlds.hits(word, here, follow=follow)
            if hits:
                verb = "would take away what guards" if shared else "would touch"
                return Finding(f"{action} {word.text}", hits, STORE_FIX if shared else FILE_FIX, world, verb)
        return None

    def _program(self, spot: Spot, run: Run) -> Finding | None:
        """Judge one program with its arguments."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Excessive("too many commands")
        if run.folder is not None and run.folder.known:
            spot = replace(spot, here=os.path.normpath(os.path.join(spot.here, run.folder.text)))
        if (found := self._disguised(run, spot.here)) is not None:
            return found
        for text in run.texts:
            if (found := self._text(spot, text)) is not None:
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
            found = self._files(name, removed, spot.here, follow=False)
            return found or self._files(name, written, spot.here, follow=True)
        row = self._row("sh" if name in SHELLS else "python" if name.startswith("python") else name)
        found = None if row is None else row(spot, run, rest)
        if found is None and name in spot.walk.functions and spot.depth <= MAX_DEPTH:
            found = self._called(spot, name, rest)
        return found or self._store(spot, run, name)

    def _row(self, name: str) -> "Callable[[Spot, Run, Sequence[Word]], Finding | None] | None":
        """Return what judges a program."""
        return {
            "sh": self._shell, "eval": self._eval, "source": self._sourced, ".": self._sourced, "find": self._find,
            "patch": self._patch, "interlock": self._interlock, "python": self._python, "gh": self._gh,
        }.get(name)  # fmt: skip

    def _called(self, spot: Spot, name: str, rest: Sequence[Word]) -> Finding | None:
        """Judge a function of the line where it is called."""
        inner = spot.walk.inner([spot.here])
        inner.give(rest)
        found = self.judged(spot.walk.functions[name], inner, spot.depth + 1)
        spot.walk.also(inner.folders)
        return found

    def _text(self, spot: Spot, text: Word, given: Sequence[Word] = (), *, fed: bool = False) -> Finding | None:
        """Judge a command line inside the command line, with what it is given as `$1` and so on."""
        if text.fed and not text.known:
            return self._unknown("a command that is not known", SHELL_FIX, spot.here)
        inner = spot.walk.inner([spot.here], fed=fed)
        inner.give(given)
        return self.judged(read(text.text, spot.depth + 1), inner, spot.depth + 1)

    def _unknown(self, action: str, fix: str, here: str) -> Finding | None:
        """Judge what may be anything."""
        world = self.worlds.at(here)
        return Finding(action, world.all(), fix, world, "may touch") if world.held else None

    def _feed(self, spot: Spot, run: Run) -> None:
        """Give a program the words that `xargs` gives it."""
        fed = self.filling.piped(spot)
        words = [Word(known=False, fed=True)] if fed is None else split(fed)
        mark = run.fed.place if run.fed is not None else ""
        if not mark:
            run.words += words
            return
        given = [(word, words if mark in word.text else [Word(mark)]) for word in run.words]
        run.words = [
            replace(
                new if mark in word.text else word,
                text=word.text.replace(mark, new.text),
                known=word.known and new.known,
            )
            for word, news in given
            for new in news
        ]

    def _disguised(self, run: Run, here: str) -> Finding | None:
        """Judge variables that would turn the hooks off or pass for somebody else."""
        named = [*(name for name in run.assigned if name in _OURS), *(name for name in run.unset if name in _OURS)]
        if not named:
            return None
        world = self.worlds.at(here)
        me = "" if world.opened is None else world.opened[1].name
        for name in named:
            value = run.assigned.get(name, Word(known=False))
            same = value.known and (
                (name in _NAMES and key_of(value.text) == key_of(me))
                or (name == identity.SESSION and key_of(identity.of_session(value.text)) == key_of(me))
                or (name == place.PROJECT and os.path.realpath(os.path.join(here, value.text)) == world.root)
            )
            if world.held and not same:
                return Finding(f"{name}=", world.all(), PERSON_FIX, world, "would go round the guard of")
        return None

    def _store(self, spot: Spot, run: Run, name: str) -> Finding | None:
        """Judge other programs that are given the store by name."""
        if name in _READERS:
            return None
        for word in run.words[1:]:
            if "interlock" in word.text or "interlock" in spot.here:
                path = os.path.realpath(os.path.join(spot.here, word.text))
                world = self.worlds.at(spot.here)
                if world.held and place.inside(world.store, path):
                    return Finding(f"{name} {word.text}", world.all(), STORE_FIX, world, "may take away what guards")
        return None

    def _shell(self, spot: Spot, run: Run, rest: Sequence[Word]) -> Finding | None:
        """Judge `sh -c TEXT`, and a shell that reads a here-document or a pipe."""
        words = list(rest)
        while words and words[0].text.startswith(("-", "+")) and words[0].text != "-":
            option = words.pop(0).text
            if option.startswith("--"):
                words = words[1:] if option in {"--rcfile", "--init-file"} else words
            elif "c" in option:
                while words and words[0].text.startswith("-"):
                    words.pop(0)
                return self._text(spot, words[0], words[2:], fed=run.fed is not None) if words else None
            elif "s" in option:
                words = []
            elif option[-1] in "oO":
                words = words[1:]
        if words and words[0].text not in {"-", "/dev/stdin"}:
            return self._text(spot, words[0]) if words[0].fed and not words[0].known else None
        body = spot.command.body
        if body is not None:
            return next(
                (found for text in self.filling.words(spot, [body]) if (found := self._text(spot, text)) is not None),
                None,
            )
        if not is_piped(spot.command):
            return None
        text = sources.text(self.filling.piped(spot))
        if text is None:
            return self._unknown(f"… | {run.name}", SHELL_FIX, spot.here)
        return self._text(spot, Word(text))

    def _eval(self, spot: Spot, _run: Run, rest: Sequence[Word]) -> Finding | None:
        """Judge `eval`."""
        fed = any(word.fed and not word.known for word in rest)
        return self._text(spot, Word(" ".join(word.text for word in rest), known=not fed, fed=fed))

    def _sourced(self, spot: Spot, _run: Run, rest: Sequence[Word]) -> Finding | None:
        """Judge `source <(…)`."""
        return self._text(spot, rest[0]) if rest and rest[0].fed and not rest[0].known else None

    def _find(self, spot: Spot, run: Run, rest: Sequence[Word]) -> Finding | None:
        """Judge `find … -delete` and `find … -exec PROGRAM`."""
        names = sources.found_by_find(rest)
        words = iter(rest)
        for word in words:
            if word.text == "-delete":
                found = self._files("find -delete", names, spot.here, follow=False)
            elif word.text.startswith("-fprint") or word.text == "-fls":
                found = self._files("find", [next(words, Word())], spot.here, follow=True)
            elif word.text in {"-exec", "-execdir", "-ok", "-okdir"}:
                inner: list[Word] = []
                while (part := next(words, None)) is not None and part.text not in {";", "+"}:
                    inner += names if part.text == "{}" else [part]
                program = unwrapped(inner)
                found = self._program(spot, replace(program, fed=program.fed or run.fed))
                if found is None and program.name in SHELLS:
                    found = self._shell(spot, replace(program, fed=Fed("")), program.words[1:])
            else:
                continue
            if found is not None:
                return found
        return None

    def _patch(self, spot: Spot, _run: Run, rest: Sequence[Word]) -> Finding | None:
        """Judge `patch` as git reads the same file, or the file that it names."""
        if any(word.text == "--dry-run" for word in rest):
            return None
        words = iter(rest)
        patches = self.filling.words(spot, spot.command.reads)
        named: list[Word] = []
        for word in words:
            if word.text in {"-i", "--input"}:
                patches.append(next(words, Word()))
            elif word.text in {"-d", "--directory"}:
                spot = replace(spot, here=os.path.join(spot.here, next(words, Word()).text))
            elif not word.text.startswith("-"):
                named.append(word)
        if named:
            return self._files("patch", named[:1], spot.here, follow=True)
        return self._run_git("apply", [], patches, spot.here)

    def _interlock(self, spot: Spot, _run: Run, rest: Sequence[Word]) -> Finding | None:
        """Judge our own commands: what clients and git call is not called by hand."""
        verb = rest[0].text if rest else ""
        world = self.worlds.at(spot.here)
        if (verb == "hook" and world.opened is not None) or (verb == "uninstall" and world.held):
            fix = "clients and git call it; `interlock reserve`, `release` and `status` are for you."
            return Finding(f"interlock {verb}", world.all(), fix, world, "would go round the guard of")
        return None

    def _python(self, spot: Spot, run: Run, rest: Sequence[Word]) -> Finding | None:
        """Judge `python -m interlock`."""
        texts = [word.text for word in rest]
        at = texts.index("-m") if "-m" in texts else len(texts)
        return self._interlock(spot, run, rest[at + 2 :]) if texts[at + 1 : at + 2] == ["interlock"] else None

    def _gh(self, spot: Spot, _run: Run, rest: Sequence[Word]) -> Finding | None:
        """Judge GitHub's program where it switches the branch."""
        switches = [word.text for word in rest[:2]] == ["pr", "checkout"] or [word.text for word in rest[:1]] == ["co"]
        return self._unknown("gh pr checkout", WAIT, spot.here) if switches else None

    # -- git ---------------------------------------------------------------------------------------------------------

    def _git(self, spot: Spot, run: Run, words: Sequence[Word]) -> Finding | None:
        """Judge a git command: its own options, then the subcommand or what its alias stands for."""
        told = {name: self._told(spot, run, name) for name in ("GIT_DIR", "GIT_WORK_TREE")}
        given = git_words.Given(list(words), spot.here, told, dict(self.own_aliases))
        given.unknown = any(name.startswith("GIT_CONFIG") for name in (*run.assigned, *spot.walk.values))
        given.read()
        words, here = given.words, given.here
        if not words or not os.path.isdir(here):
            return None
        spot = replace(spot, here=here)
        name, rest = words[0].text, words[1:]
        if not words[0].known:
            return self._unknown("git …", GIT_FIX, here)
        if (found := self._tree(name, here, given.told)) is not None:
            return found
        if (files := git_words.written(name, rest)) and (found := self._files(f"git {name}", files, here, follow=True)):
            return found
        for text, folders in git_words.commands_of(name, rest, here):
            for folder in folders:
                if (found := self._text(replace(spot, here=folder), text)) is not None:
                    return found
        if name in ROWS:
            if name == "config" and (alias := git_words.alias_set(rest)):
                self.own_aliases[alias[0]] = alias[1]
            return self._run_git(name, rest, self.filling.words(spot, spot.command.reads), here)
        if name in KNOWN or spot.depth > MAX_DEPTH or not self.worlds.at(here).held:
            return None
        meaning = given.aliases.get(name.lower()) or self._aliases(here).get(name.lower(), "")
        return (
            self._alias(spot, run, meaning, rest)
            if meaning or not given.unknown
            else self._unknown("git …", GIT_FIX, here)
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
                return Finding(f"git {name}", world.all(), TREE_FIX, world, "may touch")
        return None

    def _aliases(self, here: str) -> dict[str, str]:
        """Return git's aliases; they are asked for once."""
        root = self.worlds.at(here).root
        if root not in self.aliases:
            self.aliases[root] = git_words.aliases(here)
        return self.aliases[root]

    def _run_git(self, name: str, words: Sequence[Word], reads: Sequence[Word], here: str) -> Finding | None:
        """Judge one git subcommand in the checkout that it works in."""
        world = self.worlds.at(here)
        if not world.held:
            return None
        self.gits += 1
        if self.gits > MAX_GIT:
            raise Excessive("too many git commands")
        try:
            verdict = judge(Call(here, world.root, world.held, name, words, reads))
        except git.GitFailed as error:
            if error.status is None:
                raise
            # Git does not find what is named, and will not find it when the command runs.
            return None
        if verdict is None or not verdict[0]:
            return None
        action = " ".join(["git", name, *(word.text for word in words[:4] if word.known)])
        return Finding(action, verdict[0], verdict[1], world)


def _keywords(command: Command, walk: Walk) -> None:
    """Go over the keywords at the beginning of a command."""
    for word in command.words:
        if not word.bare or word.text not in _BLOCKS:
            return
        walk.keyword(word.text)
