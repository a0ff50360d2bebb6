"""Fixtures of the journal's tests: a clock that ticks by itself, and a journal with a history."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from interlock.journal import Journal


@pytest.fixture
def clock() -> Callable[[], datetime]:
    """Give a clock that begins at noon of the first day of 2026 and advances by a second at each reading."""
    seconds = iter(range(10**9))

    def now() -> datetime:
        return datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=next(seconds))

    return now


@pytest.fixture
def journal(tmp_path: Path, clock: Callable[[], datetime]) -> Journal:
    """Give a new journal whose file is not there yet."""
    return Journal(tmp_path / "interlock" / "events.jsonl", clock=clock)
