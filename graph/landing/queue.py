"""The queue: every approved run that has not landed, in the order of approval, but for what a person changed of that.

.interlock/landing.json   {"order": [RUN, …], "held": [RUN, …]}, what a person changed
"""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from interlock.core.files import write_atomically
from interlock.core.locks import locked
from interlock.graph.engine.folder import LANDED, beside_run, is_beside, journal_of, list_runs, state_dir
from interlock.graph.errors import QUEUE, GraphError, RunDamagedError
from interlock.graph.task.store import RunStore

_NAME: Final = "landing.json"


class Queued(NamedTuple):
    """An approved run that has not landed; `held` where a person holds it back."""

    run_id: str
    task_id: str
    task: str
    approved_at: str
    held: bool


def queue_of(root: Path) -> list[Queued]:
    """Return the runs that can land, in the order in which they do: of each task the one that was approved last."""
    approved, landed = dict[str, str](), set[str]()
    for entry in journal_of(root).entries():
        if entry.type == "status" and entry.data.get("to") == "APPROVED":
            approved[entry.run] = entry.at
        elif entry.type == LANDED and is_beside(entry.run):
            landed.add(entry.run.removesuffix(beside_run("")))
    changed, newest = _changed(root), dict[str, Queued]()
    for run_id in sorted({*approved} & {*list_runs(root, "runs")}, key=approved.__getitem__):
        with suppress(RunDamagedError):
            task, policy, _ = RunStore(root, run_id).load()
            # A run of a project without git, or of an earlier version, has no commit that its work could be put on.
            if policy.commit:
                held = run_id in changed["held"]
                newest[task.task_id] = Queued(run_id, task.task_id, task.task, approved[run_id], held)
    found = [row for row in newest.values() if row.run_id not in landed]
    order: list[str] = changed["order"]
    places = {run_id: place for place, run_id in enumerate(order)}
    return sorted(found, key=lambda row: (places.get(row.run_id, len(order)), row.approved_at, row.run_id))


def hold(root: Path, run_id: str, on: bool) -> None:
    """Hold a run back from landing with the queue, or release it.

    Raises:
        GraphError: `LND709` it does not wait in the queue.
    """
    with _changing(root, run_id) as (changed, _):
        rest = [each for each in changed["held"] if each != run_id]
        changed["held"] = [*rest, run_id] if on else rest


def move(root: Path, run_id: str, position: int) -> None:
    """Move a run to a place in the queue; 1 is the first.

    Raises:
        GraphError: `LND709` it does not wait in the queue.
    """
    with _changing(root, run_id) as (changed, order):
        order.remove(run_id)
        order.insert(max(0, position - 1), run_id)
        changed["order"] = order


def _changed(root: Path) -> dict[str, list[str]]:
    with suppress(OSError, ValueError):
        read: Mapping[str, Any] = json.loads((root / ".interlock" / _NAME).read_bytes())
        return {name: [str(each) for each in read.get(name, [])] for name in ("order", "held")}
    return {"order": [], "held": []}


@contextmanager
def _changing(root: Path, run_id: str) -> Generator[tuple[dict[str, list[str]], list[str]]]:
    """Change what a person changed of the queue, with nobody else at it; its present order comes along."""
    folder = state_dir(root)
    with (folder / "landing.lock").open("ab") as file, locked(file):
        changed, order = _changed(root), [row.run_id for row in queue_of(root)]
        if run_id not in order:
            raise GraphError(f"run {run_id} does not wait to land", "`interlock queue` lists those that do.", QUEUE)
        yield changed, order
        write_atomically(folder / _NAME, json.dumps(changed, indent=1).encode() + b"\n")
