"""What a command would do to what others hold: the checkouts that it reaches, the held files, and the refusal."""

import os
import os.path
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import Final, NamedTuple

from interlock.reservations import place, shared_files
from interlock.reservations.git import foreign_leases as holding
from interlock.reservations.git.foreign_leases import Held, Hit, explain, overlapping
from interlock.reservations.guard.words import Word
from interlock.reservations.leases.runtime import Context
from interlock.reservations.patterns import quote
from interlock.reservations.rules import shown

_SET: Final = re.compile(r"\[[A-Za-z0-9]+\]", re.ASCII)
"""What the shell and our patterns read alike."""
_CACHES: Final = re.compile(r"__pycache__|\*?\.py[co]|\.(pytest|mypy|ruff)_cache|node_modules|\.DS_Store")
"""Names of what programs make again by themselves: work of nobody."""


class Checkout(NamedTuple):
    """A checkout and what others hold in it; its store is opened in the agent's name, if anything was ever reserved."""

    place: place.Place
    held: Held
    opened: Context | None

    @property
    def root(self) -> str:
        """Its top, without symbolic links."""
        return self.place.root

    @property
    def is_linked(self) -> bool:
        """Whether it is a linked worktree: the files that others hold are as a rule elsewhere."""
        common = self.place.common
        return (
            bool(common) and os.path.isfile(os.path.join(self.root, ".git")) and place.git_dir_of(self.root) != common
        )

    def all(self) -> list[Hit]:
        """Return everything that others hold."""
        return overlapping(self.held, "**")

    def guards(self, path: str, *, above: bool = True) -> bool:
        """Return whether a path is or lies in what all agents share, the store and git's own files.

        What contains that counts as well, if `above`.
        """
        shared = shared_files.paths(self.place)
        if not above:
            return shared_files.has(shared, path)
        return any(path == one or place.inside(one, path) or place.inside(path, one) for one in shared)

    def finds(self, start: str, name: str) -> bool:
        """Return whether a search below a folder may find one of these files by its name."""
        files = [self.place.store_path, self.place.common, *shared_files.paths(self.place)]
        return any(place.inside(start, one) and fnmatchcase(os.path.basename(one), name) for one in files)


class Checkouts:
    """The checkouts of one command line; each store is read once."""

    def __init__(self, env: Mapping[str, str], known: Mapping[str, Context]) -> None:
        self.env = env
        self.known = known
        self.folders: dict[str, Checkout] = {}
        self.stores: dict[str, tuple[Held, Context | None]] = {}

    def at(self, folder: str) -> Checkout:
        """Return the checkout around a folder, which need not exist."""
        if folder not in self.folders:
            start = folder
            while not os.path.isdir(start):
                start = os.path.dirname(start)
            found = holding.project(start, self.env) or place.Place(os.path.realpath(start), "", os.devnull)
            if found.store_path not in self.stores:
                opened, held = holding.holdings(found, "hook", self.env, self.known)
                self.stores[found.store_path] = (held, opened)
            self.folders[folder] = Checkout(found, *self.stores[found.store_path])
        return self.folders[folder]

    def holding(self, folder: str) -> Checkout:
        """Return the checkout around a folder, or another one of the line where nothing is held in that."""
        first = self.at(folder)
        return next((checkout for checkout in (first, *self.folders.values()) if checkout.held), first)

    def met(self, word: Word, here: str, *, follow: bool) -> tuple[Checkout, list[Hit], bool] | None:
        """Return what is held of the files that a word names, and whether it is what all agents share.

        The word is a file, a folder with everything below it, or what the shell makes of a wildcard. To `follow` is to
        write where a symbolic link leads; without, the link is removed or replaced.
        """
        name = os.path.basename(word.pattern or word.text)
        if _CACHES.fullmatch(name) and not os.path.islink(os.path.join(here, word.text)):
            return None
        texts = [word.text]
        if word.pattern and "**" not in word.pattern:
            from glob import glob  # noqa: PLC0415 - few commands have a wildcard

            texts += glob(os.path.join(here, word.pattern))
        rows = (row for text in texts for row in self._of_path(os.path.join(here, text.rstrip("/") or "/"), follow))
        return next((row for row in chain(rows, self._of_pattern(word.pattern, here, name)) if row[1]), None)

    def _of_pattern(self, pattern: str, here: str, name: str) -> Iterator[tuple[Checkout, list[Hit], bool]]:
        """Yield what is held of what may match a wildcard, and may not be there yet."""
        if not pattern:
            return
        path = os.path.normpath(os.path.join(os.path.realpath(here), pattern))
        folder, deep = os.path.dirname(re.split(r"[*?\[]", path)[0]), "**" in pattern
        around = [row for row in self.folders.values() if deep and place.inside(folder, row.root)]
        for checkout in (self.at(folder), *around):
            if deep and checkout.finds(folder, name):
                yield checkout, checkout.all(), True
            inside = _pattern(os.path.relpath(path, checkout.root))
            inside = inside if not inside.startswith("../") else f"**/{name}" if checkout in around else ""
            if inside:
                yield checkout, overlapping(checkout.held, inside, f"{inside}/**"), False

    def _of_path(self, path: str, follow: bool) -> Iterator[tuple[Checkout, list[Hit], bool]]:
        """Yield what is held of one path, and of what is below it."""
        real = os.path.normpath(os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)))
        for one in (real, *([os.path.realpath(path)] if follow and os.path.islink(path) else [])):
            # A folder may be the top of another checkout, which is part of the one around it.
            near = [self.at(os.path.dirname(one)), *([self.at(one)] if os.path.isdir(one) else [])]
            for checkout in {checkout.root: checkout for checkout in near}.values():
                inside = os.path.relpath(one, checkout.root)
                quoted = quote(inside)
                is_above = inside.startswith("..") and inside[2:3] in {"", "/"}
                rows = [] if is_above else ["**"] if inside == "." else [quoted, f"{quoted}/**"]
                yield checkout, overlapping(checkout.held, *rows), False
                if checkout.held and checkout.guards(one):
                    yield checkout, checkout.all(), True
            yield from ((row, row.all(), False) for row in list(self.folders.values()) if place.inside(one, row.root))


def _pattern(inside: str) -> str:
    """Return a wildcard of the shell as a pattern of ours, which says no less."""
    if "[" in _SET.sub("", inside) or "{" in inside:
        # The shell and our patterns read these differently: then everything below the folder is meant.
        start = re.split(r"[*?\[{]", inside)[0]
        return "/".join([*start.split("/")[:-1], "**"])
    return inside


FILE: Final = "work on files of your own, or ask for this one first."
STORE: Final = (
    "name your own files, so that `.git` is left out (`find FOLDER -name …`); the store is for "
    "`interlock status` and `interlock release`."
)
PERSON: Final = "leave that to a person."
OWN_HOOKS: Final = "clients and git call it; `interlock reserve`, `release` and `status` are for you."
PERSONS: Final = "object with `- GATE-X: OBJECTION: reason` in a BLOCKED answer, and a person decides."
HOOKS: Final = "leave git's hooks as they are; `interlock uninstall` takes them out when nobody holds anything."
TREE: Final = "run git in the checkout that it is about, by the settings that it has: `git -C FOLDER …`."
LITERAL: Final = "write the command plainly: spell out the program, its subcommand and the files that it changes."
WHEEL: Final = "install Interlock again (`pip install ./interlock`), which brings `tree-sitter` and `tree-sitter-bash`."

AROUND: Final = "would bypass the guard of"


class RefusedError(Exception):
    """A command may not run while others hold files: `action` is as much of it as may be shown, `text` the refusal."""

    def __init__(self, action: str, hits: Sequence[Hit], fix: str, checkout: Checkout, text: str) -> None:
        super().__init__(text)
        self.action, self.hits, self.fix, self.checkout, self.text = action, hits, fix, checkout, text


class UnreadError(RefusedError):
    """A command may not run since it does not say what it does (RSV215); otherwise it is RSV207."""


def touching(
    action: str, hits: Sequence[Hit], fix: str, checkout: Checkout, verb: str = "would touch", why: str = "",
    *, asks: bool = False,
) -> RefusedError:  # fmt: skip
    """Return the refusal of a command for what it would touch; the verb is what it would do to that.

    `why` it is refused though nothing of theirs has changed; `asks` where having these paths would let it pass.
    """
    text = explain(f"`{shown(action)}` {verb}", hits, fix, why=why, asks=asks)
    return RefusedError(action, hits, fix, checkout, text)


def unread(
    action: str, found: str, expected: str, checkout: Checkout, place: str = "line 1", fix: str = LITERAL
) -> UnreadError:
    """Return the refusal of a command that cannot be read."""
    hits = checkout.all()
    holders = sorted({hit["holder"] for _, hit in hits})
    text = "\n".join([
        f"interlock RSV215: `{shown(action)}` cannot be read, and other agents hold files.",
        f"  place: {place}",
        f"  found: {shown(found)}",
        f"  expected: {expected}",
        f"  held: {len(hits)} by {', '.join(map(shown, holders[:3]))}",
        f"  fix: {fix}",
    ])  # fmt: skip
    return UnreadError(action, hits, fix, checkout, text)
