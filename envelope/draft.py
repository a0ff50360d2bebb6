"""Drafts: what is wrong, before the changes that all findings ask for are put together to edits of the text."""

from typing import TYPE_CHECKING, NamedTuple

from interlock.core.text import shown

if TYPE_CHECKING:
    from interlock.core.finding import Level


class Change(NamedTuple):
    """One change of the values of a field.

    Args:
        label: The label, or `EVIDENCE.key`.
        position: 0-based index of the value that is replaced or taken out; None for one that is added at the end.
        text: The new value; None takes the old one out.
    """

    label: str
    position: int | None
    text: str | None


class Draft(NamedTuple):
    """A finding before its edits are fitted to those of the others.

    Args:
        code: Code of the rule.
        field: The label or `LABEL.sub`; empty for the whole response.
        line: 1-based line, 0 when there is no place.
        column: 1-based column, 0 when there is no place.
        message: What is wrong, in one sentence.
        found: The text there, already quoted.
        expected: What would be right.
        changes: What its fix does to values. The edits of `field` are part of the fix in any case.
        advice: What to do, in words; it follows the edits. The rule's remedy when there is neither.
        level: Another level than the rule's default.
        lines: Lines outside of the values that its fix changes or takes out, ascending.
    """

    code: str
    field: str
    line: int
    column: int
    message: str
    found: str
    expected: str
    changes: tuple[Change, ...] = ()
    advice: str = ""
    level: "Level | None" = None
    lines: tuple[int, ...] = ()


def snippet(text: str, limit: int = 60) -> str:
    """Quote a short, escaped piece of untrusted text."""
    return code_span(shown(text, limit)) if text else "nothing"


def code_span(text: str) -> str:
    """Quote text as CommonMark code: any text, backticks and outer blanks included, can be read back.

    CommonMark takes a blank off both ends or off none, so indented text needs no more blanks than it has.
    """
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    ticks = "`" * (longest + 1)
    edges = text[:1] + text[-1:]
    pad = " " if edges in ("", "  ") or "`" in edges else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"
