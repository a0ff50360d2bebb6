"""A project that moves into a database: its journal, its runs with their files, its reservations; compared afterwards."""

from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from interlock.core.database import Database
from interlock.graph.errors import GraphError


class Moved(NamedTuple):
    """What was copied, and how many heads of runs are the same in both."""

    lines: int
    runs: int
    rows: int
    heads: int


def migrate(root: Path, address: str) -> Moved:
    raise NotImplementedError
