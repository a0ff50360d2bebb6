"""Whose change of a held file it was, and what is done about it: the table of the rule, without any input or output.

Answers T1 (a command that goes further than its author thought) and T2. Between two looks at a file anybody can have
written it whose tool call was in flight; so calls decide, never what a hook finds on the disk afterwards. The rows, the
first that fits:

| who was at work since the last look | the file is still there | the file is gone |
|---|---|---|
| an editing tool of the holder was about to write just this | keep | keep |
| nobody; the holder passes no hooks (a person in an editor) | keep | keep |
| nobody; the holder does | both | put back |
| the holder alone | keep | keep |
| others alone; the holder passes no hooks | both | put back |
| others alone | put back | put back |
| both; the holder by editing tools alone, whose results are known | put back | put back |
| both; the time of the change lies within the calls of one side alone | as that side alone | put back |
| both otherwise | both | put back |

A call in the foreground goes before commands in the background: beside a server that runs for hours, nothing else could
be told. *keep*: the content is the new good version. *both*: the newest stays and is good, both versions are kept, and
both sides are told. What was undone is kept too, so no row loses anything.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from interlock.reservations.versions.store import Call

Verdict: TypeAlias = Literal["keep", "back", "both"]

GRAIN_SECONDS = 0.05
"""File systems take the time of a change from a clock that ticks every few milliseconds."""


class Change(NamedTuple):
    """A held file that is not as it was at the last look.

    Args:
        path: Absolute.
        digest: Of what is there now; empty where it is gone, or no file.
        is_gone: Nothing is there, or something else than a file or a link.
        changed_at: When it was changed, as the file system says; seconds since the epoch.
    """

    path: str
    digest: str
    is_gone: bool
    changed_at: float


def decide(
    change: Change, mine: Sequence[Call], others: Sequence[Call], now: float, *, is_hooked: bool
) -> tuple[Verdict, list[Call]]:
    """Return what is done, and the calls of others that may have made the change.

    Args:
        mine: Calls of the holders that may write this path and were in flight since the last look.
        others: Those of everybody else.
        is_hooked: The holder's calls pass hooks.
    """
    expected = {digest for call in mine for digest in call.expected.get(change.path, ())}
    if change.digest in expected:
        return "keep", []
    mine, others = _nearest(mine, others)
    if not mine and not others:
        if is_hooked:
            return ("back" if change.is_gone else "both"), []
        return "keep", []
    if not others:
        return "keep", []
    if change.is_gone:
        return "back", [*others]
    if not mine:
        return ("back" if is_hooked else "both"), [*others]
    if all(change.path in call.expected for call in mine):
        return "back", [*others]
    return _by_time(change, mine, others, now), [*others]


def _nearest(mine: Sequence[Call], others: Sequence[Call]) -> tuple[Sequence[Call], Sequence[Call]]:
    """Return the calls in the foreground, where there are any, in place of all; an editing tool is never behind."""
    at_front = [[call for call in calls if call.paths or not call.background] for calls in (mine, others)]
    return (at_front[0], at_front[1]) if any(at_front) else (mine, others)


def _by_time(change: Change, mine: Sequence[Call], others: Sequence[Call], now: float) -> Verdict:
    def may_be_of(calls: Sequence[Call]) -> bool:
        return any(call.begun - GRAIN_SECONDS <= change.changed_at <= now + GRAIN_SECONDS for call in calls)

    was_mine, was_theirs = may_be_of(mine), may_be_of(others)
    if was_mine == was_theirs:
        return "both"
    return "keep" if was_mine else "back"
