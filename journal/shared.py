"""The lines of a journal in PostgreSQL, for a project of several machines: each has a copy of the file.

The line that begins at byte `start` of the file is the row `(journal, start)`. A copy is the rows from the first on, so
copies are equal as far as they go, and a position in one is the same position in each.

An append is one transaction under a lock of the database: the copy gets the rows that it lacks, the new lines are made
behind them and inserted; when that is committed, the copy gets them too. So a copy never has a line that may not stay,
and one whose writer was killed is behind, which its next use sets right. Answers T1.

The lock of the file is taken within the transaction and given back before the commit: while the server is away, nobody
holds the file, and everybody gives up when their own patience is over.
"""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from interlock.core.database import Database
from interlock.core.finding import Finding
from interlock.journal import files
from interlock.journal.errors import JournalError, flaw

if TYPE_CHECKING:
    from interlock.core.database import Link

LOCK: Final = "journal"
"""The lock of the database under which lines are inserted."""
_BYTES: Final = 4 * 1024 * 1024
"""How much of a long journal is read or written at once."""
_ROWS: Final = 500
"""How many lines are inserted at once."""


class Upstream(NamedTuple):
    """A journal in a database, by its name there."""

    database: Database
    name: str

    def pull(self, path: Path) -> None:
        """Add to a copy the lines that it lacks; one that is not there is made when there is a line.

        Raises:
            JournalError: The copy is not what the database has (JRN741), or cannot be written.
            DatabaseError: The database cannot be used.
        """

        def work(link: "Link") -> None:
            if path.exists() or any(self._lines(link, 0)):
                with self.opened(link, path):
                    pass

        self.database.read(work)

    @contextmanager
    def opened(self, link: "Link", path: Path) -> Generator[int]:
        """Hold a copy open and locked, with every line that is committed; gives its descriptor."""
        files.make_folder(path)
        with files.open_for_append(path, create=True) as fd:
            size = os.fstat(fd).st_size
            end = files.whole(fd, size)
            if end < size:
                os.ftruncate(fd, end)  # a fragment of a writer that was killed
            # The last line is compared: a database that was put back to an earlier time has another there, or none.
            at = files.whole(fd, end - 1) if end else 0
            last, missing = os.pread(fd, end - at, at), bytearray()
            for start, line in self._lines(link, at):
                if start != at or (last and line != last):
                    raise _unlike(path, at)
                at += len(line)
                missing += b"" if last else line
                last = b""
                if len(missing) >= _BYTES:
                    files.write(fd, missing, path)
                    missing.clear()
            if last:
                raise _unlike(path, at)
            if missing:
                files.write(fd, missing, path)
            yield fd

    def insert(self, link: "Link", start: int, lines: Sequence[bytes]) -> None:
        """Insert lines, the first of which begins at a byte offset; the caller has `LOCK`."""
        link.execute(
            "INSERT INTO interlock.line (journal, start, bytes) SELECT %s, * FROM unnest(%b::bigint[], %b::bytea[])",
            (self.name, list(accumulate(map(len, lines[:-1]), initial=start)), list(lines)),
        )

    def difference(self, path: Path) -> Finding | None:
        """Bring a copy up to date, and return the first line that the database has otherwise, or not at all.

        Raises:
            JournalError: The copy cannot be written.
            DatabaseError: The database cannot be used.
        """
        try:
            self.pull(path)
        except JournalError as error:
            if error.code == "JRN721":
                return None  # `verify` says so
            if error.code != "JRN741":
                raise
        try:
            with files.open_for_reading(path) as (fd, size):
                end = files.whole(fd, size)
                at, line, is_other = self.database.read(lambda link: self._compared(link, fd))
        except FileNotFoundError:
            return None
        if at >= end:
            return None
        found = f"{'another line' if is_other else 'no line'} at byte {at} of the database"
        unlike = flaw("JRN741", "the copy is not what the database has", found, "the line of the copy", line=line)
        return unlike._replace(path=str(path))

    def upload(self, path: Path) -> int:
        """Put the lines of a file into the database, and return how many it lacked. Safe to repeat.

        Raises:
            FileNotFoundError: The file is not there.
            JournalError: The database has other lines (JRN742), or the file is no journal; nothing was put there.
            DatabaseError: The database cannot be used.
        """

        def work(link: "Link") -> int:
            with files.open_for_append(path, create=False) as fd:
                end, count = files.whole(fd, os.fstat(fd).st_size), 0
                at, number, is_other = self._compared(link, fd)
                if is_other and at < end:
                    raise JournalError("JRN742", "the database has another line in this place", path=path, line=number)
                rest = files.read_lines(fd, at, end)
                while batch := list(islice(rest, _ROWS)):
                    self.insert(link, batch[0][0], [line for _, line in batch])
                    count += len(batch)
                return count

        return self.database.transact(work, lock=LOCK)

    def _compared(self, link: "Link", fd: int) -> tuple[int, int, bool]:
        """Return up to which byte both are equal, the number of the next line, and whether the database has one."""
        at, number = 0, 1
        for start, line in self._lines(link, 0):
            if start != at or os.pread(fd, len(line), at) != line:
                return at, number, True
            at += len(line)
            number += 1
        return at, number, False

    def _lines(self, link: "Link", start: int) -> Iterator[tuple[int, bytes]]:
        """Give the lines from a byte offset on, each with its own offset."""
        # Not LIMIT: without fresh statistics the server would sort all that follows, for each part of a long journal.
        statement = (
            "SELECT start, bytes FROM interlock.line WHERE journal = %s AND start BETWEEN %s AND %s ORDER BY start"
        )
        while True:
            stop = start + _BYTES
            rows = link.execute(statement, (self.name, start, stop), binary=True).fetchall()
            for row in rows:
                yield row["start"], row["bytes"]
            start = rows[-1]["start"] + len(rows[-1]["bytes"]) if rows else start
            if start <= stop:
                return


def _unlike(path: Path, at: int) -> JournalError:
    return JournalError("JRN741", f"the database has another line at byte {at}, or none", path=path)
