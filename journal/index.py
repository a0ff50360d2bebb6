"""A stored index of a journal: where the lines of each run stand, so that no process reads the whole file for it.

The journal alone is the truth; the index may be removed at any time. It covers the file from its beginning up to one
line, whose bytes it knows: where those stand no more, it is passed over and made anew. What it says is never believed
of a line: each one that is built upon is read and checked where it stands.
"""

import os
from collections.abc import Sequence
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from interlock.journal.errors import JournalDamaged

if TYPE_CHECKING:
    import sqlite3

STORED_BYTES: Final = 1024 * 1024
"""So much of a journal is read without an index, and so far behind is one left before it is brought up to date."""

_BUSY_SECONDS: Final = 0.2
"""Whoever cannot write the index soon goes on without."""

_TABLES: Final = (
    "CREATE TABLE cover (covered INTEGER, lines INTEGER, last INTEGER, sha256 BLOB)",
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT UNIQUE)",
    "CREATE TABLE lines (run INTEGER, key TEXT, at INTEGER, PRIMARY KEY (run, key)) WITHOUT ROWID",
)

_OF_RUN: Final = "SELECT at FROM lines WHERE at < ? AND run = (SELECT id FROM runs WHERE name = ?)"


class Place(NamedTuple):
    """Where the line of a key stands in the file."""

    run: str
    key: str
    offset: int


class Index:
    """The index of one journal as it was when it was opened; what others add to it later is not seen.

    Args:
        journal: The path of the journal.
        connection: The database.
        covered: How many bytes of the journal it covers.
        lines: How many lines these are.
        last_line: The last of them.

    Raises:
        JournalDamaged: The file of the index is broken (from every method).
    """

    def __init__(
        self, journal: Path, connection: "sqlite3.Connection", covered: int, lines: int, last_line: bytes
    ) -> None:
        self._journal = journal
        self._connection = connection
        self.covered = covered
        self.lines = lines
        self.last_line = last_line

    def places(self, run: str) -> list[int]:
        """Return the offsets of the lines of a run, in order."""
        return [row[0] for row in self._rows(f"{_OF_RUN} ORDER BY at", run)]

    def place(self, run: str, key: str) -> int | None:
        """Return the offset of the line of a key, or None when there is none."""
        return next((row[0] for row in self._rows(f"{_OF_RUN} AND key = ?", run, key)), None)

    def runs(self) -> list[str]:
        """Name every run, in the order of their first lines."""
        rows = self._rows("SELECT name FROM lines JOIN runs ON id = run WHERE at < ? GROUP BY run ORDER BY min(at)")
        return [row[0] for row in rows]

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        import sqlite3  # noqa: PLC0415 - 10 ms that a small journal does not pay

        try:
            return self._connection.execute(query, (self.covered, *values)).fetchall()
        except sqlite3.Error as error:
            name = _path(self._journal).name
            message = f"{name} beside it cannot be read ({error}); remove that file, it is made anew"
            raise JournalDamaged("JRN722", message, path=self._journal) from error


def open_index(journal: Path, fd: int, size: int) -> Index | None:
    """Return the index of a journal; None where there is none, or one of another file.

    Args:
        journal: The path of the journal.
        fd: The journal, open for reading.
        size: Its size.
    """
    path = _path(journal)
    if size <= STORED_BYTES or not path.is_file() or path.is_symlink():
        return None
    import sqlite3  # noqa: PLC0415 - as above

    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
    with suppress(sqlite3.Error, TypeError):
        covered, lines, last, digest = connection.execute("SELECT * FROM cover").fetchone()
        line = os.pread(fd, covered - last, last) if covered <= size else b""
        if sha256(line).digest() == digest:
            return Index(journal, connection, covered, lines, line)
    connection.close()
    return None


def store_index(journal: Path, known: int, rows: Sequence[Place], lines: int, last_line: bytes) -> None:
    """Bring the index of a journal up to a line, unless another process did; where it cannot be written, it is not.

    Args:
        journal: The path of the journal.
        known: How much of it the index covers that the caller began with; 0 where there was none.
        rows: Where the lines stand that come after, at least one.
        lines: How many lines there are up to the last of them.
        last_line: That one.
    """
    import sqlite3  # noqa: PLC0415 - as above

    path = _path(journal)
    target = path if known else path.with_name(f".{path.name}.{os.getpid()}.part")
    cover = (rows[-1].offset + len(last_line), lines, rows[-1].offset, sha256(last_line).digest())
    with suppress(OSError, sqlite3.Error):
        if path.is_symlink():
            return
        name = f"{target.absolute().as_uri()}?mode={'rw' if known else 'rwc'}"
        with closing(sqlite3.connect(name, timeout=_BUSY_SECONDS, isolation_level=None, uri=True)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            if not known:
                for table in _TABLES:
                    connection.execute(table)
            elif connection.execute("SELECT covered FROM cover").fetchone() != (known,):
                return
            connection.executemany("INSERT OR IGNORE INTO runs (name) VALUES (?)", {(row.run,) for row in rows})
            connection.executemany(
                "INSERT OR IGNORE INTO lines SELECT id, ?, ? FROM runs WHERE name = ?",
                ((row.key, row.offset, row.run) for row in rows),
            )
            connection.execute("DELETE FROM cover")
            connection.execute("INSERT INTO cover VALUES (?, ?, ?, ?)", cover)
            connection.execute("COMMIT")
        if not known:
            target.replace(path)
    if not known:
        with suppress(OSError):
            target.unlink()


def _path(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}.index")
