"""Findings: what a check says about one place of one response, and the edit that would fix it."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["error", "warning", "note"]
EditKind: TypeAlias = Literal["replace", "delete", "insert-after"]


@dataclass(frozen=True, slots=True)
class Edit:
    """One mechanical change to the lines of a response, in the numbering of the text that was checked.

    Args:
        kind: What to do.
        line: 1-based first line that the edit touches; for `insert-after`, 0 means before the first line.
        end_line: 1-based last line that a `replace` or `delete` touches.
        text: The new lines, joined by a newline, without a final newline.
    """

    kind: EditKind
    line: int
    end_line: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer of one rule.

    Args:
        code: Stable code of the rule, such as `ENV203`.
        level: `error` makes the response invalid; `warning` and `note` do not.
        field: The label (`STATUS`) or `LABEL.sub` (`EVIDENCE.a11y`); empty when the whole text is meant.
        line: 1-based line in the text as given; 0 when there is no place.
        column: 1-based column, counted in code points; 0 when there is no place.
        message: What is wrong, in one sentence.
        found: The text there.
        expected: What would be right.
        fix: What to do, in the imperative.
        source: The clause of the source that the rule enforces.
        edits: The same fix as line edits, where they do not depend on the agent's intent.
    """

    code: str
    level: Level
    field: str
    line: int
    column: int
    message: str
    found: str
    expected: str
    fix: str
    source: str
    edits: tuple[Edit, ...] = ()
