"""The tables: made, made again, printed, of other versions; and what each role may do."""

import psycopg
import pytest

from interlock import graph
from interlock.core.database import VERSION, Database, DatabaseError
from interlock.graph.team import schema

TABLES = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'interlock'"


def columns(address: str) -> set[tuple[str, str, str]]:
    """Return the columns of all tables of Interlock, less those of LangGraph."""
    with psycopg.connect(address) as link:
        return {row for row in link.execute(TABLES) if not str(row[0]).startswith("checkpoint")}


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


def test_the_printed_sql_makes_the_same_tables(postgres_database: str) -> None:
    """For whoever may not run it from here."""
    with psycopg.connect(postgres_database, autocommit=True) as link:
        link.execute(graph.setup_sql().encode())
    printed = columns(postgres_database)
    graph.set_up(postgres_database, roles=False)
    assert columns(postgres_database) == printed


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
