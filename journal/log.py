"""The append-only log: events go in once, in order, and stay."""

import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from interlock.journal import files
from interlock.journal.chain import Chain
from interlock.journal.errors import Code, JournalConflict, JournalDamaged, JournalRefused, Problem
from interlock.journal.index import STORED_BYTES, Place, open_index, store_index
from interlock.journal.line import (
    MAX_LINE_BYTES,
    MAX_NAME_CHARS,
    START,
    Entry,
    Event,
    Flaw,
    Head,
    Link,
    canonical,
    decode,
    make,
    not_json,
    skim,
)
from interlock.redaction import redactor_for


def _now() -> datetime:
    return datetime.now(UTC)


def _told(wrong: Flaw | Problem) -> str:
    return f"{wrong.message}; found {wrong.found}, expected {wrong.expected}"


class Journal:
    """One journal file, shared by any number of threads and processes.

    Every append takes the file's lock, reads what others wrote since, and adds lines that are on the disk when the call
    returns. What was read once is remembered, so the cost of an append does not grow with the file. A journal
    that was cut, replaced or edited behind the back of this object is refused from then on.

    The first use reads what no index covers (see `journal.index`): the whole file while it is small, later about its
    last MiB. Of these lines it checks the hash, the place in the run and that the key is its own, but looks into the
    data of none. What it did not read, or whose data was written in another form and then hashed anew, is refused when
    `find`, `entries` or a repeated `append` reads it, and by `verify`, which always reads everything; until then new
    lines go in behind it.

    Args:
        path: The file; it and its folder are made by the first append. Neither may be a symbolic link.
        clock: Gives the present time with a zone.
    """

    def __init__(self, path: str | os.PathLike[str], *, clock: Callable[[], datetime] = _now) -> None:
        self.path = Path(path)
        self._clock = clock
        self._mutex = threading.Lock()
        self._chain = Chain()
        self._offset = 0
        self._durable = 0
        self._last_line = b""
        self._inode: tuple[int, int] | None = None
        self._indexed = 0
        self._unstored: list[Place] = []

    def append(self, run: str, key: str, type: str, data: Mapping[str, Any]) -> Entry:  # noqa: A002
        """Write one event of a run, once, and return it when it is on the disk.

        Repeating the call with the same key returns the line that is already there and writes nothing.

        Args:
            run: The run; 1 to 512 printable characters, as are `key` and `type`.
            key: What the event is known by in its run.
            type: The kind of event.
            data: The event; JSON types only, tuples become lists. The whole line has at most 256 KiB. Keys of the
                environment are taken out of its texts.

        Raises:
            JournalConflict: the key already stands for an event of another type or with other data.
            JournalDamaged: the file is not what was written to it.
            JournalRefused: the arguments or the path cannot be accepted.
            JournalUnwritten: the disk is full or broken.
        """
        return self.extend(run, ((key, type, data),))[0]

    def extend(self, run: str, events: Sequence[tuple[str, str, Mapping[str, Any]]]) -> tuple[Entry, ...]:
        """Write several events of a run, each once, and return them when all are on the disk.

        Every event keeps the promise of `append`: one that stands already is taken over where it stands. All are
        checked before the first is written, so that an error leaves the file as it was. A writer that is killed leaves
        a part of the new lines from the first on, and repeating the call completes it.

        Args:
            run: The run.
            events: Key, type and data of each event, as `append` takes them.

        Raises:
            JournalConflict: a key already stands for another event, in the file or further up in `events`.
            JournalDamaged: the file is not what was written to it.
            JournalRefused: the arguments or the path cannot be accepted.
            JournalUnwritten: the disk is full or broken.
        """
        clean = redactor_for(self.path).value
        wanted = [Event(run, key, kind, clean(data)) for key, kind, data in events]
        for event in wanted:
            self._check(event)
        if not wanted:
            return ()
        with self._mutex:
            # Recreating a file that this object has read would forget its events without a word.
            create = self._inode is None
            try:
                with self._folder() as folder, files.open_for_append(self.path, folder, create=create) as fd:
                    if create:
                        files.sync(folder, self.path)
                    return self._extend(fd, folder, run, wanted)
            except FileNotFoundError as error:
                raise self._damaged("the file was removed") from error

    def entries(self, run: str | None = None) -> Iterator[Entry]:
        """Give the events in the order of the file, of one run or of all, as far as it is written when reading begins.

        Each is checked in full when its turn comes. A fragment that a killed writer left at the end is not an event
        and is passed over. Of a file that was read before, the events of one run cost what that run holds, whatever
        else the file holds.

        Raises:
            JournalDamaged: at the first line that is not what was written.
            JournalRefused: the path is no regular file.
        """
        return self._entries() if run is None else self._entries_of(run)

    def find(self, run: str, key: str) -> Entry | None:
        """Return the event of a key, checked in full, or None when there is none.

        Raises:
            JournalDamaged: the file is not what was written to it.
            JournalRefused: the path is no regular file.
        """
        with self._mutex, self._reading() as fd:
            place = None if fd is None else self._chain.place(run, key)
            return None if fd is None or place is None else self._known(fd, run, key, place)

    def head(self, run: str) -> Head | None:
        """Return the end of a run, or None when it has no events. The data of its lines need not have been read."""
        with self._mutex, self._reading() as fd:
            head = START if fd is None else self._head(fd, run)
            return None if head == START else head

    def runs(self) -> tuple[str, ...]:
        """Name every run, in the order of their first events."""
        with self._mutex, self._reading():
            return self._chain.runs()

    def _entries(self) -> Iterator[Entry]:
        chain = Chain()
        try:
            with files.open_for_reading(self.path) as (fd, size):
                for offset, raw in files.read_lines(fd, 0, size):
                    entry = self._next(chain, raw)
                    if entry is None:
                        return
                    chain.adopt(entry, offset)
                    yield entry
        except FileNotFoundError as error:
            if self._inode is not None:
                raise self._damaged("the file was removed") from error

    def _entries_of(self, run: str) -> Iterator[Entry]:
        with self._mutex, self._reading() as fd:
            head = START if fd is None else self._head(fd, run)
            lines = [] if fd is None else [self._line(fd, place) for place in self._chain.places_of(run)]
        after = START
        for raw in lines:
            place = f"line {after.seq + 1} of run {run!r}"
            entry = self._read(raw, place)
            if (entry.run, entry.seq, entry.prev) != (run, after.seq + 1, after.hash):
                raise self._changed(place)
            after = Head(entry.seq, entry.hash)
            yield entry
        if after != head:
            raise self._changed(f"line {after.seq} of run {run!r}")

    def _extend(self, fd: int, folder: int, run: str, events: Sequence[Event]) -> tuple[Entry, ...]:
        size = os.fstat(fd).st_size
        self._catch_up(fd, size)
        entries, lines = self._stage(fd, run, events)
        if lines:
            if self._offset < size:
                files.set_aside(fd, self._offset, self.path, folder)
            files.write(fd, b"".join(line for _, line in lines), self.path)
            for entry, line in lines:
                self._adopt(entry, self._offset, line)
            self._store_index()
        elif all((self._chain.place(run, event.key) or 0) < self._durable for event in events):
            return entries
        else:
            # Another wrote them, and may have died before they were on the disk.
            files.sync(fd, self.path)
        self._durable = self._offset
        return entries

    def _stage(self, fd: int, run: str, events: Sequence[Event]) -> tuple[tuple[Entry, ...], list[tuple[Entry, bytes]]]:
        """Give the entry of each event, and those among them that are new with their lines; writes nothing."""
        head = self._head(fd, run)
        entries: dict[str, Entry] = {}
        lines: list[tuple[Entry, bytes]] = []
        at = ""
        for event in events:
            known = entries.get(event.key)
            if known is None and (place := self._chain.place(run, event.key)) is not None:
                known = self._known(fd, run, event.key, place)
            if known is None:
                at = at or self._stamp()
                known, line = make(event, after=head, at=at)
                if len(line) > MAX_LINE_BYTES:
                    raise self._refused(f"the line would have {len(line)} bytes; at most {MAX_LINE_BYTES} are allowed")
                head = Head(known.seq, known.hash)
                lines.append((known, line))
            elif (known.type, canonical(known.data)) != (event.type, canonical(event.data)):
                message = f"key {event.key!r} of run {run!r} already stands for another event (seq {known.seq})"
                raise JournalConflict("JRN731", message, path=self.path)
            entries[event.key] = known
        return tuple(entries[event.key] for event in events), lines

    def _check(self, event: Event) -> None:
        for name, value in (("run", event.run), ("key", event.key), ("type", event.type)):
            if not 0 < len(value) <= MAX_NAME_CHARS or not value.isprintable():
                raise self._refused(
                    f"{name} must have 1 to {MAX_NAME_CHARS} printable characters; found {value[:80]!r}"
                )
        if not isinstance(event.data, dict):
            raise self._refused(f"data must be a dict; found {event.data.__class__.__name__}")
        if flaw := not_json(event.data):
            raise self._refused(f"data cannot be written as JSON: {flaw}")

    def _stamp(self) -> str:
        now = self._clock()
        if now.tzinfo is None:
            raise self._refused("the clock gives a time without a zone")
        return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _folder(self) -> AbstractContextManager[int]:
        if self._inode is None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise self._refused(f"the folder cannot be made: {error.strerror}", "JRN721") from error
        return files.open_folder(self.path)

    @contextmanager
    def _reading(self) -> Generator[int | None, None, None]:
        """Read what is new and hold the file open; None when there is no journal yet."""
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
        inode = (status.st_dev, status.st_ino)
        if self._inode not in {None, inode}:
            raise self._damaged("the file was replaced by another")
        if size < self._offset:
            raise self._damaged(f"the file was cut: {size} bytes, {self._offset} had been read")
        if os.pread(fd, len(self._last_line), self._offset - len(self._last_line)) != self._last_line:
            raise self._changed("its last known line", self._chain.lines)
        if self._inode is None and (index := open_index(self.path, fd, size)) is not None:
            self._chain.index, self._chain.lines = index, index.lines
            self._indexed = self._offset = index.covered
            self._last_line = index.last_line
        self._inode = inode
        if size == self._offset:
            return
        for offset, raw in files.read_lines(fd, self._offset, size):
            line = skim(raw)
            self._head(fd, decode(raw).run if line is None else line.run)
            if line is None or not self._chain.fits(line):
                line = self._next(self._chain, raw)
            if line is None:
                break
            self._adopt(line, offset, raw)
        self._store_index()

    def _next(self, chain: Chain, raw: bytes) -> Entry | None:
        """Read the next line; None for the fragment at the end."""
        if not raw.endswith(b"\n") and len(raw) <= MAX_LINE_BYTES:
            return None
        entry, problems = chain.check(raw)
        if problems:
            raise JournalDamaged(problems[0].code, _told(problems[0]), path=self.path, line=problems[0].line)
        return entry

    def _adopt(self, entry: Entry | Link, offset: int, raw: bytes) -> None:
        self._chain.adopt(entry, offset)
        self._unstored.append(Place(entry.run, entry.key, offset))
        self._offset = offset + len(raw)
        self._last_line = raw

    def _store_index(self) -> None:
        """Bring the index up to here, once it lags; a line of it costs a fraction of the reading that it spares."""
        if self._offset - self._indexed > STORED_BYTES:
            store_index(self.path, self._indexed, self._unstored, self._chain.lines, self._last_line)
            self._indexed, self._unstored = self._offset, []

    def _head(self, fd: int, run: str) -> Head:
        """Return the end of a run; where the index alone knows it, its last line is read."""
        heads, index = self._chain.heads, self._chain.index
        if run not in heads and index is not None and (places := index.places(run)):
            raw = self._line(fd, places[-1])
            link = skim(raw) or decode(raw)
            if isinstance(link, Flaw) or (link.run, link.seq) != (run, len(places)):
                stale = f"{self.path.name}.index beside it is of another file: remove it, it is made anew"
                raise self._damaged(f"line {len(places)} of run {run!r} has changed, or {stale}")
            heads[run] = Head(link.seq, link.hash)
        return self._chain.head(run)

    def _known(self, fd: int, run: str, key: str, offset: int) -> Entry:
        """Read the line of an event that was written before."""
        place = f"the line of key {key!r} of run {run!r}"
        entry = self._read(self._line(fd, offset), place)
        if (entry.run, entry.key) != (run, key):
            raise self._changed(place)
        return entry

    def _read(self, raw: bytes, place: str) -> Entry:
        """Read in full a line that was skimmed or written before."""
        entry = decode(raw)
        if isinstance(entry, Entry):
            return entry
        if skim(raw) is None:
            raise self._changed(place)
        # With a hash that is right it need not have changed since: only now is its form looked at.
        raise JournalDamaged(entry.code, f"{place}: {_told(entry)}", path=self.path)

    def _line(self, fd: int, place: int) -> bytes:
        return files.read_line(fd, place, self._offset)

    def _changed(self, place: str, line: int = 0) -> JournalDamaged:
        return self._damaged(f"the file was edited: {place} has changed", line=line)

    def _damaged(self, message: str, *, line: int = 0) -> JournalDamaged:
        return JournalDamaged("JRN722", message, path=self.path, line=line)

    def _refused(self, message: str, code: Code = "JRN732") -> JournalRefused:
        return JournalRefused(code, message, path=self.path)
