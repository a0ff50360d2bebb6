"""What the SQLite store promises beyond the contract: its file, its versions, its plans, and what goes wrong."""

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from interlock.reservations.errors import ReservationError, StoreError
from interlock.reservations.store.sqlite import SqliteStore
from interlock.reservations.store.sqlite_rows import STORE_FORMAT, Transaction
from tests.child import python
from tests.conformance.rows import agent, lease, message, negotiation, waiter

OPENING = "import sys\nfrom interlock.reservations.store.sqlite import SqliteStore\nstore = SqliteStore(sys.argv[1])\n"

FIRST_USE = (
    OPENING
    + """
print("ready", flush=True)
sys.stdin.readline()
with store.transaction() as tx:
    print(tx.store_id(), tx.next_number("token"))
"""
)

FILL_UP = (
    OPENING
    + """
import resource
from interlock.reservations.errors import StoreError
with store.transaction() as tx:
    tx.next_number("token")
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
number = 0
try:
    while True:
        with store.transaction() as tx:
            tx.next_number("token")
            tx.remember("Ada", str(number), "x" * 20_000, 1.0)
        print(number, flush=True)
        number += 1
except StoreError as error:
    print(error.code, bool(error.fix), flush=True)
with store.transaction() as tx:
    print(tx.remembered("Ada", str(number)))
"""
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "git" / "interlock" / "reservations.sqlite"


@pytest.fixture
def store(path: Path) -> SqliteStore:
    return SqliteStore(str(path))


def write(store: SqliteStore) -> None:
    with store.transaction() as tx:
        tx.put_lease(lease(tx.next_number("token")))


def tokens(store: SqliteStore) -> list[int]:
    with store.transaction() as tx:
        return [each.token for each in tx.leases()]


def sound(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchone()[0]


def refused(store: SqliteStore) -> ReservationError:
    """Return the error of the next transaction; it names the file and says what to do."""
    with pytest.raises(ReservationError) as caught:
        write(store)
    assert store.path in caught.value.message
    assert caught.value.fix
    return caught.value


# -- the file ----------------------------------------------------------------------------------------------------------


def test_folder_and_file_are_made_at_the_first_use_for_this_user_alone(path: Path, store: SqliteStore) -> None:
    assert not path.parent.exists()
    write(store)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()} == {0o600}


@pytest.mark.long
def test_twenty_processes_may_be_the_first_at_once(path: Path) -> None:
    users = [python(FIRST_USE, path) for _ in range(20)]
    assert {user.line() for user in users} == {"ready\n"}
    for user in users:
        user.say("go")
    lines = [user.communicate()[0].split() for user in users]
    assert [user.returncode for user in users] == [0] * 20
    assert sorted(int(number) for _, number in lines) == list(range(1, 21))
    assert len({store_id for store_id, _ in lines}) == 1


def test_an_empty_file_becomes_a_store(path: Path, store: SqliteStore) -> None:
    path.parent.mkdir(parents=True)
    path.touch()
    write(store)
    assert tokens(store) == [1]


def test_every_connection_writes_through_to_the_disk(store: SqliteStore) -> None:
    with store.transaction() as tx:
        assert pragma(tx, "synchronous") == 2
        assert pragma(tx, "journal_mode") == "persist"


def pragma(tx: Transaction, name: str) -> object:
    return tx._run(f"PRAGMA {name}").fetchone()[0]  # pyright: ignore[reportPrivateUsage]


def test_opening_a_store_imports_nothing_slow() -> None:
    slow = {"pathlib", "subprocess", "tomllib", "hashlib", "uuid", "random", "threading", "asyncio", "logging"}
    program = "import sys, interlock.reservations.store.sqlite\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & slow == set()


# -- what is at its path ---------------------------------------------------------------------------------------------


def a_link(path: Path) -> None:
    target = path.with_name("elsewhere.sqlite")
    write(SqliteStore(str(target)))
    path.symlink_to(target)


PLACES: dict[str, Callable[[Path], None]] = {
    "a link to a store": a_link,
    "a link to nothing": lambda path: path.symlink_to(path.with_name("nothing")),
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
}


@pytest.mark.parametrize("name", PLACES)
def test_only_a_regular_file_is_opened(path: Path, store: SqliteStore, name: str) -> None:
    path.parent.mkdir(parents=True)
    PLACES[name](path)
    assert refused(store).code == "RSV903"
    assert not path.with_name("nothing").exists()


def test_a_folder_that_cannot_be_made_is_reported(path: Path, store: SqliteStore) -> None:
    path.parent.parent.write_text("a file where a folder should be")
    assert refused(store).code == "RSV903"


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_folder_that_is_read_only_is_reported_and_changes_nothing(path: Path, store: SqliteStore) -> None:
    write(store)
    store.close()
    for each in path.parent.iterdir():
        each.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        assert refused(store).code == "RSV903"
    finally:
        path.parent.chmod(0o700)
        for each in path.parent.iterdir():
            each.chmod(0o600)
    assert tokens(store) == [1]


def test_a_store_that_was_removed_is_made_anew_under_a_program_that_had_it_open(path: Path, store: SqliteStore) -> None:
    write(store)
    first = store.stamp()
    for each in path.parent.iterdir():
        each.unlink()
    assert tokens(store) == []
    path.parent.joinpath("away").mkdir()
    path.rename(path.parent / "away" / path.name)
    other = SqliteStore(str(path))
    write(other)
    assert tokens(store) == [1]
    assert store.stamp() != first


# -- damage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seen_before", [False, True], ids=["opened later", "open"])
@pytest.mark.parametrize(
    "garbage", [b"not a database at all\n" * 400, b"\0" * 8192, b"x" * 600], ids=["text", "zeros", "less than a page"]
)
def test_garbage_in_its_place_is_refused_and_left_as_it_is(
    path: Path, store: SqliteStore, garbage: bytes, seen_before: bool
) -> None:
    write(store)
    if not seen_before:
        store.close()
    with path.open("r+b") as file:
        file.write(garbage)
        file.truncate(len(garbage))
    assert refused(store).code == "RSV902"
    assert path.read_bytes() == garbage


def test_a_file_cut_in_the_middle_is_refused(path: Path, store: SqliteStore) -> None:
    for _ in range(50):
        write(store)
    store.close()
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(StoreError):
        tokens(store)


@pytest.mark.parametrize("statement", ["CREATE TABLE notes (text)", "DROP TABLE lease"])
def test_a_database_of_another_program_and_a_store_without_one_of_its_tables_are_refused(
    path: Path, store: SqliteStore, statement: str
) -> None:
    path.parent.mkdir(parents=True)
    if statement.startswith("DROP"):
        write(store)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
    assert refused(store).code == "RSV902"


def test_a_disk_that_is_full_is_reported_and_loses_nothing(path: Path, store: SqliteStore) -> None:
    child = python(FILL_UP, path)
    *numbers, code, last = child.communicate()[0].splitlines()
    assert (child.returncode, code, last) == (0, "RSV903 True", "None")
    assert [int(number) for number in numbers] == list(range(len(numbers)))
    assert len(numbers) > 5
    with store.transaction() as tx:
        assert [tx.remembered("Ada", number) for number in numbers] == ["x" * 20_000] * len(numbers)
        assert tx.next_number("token") == len(numbers) + 2
    assert sound(path) == "ok"


# -- versions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [STORE_FORMAT - 1, STORE_FORMAT + 1])
def test_a_store_of_another_version_is_refused_and_not_touched(path: Path, store: SqliteStore, version: int) -> None:
    write(store)
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    error = refused(SqliteStore(str(path)))
    assert (error.code, str(version) in error.message) == ("RSV902", True)
    assert path.read_bytes() == before


# -- plans -------------------------------------------------------------------------------------------------------------

ASKED: dict[str, Callable[[Transaction], object]] = {
    "near above and below": lambda tx: tx.near(("", "src/", "src/a.py"), "src/a.py"),
    "near with one above": lambda tx: tx.near(("",), "src/"),
    "near with nothing above": lambda tx: tx.near((), "src/"),
    "lease": lambda tx: tx.lease("rsv_1"),
    "leases_of": lambda tx: tx.leases_of("Ada"),
    "expired": lambda tx: tx.expired(5.0),
    "agent": lambda tx: tx.agent("Ada"),
    "agent_of_process": lambda tx: tx.agent_of_process("h", 1, ""),
    "waiter": lambda tx: tx.waiter(1),
    "inbox": lambda tx: tx.inbox("Ada", after=3, unread_only=False, limit=9),
    "unread inbox": lambda tx: tx.inbox("Ada", after=3, unread_only=True, limit=9),
    "unread_count": lambda tx: tx.unread_count("Ada"),
    "thread": lambda tx: tx.thread("neg_1"),
    "negotiation": lambda tx: tx.negotiation("neg_1"),
    "open_negotiations": lambda tx: tx.open_negotiations(holder="Ada"),
    "negotiations_since": lambda tx: tx.negotiations_since(5.0),
    "remembered": lambda tx: tx.remembered("Ada", "key"),
    "events": lambda tx: tx.events("/one", 9),
    "put_lease": lambda tx: tx.put_lease(lease()),
    "put_waiter": lambda tx: tx.put_waiter(waiter()),
    "put_message": lambda tx: tx.put_message(message()),
    "put_negotiation": lambda tx: tx.put_negotiation(negotiation()),
    "put_agent": lambda tx: tx.put_agent(agent()),
    "drop_lease": lambda tx: tx.drop_lease("rsv_1"),
    "drop_events": lambda tx: tx.drop_events([1]),
    "forget": lambda tx: tx.forget(5.0),
    "next_number": lambda tx: tx.next_number("token"),
}


@pytest.mark.parametrize("question", ASKED)
def test_no_question_of_a_hook_or_a_call_reads_a_whole_table(store: SqliteStore, question: str) -> None:
    with store.transaction() as tx:
        run, plans = tx._run, list[str]()  # pyright: ignore[reportPrivateUsage]

        def explained(statement: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
            plans.extend(row[-1] for row in run(f"EXPLAIN QUERY PLAN {statement}", values))
            return run(statement, values)

        tx._run = explained  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
        ASKED[question](tx)
    # An open negotiation is found in an index that holds nothing else.
    scans = [plan for plan in plans if plan.startswith("SCAN") and "negotiation_open" not in plan]
    assert scans == [], plans
    assert not any("PRIMARY KEY" not in plan and "INDEX" not in plan for plan in plans if plan.startswith("SEARCH"))
