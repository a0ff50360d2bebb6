"""Planted bugs: what a store or a rule could get wrong, each of which the checker must find in the history."""

import random
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from interlock.reservations.leases import calls, fencing, granting, liveness, wait_queue
from interlock.reservations.leases.granting import Look, Wanted
from interlock.reservations.leases.runtime import Entry
from interlock.reservations.store.records import Lease, Waiter, replace
from interlock.reservations.store.sqlite import SqliteStore
from interlock.reservations.store.sqlite_rows import Transaction

if TYPE_CHECKING:
    from tests.reservations.lock_safety.worker import Worker

SLIP_SECONDS: Final = 0.02
"""What lies between a check and its action, where a bug lets something come in between."""


@dataclass(frozen=True, slots=True)
class Bug:
    """One planted bug.

    Args:
        plant: Puts it into a worker's process.
        breaks: The promises of the checker of which at least one must be found broken.
        seconds: How long a run takes in which it usually shows.
        fails: The rules may also fail over what it makes of the store.
    """

    plant: Callable[["Worker"], None]
    breaks: frozenset[str]
    seconds: float = 1.0
    fails: bool = False


def no_transaction(worker: "Worker") -> None:
    """Every statement is a transaction of its own: nobody waits for a turn."""

    @contextmanager
    def transaction(self: SqliteStore) -> Generator[Transaction]:
        with self._writer.taken() as link:  # pyright: ignore[reportPrivateUsage]
            rows = Transaction(link.current())
            yield rows
            rows.end()

    SqliteStore.transaction = transaction


def check_before(worker: "Worker") -> None:
    """What is in the way is looked up in one transaction, and the lease is put in the next."""
    real_look, real_attempt = granting.look, calls._attempt  # pyright: ignore[reportPrivateUsage]
    known: dict[tuple[str, ...], list[Look]] = {}

    def look(entry: Entry, agent: str, wanted: Wanted, ahead: Sequence[Waiter], **more: Any) -> list[Look]:
        if agent == worker.caller.name and wanted.texts in known:
            return known[wanted.texts]
        return real_look(entry, agent, wanted, ahead, **more)

    def attempt(ctx: Any, asked: Any, *more: Any) -> Any:
        with calls.entered(ctx) as entry:
            place = wait_queue.place_of(entry, asked.wanted)
            front = wait_queue.ahead(entry, ctx.caller.name, place)
            found = real_look(entry, ctx.caller.name, asked.wanted, front)
        time.sleep(SLIP_SECONDS)
        known[asked.wanted.texts] = found
        try:
            return real_attempt(ctx, asked, *more)
        finally:
            known.clear()

    granting.look, calls._attempt = look, attempt  # pyright: ignore[reportPrivateUsage]


def token_twice(worker: "Worker") -> None:
    """Now and then a token is given a second time."""
    real = Transaction.next_number

    def next_number(self: Transaction, counter: str) -> int:
        number = real(self, counter)
        return max(1, number - random.randint(0, 2))

    Transaction.next_number = next_number


def guard_remembers(worker: "Worker") -> None:
    """The guard goes by what the agent remembers: it never sees that a lease has expired or was taken over."""
    real = fencing._covering  # pyright: ignore[reportPrivateUsage]
    worker.lives, worker.holds = (1.0, 1.0), 0.0

    def reserve() -> None:
        free = [path for path in worker.paths if path not in {row["pattern"] for row in worker.held.values()}]
        if free:
            worker.ask([worker.rng.choice(free)], exclusive=True, wait=0.0)

    worker.reserve, worker.release, worker.renew = reserve, lambda: None, lambda: None

    def covering(entry: Entry, paths: Sequence[str]) -> tuple[dict[str, Lease], list[Any]]:
        for path in paths:
            for row in worker.held.values():
                if row["exclusive"] and granting.collides(granting.pattern_of(path), row["pattern"], exclusive=True):
                    return dict.fromkeys(paths, _as_remembered(worker, row, entry.now)), []
        return real(entry, paths)

    fencing._covering = covering  # pyright: ignore[reportPrivateUsage]


def _as_remembered(worker: "Worker", row: dict[str, Any], now: float) -> Lease:
    """Return a lease as its holder remembers it, whatever became of it."""
    return Lease(
        reservation_id=row["reservation_id"], agent=worker.caller.name, pattern=row["pattern"],
        prefix=granting.pattern_of(row["pattern"]).prefix, exclusive=row["exclusive"], no_force=False, claim=False,
        reason="", token=row["token"], granted_at=now, renewed_at=now, expires_at=now + 2.0,
    )  # fmt: skip


def renews_ended(worker: "Worker") -> None:
    """Asking again for what was held puts the old lease back, whoever has it by now."""

    def renew() -> None:
        if not worker.ended:
            return
        row = worker.ended[-1]
        start = worker.note("call", call="reserve", asked=[row["pattern"]], exclusive=True, ttl=2.0, wait=0)
        with calls.entered(worker.calls) as entry:
            lease = _as_remembered(worker, row, entry.now)
            entry.tx.put_lease(lease)
            entry.event("lease_renewed", **granting.facts(lease))
        worker.note("granted", start=start, until=start + 2.0, rows=[row], merged=[], codes=[])

    worker.renew = renew


def takes_from_living(worker: "Worker") -> None:
    """Every holder counts as dead."""
    liveness.is_takeable = lambda entry, lease: True


def jumps_the_queue(worker: "Worker") -> None:
    """Nobody is in front."""
    worker.waits = (0.0, 1.0)
    wait_queue.ahead = lambda entry, agent, place: []


def keeps_released(worker: "Worker") -> None:
    """A release is acknowledged, and half of them are forgotten."""
    real = Transaction.drop_lease

    def drop_lease(self: Transaction, reservation_id: str) -> None:
        if int(reservation_id[-1], 16) % 2:
            real(self, reservation_id)

    Transaction.drop_lease = drop_lease


def expires_early(worker: "Worker") -> None:
    """To others a lease counts as expired long before its time."""
    real = granting.look

    def look(entry: Entry, agent: str, wanted: Wanted, ahead: Sequence[Waiter], **more: Any) -> list[Look]:
        return list(_without_older(entry, real(entry, agent, wanted, ahead, **more)))

    granting.look = look


def _without_older(entry: Entry, looks: Sequence[Look]) -> Iterator[Look]:
    """Yield looks in which no lease counts that is older than a moment."""
    for found in looks:
        held = tuple(
            each for each in found.blockers if isinstance(each, Waiter) or entry.now < each.renewed_at + SLIP_SECONDS
        )
        yield replace(found, blockers=held)


BUGS: Final = {
    "no_transaction": Bug(no_transaction, frozenset({"one holder", "replay", "tokens rise"}), seconds=2, fails=True),
    "check_before": Bug(check_before, frozenset({"one holder", "replay"})),
    "token_twice": Bug(token_twice, frozenset({"tokens rise"})),
    "guard_remembers": Bug(guard_remembers, frozenset({"fencing", "uses alone"}), seconds=2.5),
    "renews_ended": Bug(renews_ended, frozenset({"gone"})),
    "takes_from_living": Bug(takes_from_living, frozenset({"takeovers"})),
    "jumps_the_queue": Bug(jumps_the_queue, frozenset({"replay"})),
    "keeps_released": Bug(keeps_released, frozenset({"gone"})),
    "expires_early": Bug(expires_early, frozenset({"one holder"})),
}
