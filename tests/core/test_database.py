"""What is promised of the database: a transaction is done once, by whoever has the run; errors say what to do."""

import signal
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")

import psycopg

from interlock.catalog import catalog
from interlock.core import database as module
from interlock.core.database import ADDRESS, Database, DatabaseError, Leg, LegLost, address_of, database
from tests.child import environment, python
from tests.postgres import PASSWORD, Server, free_port, name_of, pgbouncer, replica, wait_for_replay
from tests.table import each_row

TABLES = """
CREATE SCHEMA interlock;
CREATE SCHEMA dbos;
CREATE TABLE interlock.meta (version int NOT NULL, oldest int NOT NULL);
INSERT INTO interlock.meta VALUES (1, 1);
CREATE TABLE interlock.run (run text PRIMARY KEY, leg text);
CREATE TABLE dbos.workflow_status (workflow_uuid text PRIMARY KEY, owner_xid text, status text);
CREATE TABLE done (key text PRIMARY KEY, times int NOT NULL);
"""
MINE = Leg("RUN-1", "RUN-1#1", "token-1")


@pytest.fixture
def address(postgres: Server, postgres_database: str) -> str:
    """Give a database with the tables that are asked for."""
    postgres.run(TABLES, database=name_of(postgres_database))
    return postgres_database


@contextmanager
def opened(address: str, patience: float = 30.0, *, checked: bool = True) -> Generator[Database]:
    with closing(Database(address, checked=checked)) as opened:
        opened.patience = patience
        yield opened


def _add(link: "psycopg.Connection[dict[str, Any]]", key: str = "a") -> None:
    """Count a key, once however often this is repeated."""
    link.execute("INSERT INTO done VALUES (%s, 1) ON CONFLICT DO NOTHING", (key,))


def _refused(address: str, *, write: bool = False) -> DatabaseError:
    with opened(address, 0.0) as base, pytest.raises(DatabaseError) as caught:
        base.transact(_add if write else lambda link: link.execute("SELECT * FROM done"))
    assert caught.value.code in catalog()
    assert caught.value.fix
    return caught.value


def _done(postgres: Server, address: str) -> list[tuple[Any, ...]]:
    return postgres.run("SELECT key, times FROM done ORDER BY key", database=name_of(address))


@each_row(
    "address",
    [
        f"postgresql://me:{PASSWORD}@db.example.org/x",
        f"postgresql://db.example.org/x?user=me&password={PASSWORD}",
        f"postgresql://db.example.org/x?user=me&pass%77ord={PASSWORD}",
        f"postgresql://me@db.example.org/x?sslpassword={PASSWORD}",
        f"mysql://{PASSWORD}@db.example.org/x",
        f"host=db.example.org password={PASSWORD}",
        f"postgresql://[{PASSWORD}/x",
    ],
)
def test_an_address_with_a_password_or_of_another_kind_is_refused_and_not_repeated(address: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ADDRESS, address)
        with pytest.raises(DatabaseError) as caught:
            address_of("/nowhere")
    assert caught.value.code == "DBA902"
    assert PASSWORD not in f"{caught.value} {caught.value.fix}"


def test_the_environment_names_the_database_or_none_before_the_file_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert address_of(tmp_path / "none") == ""
    (tmp_path / "interlock.toml").write_text('database = "postgresql://me@a,b:5433/x?target_session_attrs=primary"\n')
    assert address_of(tmp_path) == "postgresql://me@a,b:5433/x?target_session_attrs=primary"
    monkeypatch.setenv(ADDRESS, "")
    assert address_of(tmp_path) == ""
    monkeypatch.setenv(ADDRESS, "postgresql:///y?host=/run/postgresql")
    assert address_of(tmp_path) == "postgresql:///y?host=/run/postgresql"


def test_a_server_or_a_database_that_is_not_there_is_named_with_the_reason(postgres: Server, address: str) -> None:
    port = free_port()
    for wrong in (
        f"postgresql://postgres@127.0.0.1:{port}/x",
        f"postgresql://postgres@/x?host={postgres.folder}&port={port}",
        postgres.address("no_such_database"),
        postgres.address(name_of(address), user="no_such_role"),
    ):
        error = _refused(wrong)
        assert (error.code, wrong in error.fix) == ("DBA901", True)
        assert any(part in str(error) for part in ("refused", "No such file", "does not exist")), error


@pytest.mark.parametrize(
    ("version", "code"),
    [("DROP TABLE interlock.meta", "DBA904"), ("DROP SCHEMA interlock CASCADE", "DBA904")]
    + [(f"UPDATE interlock.meta SET {row}", "DBA905") for row in ("version = 0", "version = 3, oldest = 2")]
    + [("DELETE FROM interlock.meta", "DBA905")],
)
def test_tables_of_another_version_are_refused(postgres: Server, address: str, version: str, code: str) -> None:
    postgres.run(version, database=name_of(address))
    assert _refused(address).code == code
    with opened(address, checked=False) as base:
        base.transact(lambda link: link.execute("SELECT 1"))


def test_newer_tables_that_still_suit_this_version_are_used(postgres: Server, address: str) -> None:
    postgres.run("UPDATE interlock.meta SET version = 9", database=name_of(address))
    with opened(address) as base:
        base.transact(_add)


def test_a_server_that_is_too_old_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OLDEST_SERVER", 99)
    assert _refused(address).code == "DBA903"


def test_a_role_without_rights_is_refused(postgres: Server, address: str) -> None:
    name = name_of(address)
    postgres.run("DROP ROLE IF EXISTS reader")
    postgres.run("CREATE ROLE reader LOGIN", database=name)
    reader = postgres.address(name, user="reader")
    assert _refused(reader).code == "DBA906"
    postgres.run("GRANT USAGE ON SCHEMA interlock TO reader", database=name)
    assert _refused(reader).code == "DBA906"
    postgres.run("GRANT SELECT ON interlock.meta, done TO reader", database=name)
    assert _refused(reader, write=True).code == "DBA906"
    with opened(reader) as base:
        base.transact(lambda link: link.execute("SELECT * FROM done"))


def test_a_replica_is_read_and_never_written(postgres: Server, address: str) -> None:
    with replica(postgres) as copy:
        wait_for_replay(postgres, copy)
        there = copy.address(name_of(address))
        assert _refused(there, write=True).code == "DBA906"
        with opened(there) as base:
            assert base.transact(lambda link: link.execute("SELECT * FROM done").fetchall()) == []


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(DatabaseError) as caught:
        Database("postgresql:///x")
    assert caught.value.code == "DBA901"
    assert "[postgres]" in caught.value.fix


def test_a_mistake_in_a_statement_is_not_tried_again(address: str) -> None:
    calls = list[int]()

    def work(link: "psycopg.Connection[dict[str, Any]]") -> None:
        calls.append(1)
        link.execute("SELECT no_such_column FROM done")

    with opened(address) as base, pytest.raises(psycopg.errors.UndefinedColumn):
        base.transact(work)
    assert len(calls) == 1


SECRET = """
import subprocess, sys
from interlock.core.database import Database
base = Database(sys.argv[1], checked=False)
base.transact(lambda link: print(link.info.get_parameters(), base.address, flush=True))
with subprocess.Popen(["cat"], stdin=subprocess.PIPE):
    print("started", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.linux("it reads /proc")
def test_a_password_from_a_file_logs_in_over_tls_and_is_seen_nowhere(
    postgres: Server, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secured = postgres.secured(address)
    with python(SECRET, secured.address, env=environment(PGPASSFILE=str(secured.password_file))) as child:
        said = child.line() + child.line()
        seen = [child.pid, *(each.pid for each in psutil.Process(child.pid).children())]
        for name in ("cmdline", "environ"):
            said += "".join(Path(f"/proc/{pid}/{name}").read_text() for pid in seen)
        child.say("end")
    assert (len(seen), "verify-full" in said, PASSWORD in said) == (2, True, False)

    wrong = tmp_path / "pgpass"
    wrong.write_text(f"*:*:*:guarded:{PASSWORD}-no-more\n")
    wrong.chmod(0o600)
    for file in (wrong, tmp_path / "none"):
        monkeypatch.setenv("PGPASSFILE", str(file))
        error = _refused(secured.address)
        assert error.code == "DBA901"
        assert "password" in str(error)
        assert PASSWORD not in f"{error} {error.fix} {error.__cause__!r}"
    other = postgres.folder / "other.crt"
    other.write_bytes((postgres.folder / "root.crt").read_bytes()[:100])
    assert _refused(secured.address.replace("root.crt", "other.crt")).code == "DBA901"


@pytest.mark.parametrize("immediate", [None, False, True], ids=["cut", "restart", "crash"])
def test_work_that_is_cut_off_is_repeated_and_done_once(
    postgres: Server, address: str, immediate: bool | None, capfd: pytest.CaptureFixture[str]
) -> None:
    calls = list[int]()

    def work(link: "psycopg.Connection[dict[str, Any]]") -> int:
        calls.append(1)
        link.execute("INSERT INTO done VALUES ('a', 1)")
        if len(calls) == 1:
            if immediate is None:
                postgres.cut_connections(address)
            else:
                postgres.restart(immediate=immediate)
        link.execute("INSERT INTO done VALUES ('b', 1)")
        return len(calls)

    with opened(address) as base:
        assert base.transact(work) == 2
        postgres.cut_connections(address)  # the one that was kept
        base.transact(lambda link: link.execute("INSERT INTO done VALUES ('c', 1)"))
    assert _done(postgres, address) == [("a", 1), ("b", 1), ("c", 1)]
    assert capfd.readouterr() == ("", "")


def test_a_server_that_stays_away_is_tried_until_patience_is_over(postgres: Server, address: str) -> None:
    with opened(address, 0.3) as base:
        base.transact(_add)
        postgres.stop()
        with pytest.raises(DatabaseError) as caught:
            base.transact(lambda link: _add(link, "b"))
        assert (caught.value.code, "No such file" in str(caught.value)) == ("DBA901", True)
        postgres.start()
        base.transact(lambda link: _add(link, "c"))
    assert _done(postgres, address) == [("a", 1), ("c", 1)]


def test_a_full_disk_is_named_and_what_was_cut_off_is_tried_again(postgres: Server, address: str) -> None:
    full = "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$"
    statements = [full, full, "INSERT INTO done VALUES ('a', 1)"]
    with opened(address) as base:
        with pytest.raises(DatabaseError, match="cannot write") as caught, base.transaction() as link:
            link.execute(full)
        assert (caught.value.code, "disk space" in caught.value.fix) == ("DBA901", True)
        base.transact(lambda link: link.execute(statements.pop(0).encode()))
    assert _done(postgres, address) == [("a", 1)]


@contextmanager
def losing_the_answer(to: int, when: bytes) -> Generator[int]:
    """Run a relay to a port that ends a connection instead of giving back the first answer to a statement."""
    lost = list[bytes]()

    def relay(near: socket.socket) -> None:
        with near, socket.create_connection(("127.0.0.1", to)) as far:
            asked = b""

            def answer() -> None:
                while data := far.recv(65536):
                    if when in asked and not lost:
                        lost.append(data)
                        break
                    near.sendall(data)
                near.shutdown(socket.SHUT_RDWR)

            answering = threading.Thread(target=answer)
            answering.start()
            while asked := near.recv(65536):
                far.sendall(asked)
            far.shutdown(socket.SHUT_RDWR)
            answering.join()

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with ExitStack() as stack:
                while True:
                    try:
                        near, _ = listener.accept()
                    except OSError:
                        return
                    thread = threading.Thread(target=relay, args=(near,))
                    stack.callback(thread.join)
                    thread.start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()
    assert lost


def test_a_commit_whose_answer_is_lost_is_repeated_by_work_that_may_be(postgres: Server, address: str) -> None:
    calls = list[int]()

    def work(link: "psycopg.Connection[dict[str, Any]]") -> None:
        calls.append(len(_done(postgres, address)))
        _add(link)

    with losing_the_answer(postgres.port, b"COMMIT") as port:
        behind = f"postgresql://postgres@127.0.0.1:{port}/{name_of(address)}?sslmode=disable"
        with opened(behind) as base:
            base.transact(work)
    assert calls == [0, 1], "the first commit counted, and the work was done again"
    assert _done(postgres, address) == [("a", 1)]


def _count(link: "psycopg.Connection[dict[str, Any]]") -> None:
    """Add one to what was read before: two at once lose one."""
    found = link.execute("SELECT times FROM done WHERE key = 'n'").fetchone()
    assert found
    link.execute("SELECT pg_sleep(0.001)")
    link.execute("UPDATE done SET times = %s WHERE key = 'n'", (found["times"] + 1,))


def _in_threads(work: Any, threads: int) -> None:
    faults = list[BaseException]()

    def run() -> None:
        try:
            work()
        except BaseException as fault:  # noqa: BLE001 - raised below
            faults.append(fault)

    started = [threading.Thread(target=run) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if faults:
        raise faults[0]


@pytest.mark.parametrize("pooled", [False, True], ids=["direct", "pgbouncer"])
def test_transactions_with_one_lock_come_one_after_the_other(postgres: Server, address: str, pooled: bool) -> None:
    postgres.run("INSERT INTO done VALUES ('n', 0)", database=name_of(address))
    with ExitStack() as stack:
        there = stack.enter_context(pgbouncer(postgres, address, pool_size=3)) if pooled else address
        bases = [stack.enter_context(opened(there)) for _ in range(4)]

        def work() -> None:
            base = bases.pop()
            for _ in range(25):
                base.transact(_count, lock="n")

        _in_threads(work, 4)
    assert _done(postgres, address) == [("n", 100)]


def test_threads_share_a_few_connections_and_an_unused_one_is_closed(
    postgres: Server, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_KEPT_SECONDS", 0.1)
    backends = set[int]()
    with opened(address) as base:

        def work(link: "psycopg.Connection[dict[str, Any]]") -> None:
            backends.add(link.info.backend_pid)
            link.execute("SELECT pg_sleep(0.05)")
            assert postgres.connections(address) <= 4

        _in_threads(lambda: base.transact(work), 12)
        assert len(backends) >= 4
        while postgres.connections(address):  # the timeout of the test ends this
            pass
        base.transact(_add)


FORKED = """
import os, sys
from interlock.core.database import database
address = sys.argv[1]
here = lambda: database(address).transact(lambda link: link.info.backend_pid)
first = here()
child = os.fork()
if not child:
    same = here() == first
    os._exit(same)
assert os.waitpid(child, 0)[1] == 0, "a forked process used the connection of this one"
assert here() == first, "a forked process ended the connection of this one"
print("good")
"""


def test_a_forked_process_has_a_connection_of_its_own(address: str) -> None:
    with python(FORKED, address, env=environment()) as child:
        assert child.rest() == "good\n"
    assert database(address) is database(address)


def _give(postgres: Server, address: str, leg: Leg, status: str = "PENDING") -> None:
    """Make the rows of a leg that has its run."""
    name = name_of(address)
    postgres.run("DELETE FROM interlock.run", database=name)
    postgres.run("DELETE FROM dbos.workflow_status", database=name)
    postgres.run("INSERT INTO interlock.run VALUES (%s, %s)", leg.run, leg.workflow, database=name)
    row = (leg.workflow, leg.token, status)
    postgres.run("INSERT INTO dbos.workflow_status VALUES (%s, %s, %s)", *row, database=name)


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> Leg:
    """Let this process drive a leg."""
    for name, value in MINE.environment().items():
        monkeypatch.setenv(name, value)
    return MINE


def test_a_leg_writes_while_it_has_its_run(postgres: Server, address: str, mine: Leg) -> None:
    _give(postgres, address, mine)
    with opened(address) as base:
        base.transact(_add)
    assert _done(postgres, address) == [("a", 1)]


@pytest.mark.parametrize(
    ("other", "status"),
    [
        (MINE._replace(token="token-2"), "PENDING"),
        (MINE._replace(workflow="RUN-1#2"), "PENDING"),
        (MINE._replace(run="RUN-2"), "PENDING"),
        (MINE, "SUCCESS"),
        (MINE, "ENQUEUED"),
        (None, ""),
    ],
    ids=["taken over", "next leg", "other run", "ended", "in a queue", "no rows"],
)
def test_a_leg_that_lost_its_run_writes_nothing(
    postgres: Server, address: str, mine: Leg, other: Leg | None, status: str
) -> None:
    if other:
        _give(postgres, address, other, status)
    calls = list[int]()
    with opened(address) as base, pytest.raises(LegLost) as caught:
        base.transact(lambda link: calls.append(1) or _add(link))
    assert (caught.value.code, caught.value.code in catalog(), calls) == ("DBA908", True, [])
    assert _done(postgres, address) == []


def test_a_run_is_not_taken_over_in_the_middle_of_a_transaction(postgres: Server, address: str, mine: Leg) -> None:
    _give(postgres, address, mine)
    take_over = "UPDATE dbos.workflow_status SET owner_xid = 'token-2'"
    with opened(address) as base:
        with base.transaction() as link:
            with pytest.raises(psycopg.errors.LockNotAvailable):
                postgres.run(f"SET lock_timeout = '50ms'; {take_over}", database=name_of(address))
            _add(link)
        postgres.run(take_over, database=name_of(address))
        with pytest.raises(LegLost):
            base.transact(lambda link: _add(link, "b"))
    assert _done(postgres, address) == [("a", 1)]


FROZEN = """
import sys
from interlock.core import database
database._HELD = "SET LOCAL idle_in_transaction_session_timeout = '500ms'"
base = database.Database(sys.argv[1])
def work(link):
    link.execute("INSERT INTO done VALUES ('frozen', 1)")
    print("holds", flush=True)
    sys.stdin.readline()
    link.execute("UPDATE done SET times = 2")
try:
    base.transact(work, lock="n")
except database.LegLost as error:
    print(error.code, flush=True)
"""


def test_a_frozen_process_keeps_neither_the_run_nor_a_lock_and_writes_nothing_when_it_is_back(
    postgres: Server, address: str
) -> None:
    _give(postgres, address, MINE)
    with python(FROZEN, address, env=environment(**MINE.environment())) as child:
        try:
            assert child.line() == "holds\n"
            child.send_signal(signal.SIGSTOP)
            # Both wait until the server ends the transaction.
            take_over = "SET lock_timeout = '30s'; UPDATE dbos.workflow_status SET owner_xid = 'token-2'"
            postgres.run(take_over, database=name_of(address))
            with opened(address) as base:
                base.transact(_add, lock="n")
            child.say("go on")
            child.send_signal(signal.SIGCONT)
            assert child.line() == "DBA908\n"
        finally:
            child.kill()
    assert _done(postgres, address) == [("a", 1)]
