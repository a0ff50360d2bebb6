"""The tables of the shared database, numbered migrations of them, and the rights of three roles.

A migration is never changed once it was released, and only adds: a worker of the version before goes on while it runs.
`oldest` of a migration is the oldest version of Interlock that still works with the tables it leaves.
"""

from contextlib import redirect_stdout
from io import StringIO
from typing import Final, NamedTuple

from interlock.core.database import Database, DatabaseError, Link
from interlock.reservations import POSTGRES_TABLES


class Migration(NamedTuple):
    """SQL that takes the tables from one version to the next, and the oldest version that works with the result."""

    sql: str
    oldest: int


MIGRATIONS: Final = (
    Migration(
        """
CREATE TABLE interlock.meta (one boolean PRIMARY KEY DEFAULT true CHECK (one), version int, oldest int);
CREATE TABLE interlock.line (
    journal text, start bigint, bytes bytea NOT NULL, PRIMARY KEY (journal, start)
);
CREATE TABLE interlock.run_file (
    run text, name text, data bytea, version bigint NOT NULL UNIQUE, PRIMARY KEY (run, name),
    -- Each machine writes these files: none lies elsewhere, whatever an agent that reaches the database writes here.
    CHECK (run ~ '^[A-Za-z0-9][A-Za-z0-9._-]*$' AND '/' || name || '/' !~ '//|/[.][.]?/')
);
CREATE TABLE interlock.run (
    run text PRIMARY KEY, leg text NOT NULL DEFAULT '', wanted boolean NOT NULL DEFAULT false,
    saved text NOT NULL DEFAULT '', land int NOT NULL DEFAULT 0,
    made_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE interlock.worker (
    id text PRIMARY KEY, queues text[] NOT NULL, concurrency int NOT NULL, version text NOT NULL,
    draining boolean NOT NULL DEFAULT false, beat_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNLOGGED TABLE interlock.notice (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run text NOT NULL, step jsonb NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX notice_run ON interlock.notice (run, number);
"""
        + POSTGRES_TABLES,
        oldest=1,
    ),
)

ROLES: Final = {
    "interlock_reader": "SELECT",
    "interlock_server": "SELECT, INSERT, UPDATE, DELETE",
    "interlock_worker": "SELECT, INSERT, UPDATE, DELETE",
}
"""What each role may do with rows; a server asks for runs and answers, and writes no checkpoint and no tree."""

# What a frozen worker holds in a transaction of DBOS would be kept from all others; and whoever has waited
# for a lock has to see what was committed meanwhile.
SETTINGS: Final = """
DO $$ DECLARE setting text; BEGIN
    FOREACH setting IN ARRAY ARRAY[
        $_$search_path = interlock, public$_$, $_$idle_in_transaction_session_timeout = '10s'$_$,
        $_$default_transaction_isolation = 'read committed'$_$
    ] LOOP
        EXECUTE format('ALTER DATABASE %I SET ', current_database()) || setting;
    END LOOP;
END $$;
"""
"""What every new connection needs."""


def set_up(address: str, *, roles: bool) -> int:
    """Make the tables of an empty database, or bring them up to date, and return their version. Safe to repeat.

    Raises:
        DatabaseError: The database cannot be used or keep every text, or its tables are of a newer version.
    """
    # Late: both take a second to import.
    from dbos import DBOS  # noqa: PLC0415
    from langgraph.checkpoint.postgres import PostgresSaver  # noqa: PLC0415

    database = Database(address, checked=False)
    try:
        version = database.transact(_migrate, lock="setup")
        database.close()  # the settings count for new connections
        # Not in a transaction: LangGraph makes its indexes beside running work.
        with database.connection() as link:
            PostgresSaver(link).setup()
        DBOS.migrate(address)
        if roles:
            database.transact(lambda link: link.execute(roles_sql().encode()))
    finally:
        database.close()
    return version


def _migrate(link: Link) -> int:
    encoding = link.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise DatabaseError.of("DBA907", f"the database has the encoding {encoding}")
    link.execute(SETTINGS)
    link.execute("CREATE SCHEMA IF NOT EXISTS interlock")
    there = link.execute("SELECT to_regclass('interlock.meta') IS NOT NULL AS there").fetchone()
    row = link.execute("SELECT version, oldest FROM interlock.meta").fetchone() if there and there["there"] else None
    version = row["version"] if row else 0
    if row and row["oldest"] > len(MIGRATIONS):
        raise DatabaseError.of("DBA905", f"the tables have version {version}, which needs a newer Interlock")
    for number, step in enumerate(MIGRATIONS[version:], version + 1):
        link.execute(step.sql.encode())
        link.execute(
            "INSERT INTO interlock.meta (version, oldest) VALUES (%s, %s) "
            "ON CONFLICT (one) DO UPDATE SET version = excluded.version, oldest = excluded.oldest",
            (number, step.oldest),
        )
    return max(version, len(MIGRATIONS))


def check_rights(link: Link) -> None:
    """Refuse to be a worker as a role that may not write what workers write.

    Raises:
        DatabaseError: `DBA906` it may not, or the server only reads.
    """
    row = link.execute(
        "SELECT current_user AS role, pg_is_in_recovery() AS copies, "
        "has_table_privilege('interlock.checkpoints', 'INSERT') AS may"
    ).fetchone()
    assert row is not None
    if row["copies"]:
        raise DatabaseError.of("DBA906", "the server is a replica, which only reads")
    if not row["may"]:
        fix = f"As the owner of the database: GRANT interlock_worker TO {row['role']}; or run it as another role."
        raise DatabaseError(f"the role {row['role']} may not write what workers write", fix, "DBA906")


def setup_sql() -> str:
    """Return all that `set_up` runs on an empty database, for whoever may not run it from here; as `psql` reads it."""
    # Late: both take a second to import.
    from dbos.cli.migration import print_dbos_migrations  # noqa: PLC0415
    from langgraph.checkpoint.postgres import PostgresSaver  # noqa: PLC0415

    theirs = StringIO()
    with redirect_stdout(theirs):
        print_dbos_migrations(None)
    newest = MIGRATIONS[-1]
    numbers = ", ".join(f"({number})" for number in range(len(PostgresSaver.MIGRATIONS)))
    return "\n".join(
        [
            SETTINGS,
            "CREATE SCHEMA IF NOT EXISTS interlock;\nSET search_path = interlock, public;",
            *(step.sql.strip() for step in MIGRATIONS),
            f"INSERT INTO interlock.meta (version, oldest) VALUES ({len(MIGRATIONS)}, {newest.oldest});",  # noqa: S608
            "-- LangGraph's checkpoints",
            *(f"{each.strip().removesuffix(';')};" for each in PostgresSaver.MIGRATIONS),
            f"INSERT INTO checkpoint_migrations (v) VALUES {numbers};",  # noqa: S608
            theirs.getvalue(),
        ]
    )


def roles_sql() -> str:
    """Return the SQL that makes the three roles, which cannot log in, and gives them their rights.

    Give one to a person or a service with `GRANT interlock_worker TO alice`.
    """
    lines = list[str]()
    for role, rights in ROLES.items():
        # Asked first: whoever may make no roles is refused before PostgreSQL looks whether there is one.
        there = (
            f"IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN CREATE ROLE {role} NOLOGIN; END IF;"
        )
        make = f"{there} EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;"
        connect = f"EXECUTE format('GRANT CONNECT ON DATABASE %I TO {role}', current_database());"
        lines += [
            f"DO $$ BEGIN {make} END $$;",
            f"DO $$ BEGIN {connect} END $$;",
            f"GRANT USAGE ON SCHEMA interlock, dbos TO {role};",
            f"GRANT {rights} ON ALL TABLES IN SCHEMA interlock, dbos TO {role};",
            f"ALTER DEFAULT PRIVILEGES IN SCHEMA interlock, dbos GRANT {rights} ON TABLES TO {role};",
        ]
    lines += [
        "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA interlock, dbos TO interlock_server, interlock_worker;",
        "REVOKE INSERT, UPDATE, DELETE ON interlock.meta FROM interlock_server, interlock_worker;",
        "-- What a run has become is written by workers alone.",
        f"REVOKE INSERT, UPDATE, DELETE ON {_WORKERS_ONLY} FROM interlock_server;",
    ]
    return "\n".join(lines) + "\n"


_WORKERS_ONLY: Final = (
    "interlock.checkpoints, interlock.checkpoint_blobs, interlock.checkpoint_writes, interlock.worker"
)
