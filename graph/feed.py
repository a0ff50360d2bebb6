"""What the journal says of each run, kept up to date by reading on where the last look ended.

A board of thousands of runs opens no checkpoint: each run has one row, made from its lines once. The row is what
happened, never what is so; whether a run still goes on is asked of the run itself, where a page shows it.
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from interlock.agents.ask import agent_of_run
from interlock.core.text import whole
from interlock.graph.engine.folder import LANDED, beside_run, journal_of, journal_run
from interlock.graph.task.machine import failed_gates
from interlock.journal import Entry
from interlock.reservations import JOURNAL_RUN as RESERVATIONS

Kind: TypeAlias = Literal["task", "ticket"]

TICKET: Final = journal_run("")
"""How the names of ticket runs begin in the journal."""
_LOSSES: Final = frozenset({"lease_taken_over", "lease_forced", "lease_expired"})
"""The lines that say that a holder lost a lease."""


@dataclass(slots=True)
class Spent:
    """What some asks took: seconds, tokens in and out, US dollars (None when a price is not known), how many."""

    seconds: float = 0.0
    tokens: int = 0
    usd: float | None = 0.0
    asks: int = 0

    def add(self, usage: Mapping[str, Any]) -> None:
        """Add the usage of one answer, as the journal has it."""
        seconds, price = usage.get("seconds") or 0.0, usage.get("usd")
        tokens = (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0)
        usd = None if price is None or self.usd is None else self.usd + float(price)
        self.seconds, self.tokens, self.usd = self.seconds + float(seconds), self.tokens + int(tokens), usd
        self.asks += 1


@dataclass(slots=True)
class Row:
    """What the journal says of one run.

    Args:
        run: Its id, without `ticket:`.
        kind: Of a task, or of a ticket.
        name: The id of the task or the ticket.
        title: What is to be done, as a person corrected it last, or the ticket's title.
        state: The last status of a task, or the state of a ticket; empty before the first.
        attempt: The round of a task, or the revision of a ticket.
        begun_at: Of the first line, ISO 8601 in UTC.
        changed_at: Of the last line.
        gates: The required gates.
        failed: How often each gate was a reason of BLOCKED because it failed; see
            `machine.weighed`.
        refused: How often each role gave an answer that was not valid.
        roles: The roles that were asked.
        spent: By attempt and role.
        reasons: Why it is BLOCKED, or failed closed.
        cause: Of BLOCKED.
        lines: How many lines it has.
        waived: Each gate that is waived for the work as it is, with who waived it.
        put_back: The files that were put back as in the base at the hand-over of this attempt.
        over: Whether the journal itself says that nothing follows: APPROVED, abandoned, a ticket at its end.
        abandoned: Whether it was abandoned.
        landed: Where it landed: `commit`, `target`, and `at` in UTC; empty where it did not.
        words: What a search looks through, in lower case.
    """

    run: str
    kind: Kind
    name: str = ""
    title: str = ""
    state: str = ""
    attempt: int = 0
    begun_at: str = ""
    changed_at: str = ""
    gates: tuple[str, ...] = ()
    failed: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    roles: dict[str, None] = field(default_factory=dict[str, None])
    spent: dict[tuple[int, str], Spent] = field(default_factory=dict[tuple[int, str], Spent])
    reasons: tuple[str, ...] = ()
    cause: str = ""
    lines: int = 0
    waived: dict[str, str] = field(default_factory=dict[str, str])
    put_back: tuple[str, ...] = ()
    over: bool = False
    abandoned: bool = False
    landed: dict[str, str] = field(default_factory=dict[str, str])
    words: str = ""

    @property
    def shown_state(self) -> str:
        """The state as people see it: a run that was abandoned goes on from nowhere."""
        return "abandoned" if self.abandoned else self.state

    @property
    def total(self) -> Spent:
        """What the whole run took."""
        found = Spent()
        for row in self.spent.values():
            found.seconds += row.seconds
            found.tokens += row.tokens
            found.usd = None if found.usd is None or row.usd is None else found.usd + row.usd
            found.asks += row.asks
        return found

    def take(self, entry: Entry) -> None:
        """Take up one line of this run."""
        self.begun_at = self.begun_at or entry.at
        self.changed_at = entry.at
        self.lines += 1
        reader = _READERS.get(entry.type)
        if reader is not None:
            reader(self, entry.data)


def _started(row: Row, data: Mapping[str, Any]) -> None:
    if "task" in data:
        task = cast("Mapping[str, Any]", data["task"])
        row.name, row.title = str(task.get("task_id", "")), str(task.get("task", ""))
        row.gates = tuple(map(str, task.get("gates_required", ())))
    else:
        row.name = str(data.get("ticket_id", ""))
    row.words = f"{row.run} {row.name} {row.title}".lower()


def _objection_answered(row: Row, data: Mapping[str, Any]) -> None:
    if data.get("task"):
        _started(row, data)


def _status(row: Row, data: Mapping[str, Any]) -> None:
    state = str(data["to"])
    row.reasons = tuple(map(str, data["envelope"]["fail_reasons"])) if state == "BLOCKED" else ()
    if whole(data["attempt"]) != row.attempt:
        row.waived.clear()  # a waiver is for the tree of one attempt
        row.put_back = ()
    row.state, row.attempt, row.cause = state, whole(data["attempt"]), str(data.get("cause", ""))
    if state == "APPROVED" and "waived" in data:
        row.waived = {str(gate): str(name) for gate, name in data["waived"].items()}
    row.over = state == "APPROVED"
    row.failed.update(failed_gates(row.cause, row.reasons))
    if state == "BLOCKED":
        row.waived.clear()


def _answer(row: Row, data: Mapping[str, Any]) -> None:
    role, attempt = str(data.get("role", "agent")), whole(data.get("attempt"), row.attempt)
    row.roles[role] = None
    row.refused[role] += data.get("outcome") == "invalid"
    row.spent.setdefault((attempt, role), Spent()).add(data.get("usage") or {})


def _transition(row: Row, data: Mapping[str, Any]) -> None:
    row.state = str(data.get("to") or data.get("next_state") or row.state)
    row.attempt = whole(data.get("revision"), row.attempt)
    row.over = bool(data.get("done"))


def _gate(row: Row, data: Mapping[str, Any]) -> None:
    row.attempt = whole(data.get("revision"), row.attempt)
    row.state = str(data.get("state", row.state))
    issues = cast("list[dict[str, Any]]", data.get("issues", []))
    row.reasons = tuple(str(item["message"]) for item in issues)
    if data.get("status") != "pass":
        row.failed[row.state] += 1
    if data.get("status") == "stop":
        row.state, row.cause, row.over = str(data.get("next_state")), str(data.get("reason_code", "")), True


def _tool_call(row: Row, data: Mapping[str, Any]) -> None:
    payload = cast("Mapping[str, Any]", data.get("payload") or {})
    row.title = row.title or str(payload.get("title", ""))
    row.words = f"{row.run} {row.name} {row.title}".lower()


def _put_back(row: Row, data: Mapping[str, Any]) -> None:
    row.put_back = tuple(map(str, data["paths"]))


def _abandoned(row: Row, _data: Mapping[str, Any]) -> None:
    row.over = row.abandoned = True


def _waiver(row: Row, data: Mapping[str, Any]) -> None:
    row.waived[str(data.get("gate", ""))] = str(data.get("by", ""))


_READERS: Final[Mapping[str, Callable[[Row, Mapping[str, Any]], None]]] = {
    "run_started": _started,
    "status": _status,
    "answer": _answer,
    "tool_call": _tool_call,
    "transition": _transition,
    "gate_passed": _gate,
    "gate_retry": _gate,
    "gate_stop": _gate,
    "abandoned": _abandoned,
    "put_back": _put_back,
    "waiver": _waiver,
    "objection_answered": _objection_answered,
}
"""What each type of line says; those that are not here move no row."""


class Line(NamedTuple):
    """Where a line of the journal begins, and what it is: `run` is its name in the journal, `at` in UTC."""

    start: int
    run: str
    type: str
    at: str


class Feed:
    """The rows of one root. `catch_up` may be called from any thread.

    Args:
        root: The project.
    """

    def __init__(self, root: Path) -> None:
        self.journal = journal_of(root)
        self.rows: dict[str, Row] = {}
        self.lines: list[Line] = []
        self.lines_of: dict[str, list[Line]] = {}
        self.position = 0
        self._newest: list[Row] | None = None
        self._losses: dict[str, list[Line]] = {}
        self._mutex = threading.Lock()

    def catch_up(self) -> None:
        """Read what was written since the last call.

        Raises:
            JournalError: The journal cannot be read, or is not what was written.
        """
        with self._mutex:
            for position, entry in self.journal.follow(self.position):
                # The position of the last call is where this line begins.
                self._take(self.position, entry)
                self.position = position
                self._newest = None

    def newest(self) -> Sequence[Row]:
        """Return the rows, the one that changed last first."""
        with self._mutex:
            if self._newest is None:
                self._newest = list(reversed(self.rows.values()))
            return self._newest

    def read(self, lines: Iterable[Line]) -> list[Entry]:
        """Return some lines in full.

        Raises:
            JournalError: They cannot be read, or are not what was written.
        """
        found, position = list[Entry](), -1
        following: Iterator[tuple[int, Entry]] = iter(())
        for line in lines:
            if line.start != position:  # lines that follow each other are read with the file opened once
                following = self.journal.follow(line.start)
            position, entry = next(following, (-1, None))
            if entry is not None:
                found.append(entry)
        return found

    def entries(self, run: str) -> list[Entry]:
        """Return the lines of a run, by its name in the journal."""
        return self.read(self.lines_of.get(run, ()))

    def log_lines(self, run: str) -> list[Line]:
        """Return the lines of a run, and those of the reservations that say who took its files, in their order."""
        return sorted((*self.lines_of.get(run, ()), *self._losses.get(agent_of_run(run), ())))

    def _take(self, start: int, entry: Entry) -> None:
        # The names of runs and types are few and in every line, of which there may be hundreds of thousands.
        name = sys.intern(entry.run)
        line = Line(start, name, sys.intern(entry.type), entry.at)
        self.lines.append(line)
        self.lines_of.setdefault(name, []).append(line)
        if name == RESERVATIONS:
            if entry.type in _LOSSES:
                self._losses.setdefault(str(entry.data.get("agent")), []).append(line)
            return
        if entry.type == LANDED and (of := self.rows.get(name.removesuffix(beside_run("")))) is not None:
            of.landed = {"at": entry.at, **{key: str(entry.data.get(key, "")) for key in ("commit", "target")}}
        if name not in self.rows:
            if entry.type != "run_started":
                return
            ticket = name.startswith(TICKET)
            self.rows[name] = Row(name.removeprefix(TICKET), "ticket" if ticket else "task")
        # Taken out and put in again at the end: the order of the dictionary is that of the last changes.
        row = self.rows.pop(name)
        with suppress(LookupError, TypeError, ValueError, AttributeError):  # a form that no program of ours writes
            row.take(entry)
        self.rows[name] = row  # the last one changed last
