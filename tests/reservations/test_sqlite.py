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

from interlock.reservations.errors import ReservationError, StoreDamagedError, StoreUnwrittenError
from interlock.reservations.store import migrations, sqlite
from interlock.reservations.store.sqlite import SqliteStore, journal_mode
from interlock.reservations.store.sqlite_rows import Transaction, near_query
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
from interlock.reservations.errors import StoreUnwrittenError
with store.transaction() as tx:
    tx.next_number("token")
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
number = 0
try:
    while True:
        with store.transaction() as tx:
            tx.next_number("token")
            tx.remember("Ada", str(number), "digest", "x" * 20_000, 1.0)
        print(number, flush=True)
        number += 1
except StoreUnwrittenError as error:
    print(error.code, bool(error.fix), flush=True)
with store.transaction() as tx:
    print(tx.remembered("Ada", str(number)))
"""
)

FORK_BESIDE_A_TRANSACTION = (
    OPENING
    + """
import os
from threading import Event, Thread
inside, leave = Event(), Event()

def hold():
    with store.transaction() as tx:
        tx.next_number("token")
        inside.set()
        leave.wait(30)

holder = Thread(target=hold)
holder.start()
inside.wait(30)
os.register_at_fork(before=leave.set)
child = os.fork()
if child == 0:
    sys.exit()
print(os.waitpid(child, 0)[1])
holder.join()
with store.transaction() as tx:
    print(tx.next_number("token"))
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
        assert pragma(tx, "journal_mode") == journal_mode()[0]


def pragma(tx: Transaction, name: str) -> object:
    return tx._run(f"PRAGMA {name}").fetchone()[0]  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("version", "mode"),
    [
        ((3, 34, 0), "persist"),
        ((3, 40, 1), "persist"),
        ((3, 51, 2), "persist"),
        ((3, 51, 3), "wal"),
        ((4, 0, 0), "wal"),
    ],
)
def test_a_log_is_shared_only_where_that_cannot_damage_the_file(version: tuple[int, ...], mode: str) -> None:
    assert journal_mode(version)[0] == mode
    assert ".".join(map(str, version)) in journal_mode(version)[1]


def test_a_new_file_gets_a_log_and_an_old_one_keeps_its_journal(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "journal_mode", lambda: ("persist", ""))
    write(store)
    store.close()
    monkeypatch.setattr(sqlite, "journal_mode", lambda: ("wal", ""))
    for name, mode in ((path.name, "persist"), ("new.sqlite", "wal")):
        other = SqliteStore(str(path.with_name(name)))
        write(other)
        with other.transaction() as tx:
            assert pragma(tx, "journal_mode") == mode
        first = other.stamp()
        write(other)
        assert other.stamp() != first
        other.close()
    monkeypatch.setattr(sqlite, "journal_mode", lambda: ("persist", ""))
    back = SqliteStore(str(path.with_name("new.sqlite")))
    assert tokens(back) == [1, 2]
    with back.transaction() as tx:
        assert pragma(tx, "journal_mode") == "persist"


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
    "a link to a store": a_link, "a link to nothing": lambda path: path.symlink_to(path.with_name("nothing")),
    "a folder": lambda path: path.mkdir(), "a pipe": os.mkfifo,
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_only_a_regular_file_is_opened(path: Path, store: SqliteStore, name: str) -> None:
    path.parent.mkdir(parents=True)
    PLACES[name](path)
    assert refused(store).code == StoreUnwrittenError.code
    assert not path.with_name("nothing").exists()


def test_a_folder_that_cannot_be_made_is_reported(path: Path, store: SqliteStore) -> None:
    path.parent.parent.write_text("a file where a folder should be")
    assert refused(store).code == StoreUnwrittenError.code


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_folder_that_is_read_only_is_reported_and_changes_nothing(path: Path, store: SqliteStore) -> None:
    write(store)
    store.close()
    for each in path.parent.iterdir():
        each.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        assert refused(store).code == StoreUnwrittenError.code
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
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch, garbage: bytes, seen_before: bool
) -> None:
    # With a write-ahead log an open store would go on from its log.
    monkeypatch.setattr(sqlite, "journal_mode", lambda: ("persist", ""))
    write(store)
    if not seen_before:
        store.close()
    with path.open("r+b") as file:
        file.write(garbage)
        file.truncate(len(garbage))
    assert refused(store).code == StoreDamagedError.code
    assert path.read_bytes() == garbage


def test_a_file_cut_in_the_middle_is_refused(path: Path, store: SqliteStore) -> None:
    for _ in range(50):
        write(store)
    store.close()
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(StoreDamagedError):
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
    assert refused(store).code == StoreDamagedError.code


def test_a_disk_that_is_full_is_reported_and_loses_nothing(path: Path, store: SqliteStore) -> None:
    child = python(FILL_UP, path)
    *numbers, code, last = child.communicate()[0].splitlines()
    assert (child.returncode, code, last) == (0, f"{StoreUnwrittenError.code} True", "None")
    assert [int(number) for number in numbers] == list(range(len(numbers)))
    assert len(numbers) > 5
    with store.transaction() as tx:
        assert [tx.remembered("Ada", number) for number in numbers] == [("digest", "x" * 20_000)] * len(numbers)
        assert tx.next_number("token") == len(numbers) + 2
    assert sound(path) == "ok"


def test_a_child_that_ends_undoes_nothing_of_a_transaction_beside_the_fork(path: Path) -> None:
    parent = python(FORK_BESIDE_A_TRANSACTION, path)
    assert parent.communicate(timeout=60)[0].split() == ["0", "2"]
    assert sound(path) == "ok"


# -- versions ----------------------------------------------------------------------------------------------------------


def test_a_store_of_an_older_version_is_brought_up_with_its_rows(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store)
    more = (
        "CREATE TABLE later (a TEXT) {strict};",
        "INSERT INTO later VALUES ('kept'); UPDATE lease SET reason = 'new';",
    )
    monkeypatch.setattr(migrations, "SCHEMA_STEPS", (*migrations.SCHEMA_STEPS, *more))
    with SqliteStore(str(path)).transaction() as tx:
        assert pragma(tx, "user_version") == len(migrations.SCHEMA_STEPS)
        assert [each.reason for each in tx.leases()] == ["new"]
    monkeypatch.undo()
    assert refused(store).code == StoreDamagedError.code
    assert refused(SqliteStore(str(path))).code == StoreDamagedError.code


def test_a_failed_step_leaves_the_old_version(path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    write(store)
    steps = (*migrations.SCHEMA_STEPS, "CREATE TABLE later (a TEXT);", "DROP TABLE agent; SELECT nothing FROM nowhere;")
    monkeypatch.setattr(migrations, "SCHEMA_STEPS", steps)
    assert refused(SqliteStore(str(path))).code == StoreDamagedError.code
    monkeypatch.setattr(migrations, "SCHEMA_STEPS", steps[:-1])
    with SqliteStore(str(path)).transaction() as tx:
        assert pragma(tx, "user_version") == len(steps) - 1
        assert tx.agents() == []


def test_a_lease_of_the_first_version_is_held_by_no_action(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    for statement in migrations.statements(0, sqlite3.sqlite_version_info):
        connection.execute(statement)
    columns = ("rsv_1", "Ada", "a", "a", 1, 0, 0, "", 1, 1.0, 1.0, 2.0, "ada")
    connection.execute(f"INSERT INTO lease VALUES ({', '.join('?' * len(columns))})", columns)
    connection.commit()
    connection.close()
    with SqliteStore(str(path)).transaction() as tx:
        assert [(each.reservation_id, each.expires_at, each.held_until) for each in tx.leases()] == [
            ("rsv_1", 2.0, 0.0)
        ]


def test_tables_are_strict_where_sqlite_knows_that() -> None:
    assert sum("STRICT" in each for each in migrations.statements(0, (3, 37, 0))) == 10
    assert not any("STRICT" in each or "{" in each for each in migrations.statements(0, (3, 36, 9)))
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in migrations.statements(0, (3, 36, 9)):
            connection.execute(statement)


# -- plans -------------------------------------------------------------------------------------------------------------

ASKED: dict[str, Callable[[Transaction], object]] = {
    "near above and below": lambda tx: tx.near(("", "src/", "src/a.py"), "src/a.py"),
    "near with one above": lambda tx: tx.near(("",), "src/"),
    "near with nothing above": lambda tx: tx.near((), "src/"), "lease": lambda tx: tx.lease("rsv_1"),
    "leases_of": lambda tx: tx.leases_of("Ada"), "expired": lambda tx: tx.expired(5.0),
    "agent": lambda tx: tx.agent("Ada"), "agent_of_process": lambda tx: tx.agent_of_process("h", 1, ""),
    "waiter": lambda tx: tx.waiter(1), "inbox": lambda tx: tx.inbox("Ada", after=3, unread_only=False, limit=9),
    "unread inbox": lambda tx: tx.inbox("Ada", after=3, unread_only=True, limit=9),
    "unread_count": lambda tx: tx.unread_count("Ada"), "thread": lambda tx: tx.thread("neg_1"),
    "negotiation": lambda tx: tx.negotiation("neg_1"),
    "open_negotiations": lambda tx: tx.open_negotiations(holder="Ada"),
    "negotiations_since": lambda tx: tx.negotiations_since(5.0),
    "remembered": lambda tx: tx.remembered("Ada", "key"), "events": lambda tx: tx.events("/one", 9),
    "put_lease": lambda tx: tx.put_lease(lease()), "put_waiter": lambda tx: tx.put_waiter(waiter()),
    "put_message": lambda tx: tx.put_message(message()),
    "put_negotiation": lambda tx: tx.put_negotiation(negotiation()), "put_agent": lambda tx: tx.put_agent(agent()),
    "drop_lease": lambda tx: tx.drop_lease("rsv_1"), "drop_events": lambda tx: tx.drop_events([1]),
    "forget": lambda tx: tx.forget(5.0), "next_number": lambda tx: tx.next_number("token"),
}  # fmt: skip


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


def test_the_plan_test_would_see_an_or_that_reads_every_row(store: SqliteStore) -> None:
    query, values = near_query(("", "src/"), "src/a.py")
    assert query.count("UNION ALL") == 1
    with store.transaction() as tx:
        run = tx._run  # pyright: ignore[reportPrivateUsage]
        careless = "SELECT * FROM lease WHERE prefix = ? OR ? LIKE prefix || '%' OR prefix LIKE ? || '%'"
        plans = [row[-1] for row in run(f"EXPLAIN QUERY PLAN {careless}", values[:3])]
        assert [plan for plan in plans if plan.startswith("SCAN")] != []
