"""What git's hook programs have in common: open, look at what others hold, refuse on standard error, or say nothing."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from interlock.reservations.answers import Conflict
from interlock.reservations.desk import Caller, Desk
from interlock.reservations.errors import ReservationError
from interlock.reservations.held import Hit, explain, holdings, note, project

ZEROS: Final = frozenset("0")
"""What the id of a ref that is not there consists of."""

Verdict: TypeAlias = tuple[str, list[Hit], str]
"""What would happen, what it would touch, and the fix; nothing touched is a pass."""


def judged(door: str, env: Mapping[str, str], look: Callable[[Sequence[Conflict]], Verdict | None]) -> int:
    """Return the exit status of a hook: 0 without a word, or 1 with the reason on standard error.

    A store that cannot be read refuses: what it would have said is not known.

    Args:
        door: The hook's name.
        env: The environment that git gave it.
        look: Called with what others hold, when they hold anything.
    """
    try:
        found = project(os.getcwd(), env, env.get("GIT_DIR", ""))
        opened, held = (None, []) if found is None else holdings(found, "git", env)
        verdict = look(held) if held else None
        if opened is None or verdict is None or not verdict[1]:
            return 0
        return refused(*opened, door, verdict)
    except ReservationError as error:
        text = f"interlock {error.code}: {door} cannot see what other agents hold: {error.message}"
        sys.stderr.write(f"{text}\n  fix: {error.fix}\n")
        return 1


def refused(desk: Desk, caller: Caller, door: str, verdict: Verdict) -> int:
    """Print a refusal, add it to the events, and return 1."""
    action, hits, fix = verdict
    sys.stderr.write(f"{explain(action, hits, fix)}\n")
    note(desk, caller, door, action, hits)
    return 1


def is_zero(name: str) -> bool:
    """Say whether an id stands for nothing."""
    return ZEROS.issuperset(name)
