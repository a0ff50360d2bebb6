"""The files in which agents keep their copies of tickets: theirs to write at any time, whoever holds what there."""

import json
import os
import stat
from typing import Final

_FOLDER: Final = "tickets"
_ONE: Final = "ticket.json"
_END: Final = ".json"
_MAX_BYTES: Final = 4 * 1024 * 1024


def is_ticket_file(root: str | os.PathLike[str], path: str) -> bool:
    """Return whether a path is an agent's copy of a ticket: `tickets/ticket.json`, or `tickets/RUN.json` of a run.

    The file must hold a ticket, or be missing or empty: a file of the project with such a name is not one. The root has
    a folder in `.interlock/tickets` for each run.
    """
    folder, _, name = path.rpartition("/")
    if folder != _FOLDER or not name.endswith(_END):
        return False
    run = os.path.join(root, ".interlock", _FOLDER, name.removesuffix(_END), "run.json")
    return (name == _ONE or os.path.isfile(run)) and _is_ticket(os.path.join(root, path))


def _is_ticket(path: str) -> bool:
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_size > _MAX_BYTES:
            return False
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return not text.strip() or "run_id" in json.loads(text)
    except FileNotFoundError:
        return True
    except (OSError, ValueError, TypeError, RecursionError):
        return False
