"""`docs/ticket-protocol.md`, made from the tables: `python -m tests.clauses.page` writes it anew."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.clauses.clause import Clause, Source
from tests.clauses.governance_flow import GOVERNANCE_DESIGN
from tests.clauses.ticket_protocol import TICKET_PROTOCOL

SOURCES: Final[dict[str, Source]] = {"Ticket Protocol": TICKET_PROTOCOL, "Governance Design": GOVERNANCE_DESIGN}

PAGE: Final = Path(__file__).parents[2] / "docs" / "ticket-protocol.md"

_HEAD: Final = """\
# The two sources of the ticket pipeline, sentence by sentence

The ticket pipeline was built to two documents. The Ticket Protocol says how an agent works a ticket over MCP; the
Governance Design says how a small server holds an agent to seven states. Every sentence, field, state, arrow and rule
of both stands here in its order, with the tests that fail when the project breaks it. `pytest -k NAME` runs one.

`settled` says where the project does otherwise, or more, and why. Where the sources disagree, the server owns the
state: a ticket that an agent submits contributes its payload, and everything else in it is compared.

{count} sentences. Not built: {missing}

This page is made from the tables in `tests/clauses`; `python -m tests.clauses.page` writes it anew.
"""


def rows() -> Iterator[tuple[str, str, Clause]]:
    """Yield every row with its source and heading."""
    for source, headings in SOURCES.items():
        for heading, clauses in headings.items():
            for row in clauses:
                yield source, heading, row


def render() -> str:
    """Return the page."""
    every = list(rows())
    missing = [row.text.rpartition(": ")[2] for _, _, row in every if not row.tests]
    return _HEAD.format(count=len(every), missing="; ".join(missing) + ".") + tables(SOURCES)


def tables(sources: Mapping[str, Source]) -> str:
    """Return a table for each heading of each source."""
    parts: list[str] = []
    for source, headings in sources.items():
        parts.append(f"\n## {source}\n")
        for heading, clauses in headings.items():
            parts.append(f"\n### {heading}\n\n| sentence | tests | settled |\n| --- | --- | --- |\n")
            parts += [_line(row) for row in clauses]
    return "".join(parts)


def _line(row: Clause) -> str:
    tests = "<br>".join(f"`{name}`" for name in row.tests) or "none"
    return f"| {row.text.replace('|', chr(92) + '|')} | {tests} | {row.settled} |\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
