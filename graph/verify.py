"""Verifying the journal of a root against the heads that checkpoints keep and those that a person kept."""

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, cast

from interlock.core.errors import InterlockError
from interlock.core.finding import Finding
from interlock.graph.approvals import approval_problems
from interlock.graph.engine.folder import Pin, is_beside, journal_path, journal_run, list_runs, snapshots_path
from interlock.graph.errors import GraphError, RunDamagedError
from interlock.graph.task.comments import comment_problems
from interlock.graph.task.questions import ANSWERS, NO_ANSWER, unknown_answers
from interlock.graph.task.runs import RunView, kept_views
from interlock.graph.task.store import RunStore, pruned_runs
from interlock.graph.ticket.machine import Rebuilder
from interlock.graph.ticket.state import RunState, terminal
from interlock.graph.ticket.store import TicketStore
from interlock.journal import Entry, Head, Journal, JournalDamaged, verify
from interlock.reservations import JOURNAL_RUN as RESERVATIONS
from interlock.reservations import Comparison, compare_here, place

_KEYS: Final = ("line", "code", "message", "found", "expected", "fix")


class _Tickets(NamedTuple):
    """What is known of ticket runs: what their folders pin, their last snapshots, and what the journal makes of them.

    Each is read before what a step writes ahead of it, so that a step at this moment makes no difference.
    """

    pins: dict[str, Pin | None]
    last: dict[str, Mapping[str, Any]]
    states: dict[str, RunState]
    broken: dict[str, str]

    @property
    def over(self) -> set[str]:
        """The runs that are at an end and pinned there; at this moment, a last step may be short of its pin."""
        ends = {run: pin["head"] for run, pin in self.pins.items() if pin is not None}
        return {run for run, state in self.states.items() if terminal(state) and state.get("head") == ends.get(run)}

    def heads(self, name: Literal["head", "snapshots"]) -> dict[str, Head]:
        """Return the ends of runs that are pinned."""
        found = ((run, pin[name]) for run, pin in self.pins.items() if pin is not None)
        return {journal_run(run): Head(row["seq"], row["hash"]) for run, row in found}


class HeadError(GraphError):
    """A head on the command line is not one.

    Fix: A head shows that no line was cut from a journal. Copy it whole, RUN:SEQ:HASH, as the end of the run or
    `interlock verify` printed it.
    """

    code = "RUN608"


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification found.

    Args:
        problems: Everything wrong with it, in the order of the file; then with the ticket snapshots; then each run that
            cannot be read back. Each is at its file, and about a run or the reservations.
        runs: How many runs of tasks it holds.
        tickets: How many runs of tickets it holds.
        heads: How many heads it was held against.
        snapshots: The file of the ticket snapshots.
        damaged: Whether the journal or the snapshots are not as they were written.
        untouched: There is no journal, and no sign of one: no run, no snapshots, no head.
        store: The file of the reservations.
        leases: How its leases compare with what the journal gives; None without a store, or when it cannot be said.
        beyond: How many lines open runs have after the heads that were given of them.
    """

    path: str
    problems: tuple[Finding, ...]
    lines: int
    runs: int
    tickets: int
    heads: int
    snapshots: str = ""
    damaged: bool = False
    untouched: bool = False
    store: str = ""
    leases: Comparison | None = None
    beyond: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def is_incomplete(self) -> bool:
        """Whether the leases are not what the journal gives, and events are missing that may be why."""
        return self.leases is not None and self.leases.verdict == "partial"

    @property
    def verdict(self) -> Literal["whole", "unproven", "incomplete", "damaged", "empty"]:
        """What is known of the journal.

        `unproven` when it is whole by itself, but a run that pins its end is not; `incomplete` when that is so of the
        leases alone, and events are missing; `empty` when nothing was written yet.
        """
        if self.untouched:
            return "empty"
        if self.damaged:
            return "damaged"
        return "unproven" if self.problems else "incomplete" if self.is_incomplete else "whole"

    @property
    def kinds(self) -> tuple[tuple[int, str], ...]:
        """How many runs of each kind it holds, where it holds any."""
        return tuple(row for row in ((self.runs, "task run"), (self.tickets, "ticket run")) if row[0])

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        problems = [
            {"run": row.field, "place": row.location, **{key: getattr(row, key) for key in _KEYS}}
            for row in self.problems
        ]
        return {
            "schema": "interlock.verification/1",
            "path": self.path,
            "ok": not problems and not self.is_incomplete,
            "verdict": self.verdict,
            "lines": self.lines,
            "runs": self.runs,
            "tickets": self.tickets,
            "heads": self.heads,
            "beyond": dict(self.beyond),
            "reservations": None if self.leases is None else asdict(self.leases),
            "problems": problems,
        }


def parse_head(text: str) -> tuple[str, Head]:
    """Read `RUN:SEQ:HASH` as printed at the end of a run.

    Raises:
        HeadError: The text is not a head.
    """
    rest, _, digest = text.rpartition(":")
    run, _, number = rest.rpartition(":")
    if not run or not re.fullmatch(r"[0-9]{1,18}", number) or not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise HeadError(f"`{text[:120]}` is not a head", "Give RUN:SEQ:HASH as the end of the run printed it.")
    return run, Head(int(number), digest)


def verify_journal(root: Path, heads: Iterable[tuple[str, Head]] = ()) -> Verification:
    """Check every line of the journal below a root, the ticket snapshots, and what the checkpoints make of them.

    A run that is over ends at the head of its checkpoint. One that can still go on may have lines after it, and so has
    one that waits; that head pins what must be there. A head given by hand pins the end of every run that is not known
    to be open: unless something shows that it is, what follows the head is a change. A run that cannot be read back is
    a problem of its own; all else is checked.
    """
    path = journal_path(root)
    given = dict(_meant(root, heads))
    pruned = {run: head for run, head in pruned_runs(root).items() if head is not None}
    if _is_untouched(root) and not given and not pruned:
        return Verification(str(path), (), 0, 0, 0, 0, str(snapshots_path(root)), untouched=True)
    damaged: list[Finding] = []
    views = kept_views(root, lambda run, error: damaged.append(_unread(run, error)))
    pruned = {run: head for run, head in pruned.items() if run not in list_runs(root, "runs")}
    kept = pruned | {run: view.head for run, view in views.items() if view.head is not None}
    tickets = _tickets(root, damaged)
    kept |= tickets.heads("head")
    still, over = _open_runs(views, tickets), _over(root, views, tickets) | pruned.keys()
    # A run that was killed before its first line is pinned by nothing, and has no journal yet.
    logged = os.path.lexists(snapshots_path(root))
    written = bool(kept or given) or logged or os.path.lexists(path)
    exact = (given.keys() - still) | (over - given.keys())
    problems = verify(path, {**kept, **given}, exact=exact) if written else []
    if given and kept:
        problems += [item for item in verify(path, kept, exact=over) if item not in problems]
    pinned = tickets.heads("snapshots")
    of_snapshots = verify(snapshots_path(root), pinned, exact=False) if pinned or logged else []
    if not problems and not of_snapshots:
        damaged += _ticket_problems(root, tickets)
    journal = Journal(path)
    damaged += [] if problems else [*approval_problems(journal), *_decisions(root, journal, views)]
    try:
        lines, names = sum(1 for _ in journal.entries()), {*journal.runs()}
    except JournalDamaged:
        lines, names = _readable(path.read_bytes())
    damaged += [item for run_id in list_runs(root, "runs") for item in comment_problems(root, run_id)]
    names = {run for run in names if not is_beside(run)}
    of_tickets = {run for run in names if run.startswith(journal_run(""))}
    store = place.find(str(root)).store_path
    leases, unlike = (None, []) if problems else _leases(root, store)
    beyond = {} if problems else _beyond(path, given, still)
    of_snapshots = [item._replace(path=str(snapshots_path(root))) for item in of_snapshots]
    found = (*(item._replace(path=str(path)) for item in problems), *of_snapshots, *damaged, *unlike)
    return Verification(
        str(path), found, lines, len(names - of_tickets - {RESERVATIONS}), len(of_tickets), len(kept | given),
        str(snapshots_path(root)), bool(problems or of_snapshots), store=store, leases=leases, beyond=beyond,
    )  # fmt: skip


def _decisions(root: Path, journal: Journal, views: Mapping[str, RunView]) -> Iterator[Finding]:
    """Hold the answers of people that the runs keep against the journal."""
    lines: dict[str, list[Entry]] = {}
    for entry in journal.entries():
        if entry.type in ANSWERS:
            lines.setdefault(entry.run, []).append(entry)
    for run, view in views.items():
        store = RunStore(root, run)
        for key in unknown_answers(store, lines.get(run, ()), view.open_keys):
            error, place = store.damaged(f"answers/{key}.txt", NO_ANSWER), f"{_folder_of(run)}/answers/{key}.txt"
            yield Finding(error.code, "error", run, NO_ANSWER, key, "a line with its digest", error.fix, path=place)


def _tickets(root: Path, damaged: list[Finding]) -> _Tickets:
    """Read what is known of each ticket run; those whose folder cannot be read go to the damaged ones."""
    pins: dict[str, Pin | None] = {}
    for run_id in list_runs(root, "tickets"):
        store = TicketStore(root, run_id)
        try:
            store.load()
            pins[run_id] = store.pin()
        except RunDamagedError as error:
            damaged.append(_unread(journal_run(run_id), error))
    last: dict[str, Mapping[str, Any]] = {}
    rebuilder, broken = Rebuilder(), dict[str, str]()
    with suppress(JournalDamaged):
        for entry in Journal(snapshots_path(root)).entries():
            last[entry.run] = entry.data
    with suppress(JournalDamaged):
        for entry in Journal(journal_path(root)).entries():
            try:
                rebuilder.take(entry)
            except ValueError as error:
                broken.setdefault(entry.run, str(error))
    return _Tickets(pins, last, rebuilder.states, broken)


def _open_runs(views: Mapping[str, RunView], tickets: _Tickets) -> set[str]:
    """Return the names in the journal of the runs that are known to go on; the reservations always do."""
    tasks = {run for run, view in views.items() if view.phase != "done"}
    return {RESERVATIONS} | tasks | {journal_run(run) for run in tickets.pins.keys() - tickets.over}


def _over(root: Path, views: Mapping[str, RunView], tickets: _Tickets) -> set[str]:
    """Return the names in the journal of the runs of which nothing more is ever written.

    A step of a run that ended BLOCKED may be taken up again, and a run that was abandoned has one line more.
    """
    tasks = {run for run, view in views.items() if view.phase == "done" and not view.failed and not view.abandoned}
    ended = {run for run in tickets.over if not TicketStore(root, run).abandoned()}
    return tasks | {journal_run(run) for run in ended}


def _beyond(path: Path, given: Mapping[str, Head], still: Collection[str]) -> dict[str, int]:
    """Return how many lines each open run has after the head that was given of it, where it has any."""
    journal = Journal(path)
    ends = {run: journal.head(run) for run in given.keys() & still}
    return {run: end.seq - given[run].seq for run, end in ends.items() if end is not None and end.seq > given[run].seq}


def _unread(run: str, error: RunDamagedError) -> Finding:
    """Return that a run's records cannot be read back, so that the head it kept proves nothing about the journal."""
    message, expected = "the head that the run keeps cannot be read", "records of the run that can be read back"
    return Finding(error.code, "error", run, message, error.message, expected, error.fix, path=_folder_of(run))


def _folder_of(run: str) -> str:
    ticket = run.removeprefix(journal_run(""))
    return f".interlock/{'runs' if ticket == run else 'tickets'}/{ticket}"


def _leases(root: Path, store: str) -> tuple[Comparison | None, list[Finding]]:
    try:
        found = compare_here(str(root))
    except InterlockError as error:
        message = "the reservations cannot be checked against the journal"
        return None, [
            Finding(error.code, "error", RESERVATIONS, message, str(error), "both readable", error.fix, path=store)
        ]
    if found is None:
        return None, []
    fix = (
        "See what wrote into the store besides Interlock. `interlock release` takes away a lease that is too many; the "
        "others agree again when their time is over."
    )
    return found, [
        Finding(
            RunDamagedError.code, "error", RESERVATIONS,
            f"the lease {row.reservation_id} is not what the journal gives", row.found, row.expected, fix, path=store,
        )
        for row in found.differences
    ]  # fmt: skip


def runs_without_state(root: Path) -> list[str]:
    """Return the runs of tasks and tickets that the journal holds, where no state of any run is kept below a root.

    The state is what `.interlock` holds; a clone has the journal alone. Runs that a person had removed do not count. Of
    a damaged journal, nothing is known here.
    """
    if not journal_path(root).exists() or list_runs(root, "runs") or list_runs(root, "tickets"):
        return []
    try:
        entries = list(Journal(journal_path(root)).entries())
    except JournalDamaged:
        return []
    pruned = set(pruned_runs(root))
    return [run for run in dict.fromkeys(row.run for row in entries if row.type == "run_started") if run not in pruned]


def _meant(root: Path, heads: Iterable[tuple[str, Head]]) -> Iterator[tuple[str, Head]]:
    """Yield heads by the names that the journal has; a ticket run may be named without `ticket:` before it.

    A name that a task run has means that one.
    """
    written: tuple[str, ...] = ()
    with suppress(JournalDamaged):
        written = Journal(journal_path(root)).runs()
    tasks = {*list_runs(root, "runs"), *(run for run in written if not run.startswith(journal_run("")))}
    tickets = {*written, *(journal_run(run) for run in list_runs(root, "tickets"))}
    for run, head in heads:
        of_ticket = run not in tasks and journal_run(run) in tickets
        yield (journal_run(run) if of_ticket else run), head


def _readable(data: bytes) -> tuple[int, set[str]]:
    """Return how many lines a damaged journal has, and the runs that those name that can still be read."""
    runs: set[str] = set()
    for line in data.splitlines():
        try:
            row: object = json.loads(line)
        except (ValueError, RecursionError):
            continue
        run: object = cast("dict[str, object]", row).get("run") if isinstance(row, dict) else None
        if isinstance(run, str):
            runs.add(run)
    return data.count(b"\n"), runs


def _is_untouched(root: Path) -> bool:
    """Return whether no run was ever begun below a root, as far as anything left there shows."""
    written = (journal_path(root), snapshots_path(root))
    return not (any(os.path.lexists(path) for path in written) or list_runs(root, "runs") or list_runs(root, "tickets"))


def _ticket_problems(root: Path, tickets: _Tickets) -> Iterator[Finding]:
    """Hold the state that each ticket run's lines give against its last snapshot; a cut-off step is ahead by one.

    The two logs prove each other also where nothing is pinned, as of a run of an older version.
    """
    for name, found in tickets.broken.items():
        yield _unlike(name, found)
    for run_id, state in tickets.states.items():
        name, revision = journal_run(run_id), state["revision"]
        last = tickets.last.get(name)
        is_new = not state["history"] or run_id not in tickets.pins
        if name in tickets.broken or (last is None and is_new):
            continue
        seen = last["revision"] if last else 0
        # One that goes on at this moment may have taken several steps since the snapshots were read.
        behind = revision > seen + 1 and Journal(snapshots_path(root)).find(name, str(revision - 1)) is None
        if revision < seen or behind:
            yield _unlike(name, f"revision {revision}, and snapshots up to {seen}")
        elif last is not None and revision == seen and last["history"] != state["history"]:
            yield _unlike(name, "another history than that of its last snapshot")


def _unlike(run: str, found: str) -> Finding:
    return Finding(
        RunDamagedError.code, "error", run, "the journal's lines of the run do not lead to its last ticket", found,
        "lines that lead to the last snapshot",
        "Restore artifacts/interlock/events.jsonl and tickets.jsonl from copies of one time, and see what differs.",
        path=_folder_of(run),
    )  # fmt: skip
