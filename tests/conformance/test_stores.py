"""The contract of `stores.py`, kept by SQLite in a file and in memory."""

from pathlib import Path

import pytest

from interlock.reservations import SqliteStore
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


class TestSqlite(SharedStoreContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> SqliteBackend:
        return SqliteBackend(tmp_path / "made at first use" / "100%#?.sqlite")


class TestMemory(StoreContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend()
