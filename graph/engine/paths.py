"""Where the records of runs stand below a root, and what runs are called in the journal."""

import re
from pathlib import Path
from typing import Final

from interlock.core.files import write_atomically

MAX_RUN_ID_CHARS: Final = 128
RUN_ID: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_RUN_ID_CHARS - 1}}}", re.ASCII)
"""What the runs of tasks and of tickets may be called."""
RUN_ID_FORM: Final = f"letters, digits, `.`, `_` and `-`, at most {MAX_RUN_ID_CHARS}, beginning with a letter or digit"


def is_run_id(name: object) -> bool:
    """Return whether a value has the form of a run id."""
    return isinstance(name, str) and RUN_ID.fullmatch(name) is not None


def state_dir(root: Path) -> Path:
    """Return the folder of Interlock's own state, made on first use and ignored by git."""
    folder = root / ".interlock"
    folder.mkdir(exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        write_atomically(ignore, b"*\n")
    return folder


def journal_path(root: Path) -> Path:
    """Return where the journal of a root stands."""
    return root / "artifacts" / "interlock" / "events.jsonl"


def snapshots_path(root: Path) -> Path:
    """Return where every snapshot of every ticket is kept."""
    return root / "artifacts" / "interlock" / "tickets.jsonl"


def copies_dir(root: Path, run_id: str) -> Path:
    """Return the folder of a ticket run's payloads and of its last ticket, for people."""
    return root / "artifacts" / "interlock" / "tickets" / run_id


def journal_run(run_id: str) -> str:
    """Return the name of a ticket run in the journal, where task runs have names of the same form."""
    return f"ticket:{run_id}"


def journal_beside(run_id: str) -> str:
    """Return the name in the journal of what moves a ticket run no more, so that an ended run ends at its last line."""
    return f"{journal_run(run_id)}/beside"
