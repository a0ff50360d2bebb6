"""The author of each change on the disk, as far as leases, hooks and recorded commits show."""

import os
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from interlock.reservations import identity, place
from interlock.reservations.git import commands
from interlock.reservations.git.lease_history import leases_by_path, read_history
from interlock.reservations.leases.marks import GRAIN_SECONDS, edited_at, time_of
from interlock.reservations.rules import shown
from interlock.reservations.store.choice import store_at
from interlock.reservations.store.history import Held, History
from interlock.reservations.store.records import key_of

EDIT_SECONDS: Final = 120.0
"""How long after the hook an edit may still be written: clients ask a person in between."""


@dataclass(frozen=True, slots=True)
class Authors:
    """Who changed some files; of a file that is in neither, nobody is known.

    Args:
        own: Files that the agent itself was seen to edit last.
        others: Of the rest, files that are another agent's, each with how: `held by ann`, `committed by ann`.
        theirs: Of these, the files that were last written while the other agent held them, or before it committed them.
        problem: Why nobody is known, where what was recorded cannot be read; else empty.
    """

    own: frozenset[str] = frozenset()
    others: Mapping[str, str] = field(default_factory=dict[str, str])
    theirs: frozenset[str] = frozenset()
    problem: str = ""


Rows: TypeAlias = Sequence[tuple[str, Held]]
"""Files, each with each lease that ever covered it."""

AuthorsOf: TypeAlias = Callable[[Sequence[str]], Authors]
"""Gives the authors of files, whose paths are relative to the project's root."""


def authors_of(start: str, agents: Sequence[str], paths: Sequence[str], since: float) -> Authors:
    """Return whose changes these are, among those made since a time; the paths are relative to the folder `start`.

    A file is the agent's own where the hook let it edit the file, and the file was last written right after that,
    before another agent had it. What is left is another agent's who holds it, held it alone at any moment since, or
    committed it with `interlock commit`; a lease of another worktree counts too. Without the names of agents, the one
    that this process works for is meant.
    """
    found = place.find(start)
    if not paths or not place.is_used(found):
        return Authors()
    below = os.path.relpath(os.path.realpath(start), found.root)
    inside = {path if below == "." else f"{below}/{path}": path for path in paths}
    store = store_at(found)
    try:
        names = agents or [identity.who(os.environ, store, via="mcp").name]
        with store.transaction() as tx:
            marks = [(path, edited_at(tx, name, found.root, path)) for path in inside for name in names]
    finally:
        store.close()
    written = {path: time_of(f"{found.root}/{path}") for path in inside}
    own = {
        path
        for path, let_through in marks
        if let_through is not None
        and let_through >= since
        and let_through - GRAIN_SECONDS <= written[path] <= let_through + EDIT_SECONDS
    }
    history, _ = read_history(found)
    mine = {key_of(name) for name in names}
    near = leases_by_path(history)
    leases = [(path, held) for path in inside for held in near.covering(path)]
    own -= _handed_on(leases, mine, written)
    others, theirs = _others(found.root, history, leases, mine, written, since)
    return Authors(
        frozenset(inside[path] for path in own),
        {inside[path]: how for path, how in others.items() if path not in own},
        frozenset(inside[path] for path in theirs - own),
    )


def committed_by(found: place.Place, commits: Sequence[str]) -> dict[str, str]:
    """Return the agent of each commit that `interlock commit` recorded; one without a record is left out."""
    made = read_history(found)[0].made
    return {commit: made[commit].agent for commit in commits if commit in made}


def _handed_on(leases: Rows, own: Set[str], written: Mapping[str, float]) -> set[str]:
    """Return the files that another agent had after the agent itself, and that may have been written since then."""
    last: dict[tuple[str, str], int] = {}
    for path, held in leases:
        if key_of(held.agent) in own:
            last[path, held.store] = max(last.get((path, held.store), 0), held.granted)
    return {
        path
        for path, held in leases
        if key_of(held.agent) not in own
        and held.exclusive is not False
        and held.granted > last.get((path, held.store), 0)
        and held.since <= written[path]
    }


def _others(
    root: str, history: History, leases: Rows, own: Set[str], written: Mapping[str, float], since: float
) -> tuple[dict[str, str], set[str]]:
    """Return other agents' files, each with how, and those that they wrote last; a whole second of an event counts."""
    found: dict[str, str] = {}
    theirs: set[str] = set()
    for commit, made in history.made.items():
        if made.at >= int(since) and key_of(made.agent) not in own:
            paths = [path for path in commands.paths_of(root, commit) if path in written]
            found |= dict.fromkeys(paths, f"committed by {shown(made.agent)}")
            theirs.update(path for path in paths if written[path] < made.at + 1)
    for path, held in leases:
        if held.exclusive is not False and held.until >= int(since) and key_of(held.agent) not in own:
            found[path] = f"held by {shown(held.agent)}"
            theirs.update({path} if held.held_during(int(written[path])) else ())
    return found, theirs
