"""The one reversible step of init: a file as it is and as it will be, written with all others or not at all.

Before the first file changes, the record and a copy of every original are on the disk, so an undo works after a crash.
A file that is still what init wrote is made anew from its original, and an undo puts the original back, byte for byte.
In a file that was edited since, init adds what is missing, and an undo takes out our parts alone.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from interlock.core.finding import Finding
from interlock.install import clients, documents, githooks, ignored, record
from interlock.install.clients import INSTALLATIONS, Installation, Launch
from interlock.install.errors import InstallError
from interlock.install.files import GIT, Change, File, read, write
from interlock.install.record import Row, digest, original


def plan(root: Path, wanted: Sequence[Installation], launch: Launch, *, git: bool = False) -> tuple[Change, ...]:
    """Return what init would write; nothing is written.

    Raises:
        InstallError: With every file that cannot be changed.
    """
    changes: list[Change] = []
    problems: list[Finding] = []
    known = record.recorded(root)
    for path in dict.fromkeys(row.path for row in wanted):
        rows = [row for row in wanted if row.path == path]
        try:
            changes.append(_plan_file(root, path, rows, launch, known.get(path)))
        except InstallError as error:
            paste = "\n".join(clients.by_hand(row, launch) for row in rows)
            fix = f"Nothing was written. Fix the file and run init again, or merge this into it:\n{paste}"
            problems += error.about(path, fix)
    if git:
        try:
            changes += githooks.plan(root)
        except InstallError as error:
            problems += error.problems
    if problems:
        raise InstallError(*problems)
    return (*changes, *ignored.plan(root))


def _plan_file(root: Path, path: str, rows: Sequence[Installation], launch: Launch, known: Row | None) -> Change:
    """Return the change of a client's file; a part of ours that somebody edited stays as it is."""
    before = read(root, path)
    start = first = before
    # Server and hooks of a client may share a file, and an earlier init may have written the other one.
    names = {row.name for row in rows}
    if known is not None and before is not None:
        names.update(known["wrote"])
        if digest(before) == known["after"]:
            # Nobody has touched it: written anew from what was there before, so that an older text of ours goes.
            start = first = original(root, known)
        else:
            # What others added since is theirs, and stays after an undo.
            first = _without(path, before, original(root, known))
    text = "" if start is None else start.text
    data = documents.parse(path, text)
    is_edited, others = False, list[str]()
    for row in INSTALLATIONS:
        if row.path == path and row.name in names:
            there = clients.parts(row, data)
            # What is there by one of our keys may be another installation's, or edited by hand: it stays, and is named.
            for key, value in row.wanted(launch).items():
                if key not in there:
                    clients.add_part(row, data, key, value)
                    is_edited = True
                elif there[key] != value:
                    others.append(key)
    after = start
    if is_edited:
        after = File(documents.dump(path, data, text).encode(), 0o644 if start is None else start.mode)
    note = "there already" if after == before else "made" if before is None else "our part added or renewed"
    if others:
        note += f"; left as somebody wrote it: {', '.join(others)} (take that out and run init again to renew it)"
    return Change(rows[0].client, rows[0].title, path, before, after, note, first, tuple(sorted(names)), rows[-1].after)


def apply(root: Path, changes: Sequence[Change]) -> None:
    """Write planned changes; a failure half way takes back what was written.

    Raises:
        OSError: The file system refuses.
    """
    todo = [change for change in changes if not change.is_done]
    if not todo:
        return
    rows = record.recorded(root)
    # The record comes first: after a crash an undo finds files that are still as they were, and leaves them.
    record.remember(root, rows, todo)
    try:
        _write_all(root, todo)
    except OSError:
        # All files are as before, and so has to be what is remembered of them.
        record.forget(root, rows)
        raise


def plan_undo(root: Path, wanted: Sequence[Installation], *, git: bool = False) -> tuple[Change, ...]:
    """Return what an undo would write; an empty tuple when there is nothing to undo.

    Raises:
        InstallError: With every file from which our part cannot be taken.
    """
    changes: list[Change] = []
    problems: list[Finding] = []
    names = {row.client for row in wanted}
    # What was written last comes out first: a hook before the earlier one that was set aside for it.
    for path, row in reversed(record.recorded(root).items()):
        try:
            if row["client"] in names:
                changes.append(_plan_undo_file(root, path, row))
            elif git and path == ignored.PATH:
                changes.append(ignored.plan_undo(root, row))
            elif git and row["client"] == GIT:
                changes.append(githooks.plan_undo_one(root, path, row, changes))
        except InstallError as error:
            where = f"{record.home(root).relative_to(root)}/{row['original']}" if row["original"] else "the original"
            fix = f"Take our part out of {path} by hand, or put `{where}` back, then run this again."
            problems += error.about(path, fix)
    if problems:
        raise InstallError(*problems)
    return tuple(changes)


def _plan_undo_file(root: Path, path: str, known: Row) -> Change:
    """Plan the way back of a client's file: its original, or what is there now without our parts."""
    now, first = read(root, path), original(root, known)
    after, note = now, "nothing of ours is in it"
    if now is not None and digest(now) == known["after"]:
        after, note = first, "removed" if first is None else "restored byte for byte"
    elif now is not None and (left := _without(path, now, first)) != now:
        after, note = left, "removed" if left is None else "edited since: only the entry is taken out"
    title = next(row.title for row in INSTALLATIONS if row.path == path)
    return Change(known["client"], title, path, now, after, note)


def _without(path: str, now: File, first: File | None) -> File | None:
    """Return a file without our parts; the original when only the layout differs then, None when nothing is left."""
    data = documents.parse(path, now.text)
    before = documents.parse(path, "" if first is None else first.text)
    # Writing a table back may change its layout: only what differs beyond that is a change.
    unedited = documents.dump(path, data, now.text)
    for row in INSTALLATIONS:
        if row.path == path:
            clients.without_parts(row, data, before)
    if data == before:
        return first
    text = documents.dump(path, data, now.text)
    return now if text == unedited else File(text.encode(), now.mode)


def apply_undo(root: Path, changes: Sequence[Change]) -> None:
    """Write a planned undo, and remove the files and folders that init made.

    Raises:
        OSError: The file system refuses.
    """
    _write_all(root, [change for change in changes if not change.is_done])
    done = {change.path for change in changes}
    record.forget(root, {path: row for path, row in record.recorded(root).items() if path not in done})


def _write_all(root: Path, changes: Sequence[Change]) -> None:
    done: list[Change] = []
    try:
        for change in changes:
            # Before it is written: a write that failed half way is taken back as well.
            done.append(change)
            write(root / change.path, change.after)
    except OSError:
        for change in reversed(done):
            # One file that cannot be put back must not keep the others from it; the record still has its original.
            with suppress(OSError):
                write(root / change.path, change.before)
        raise
