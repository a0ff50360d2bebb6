"""Ways round the guard and git's hooks: other names, hooks turned off, the store or git's own files changed by hand."""

import os.path
import re
from collections.abc import Sequence
from typing import Final

from interlock.core.project import PROJECT
from interlock.reservations import identity, place
from interlock.reservations.hooks.findings import Finding, anything
from interlock.reservations.hooks.programs import Run, plain
from interlock.reservations.hooks.words import Word
from interlock.reservations.hooks.worlds import World, Worlds
from interlock.reservations.records import key_of

STORE_FIX: Final = (
    "name your own files, so that `.git` is left out (`find FOLDER -name …`); the store is for "
    "`interlock status` and `interlock release`."
)
PERSON_FIX: Final = "leave that to a person."
OWN_FIX: Final = "clients and git call it; `interlock reserve`, `release` and `status` are for you."
HOOKS_FIX: Final = "leave git's hooks as they are; `interlock uninstall` takes them out when nobody holds anything."

_ROUND: Final = "would go round the guard of"
_NAMES: Final = frozenset(identity.NAMES)
_OURS: Final = frozenset({"INTERLOCK_HOOKS", *_NAMES, identity.SESSION, identity.EXPORTED, PROJECT})
_READERS: Final = frozenset({
    "ls", "cat", "stat", "file", "du", "head", "tail", "wc", "echo", "printf", "test", "[", "[[", "md5sum", "sha256sum",
    "cd", "pushd", "git", "grep", "rg", "tree", "realpath", "dirname", "basename", "readlink", "mkdir", "interlock",
    "lsof", "fuser", "find", "pytest", "ruff", "pyright", "diff", "cmp", "python", "python3", "node",
})  # fmt: skip
"""Programs that may name the store: they read, or judge of their own."""
_MODES: Final = frozenset({"chmod", "chown", "chgrp", "setfacl", "chattr"})
_RUNS: Final = re.compile(r"[ugoa]*\+r?w?x")
"""A mode that turns no hook off."""


def disguised(run: Run, here: str, worlds: Worlds) -> Finding | None:
    """Judge variables that would turn the hooks off or pass for somebody else."""
    named = [*(name for name in run.assigned if name in _OURS), *(name for name in run.unset if name in _OURS)]
    if not named:
        return None
    world = worlds.at(here)
    me = "" if world.opened is None else world.opened[1].name
    for name in named:
        value = run.assigned.get(name, Word(known=False))
        same = value.known and (
            (name in _NAMES and key_of(value.text) == key_of(me))
            or (name == identity.SESSION and key_of(identity.of_session(value.text)) == key_of(me))
            or (name == PROJECT and os.path.realpath(os.path.join(here, value.text)) == world.root)
        )
        if world.held and not same:
            said = f"{name}={value.text}" if value.known else name
            return anything(said, PERSON_FIX, world, _ROUND)
    return None


def shared(run: Run, here: str, worlds: Worlds) -> Finding | None:
    """Judge other programs that are given the store, or that turn a hook of git's off by its mode."""
    name, rest = run.name, run.words[1:]
    if name in _READERS:
        return None
    if name in _MODES:
        if name == "chmod" and any(_RUNS.fullmatch(word.text) for word in rest):
            return None
        # A folder around everything is meant for its own files: a mode of `.` is everyday work.
        paths = [os.path.realpath(os.path.join(here, word.text)) for word in plain(rest) if word.known]
        guarded = any(worlds.at(os.path.dirname(path)).guards(path, above=False) for path in paths)
        return anything(name, HOOKS_FIX, worlds.at(here), "would take away what guards") if guarded else None
    for word in rest:
        if "interlock" in word.text or "interlock" in here:
            path = os.path.realpath(os.path.join(here, word.text))
            world = worlds.at(here)
            if place.inside(world.store, path):
                return anything(f"{name} {word.text}", STORE_FIX, world, "may take away what guards")
    return None


def ours(rest: Sequence[Word], world: World) -> Finding | None:
    """Judge our own commands: what clients and git call is not called by hand, and nobody is left without a guard."""
    verb = rest[0].text if rest else ""
    if verb == "hook" and world.opened is not None:
        return Finding("interlock hook", world.all(), OWN_FIX, world, _ROUND, asks=False)
    undoes = verb == "uninstall" or (verb == "init" and any(word.text == "--undo" for word in rest))
    return anything(f"interlock {verb}", PERSON_FIX, world, _ROUND) if undoes else None
