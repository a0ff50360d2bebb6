"""What the project was built to and promises: the tables of three pages, which name the tests for each line."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

PAGES: Final = {
    name: (Path(__file__).parents[1] / "docs" / f"{name}.md").read_text("utf-8")
    for name in ("ticket-protocol", "negotiation-prd", "promises")
}


class Line(NamedTuple):
    """One sentence, field, state, arrow or rule of a source.

    Args:
        source: The document that it is from.
        heading: The heading above it there.
        text: Word for word, or in our words.
        tests: The names of the tests that fail when the project breaks it.
        settled: Where the project does otherwise or more: what it does, and why; otherwise empty.
    """

    source: str
    heading: str
    text: str
    tests: tuple[str, ...]
    settled: str


def lines(page: str) -> Iterator[Line]:
    """Yield the lines of a page of `PAGES`, in its order."""
    source = heading = ""
    for row in PAGES[page].splitlines():
        if row.startswith("## "):
            source = row[3:]
        elif row.startswith("### "):
            heading = row[4:]
        elif row.startswith("| ") and row not in {"| sentence | tests | settled |", "| --- | --- | --- |"}:
            _, text, tests, settled, end = re.split(r"(?<!\\)\|", row)
            assert end == "", row
            names = () if tests == " none " else tuple(name.strip(" `") for name in tests.split("<br>"))
            yield Line(source, heading, text.strip().replace(r"\|", "|"), names, settled.strip())
