"""What `interlock recover` and the pages show: every version that is kept of held files, and how one comes back."""

import os
from typing import Any, Final

from interlock.core.errors import Exit
from interlock.reservations import place
from interlock.reservations.answers import iso
from interlock.reservations.errors import ReservationError
from interlock.reservations.leases import calls
from interlock.reservations.leases.runtime import Context
from interlock.reservations.patterns import may_match
from interlock.reservations.rules import shown
from interlock.reservations.store.records import key_of
from interlock.reservations.versions import look, putting_back, store
from interlock.reservations.versions.store import Version

_WHAT: Final = {
    "held": "as its holder had it",
    "undone": "what others wrote there, undone",
    "both": "the newer of two, both kept",
    "expected": "what an edit was about to write",
}


class UnknownVersionError(ReservationError):
    """No version of this number is kept.

    Fix: Versions are kept for a week. `interlock recover` lists those that are there.
    """

    code = "RSV911"
    exit_code = Exit.REFUSED


class HeldByOthersError(ReservationError):
    """A version would be written over a file that another agent holds.

    Fix: Ask for the file first, or write the version elsewhere with `--to FILE`.
    """

    code = "RSV912"
    exit_code = Exit.CONFLICT


def listing(found: place.Place, path: str = "", *, everything: bool = False) -> list[dict[str, Any]]:
    """Return the versions that are kept of a project's files, the newest first.

    Args:
        path: Only those of this file, relative to a checkout of the project.
        everything: Also those of holders that nobody disturbed; without, what was undone or kept twice, with the
            version before it.
    """
    if not os.path.lexists(store.path_of(found)):
        return []
    with store.opened(found).transaction() as tx:
        rows = tx.versions(path=path)
    if not everything and not path:
        disturbed = {(row.root, row.path) for row in rows if row.why in ("undone", "both")}
        rows = [row for row in rows if (row.root, row.path) in disturbed and row.why != "expected"]
    return [_row(row) for row in rows]


def disturbed(found: place.Place, since: float) -> list[dict[str, Any]]:
    """Return what was put back of held files or kept twice since a time, the newest first."""
    if not os.path.lexists(store.path_of(found)):
        return []
    with store.opened(found).transaction() as tx:
        return [_row(row) for row in tx.versions() if row.why in ("undone", "both") and row.at >= since]


def _what(row: Version) -> str:
    """Return why a version is kept, in words."""
    return "removed by others, undone" if (row.why, row.seen.kind) == ("undone", "gone") else _WHAT[row.why]


def _row(row: Version) -> dict[str, Any]:
    return {
        "version": row.number,
        "path": row.path,
        "root": row.root,
        "why": row.why,
        "what": _what(row),
        "kind": row.seen.kind,
        "digest": row.seen.digest,
        "mode": f"{row.seen.mode:o}",
        "holders": [*row.holders],
        "others": [*row.others],
        "at": iso(row.at),
    }


def content(found: place.Place, number: int) -> tuple[Version, bytes]:
    """Return a version and its content; of a link where it leads, nothing where the file was gone.

    Raises:
        UnknownVersionError: It is not kept.
    """
    if os.path.lexists(store.path_of(found)):
        with store.opened(found).transaction() as tx:
            for row in tx.versions():
                if row.number == number:
                    return row, tx.content(row.seen.digest)
    raise UnknownVersionError(f"there is no version {number}.", "`interlock recover` lists those that are kept.")


def restore(ctx: Context, found: place.Place, number: int, to: str = "") -> tuple[str, int | None]:
    """Write a version to where it was, or to another file; return its path, and the version of what was there.

    Raises:
        UnknownVersionError: It is not kept.
        HeldByOthersError: Another agent holds the file.
    """
    row, _ = content(found, number)
    target = to or os.path.join(row.root, row.path)
    if not to and (holder := _holder(ctx, row)):
        raise HeldByOthersError(
            f"{shown(row.path)} is held by {shown(holder)}.",
            f"Ask for it: `interlock negotiate {shown(row.path)} --reason WHY`; or write it elsewhere with --to FILE.",
        )
    versions = store.opened(found)
    with versions.transaction() as tx:
        now = ctx.runtime.clock()
        before = look.see(target, tx)
        known = None
        if not to and before.kind in ("file", "link"):
            known = tx.add_version(row.root, row.path, before, "held", now, [ctx.caller.name])
        aside = os.path.join(os.path.dirname(versions.path), "aside")
        putting_back.put_back(os.path.dirname(target) if to else row.root, target, row.seen, tx, aside)
        if not to:
            files = tx.files()
            _, holders = files.get((row.root, row.path), (None, ()))
            if holders:
                tx.put_file(row.root, row.path, look.see(target, tx), holders)
    return target, known


def _holder(ctx: Context, row: Version) -> str:
    with calls.seen(ctx) as entry:
        leases = entry.tx.leases()
    me = key_of(ctx.caller.name)
    return next(
        (lease.agent for lease in leases if key_of(lease.agent) != me and may_match(lease.pattern, row.path)), ""
    )
