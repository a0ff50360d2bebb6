"""Whose change of a held file it was, and what is done about it: the table of the rule, without any input or output.

Answers T1 (a command that goes further than its author thought) and T2. Between two looks at a file anybody can have
written it whose tool call was in flight; so calls decide, never what a hook finds on the disk afterwards. The rows, the
first that fits:

| who was at work since the last look | the file is still there | the file is gone |
|---|---|---|
| an editing tool of the holder was about to write just this | keep | keep |
| nobody; the holder passes no hooks (a person in an editor) | keep | keep |
| nobody; the holder does | both | back |
| the holder alone | keep | keep |
| others alone; the holder passes no hooks | both | back |
| others alone | back | back |
| both; the holder by editing tools alone, whose results are known | back | back |
| both; the change came before all calls of one side | as the other side alone | back |
| both; a call of others began much nearer before the change | back | back |
| both; a call of the holder began much nearer before the change | both | both |
| both otherwise | both | back |

*keep*: the content is the new good version. *back*: the good version is put back. *both*: the newest stays and is good,
both versions are kept, and those concerned are told. What was undone is kept too, so no row loses anything. A command
changes files soon after it began as a rule, and servers and test runs go on beside it: hence the nearness.
"""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from interlock.core.record import Record
from interlock.reservations.versions.store import Call

Verdict: TypeAlias = Literal["keep", "back", "both"]

GRAIN_SECONDS: Final = 0.05
"""File systems take the time of a change from a clock that ticks every few milliseconds."""
NEARER: Final = 3.0
"""How many times nearer before the change a call of one side must have begun."""


class Change(Record):
    """A held file that is not as it was at the last look.

    Args:
        path: Absolute.
        is_gone: Nothing is there, or something else than a file or a link.
        changed_at: When it was changed, as the file system says; seconds since the epoch.
        is_expected: It is what an editing tool of the holder was about to write.
    """

    path: str
    is_gone: bool
    changed_at: float
    is_expected: bool = False


class Decision(Record):
    """What is done about a change.

    Args:
        by: The calls of others that may have made it.
        tells_them: Their agents are told as well: it is not most likely the holder's own.
    """

    verdict: Verdict
    by: Sequence[Call] = ()
    tells_them: bool = True


def decide(change: Change, mine: Sequence[Call], others: Sequence[Call], *, is_hooked: bool) -> Decision:
    """Return what is done about a change.

    Args:
        mine: Calls of the holders that may write this path and were in flight since the last look.
        others: Those of everybody else.
        is_hooked: The holder's calls pass hooks.
    """
    if change.is_expected:
        return Decision("keep")
    in_doubt: Verdict = "back" if change.is_gone else "both"
    if not others:
        return Decision(in_doubt if is_hooked and not mine else "keep")
    if not mine:
        return Decision("back" if is_hooked else in_doubt, others)
    if all(change.path in call.expected for call in mine):
        return Decision("back", others)
    ours, theirs = _age(change, mine), _age(change, others)
    if theirs is None and ours is not None and not change.is_gone:
        return Decision("keep")
    if ours is None or (theirs is not None and theirs * NEARER <= ours):
        return Decision("back", others)
    if theirs is None or ours * NEARER <= theirs:
        return Decision("both", others, tells_them=False)
    return Decision(in_doubt, others)


def _age(change: Change, calls: Sequence[Call]) -> float | None:
    """Return how long before the change the last of some calls began; None where all began after it."""
    ages = [change.changed_at - call.begun for call in calls if call.begun - GRAIN_SECONDS <= change.changed_at]
    return max(min(ages), GRAIN_SECONDS / NEARER) if ages else None
