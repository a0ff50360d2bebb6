"""The files of a run: it holds leases on the scope of its task while it works, and queues while others hold them."""

import json
import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, cast

from interlock.agents.ask import agent_of_run
from interlock.graph.errors import LeasesError, ScopeHeldError
from interlock.graph.scope_patterns import lease_patterns
from interlock.graph.task import Task
from interlock.journal import JournalError
from interlock.reservations import granting, identity, leases, outbox, place, process
from interlock.reservations.answers import Conflict, ReserveAnswer
from interlock.reservations.desk import Caller, Desk
from interlock.reservations.entry import Entry
from interlock.reservations.errors import NoProject, ReservationError
from interlock.reservations.opening import open_desk
from interlock.reservations.records import Lease, key_of
from interlock.reservations.settings import Settings

Notice: TypeAlias = Callable[[Mapping[str, Any]], None]

SLICE_SECONDS: Final = 15.0
"""How long a run waits in the line before it says again for whom."""

LONGEST_PAUSE_SECONDS: Final = 60.0
"""What a run holds is renewed at least so often while it is driven."""

_LENT: Final = "lent"
_MAX_PATTERNS: Final = 20_000
"""A scope has a bound of its own, the size of a task."""
_SHORTEST_TTL_MINUTES: Final = 0.05
_MAX_SHOWN: Final = 10
_MAX_REASON: Final = 200


class ScopeLeases:
    """What one run holds. The run is an agent of its own, `run:<run id>`, and its process is the one that drives it.

    Args:
        desk: The store and the world; the bounds of a call do not count here.
        caller: The run as an agent.
        patterns: What it holds, relative to the checkout.
        reason: Why, for the others.
    """

    def __init__(self, desk: Desk, caller: Caller, patterns: Sequence[str], reason: str) -> None:
        self.desk = replace(desk, settings=_for_runs(desk.settings))
        self.caller = caller
        self.patterns = tuple(patterns)
        self.reason = reason[:_MAX_REASON]
        self._lost = False

    @classmethod
    def open(cls, root: Path, run_id: str, task: Task) -> Self:
        """Return the leases of a run, for this process.

        Raises:
            LeasesError: The place or the settings cannot be used.
        """
        with _translated():
            found = place.find(str(root))
            here = os.path.realpath(root)
            if not place.inside(found.root, here):
                raise NoProject(
                    f"INTERLOCK_PROJECT names {found.root}, and the run works in {here}, which is not below it",
                    "Unset INTERLOCK_PROJECT, or let it name the checkout that the run works in.",
                )
            below = os.path.relpath(here, found.root)
            pid, started = _this_process()
            caller = Caller(agent_of_run(run_id), "agent", found.root, "run", process.host(), pid, started)
            reason = f"task {task.task_id}, run {run_id}"
            return cls(open_desk(found), caller, lease_patterns(task.scope, "" if below == "." else below), reason)

    # -- while it is driven ------------------------------------------------------------------------------------------

    @contextmanager
    def held(self, notice: Notice | None = None, *, queue_seconds: float | None = None) -> Generator[Self]:
        """Hold the scope while the body runs: all of it or, as long as others are in the way, a place in the line.

        A body that ends tells with `finish` or `rest` what becomes of the leases; one that raises leaves them, for
        the run may be taken on. Those of a process that has ended can be taken over.

        Args:
            notice: Told of `queued` (who holds what), `unqueued`, `scope_lost` and `leases_trouble`.
            queue_seconds: How long to wait in the line; None: as long as it takes. A place stands a while longer.

        Raises:
            ScopeHeldError: Others held files of the scope all the time; nothing was done.
            LeasesError: The store cannot be used; nothing was done.
        """
        tell = notice or _nobody
        try:
            with _translated():
                self._queue(tell, queue_seconds)
            with self._renewing(tell):
                yield self
            self._drain(tell)
        finally:
            self.desk.store.close()

    def finish(self) -> None:
        """Release everything: the run is at its end."""
        with _translated():
            leases.release_all(self.desk, self.caller)

    def rest(self) -> None:
        """Keep everything while an agent outside works: from now on no process stands for the run, only its calls."""
        with _translated(), leases.entered(self.desk, self.caller) as entry:
            entry.tx.put_agent(replace(entry.agent, pid=None, started=""))

    # -- while it waits for an answer --------------------------------------------------------------------------------

    def keep(self) -> None:
        """Renew what the run holds, unless that was done lately; what is lent is its worker's to renew."""
        with _translated(), leases.entered(self.desk, self.caller) as entry:
            for lease in entry.tx.leases_of(self.caller.name):
                self._renew(entry, lease)

    def lend(self, worker: Caller) -> None:
        """Give what the run holds into the hands of the agent that works for it, until the run is driven again.

        The hooks of that agent's client know it by its own name: they would refuse it the files of its own task.
        """
        with _translated(), leases.entered(self.desk, worker) as entry:
            held = [*entry.tx.leases_of(self.caller.name), *self._lent(entry)]
            for lease in held:
                if key_of(lease.agent) == key_of(worker.name):
                    self._renew(entry, lease)
                else:
                    self._move(entry, lease, worker.name)
            ids = json.dumps([lease.reservation_id for lease in held])
            entry.tx.remember(self.caller.name, _LENT, "", ids, entry.now)

    def worker(self, name: str) -> Caller:
        """Return the agent that works for the run: the one of that name, or without one the client of this process.

        Raises:
            LeasesError: The store cannot be used.
        """
        if name:
            return Caller(name, "agent", self.caller.root, "http")
        with _translated():
            known = identity.who(os.environ, self.desk.store)
        return Caller(known.name, known.kind, self.caller.root, "mcp", process.host(), known.pid, known.started)

    def close(self) -> None:
        """Give back the connections of the store."""
        self.desk.store.close()

    # -- the line ----------------------------------------------------------------------------------------------------

    def _queue(self, tell: Notice, queue_seconds: float | None) -> None:
        self._begin()
        since, waited = self.desk.clock(), 0.0
        answer = self._reserve(0)
        try:
            while answer["errors"]:
                blockers = _blockers(answer)
                if answer["errors"][0]["code"] == "RSV204":
                    # Whoever holds nothing closes no circle.
                    leases.release_all(self.desk, self.caller)
                elif not blockers:
                    raise _refused(answer)
                tell({"kind": "queued", "blockers": blockers, "waited_seconds": round(waited)})
                left = SLICE_SECONDS if queue_seconds is None else min(SLICE_SECONDS, queue_seconds - waited)
                if left <= 0:
                    raise ScopeHeldError(*held_by(self.caller.name, blockers))
                answer = self._reserve(left)
                waited = self.desk.clock() - since
        except ScopeHeldError:
            raise
        except BaseException:
            leases.release_all(self.desk, self.caller)
            raise
        if waited:
            tell({"kind": "unqueued", "waited_seconds": round(waited)})

    def _begin(self) -> None:
        """Let this process stand for the run, and take back what was lent."""
        mine = self.caller
        with leases.entered(self.desk, mine) as entry:
            agent = entry.agent
            if (agent.host, agent.pid, agent.started) != (mine.host, mine.pid, mine.started):
                entry.tx.put_agent(replace(agent, host=mine.host, pid=mine.pid, started=mine.started))
            for lease in self._lent(entry):
                self._move(entry, lease, mine.name)

    def _reserve(self, wait_seconds: float) -> ReserveAnswer:
        return leases.reserve(self.desk, self.caller, self.patterns, reason=self.reason, wait_seconds=wait_seconds)

    # -- leases ------------------------------------------------------------------------------------------------------

    def _lent(self, entry: Entry) -> list[Lease]:
        """Return what the run lent to somebody who still holds it."""
        row = entry.tx.remembered(self.caller.name, _LENT)
        ids = cast("list[str]", json.loads(row[1])) if row is not None else []
        found = (entry.tx.lease(reservation_id) for reservation_id in ids)
        return [lease for lease in found if lease is not None and key_of(lease.agent) != key_of(self.caller.name)]

    def _move(self, entry: Entry, lease: Lease, to: str) -> None:
        """Give a lease another holder; a new token, so that the old holder's counts no more."""
        moved = replace(
            lease,
            agent=to,
            claim=False,
            token=entry.tx.next_number("token"),
            granted_at=entry.now,
            renewed_at=entry.now,
            expires_at=max(lease.expires_at, entry.now + self._ttl_seconds),
        )
        entry.tx.put_lease(moved)
        for asked in entry.tx.open_negotiations(reservation_id=lease.reservation_id):
            entry.tx.put_negotiation(replace(asked, holder=to))
        facts = {**granting.facts(moved), "exclusive": moved.exclusive, "claim": False, "from": lease.agent}
        entry.event("lease_granted", **facts)

    def _renew(self, entry: Entry, lease: Lease) -> None:
        until = entry.now + self._ttl_seconds
        if until - lease.expires_at > self._ttl_seconds / 3:
            renewed = replace(lease, claim=False, renewed_at=entry.now, expires_at=until)
            entry.tx.put_lease(renewed)
            entry.event("lease_renewed", **granting.facts(renewed))

    @property
    def _ttl_seconds(self) -> float:
        return self.desk.settings.ttl_minutes * 60

    @contextmanager
    def _renewing(self, tell: Notice) -> Generator[None]:
        """Renew in a thread of its own: the turn of one agent may last longer than any lease."""
        over = threading.Event()
        limits = self.desk.settings
        pause = min(LONGEST_PAUSE_SECONDS, limits.ttl_minutes * 20, limits.dead_after_minutes * 20)

        def renew() -> None:
            while not over.wait(pause):
                self.renew_once(tell)

        thread = threading.Thread(target=renew, name=f"leases of {self.caller.name}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def renew_once(self, tell: Notice) -> None:
        """Renew, or take what was lost once more; tell once when others have it."""
        try:
            answer = self._reserve(0)
        except ReservationError as error:
            tell(_trouble(error))
            return
        lost = bool(answer["errors"])
        if lost and not self._lost:
            tell({"kind": "scope_lost", "blockers": _blockers(answer)})
        self._lost = lost

    def _drain(self, tell: Notice) -> None:
        """Write what happened into the journal; what cannot be written now stays queued for the next who drains."""
        try:
            outbox.drain(self.desk.store, self.caller.root)
        except (ReservationError, JournalError) as error:
            tell(_trouble(error))


# -- texts ---------------------------------------------------------------------------------------------------------


def held_by(waiter: str, blockers: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """Say who is in the way of a run and for how long, and what helps."""
    rows = list(blockers)
    told = "; ".join(blocker_text(row) for row in rows[:3])
    more = f"; and {len(rows) - 3} more" if len(rows) > 3 else ""
    fix = "It goes on by itself once they are free."
    runs = [str(row["holder"]) for row in rows if str(row["holder"]).startswith("run:")]
    if runs:
        fix += f" To give up what a run that nobody goes on with holds: INTERLOCK_AGENT_ID={runs[0]} interlock release"
        fix += " --all"
    return f"{waiter} waits for files of its scope: {told}{more}", fix


def blocker_text(row: Mapping[str, Any]) -> str:
    """Say in a few words who holds what, whether it still works, and until when."""
    if row["waiting"]:
        return f"{row['holder']} waits in front for `{row['held_pattern']}`"
    minutes = max(1, round(row["expires_in_seconds"] / 60))
    return f"{row['holder']} ({row['state']}) holds `{row['held_pattern']}` for {minutes} min more unless it renews"


def _blockers(answer: ReserveAnswer) -> list[dict[str, Any]]:
    conflicts = [row["conflict"] for row in answer["errors"] if "conflict" in row]
    rows = {(row["holder"], row["held_pattern"]): _blocker(row) for row in conflicts}
    return list(rows.values())[:_MAX_SHOWN]


def _blocker(row: Conflict) -> dict[str, Any]:
    return {
        "holder": row["holder"],
        "held_pattern": row["held_pattern"],
        "state": row["holder_state"],
        "reason": row["reason"],
        "expires_in_seconds": row["expires_in_seconds"],
        "waiting": row.get("waiting", False),
    }


def _refused(answer: ReserveAnswer) -> LeasesError:
    row = answer["errors"][0]
    return LeasesError(f"the files of the scope cannot be reserved: {row['code']} {row['message']}", row["fix"])


def _trouble(error: ReservationError | JournalError) -> dict[str, Any]:
    return {"kind": "leases_trouble", "code": error.code, "message": str(error)}


def _nobody(_step: Mapping[str, Any]) -> None:
    return


# -- the world -----------------------------------------------------------------------------------------------------


def _for_runs(given: Settings) -> Settings:
    """Return the settings with the bounds that protect from agents widened: a run is no agent's call."""
    return replace(
        given,
        ttl_minutes=max(given.ttl_minutes, _SHORTEST_TTL_MINUTES),
        max_ttl_minutes=max(given.max_ttl_minutes, given.ttl_minutes, _SHORTEST_TTL_MINUTES),
        max_wait_seconds=max(given.max_wait_seconds, SLICE_SECONDS),
        linger_seconds=max(given.linger_seconds, 2 * SLICE_SECONDS),
        max_patterns=max(given.max_patterns, _MAX_PATTERNS),
        max_leases=max(given.max_leases, _MAX_PATTERNS),
    )


def _this_process() -> tuple[int, str]:
    pid = os.getpid()
    found = process.from_proc(pid) or process.from_ps("-p", str(pid)).get(pid)
    return pid, found.started if found is not None else ""


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except ReservationError as error:
        raise LeasesError(f"the leases of the run cannot be kept: {error.code} {error.message}", error.fix) from error
