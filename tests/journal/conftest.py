"""Fixtures of the journal's tests: a clock that ticks by itself, and journals, as files alone and as copies.

Every test that asks for `journal` or `opened` runs for both kinds; `FILE_ALONE` marks what is about the file itself.
"""

from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from interlock.core.database import Database
from interlock.journal import Journal, Upstream
from tests.journal.kinds import TABLES, Opened, Place

if TYPE_CHECKING:
    from tests.postgres import Server


@pytest.fixture
def clock() -> Callable[[], datetime]:
    """Give a clock that begins at noon of the first day of 2026 and advances by a second at each reading."""
    seconds = iter(range(10**9))

    def now() -> datetime:
        return datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=next(seconds))

    return now


@pytest.fixture(scope="session")
def lines(postgres: "Server") -> Generator[str]:
    """Give the address of a database for the lines of many journals."""
    with postgres.database() as address:
        with Database(address, checked=False).transaction() as link:
            link.execute(TABLES)
        yield address


@pytest.fixture(scope="session")
def database(lines: str) -> Generator[Database]:
    """Give a database for the lines of many journals."""
    database = Database(lines, checked=False)
    yield database
    database.close()


@pytest.fixture(params=["file", "copy"])
def kind(request: pytest.FixtureRequest) -> str:
    """Give what a journal is: a file alone, or the copy of lines in a database."""
    return request.param


@pytest.fixture
def place(kind: str, request: pytest.FixtureRequest) -> Place:
    """Give what tells a program, besides the path of a journal, where its lines are."""
    if kind == "file":
        return lambda _: []
    address = request.getfixturevalue("lines")
    return lambda path: [address, str(path)]


@pytest.fixture
def opened(kind: str, request: pytest.FixtureRequest) -> Opened:
    """Give what opens a journal at a path."""
    if kind == "file":
        return Journal
    database = request.getfixturevalue("database")

    def copy(path: Path, **more: Any) -> Journal:
        return Journal(path, Upstream(database, str(path)), **more)

    return copy


@pytest.fixture
def journal(tmp_path: Path, opened: Opened, clock: Callable[[], datetime]) -> Journal:
    """Give a new journal whose file is not there yet."""
    return opened(tmp_path / "interlock" / "events.jsonl", clock=clock)
