"""Unsaved work that changes hands: a report to who gives it away and to who gets it, afterwards; never a refusal.

Git is asked outside the transaction, and about the caller's checkout alone: what is in another one stays there.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from interlock.core.patterns import Pattern, canonical, covers
from interlock.reservations.leases import granting, marks
from interlock.reservations.leases.marks import Turn
from interlock.reservations.leases.runtime import Context, Entry
from interlock.reservations.rules import shown, some
from interlock.reservations.store.records import Lease, iso, key_of

MAX_LISTED: Final = 5
"""At most this many patterns are listed; the others are counted."""

ASKED_ALWAYS: Final = frozenset({"cli", "http", "mcp"})
"""The entry points of calls that are made on purpose. A hook or a run asks git only where another had the file."""


def given_up(entry: Entry, ended: Iterable[Lease]) -> list[str]:
    """Return the patterns of ended leases that the caller may no longer write in, by none of its leases."""
    # What is one path covers nothing but itself, and nobody has two leases on that.
    wide = (row for row in entry.tx.leases_of(entry.agent.name) if row.exclusive and row.pattern != row.prefix)
    own = [granting.pattern_of(lease.pattern) for lease in wide]
    patterns = [lease.pattern for lease in ended if lease.exclusive]
    return [text for text in patterns if not any(covers(mine, granting.pattern_of(text)) for mine in own)]


def given(ctx: Context, patterns: Iterable[str]) -> dict[str, Any]:
    """Return what an answer says of patterns that were given up with uncommitted changes; nothing without any."""
    unsaved = _changed(ctx, patterns)
    if not unsaved:
        return {}
    text = (
        f"Uncommitted changes of {some(unsaved)} go with it; commit first with `interlock commit` if you "
        "meant to keep them (reserve it again for that)."
    )
    call = {"tool": "reserve_files", "arguments": {"patterns": unsaved[:MAX_LISTED]}}
    return {"unsaved": _report(unsaved, text, call)}


def new_of(entry: Entry, looks: Iterable[granting.Look]) -> dict[str, Turn]:
    """Return the patterns that a grant newly gives to the caller and that git is to be asked about.

    Left out is what the caller had last itself: what is in it is its own. Call it before the grant.
    """
    found: dict[str, Turn] = {}
    for look in looks:
        claim = look.serving
        if claim is not None and not claim.claim:
            continue
        text = look.pattern.text if claim is None else claim.pattern
        turn = marks.last(entry, text) or Turn("")
        if key_of(turn.agent) == key_of(entry.agent.name):
            continue
        if turn.agent or claim is not None or look.blockers or entry.caller.client in ASKED_ALWAYS:
            found[text] = turn
    return found


def received(ctx: Context, new: Mapping[str, Turn]) -> dict[str, Any]:
    """Return what an answer says of patterns that were got with uncommitted changes; nothing without any."""
    unsaved = _changed(ctx, new)
    if not unsaved:
        return {}
    before = list(dict.fromkeys(new[text].agent for text in unsaved if new[text].agent))
    whose = f" ({some(before)} had it before you)" if before else ""
    text = (
        f"{some(unsaved)} had uncommitted changes when you got it{whose}: see whose they are before you edit or commit."
    )
    return {"unsaved": _report(unsaved, text, {"command": review_command(unsaved[:MAX_LISTED])})}


def _report(unsaved: list[str], note: str, next: dict[str, Any]) -> dict[str, Any]:  # noqa: A002 - the name of the field
    more = {"more": len(unsaved) - MAX_LISTED} if len(unsaved) > MAX_LISTED else {}
    return {"patterns": unsaved[:MAX_LISTED], **more, "note": note, "next": next}


def notify_previous_holders(entry: Entry, new: Mapping[str, Turn], unsaved: Mapping[str, Any]) -> None:
    """Notify those whose lease ran out with uncommitted changes, as far as listed, that somebody else has them."""
    for text in unsaved["patterns"]:
        agent, ran_out = new[text]
        if ran_out is not None and entry.tx.agent(agent) is not None:
            body = (
                f"{shown(text)}: your reservation ran out at {iso(ran_out)}, and {entry.agent.name} has it now, with "
                "the uncommitted changes in it. Ask for it before you edit it again."
            )
            entry.notify(agent, "ran-out", body)


def review_command(patterns: Iterable[str], up: str = "", root: str = "") -> str:
    """Return the command line that shows what is not committed, new files too.

    `up` leads from the current folder to the root, such as `../`; the root is named where that folder is outside of it.
    """
    import shlex  # noqa: PLC0415 - it imports `re`, and few grants need it

    paths = list(dict.fromkeys(_path(text) for text in patterns))
    words = ["git", *(["-C", root] if root else []), "status", "-vv", "--"]
    return shlex.join([*words, *(f"{up}{path}" or "." for path in paths)])


def _path(text: str) -> str:
    """Return the path that a pattern names, or the folder that its files are in."""
    found = canonical(text)
    assert isinstance(found, Pattern), text
    return found.prefix


def _changed(ctx: Context, patterns: Iterable[str]) -> list[str]:
    """Return those of some patterns that cover uncommitted changes in the caller's checkout, as far as git knows."""
    asked = tuple(dict.fromkeys(patterns))
    if not asked:
        return []
    known = ctx.runtime.changed_here(ctx.caller.root, asked)
    return [text for text in asked if known.get(text)]
