"""The contract of `stores.py`, kept by SQLite and by the double that other tests use."""

from pathlib import Path

import pytest

from interlock.reservations import SqliteStore, Store
from tests.conformance.stores import SharedStoreContract, StoreContract
from tests.reservations.memory import MemoryStore


class SqliteBackend:
    """One file."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def open(self, patience_seconds: float = 15) -> Store:
        return SqliteStore(self._path, patience_seconds)

    def program(self) -> str:
        return f"from interlock.reservations import SqliteStore\nstore = SqliteStore({self._path!r})\n"


class MemoryBackend:
    """One object: every handle is the same, and its patience is that of the last one who asked."""

    def __init__(self) -> None:
        self._store = MemoryStore()

    def open(self, patience_seconds: float = 15) -> Store:
        self._store.patience_seconds = patience_seconds
        return self._store


class TestSqlite(SharedStoreContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> SqliteBackend:
        return SqliteBackend(tmp_path / "made at first use" / "100%#?.sqlite")


class TestMemory(StoreContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend()
