"""The files of runs on this machine, where a database has the truth: what others wrote is copied, in their order.

Every file of a run that others need is a row of `interlock.run_file`. Its number is given under a lock, so that a
higher number was committed later: whoever has copied up to one number asks for what is above it.
"""

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from interlock.core.database import database_of
from interlock.core.files import write_atomically
from interlock.core.locks import locked

if TYPE_CHECKING:
    from interlock.core.database import Link

SAVED: Final = "UPDATE interlock.run SET saved = %s WHERE run = %s"
LOCK: Final = "files"
"""The lock of the database under which files get their numbers."""
_COPIED: Final = "copied"
_FRESH_SECONDS: Final = 0.2
"""A list of many runs asks once, and not once for each."""
_looked: dict[Path, float] = {}


def copy_runs(folder: Path) -> None:
    """Copy what others have written since the last time into `.interlock`, the folder of the record.

    Raises:
        DatabaseError: The database cannot be used.
    """
    database = database_of(folder.parent)
    if database is None or time.monotonic() - _looked.get(folder, 0.0) < _FRESH_SECONDS:
        return
    folder.mkdir(exist_ok=True)
    mark = folder / _COPIED
    with (folder / f"{_COPIED}.lock").open("ab") as file, locked(file):
        known = int(mark.read_text()) if mark.exists() else 0
        statement = "SELECT run, name, data, version FROM interlock.run_file WHERE version > %s ORDER BY version"
        rows: list[dict[str, Any]] = database.transact(lambda link: link.execute(statement, (known,)).fetchall())
        for row in rows:
            path = folder / "runs" / row["run"] / row["name"]
            if row["data"] is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, row["data"], durable=False)
            elif row["name"] == "run.json":  # the run was removed
                shutil.rmtree(path.parent, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        if rows:
            write_atomically(mark, str(rows[-1]["version"]).encode(), durable=False)
    _looked[folder] = time.monotonic()


def keep(folder: Path, name: str, data: bytes | None, *, first: bool = False, saved: str = "") -> bool:
    """Write a file into the folder of a run, None removes it; return False where another has written it `first`.

    `saved` is the commit that has the other files of the run from then on.

    Raises:
        DatabaseError: The database cannot be used; nothing was written here.
        OSError: The file cannot be written here.
    """
    # A ticket belongs to the machine on which its agent works.
    database = database_of(folder.parents[2]) if folder.parent.name == "runs" else None
    if database is not None and not database.transact(
        lambda link: put(link, folder.name, name, data, first=first, saved=saved), lock=LOCK
    ):
        return False
    path = folder / name
    if data is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
    else:
        path.unlink(missing_ok=True)
    return True


def put(link: "Link", run: str, name: str, data: bytes | None, *, first: bool = True, saved: str = "") -> bool:
    """Write a file of a run into a database, as `keep` does; the caller has `LOCK`."""
    there = "SELECT data FROM interlock.run_file WHERE run = %s AND name = %s AND data IS NOT NULL"
    if (before := link.execute(there, (run, name)).fetchone()) is not None:
        # Work that is done again finds what it wrote before.
        if before["data"] == data:
            return True
        if first:
            return False
    link.execute(
        "INSERT INTO interlock.run_file (run, name, data, version) "
        "VALUES (%s, %s, %s, (SELECT coalesce(max(version), 0) + 1 FROM interlock.run_file)) "
        "ON CONFLICT (run, name) DO UPDATE SET data = excluded.data, version = excluded.version",
        (run, name, data),
    )
    if saved:
        link.execute(SAVED, (saved, run))
    return True
