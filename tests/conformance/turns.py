"""The turns of a store as tests: who may write when, what is undone, and what others see of it."""

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TypeAlias

import pytest

from interlock.reservations import Transaction
from interlock.reservations.errors import StoreError
from tests.child import Child, python
from tests.conformance.rows import Backend, SharedBackend, Store, agent, lease, message, negotiation, waiter

Start: TypeAlias = Callable[..., Child]

COUNT = """
import sys
print("ready", flush=True)
sys.stdin.readline()
for _ in range(50):
    with store.transaction() as tx:
        number = tx.next_number("token")
        tx.bind_process("h", number, "", sys.argv[1], 1.0)
    print(number)
"""

HOLD = """
import sys
with store.transaction() as tx:
    tx.bind_process("h", 1, "", "held", 1.0)
    print("held", flush=True)
    sys.stdin.readline()
print("done", flush=True)
sys.stdin.readline()
"""


def fill(tx: Transaction) -> None:
    """Write into every table."""
    tx.next_number("token")
    tx.bind_process("h", 1, "", "Ada", 1.0)
    tx.put_agent(agent())
    tx.put_lease(lease())
    tx.add_waiter(waiter())
    tx.add_message(message())
    tx.put_negotiation(negotiation())
    tx.remember("Ada", "key", "answer", 1.0)
    tx.add_event("/one", "lease_granted", "{}", 1.0)


def counts(tx: Transaction) -> list[int]:
    """Return how many rows each table has, and what the counter gives next."""
    rows = (
        tx.agents(),
        tx.leases(),
        tx.waiters(),
        tx.thread("neg_1"),
        tx.open_negotiations(),
        tx.events("/one", 9),
        [each for each in (tx.remembered("Ada", "key"), tx.agent_of_process("h", 1, "")) if each],
    )
    return [*map(len, rows), tx.next_number("token")]


def change(tx: Transaction) -> None:
    """Change or end what `fill` wrote."""
    tx.drop_lease(lease().reservation_id)
    tx.put_agent(agent(last_seen=9999.0))
    tx.drop_waiter(tx.waiters()[0].waiter_id)
    tx.drop_events([tx.events("/one", 1)[0].event_id])
    tx.forget(before=1e12)


def undo(store: Store, work: Callable[[Transaction], None], error: BaseException | None = None) -> None:
    """Do some work in a transaction that ends in an exception, and see that very exception come out."""
    error = error or ValueError("no")

    def fail() -> None:
        with store.transaction() as tx:
            work(tx)
            raise error

    with pytest.raises(type(error)) as caught:
        fail()
    assert caught.value is error


class TurnsContract:
    """One transaction at a time, all or nothing."""

    @pytest.mark.parametrize(
        "error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)], ids=lambda e: type(e).__name__
    )
    def test_an_exception_undoes_everything_and_goes_on_its_way(self, backend: Backend, error: BaseException) -> None:
        store = backend.open()
        undo(store, fill, error)
        with store.transaction() as tx:
            assert counts(tx) == [0, 0, 0, 0, 0, 0, 0, 1]

    def test_an_exception_undoes_changes_and_ends_too(self, backend: Backend) -> None:
        store = backend.open()
        with store.transaction() as tx:
            fill(tx)
        undo(store, change)
        with store.transaction() as tx:
            assert counts(tx) == [1, 1, 1, 1, 1, 1, 2, 2]
            assert tx.agent("Ada") == agent()

    def test_a_transaction_that_has_ended_is_of_no_use(self, backend: Backend) -> None:
        store = backend.open()
        with store.transaction() as tx:
            pass
        with pytest.raises(RuntimeError):
            tx.put_lease(lease())
        with store.transaction() as later:
            assert later.leases() == []
            with pytest.raises(RuntimeError):
                tx.leases()

    def test_a_transaction_inside_another_is_a_mistake_that_is_told_at_once(self, backend: Backend) -> None:
        store = backend.open()
        with store.transaction() as tx:
            tx.put_lease(lease())
            with pytest.raises(RuntimeError), store.transaction():
                pass
        with store.transaction() as tx:
            assert len(tx.leases()) == 1

    def test_a_second_thread_waits_until_the_first_has_ended(self, backend: Backend) -> None:
        store, inside, asked = backend.open(), Event(), Event()
        order: list[str] = []

        def first() -> None:
            with store.transaction() as tx:
                inside.set()
                assert asked.wait(30)
                tx.put_lease(lease())
                order.append("first")

        def second() -> None:
            assert inside.wait(30)
            asked.set()
            with store.transaction() as tx:
                order.append("second" if tx.leases() else "too early")

        with ThreadPoolExecutor(2) as pool:
            for ended in [pool.submit(first), pool.submit(second)]:
                ended.result()
        assert order == ["first", "second"]

    def test_threads_never_get_the_same_number(self, backend: Backend) -> None:
        shared = backend.open()

        def work(number: int) -> list[int]:
            store = shared if number % 2 else backend.open()
            given: list[int] = []
            for _ in range(25):
                with store.transaction() as tx:
                    given.append(tx.next_number("token"))
            return given

        with ThreadPoolExecutor(8) as pool:
            given = [number for numbers in pool.map(work, range(8)) for number in numbers]
        assert sorted(given) == list(range(1, 201))

    def test_who_does_not_get_its_turn_in_time_is_told_so_and_may_try_again(self, backend: Backend) -> None:
        mine, other = backend.open(), backend.open(patience_seconds=0.05)
        inside, leave = Event(), Event()

        def hold() -> None:
            with mine.transaction() as tx:
                tx.put_lease(lease())
                inside.set()
                assert leave.wait(30)

        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(hold)
            assert inside.wait(30)
            with pytest.raises(StoreError) as caught, other.transaction():
                pass
            leave.set()
            held.result()
        assert caught.value.fix
        with other.transaction() as tx:
            assert len(tx.leases()) == 1

    def test_the_stamp_tells_of_every_write_and_of_nothing_else(self, backend: Backend) -> None:
        mine, other = backend.open(), backend.open()
        with mine.transaction() as tx:
            tx.next_number("token")
        stamps = [mine.stamp()]
        assert mine.stamp() == stamps[0]
        for store in (other, mine):
            with store.transaction() as tx:
                tx.leases()
            assert mine.stamp() == stamps[-1]
            undo(store, fill)
            assert mine.stamp() == stamps[-1]
            with store.transaction() as tx:
                tx.put_lease(lease())
            stamps.append(mine.stamp())
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self._write, backend).result()
        stamps.append(mine.stamp())
        assert len({repr(stamp) for stamp in stamps}) == 4

    @staticmethod
    def _write(backend: Backend) -> None:
        with backend.open().transaction() as tx:
            tx.put_lease(lease())

    def test_the_stamp_of_a_store_that_nobody_used_can_be_asked(self, backend: Backend) -> None:
        store = backend.open()
        first = store.stamp()
        self._write(backend)
        assert store.stamp() != first

    def test_a_closed_store_opens_again_with_everything_in_it(self, backend: Backend) -> None:
        store = backend.open()
        store.close()
        with store.transaction() as tx:
            fill(tx)
        store.stamp()
        store.close()
        store.close()
        with store.transaction() as tx:
            assert counts(tx) == [1, 1, 1, 1, 1, 1, 2, 2]


class ProcessesContract:
    """The same between processes, for stores that several may open."""

    @pytest.fixture
    def python(self, backend: SharedBackend) -> Start:
        """Give a function that runs a program on the same rows in another process."""

        def start(program: str, *arguments: str) -> Child:
            return python(backend.program() + program, *arguments)

        return start

    def test_processes_never_get_the_same_number(self, backend: Backend, python: Start) -> None:
        workers = [python(COUNT, f"worker-{number}") for number in range(4)]
        assert {worker.line() for worker in workers} == {"ready\n"}
        given: list[int] = []
        for worker in workers:
            worker.say("go")
        for worker in workers:
            given += map(int, worker.communicate()[0].split())
            assert worker.returncode == 0
        assert sorted(given) == list(range(1, 201))
        with backend.open().transaction() as tx:
            owners = {number: tx.agent_of_process("h", number, "") for number in given}
        assert [list(owners.values()).count(f"worker-{number}") for number in range(4)] == [50] * 4

    @contextmanager
    def _held(self, holder: Child) -> Generator[None]:
        assert holder.line() == "held\n"
        try:
            yield
        finally:
            holder.kill()
            holder.communicate()

    def test_another_process_is_kept_out_until_the_transaction_ends(self, backend: Backend, python: Start) -> None:
        store = backend.open(patience_seconds=0.05)
        holder = python(HOLD)
        with self._held(holder):
            with pytest.raises(StoreError), store.transaction():
                pass
            holder.say("")
            assert holder.line() == "done\n"
            with store.transaction() as tx:
                assert tx.agent_of_process("h", 1, "") == "held"

    def test_what_a_killed_process_had_begun_is_undone_and_blocks_nobody(self, backend: Backend, python: Start) -> None:
        store = backend.open()
        with self._held(python(HOLD)):
            pass
        with store.transaction() as tx:
            assert tx.agent_of_process("h", 1, "") is None
