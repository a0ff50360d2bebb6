"""Notifications of runs: events for `interlock.notify`, made where a run is driven.

Whoever drives a run comes through `runs.drive`, which makes one of these; so each event is seen by one process. Should
two see the same, their keys are equal, and it is sent once.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from interlock.core.errors import InterlockError
from interlock.core.text import shown
from interlock.gates.config import load_config
from interlock.graph.blocked_reasons import failed_gates
from interlock.graph.engine.folder import journal_path, journal_run
from interlock.graph.feed import Row
from interlock.graph.task.progress import Notice
from interlock.graph.task.store import RunStore
from interlock.graph.task.view import RunView
from interlock.graph.task.waits import WaitKind, waits_of
from interlock.journal import Journal
from interlock.notify import Event, Why, post

TIMES: Final = 3
"""After so many refusals of one gate or role a person is notified, and after as many again."""
_TITLES: Final[dict[WaitKind, str]] = {
    "objection": "an agent objects to a gate", "waiver": "a gate may be waived", "review": "a review is wanted",
    "stopped": "a run stopped", "blocked": "a run is BLOCKED",
}  # fmt: skip
"""The waits that notify a person; an answer that an agent may give, and a run that was cut off, are not among them."""


class Notices:
    """Makes the events of one drive of a run.

    Args:
        root: The project.
        run_id: The run, whose policy says how people are notified.

    Raises:
        UnknownRunError, RunDamagedError: See `graph.errors`.
    """

    def __init__(self, root: Path, run_id: str) -> None:
        self._store = RunStore(root, run_id)
        self._table = self._store.load()[1].notify
        self._refused = Counter[str]()

    def watching(self, notice: Notice | None) -> Notice | None:
        """Return a function that checks each notice for refusals and passes it on."""
        if not self._table:
            return notice
        with suppress(InterlockError):
            self._refused = self._before()

        def watched(step: Mapping[str, Any]) -> None:
            with suppress(InterlockError, KeyError, TypeError):
                post(self._store.root, self._table, self._refusals(step))
            if notice is not None:
                notice(step)

        return watched

    def report(self, view: RunView) -> None:
        """Send the notifications for the state of a run when a drive has ended, or when it was ended for good."""
        if self._table:
            post(self._store.root, self._table, events_of(view, self._store))

    def _refusals(self, step: Mapping[str, Any]) -> Iterator[Event]:
        if step["kind"] == "answered" and step["outcome"] == "invalid":
            names, kind = [step["role"]], "agent"
        elif step["kind"] == "status" and step["to"] == "BLOCKED":
            failed = failed_gates(str(step.get("cause")), step["reasons"])
            names, kind = [name for name in failed if name.startswith("GATE-")], "gate"
        else:
            return
        for name in names:
            self._refused[name] += 1
            times = self._refused[name]
            if times % TIMES == 0:
                run = self._store.run_id
                why = shown(str(step.get("first") or next(iter(step.get("reasons") or ()), "")))
                what = f"{name} {'was not passed' if kind == 'gate' else 'gave no valid answer'} {times} times"
                yield Event(
                    f"{run}/refused/{name}/{times}", "refused", kind, run, f"{name} was refused {times} times",
                    f"{run}: {what}. The last time: {why}", f"interlock explain {run}",
                )  # fmt: skip

    def _before(self) -> Counter[str]:
        row = Row(self._store.run_id, "task")
        for entry in Journal(journal_path(self._store.root)).entries(self._store.run_id):
            row.take(entry)
        return row.failed + row.refused


def events_of(view: RunView, store: RunStore) -> Iterator[Event]:
    """Yield the notifications of a run in this state."""
    run = view.run_id
    if view.abandoned or (view.phase == "done" and view.status == "APPROVED"):
        why, how = ("abandoned", "was abandoned") if view.abandoned else ("approved", "is APPROVED")
        text = f"{run} {how}: {view.task.task}"
        yield Event(f"{run}/ended", "ended", why, run, f"a run {how}", text, f"interlock status {run}")
        return
    for wait in waits_of(view, store):
        if wait.kind in _TITLES:
            text = f"{run}: {wait.text}"
            yield Event(wait.key, "waits", cast("Why", wait.kind), run, _TITLES[wait.kind], text, wait.command)


def notify_ticket_end(root: Path, run_id: str, *, complete: bool, state: str) -> None:
    """Send the notification of the end of a ticket run, as the project's present configuration says."""
    name = journal_run(run_id)
    why, how = ("complete", "is complete") if complete else ("blocked", f"failed closed in {state}")
    event = Event(f"{name}/ended", "ended", why, name, f"a ticket {how}", f"{name} {how}", f"interlock status {run_id}")
    with suppress(InterlockError):
        post(root, load_config(root).notify, [event])
