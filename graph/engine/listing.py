"""Which runs there are below a root, in which order they were made, and of which task or ticket each is."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from interlock.core.files import write_atomically
from interlock.graph.engine.paths import is_run_id

Kind: TypeAlias = Literal["runs", "tickets"]
"""The folder in `.interlock` of the runs of tasks, and of tickets."""

BEGIN: Final = "run.json"
"""The file that holds what a run began with; a folder without it is no run."""

_MADE: Final = "made"
"""The file of a run with the time when it was made, in nanoseconds since the epoch."""


def list_runs(root: Path, kind: Kind) -> list[str]:
    """Return the ids of all runs, the oldest first."""
    return _by_age(_folders(root, kind))


def runs_of(root: Path, kind: Kind, name: str, likely: Callable[[str], bool] = lambda _run: True) -> list[str]:
    """Return the runs of a task or ticket, the newest first; one whose file cannot be read goes by its id.

    Args:
        root: The project's root.
        kind: Of tasks or of tickets.
        name: The task or ticket.
        likely: Tells by its id whether a run can be one; the files of others are not read.
    """
    found = (folder for folder in _folders(root, kind) if likely(folder.name) and _name(folder) == name)
    return _by_age(found)[::-1]


def find_run(root: Path, kind: Kind, name: str) -> str | None:
    """Return the run of that id, or the newest run of the task or ticket of that name, or None."""
    if is_run_id(name) and (root / ".interlock" / kind / name / BEGIN).exists():
        return name
    return next(iter(runs_of(root, kind, name)), None)


def make_run(root: Path, kind: Kind, run_id: str, data: bytes) -> None:
    """Write what a run begins with, and when it was made: from then on it exists."""
    folder = root / ".interlock" / kind / run_id
    write_atomically(folder / _MADE, str(time.time_ns()).encode())
    write_atomically(folder / BEGIN, data)


def _folders(root: Path, kind: Kind) -> Iterator[Path]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(root / ".interlock" / kind) as entries:
        for entry in entries:
            if is_run_id(entry.name) and os.path.exists(os.path.join(entry.path, BEGIN)):  # noqa: PTH110, PTH118 - many
                yield Path(entry.path)


def _by_age(folders: Iterator[Path]) -> list[str]:
    return [run for _, run in sorted((_made(folder), folder.name) for folder in folders)]


def _name(folder: Path) -> str:
    try:
        begun = cast("dict[str, Any]", json.loads((folder / BEGIN).read_bytes()))
        return str(begun["task"]["task_id"] if "task" in begun else begun["ticket_id"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return folder.name.rpartition(".")[0]


def _made(folder: Path) -> int:
    """Return when a run was made; a run of an older version has no note, there the time of its first file counts."""
    try:
        return int((folder / _MADE).read_bytes())
    except (OSError, ValueError):
        with suppress(OSError):
            return (folder / BEGIN).stat().st_mtime_ns
        return 0
