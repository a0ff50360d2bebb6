"""Writes what init installs, all of it or nothing, and takes it back byte for byte."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from interlock.core.finding import Finding
from interlock.install import githooks, record
from interlock.install.clients import Entry, Installation, Launch
from interlock.install.errors import EditError, InstallError, file_problem
from interlock.install.files import Change, File, alone, read, read_raw, write
from interlock.install.record import Row

_FIXES: Final = {
    "INI101": "Fix the file and run init again, or put this {where}:",
    "INI102": "Rename or remove what is there and run init again, or put this in its place:",
    "INI104": "Put a file of this project there and run init again, or add this by hand where it belongs:",
}
"""What to do about a file that init cannot write to; the text to paste follows."""


def plan(root: Path, wanted: Sequence[Installation], launch: Launch, *, git: bool = False) -> tuple[Change, ...]:
    """Return what init would write; nothing is written.

    Raises:
        InstallError: With every file that cannot be changed.
    """
    changes: list[Change] = []
    problems: list[Finding] = []
    files: dict[str, File | None] = {}
    known = {row["name"]: row for row in record.recorded(root)}
    for row in wanted:
        entry = row.entry(launch)
        before: File | None = None
        try:
            before = files[row.path] if row.path in files else read(root, row.path)
            change = _client_change(root, row, entry, before, known.get(row.name))
        except EditError as error:
            where, paste = row.by_hand("" if before is None else before.text, entry)
            problems.append(error.of(row.path, f"{_FIXES[error.code].format(where=where)}\n{paste}"))
            continue
        changes.append(change)
        files[row.path] = change.after
    if git:
        try:
            changes += githooks.plan(root)
        except InstallError as error:
            problems += error.problems
    if problems:
        raise InstallError(tuple(problems))
    return tuple(changes)


def apply(root: Path, changes: Sequence[Change]) -> None:
    """Write planned changes; a failure half way takes back what was written.

    The record and the originals are on disk before the first file changes, so that an undo works after a crash.

    Raises:
        InstallError: A file changed since it was planned.
        OSError: The file system refuses.
    """
    todo = [change for change in changes if not change.is_done]
    if not todo:
        return
    with alone(root):
        _check_unchanged(root, todo)
        rows = record.recorded(root)
        for change in todo:
            record.remember(root, change.name, change.path, change.first, change.after, change.entry)
        try:
            _write_all(root, todo)
        except OSError:
            record.forget(root, rows)
            raise


def plan_undo(root: Path, wanted: Sequence[Installation], *, git: bool = False) -> tuple[Change, ...]:
    """Return what an undo would write; an empty tuple when there is nothing to undo.

    Raises:
        InstallError: With every file from which the entry cannot be taken.
    """
    changes: list[Change] = []
    problems: list[Finding] = []
    files: dict[str, File | None] = {}
    known = {row.name: row for row in wanted}
    # What was put in last comes out first: two rows may share a file.
    for row in reversed(record.recorded(root)):
        ours = row["name"] in known
        if not ours and not (git and row["name"].startswith(githooks.PREFIX)):
            continue
        try:
            path = row["path"]
            now = files[path] if path in files else read(root, path) if ours else read_raw(root / path)
            change = _reversal(root, known[row["name"]], row, now) if ours else _git_reversal(root, row, now, files)
        except EditError as error:
            fix = f"Take the entry out of {row['path']} by hand, or put back the original, then run this again."
            if row["original"]:
                fix = fix.replace("the original", f"`{record.home(root).relative_to(root)}/{row['original']}`")
            problems.append(error.of(row["path"], fix))
            continue
        changes.append(change)
        files[row["path"]] = change.after
    if problems:
        raise InstallError(tuple(problems))
    return tuple(changes)


def apply_undo(root: Path, changes: Sequence[Change]) -> None:
    """Write a planned undo, and remove the files and folders that init made.

    Raises:
        InstallError: A file changed since it was planned.
        OSError: The file system refuses.
    """
    with alone(root):
        _check_unchanged(root, changes)
        _write_all(root, [change for change in changes if not change.is_done])
        names = {change.name for change in changes}
        record.forget(root, [row for row in record.recorded(root) if row["name"] not in names])


def _reversal(root: Path, installation: Installation, row: Row, now: File | None) -> Change:
    """Plan the way back of a client's file: its original, or what is there now without the entry."""
    original = record.original(root, row)

    def change(after: File | None, note: str) -> Change:
        return Change(installation.name, installation.client, installation.title, row["path"], now, after, note, {})

    if now is not None and record.digest(now) == row["after"]:
        return change(original, "removed" if original is None else "restored byte for byte")
    if now is None or (original is not None and now.data == original.data):
        return change(now, "the entry was gone already" if now is None else "as it was already")
    left = _without(installation, row, now, original)
    if left == now:
        return change(now, "the entry was gone already")
    return change(left, "removed" if left is None else "edited since: only the entry is taken out")


def _without(installation: Installation, row: Row, now: File, original: File | None) -> File | None:
    """Return a file without our part; None when it would hold nothing, and held nothing before."""
    left = installation.remove(now.text, row["entry"], "" if original is None else original.text)
    if left is None:
        return now
    if left:
        return File(left.encode(), now.mode)
    return original if original is not None and "".join(original.text.split()) in {"", "{}"} else None


def _first(root: Path, installation: Installation, row: Row, now: File) -> File | None:
    """Return what was in a file before init wrote to it; what others edited since is part of that."""
    original = record.original(root, row)
    if record.digest(now) == row["after"]:
        return original
    left = _without(installation, row, now, original)
    return original if left is not None and original is not None and _same(left.text, original.text) else left


def _same(text: str, other: str) -> bool:
    try:
        return json.loads(text) == json.loads(other)
    except ValueError:
        return text == other


def _client_change(root: Path, row: Installation, entry: Entry, before: File | None, known: Row | None) -> Change:
    """Return the change of a client's file."""
    text = "" if before is None else before.text
    added = row.add(text, entry, {} if known is None else known["entry"])
    there = row.find(text)
    words = row.words(entry)
    differs = () if there is None else tuple(word for word in row.words(there) if word not in words)
    note, after, first = "left as it is" if differs else "there already", before, before
    if added != text and not differs:
        note = "made" if before is None else "entry added" if there is None else "brought up to date"
        after = File(added.encode(), 0o644 if before is None else before.mode)
        first = before if known is None or before is None else _first(root, row, known, before)
    return Change(
        row.name, row.client, row.title, row.path, before, after, note, entry, words, differs, row.after, first
    )  # fmt: skip


def _git_reversal(root: Path, row: Row, now: File | None, files: Mapping[str, File | None]) -> Change:
    """Plan the way back of a git hook; one that somebody else put there since stays, and so does what ours kept."""

    def change(after: File | None, note: str) -> Change:
        return Change(row["name"], "git", "git", row["path"], now, after, note, {})

    original = record.original(root, row)
    if row["name"].endswith(githooks.KEPT_SUFFIX):
        back = files.get(row["path"].removesuffix(githooks.KEPT_SUFFIX))
        return change(None, "removed") if now in (None, back) else change(now, "left: another hook is in its place")
    if now is None or record.digest(now) == row["after"]:
        return change(original, "removed" if original is None else "restored byte for byte")
    if now == original:
        return change(now, "as it was already")
    if githooks.command_of(now.data.decode("utf-8", "replace")):  # nobody knows what of it is to stay
        message = "the hook was changed by hand."
        raise EditError("INI103", message, "another text with a call of Interlock", "the text that init wrote")
    return change(now, "another hook is there now: left as it is")


def _check_unchanged(root: Path, changes: Sequence[Change]) -> None:
    """Refuse to write over what somebody else wrote in the meantime."""
    seen: set[str] = set()
    for change in changes:
        if change.path in seen:
            continue
        seen.add(change.path)
        now = read_raw(root / change.path) if change.client == "git" else read(root, change.path)
        if now != change.before:
            fix = "Run the command again."
            found, expected = "other bytes", "the bytes that were read a moment ago"
            problem = file_problem("INI103", change.path, "the file was changed at this moment.", found, expected, fix)
            raise InstallError((problem,))


def _write_all(root: Path, changes: Sequence[Change]) -> None:
    done: list[Change] = []
    try:
        for change in changes:
            done.append(change)
            write(root / change.path, change.after)
    except OSError:
        for change in reversed(done):
            with suppress(OSError):
                write(root / change.path, change.before)
        raise
