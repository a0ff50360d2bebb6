"""What the store in PostgreSQL promises beyond the contract: turns that are lost, numbers, clocks, plans, errors."""

import os
import signal
import time
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from interlock.core.database import HELD_SECONDS, Database, DatabaseError, database
from interlock.reservations import SqliteStore, copy_rows, place
from interlock.reservations.errors import StoreError
from interlock.reservations.store import postgres as module
from interlock.reservations.store.postgres import SKEW_SECONDS, PostgresStore
from interlock.reservations.store.sqlite_rows import Transaction, near_query
from tests.child import Child, python
from tests.conformance.rows import lease, negotiation, waiter
from tests.conformance.turns import fill, undo
from tests.reservations.databases import set_up

if TYPE_CHECKING:
    from tests.postgres import Server

OPENING = """
import os, random, sys, time
from interlock.core.database import database
from interlock.reservations import SqliteStore, copy_rows, place
from interlock.reservations.errors import StoreError
from interlock.reservations.store.postgres import PostgresStore
store = PostgresStore(database(sys.argv[1]), "")
"""

FREEZES = (
    OPENING
    + """
try:
    with store.transaction() as tx:
        tx.next_number("token")
        print("inside", flush=True)
        sys.stdin.readline()
        tx.next_number("token")
except StoreError as error:
    print(error.code, bool(error.fix), flush=True)
with store.transaction() as tx:
    print(tx.next_number("token"))
"""
)

BOOKS = (
    OPENING
    + """
from interlock.reservations import process
from interlock.reservations.leases.runtime import Caller, Runtime
from interlock.reservations.service import Reservations

folder = sys.argv[2]
caller = Caller(f"p{os.getpid()}", "agent", folder, "run", process.host(), *process.own())
agent = Reservations(Runtime(store), caller)
done, end = 0, time.monotonic() + 5
while time.monotonic() < end:
    path = f"f{random.randrange(6)}"
    answer = agent.reserve_files([path])
    if answer["errors"]:
        continue
    os.close(os.open(f"{folder}/{path}.held", os.O_CREAT | os.O_EXCL))
    os.unlink(f"{folder}/{path}.held")
    agent.release_files([row["reservation_id"] for row in answer["reservations"]])
    done += 1
print(done)
"""
)


@pytest.fixture
def store(empty_reservations: str) -> PostgresStore:
    return PostgresStore(database(empty_reservations), "")


@pytest.fixture
def other(reservations_database: str) -> PostgresStore:
    """Give the same rows with connections of its own, as on another machine."""
    return PostgresStore(Database(reservations_database), "")


# -- turns


@pytest.mark.long
def test_eight_processes_that_book_at_once_never_book_twice(
    store: PostgresStore, empty_reservations: str, tmp_path: Path
) -> None:
    people = [python(BOOKS, empty_reservations, tmp_path) for _ in range(8)]
    booked = [int(person.communicate(timeout=60)[0]) for person in people]
    assert [person.returncode for person in people] == [0] * 8
    assert min(booked) > 0
    with store.transaction() as tx:
        assert tx.leases() == []
        assert len([event for event in tx.events(None, 10**6) if event.type == "lease_granted"]) == sum(booked)


@pytest.mark.long
def test_who_is_frozen_in_its_turn_loses_it_and_writes_nothing_when_it_comes_back(
    store: PostgresStore, empty_reservations: str
) -> None:
    frozen = python(FREEZES, empty_reservations)
    try:
        assert frozen.line() == "inside\n"
        frozen.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        with store.transaction() as tx:
            assert tx.next_number("token") == 1
        assert time.monotonic() - begun < HELD_SECONDS + 3
        frozen.send_signal(signal.SIGCONT)
        frozen.say("")
        assert frozen.rest().splitlines() == ["RSV901 True", "2"]
    finally:
        frozen.kill()
        frozen.communicate()


def test_a_connection_that_was_cut_between_two_turns_is_made_again(
    postgres: "Server", reservations_database: str, store: PostgresStore
) -> None:
    with store.transaction() as tx:
        tx.put_lease(lease())
    assert postgres.cut_connections(reservations_database) > 0
    with store.transaction() as tx:
        assert tx.leases() == [lease()]


def test_a_connection_that_is_cut_in_the_middle_undoes_all_of_it(
    postgres: "Server", reservations_database: str, store: PostgresStore
) -> None:
    def work(tx: Transaction) -> None:
        tx.put_lease(lease())
        postgres.cut_connections(reservations_database)
        tx.leases()

    with pytest.raises(StoreError) as caught, store.transaction() as tx:
        work(tx)
    assert (caught.value.code, "psql" in caught.value.fix) == ("RSV903", True)
    with store.transaction() as tx:
        assert tx.leases() == []


# -- numbers


def test_what_is_undone_and_a_crash_of_the_server_leave_no_gap_in_the_events(postgres: "Server") -> None:
    def note(tx: Transaction) -> None:
        tx.add_event("/one", "looked", "{}", 1.0)

    with postgres.database() as address:
        set_up(address)
        store = PostgresStore(Database(address), "")
        for _ in range(3):
            with store.transaction() as tx:
                note(tx)
            undo(store, note)
        postgres.restart(immediate=True)
        with store.transaction() as tx:
            note(tx)
            assert [event.event_id for event in tx.events(None, 9)] == [1, 2, 3, 4]
            assert tx.event_count() == 4


def test_a_store_that_is_copied_goes_on_with_its_numbers(
    empty_reservations: str, store: PostgresStore, tmp_path: Path
) -> None:
    local = SqliteStore(place.at(str(tmp_path)).store_path)
    with local.transaction() as tx:
        fill(tx)
        name = tx.store_id()
        tx.drop_waiter(tx.waiters()[0].waiter_id)
    assert copy_rows(tmp_path, database(empty_reservations)) == 7
    with store.transaction() as tx, local.transaction() as before:
        assert tx.store_id() == name
        for ask in (Transaction.agents, Transaction.leases, Transaction.open_negotiations):
            assert ask(tx) == ask(before)
        assert tx.thread("neg_1") == before.thread("neg_1")
        assert tx.events(None, 9) == before.events(None, 9)
        assert (tx.next_number("token"), tx.event_count(), tx.add_waiter(waiter()).waiter_id) == (2, 1, 2)
        tx.put_negotiation(negotiation(2))
        assert [row.thread_id for row in tx.open_negotiations()] == [negotiation(1).thread_id, negotiation(2).thread_id]
    assert copy_rows(tmp_path, database(empty_reservations)) == 0


# -- clocks


@pytest.mark.parametrize("off", [-SKEW_SECONDS - 1, SKEW_SECONDS + 1])
def test_a_machine_whose_clock_is_off_is_refused(
    store: PostgresStore, off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(time=lambda: time.time() + off, monotonic=time.monotonic, sleep=time.sleep)
    monkeypatch.setattr(module, "time", clock)
    with pytest.raises(StoreError) as caught, store.transaction():
        pass
    assert (caught.value.code, "NTP" in caught.value.fix) == ("RSV903", True)
    clock.time = lambda: time.time() + off * 0.5
    with store.transaction():
        """Half of it passes."""


# -- plans


@pytest.fixture
def english(postgres: "Server") -> Generator[PostgresStore]:
    """Give a store in a database that sorts texts as an English dictionary does."""
    postgres.run("CREATE DATABASE english TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'")
    address = postgres.address("english")
    set_up(address)
    yield PostgresStore(database(address), "")
    postgres.run("DROP DATABASE english WITH (FORCE)")


def test_a_check_among_ten_thousand_leases_reads_the_index_alone(english: PostgresStore) -> None:
    above = ["", "part_7/", "part_7/module_00007.py"]
    with english.transaction() as tx:
        tx.put_lease(lease(0, prefix="x"))
        copies = "INSERT INTO lease SELECT 'rsv_' || n, agent, pattern, format('part_%s/module_%s.py', n % 100, n)"
        others = "exclusive, no_force, claim, reason, token, granted_at, renewed_at, expires_at, agent_key, held_until"
        query = f"{copies}, {others}, root, branch FROM lease, generate_series(1, 10000) AS n"
        tx._run(query)  # pyright: ignore[reportPrivateUsage]
        statement, values = near_query(above, above[-1])
        plan = tx._run(f"EXPLAIN {statement}", values)  # pyright: ignore[reportPrivateUsage]
        text = "\n".join(row[0] for row in plan)
    assert text.count("lease_prefix") >= 2
    assert "Seq Scan" not in text


def test_text_is_compared_by_its_bytes_however_the_database_sorts(english: PostgresStore) -> None:
    with english.transaction() as tx:
        for number, prefix in enumerate(("a/Z", "a/a", "a/_", "a/ä", "A/a")):
            tx.put_lease(lease(number, prefix=prefix))
        found = tx._run("SELECT prefix FROM lease ORDER BY prefix")  # pyright: ignore[reportPrivateUsage]
        assert [row[0] for row in found] == ["A/a", "a/Z", "a/_", "a/a", "a/ä"]
        assert len(tx.near((), "a/")) == 4


# -- what goes wrong


def test_a_server_that_is_gone_is_named_and_comes_back(postgres: "Server", other: PostgresStore) -> None:
    other._database.patience = 0.3  # pyright: ignore[reportPrivateUsage]
    try:
        postgres.stop(immediate=True)
        for use in (lambda: other.transaction().__enter__(), other.stamp):
            with pytest.raises(StoreError) as caught:
                use()
            assert (caught.value.code, "psql" in caught.value.fix) == ("RSV903", True)
    finally:
        postgres.start()
    with other.transaction() as tx:
        assert len(tx.store_id()) == 16


def test_a_database_without_tables_is_named(postgres_database: str) -> None:
    with pytest.raises(StoreError) as caught, PostgresStore(Database(postgres_database), "").transaction():
        pass
    assert (caught.value.code, "interlock database setup" in caught.value.fix) == ("RSV902", True)


@pytest.mark.parametrize("is_right", [True, False])
def test_no_message_has_the_password(
    postgres: "Server", reservations_database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_right: bool
) -> None:
    from tests.postgres import PASSWORD

    secured = postgres.secured(reservations_database)
    wrong = tmp_path / "pgpass"
    wrong.write_text("*:*:*:guarded:not-it\n")
    wrong.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(secured.password_file if is_right else wrong))
    link = Database(secured.address)
    link.patience = 0.0
    # The role may log in, and has no right to any table.
    with pytest.raises(StoreError) as caught, PostgresStore(link, "").transaction():
        pass
    chain: list[BaseException] = [caught.value]
    while cause := chain[-1].__cause__ or chain[-1].__context__:
        chain.append(cause)
    said = "".join(f"{error!r} {error} {getattr(error, 'fix', '')}" for error in chain)
    assert (caught.value.code, isinstance(chain[1], DatabaseError)) == ("RSV903", True)
    assert PASSWORD not in said
    assert "not-it" not in said


def test_behind_pgbouncer_turns_and_stamps_are_the_same(
    postgres: "Server", empty_reservations: str, other: PostgresStore
) -> None:
    from tests.postgres import pgbouncer

    with pgbouncer(postgres, empty_reservations) as behind:
        store = PostgresStore(Database(behind), "")
        first = store.stamp()
        with store.transaction() as tx:
            tx.put_lease(lease())
        assert store.stamp() != first
        with other.transaction() as tx:
            assert tx.leases() == [lease()]
        late = PostgresStore(Database(behind), "", patience_seconds=0.05)
        with store.transaction(), pytest.raises(StoreError) as caught, late.transaction():
            pass
        assert caught.value.code == "RSV901"


def test_a_process_ends_at_once_when_its_store_is_done(empty_reservations: str) -> None:
    program = OPENING + "with store.transaction() as tx:\n    print(tx.leases(), flush=True)\nstore.close()\n"
    child: Child = python(program, empty_reservations, env={**os.environ, "PYTHONWARNINGS": "error"})
    begun = time.monotonic()
    assert child.line() == "[]\n"
    child.communicate(timeout=10)
    assert (child.returncode, time.monotonic() - begun < 5) == (0, True)
