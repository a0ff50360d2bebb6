"""Verifying the journal of a root: its chain, and the heads that checkpoints and people kept of it."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from interlock.core.finding import Finding
from interlock.graph.engine.folder import (
    PRUNED,
    beside_run,
    is_beside,
    journal_of,
    journal_path,
    journal_run,
    list_runs,
    snapshots_of,
    snapshots_path,
)
from interlock.graph.errors import HEAD, GraphError, RunDamagedError
from interlock.graph.task.runs import kept_views
from interlock.graph.ticket.open_runs import Records, differences, unwritten
from interlock.graph.ticket.state import RunState, terminal
from interlock.graph.ticket.store import TicketStore
from interlock.graph.ticket.tickets import Tickets
from interlock.journal import Head, Journal, JournalError, verify
from interlock.reservations import JOURNAL_RUN as RESERVATIONS

_KEYS: Final = ("line", "code", "message", "found", "expected", "fix")


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification found.

    Args:
        problems: Everything wrong with it, in the order of the file; then with the ticket snapshots; then each run that
            cannot be read back. Each is at its file, and about a run.
        runs: How many runs of tasks it holds.
        tickets: How many runs of tickets it holds.
        heads: How many heads it was held against.
        damaged: Whether the journal or the snapshots are not as they were written.
        untouched: There is no journal, and no sign of one: no run, no snapshots, no head.
        carried: What the last steps of ticket runs have not written yet, one sentence each: a step writes its
            checkpoint first, and the next call writes the rest.
    """

    path: str
    problems: tuple[Finding, ...]
    lines: int
    runs: int
    tickets: int
    heads: int
    damaged: bool = False
    untouched: bool = False
    carried: tuple[str, ...] = ()

    @property
    def verdict(self) -> Literal["whole", "unproven", "damaged", "empty"]:
        """What is known of the journal.

        `unproven` when it is whole by itself, but a run that pins its end is not; `empty` when nothing was written yet.
        """
        if self.untouched:
            return "empty"
        if self.damaged:
            return "damaged"
        return "unproven" if self.problems else "whole"

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
            "ok": not problems,
            "verdict": self.verdict,
            "lines": self.lines,
            "runs": self.runs,
            "tickets": self.tickets,
            "heads": self.heads,
            "carried": list(self.carried),
            "problems": problems,
        }


def parse_head(text: str) -> tuple[str, Head]:
    """Read `RUN:SEQ:HASH` as printed at the end of a run.

    Raises:
        GraphError: The text is not a head.
    """
    rest, _, digest = text.rpartition(":")
    run, _, number = rest.rpartition(":")
    if not run or not re.fullmatch(r"[0-9]{1,18}", number) or not re.fullmatch(r"[0-9a-f]{64}", digest):
        fix = "Give RUN:SEQ:HASH as the end of the run printed it."
        raise GraphError(f"`{text[:120]}` is not a head", fix, HEAD)
    return run, Head(int(number), digest)


def verify_journal(root: Path, heads: Iterable[tuple[str, Head]] = ()) -> Verification:
    """Check every line of the journal below a root, the ticket snapshots, and what the checkpoints make of them.

    A run that is over ends at the head of its checkpoint. One that can still go on may have lines after it, and so has
    one that waits; that head pins what must be there. A head given by hand pins the end of every run that is not known
    to be open: unless something shows that it is, what follows the head is a change. A run that cannot be read back is
    a problem of its own; all else is checked.
    """
    path, snapshots_file = journal_path(root), snapshots_path(root)
    given = dict(heads)
    damaged: list[Finding] = []
    # The checkpoints are read before the journal: what a run writes meanwhile lies behind its head, which is allowed.
    views = kept_views(root, lambda run, error: damaged.append(_unread(run, error)))
    tickets, seen = _tickets(root, damaged)
    # With a database the files are copies, and complete from here on; below they are read as any other.
    unlike = [
        found for journal in (journal_of(root), snapshots_of(root)) if (found := journal.difference()) is not None
    ]
    logged = os.path.lexists(snapshots_file)
    if not (views or tickets or damaged or given or logged or os.path.lexists(path)):
        return Verification(str(path), (), 0, 0, 0, 0, untouched=True)
    # A run id is used once; that a folder is there again means that somebody put it back, and it speaks for itself.
    pruned = {run: head for run, head in _pruned(root).items() if head is not None and run not in views}
    kept = pruned | {run: view.head for run, view in views.items() if view.head is not None}
    for run, state in tickets.items():
        before = state["before"]
        kept |= {journal_run(run): Head(before["seq"], before["hash"])} if before["seq"] else {}
    # Nothing more is ever written of a run that is over; one that was abandoned has one line more.
    over = {run for run, view in views.items() if view.phase == "done" and not view.abandoned} | pruned.keys()
    still = {RESERVATIONS} | {run for run, view in views.items() if view.phase != "done"}
    still |= {journal_run(run) for run, state in tickets.items() if not terminal(state)}
    # A run that was killed before its first line is pinned by nothing, and has no journal yet.
    problems = verify(path, kept, exact=over) if kept or given or logged or os.path.lexists(path) else []
    if given:
        problems += [item for item in verify(path, given, exact=given.keys() - still) if item not in problems]
    of_snapshots = verify(snapshots_file, {}, exact=False) if logged else []
    journal, carried = Journal(path), list[str]()
    # In a journal that is damaged, records that differ would only be the same damage once more.
    if not problems and not of_snapshots:
        snapshots = Journal(snapshots_file)
        for run, state in tickets.items():
            damaged += [_unlike(run, *row) for row in differences(state, seen[run], journal, snapshots)]
            carried += [missing] if (missing := unwritten(state, journal, snapshots)) else []
    lines, names = 0, set[str]()
    with suppress(JournalError):
        for entry in journal.entries():
            lines += 1
            names |= set() if is_beside(entry.run) else {entry.run}
    of_tickets = {run for run in names if run.startswith(journal_run(""))}
    found = [item._replace(path=str(path)) for item in problems]
    found += [item._replace(path=str(snapshots_file)) for item in of_snapshots]
    return Verification(
        str(path),
        (*found, *unlike, *damaged),
        lines,
        runs=len(names - of_tickets - {RESERVATIONS}),
        tickets=len(of_tickets),
        heads=len({*kept, *given, *map(journal_run, tickets)}),
        damaged=bool(found or unlike),
        carried=tuple(carried),
    )


def _pruned(root: Path) -> dict[str, Head | None]:
    """Return the runs whose folders a person had removed, each with its end in the journal then, if it had lines."""
    ends: dict[str, Head | None] = {}
    with suppress(JournalError):
        for entry in Journal(journal_path(root)).entries():
            if entry.type == PRUNED and is_beside(entry.run):
                run = entry.run.removesuffix(beside_run(""))
                ends[run] = Head(entry.data["seq"], entry.data["hash"]) if entry.data else None
    return ends


def _tickets(root: Path, damaged: list[Finding]) -> tuple[dict[str, RunState], dict[str, Records]]:
    """Return the state of each ticket run that has a checkpoint, and how far its records went before that was read.

    Those that cannot be read go to the damaged ones. One without a checkpoint is held by the chains of its journal
    lines and its snapshots alone.
    """
    runs, found, seen = Tickets(root).open_runs, dict[str, RunState](), dict[str, Records]()
    for run_id in list_runs(root, "tickets"):
        name = journal_run(run_id)
        with suppress(JournalError):
            lines, snapshots = runs.journal.head(name), runs.snapshots.head(name)
            seen[run_id] = Records(lines.seq if lines else 0, snapshots.seq if snapshots else 0)
        try:
            state = runs.stored(TicketStore(root, run_id))
        except RunDamagedError as error:
            damaged.append(_unread(name, error))
        else:
            found |= {} if state is None else {run_id: state}
    return found, seen


def _unread(run: str, error: RunDamagedError) -> Finding:
    """Return that a run's records cannot be read back, so that the head it kept proves nothing about the journal."""
    message, expected = "the head that the run keeps cannot be read", "records of the run that can be read back"
    return Finding(error.code, "error", run, message, error.message, expected, error.fix, path=_folder_of(run))


def _folder_of(run: str) -> str:
    ticket = run.removeprefix(journal_run(""))
    return f".interlock/{'runs' if ticket == run else 'tickets'}/{ticket}"


def _unlike(run_id: str, path: Path, found: str) -> Finding:
    return Finding(
        RunDamagedError.code,
        "error",
        journal_run(run_id),
        "the records of the run are not those that its checkpoint follows from",
        found,
        "what its steps wrote",
        "Restore artifacts/interlock/events.jsonl and tickets.jsonl from copies of one time, and see what differs.",
        path=str(path),
    )
