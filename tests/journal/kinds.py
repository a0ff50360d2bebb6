"""The two kinds of a journal: a file alone, and the copy of lines in a database."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from interlock.journal import Journal

Opened: TypeAlias = Callable[..., Journal]
"""Opens the journal at a path; two that are opened at one path have the same lines."""
Place: TypeAlias = Callable[[Path], list[str]]
"""Gives what tells a program, besides the path of a journal, where its lines are."""

TABLES: Final = """
CREATE SCHEMA interlock;
CREATE TABLE interlock.meta (version int, oldest int);
INSERT INTO interlock.meta VALUES (1, 1);
CREATE TABLE interlock.line (
    journal text, start bigint, bytes bytea NOT NULL, PRIMARY KEY (journal, start)
);
"""
"""What journals need of a database."""

FILE_ALONE: Final = pytest.mark.parametrize("kind", ["file"], indirect=True)
"""For a test that is about the file itself."""

OPENED: Final = """
import sys
from interlock.core.database import Database
from interlock.journal import Journal, Upstream
def opened(path, *place):
    return Journal(path, Upstream(Database(place[0], checked=False), place[1]) if place else None)
"""
"""For a program: opens the journal at a path, as the copy of another journal in the database at an address."""
