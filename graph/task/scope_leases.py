"""The files of a run: it holds leases on the scope of its task while it works, and queues while others hold them."""

import os
import shlex
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from interlock.agents.ask import AgentConfigError, Notice, RunnerError, agent_of_run
from interlock.agents.files import as_written, run_caller
from interlock.core.errors import InterlockError
from interlock.core.patterns import Pattern, canonical, quote
from interlock.core.project import NoProject
from interlock.core.text import one_line
from interlock.gates.patterns import expand
from interlock.graph.errors import LEASES, SCOPE_HELD, GraphError
from interlock.graph.task.progress import progress_since
from interlock.graph.task.task import Task
from interlock.journal import JournalError
from interlock.reservations import (
    Caller,
    LentLeases,
    Runtime,
    drain_events,
    identity,
    open_runtime,
    place,
    process,
    replace,
)
from interlock.reservations.answers import Conflict, ReserveAnswer
from interlock.reservations.errors import ReservationError
from interlock.reservations.settings import Settings


def lease_patterns(scope: Sequence[str], below: str = "") -> tuple[str, ...]:
    """Return patterns of leases that cover every path of a scope. What `!` takes out is covered all the same.

    The task's root lies in the checkout at `below`; empty when it is the checkout.
    """
    prefix = f"{quote(below)}/" if below else ""
    # Braces are expanded, since leases know none. What cannot be a pattern of leases is covered by a lease on
    # everything.
    plain = [prefix + text for pattern in scope if not pattern.startswith("!") for text in expand(pattern)]
    read = [canonical(text) for text in plain]
    return tuple(sorted({row.text if isinstance(row, Pattern) else f"{prefix}**" for row in read}))


LEASE_STEPS: Final = frozenset({"queued", "unqueued", "scope_lost", "leases_trouble"})
"""The kinds of steps that are reported here; all others are reported by the graph itself."""

SLICE_SECONDS: Final = 15.0
"""How long a run waits in the queue before it says again for whom."""

LONGEST_PAUSE_SECONDS: Final = 60.0
"""What a run holds is renewed at least so often while it is driven."""

_MAX_PATTERNS: Final = 20_000
"""A scope has a bound of its own, the size of a task."""
_SHORTEST_TTL_MINUTES: Final = 0.05


class ScopeLeases:
    """What one run holds. The run is an agent of its own, `run:<run id>`, and its process is the one that drives it."""

    def __init__(self, runtime: Runtime, caller: Caller, patterns: Sequence[str], reason: str) -> None:
        self.runtime = replace(as_written(runtime), settings=_for_runs(runtime.settings))
        self.caller = caller
        self.leases = LentLeases(self.runtime, caller)
        self.patterns = tuple(patterns)
        self.reason = reason
        self._report: Notice = _ignore
        self._lost = self._rests = False

    @classmethod
    def open(cls, root: Path, run_id: str, task: Task) -> Self:
        """Return the leases of a run, for this process.

        Raises:
            GraphError: The place or the settings cannot be used.
        """
        with _translated():
            found, caller, below = run_caller(str(root), agent_of_run(run_id))
            reason = f"task {task.task_id}, run {run_id}"
            return cls(open_runtime(found), caller, lease_patterns(task.scope, below), reason)

    # -- while it is driven ------------------------------------------------------------------------------------------

    @contextmanager
    def held(self, notice: Notice | None = None, *, queue_seconds: float | None = None) -> Generator[Self]:
        """Hold the scope while the body runs: all of it or, as long as others are in the way, a place in the queue.

        A body that ends decides with `finish` or `rest` what becomes of the leases; one that an agent stopped releases
        them; one that raises otherwise leaves them, for the run may be taken on. Those of a process that has ended can
        be taken over.

        Args:
            notice: Called with `queued` (who holds what), `unqueued`, `scope_lost` and `leases_trouble`.
            queue_seconds: How long to wait in the queue; None: as long as it takes. A place is kept a while longer.

        Raises:
            GraphError: Others held files of the scope all the time, or the store cannot be used; nothing was done.
        """
        self._report = notice or _ignore
        try:
            with _translated():
                self._queue(queue_seconds)
            try:
                with self._renewing():
                    yield self
            except (AgentConfigError, RunnerError):  # nobody works on the files until a person resumes the run
                self.finish()
                self._drain()
                raise
            finally:
                if self._rests:  # not before the last renewal, which is made in the name of this process
                    with self._reported():
                        self.leases.rest()
            self._drain()
        finally:
            self.runtime.store.close()

    def finish(self) -> None:
        """Release everything: the run is at its end, and stays there even where the store cannot be used now."""
        with self._reported():
            self.leases.release_all()

    def rest(self) -> None:
        """Keep everything once the body ends, while a person or an agent outside is waited for: without a process."""
        self._rests = True

    # -- while it waits for an answer --------------------------------------------------------------------------------

    def keep(self) -> None:
        """Renew what the run holds, unless that was done lately; what is lent is its worker's to renew."""
        with _translated():
            self.leases.renew()

    def lend(self, worker: Caller) -> None:
        """Lend what the run holds to the agent that works for it, until the run is driven again.

        The hooks of that agent's client know it by its own name: they would refuse it the files of its own task.
        """
        with _translated():
            self.leases.lend(worker)

    def worker(self, name: str, client: str = "mcp") -> Caller:
        """Return the agent that works for the run: the one of that name, or without one the client of this process.

        Raises:
            GraphError: The store cannot be used.
        """
        # A name means an agent of the HTTP server, which has no process on this machine.
        if name:
            return Caller(name, "agent", self.caller.root, "http")
        with _translated():
            known = identity.who(os.environ, self.runtime.store, via=client)
        return Caller(known.name, known.kind, self.caller.root, client, process.host(), known.pid, known.started)

    def close(self) -> None:
        """Give back the connections of the store."""
        self.runtime.store.close()

    # -- the queue ---------------------------------------------------------------------------------------------------

    def _queue(self, queue_seconds: float | None) -> None:
        # What a run holds may be work that no gate has judged: with a process that ends in the queue it would be free.
        self.leases = LentLeases(self.runtime, replace(self.caller, pid=None, started=""))
        holds = self.leases.begin()
        if not holds:
            self.leases = LentLeases(self.runtime, self.caller)
        since, waited, queued = self.runtime.monotonic(), 0.0, False
        answer = self._reserve(0)
        try:
            while answer["errors"]:
                if holds:
                    self.leases.rest()
                blockers = self._blocked_by(answer)
                queued = True
                self._report({"kind": "queued", "blockers": blockers, "waited_seconds": round(waited)})
                left = SLICE_SECONDS if queue_seconds is None else min(SLICE_SECONDS, queue_seconds - waited)
                if left <= 0:
                    break
                answer = self._reserve(left)
                waited = self.runtime.monotonic() - since
        except BaseException:
            # Nobody comes back to this place: the call was ended. What the run held before, it keeps, with its work.
            self.leases.leave_queue("interrupted")
            raise
        if answer["errors"]:
            raise GraphError(*held_by(self.caller.name, _blockers(answer)), SCOPE_HELD)
        self.leases = LentLeases(self.runtime, self.caller)
        self.leases.begin()
        if queued:
            self._report({"kind": "unqueued", "waited_seconds": round(waited)})

    def _blocked_by(self, answer: ReserveAnswer) -> list[dict[str, Any]]:
        """Return who is in the way of a refused call."""
        blockers = _blockers(answer)
        if not blockers:
            row = answer["errors"][0]
            message = f"the files of the scope cannot be reserved: {row['code']} {row['message']}"
            raise GraphError(message, row["fix"], LEASES)
        return blockers

    def _reserve(self, wait_seconds: float) -> ReserveAnswer:
        return self.leases.reserve(self.patterns, self.reason, wait_seconds)

    # -- leases ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _renewing(self) -> Generator[None]:
        """Renew in a thread of its own: the turn of one agent may last longer than any lease."""
        over = threading.Event()
        limits = self.runtime.settings
        # Minutes times 20 is a third in seconds: a renewal may fail twice before the lease, or its holder, is over.
        pause = min(LONGEST_PAUSE_SECONDS, limits.ttl_minutes * 20, limits.dead_after_minutes * 20)

        def renew() -> None:
            while not over.wait(pause):
                self.renew_once()

        thread = threading.Thread(target=renew, name=f"leases of {self.caller.name}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def renew_once(self) -> None:
        """Renew, or take what was lost once more; report once when others have it."""
        with self._reported():
            answer = self._reserve(0)
            lost = bool(answer["errors"])
            # Said once and not at every renewal; when the files are back and lost again, it is said again.
            if lost and not self._lost:
                self._report({"kind": "scope_lost", "blockers": _blockers(answer)})
            self._lost = lost

    def _drain(self) -> None:
        """Write what happened into the journal; what cannot be written now stays queued for the next who drains."""
        with self._reported():
            drain_events(self.runtime.store, self.caller.root)

    @contextmanager
    def _reported(self) -> Generator[None]:
        """Report what goes wrong with store or journal, where the work itself goes on or is done."""
        try:
            yield
        except InterlockError as error:
            self._report({"kind": "leases_trouble", "code": error.code, "message": str(error)})


def clear(root: Path, run_id: str, task: Task, notice: Notice | None = None) -> None:
    """Release what is left of a run at its end, whose process was killed before it could.

    Trouble with the store is reported to `notice`, since nothing is left to do for the run itself.
    """
    report = notice or _ignore
    try:
        with _translated():
            made = place.is_used(place.find(str(root)))
        if not made:
            return
        left = ScopeLeases.open(root, run_id, task)
        with _translated(), closing(left.runtime.store):
            with left.runtime.store.transaction() as tx:
                # Asked first: to release nothing would still write an event.
                if not tx.leases_of(left.caller.name):
                    return
            left.leases.release_all()
            drain_events(left.runtime.store, left.caller.root)
    except InterlockError as error:
        report({"kind": "leases_trouble", "code": error.code, "message": str(error)})


# -- texts ---------------------------------------------------------------------------------------------------------


def held_by(waiter: str, blockers: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """Return who is in the way of a run and for how long, and what helps."""
    rows = list(blockers)
    first = "; ".join(blocker_text(row) for row in rows[:3])
    more = f"; and {len(rows) - 3} more" if len(rows) > 3 else ""
    fix = "It goes on by itself once they are free."
    runs = [str(row["holder"]) for row in rows if str(row["holder"]).startswith("run:")]
    if runs:
        fix += f" To give up what a run holds that nobody goes on with: {give_up(runs[0])}"
    return f"{waiter} waits for files of its scope: {first}{more}", fix


def waited_for(root: Path, run_id: str) -> str:
    """Return whose files a run that is driven waits for, by its progress; empty when it waits for none."""
    with suppress(LookupError, TypeError, ValueError, AttributeError):
        last = progress_since(root, run_id)[0][-1]
        if last["kind"] == "queued":
            return one_line(held_by(agent_of_run(run_id), last["blockers"])[0])
    return ""


def give_up(holder: str) -> str:
    """Return the command that releases what a run holds, from any worktree: the run itself is known in one alone."""
    return f"INTERLOCK_AGENT_ID={shlex.quote(holder)} interlock release --all"


def blocker_text(row: Mapping[str, Any]) -> str:
    """Return in a few words who holds what, whether it still works, and until when."""
    if row["waiting"]:
        return f"{row['holder']} waits in front for `{row['held_pattern']}`"
    minutes = max(1, round(row["expires_in_seconds"] / 60))
    return f"{row['holder']} ({row['state']}) holds `{row['held_pattern']}` for {minutes} min more unless it renews"


def _blockers(answer: ReserveAnswer) -> list[dict[str, Any]]:
    conflicts = [row["conflict"] for row in answer["errors"] if "conflict" in row]
    rows = {(row["holder"], row["held_pattern"]): _blocker(row) for row in conflicts}
    return list(rows.values())


def _blocker(row: Conflict) -> dict[str, Any]:
    return {
        "holder": row["holder"],
        "held_pattern": row["held_pattern"],
        "state": row["holder_state"],
        "reason": row["reason"],
        "expires_in_seconds": row["expires_in_seconds"],
        "waiting": row.get("waiting", False),
    }


def _ignore(_step: Mapping[str, Any]) -> None:
    return


# -- the world -----------------------------------------------------------------------------------------------------


def _for_runs(given: Settings) -> Settings:
    """Return the settings with the bounds that protect from agents widened: a run is not the call of an agent."""
    return replace(
        given,
        ttl_minutes=max(given.ttl_minutes, _SHORTEST_TTL_MINUTES),
        max_ttl_minutes=max(given.max_ttl_minutes, given.ttl_minutes, _SHORTEST_TTL_MINUTES),
        max_wait_seconds=max(given.max_wait_seconds, SLICE_SECONDS),
        linger_seconds=max(given.linger_seconds, 2 * SLICE_SECONDS),
        max_patterns=max(given.max_patterns, _MAX_PATTERNS),
    )


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except (ReservationError, JournalError, NoProject) as error:
        message = f"the leases of the run cannot be kept: {error.code} {error.message}"
        raise GraphError(message, error.fix, LEASES) from error
