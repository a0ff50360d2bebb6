"""The contract of `stores.py`, kept by SQLite in a file and in memory, and by PostgreSQL."""

from pathlib import Path

import pytest

from interlock.core.database import database
from interlock.reservations import PostgresStore, SqliteStore
from tests.conformance.stores import SharedStoreContract, StoreContract


class SqliteBackend:
    """One file."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def open(self, patience_seconds: float = 15) -> SqliteStore:
        return SqliteStore(self._path, patience_seconds)

    def program(self) -> str:
        return f"from interlock.reservations import SqliteStore\nstore = SqliteStore({self._path!r})\n"


class MemoryBackend:
    """One object: every handle is the same, and its patience is that of the last one who asked."""

    def __init__(self) -> None:
        self._store = SqliteStore(":memory:")

    def open(self, patience_seconds: float = 15) -> SqliteStore:
        self._store._writer._patience = patience_seconds  # pyright: ignore[reportPrivateUsage]
        return self._store


class PostgresBackend:
    """One database."""

    def __init__(self, address: str) -> None:
        self._address = address

    def open(self, patience_seconds: float = 15) -> PostgresStore:
        return PostgresStore(database(self._address), "", patience_seconds)

    def program(self) -> str:
        return (
            "from interlock.core.database import database\n"
            "from interlock.reservations.store.postgres import PostgresStore\n"
            f"store = PostgresStore(database({self._address!r}), '')\n"
        )


class TestSqlite(SharedStoreContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> SqliteBackend:
        return SqliteBackend(tmp_path / "made at first use" / "100%#?.sqlite")


class TestPostgres(SharedStoreContract):
    ZERO = "\u2400"

    @pytest.fixture
    def backend(self, empty_reservations: str) -> PostgresBackend:
        return PostgresBackend(empty_reservations)


class TestMemory(StoreContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend()
