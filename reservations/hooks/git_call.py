"""One git command as the guard of shell commands reads it: its options, its paths, and what of it others hold."""

import os.path
import re
from collections.abc import Sequence
from operator import itemgetter
from typing import Final

from interlock.reservations import git
from interlock.reservations.held import Held, Hit, overlapping, touched
from interlock.reservations.hooks.git_words import VALUED
from interlock.reservations.hooks.made import Made
from interlock.reservations.hooks.words import Word
from interlock.reservations.patterns import Pattern, PatternProblem, canonical, covers, matches, quote

_HARMFUL: Final = (
    "--hard", "--all", "--update", "--patch", "--interactive", "--include", "--discard-changes", "--orphan",
    "--pathspec-from-file", "--keep", "--soft", "--merge", "--autostash",
)  # fmt: skip
_WILD: Final = frozenset("*?[{")
_MIN_OPTION: Final = len("--x")
_MAGIC: Final = re.compile(r":(?:\(([^)]*)\)|([/!^]+):?)")
_RANGE: Final = re.compile(r"(\.{2,3}|^\^)")
_SWEEPS: Final = frozenset({"add", "stage", "commit", "reset", "checkout", "restore", "stash", "clean"})
"""What takes the files as they are when it runs."""
_SWEPT: Final = "it takes whatever is there when it runs, and a holder may be writing at this moment."
_HOOKS: Final = ("pre-rebase", "reference-transaction")
"""The hooks of git that judge a merge, a rebase and a pull before these change a file."""
_OURS: Final = "\n# Interlock: "
_MAX_HOOK: Final = 100_000


class NotYet(Exception):  # noqa: N818 - named by what is the case
    """What is named is made, moved or fetched by an earlier command of the line."""


class Call:
    """One git command.

    Args:
        here: The folder that git works in, absolute.
        root: The checkout around it.
        held: What others hold there.
        name: The subcommand.
        words: Its arguments.
        reads: The files that its standard input comes from.
        body: The text that it reads; None when it is not on the line.
        made: What the commands before it make.
        linked: The checkout is a linked worktree: what others hold is as a rule elsewhere.
        hooks: Git looks for hooks where it does as a rule, and they are not turned off.

    Attributes:
        flags: Its options without values; short ones one by one.
        values: Its options with values.
        rest: Its other arguments up to `--`.
        paths: Those after `--`; None without one.
    """

    def __init__(
        self,
        here: str,
        root: str,
        held: Held,
        name: str,
        words: Sequence[Word],
        *,
        reads: Sequence[Word] = (),
        body: str | None = None,
        made: Made | None = None,
        linked: bool = False,
        hooks: bool = True,
    ) -> None:
        self.here, self.root, self.held, self.name = here, root, held, name
        self.reads, self.body, self.linked, self.hooks = reads, body, linked, hooks
        self.made = made or Made()
        self.flags: set[str] = set()
        self.values: dict[str, str] = {}
        self.rest: list[Word] = []
        self.paths: list[Word] | None = None
        self._sort(words)

    def _sort(self, given: Sequence[Word]) -> None:
        """Sort the arguments into options, values and paths."""
        valued = VALUED.get(self.name, frozenset()) | {"--pathspec-from-file"}
        words = iter(given)
        for word in words:
            text = word.text
            if self.paths is not None:
                self.paths.append(word)
            elif text == "--" and word.known:
                self.paths = []
            elif text.startswith("--"):
                option, sign, value = text.partition("=")
                option = _whole(option)
                if option in valued or sign:
                    self.values[option] = value if sign else next(words, Word()).text
                else:
                    self.flags.add(option)
            elif text.startswith("-") and text != "-":
                for at, letter in enumerate(text[1:], 2):
                    if f"-{letter}" in valued:
                        self.values[f"-{letter}"] = text[at:] or next(words, Word()).text
                        break
                    self.flags.add(f"-{letter}")
            else:
                self.rest.append(word)

    def has(self, *options: str) -> bool:
        """Say whether one of the options is given, with or without a value."""
        return any(option in self.flags or option in self.values for option in options)

    def value(self, *options: str) -> str:
        """Return the value of the first of some options that is given; empty without one."""
        return next((self.values[option] for option in options if option in self.values), "")

    @property
    def specs(self) -> list[Word]:
        """Its arguments, before and behind `--`."""
        return [*self.rest, *(self.paths or [])]

    # -- what is held ----------------------------------------------------------------------------------------------

    def all(self) -> list[Hit]:
        """Return everything that is held."""
        return overlapping(self.held, "**")

    def files(self) -> list[Hit]:
        """Return what is held of the files of this checkout: in a linked worktree, what has changed in it."""
        return self.changed() if self.linked else self.all()

    def under(self, specs: Sequence[Word]) -> list[Hit]:
        """Return what is held of the files below some pathspecs; see `files`."""
        return self._below(specs, list(git.changed(self.here)) if self.linked else None)

    def named(self, specs: Sequence[Word]) -> list[Hit]:
        """Return what is held below some pathspecs, in whatever worktree: for what writes another content there."""
        return self._below(specs, None)

    def staged_under(self, specs: Sequence[Word]) -> list[Hit]:
        """Return what is held and staged below some pathspecs."""
        return self._below(specs, git.staged_paths(self.here))

    def among(self, paths: Sequence[str]) -> list[Hit]:
        """Return which of some paths are held."""
        return touched(self.held, paths)

    def moving(self, name: str) -> list[Hit]:
        """Return what is held and differs between HEAD and another commit; nothing when git will not find that one."""
        head, other = self.commit("HEAD"), self.commit(name)
        if other is None:
            return []
        paths = git.between(self.here, head, other)
        here = git.changed(self.here) if self.linked else paths
        return self.among([path for path in paths if path in here])

    def staged(self) -> list[Hit]:
        """Return what is held and staged."""
        return self.among(git.staged_paths(self.here))

    def changed(self) -> list[Hit]:
        """Return what is held and has uncommitted changes."""
        return self.among(list(git.changed(self.here)))

    def ordered(self, hits: Sequence[Hit]) -> tuple[list[Hit], str]:
        """Return what would be touched, changed files first, and why it counts where some of it has not changed."""
        if self.name not in _SWEEPS:
            return sorted(hits, key=itemgetter(0)), ""
        wide = not self.specs or len({hit[1]["reservation_id"] for hit in hits}) >= len(self.held)
        try:
            changed = self.changed() if wide else self._below(self.specs, list(git.changed(self.here)))
        except git.GitFailed as error:
            if error.status is None:
                raise
            changed = []  # it is refused all the same: there is no working tree here to look at
        near: dict[str, list[str]] = {}
        for path, row in changed:
            for text in {path, row["held_pattern"]}:
                near.setdefault(text, []).append(path)
        first: dict[str, Hit] = {}
        rest: list[Hit] = []
        for text, conflict in sorted(hits, key=itemgetter(0)):
            paths = near.get(text, [])
            first |= {path: (path, {**conflict, "dirty": True}) for path in paths}
            rest += [] if paths else [(text, conflict)]
        return [*first.values(), *rest], _SWEPT if rest else ""

    # -- commits ---------------------------------------------------------------------------------------------------

    def unknown(self) -> bool:
        """Say whether a variable or a substitution stands among the arguments: it may be any commit."""
        return any(not word.known for word in self.rest)

    def commit(self, name: str) -> str | None:
        """Return the commit that a name stands for when the command runs; None when git will not find it.

        Raises:
            NotYet: See there.
        """
        name = "@{-1}" if name == "-" else name
        text = self.made.resolved(name)
        found = None if text is None else git.commit_of(self.here, text)
        # A name that is there before the line may stay what it is, when making it anew fails.
        if text is None or (text != name and git.commit_of(self.here, name) not in {None, found}):
            raise NotYet
        if self.made.fetched and (self._is_remote(text) if found else not self._is_path(name)):
            raise NotYet
        return found

    def revisions(self, names: Sequence[str]) -> list[str] | None:
        """Return names of commits, and ranges of them, as ids; None when git will not find one.

        Raises:
            NotYet: See there.
        """
        rows: list[str] = []
        for name in names:
            parts = [part if _RANGE.fullmatch(part) else part and self.commit(part) for part in _RANGE.split(name)]
            if None in parts:
                return None
            rows.append("".join(part for part in parts if part))
        return rows

    def _is_remote(self, name: str) -> bool:
        """Say whether a name stands for a branch of a remote, which a fetch moves."""
        base = re.split(r"[~^]|@\{(?!u|push)", name)[0]
        try:
            full = git.ask(self.here, ["rev-parse", "--symbolic-full-name", base])
        except git.GitFailed as error:
            if error.status is None:
                raise
            return False
        return full.startswith(b"refs/remotes/")

    def _is_path(self, name: str) -> bool:
        """Say whether git takes a name that is no commit for a path, there now or not."""
        return os.path.lexists(os.path.join(self.here, name)) or bool(git.ask(self.here, ["ls-files", "--", name]))

    # -- settings --------------------------------------------------------------------------------------------------

    def sets_aside(self) -> bool:
        """Say whether a merge or a rebase first takes away all unsaved work, to put it back later."""
        if self.has("--autostash", "--no-autostash"):
            return self.has("--autostash")
        return any(self._setting(name) == "true" for name in ("merge.autostash", "rebase.autostash"))

    def is_hooked(self) -> bool:
        """Say whether git's hooks of ours stand where git looks for hooks, so that they judge what is not known yet."""
        if not self.hooks:
            return False
        folder = os.fsdecode(git.ask(self.here, ["rev-parse", "--git-path", "hooks"])).removesuffix("\n")
        return all(_is_ours(os.path.join(self.here, folder, name), name) for name in _HOOKS)

    def _setting(self, name: str) -> str:
        """Return a yes or no of git's configuration; empty without one."""
        try:
            return git.ask(self.here, ["config", "--type=bool", "--get", name]).decode().strip()
        except git.GitFailed as error:
            if error.status is None:
                raise
            return ""

    # -- pathspecs -------------------------------------------------------------------------------------------------

    def _below(self, specs: Sequence[Word], paths: Sequence[str] | None) -> list[Hit]:
        """Return what is held below pathspecs, of some paths or of all; what an exclude takes out is left out."""
        left_out = [spec for spec in specs if "exclude" in _magic(spec)[0]]
        asked = [spec for spec in specs if spec not in left_out]
        patterns = [pattern for spec in asked for pattern in self._patterns(spec)] if asked else ["**"] * bool(specs)
        hits: dict[str, Hit] = {}
        for pattern in patterns:
            hits |= {hit[0]: hit for hit in overlapping(self.held, pattern)}
        if paths is not None:
            near = [path for path in paths if any(_is_within(pattern, path) for pattern in patterns)]
            hits = {quote(hit[0]): hit for hit in touched(self.held, near)} if hits else {}
        gone = [pattern for spec in left_out for pattern in self._left_out(spec)]
        return [hit for text, hit in hits.items() if not any(_is_covered(pattern, text) for pattern in gone)]

    def _patterns(self, spec: Word) -> list[str]:
        """Return a pathspec as patterns of ours, which say no less."""
        marks, text = _magic(spec)
        if not spec.known:
            # A name from a list, with a folder before it, lies in that folder.
            folder = os.path.dirname(text) if spec.fed else ""
            return path_patterns(self.root, os.path.join(self.here, folder)) if folder else ["**"]
        if marks - {"top"}:
            return ["**"]
        return path_patterns(self.root, os.path.join(self.root if "top" in marks else self.here, text))

    def _left_out(self, spec: Word) -> list[str]:
        """Return what a pathspec takes out as patterns of ours, which say no more; nothing where that is not known."""
        marks, text = _magic(spec)
        base = self.root if "top" in marks else self.here
        known = spec.known and not marks - {"top", "exclude"}
        return (_same(os.path.relpath(os.path.join(base, text), self.root)) or []) if known else []


def _magic(spec: Word) -> tuple[set[str], str]:
    """Return the magic words of a pathspec, and its path."""
    found = _MAGIC.match(spec.text) if spec.known else None
    if found is None:
        return set(), spec.text
    long, short = found[1], found[2] or ""
    marks = set(long.split(",")) if long is not None else {"top" if sign == "/" else "exclude" for sign in short}
    return marks - {""}, spec.text[found.end() :]


def _is_ours(path: str, name: str) -> bool:
    """Say whether a file is a hook of git's that starts ours."""
    if not os.access(path, os.X_OK):
        return False
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read(_MAX_HOOK)
    return _OURS in text and f" hook {name} " in text


def _is_within(pattern: str, path: str) -> bool:
    """Say whether a pattern covers a path, or cannot be read."""
    found = canonical(pattern)
    return isinstance(found, PatternProblem) or matches(found, path)


def _is_covered(pattern: str, other: str) -> bool:
    """Say whether a pattern is sure to cover another one."""
    one, two = canonical(pattern), canonical(other)
    return isinstance(one, Pattern) and isinstance(two, Pattern) and covers(one, two)


def _whole(option: str) -> str:
    """Return a long option in full, as git completes one that is cut short; only those that do harm matter."""
    near = [name for name in _HARMFUL if name.startswith(option)]
    return near[0] if len(near) == 1 and len(option) > _MIN_OPTION else option


def path_patterns(root: str, path: str) -> list[str]:
    """Return the patterns for a pathspec and everything below it.

    To git a `*` crosses folders; what is not a single one in the last part reaches everything below its folder.
    """
    inside = os.path.relpath(os.path.normpath(path), root)
    if inside == ".." or inside.startswith("../"):
        return []
    if (same := _same(inside)) is not None:
        return same
    wild = min(at for char in _WILD if (at := inside.find(char)) >= 0)
    folder = os.path.dirname(inside[:wild])
    return [f"{quote(folder)}/**" if folder else "**"]


def _same(inside: str) -> list[str] | None:
    """Return the patterns that mean what a pathspec means: a name, or one `*` in its last part; None for another."""
    if inside == ".":
        return ["**"]
    if _WILD.isdisjoint(inside):
        return [quote(inside), f"{quote(inside)}/**"]
    folder, name = os.path.split(inside)
    head, star, tail = name.partition("*")
    if not star or not _WILD.isdisjoint(folder + head + tail):
        return None
    start = f"{quote(folder)}/" if folder else ""
    forms = [f"{start}{quote(head)}*{quote(tail)}", f"{start}{quote(head)}*/**/*{quote(tail)}"]
    return [pattern for form in forms for pattern in (form, f"{form}/**")]
