"""The checkouts that share a store, and the journals that stand in them."""

import os
import os.path
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from interlock.reservations.git import commands
from interlock.reservations.place import Place
from interlock.reservations.store.outbox import JOURNAL_RUN

if TYPE_CHECKING:
    from interlock.journal import Entry


def roots_of(found: Place) -> list[str]:
    """Return the checkouts of a project: its worktrees that are there, its own root first."""
    if not found.common or not os.path.isdir(os.path.join(found.common, "worktrees")):
        return [found.root]
    rows = os.fsdecode(commands.ask(found.root, ["worktree", "list", "--porcelain"])).split("\n")
    trees = [os.path.realpath(row.removeprefix("worktree ")) for row in rows if row.startswith("worktree ")]
    return list(dict.fromkeys([found.root, *(tree for tree in trees if os.path.isdir(tree))]))


def journals_of(roots: Iterable[str]) -> list[str]:
    """Return the journals of some checkouts, as far as they are there."""
    paths = (os.path.join(root, "artifacts", "interlock", "events.jsonl") for root in roots)
    return [path for path in paths if os.path.exists(path)]


def told(journals: Iterable[str]) -> Iterator["Entry"]:
    """Yield what some journals hold of the run `reservations`, each line checked."""
    from interlock.journal import Journal  # noqa: PLC0415 - slow to load, and git alone may be wanted

    for path in journals:
        yield from Journal(path).entries(JOURNAL_RUN)
