"""What others hold around a line, the refusal, and the folders that nothing puts back.

Threats: T1, and T2 as far as plain words go. These folders are `.git` and its hooks, the project's store, Interlock's
state folder, a folder that contains a checkout in which others hold something, and another worktree with held files.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from glob import glob
from typing import Final

from interlock.core import state
from interlock.reservations import place, shared_files
from interlock.reservations.git import checkouts, commands
from interlock.reservations.git import foreign_leases as holding
from interlock.reservations.git.foreign_leases import Hit, everything, explain, touched
from interlock.reservations.leases.runtime import Context
from interlock.reservations.rules import RULES, shown

UNKNOWN: Final = "\0"
"""A word of a command that is not literal."""
REMOVERS: Final = frozenset({"rm", "rmdir", "mv"})
"""Programs of which a word names what goes away."""
MAX_FOLDERS: Final = 2000
"""At most this many folders below those that a line removes are searched for checkouts."""
SAFE: Final = "name your own files, so that this is left out; `interlock status` and `release` are for the store."


class RefusedError(Exception):
    """A command may not run: `action` is as much of it as may be recorded, `text` what the agent is told."""

    def __init__(self, action: str, hits: Sequence[Hit], opened: Context | None, text: str) -> None:
        super().__init__(text)
        self.action, self.hits, self.opened, self.text = action, hits, opened, text


class Checkout:
    """A checkout, `all` that others hold in it, and what they share: of these nothing where others hold nothing.

    A linked worktree is one without most files that others hold: these are as a rule elsewhere.
    """

    def __init__(self, found: place.Place, env: Mapping[str, str], known: Mapping[str, Context]) -> None:
        self.place, self.root = found, found.root
        self.opened, self._held = holding.holdings(found, "hook", env, known)
        self.all = everything(self._held)
        self.is_linked = bool(found.common) and place.git_dir_of(self.root) != found.common
        shared = (*shared_files.paths(found), os.path.realpath(state.folder()))
        self.shared = tuple(f"{path}/" for path in shared) if self.all else ()
        self.trees = checkouts.roots_of(found) if self.all else []
        self.stashes: bool | None = None  # whether the newest entry will be the line's own; False once it is taken

    def among(self, paths: Sequence[str]) -> list[Hit]:
        """Return which of some paths are held."""
        return touched(self._held, paths) if self.all else []

    @cached_property
    def unsaved(self) -> list[Hit]:
        """What others hold and has uncommitted changes here."""
        return self.among(list(commands.changed(self.root))) if self.all else []

    @property
    def files(self) -> list[Hit]:
        """What is held of the files here: in a linked worktree, what has uncommitted changes in it."""
        return self.unsaved if self.is_linked else self.all

    def refuse(self, what: str, verb: str, fix: str, hits: Sequence[Hit] | None = None) -> None:
        """Refuse what would do something (`verb`) to what others hold, any of it or some; nothing without a hit."""
        if hits := self.all if hits is None else hits:
            text = explain(f"`{shown(what)}` {verb}", sorted(dict(hits).items()), fix)
            raise RefusedError(what, hits, self.opened, text)

    def refused(self, code: str, action: str, said: str, fix: str) -> RefusedError:
        """Return the refusal of a command for another reason."""
        text = f"interlock {code}: `{shown(action)}` {said}\n  expected: {RULES[code]}\n  fix: {fix}"
        return RefusedError(action, self.all, self.opened, text)


class Checkouts:
    """The checkouts of one line; each is read once."""

    def __init__(self, env: Mapping[str, str], known: Mapping[str, Context]) -> None:
        self._env, self._known = env, known
        self._folders: dict[str, Checkout] = {}
        self._roots: dict[str, Checkout] = {}
        self._left = iter(range(MAX_FOLDERS))

    def at(self, folder: str) -> Checkout:
        """Return the checkout around a folder, which need not exist."""
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        if folder not in self._folders:
            found = holding.project(folder)
            if found.root not in self._roots:
                self._roots[found.root] = Checkout(found, self._env, self._known)
            self._folders[folder] = self._roots[found.root]
        return self._folders[folder]

    def below(self, folder: str) -> Iterator[Checkout]:
        """Yield the checkouts in which others hold something whose top is a folder, or is not far below it."""
        trees = {tree for row in self._roots.values() for tree in row.trees if place.inside(folder, tree)}
        walked = os.walk(folder) if os.path.isdir(folder) and not os.path.islink(folder) else ()
        for (name, folders, files), _ in zip(walked, self._left, strict=False):
            trees |= {name} if not {".git", ".interlock"}.isdisjoint([*folders, *files]) else set()
            folders[:] = [each for each in folders if each not in {".git", "node_modules"}]
        yield from (row for row in map(self.at, sorted(trees)) if row.files)

    def judge(self, action: str, words: Sequence[str], here: str, *, removes: bool = False) -> None:
        """Refuse to write or remove what nothing puts back; the words are files and folders, wildcards included."""
        for path in _paths(words, here):
            self.at(os.path.dirname(path))
            folder = f"{path}/"
            for row in self._roots.values():
                inside = folder.startswith(row.shared)
                around = removes and (path == f"{row.root}/.git" or any(one.startswith(folder) for one in row.shared))
                row.refuse(action, "would damage what guards", SAFE, row.all if inside or around else ())
            for row in self.below(path) if removes else ():
                row.refuse(action, "would take away a checkout with", SAFE, row.files)


def _paths(words: Sequence[str], here: str) -> Iterator[str]:
    """Yield what the words name that are no options, without links in their folders."""
    real = cache(os.path.realpath)
    for path in (os.path.join(here, word) for word in dict.fromkeys(words) if word[:1] != "-"):
        for one in [path, *(glob(path) if set("*?[").intersection(path) else [])] if UNKNOWN not in path else ():
            folder, name = os.path.split(os.path.normpath(one))
            yield os.path.join(real(folder), name)
