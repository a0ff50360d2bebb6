"""What init remembers of each file that it wrote, and the copies of what was there before."""

import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypedDict, cast

from interlock.install.clients import Entry
from interlock.install.errors import InstallError, file_problem
from interlock.install.files import File, replace

_SCHEMA: Final = "interlock.init/1"


class Row(TypedDict):
    """One file that was written.

    Args:
        name: What was installed: `claude`, `claude-hooks`, `git:pre-commit`.
        path: The file: relative to the root, or absolute outside of it.
        original: The copy of what was there; empty where nothing was.
        mode: Its permissions.
        after: The digest of what was written.
        entry: What was put in.
        folders: The folders that were made for it.
    """

    name: str
    path: str
    original: str
    mode: int
    after: str
    entry: Entry
    folders: list[str]


def home(root: Path) -> Path:
    """Return the folder of the record."""
    return root / ".interlock" / "init"


def recorded(root: Path) -> list[Row]:
    """Return the rows of the record, in the order in which the files were written.

    Raises:
        InstallError: The record is not what was written.
    """
    return cast("list[Row]", _record(root).get("rows", []))


def original(root: Path, row: Row) -> File | None:
    """Return what was in place of a file."""
    if not row["original"]:
        return None
    return File((home(root) / row["original"]).read_bytes(), row.get("mode", 0o644))


def remember(root: Path, name: str, path: str, first: File | None, after: File | None, entry: Entry) -> None:
    """Keep what was in a file before it had our part, and what is about to be written; both are then on the disk."""
    from interlock.graph import state_dir  # noqa: PLC0415 - 0.3 s that a dry run and `--help` do not pay

    made_state = not (root / ".interlock").exists()
    folder = state_dir(root) / "init"
    folder.mkdir(mode=0o700, exist_ok=True)
    rows = {row["name"]: row for row in recorded(root)}
    known = rows[name]["folders"] if name in rows else []
    copy = "" if first is None else f"{name.replace(':', '-')}.original"
    if first is not None:
        replace(folder / copy, first.data, 0o600)
    parents = [parent for parent in (root / path).parents if not parent.exists()]
    new = [shown_path(root, parent) for parent in reversed(parents)]
    rows[name] = {
        "name": name,
        "path": path,
        "original": copy,
        "mode": 0o644 if first is None else first.mode,
        "after": digest(after),
        "entry": entry,
        "folders": [*known, *(each for each in new if each not in known)],
    }
    store(root, list(rows.values()), made_state=made_state)


def forget(root: Path, kept: Sequence[Row]) -> None:
    """Keep the record of some files alone; the empty folders that init made for the others go."""
    names = {row["name"] for row in kept}
    for folder in (folder for row in recorded(root) if row["name"] not in names for folder in reversed(row["folders"])):
        # One that is not empty is used by somebody else by now.
        with suppress(OSError):
            (root / folder).rmdir()
    store(root, kept)


def store(root: Path, rows: Sequence[Row], *, made_state: bool = False) -> None:
    """Write the record, or remove every trace of it when nothing is left."""
    folder = home(root)
    made_state = made_state or bool(_record(root).get("made_state"))
    if rows:
        text = json.dumps({"schema": _SCHEMA, "made_state": made_state, "rows": list(rows)}, indent=1)
        replace(folder / "record.json", text.encode() + b"\n", 0o600)
        kept = {"record.json", *(row["original"] for row in rows)}
        for path in folder.iterdir():
            if path.name not in kept:
                path.unlink()
        return
    if folder.exists():
        shutil.rmtree(folder)
    if made_state and folder.parent.exists() and {path.name for path in folder.parent.iterdir()} <= {".gitignore"}:
        shutil.rmtree(folder.parent)


def digest(file: File | None) -> str:
    """Return the digest of a file's bytes."""
    return sha256(b"" if file is None else file.data).hexdigest()


def shown_path(root: Path, path: Path) -> str:
    """Return a path relative to the root; outside of it, the whole."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _record(root: Path) -> dict[str, Any]:
    path = home(root) / "record.json"
    try:
        data: Any = json.loads(path.read_bytes())
        found = str(data["schema"])
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        data, found = {}, str(error)
    if found != _SCHEMA:
        place = path.relative_to(root).as_posix()
        fix = f"Take the entries out by hand, then remove {place}; the originals are beside it."
        raise InstallError(
            (file_problem("INI103", place, "the record is damaged.", f"`{found}`", f"`{_SCHEMA}`", fix),)
        )
    return data
