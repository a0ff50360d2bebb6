"""The rules that a call can break, one row each, and how a refusal is made from a row."""

from collections.abc import Iterable
from typing import Any, Final, cast

from interlock.core import text as core
from interlock.core.finding import Finding
from interlock.reservations.answers import Conflict, Refusal

SOURCE: Final = "Interlock: no two agents edit one file at once, and each can see what another does"

MAX_SHOWN: Final = 120
"""At most this many characters of what was found are shown."""

RULES: Final = {
    # -- patterns and arguments
    "RSV101": "A pattern is relative to the repository root and stays inside it.",
    "RSV102": "A pattern is well formed: brackets and braces are closed, no empty parts, no control characters.",
    "RSV103": "A pattern is small enough to be compared at once.",
    "RSV104": "A call names at least one pattern, and no more than a call may.",
    "RSV105": "An argument has its type and is within its bounds.",
    "RSV106": "An idempotency key belongs to one call with the same arguments.",
    "RSV107": "An agent's name is 1 to 100 printable characters, and not `interlock`.",
    # -- leases
    "RSV201": "A pattern is granted only when no other agent holds, or waits in front for, what overlaps it.",
    "RSV202": "A reservation is released by its holder.",
    "RSV203": "A reservation id names a lease that has not ended.",
    "RSV204": "Agents that wait for each other are notified at once; the one that would close the circle is refused.",
    "RSV205": "An agent holds no more leases than it may.",
    "RSV206": "A guarded action needs a lease of its own that covers the path and has not ended.",
    "RSV207": "A command, a commit or the move of a branch leaves alone what other agents hold.",
    "RSV208": "A commit has changes of its agent to carry, and git can make it now.",
    "RSV209": "A commit that arrives changes nothing that another agent held when it was made.",
    "RSV210": "A commit of what an agent held is recorded by `interlock commit`.",
    "RSV211": "An agent reads a file again before it edits what changed while others held it.",
    "RSV212": "No file is edited in a checkout in which a commit is at work: its hooks may set unsaved work aside.",
    "RSV213": "Git's own files and the store of the leases are changed by git and by Interlock alone.",
    "RSV214": "A merge keeps what an agent committed while it held the file.",
    "RSV215": "While others hold files, a git command says which subcommand it is, and where it moves to.",
    "RSV216": "A hook answers within ten seconds.",
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

REMEDIES: Final = {
    "RSV101": "It is absolute, has `..`, or names the root itself. Write it like `src/app.py` or `src/**`.",
    "RSV102": "Close the bracket or brace, or write `[*]` for the character itself.",
    "RSV103": (
        "Patterns are compared with each other in every call. Use fewer braces and wildcards, or several patterns."
    ),
    "RSV104": (
        "Name what you edit next; for more than one call takes, send a wider pattern such as `src/**`, or two calls."
    ),
    "RSV105": "Send what the tool's schema says; the message names the argument and its bounds.",
    "RSV106": "A repeated call gets the first answer again. Send the same arguments, or a new key for a new call.",
    "RSV107": (
        "Journal and messages name agents, and `interlock` is the service itself. Set INTERLOCK_AGENT_ID to another."
    ),
    "RSV201": "Work on something else, wait with `reserve_files(wait_seconds=…)`, or ask for it: `request_release`.",
    "RSV202": "Release your own, which `my_reservations` lists; ask the holder of another with `request_release`.",
    "RSV203": (
        "Leases end by release, by time, or when their agent is gone. `my_reservations` lists those that you hold."
    ),
    "RSV204": "Release what they wait for, then reserve everything that you need in one call.",
    "RSV205": "Release what you no longer edit, or hold a wider pattern in place of many.",
    "RSV206": "It was never reserved, or ended meanwhile: reserve it, read the file again, then act.",
    "RSV207": "It would overwrite work that is not saved. Leave out their files, or wait until they are released.",
    "RSV208": (
        "Nothing changed under a lease of yours, or a merge is at work. Reserve what you edited, or finish the merge."
    ),
    "RSV209": "Somebody committed what another agent was editing. Have the holder commit it, or confirm it in review.",
    "RSV210": (
        "Without the record nobody knows whose work it is. Commit with `interlock commit`, or confirm it in review."
    ),
    "RSV211": (
        "An edit made from the old text would undo theirs. Read the file again, then edit; it is reserved for you."
    ),
    "RSV212": "What is saved now could be lost. Wait some seconds, read the file again, then make the same edit.",
    "RSV213": (
        "A change there affects everybody's work or leases. Use git's commands, such as `git config`, or ask a person."
    ),
    "RSV214": (
        "A merge that took one side whole drops the other. Merge again and keep both, or have the holder confirm it."
    ),
    "RSV215": "It could move HEAD or a branch under others. Write the subcommand, the branch and the commit out.",
    "RSV216": "The store or git was busy, or the command is very long. Try again; write a long command as a script.",
    "RSV301": "Agents exist from their first call. `list_agents` names those that are here.",
    "RSV302": "Shorten it and point at a file; a typed body has just the fields that the message lists.",
    "RSV303": "Ask the holder, whom `my_reservations` and a refusal name; what nobody holds can be reserved at once.",
    "RSV304": "Use the `thread_id` that `request_release` returned, or that came with the request.",
    "RSV305": "It was sent to somebody else, answered, or withdrawn. Answer the requests in your own inbox.",
    "RSV306": "The requester plans with it. Send `eta_minutes`, a whole number of at least 1.",
    "RSV307": "Its holder asked for that. Wait, write to the holder, or ask a person.",
}
"""Code to the cause of a breach and what to do, for `interlock explain`."""


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
    """Return the refusal of a text that is not a pattern."""
    found, expected, fix = problem.found, problem.expected, problem.fix
    return refuse(problem.code, problem.message, place=place, found=found, expected=expected, fix=fix)


def shown(value: object) -> str:
    """Return a value as one short line of printable ASCII and letters."""
    text = value if isinstance(value, str) else _ascii(value)
    return core.shown(text, MAX_SHOWN - 1)


def named(name: object) -> str:
    """Return what another agent chose as a code span that no part of it can end."""
    span = shown(name).replace("`", "\\u{0060}")
    return f"`{span}`"


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
