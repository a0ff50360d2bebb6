"""What a commit leaves alone, whose it is, and the refusal of a commit that has nothing to carry."""

from collections.abc import Iterable, Sequence, Set
from typing import Final, NamedTuple, TypedDict

from interlock.reservations.answers import Conflict, Refusal
from interlock.reservations.git.foreign_leases import foreign, touched
from interlock.reservations.leases import calls, grant_log
from interlock.reservations.leases.runtime import Context
from interlock.reservations.leases.views import lasting
from interlock.reservations.patterns import quote
from interlock.reservations.rules import refuse, shown, some

MAX_LEFT: Final = 50
"""At most this many paths that a commit leaves alone are named."""
MAX_NAMED: Final = 4
"""At most this many paths are named in one sentence."""
EXPECTED: Final = "changed files under own leases, in a checkout where git can commit"


class Left(TypedDict):
    """A changed path that stays as it is, and who holds it; null where nobody does."""

    path: str
    holder: str | None


class Owned(NamedTuple):
    """A changed path, who holds it, None where nobody does, and the lease of another agent."""

    path: str
    holder: str | None
    conflict: Conflict | None

    @property
    def row(self) -> Left:
        """The same as callers see it."""
        return {"path": self.path, "holder": self.holder}


def whose(ctx: Context, paths: Iterable[str], covered: Set[str]) -> list[Owned]:
    """Return some paths with who holds each: what nobody does first, which is easily forgotten."""
    wanted = sorted(paths)
    others = dict(touched(foreign(ctx), wanted))
    rows = [
        Owned(path, others[path]["holder"] if path in others else ctx.caller.name if path in covered else None,
              others.get(path))
        for path in wanted
    ]  # fmt: skip
    return sorted(rows, key=lambda row: row.holder or "")


def nothing(ctx: Context, changed: Sequence[Owned], paths: Sequence[str]) -> Refusal:
    """Return the refusal of a commit that has nothing to carry: it says whose the changed files are.

    What `paths` name has not changed.
    """
    others = [row for row in changed if row.conflict is not None]
    nobody = [row.path for row in changed if row.holder is None]
    if paths:
        verb = "is" if len(paths) == 1 else "are"
        found = some([row.path for row in changed]) or "no changed file"
        return _refused(f"{some(paths)} {verb} not changed.", found, "`git status` shows what is changed.")
    if others:
        return _others(ctx, others, nobody)
    if nobody:
        answer = _refused(
            "Nobody holds any of the changed files.", some(nobody), "If they are yours, reserve them first."
        )
        return {
            **answer,
            "next": {"tool": "reserve_files", "arguments": {"patterns": [quote(path) for path in nobody[:MAX_NAMED]]}},
        }
    return _refused("No file is changed.", "no changed file", "Change something first.")


def _others(ctx: Context, others: Sequence[Owned], nobody: Sequence[str]) -> Refusal:
    """Name the file that is held by another, first one that the caller had before."""
    with calls.seen(ctx) as entry:
        lost = [row for row in others[:MAX_LEFT] if grant_log.missed(entry, quote(row.path)) is not None]
    first = (lost or others)[0]
    assert first.conflict is not None
    had = "; you had it before" if lost else ""
    held = f"{shown(first.conflict['holder'])} holds {shown(first.path)} ({lasting(first.conflict)}){had}"
    found = f"held by others: {some([row.path for row in others])}" + (f"; by nobody: {some(nobody)}" if nobody else "")
    fix = "Ask for it, or reserve what nobody holds if it is yours: `interlock reserve FILE`."
    answer = _refused(f"None of the changed files is yours: {held}.", found, fix, first.conflict)
    arguments = {"file": quote(first.path), "reason": "WHY"}
    return {**answer, "next": {"tool": "negotiate_release", "arguments": arguments}}


def _refused(message: str, found: str, fix: str, conflict: Conflict | None = None) -> Refusal:
    return refuse("RSV208", message, place="commit", found=found, expected=EXPECTED, fix=fix, conflict=conflict)
