"""What the tests' own PostgreSQL promises: it starts and stops, crashes and recovers, and every way leads to it."""

import shutil
import subprocess
import sys

import psutil
import psycopg
import pytest

from tests.postgres import PASSWORD, Server, name_of, pgbouncer, replica, wait_for_replay


def test_a_database_is_fresh_and_is_dropped_afterwards(postgres: Server) -> None:
    for _ in range(2):
        with postgres.database() as address, psycopg.connect(address) as link:
            link.execute("CREATE TABLE t (x int)")
        assert postgres.run("SELECT 1 FROM pg_database WHERE datname = %s", name_of(address)) == []


def test_what_was_committed_outlives_a_crash_and_what_was_not_does_not(
    postgres: Server, postgres_database: str
) -> None:
    name = name_of(postgres_database)
    postgres.run("CREATE TABLE t (x int)", database=name)
    postgres.run("INSERT INTO t VALUES (1)", database=name)
    link = psycopg.connect(postgres_database)
    link.execute("INSERT INTO t VALUES (2)")
    postgres.restart(immediate=True)
    with pytest.raises(psycopg.OperationalError):
        link.execute("SELECT 1")
    link.close()
    assert postgres.run("SELECT x FROM t", database=name) == [(1,)]
    assert "not properly shut down" in postgres.tail()


def test_connections_are_cut_and_counted(postgres: Server, postgres_database: str) -> None:
    link = psycopg.connect(postgres_database)
    assert postgres.connections(postgres_database) == 1
    assert postgres.cut_connections(postgres_database) == 1
    with pytest.raises(psycopg.OperationalError):
        link.execute("SELECT 1")
    link.close()


def test_a_stopped_server_cannot_be_reached(postgres: Server, postgres_database: str) -> None:
    postgres.stop()
    try:
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(postgres_database)
    finally:
        postgres.start()
    psycopg.connect(postgres.address(name_of(postgres_database), tcp=True)).close()


def test_the_guarded_role_needs_its_password_and_tls(
    postgres: Server, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secured = postgres.secured(postgres_database)
    with pytest.raises(psycopg.OperationalError, match="no password"):
        psycopg.connect(secured.address)
    monkeypatch.setenv("PGPASSFILE", str(secured.password_file))
    with psycopg.connect(secured.address) as link:
        assert link.pgconn.ssl_in_use
    with pytest.raises(psycopg.OperationalError, match=r"pg_hba\.conf"):
        psycopg.connect(secured.address.replace("verify-full", "disable"))
    assert PASSWORD not in postgres.tail()


def test_pgbouncer_gives_each_transaction_any_connection(postgres: Server, postgres_database: str) -> None:
    with pgbouncer(postgres, postgres_database, pool_size=1) as address:
        links = [psycopg.connect(address, autocommit=True) for _ in range(3)]
        assert len({link.execute("SELECT pg_backend_pid()").fetchone() for link in links}) == 1
        for link in links:
            link.close()


def test_a_replica_follows_and_refuses_to_write(postgres: Server, postgres_database: str) -> None:
    name = name_of(postgres_database)
    with replica(postgres) as copy:
        postgres.run("CREATE TABLE t (x int)", database=name)
        wait_for_replay(postgres, copy)
        assert copy.run("SELECT * FROM t", database=name) == []
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            copy.run("INSERT INTO t VALUES (1)", database=name)


CHILD = """
import time
from tests.postgres import Server, programs

server = Server(programs())
(pid,) = server.run("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")[0]
print(pid, server.folder, flush=True)
time.sleep(600)
"""


@pytest.mark.linux("a death signal is Linux's own")
def test_a_server_ends_with_a_process_that_is_killed(postgres: Server) -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        pid, folder = child.stdout.readline().split()
        child.kill()
    psutil.wait_procs([psutil.Process(int(pid))] if psutil.pid_exists(int(pid)) else [], timeout=60)
    assert not psutil.pid_exists(int(pid))
    shutil.rmtree(folder)
