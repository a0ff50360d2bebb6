"""Every line of the two sources of the reservations has its tests, and the page says so."""

from pathlib import Path

import pytest

from interlock.server import make_server
from tests.clauses.negotiation_page import PAGE, SOURCES, render
from tests.clauses.reservation_tools import RESERVATION_TOOLS
from tests.names import existing_tests
from tests.table import each_row

HEADINGS = [(source, heading) for source, headings in SOURCES.items() for heading in headings]


@each_row(("source", "heading"), HEADINGS)
def test_every_line_of_the_sources_is_held_by_tests_that_exist(source: str, heading: str) -> None:
    names = existing_tests()
    for row in SOURCES[source][heading]:
        assert row.tests, row.text
        assert [name for name in row.tests if name not in names] == []


@pytest.mark.anyio
async def test_the_tools_of_the_table_are_those_of_the_server(tmp_path: Path) -> None:
    named = [row.text.split("`")[1] for row in RESERVATION_TOOLS["Tools"]]
    assert named == [tool.name for tool in await make_server(tmp_path, toolsets=["reservations"]).list_tools()]


def test_the_page_of_the_reservations_is_what_the_tables_give() -> None:
    """To renew it: `python -m tests.clauses.negotiation_page`."""
    assert PAGE.read_text(encoding="utf-8") == render()
