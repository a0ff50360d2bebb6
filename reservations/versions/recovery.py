"""What `interlock recover` and the pages show: every version that is kept of held files, and how one comes back."""

import os
from typing import Any, Final

from interlock.core.errors import Exit
from interlock.core.patterns import may_match
from interlock.reservations import place
from interlock.reservations.errors import ReservationError
from interlock.reservations.leases import calls
from interlock.reservations.leases.runtime import Context
from interlock.reservations.rules import shown
from interlock.reservations.store.records import iso, key_of
from interlock.reservations.versions import look, putting_back, store
from interlock.reservations.versions.store import Version

_WHAT: Final = {
    "held": "as its holder had it",
    "undone": "what others wrote there, undone",
    "both": "the newer of two, both kept",
    "expected": "what an edit was about to write",
}


def listing(found: place.Place, path: str = "") -> list[dict[str, Any]]:
    """Return the versions of one file that are kept, the newest first; its path is relative to a checkout.

    Without a path, those of every file of the project of which something was undone or kept twice.
    """
    if not os.path.lexists(store.path_of(found)):
        return []
    with store.opened(found).transaction() as tx:
        rows = tx.versions(path=path)
    if not path:
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
        ReservationError: It is not kept.
    """
    if os.path.lexists(store.path_of(found)):
        with store.opened(found).transaction() as tx:
            for row in tx.versions():
                if row.number == number:
                    return row, tx.content(row.seen.digest)
    raise ReservationError(f"there is no version {number}.", "`interlock recover` lists those that are kept.", "RSV911")


def restore(ctx: Context, found: place.Place, number: int) -> tuple[str, int | None]:
    """Write a version to where it was; return that path, and the version of what was there.

    Raises:
        ReservationError: It is not kept, or another agent holds the file.
    """
    row, _ = content(found, number)
    if holder := _holder(ctx, row):
        fix = f"Ask for it: `interlock negotiate {shown(row.path)} --reason WHY`."
        refused = ReservationError(f"{shown(row.path)} is held by {shown(holder)}.", fix, "RSV207")
        refused.exit_code = Exit.CONFLICT
        raise refused
    target = os.path.join(row.root, row.path)
    versions = store.opened(found)
    with versions.transaction() as tx:
        before = look.see(target, tx)
        known = None
        if before.kind in ("file", "link"):
            known = tx.add_version(row.root, row.path, before, "held", ctx.runtime.clock(), [ctx.caller.name])
        putting_back.put_back(row.root, target, row.seen, tx, os.path.join(os.path.dirname(versions.path), "aside"))
        _, holders = tx.files().get((row.root, row.path), (None, ()))
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
