"""Planted bugs: what a store or a rule could get wrong, each of which the checker must find in the history."""

import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from interlock.reservations.leases import liveness, wait_queue
from interlock.reservations.store import postgres
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
        shared: It is one of the store in PostgreSQL.
    """

    plant: Callable[["Worker"], None]
    breaks: frozenset[str]
    seconds: float = 1.0
    fails: bool = False
    shared: bool = False


def no_transaction(worker: "Worker") -> None:
    """Every statement is a transaction of its own: nobody waits for a turn."""

    @contextmanager
    def transaction(self: SqliteStore) -> Generator[Transaction]:
        with self._writer.taken() as link:  # pyright: ignore[reportPrivateUsage]
            rows = Transaction(link.current())
            yield rows
            rows.end()

    SqliteStore.transaction = transaction


def no_lock(worker: "Worker") -> None:
    """Transactions do not wait for each other, and read what is committed."""
    begin = postgres._BEGIN.replace("pg_advisory_xact_lock(", "(")  # pyright: ignore[reportPrivateUsage]
    setattr(postgres, "_BEGIN", begin)  # noqa: B010 - it is final


def token_twice(worker: "Worker") -> None:
    """Now and then a token is given a second time."""
    real = Transaction.next_number

    def next_number(self: Transaction, counter: str) -> int:
        number = real(self, counter)
        return max(1, number - random.randint(0, 2))

    Transaction.next_number = next_number


def takes_from_living(worker: "Worker") -> None:
    """Every holder counts as dead."""
    liveness.is_takeable = lambda entry, lease: True


def jumps_the_queue(worker: "Worker") -> None:
    """Nobody is in front."""
    worker.waits = (0.0, 1.0)
    wait_queue.ahead = lambda entry, agent, place: []


BUGS: Final = {
    "no_transaction": Bug(no_transaction, frozenset({"one holder", "replay", "tokens rise"}), seconds=2, fails=True),
    "no_lock": Bug(no_lock, frozenset({"one holder", "replay", "tokens rise"}), seconds=2, fails=True, shared=True),
    "token_twice": Bug(token_twice, frozenset({"tokens rise"})),
    "takes_from_living": Bug(takes_from_living, frozenset({"takeovers"})),
    "jumps_the_queue": Bug(jumps_the_queue, frozenset({"replay"})),
}
