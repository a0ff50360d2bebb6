"""The entry of the guard of shell commands: what the hook of an agent's client asks before a command runs.

Best effort, and said so in docs/coverage.md: it reads what the line says, and what a script or another program does is
compared after the call. Git's own hooks are the second line of defence.
"""

import os.path
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from interlock.reservations.git.foreign_leases import note
from interlock.reservations.guard import prefilter
from interlock.reservations.leases.runtime import Context

if TYPE_CHECKING:
    from interlock.reservations.guard.effects import Checkouts

MAX_WORDS: Final = 200
"""At most this many words of a line are searched for other checkouts; with more, the line is read."""


_UNSAID: Final = ("$", "`", "{", "*", "?", "[", "xargs", "parallel")
"""What may mean the subcommand of a line."""


def check_command(
    command: str, cwd: str, env: Mapping[str, str], known: Mapping[str, Context] = MappingProxyType({})
) -> str | None:
    """Return the refusal of a shell command line, or None when it may run in the absolute folder `cwd`.

    Where others hold nothing, everything passes and the parser is not loaded, but for two things: hooks of Interlock
    are not called by hand, where there is a store, since their input says who an agent is; and no agent decides
    in a person's place. A store that cannot be read raises `ReservationError`, for what others hold is not known.
    """
    if prefilter.is_plain(command):
        return None
    from interlock.reservations.guard.effects import Checkouts  # noqa: PLC0415 - most commands are plain

    checkouts = Checkouts(env, known)
    is_free = not checkouts.at(cwd).held and not _reaches_held(command, cwd, checkouts)
    by_hand = ("answer", "ui") if checkouts.at(cwd).opened is None else ("answer", "ui", "hook")
    plain = prefilter.unquoted(command)
    if is_free and ("interlock" not in plain or not any(verb in plain for verb in (*by_hand, *_UNSAID))):
        return None
    from interlock.reservations.guard.effects import OWN_HOOKS, PERSONS, WHEEL, RefusedError, unread  # noqa: PLC0415 - not for a quick yes

    try:
        try:
            from interlock.reservations.guard.walk import Walk  # noqa: PLC0415 - loads the parser
        except ImportError as error:
            if is_free or "git" not in plain:
                return None
            needed = "tree-sitter and tree-sitter-bash installed"
            raise unread("git …", str(error), needed, checkouts.holding(cwd), fix=WHEEL) from None
        Walk(checkouts, env, cwd).judge(command)
    except RefusedError as refusal:
        if is_free and refusal.fix not in (OWN_HOOKS, PERSONS):
            return None
        if refusal.checkout.opened is not None:
            # The program and its subcommand, or the name of a variable: what follows may be secret.
            words = refusal.action.split(" ")[: 2 if refusal.action.startswith("git ") else 1]
            note(refusal.checkout.opened, "bash", " ".join(words).partition("=")[0], refusal.hits)
        return refusal.text
    return None


def _reaches_held(command: str, cwd: str, checkouts: "Checkouts") -> bool:
    words = list(dict.fromkeys(re.split(r"[\s=;()<>&|]+", prefilter.unquoted(command))))
    if len(words) > MAX_WORDS:
        words = [word for word in words if "/" in word or ".." in word][:MAX_WORDS]
    paths = {word: os.path.join(cwd, os.path.expanduser(word.replace("$HOME", "~")).split("*")[0]) for word in words}
    near = [path for word, path in paths.items() if "/" in word or ".." in word or os.path.isdir(path)]
    return any(checkouts.at(folder).held for path in near for folder in (path, os.path.dirname(path)))
