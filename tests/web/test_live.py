"""What open pages hear of a project that several machines work on."""

import asyncio
from pathlib import Path

import psycopg
import pytest

from interlock.core.database import ADDRESS
from interlock.journal import journal_of
from interlock.web import live
from interlock.web.projects import Site
from tests.journal.kinds import TABLES


def test_a_page_hears_of_a_line_that_another_machine_wrote(
    postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(postgres_database) as link:
        link.execute(TABLES)
    monkeypatch.setenv(ADDRESS, postgres_database)
    monkeypatch.setattr(live, "COPY_SECONDS", 0.01)
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()

    async def hear() -> None:
        pages, written = live.Live(Site([here])), False
        async with asyncio.timeout(60):
            async for _ in pages.changes():
                if not written:
                    await asyncio.to_thread(journal_of(there).append, "R", "1", "t", {})
                    written = True
                elif pages.now() != "0":
                    pages.end()

    asyncio.run(hear())
    assert journal_of(here).path.read_bytes() == journal_of(there).path.read_bytes()
