"""The entry of the guard: what the hook of an agent's client asks before a shell command runs.

Threats: T1, and T2 as far as plain words go. Whatever a command does to held files is undone after it, so only what
cannot be undone is refused before. What is not plain passes; docs/limits.md says what is not seen.
"""

import os.path
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from interlock.reservations.leases.runtime import Context

if TYPE_CHECKING:
    from interlock.reservations.guard.held import Checkouts

_REMOVES: Final = re.compile(r"\b(?:rm|rmdir|mv)\b")
_SPEAKS: Final = re.compile(rf"git|interlock|>|INTER|CLAUDE_|{_REMOVES.pattern}")
"""What has to be in a line that is looked at."""
_OWNED: Final = re.compile(r"interlock|--am|stash|reset")
"""What is looked at though nobody holds anything: commits and entries of the stash still have an owner then."""


def check_command(
    command: str,
    cwd: str,
    env: Mapping[str, str],
    known: Mapping[str, Context] = MappingProxyType({}),
    owner_of_stash: Callable[[str], str | None] = lambda _entry: None,
) -> str | None:
    """Return the refusal of a shell command line, or None when it may run in the absolute folder `cwd`.

    Stores that are open already are `known` by their paths; who made an entry of the stash is asked for by its commit.
    A store that cannot be read raises `ReservationError`, since nobody knows what others hold.
    """
    said = command.replace("\\\n", "").translate(dict.fromkeys(map(ord, "'\"\\")))
    if not _SPEAKS.search(said):
        return None
    from interlock.reservations.guard.held import Checkouts, RefusedError  # noqa: PLC0415 - most lines need none of it

    checkouts = Checkouts(env, known)
    is_owned = checkouts.at(cwd).opened is not None and _OWNED.search(said)
    if not is_owned and "interlock" not in said and not _reaches_held(said, cwd, checkouts):
        return None
    from interlock.reservations.git.foreign_leases import note  # noqa: PLC0415
    from interlock.reservations.guard.judge import Judge  # noqa: PLC0415 - loads the parser

    try:
        Judge(checkouts, env, owner_of_stash).line(command, cwd)
    except RefusedError as refusal:
        if refusal.opened is not None:
            note(refusal.opened, "bash", refusal.action, refusal.hits)
        return refusal.text
    return None


def _reaches_held(said: str, cwd: str, checkouts: "Checkouts") -> bool:
    """Return whether others hold something in the present checkout, or in one that a word names or contains."""
    removes = _REMOVES.search(said)
    for word in dict.fromkeys(["", *re.split(r"[\s=;()<>&|]+", said)]):
        path = os.path.normpath(os.path.join(cwd, os.path.expanduser(word.replace("$HOME", "~")).split("*")[0]))
        if checkouts.at(path).all or (removes and any(checkouts.below(path))):
            return True
    return False
