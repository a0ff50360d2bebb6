"""The rules that a call can break, one row each, and how a refusal is made from a row."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from interlock.core import text as core

if TYPE_CHECKING:
    from interlock.core.finding import Finding
    from interlock.reservations.answers import Conflict, Refusal

SOURCE: Final = "Interlock: no two agents edit one file at once, and each can see what another does"

MAX_SHOWN: Final = 120
"""At most this many characters of what was found are shown."""

RULES: Final = {
    # -- patterns and arguments
    "RSV101": "A pattern is relative to the repository root and stays inside it.",
    "RSV102": "A pattern is well formed: brackets and braces are closed, no control characters, not too long.",
    "RSV105": "An argument has its type and is within its bounds.",
    "RSV107": "An agent's name is 1 to 100 printable characters, and not `interlock`.",
    # -- leases
    "RSV201": "A pattern is granted only when no other agent holds, or waits in front for, what overlaps it.",
    "RSV202": "A reservation is released by its holder, as long as it lasts.",
    "RSV204": "Nobody waits for an agent that waits for a lease of theirs.",
    "RSV206": "A guarded action needs a lease of its own that covers the path and has not ended.",
    "RSV207": "A command, a commit or the move of a branch leaves alone what other agents hold.",
    "RSV208": "A commit has changes of its agent to carry, and git can make it now.",
    "RSV209": "A commit that changes what an agent held is that agent's `interlock commit`, which is recorded.",
    "RSV212": "No file is edited in a checkout in which a commit is at work: its hooks may set unsaved work aside.",
    "RSV213": "Git's own files and the store of the leases are changed by git and by Interlock alone.",
    "RSV215": "While others hold files, a git command says which subcommand it is, and where it moves to.",
    "RSV216": "A hook answers within ten seconds.",
    # -- messages and negotiation
    "RSV301": "A message goes to an agent that exists.",
    "RSV302": "A message is small, and a typed body has the fields of its type.",
    "RSV303": "A release is asked of an agent that holds what is asked for.",
    "RSV305": "A request is answered on its thread, by the holder that it was sent to.",
    "RSV307": "A lease with no_force is never taken by escalation.",
    # -- what cannot be read or kept, besides `errors`
    "RSV901": "One process writes at a time, and each in turn within some seconds.",
    "RSV903": "The store can be made and written.",
    "RSV904": "INTERLOCK_AUTO_RELEASE is 1 or clean, or not set.",
    "RSV907": "What comes on a hook's standard input is what a client sends.",
    "RSV909": "The commits that are checked can be read, and so can the records of leases to check them against.",
    "RSV910": "Held work can be kept: it is within the bounds, and there is space.",
    "RSV911": "A version that is named is kept.",
}
"""Code to rule."""

REMEDIES: Final = {
    "RSV101": "It is absolute, has `..`, or names the root itself. Write it like `src/app.py` or `src/**`.",
    "RSV102": "Close the bracket or brace, write `[*]` for the character itself, or use several patterns.",
    "RSV105": "Send what the tool's schema says; the message names the argument and its bounds.",
    "RSV107": (
        "Journal and messages name agents, and `interlock` is the service itself. Set INTERLOCK_AGENT_ID to another."
    ),
    "RSV201": "Work on something else, wait with `reserve_files(wait_seconds=…)`, or ask for it: `request_release`.",
    "RSV202": "Release your own, which `my_reservations` lists; ask the holder of another with `negotiate_release`.",
    "RSV204": "Release what they wait for, then reserve everything that you need in one call.",
    "RSV206": "It was never reserved, or ended meanwhile: reserve it, read the file again, then act.",
    "RSV207": "It would overwrite work that is not saved. Leave out their files, or wait until they are released.",
    "RSV208": (
        "Nothing changed under a lease of yours, a file has conflicts, or a merge is at work. Reserve what you edited, "
        "settle the conflicts, or finish the merge."
    ),
    "RSV209": (
        "Somebody else committed what an agent was editing, or nobody knows who did. Commit with `interlock commit`, "
        "or confirm it in review."
    ),
    "RSV212": "What is saved now could be lost. Wait some seconds, read the file again, then make the same edit.",
    "RSV213": (
        "A change there affects everybody's work or leases. Use git's commands, such as `git config`, or ask a person."
    ),
    "RSV215": "It could move HEAD or a branch under others. Write the subcommand, the branch and the commit out.",
    "RSV216": "The store or git was busy, or the command is very long. Try again; write a long command as a script.",
    "RSV301": "Agents exist from their first call. `list_agents` names those that are here.",
    "RSV302": "Shorten it and point at a file; a typed body has just the fields that the message lists.",
    "RSV303": "Ask the holder, whom `my_reservations` and a refusal name; what nobody holds can be reserved at once.",
    "RSV305": "It was sent to somebody else, or there is none. Answer the requests in your own inbox.",
    "RSV307": "Its holder asked for that. Wait, write to the holder, or ask a person.",
    "RSV901": "Call again; if it lasts, another process hangs: end that one.",
    "RSV903": "The folder is missing, read-only or full, or the file is a link. Make its folder writable.",
    "RSV904": "Set the variable to 1 or clean, or unset it.",
    "RSV907": (
        "An edit that cannot be read is not let through. Call the hook from the settings that `interlock init` writes; "
        "upgrade Interlock where the client is newer."
    ),
    "RSV909": (
        "The range names nothing here, the clone is too shallow, or the journal is missing. Fetch the commits, name a "
        "range such as origin/main..HEAD, and point at the journal."
    ),
    "RSV910": ("A command could destroy what is not kept. Let its holder commit and release it, or free some space."),
    "RSV911": "Versions are kept for a week. `interlock recover` lists those that are there.",
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
    conflict: "Conflict | None" = None,
    next: dict[str, Any] | None = None,  # noqa: A002 - the name of the field
) -> "Refusal":
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


def refused(problem: "Finding", place: str) -> "Refusal":
    """Return the refusal of a text that is not a pattern."""
    found, expected, fix = problem.found, problem.expected, problem.fix
    return refuse(problem.code, problem.message, place=place, found=found, expected=expected, fix=fix)


def shown(value: object) -> str:
    """Return a value as one short line of printable ASCII and letters."""
    return core.shown(value, MAX_SHOWN - 1)


def named(name: object) -> str:
    """Return what another agent chose as a code span that no part of it can end."""
    span = shown(name).replace("`", "\\u{0060}")
    return f"`{span}`"


def some(texts: Iterable[str], most: int = 4) -> str:
    """Return the first of some texts as one line, and how many more there are."""
    rows = [*map(shown, texts)]
    more = max(0, len(rows) - most)
    return ", ".join(rows[:most]) + (f" and {more} more" if more else "")
