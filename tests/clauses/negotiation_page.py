"""`docs/negotiation-prd.md`, made from the tables: `python -m tests.clauses.negotiation_page` writes it anew."""

from pathlib import Path
from typing import Final

from tests.clauses.clause import Source
from tests.clauses.field_study import FIELD_STUDY
from tests.clauses.page import tables
from tests.clauses.reservation_tools import RESERVATION_TOOLS
from tests.reservations.test_prd import CLAUSES

SOURCES: Final[dict[str, Source]] = {
    "Reservation Tools": RESERVATION_TOOLS,
    "Negotiation PRD": CLAUSES,
    "What went wrong before": FIELD_STUDY,
}

PAGE: Final = Path(__file__).parents[2] / "docs" / "negotiation-prd.md"

_HEAD: Final = """\
# The sources of the reservations, line by line

Reservations and negotiation were built to two documents. The Reservation Tools name eleven tools and how agents
negotiate with them; the Negotiation PRD has five features, F1 to F5, with acceptance lines. Behind them stands what
went wrong where agents shared a checkout without them, in a field study of five agents and in everyday use of git.
Each line stands here in our words, with the tests that fail when the project breaks it. `pytest -k NAME` runs one.

`settled` says where the project does otherwise, or more, and why. Where the two disagree (may a time limit take a
reservation?), both are built and a setting decides; the default is that of the Reservation Tools.

{count} lines, all built. [Sharing a checkout](sharing-a-checkout.md) shows them at work.

This page is made from the tables in `tests/clauses/reservation_tools.py`, `tests/clauses/field_study.py` and
`tests/reservations/test_prd.py`; `python -m tests.clauses.negotiation_page` writes it anew.
"""


def render() -> str:
    """Return the page."""
    count = sum(len(lines) for headings in SOURCES.values() for lines in headings.values())
    return _HEAD.format(count=count) + tables(SOURCES)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
