"""What others hold around a line, the refusal, and the folders that nothing puts back.

Threats: T1, and T2 as far as plain words go. These folders are `.git` and its hooks, the project's store, Interlock's
state folder, a folder that contains a checkout in which others hold something, and another worktree with held files.
"""

import os
import os.path
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from glob import glob
from typing import Final

from interlock.reservations import place, shared_files
from interlock.reservations.git import checkouts, commands
from interlock.reservations.git import foreign_leases as holding
from interlock.reservations.git.foreign_leases import Hit, explain, overlapping, touched
from interlock.reservations.leases.runtime import Context
from interlock.reservations.rules import RULES, shown

MAX_FOLDERS: Final = 2000
"""At most this many folders below those that a line removes are searched for checkouts."""
SAFE: Final = (
    "name your own files, so that this is left out; the store is for `interlock status` and `interlock release`."
)


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
        self.all = overlapping(self._held, "**")
        is_pointer = bool(found.common) and os.path.isfile(os.path.join(self.root, ".git"))
        self.is_linked = is_pointer and place.git_dir_of(self.root) != found.common
        home = os.path.join(env.get("HOME", "/"), ".local", "state")
        state = os.path.join(env.get("INTERLOCK_STATE") or env.get("XDG_STATE_HOME") or home, "interlock")
        shared = (*shared_files.paths(found), os.path.realpath(state))
        self.shared = tuple(f"{path}/" for path in shared) if self.all else ()
        self.trees = checkouts.roots_of(found) if self.all else []

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

    def refuse(self, action: str, verb: str, hits: Sequence[Hit], fix: str, *, asks: bool = False) -> None:
        """Refuse what would do something (`verb`) to what others hold; nothing without a hit."""
        if hits:
            text = explain(f"`{shown(action)}` {verb}", sorted(dict(hits).items()), fix, asks=asks)
            raise RefusedError(action, hits, self.opened, text)

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
            found = holding.project(folder, self._env) or place.Place(os.path.realpath(folder), "", os.devnull)
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

    def remove(self, action: str, words: Sequence[str], here: str) -> None:
        """Refuse to remove or move what nothing puts back; the words are files and folders, wildcards included."""
        for path in _paths(words, here):
            self.at(os.path.dirname(path))
            for row in self._roots.values() if os.path.lexists(path) else ():
                is_part = path == f"{row.root}/.git" or f"{path}/".startswith(row.shared)
                if is_part or any(one.startswith(f"{path}/") for one in row.shared):
                    row.refuse(action, "would take away what guards", row.all, SAFE)
            for row in self.below(path):
                row.refuse(action, "would take away a checkout with", row.files, SAFE)

    def write(self, action: str, words: Sequence[str], here: str) -> None:
        """Refuse to overwrite what git and all agents share."""
        for path in _paths(words, here):
            self.at(os.path.dirname(path))
            for row in self._roots.values():
                if f"{path}/".startswith(row.shared):
                    row.refuse(action, "would overwrite what guards", row.all, SAFE)


def _paths(words: Sequence[str], here: str) -> Iterator[str]:
    """Yield what the words name that are no options, without links in their folders."""
    real = cache(os.path.realpath)
    for path in (os.path.join(here, word) for word in dict.fromkeys(words) if word[:1] != "-"):
        for one in [path, *(glob(path) if set("*?[").intersection(path) else [])] if "\0" not in path else ():
            folder, name = os.path.split(os.path.normpath(one))
            yield os.path.join(real(folder), name)
