"""One sentence of a source, and the tests that hold the project to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Clause:
    """One sentence, field, state, arrow or rule.

    Args:
        text: As it stands in the source; an arrow of a diagram is written `from → to: label`.
        tests: The names of the tests that fail when the project breaks it.
        settled: Where the project does otherwise or more: what it does, and why; otherwise empty.
    """

    text: str
    tests: tuple[str, ...]
    settled: str


def clause(text: str, *tests: str, settled: str = "") -> Clause:
    """Make a row."""
    return Clause(text, tests, settled)


Source: TypeAlias = Mapping[str, tuple[Clause, ...]]
"""Heading to rows, both in the order of the source; a heading stands without its number and file name."""
