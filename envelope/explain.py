"""Rules explained to people: what a code means, why it is there, and what right and wrong look like."""

from collections.abc import Iterable
from typing import Protocol


class RuleRow(Protocol):
    """What the rows of every rule table have, whatever package they belong to."""

    @property
    def code(self) -> str:
        """Stable code."""
        ...

    @property
    def level(self) -> str:
        """Level of its findings."""
        ...

    @property
    def title(self) -> str:
        """What must hold."""
        ...

    @property
    def source(self) -> str:
        """The clause that it enforces."""
        ...

    @property
    def good(self) -> str:
        """What it accepts."""
        ...

    @property
    def bad(self) -> str:
        """What it refuses."""
        ...


def explain(rules: Iterable[RuleRow], code: str) -> str | None:
    """Return the page of one rule, or None when no row has this code. Case does not matter."""
    row = next((row for row in rules if row.code == code.upper()), None)
    return None if row is None else _page(row)


def overview(rules: Iterable[RuleRow]) -> str:
    """Return one line for each rule: code, level, title, source."""
    return "".join(f"{row.code}  {row.level:7}  {row.title} [{row.source}]\n" for row in rules)


def _page(row: RuleRow) -> str:
    parts = [f"{row.code} ({row.level}): {row.title}", "", f"Source: {row.source}"]
    parts += [f"{name}: {text}" for name, text in (("Why", _extra(row, "why")), ("Fix", _extra(row, "remedy"))) if text]
    examples = ("", "Bad:", _indented(row.bad), "", "Good:", _indented(row.good)) if row.good or row.bad else ()
    return "\n".join((*parts, *examples, ""))


def _extra(row: RuleRow, name: str) -> str:
    """Return a column that only some tables have."""
    return str(getattr(row, name, ""))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.split("\n"))
