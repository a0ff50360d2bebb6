"""What init remembers of each file that it wrote, and the copies of what was there before."""

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypedDict, cast

from interlock.core.finding import Finding
from interlock.install.errors import InstallError
from interlock.install.files import Change, File, write

_SCHEMA: Final = "interlock.init/2"


class Row(TypedDict):
    """What is remembered of one file that was written.

    Args:
        client: Whose file it is.
        original: The name of the copy of what was there; empty where nothing was.
        mode: Its permissions.
        after: The digest of what was written.
        wrote: The names of the installations that are in it.
        folders: The folders that were made for it.
    """

    client: str
    original: str
    mode: int
    after: str
    wrote: list[str]
    folders: list[str]


def home(root: Path) -> Path:
    """Return the folder of the record."""
    return root / ".interlock" / "init"


def recorded(root: Path) -> dict[str, Row]:
    """Return what is remembered of each file by its path, in the order in which they were written.

    Raises:
        InstallError: The record is not what was written.
    """
    return cast("dict[str, Row]", _record(root).get("files", {}))


def original(root: Path, row: Row) -> File | None:
    """Return what was in place of a file."""
    return File((home(root) / row["original"]).read_bytes(), row["mode"]) if row["original"] else None


def digest(file: File | None) -> str:
    """Return the digest of a file's bytes."""
    return sha256(b"" if file is None else file.data).hexdigest()


def shown_path(root: Path, path: Path) -> str:
    """Return a path relative to the root; outside of it, the whole."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def remember(root: Path, rows: Mapping[str, Row], changes: Sequence[Change]) -> None:
    """Keep what was in each file before it had our part, and what is about to be written."""
    from interlock.graph import state_dir  # noqa: PLC0415 - 0.3 s that a dry run and `--help` do not pay

    made_state = not (root / ".interlock").exists()
    folder = state_dir(root) / "init"
    folder.mkdir(mode=0o700, exist_ok=True)
    files = dict(rows)
    for change in changes:
        copy = ""
        if change.first is not None:
            # Two files may have the same name in different folders; the name is for people who look for it by hand.
            copy = f"{sha256(change.path.encode()).hexdigest()[:8]}-{Path(change.path).name}"
            # Settings of a client may hold keys, whatever the rights of the original are.
            write(folder / copy, File(change.first.data, 0o600))
        # Folders that init makes go with its files, unless somebody uses them by then.
        made = [parent for parent in (root / change.path).parents if not parent.exists()]
        known = rows[change.path]["folders"] if change.path in rows else []
        new = [name for name in (shown_path(root, parent) for parent in reversed(made)) if name not in known]
        mode = 0o644 if change.first is None else change.first.mode
        files[change.path] = Row(
            client=change.client,
            original=copy,
            mode=mode,
            after=digest(change.after),
            wrote=list(change.wrote),
            folders=[*known, *new],
        )
    _store(root, files, made_state=made_state)


def forget(root: Path, kept: Mapping[str, Row]) -> None:
    """Keep the record of some files alone; the empty folders that init made for the others go."""
    for path, row in recorded(root).items():
        for folder in reversed(row["folders"]) if path not in kept else ():
            # One that is not empty is used by somebody else by now.
            with suppress(OSError):
                (root / folder).rmdir()
    _store(root, kept)


def _store(root: Path, files: Mapping[str, Row], *, made_state: bool = False) -> None:
    """Write the record, or remove every trace of it when nothing is left."""
    folder = home(root)
    made_state = made_state or bool(_record(root).get("made_state"))
    if files:
        text = json.dumps({"schema": _SCHEMA, "made_state": made_state, "files": files}, indent=1)
        write(folder / "record.json", File(text.encode() + b"\n", 0o600))
        # Copies of files that are not remembered any more go.
        needed = {"record.json", *(row["original"] for row in files.values())}
        for path in folder.iterdir():
            if path.name not in needed:
                path.unlink()
        return
    if folder.exists():
        shutil.rmtree(folder)
    # `.interlock` goes too where init made it and nothing else is in it.
    if made_state and folder.parent.exists() and {path.name for path in folder.parent.iterdir()} <= {".gitignore"}:
        shutil.rmtree(folder.parent)


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
        place = shown_path(root, path)
        fix = f"Take the entries out by hand, then remove {place}; the originals are beside it."
        message = "the record is damaged."
        raise InstallError(Finding("INI103", "error", "", message, f"`{found}`", f"`{_SCHEMA}`", fix, path=place))
    return data
