"""The tables: made, made again, printed, of other versions; and what each role may do."""

import subprocess

import psycopg
import pytest

from interlock import graph
from interlock.core.database import VERSION, Database, DatabaseError
from interlock.graph.team import schema
from tests.postgres import Server, name_of

TABLES = (
    "SELECT table_name, column_name, data_type FROM information_schema.columns "
    "WHERE table_schema IN ('interlock', 'dbos')"
)


def columns(address: str) -> set[tuple[str, str, str]]:
    """Return the columns of all tables."""
    with psycopg.connect(address) as link:
        return {*link.execute(TABLES)}


def settings(server: Server, address: str) -> list[tuple[str]]:
    """Return what every connection to a database is given."""
    asked = "SELECT setconfig FROM pg_db_role_setting JOIN pg_database ON oid = setdatabase WHERE datname = %s"
    return server.run(asked, name_of(address))


def test_the_number_of_migrations_is_the_version_that_the_code_knows() -> None:
    """A migration that is added without a new version would never be asked for."""
    assert len(schema.MIGRATIONS) == VERSION
    assert all(step.oldest <= number for number, step in enumerate(schema.MIGRATIONS, 1))


def test_setting_up_again_changes_nothing(address: str) -> None:
    """Also while others use the tables."""
    before = columns(address)
    with psycopg.connect(address) as link:
        link.execute("INSERT INTO interlock.run (run) VALUES ('T.1')")
        link.commit()
        assert graph.set_up(address, roles=True) == VERSION
        assert link.execute("SELECT run FROM interlock.run").fetchall() == [("T.1",)]
    assert columns(address) == before


def test_the_printed_sql_makes_the_same_tables(postgres: Server, address: str) -> None:
    """For whoever may not run it from here: `psql` reads it, and nothing is left to do."""
    with postgres.database() as printed:
        sql = graph.setup_sql() + graph.roles_sql()
        psql = [postgres.bin_folder / "psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", printed]
        done = subprocess.run(psql, input=sql, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert columns(printed) == columns(address)
        assert settings(postgres, printed) == settings(postgres, address) != []
        assert graph.set_up(printed, roles=False) == VERSION
        assert columns(printed) == columns(address)


def test_an_owner_who_may_make_no_roles_uses_those_that_are_there(postgres: Server, address: str) -> None:
    """As for a second project on the same server; the superuser has made the roles for the first."""
    assert address
    postgres.run("DROP ROLE IF EXISTS only_owns")
    postgres.run("CREATE ROLE only_owns LOGIN")
    with postgres.database() as theirs:
        postgres.run(f"ALTER DATABASE {name_of(theirs)} OWNER TO only_owns")
        assert graph.set_up(theirs.replace("postgres@", "only_owns@"), roles=True) == VERSION
    postgres.run("DROP ROLE only_owns")


def test_tables_of_a_newer_version_are_left_alone(address: str) -> None:
    """What it would do to them is not known."""
    with psycopg.connect(address) as link:
        link.execute("UPDATE interlock.meta SET version = 99, oldest = 98")
    with pytest.raises(DatabaseError) as refused:
        graph.set_up(address, roles=False)
    assert refused.value.code == "DBA905"


@pytest.mark.parametrize("role", ["interlock_worker", "interlock_server", "interlock_reader"])
def test_what_each_role_may(address: str, role: str) -> None:
    """A server asks for runs and answers; what has become of a run only a worker writes."""
    may_ask, may_write = role != "interlock_reader", role == "interlock_worker"
    wanted = {
        "SELECT count(*) FROM interlock.line": True,
        "SELECT count(*) FROM dbos.workflow_status": True,
        "INSERT INTO interlock.line VALUES ('events', 0, 'x')": may_ask,
        "INSERT INTO interlock.run (run) VALUES ('T.1')": may_ask,
        "DELETE FROM interlock.checkpoints": may_write,
        "DELETE FROM interlock.worker": may_write,
        "DROP TABLE interlock.line": False,
        "UPDATE interlock.meta SET version = 2": False,
    }
    for statement, allowed in wanted.items():
        with psycopg.connect(address) as link:
            link.execute(f"SET ROLE {role}".encode())
            if allowed:
                link.execute(statement.encode())
            else:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    link.execute(statement.encode())
            link.rollback()


def test_a_role_that_may_not_write_checkpoints_is_no_worker(address: str) -> None:
    """It is told before it takes a run."""
    with psycopg.connect(address, autocommit=True) as link:
        link.execute("DROP ROLE IF EXISTS only_reads")
        link.execute("CREATE ROLE only_reads LOGIN")
        link.execute("GRANT interlock_reader TO only_reads")
    with pytest.raises(DatabaseError, match="only_reads") as refused:
        Database(address.replace("postgres@", "only_reads@")).transact(schema.check_rights)
    assert refused.value.code == "DBA906"
    assert "GRANT interlock_worker TO only_reads" in refused.value.fix


def test_a_database_that_cannot_keep_every_text_is_refused(postgres: Server) -> None:
    """Texts of agents hold any character; it is said before there are tables."""
    postgres.run("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    with pytest.raises(DatabaseError, match="LATIN1") as refused:
        graph.set_up(postgres.address("latin"), roles=False)
    assert refused.value.code == "DBA907"
    assert "encoding=UTF8" in refused.value.fix
    postgres.run("DROP DATABASE latin")
