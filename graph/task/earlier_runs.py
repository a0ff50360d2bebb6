"""What the runs before this one judged, and what they left that no gate judged.

Each function takes what reads a run back, since LangGraph takes half a second to import and often there is none.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from interlock.core.finding import Finding
from interlock.gates.sealed import Base, Product
from interlock.graph.engine.folder import list_runs, runs_of
from interlock.graph.errors import RunDamagedError
from interlock.graph.task.changes import left_changed
from interlock.graph.task.sealing import Earlier, base_of, is_accepted, left_over, products_of
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import Task

if TYPE_CHECKING:
    from interlock.graph.task.view import RunView

View: TypeAlias = Callable[[str], "RunView"]
"""Reads a run back by its id, or raises RunDamagedError."""


def unapproved_bases(root: Path, task_id: str, view: View) -> Iterator[Earlier]:
    """Yield the runs of a task since one was approved or its base accepted, newest first, each with what it froze.

    Runs that cannot be read, or whose tree is not in the store any more, are passed over.
    """
    for run_id in runs_of(root, "runs", task_id):
        try:
            if view(run_id).status == "APPROVED":
                return
            record = RunStore(root, run_id).load()[1].sealing
        except RunDamagedError:
            continue
        if (found := base_of(root, record)) is not None:
            yield Earlier(run_id, found, tuple(products_of(record).values()))
        if is_accepted(record):
            return


def left_before(root: Path, task: Task, base: Base, products: Iterable[Product], view: View) -> Finding | None:
    """Return a fault for tests and settings that the last run of any task changed, and that no gate judged."""
    for run_id in reversed(list_runs(root, "runs")):
        with suppress(RunDamagedError):
            last = view(run_id)
            sealing = last.policy.sealing
            judged = (*products, *products_of(sealing).values())
            return left_over(run_id, left_changed(root, last.values, sealing), base, task, judged)
    return None
