"""Writes what init installs, all of it or nothing, and takes it back byte for byte."""

import difflib
import json
import shlex
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypedDict, cast

from interlock.install.clients import INSTALLATIONS, Installation, Launch
from interlock.install.errors import EditError, InstallError, Problem
from interlock.install.files import alone, read, replace, write
from interlock.install.jsontext import Entry

_FIXES: Final = {
    "INI101": "Mend the file and run init again, or put this {where}:",
    "INI102": "Rename or remove what stands there and run init again, or put this in its place:",
    "INI104": "Put a file of this project there and run init again, or add this by hand where it belongs:",
}
"""What to do about a file that init cannot write to; the text to paste follows."""

_SCHEMA: Final = "interlock.init/1"


class _Row(TypedDict):
    """What is remembered of one file; `original` names the copy of what stood there, empty where nothing did."""

    name: str
    path: str
    original: str
    after: str
    entry: Entry
    folders: list[str]


@dataclass(frozen=True, slots=True)
class Change:
    """One file as it is and as it will be.

    Args:
        installation: The row that asks for it.
        path: The file, relative to the root.
        before: Its bytes; None where there is no file.
        after: Its bytes afterwards; None where it goes.
        note: What is done, in a few words.
        entry: What is put in; empty for an undo.
        differs: The command line that stands there in place of the entry's; empty when they agree.
    """

    installation: Installation
    path: str
    before: bytes | None
    after: bytes | None
    note: str
    entry: Entry
    differs: str = ""

    @property
    def wanted(self) -> str:
        """Return the command line of the entry."""
        return _words(self.entry)

    @property
    def is_done(self) -> bool:
        """Say that nothing needs to be written."""
        return self.before == self.after

    def diff(self) -> str:
        """Return a unified diff, empty when nothing changes."""
        old, new = (_lines(data) for data in (self.before, self.after))
        names = ("/dev/null" if self.before is None else f"a/{self.path}",
                 "/dev/null" if self.after is None else f"b/{self.path}")  # fmt: skip
        rows = difflib.unified_diff(old, new, *names)
        return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


def plan(root: Path, wanted: Sequence[Installation], launch: Launch) -> tuple[Change, ...]:
    """Return what init would write; nothing is written.

    Raises:
        InstallError: With every file that cannot be changed.
    """
    changes: list[Change] = []
    problems: list[Problem] = []
    for row in wanted:
        entry = row.entry(launch)
        text = ""
        try:
            before, text = read(root, row.path)
            after = row.add(text, entry).encode()
        except EditError as error:
            where, paste = row.by_hand(text, entry)
            problems.append(_problem(row.path, error, f"{_FIXES[error.code].format(where=where)}\n{paste}"))
            continue
        there = row.find(text)
        if there is not None and _words(there) != _words(entry):
            changes.append(Change(row, row.path, before, after, "left as it is", entry, differs=_words(there)))
        else:
            note = "there already" if before == after else "made" if before is None else "entry added"
            changes.append(Change(row, row.path, before, after, note, entry))
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
        rows = _recorded(root)
        _remember(root, todo)
        try:
            _write_all(root, todo)
        except OSError:
            _forget(root, rows)
            raise


def plan_undo(root: Path, wanted: Sequence[Installation]) -> tuple[Change, ...]:
    """Return what an undo would write; an empty tuple when there is nothing to undo.

    Raises:
        InstallError: With every file from which the entry cannot be taken.
    """
    changes: list[Change] = []
    problems: list[Problem] = []
    rows = {row["name"]: row for row in _recorded(root)}
    for installation in wanted:
        row = rows.get(installation.name)
        if row is None:
            continue
        try:
            changes.append(_reversal(root, installation, row))
        except EditError as error:
            fix = f"Take the entry out of {row['path']} by hand, or put back the original, then run this again."
            if row["original"]:
                fix = fix.replace("the original", f"`{_home(root).relative_to(root)}/{row['original']}`")
            problems.append(_problem(row["path"], error, fix))
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
        names = {change.installation.name for change in changes}
        _forget(root, [row for row in _recorded(root) if row["name"] not in names])


def _reversal(root: Path, installation: Installation, row: _Row) -> Change:
    """Plan the way back of one file: its original bytes, or the present ones without the entry."""
    now, text = read(root, row["path"])
    original = (_home(root) / row["original"]).read_bytes() if row["original"] else None
    if now is not None and _digest(now) == row["after"]:
        note = "removed" if original is None else "restored byte for byte"
        return Change(installation, row["path"], now, original, note, {})
    if now == original:
        return Change(installation, row["path"], now, now, "as it was already", {})
    left = installation.remove(text, row["entry"], (original or b"").decode()) if now is not None else None
    if left is None:
        return Change(installation, row["path"], now, now, "the entry was gone already", {})
    after = None if not left and original is None else left.encode()
    note = "edited since: only the entry is taken out" if after is not None else "removed"
    return Change(installation, row["path"], now, after, note, {})


def _remember(root: Path, changes: Sequence[Change]) -> None:
    """Keep the originals and what is about to be done to them."""
    from interlock.graph.store import state_dir  # noqa: PLC0415 - 0.3 s that a dry run and `--help` do not pay

    made_state = not (root / ".interlock").exists()
    home = state_dir(root) / "init"
    home.mkdir(mode=0o700, exist_ok=True)
    rows = {row["name"]: row for row in _recorded(root)}
    for change in changes:
        name = change.installation.name
        original = "" if change.before is None else f"{name}.original"
        if change.before is not None:
            replace(home / original, change.before, 0o600)
        parents = [path for path in Path(change.path).parents if path != Path()]
        new = [path.as_posix() for path in reversed(parents) if not (root / path).exists()]
        known = rows[name]["folders"] if name in rows else []
        rows[name] = {
            "name": name,
            "path": change.path,
            "original": original,
            "after": _digest(change.after or b""),
            "entry": change.entry,
            "folders": [*known, *(folder for folder in new if folder not in known)],
        }
    _store(root, list(rows.values()), made_state=made_state)


def _forget(root: Path, kept: list[_Row]) -> None:
    """Keep the record of some files alone; the empty folders that init made for the others go."""
    names = {row["name"] for row in kept}
    for folder in (
        folder for row in _recorded(root) if row["name"] not in names for folder in reversed(row["folders"])
    ):
        # One that is not empty is used by somebody else by now.
        with suppress(OSError):
            (root / folder).rmdir()
    _store(root, kept)


def _recorded(root: Path) -> list[_Row]:
    """Return the rows of the record.

    Raises:
        InstallError: The record is not what was written.
    """
    return cast("list[_Row]", _record(root).get("rows", []))


def _record(root: Path) -> dict[str, Any]:
    path = _home(root) / "record.json"
    try:
        data: Any = json.loads(path.read_bytes())
        found = str(data["schema"])
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        data, found = {}, str(error)
    if found != _SCHEMA:
        place = path.relative_to(root).as_posix()
        fix = f"Take the entries out by hand, then remove {place}; the originals stand beside it."
        raise InstallError((Problem("INI103", place, "the record is damaged.", f"`{found}`", f"`{_SCHEMA}`", fix),))
    return data


def _store(root: Path, rows: list[_Row], *, made_state: bool = False) -> None:
    """Write the record, or remove every trace of it when nothing is left."""
    home = _home(root)
    made_state = made_state or bool(_record(root).get("made_state"))
    if rows:
        text = json.dumps({"schema": _SCHEMA, "made_state": made_state, "rows": rows}, indent=1)
        replace(home / "record.json", text.encode() + b"\n", 0o600)
        kept = {"record.json", *(row["original"] for row in rows)}
        for path in home.iterdir():
            if path.name not in kept:
                path.unlink()
        return
    if home.exists():
        shutil.rmtree(home)
    if made_state and {path.name for path in home.parent.iterdir()} <= {".gitignore"}:
        shutil.rmtree(home.parent)


def _home(root: Path) -> Path:
    return root / ".interlock" / "init"


def _check_unchanged(root: Path, changes: Sequence[Change]) -> None:
    """Refuse to write over what somebody else wrote in the meantime."""
    for change in changes:
        now, _ = read(root, change.path)
        if now != change.before:
            fix = "Run the command again."
            found, expected = "other bytes", "the bytes that were read a moment ago"
            problem = Problem("INI103", change.path, "the file was changed at this moment.", found, expected, fix)
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


def _words(entry: Entry) -> str:
    """Return the command line of an entry that starts the server."""
    return shlex.join(str(word) for word in (entry.get("command", ""), *entry["args"]))


def _problem(path: str, error: EditError, fix: str) -> Problem:
    place = f"{path}:{error.line}:{error.column}" if error.line else path
    return Problem(error.code, place, error.message, error.found, error.expected, fix)


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines(keepends=True)


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def pick(names: Sequence[str]) -> tuple[Installation, ...]:
    """Return the rows of some names in the order of the table; `all` is every row."""
    return tuple(row for row in INSTALLATIONS if row.name in names or "all" in names)
