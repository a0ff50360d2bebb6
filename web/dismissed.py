"""What a person put out of the inbox of a project; it comes back once something new happens to it."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Final

from interlock.core.files import write_atomically
from interlock.core.locks import locked
from interlock.graph import state_dir

_FILE: Final = "dismissed.json"


def dismissed(root: Path) -> frozenset[str]:
    """Return the marks of what was dismissed; none where the file cannot be read, so that nothing stays hidden."""
    try:
        return frozenset(map(str, json.loads((root / ".interlock" / _FILE).read_bytes())))
    except (OSError, ValueError, TypeError):
        return frozenset()


def dismiss(root: Path, mark: str, open_marks: Collection[str], *, on: bool) -> None:
    """Dismiss one thing, or bring it back; what is not open any more is forgotten."""
    path = state_dir(root) / _FILE
    with path.with_suffix(".lock").open("ab") as file, locked(file):
        kept = {each for each in dismissed(root) if each in open_marks} - {mark}
        write_atomically(path, json.dumps(sorted({*kept, mark} if on else kept)).encode(), durable=False)
