"""The journals of a project: where they lie, and the database that has their lines, if there is one."""

import os
from pathlib import Path
from typing import Literal, TypeAlias

from interlock.core.database import database_of
from interlock.journal.log import Journal
from interlock.journal.shared import Upstream

Name: TypeAlias = Literal["events", "tickets"]
"""What happened; and every snapshot of every ticket."""


def path_of(root: str | os.PathLike[str], name: Name = "events") -> Path:
    """Return the path of a journal of a project, by the root that keeps the record."""
    return Path(root) / "artifacts" / "interlock" / f"{name}.jsonl"


def journal_of(root: str | os.PathLike[str], name: Name = "events") -> Journal:
    """Return a journal of a project, by the root that keeps the record.

    Raises:
        DatabaseError: `DBA902` what names the database is no address of one.
    """
    database = database_of(Path(root))
    return Journal(path_of(root, name), Upstream(database, name) if database else None)
