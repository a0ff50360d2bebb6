"""The rules that a call can break, one row each, and how a refusal is made from a row."""

from collections.abc import Iterable
from typing import Any, Final, cast

from interlock.core import text as core
from interlock.core.finding import Finding
from interlock.reservations.answers import Conflict, Refusal

MAX_SHOWN: Final = 120
"""So many characters of what was found are shown."""

RULES: Final = {
    # -- patterns and arguments
    "RSV101": "A pattern is relative to the repository root and stays inside it.",
    "RSV102": "A pattern is well formed: brackets and braces are closed, no empty parts, no control characters.",
    "RSV103": "A pattern is small enough to be compared at once.",
    "RSV104": "A call names at least one pattern, and no more than a call may.",
    "RSV105": "An argument has its type and lies in its bounds.",
    "RSV106": "An idempotency key stands for one call with the same arguments.",
    "RSV107": "An agent's name is 1 to 100 printable characters, and not `interlock`.",
    # -- leases
    "RSV201": "A pattern is granted only when no other agent holds, or waits in front for, what overlaps it.",
    "RSV202": "A reservation is released by its holder.",
    "RSV203": "A reservation id names a lease that has not ended.",
    "RSV204": "Agents that wait for each other are told at once; the one that would close the circle is refused.",
    "RSV205": "An agent holds no more leases than it may.",
    "RSV206": "A guarded action needs a lease of its own that covers the path and has not ended.",
    "RSV207": "A command, a commit or the move of a branch leaves alone what other agents hold.",
    "RSV208": "A commit has something of one's own to carry, and git can make it now.",
    "RSV209": "A commit that arrives changes nothing that another agent held when it was made.",
    "RSV210": "A commit of what an agent held is recorded by `interlock commit`.",
    "RSV211": "An agent reads a file again before it edits what changed while others held it.",
    "RSV212": "No file is edited in a checkout in which a commit is at work: its hooks may set unsaved work aside.",
    "RSV213": "Git's own files and the store of the leases are changed by git and by Interlock alone.",
    "RSV214": "A merge keeps what an agent committed while it held the file.",
    "RSV215": "While others hold files, a shell command is spelled out: its program, and the files it changes.",
    # -- messages and negotiation
    "RSV301": "A message goes to an agent that exists.",
    "RSV302": "A message is small, and a typed body has the fields of its type.",
    "RSV303": "A release is asked of an agent that holds what is asked for.",
    "RSV304": "A thread id names a negotiation.",
    "RSV305": "A request is answered by the holder that it was sent to, while it is open.",
    "RSV306": "A deferral says in how many minutes.",
    "RSV307": "A lease with no_force is never taken by escalation.",
}
"""Code to rule. RSV9xx are errors of the store and the settings (`errors`)."""


def refuse(
    code: str,
    message: str,
    *,
    place: str,
    found: object,
    expected: str,
    fix: str,
    conflict: Conflict | None = None,
    next: dict[str, Any] | None = None,  # noqa: A002 - the name of the field
) -> Refusal:
    """Return a refusal of a known code.

    Args:
        place: The argument, such as `patterns[0]`.
        found: What was given; cut to `MAX_SHOWN` characters.
        next: A call that helps: `{"tool": …, "arguments": {…}}`.
    """
    assert code in RULES, code
    row: dict[str, Any] = {"code": code, "message": message, "place": place, "found": shown(found)}
    row |= {"expected": expected, "fix": fix}
    row |= {} if conflict is None else {"conflict": conflict}
    row |= {} if next is None else {"next": next}
    return cast("Refusal", row)


def refused(problem: Finding, place: str) -> Refusal:
    """Return the refusal of a text that is no pattern."""
    found, expected, fix = problem.found, problem.expected, problem.fix
    return refuse(problem.code, problem.message, place=place, found=found, expected=expected, fix=fix)


def shown(value: object) -> str:
    """Return a value as one short line of printable ASCII and letters."""
    text = value if isinstance(value, str) else _ascii(value)
    return core.shown(text, MAX_SHOWN - 1)


def some(texts: Iterable[str], most: int = 4, more: int = 0) -> str:
    """Return the first of some texts as one line, and how many more there are, `more` besides."""
    rows = [*map(shown, texts)]
    more += max(0, len(rows) - most)
    return ", ".join(rows[:most]) + (f" and {more} more" if more else "")


def _ascii(value: object) -> str:
    """Return a value as ASCII; what is nested too deep, or a number with too many digits, by its type alone."""
    try:
        return ascii(value)
    except (RecursionError, ValueError):
        return f"a {type(value).__name__} that is too large to show"
