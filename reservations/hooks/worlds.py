"""The checkouts that a command line reaches, what others hold in them, and which of it a path of the shell means."""

import os
import os.path
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from interlock.reservations import held as holding
from interlock.reservations import place
from interlock.reservations.held import Held, Hit, Opened, git_dir_of, overlapping
from interlock.reservations.hooks import commons
from interlock.reservations.hooks.words import Word
from interlock.reservations.patterns import quote

_WILD: Final = re.compile(r"[*?\[{]")
_SET: Final = re.compile(r"\[[A-Za-z0-9]+\]", re.ASCII)
"""What the shell and our patterns read alike."""
_PARTS: Final = re.compile(r"(\*\*/|\*\*|\*|\?|\[[^]]*\]|\{[^}]*\})")


class World(NamedTuple):
    """A checkout and what others hold in it.

    Args:
        place: Its top, git's folder, and the store.
        held: What others hold.
        opened: The store, opened in the agent's name; None where nothing was ever reserved.
    """

    place: place.Place
    held: Held
    opened: Opened | None

    @property
    def root(self) -> str:
        """Its top, without symbolic links."""
        return self.place.root

    @property
    def store(self) -> str:
        """The folder of the store."""
        return os.path.dirname(self.place.store_path)

    @property
    def is_linked(self) -> bool:
        """Whether it is a linked worktree: the files that others hold are as a rule elsewhere."""
        common = self.place.common
        return bool(common) and os.path.isfile(os.path.join(self.root, ".git")) and git_dir_of(self.root) != common

    def all(self) -> list[Hit]:
        """Return everything that others hold."""
        return overlapping(self.held, "**")

    def guards(self, path: str, *, above: bool = True) -> bool:
        """Say whether a path is or lies in what all agents share, the store and git's own files, or contains it.

        Args:
            path: Absolute; it may have wildcards of the shell.
            above: What contains it counts.
        """
        shared = commons.paths(self.place)
        if not above:
            return commons.has(shared, path)
        if _WILD.search(path):
            form = _form(path)
            return any(form.match(f"{one}/") or _is_below(path, one) for one in shared)
        return any(path == one or place.inside(one, path) or place.inside(path, one) for one in shared)


class Worlds:
    """The checkouts of one command line; each store is read once.

    Args:
        env: Where the identity is read from.
        known: Stores that are open already, by their paths.
    """

    __slots__ = ("env", "folders", "known", "stores")

    def __init__(self, env: Mapping[str, str], known: Mapping[str, Opened]) -> None:
        self.env = env
        self.known = known
        self.folders: dict[str, World] = {}
        self.stores: dict[str, tuple[Held, Opened | None]] = {}

    def at(self, folder: str) -> World:
        """Return the checkout around a folder, which need not exist."""
        if folder not in self.folders:
            start = folder
            while not os.path.isdir(start):
                start = os.path.dirname(start)
            found = holding.project(start, self.env)
            self.folders[folder] = self.of(found or place.Place(os.path.realpath(start), "", os.devnull))
        return self.folders[folder]

    def of(self, found: place.Place) -> World:
        """Return a project as it stands."""
        if found.store_path not in self.stores:
            opened, held = holding.holdings(found, "hook", self.env, self.known)
            self.stores[found.store_path] = (held, opened)
        held, opened = self.stores[found.store_path]
        return World(found, held, opened)

    def hits(self, word: Word, here: str, *, follow: bool) -> tuple[World, list[Hit], bool]:
        """Return what is held of the files that a word of the shell names, and whether it is what all agents share.

        Args:
            word: A file, a folder with everything below it, or what the shell makes of a wildcard.
            here: The folder that the program runs in.
            follow: The program writes where a symbolic link leads; without, it removes or replaces the link.
        """
        path = os.path.join(here, word.text.rstrip("/") or "/")
        real = os.path.normpath(os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)))
        paths = [real, *([os.path.realpath(path)] if follow and os.path.islink(path) else [])]
        for one in paths:
            # A folder may be the top of another checkout, which is part of the one around it.
            for world in (self.at(os.path.dirname(one)), *([self.at(one)] if os.path.isdir(one) else [])):
                if world.held and world.guards(one):
                    return world, world.all(), True
                patterns = _patterns(world.root, one, word)
                if found := [hit for pattern in patterns for hit in overlapping(world.held, pattern)]:
                    return world, found, False
            for other in list(self.folders.values()):
                if other.held and _reaches(one, other.root, word):
                    return other, other.all(), False
        return self.at(here), [], False


def _patterns(root: str, path: str, word: Word) -> list[str]:
    """Return the patterns for a file that a program names, with everything below it."""
    inside = os.path.relpath(path, root)
    if inside == ".." or inside.startswith("../"):
        return []
    if not word.glob:
        return ["**"] if inside == "." else [quote(inside), f"{quote(inside)}/**"]
    if "[" in _SET.sub("", inside) or ("{" in inside and not word.bare):
        # The shell and our patterns read these differently: then everything below the folder is meant.
        wild = _WILD.search(inside)
        folder = os.path.dirname(inside[: wild.start()] if wild else inside)
        return [f"{quote(folder)}/**" if folder else "**"]
    return [inside, f"{inside}/**"]


def _reaches(path: str, root: str, word: Word) -> bool:
    """Say whether a path, or what the shell makes of it, is a checkout or contains it."""
    if word.glob and _WILD.search(path):
        return _form(path).match(f"{root}/") is not None
    return place.inside(path, root)


def _form(path: str) -> re.Pattern[str]:
    """Return what a wildcard of the shell may match, with everything below; never too little.

    At the beginning of a name the shell's wildcards leave hidden files out; those of `find` do not, which
    come with `**`.
    """
    form = ""
    for part in _PARTS.split(path):
        if part.startswith("**"):
            form += ".*" if part == "**" else "(?:.*/)?"
        elif _SET.fullmatch(part):
            form += part
        elif _WILD.match(part):
            hidden = part[0] == "{" or "**" in path or not form.endswith("/")
            form += "[^/]*" if hidden else r"(?!\.)[^/]*"
        else:
            form += re.escape(part)
    return re.compile(f"{form}/", re.DOTALL)


def _is_below(path: str, folder: str) -> bool:
    """Say whether what stands before the first wildcard already lies in a folder."""
    wild = _WILD.search(path)
    return place.inside(folder, os.path.dirname(path[: wild.start()] if wild else path))
