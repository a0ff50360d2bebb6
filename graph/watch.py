"""What goes on in a project at this moment, as plain values: for `interlock watch`.

It reads on where the last look ended: the journal, the views of the runs whose files changed, and the progress of those
that are driven. It holds no lock while it looks.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from interlock.core.errors import InterlockError
from interlock.graph.board import Board, Waiting
from interlock.graph.engine.folder import is_run_id
from interlock.graph.feed import Row
from interlock.graph.task.progress import progress_since
from interlock.graph.task.store import RunStore
from interlock.graph.ticket.store import TicketStore

ENDED_SHOWN: Final = 10
"""So many runs that are over are shown below those that go on."""


class Look(NamedTuple):
    """What one look found; every row is JSON, and times are ISO 8601 in UTC.

    Args:
        runs: Those that go on, the one that changed last first, then some that are over. `of` is `task` or `ticket`,
            `state` is `at work`, `ended`,
            `abandoned`, `damaged`, `at its agent` (a ticket), or the kind of the first thing that waits in it.
            `at_work` has, for each role or gate that is awaited, `name`, `since`, `doing` and `tokens`.
        leases: Who holds what, the newest first.
        queue: Who waits for files, in order.
        waits: What waits for a person, the newest first.
        damaged: Why journal or reservations cannot be read, or empty.
    """

    runs: list[dict[str, Any]]
    leases: list[dict[str, Any]]
    queue: list[dict[str, Any]]
    waits: list[dict[str, Any]]
    damaged: str


@dataclass(slots=True)
class _Turn:
    """Who is at work in a run that is driven, as far as its progress was read."""

    position: int = 0
    awaited: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def take(self, notice: Mapping[str, Any]) -> None:
        """Take up one notice."""
        kind, name = notice["kind"], str(notice.get("gate") or notice.get("role") or "")
        if kind == "queued":
            self._await("files", notice["at"], "waits for files that others hold")
            return
        self.awaited.pop("files", None)
        if not name:
            return
        if kind == "asking":
            again = f"re-ask {notice['reask']}" if notice.get("reask") else "at work"
            self.awaited.pop(name, None)
            self._await(name, notice["at"], again)
        elif kind in ("collecting", "gate"):
            self._await(name, notice["at"], str(notice.get("line") or "collecting evidence"))
        elif kind == "working" and name in self.awaited:
            tokens = notice.get("tokens")
            known = tokens if isinstance(tokens, int) else None
            self.awaited[name] |= {"doing": str(notice.get("tool") or "thinking"), "tokens": known}
        elif kind in ("answered", "collected"):
            self.awaited.pop(name, None)

    def _await(self, name: str, at: str, doing: str) -> None:
        self.awaited.setdefault(name, {"name": name, "since": at, "doing": "", "tokens": None})["doing"] = doing


class Watch:
    """Looks at a project, or at one of its runs.

    Args:
        root: The project.
        run_id: A task run; empty for all.
    """

    def __init__(self, root: Path, run_id: str = "") -> None:
        self.board = Board(root)
        self._root = root
        self._run_id = run_id
        self._turns: dict[str, _Turn] = {}

    def look(self) -> Look:
        """Return what there is now."""
        self.board.refresh()
        damaged = self.board.damaged
        try:
            held = self.board.reservations()
        except InterlockError as error:
            held, damaged = None, damaged or f"{error.message} {error.fix}"
        waiting = self.board.waiting()
        first: dict[str, str] = {}
        for each in reversed(waiting):
            first[each.wait.run] = each.wait.kind
        leases, queue = ([], []) if held is None else (held["leases"], held["waiters"])
        if self._run_id:
            me = f"run:{self._run_id}"
            leases = [row for row in leases if row["holder"] == me]
            queue = [row for row in queue if row["agent"] == me]
            waiting = [each for each in waiting if each.wait.run == self._run_id]
        runs = [self._run(row, first) for row in self._rows()]
        self._turns = {row["run_id"]: self._turns[row["run_id"]] for row in runs if row["run_id"] in self._turns}
        return Look(runs, leases, queue, [_wait(each) for each in waiting], damaged)

    def _rows(self) -> Iterator[Row]:
        """Yield the rows that are shown; a run whose folder is gone is none that goes on."""
        if self._run_id:
            if (row := self.board.feed.rows.get(self._run_id)) is not None:
                yield row
            return
        newest = self.board.feed.newest()
        tickets = [row for row in newest if row.kind == "ticket" and not row.over]
        for row in sorted((*self.board.open_rows(), *tickets), key=lambda row: row.changed_at, reverse=True):
            if is_run_id(row.run) and self._store(row).exists():
                yield row
        yield from [row for row in newest if row.over][:ENDED_SHOWN]

    def _store(self, row: Row) -> RunStore | TicketStore:
        return (TicketStore if row.kind == "ticket" else RunStore)(self._root, row.run)

    def _run(self, row: Row, waits: Mapping[str, str]) -> dict[str, Any]:
        state, at_work = self._state(row, waits)
        total = row.total
        return {
            "run_id": row.run, "of": row.kind, "name": row.name, "title": row.title, "status": row.state or None,
            "waived": dict(row.waived), "attempt": row.attempt, "state": state, "reasons": list(row.reasons),
            "put_back": list(row.put_back), "at_work": at_work, "begun_at": row.begun_at, "changed_at": row.changed_at,
            "seconds": round(total.seconds, 1), "tokens": total.tokens, "usd": total.usd,
        }  # fmt: skip

    def _state(self, row: Row, waits: Mapping[str, str]) -> tuple[str, list[dict[str, Any]]]:
        if row.over:
            return "abandoned" if row.abandoned else "ended", []
        if self._store(row).driven():
            return "at work", self._at_work(row.run) if row.kind == "task" else []
        self._turns.pop(row.run, None)
        if row.kind == "ticket":
            return "at its agent", []
        try:
            view = self.board.view(row.run)
        except InterlockError:
            return "damaged", []
        return waits.get(row.run) or ("ended" if view.phase == "done" else view.phase), []

    def _at_work(self, run_id: str) -> list[dict[str, Any]]:
        turn = self._turns.setdefault(run_id, _Turn())
        notices, turn.position = progress_since(self._root, run_id, turn.position)
        for notice in notices:
            with suppress(KeyError, TypeError):
                turn.take(notice)
        return [dict(row) for row in turn.awaited.values()]


def _wait(each: Waiting) -> dict[str, Any]:
    wait = each.wait
    return {
        "key": wait.key, "wait": wait.kind, "run_id": wait.run, "role": wait.role, "text": wait.text,
        "since": each.since, "next": wait.command,
    }  # fmt: skip
