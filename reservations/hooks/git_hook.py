"""What git's hook programs have in common: open, look at what others hold, refuse on standard error, or say nothing."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from interlock.core.errors import InterlockError
from interlock.reservations.git.foreign_leases import Held, Hit, explain, holdings, note, project
from interlock.reservations.leases.runtime import Context
from interlock.reservations.rules import shown

ZEROS: Final = frozenset("0")
"""What the id of a ref that is not there consists of."""


class Verdict(NamedTuple):
    """What a hook found.

    Args:
        hits: What it would touch; nothing is a pass.
        written: What of it git has written already when it asks.
    """

    action: str
    hits: Sequence[Hit]
    fix: str
    written: Sequence[Hit] = ()


def judged(door: str, env: Mapping[str, str], look: Callable[[Held], Verdict | None]) -> int:
    """Return the exit status of a hook: 0 without a word, or 1 with the reason on standard error.

    A store that cannot be read refuses: what it would have said is not known.

    Args:
        look: Called with what others hold, when they hold anything.
    """
    try:
        found = project(os.getcwd(), env, env.get("GIT_DIR", ""))
        if found is None:
            return 0
        opened, held = holdings(found, "git", env)
        verdict = look(held) if held else None
        if opened is None or verdict is None or not verdict.hits:
            return 0
        return refused(opened, door, verdict)
    except InterlockError as error:
        text = f"interlock {error.code}: {door} cannot see what other agents hold: {error.message}"
        sys.stderr.write(f"{text}\n  fix: {error.fix}\n")
        return 1


def refused(ctx: Context, door: str, verdict: Verdict) -> int:
    """Print a refusal, add it to the events, tell the holders of what has changed all the same, and return 1."""
    sys.stderr.write(f"{explain(verdict.action, verdict.hits, verdict.fix)}\n")
    note(ctx, door, verdict.action, verdict.hits)
    if verdict.written:
        from interlock.reservations.git import overwritten  # noqa: PLC0415 - few refusals come too late

        named = ", ".join(shown(path) for path, _ in verdict.written[: overwritten.MAX_NAMED])
        sys.stderr.write(f"  written already: {named}; whoever holds it has been told.\n")
        when = f"by a git command of {shown(ctx.caller.name)} that was refused too late"
        overwritten.tell(ctx, verdict.written, when, door)
    return 1


def is_zero(name: str) -> bool:
    """Return whether an id stands for nothing."""
    return ZEROS.issuperset(name)
