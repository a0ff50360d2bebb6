"""The leases of a run: an agent of its own, whose process is the one that drives it, and who lends what it holds.

The hooks of a worker's client know the worker by its own name: they would refuse it the files of its own task. So a
run that waits for a worker gives its leases into the worker's hands, and takes them back when it is driven again.
Each move gets a new fencing token, so that the old holder's counts no more.

A run that waits is nobody's process, and its files hold work that no gate has judged: it is alive for as long as its
leases last, which is `max_ttl_minutes` from when it began to wait.
"""

import json
from collections.abc import Sequence
from typing import Final

from interlock.reservations.answers import ReserveAnswer
from interlock.reservations.leases import calls, granting, marks, wait_queue
from interlock.reservations.leases.runtime import Caller, Context, Entry
from interlock.reservations.store.records import Lease, key_of, replace

_LENT: Final = "lent"
"""The mark with the ids of what a run has lent."""


class LentLeases(Context):
    """What a run holds, or has lent; the caller is the run as an agent.

    Every method raises `ReservationError` where the store cannot be used.
    """

    def begin(self) -> bool:
        """Make the caller's process, or none, the one of the run, and take back what was lent.

        Returns:
            Whether the run holds anything.
        """
        mine = self.caller
        with calls.entered(self) as entry:
            agent = entry.agent
            if (agent.host, agent.pid, agent.started) != (mine.host, mine.pid, mine.started):
                entry.tx.put_agent(replace(agent, host=mine.host, pid=mine.pid, started=mine.started))
            for lease in self._lent(entry):
                granting.move(entry, lease, mine.name, entry.now + self._ttl_seconds)
            return bool(entry.tx.leases_of(mine.name))

    def rest(self) -> None:
        """Keep everything without a process, for `max_ttl_minutes` from now."""
        with calls.entered(self) as entry:
            entry.tx.put_agent(replace(entry.agent, pid=None, started=""))
            for lease in entry.tx.leases_of(self.caller.name):
                self._renew(entry, lease, self.runtime.settings.max_ttl_minutes * 60)

    def lend(self, worker: Caller) -> None:
        """Give what the run holds, and what it has lent before, to the agent that works for it."""
        with calls.entered(Context(self.runtime, worker)) as entry:
            held = [*entry.tx.leases_of(self.caller.name), *self._lent(entry)]
            for lease in held:
                if key_of(lease.agent) == key_of(worker.name):
                    self._renew(entry, lease)
                else:
                    granting.move(entry, lease, worker.name, entry.now + self._ttl_seconds)
            ids = json.dumps([lease.reservation_id for lease in held])
            marks.put(entry, self.caller.name, _LENT, ids)

    def renew(self) -> None:
        """Renew what the run holds, unless that was done lately; what is lent is its worker's to renew."""
        with calls.entered(self) as entry:
            entry.tx.put_agent(replace(entry.agent, pid=None, started=""))  # the caller only looks after it
            for lease in entry.tx.leases_of(self.caller.name):
                self._renew(entry, lease)

    def reserve(self, patterns: Sequence[str], reason: str, wait_seconds: float = 0) -> ReserveAnswer:
        """Reserve patterns, all or none; see `Reservations.reserve_files`."""
        return calls.reserve(self, patterns, reason=reason, wait_seconds=wait_seconds)

    def release_all(self) -> None:
        """Release everything, and leave the wait queue."""
        calls.release_all(self, report_unsaved=False)

    def leave_queue(self, why: str) -> None:
        """Leave the wait queue; what the run holds, it keeps."""
        with calls.entered(self) as entry:
            wait_queue.leave_all(entry, why)

    def _lent(self, entry: Entry) -> list[Lease]:
        """Return what the run has lent and nobody is acting under."""
        lent: list[str] = json.loads(entry.tx.remembered(self.caller.name, _LENT) or "[]")
        leases = [lease for reservation_id in lent if (lease := entry.tx.lease(reservation_id)) is not None]
        mine = key_of(self.caller.name)
        return [lease for lease in leases if key_of(lease.agent) != mine and lease.held_until <= entry.now]

    def _renew(self, entry: Entry, lease: Lease, seconds: float | None = None) -> None:
        until = entry.now + (seconds or self._ttl_seconds)
        if until - lease.expires_at > self._ttl_seconds / 3:
            renewed = replace(lease, claim=False, renewed_at=entry.now, expires_at=until)
            entry.tx.put_lease(renewed)
            entry.event("lease_renewed", **granting.facts(renewed))

    @property
    def _ttl_seconds(self) -> float:
        return self.runtime.settings.ttl_minutes * 60
