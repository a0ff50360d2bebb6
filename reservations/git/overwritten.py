"""Files of others that git or the hooks of a commit have written: overwritten, or set aside and put back.

Their holders are notified, since work in them may be gone.
"""

import os
import re
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from interlock.reservations.git.foreign_leases import Hit
from interlock.reservations.leases import calls, hook_state
from interlock.reservations.leases.runtime import Context, Entry
from interlock.reservations.rules import shown, some
from interlock.reservations.store.records import SYSTEM, Lease

TOPIC: Final = "surprise-write"
MAX_NAMED: Final = 8
_MORE: Final = re.compile(r" and [0-9]+ more\. ")

_Stamp: TypeAlias = tuple[int, int, int] | None


def stamps(root: str, hits: Iterable[Hit]) -> list[tuple[Hit, _Stamp]]:
    """Return files that others hold, each with a stamp that changes when it is written."""
    return [(hit, _stamp(os.path.join(root, hit[0]))) for hit in hits]


def report(ctx: Context, before: Sequence[tuple[Hit, _Stamp]]) -> list[str]:
    """Notify the holders of the files that were written since, and return these."""
    hits = [hit for hit, stamp in before if _stamp(os.path.join(ctx.caller.root, hit[0])) != stamp]
    if hits:
        with calls.entered(ctx) as entry:
            # A file that is set aside at each commit is reported once in a lease.
            new = [hit for hit in hits if hook_state.once(entry, f"disturbed {hit[1]['reservation_id']} {hit[0]}")]
        when = f"while the hooks of an `interlock commit` of {shown(ctx.caller.name)} ran"
        if new:
            notify_holders(ctx, new, when, "interlock commit")
    return [path for path, _ in hits]


def notify_holders(ctx: Context, hits: Sequence[Hit], when: str, tool: str) -> None:
    """Notify each holder in one message of its files that were written: "… changed on the disk WHEN"."""
    with calls.entered(ctx) as entry:
        # A lease of a project around this one is in another store.
        found = ((path, entry.tx.lease(row["reservation_id"])) for path, row in hits)
        notify_in_call(entry, [(path, lease) for path, lease in found if lease is not None], when, tool)


def notify_in_call(entry: Entry, rows: Sequence[tuple[str, Lease]], when: str, tool: str) -> None:
    """Do the same inside a call, for files each with its lease."""
    for holder in dict.fromkeys(lease.agent for _, lease in rows):
        named = some((path for path, lease in rows if lease.agent == holder), MAX_NAMED)
        entry.notify(
            holder,
            TOPIC,
            f"What you hold changed on the disk {when}: {named}. Unless it was you, work in it may be gone: read "
            "it again and look at the difference before you go on.",
        )
    for path, lease in rows:
        entry.event(
            "surprise_write", agent=entry.agent.name, holder=lease.agent, reservation_id=lease.reservation_id,
            pattern=lease.pattern, path=shown(path), tool=tool,
        )  # fmt: skip


def unread(ctx: Context, paths: Iterable[str]) -> list[str]:
    """Return which of some paths messages name that the caller has not read; all of them, where one names not all."""
    with calls.entered(ctx) as entry:
        name = entry.agent.name
        rows = entry.tx.inbox(name, after=0, unread_only=True, limit=entry.tx.unread_count(name))
    bodies = [row.body for row in rows if row.topic == TOPIC and row.sender == SYSTEM]
    return [path for path in paths if any(shown(path) in body or _MORE.search(body) for body in bodies)]


def _stamp(path: str) -> _Stamp:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_ctime_ns
