"""Driving runs in threads of this process, so that a caller waits as long as it can afford and no longer."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from interlock.agents.ask import RunnerError
from interlock.core.errors import InterlockError
from interlock.graph.errors import ANSWER, SCOPE_HELD, RunBusyError
from interlock.graph.task.scope_leases import LEASE_STEPS
from interlock.graph.task.store import RunStore

if TYPE_CHECKING:
    from interlock.graph.task.runs import RunView

WAIT_SECONDS: Final = 40.0
"""How long a call waits unless it says otherwise; the clients that wait least give up after 60 seconds."""

_POLL_SECONDS: Final = 0.1
"""How often a run that another process drives is tried again."""

_OF_THE_CALLER: Final = frozenset({ANSWER, RunBusyError.code, SCOPE_HELD})
"""Codes of errors that only the call which handed an answer in gets: the others of the same drive did nothing wrong."""


@dataclass
class _Drive:
    """One drive of one run in a thread of its own.

    It hands in `answers` by role, each for its ask id in `asks`, and waits until `patience_until` (monotonic seconds)
    for another process that drives the run. `taken` is set once the answers were handed in, or will not be; `halted`
    while it has ended or waits for files that the holders of `queued` have.
    """

    run_id: str
    answers: Mapping[str, str]
    asks: Mapping[str, str]
    patience_until: float
    taken: threading.Event = field(default_factory=threading.Event)
    halted: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    queued: tuple[Mapping[str, Any], ...] = ()
    view: "RunView | None" = None
    error: Exception | None = None
    reported: bool = False


class Drives:
    """The runs of one root that this process drives, each in at most one thread.

    A run whose process ended goes on where it was at its next drive. A process that ends by itself while `busy` names a
    run waits for the agents that are at work there, since LangGraph asks them in threads that Python waits for; whoever
    does not want that ends it with `os._exit`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._drives: dict[str, _Drive] = {}
        self._guard = threading.Lock()

    def advance(
        self,
        run_id: str,
        *,
        answers: Mapping[str, str] | None = None,
        asks: Mapping[str, str] | None = None,
        wait_seconds: float = WAIT_SECONDS,
        until_queued: bool = False,
    ) -> "RunView":
        """Take a run on and return its view, at the latest after the given time. Safe to repeat.

        A run that is already driven is not driven twice: the call waits for that drive. Answers are handed in after
        it. When the time is over first, the view has the phase `running`; the drive goes on, and the next call joins
        it.

        Args:
            run_id: The run, made by `start_run`.
            answers: Responses by role name, for roles that the run waits for. A call that returns has handed them in.
            asks: By role name the ask id that its response is for.
            wait_seconds: How long to wait; 0 starts the drive and looks.
            until_queued: Return at once when the run waits for files that others hold.

        Raises:
            UnknownRunError, RunDamagedError: See `graph.errors`.
            RunBusyError: The run was driven all the time, here or by another process; the answers were not handed in.
            GraphError: An answer is not waited for, others held files of the scope all the time, or the leases of the
                run cannot be taken or kept; the answers were not handed in.
            RunnerError: An agent of an earlier or of this drive gave no answer; the run can be taken on.
        """
        until = time.monotonic() + wait_seconds
        given = dict(answers or {})
        drive, started = self._join_or_start(_Drive(run_id, given, dict(asks or {}), until))
        # Answers are never added to a drive that began without them: it may have passed the role that they are for.
        while given and not started:
            if not drive.ended.wait(_left(until)):
                raise _busy(run_id)
            drive, started = self._join_or_start(_Drive(run_id, given, dict(asks or {}), until))
        if given:
            # Not bounded by the time of the call: whether an answer was handed in must be known when it returns.
            drive.taken.wait()
        (drive.halted if until_queued else drive.ended).wait(_left(until))
        if not drive.ended.is_set():
            return self.look(run_id)
        try:
            return self._outcome(drive)
        except InterlockError as error:
            if given or error.code not in _OF_THE_CALLER:
                raise
            return self.look(run_id)

    def look(self, run_id: str) -> "RunView":
        """Return the view of a run without taking it on; `running` while a process drives it.

        What such a run asks may be answered already, so that nobody is waited for.

        Raises:
            UnknownRunError, RunDamagedError: See `graph.errors`.
        """
        from interlock.graph.task.runs import view_run  # noqa: PLC0415

        driven = self._driven(run_id)
        view = view_run(run_id, root=self.root)
        if not driven or view.phase == "done":
            return view
        return replace(view, phase="running", waiting=(), queued=self._queued(run_id))

    def keep_files(self, view: "RunView", worker: str | None = None) -> None:
        """Renew what a run holds that waits for an answer; see `graph.runs.keep_files`."""
        from interlock.graph.task.runs import keep_files  # noqa: PLC0415

        keep_files(view, root=self.root, worker=worker)

    def _queued(self, run_id: str) -> tuple[Mapping[str, Any], ...]:
        with self._guard:
            drive = self._drives.get(run_id)
        return () if drive is None or drive.ended.is_set() else drive.queued

    def _driven(self, run_id: str) -> bool:
        return run_id in self.busy() or RunStore(self.root, run_id).driven()

    def busy(self) -> tuple[str, ...]:
        """Return the runs that this process drives at this moment."""
        with self._guard:
            return tuple(run_id for run_id, drive in self._drives.items() if not drive.ended.is_set())

    def _join_or_start(self, new: _Drive) -> tuple[_Drive, bool]:
        """Return the drive that is under way and False, or the new one and True; raise an error not reported yet."""
        with self._guard:
            drive = self._drives.get(new.run_id)
            if drive is not None and not drive.ended.is_set():
                return drive, False
            # Nobody waited for that drive any more. Its error is told once, to the next who asks; then the run goes on.
            if drive is not None and drive.error is not None and not drive.reported:
                drive.reported = True
                if getattr(drive.error, "code", "") not in _OF_THE_CALLER:
                    raise drive.error
            self._drives[new.run_id] = new
            threading.Thread(target=self._run, args=(new,), name=f"drive {new.run_id}", daemon=True).start()
            return new, True

    def _run(self, drive: _Drive) -> None:
        try:
            drive.view = self._drive(drive)
        except Exception as error:  # noqa: BLE001 - a thread has nobody to raise to: `advance` raises it
            drive.error = error
        except SystemExit as error:
            drive.error = RunnerError(
                f"an agent's function ended run {drive.run_id} with sys.exit({error.code})",
                "Let the function raise RunnerError(message, fix); the run goes on at its next drive.",
            )
        finally:
            with self._guard:
                if drive.error is None:
                    del self._drives[drive.run_id]
                drive.ended.set()
                drive.halted.set()
                drive.taken.set()

    def _drive(self, drive: _Drive) -> "RunView":
        from interlock.graph.task.runs import drive as drive_run  # noqa: PLC0415 - LangGraph takes a second to import

        def notice(step: Mapping[str, Any]) -> None:
            if step["kind"] == "queued":
                drive.queued = tuple(step["blockers"])
                drive.halted.set()
            elif step["kind"] == "unqueued":
                drive.halted.clear()
                drive.queued = ()
            elif step["kind"] not in LEASE_STEPS:
                drive.taken.set()

        while True:
            try:
                return drive_run(
                    drive.run_id,
                    root=self.root,
                    answers=drive.answers,
                    asks=drive.asks,
                    notice=notice,
                    # An answer belongs to a call that waits for it; a run without one waits for its files by itself.
                    queue_seconds=_left(drive.patience_until) if drive.answers else None,
                )
            except RunBusyError:
                if time.monotonic() + _POLL_SECONDS >= drive.patience_until:
                    raise
                time.sleep(_POLL_SECONDS)

    def _outcome(self, drive: _Drive) -> "RunView":
        with self._guard:
            if drive.error is not None:
                drive.reported = True
                raise drive.error
        assert drive.view is not None, "a drive that ended without an error has a view"
        return drive.view


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())


def _busy(run_id: str) -> RunBusyError:
    return RunBusyError(
        f"run {run_id} is being driven, and it did not come to a stop in time; the answer was not handed in",
        "Check the state of the run, and hand the answer in once the run waits for it.",
    )
