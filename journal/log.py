"""The append-only log: events go in once, in order, and stay."""

import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interlock.core.finding import Finding
from interlock.journal import files
from interlock.journal.chain import Chain
from interlock.journal.errors import JournalError
from interlock.journal.line import (
    MAX_LINE_BYTES,
    MAX_NAME_CHARS,
    START,
    Entry,
    Event,
    Head,
    canonical,
    decode,
    make,
    not_json,
)
from interlock.journal.shared import LOCK, Upstream
from interlock.redaction import redactor_for

if TYPE_CHECKING:
    from interlock.core.database import Link


def _now() -> datetime:
    return datetime.now(UTC)


class Journal:
    """One journal file, shared by any number of threads and processes.

    Every append takes the file's lock, reads what others wrote since, and adds lines that are on the disk when the call
    returns. What was read once is remembered, so the cost of an append does not grow with the file. A journal
    that was cut or replaced is refused from then on, and so is a run with a line that was edited.

    With an upstream the file is a copy, which each call first brings up to date, and an event is written when the
    database has committed it. Each method then also raises `DatabaseError`, and `JRN741` where the copy is another.

    The first use of a run searches the file for its lines and checks each in full; what other runs wrote before is
    passed over unread. `verify` reads everything.

    Args:
        path: The file; it and its folder are made by the first append. It must not be a symbolic link.
        clock: Gives the present time with a zone.
        upstream: Where the lines are, if the file is a copy of them.

    Raises:
        JournalError: the file is not what was written to it (from `entries` at the first such line), or the arguments
            or the path cannot be accepted (JRN721, JRN732).
    """

    def __init__(
        self, path: str | os.PathLike[str], upstream: Upstream | None = None, *, clock: Callable[[], datetime] = _now
    ) -> None:
        self.path = Path(path)
        self.upstream = upstream
        self._clock = clock
        self._mutex = threading.Lock()
        # The runs that were asked for, up to byte `_offset`.
        self._chain = Chain()
        self._offset = 0
        self._inode: tuple[int, int] | None = None

    def append(self, run: str, key: str, type: str, data: Mapping[str, Any], *, at: str = "") -> Entry:  # noqa: A002
        """Write one event of a run, once, and return it when it is on the disk.

        Repeating the call with the same key returns the line that is already there and writes nothing.

        Args:
            run: The run; 1 to 512 printable characters, as are `key` and `type`.
            key: What the event is known by in its run.
            type: The kind of event.
            data: The event; JSON types only, tuples become lists. The whole line has at most 256 KiB. Keys of the
                environment are taken out of its texts.
            at: When it happened, for an event that is carried elsewhere until it is written; default: now.

        Raises:
            JournalError: the key already belongs to an event of another type or with other data (JRN731), or the disk
                is full or broken (JRN733).
        """
        return self.extend(run, ((key, type, data),), at=at)[0]

    def extend(
        self, run: str, events: Sequence[tuple[str, str, Mapping[str, Any]]], *, at: str = ""
    ) -> tuple[Entry, ...]:
        """Write several events of a run, each once, and return them when all are on the disk.

        Every event keeps the promise of `append`: one that is already there stays where it is. All are
        checked before the first is written, so that an error leaves the file as it was. A writer that is killed leaves
        a part of the new lines from the first on, and repeating the call completes it.

        Raises:
            JournalError: a key already belongs to another event, in the file or further up in `events` (JRN731), or
                the disk is full or broken (JRN733).
        """
        # Keys are taken out before the hash is made: a key found later could not be removed without a broken chain.
        clean = redactor_for(self.path).value
        wanted = [Event(run, key, kind, clean(data)) for key, kind, data in events]
        for event in wanted:
            self._check(event)
        if not wanted:
            return ()
        with self._mutex:
            if self.upstream is not None:
                return self._extend_shared(self.upstream, run, wanted, at)
            # Recreating a file that this object has read would silently lose its events.
            create = self._inode is None
            if create:
                files.make_folder(self.path)
            try:
                with files.open_for_append(self.path, create=create) as fd:
                    if create:
                        # A line is on the disk only if the name of its file is, too.
                        files.sync_folder(self.path)
                    return self._extend(fd, run, wanted, at)
            except FileNotFoundError as error:
                raise self._damaged("the file was removed") from error

    def entries(self, run: str | None = None) -> Iterator[Entry]:
        """Give the events in the order of the file, of one run or of all, as far as it is written when reading begins.

        Each is checked in full when its turn comes. A fragment that a killed writer left at the end is not an event
        and is passed over. Of a file that was searched before, the events of one run cost what that run holds.
        """
        return self._entries() if run is None else self._entries_of(run)

    def follow(self, offset: int = 0) -> Iterator[tuple[int, Entry]]:
        """Give the events of all runs behind a position, each with the position behind it, and end with the file.

        A position is a byte offset at which a line ends; 0 is the beginning. It stays true in other processes and for
        as long as the file is the same, so that whoever keeps the last one goes on there. A fragment that a killed
        writer left at the end is not given. Each line is held to its form and its own hash; how lines follow each other
        is not looked at: that is for `verify`.

        Raises:
            JournalError: At the first line that is not what was written; or no line ends there, since the file was cut,
                replaced, or removed (JRN723).
        """
        self.pull()
        try:
            with files.open_for_reading(self.path) as (fd, size):
                # A position from before the file was cut or replaced would begin in the middle of a line.
                if offset and (not 0 < offset <= size or os.pread(fd, 1, offset - 1) != b"\n"):
                    raise self._error("JRN723", f"no line ends at byte {offset} of {size}")
                for start, raw in files.read_lines(fd, offset, files.whole(fd, size)):
                    yield start + len(raw), self._decoded(fd, start, raw)
        except FileNotFoundError:
            if offset:
                raise self._error("JRN723", "there is no file any more") from None

    def find(self, run: str, key: str) -> Entry | None:
        """Return the event of a key, checked in full, or None when there is none."""
        with self._mutex, self._reading() as fd:
            return None if fd is None or key not in self._offsets(fd, run) else self._entry(fd, run, key)

    def head(self, run: str) -> Head | None:
        """Return the end of a run, or None when it has no events."""
        with self._mutex, self._reading() as fd:
            return self._chain.heads.get(run) if fd is not None and self._offsets(fd, run) else None

    def runs(self) -> tuple[str, ...]:
        """Name every run, in the order of their first events; reads the whole file, and searches for none later."""
        chain = Chain()
        with self._mutex, self._reading() as fd:
            if fd is not None:
                for offset, raw in files.read_lines(fd, 0, self._offset):
                    entry = self._decoded(fd, offset, raw)
                    self._follows(fd, chain, offset, entry)
            self._chain = chain
        return tuple(chain.heads)

    def pull(self) -> None:
        """Bring the file up to date, if it is a copy."""
        if self.upstream is not None:
            self.upstream.pull(self.path)

    def difference(self) -> Finding | None:
        """Bring the file up to date, if it is a copy, and return the first line that the database has otherwise."""
        return None if self.upstream is None else self.upstream.difference(self.path)

    def _entries(self) -> Iterator[Entry]:
        chain = Chain()
        self.pull()
        try:
            with files.open_for_reading(self.path) as (fd, size):
                for offset, raw in files.read_lines(fd, 0, files.whole(fd, size)):
                    entry = self._decoded(fd, offset, raw)
                    self._follows(fd, chain, offset, entry)
                    yield entry
        except FileNotFoundError as error:
            if self._inode is not None:
                raise self._damaged("the file was removed") from error

    def _entries_of(self, run: str) -> Iterator[Entry]:
        with self._mutex, self._reading() as fd:
            entries = [] if fd is None else [self._entry(fd, run, key) for key in self._offsets(fd, run)]
        yield from entries

    def _extend(self, fd: int, run: str, events: Sequence[Event], at: str) -> tuple[Entry, ...]:
        # The size is read under the lock: what others wrote until now is read before anything is added.
        size = os.fstat(fd).st_size
        self._catch_up(fd, size)
        entries, lines = self._stage(fd, run, events, at)
        if not lines:
            # Another wrote them, and may have died before they were on the disk.
            files.sync(fd, self.path)
            return entries
        if self._offset < size:
            os.ftruncate(fd, self._offset)  # a fragment of a writer that was killed; it was never acknowledged
        self._write(fd, lines)
        return entries

    def _extend_shared(self, upstream: Upstream, run: str, events: Sequence[Event], at: str) -> tuple[Entry, ...]:
        def work(link: "Link") -> tuple[tuple[Entry, ...], list[tuple[Entry, bytes]]]:
            with upstream.opened(link, self.path) as fd:
                self._catch_up(fd, os.fstat(fd).st_size)
                entries, lines = self._stage(fd, run, events, at)
            if lines:
                upstream.insert(link, self._offset, [line for _, line in lines])
            return entries, lines

        if self._inode is None:
            self.pull()  # while a long copy is made, no other machine waits
        entries, lines = upstream.database.transact(work, lock=LOCK)
        if lines:
            with files.open_for_append(self.path, create=True) as fd:
                # Whoever brought the copy up to date since the commit has written them.
                if os.fstat(fd).st_size == self._offset:
                    self._write(fd, lines)
        return entries

    def _write(self, fd: int, lines: Sequence[tuple[Entry, bytes]]) -> None:
        files.write(fd, b"".join(line for _, line in lines), self.path)
        for entry, line in lines:
            self._chain.adopt(entry, self._offset)
            self._offset += len(line)

    def _stage(
        self, fd: int, run: str, events: Sequence[Event], at: str
    ) -> tuple[tuple[Entry, ...], list[tuple[Entry, bytes]]]:
        """Give the entry of each event, and those among them that are new with their lines; writes nothing."""
        offsets = self._offsets(fd, run)
        head = self._chain.heads.get(run, START)
        entries: dict[str, Entry] = {}
        lines: list[tuple[Entry, bytes]] = []
        for event in events:
            known = entries.get(event.key)
            if known is None and event.key in offsets:
                # The line is read again rather than remembered: it may have been edited since, and is held to its hash.
                known = self._entry(fd, run, event.key)
            if known is None:
                # All new lines of one call have one time: they were acknowledged together.
                at = at or self._stamp()
                known, line = make(event, after=head, at=at)
                if len(line) > MAX_LINE_BYTES:
                    raise self._error(
                        "JRN732", f"the line would have {len(line)} bytes; at most {MAX_LINE_BYTES} are allowed"
                    )
                head = Head(known.seq, known.hash)
                lines.append((known, line))
            # Repeating an event is harmless, and a key that is used for another one is a mistake of the caller.
            elif (known.type, canonical(known.data)) != (event.type, canonical(event.data)):
                message = f"key {event.key!r} of run {run!r} already belongs to another event (seq {known.seq})"
                raise self._error("JRN731", message)
            entries[event.key] = known
        return tuple(entries[event.key] for event in events), lines

    def _check(self, event: Event) -> None:
        for name, value in (("run", event.run), ("key", event.key), ("type", event.type)):
            if not 0 < len(value) <= MAX_NAME_CHARS or not value.isprintable():
                raise self._error(
                    "JRN732", f"{name} must have 1 to {MAX_NAME_CHARS} printable characters; found {value[:80]!r}"
                )
        if not isinstance(event.data, dict):
            raise self._error("JRN732", f"data must be a dict; found {event.data.__class__.__name__}")
        if flaw := not_json(event.data):
            raise self._error("JRN732", f"data cannot be written as JSON: {flaw}")

    def _stamp(self) -> str:
        return self._clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    @contextmanager
    def _reading(self) -> Generator[int | None, None, None]:
        """Read what is new and hold the file open; None when there is no journal yet."""
        self.pull()
        try:
            with files.open_for_reading(self.path) as (fd, size):
                self._catch_up(fd, size)
                yield fd
        except FileNotFoundError as error:
            if self._inode is not None:
                raise self._damaged("the file was removed") from error
            yield None

    def _catch_up(self, fd: int, size: int) -> None:
        status = os.fstat(fd)
        # Another file under the same name may hold other lines at the same offsets.
        inode = (status.st_dev, status.st_ino)
        if self._inode not in {None, inode}:
            if self.upstream is None:
                raise self._damaged("the file was replaced by another")
            # It was moved aside and copied anew.
            self._chain, self._offset, self._inode = Chain(), 0, None
        if size < self._offset:
            raise self._damaged(f"the file was cut: {size} bytes, {self._offset} had been read")
        end = files.whole(fd, size)
        # At the first use nothing is read here: `_offsets` searches for the lines of the run that is wanted, and what
        # other runs wrote before costs nothing. From then on every new line is looked at.
        start = end if self._inode is None else self._offset
        self._inode = inode
        for offset, raw in files.read_lines(fd, start, end):
            entry = self._decoded(fd, offset, raw)
            if entry.run in self._chain.offsets:
                self._follows(fd, self._chain, offset, entry)
        self._offset = end

    def _offsets(self, fd: int, run: str) -> Mapping[str, int]:
        """Return where the lines of a run begin, by key; they are searched for and checked at the first use of it."""
        if run not in self._chain.offsets:
            found = Chain(offsets={run: {}})
            for offset, raw in files.search(fd, self._offset, b'"run":' + canonical(run)):
                entry = self._decoded(fd, offset, raw)
                if entry.run == run:  # else data hold that text
                    self._follows(fd, found, offset, entry)
            # Taken over only once all lines were read: after an error the next call searches again, and refuses again.
            self._chain.heads.update(found.heads)
            self._chain.offsets.update(found.offsets)
        return self._chain.offsets[run]

    def _decoded(self, fd: int, offset: int, raw: bytes) -> Entry:
        entry = decode(raw)
        if isinstance(entry, Finding):
            raise self._wrong(entry, files.number(fd, offset))
        return entry

    def _follows(self, fd: int, chain: Chain, offset: int, entry: Entry) -> None:
        """Go on from an entry, which must follow what the chain has of its run."""
        if (problem := chain.problem(entry)) is not None:
            raise self._wrong(problem, files.number(fd, offset))
        chain.adopt(entry, offset)

    def _entry(self, fd: int, run: str, key: str) -> Entry:
        """Read the line of an event again."""
        start = self._chain.offsets[run][key]
        entry = next((decode(raw) for _, raw in files.read_lines(fd, start, self._offset)), None)
        if not isinstance(entry, Entry) or (entry.run, entry.key) != (run, key):
            raise self._damaged(f"the line of key {key!r} of run {run!r} was edited")
        return entry

    def _wrong(self, wrong: Finding, line: int) -> JournalError:
        message = f"{wrong.message}; found {wrong.found}, expected {wrong.expected}"
        return JournalError(wrong.code, message, path=self.path, line=line)

    def _damaged(self, message: str) -> JournalError:
        return self._error("JRN722", message)

    def _error(self, code: str, message: str) -> JournalError:
        return JournalError(code, message, path=self.path)
