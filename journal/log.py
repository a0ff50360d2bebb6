"""The append-only log: events go in once, in order, and stay."""

import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from interlock.core.finding import Finding
from interlock.journal import files
from interlock.journal.chain import Chain
from interlock.journal.errors import JournalConflict, JournalDamaged, JournalPositionLost, JournalRefused
from interlock.journal.line import (
    MAX_LINE_BYTES,
    MAX_NAME_CHARS,
    START,
    Entry,
    Event,
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


def _described(wrong: Finding) -> str:
    return f"{wrong.message}; found {wrong.found}, expected {wrong.expected}"


def _is_fragment(raw: bytes) -> bool:
    return not raw.endswith(b"\n") and len(raw) <= MAX_LINE_BYTES


class Journal:
    """One journal file, shared by any number of threads and processes.

    Every append takes the file's lock, reads what others wrote since, and adds lines that are on the disk when the call
    returns. What was read once is remembered, so the cost of an append does not grow with the file. A journal
    that was cut, replaced or edited by anything but an append is refused from then on.

    The first use of a run searches the file for its lines and checks the hash of each, its place in the run and that
    its key is its own, but looks into the data of none; what other runs wrote before is passed over unread. A line of
    the run whose data was written in another form and then hashed anew is refused when `find`, `entries` or a repeated
    `append` reads it. `verify` reads everything; until then new lines go in behind what it would refuse.

    Args:
        path: The file; it and its folder are made by the first append. Neither may be a symbolic link.
        clock: Gives the present time with a zone.

    Raises:
        JournalDamaged: the file is not what was written to it; from `entries` at the first such line.
        JournalRefused: the arguments or the path cannot be accepted.
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
        self._searched: set[str] = set()
        self._whole = False

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
            JournalConflict: the key already belongs to an event of another type or with other data.
            JournalUnwritten: the disk is full or broken.
        """
        return self.extend(run, ((key, type, data),))[0]

    def extend(self, run: str, events: Sequence[tuple[str, str, Mapping[str, Any]]]) -> tuple[Entry, ...]:
        """Write several events of a run, each once, and return them when all are on the disk.

        Every event keeps the promise of `append`: one that is already there stays where it is. All are
        checked before the first is written, so that an error leaves the file as it was. A writer that is killed leaves
        a part of the new lines from the first on, and repeating the call completes it.

        Raises:
            JournalConflict: a key already belongs to another event, in the file or further up in `events`.
            JournalUnwritten: the disk is full or broken.
        """
        clean = redactor_for(self.path).value
        wanted = [Event(run, key, kind, clean(data)) for key, kind, data in events]
        for event in wanted:
            self._check(event)
        if not wanted:
            return ()
        with self._mutex:
            # Recreating a file that this object has read would silently lose its events.
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
        """
        return self._entries() if run is None else self._entries_of(run)

    def follow(self, offset: int = 0, *, after: str = "") -> Iterator[tuple[int, Entry]]:
        """Give the events of all runs behind a position, each with the position behind it, and end with the file.

        A position is a byte offset at which a line ends; 0 is the beginning. It stays true in other processes and for
        as long as the file is the same, so that whoever keeps the last one goes on there: `offset` with the hash of the
        entry that it came with as `after` proves that the file is still that one. Without `after` only a file that no
        line ends in at that place is noticed. A fragment that a killed writer left at the end is not given.

        Each line is held to its form and its own hash. How lines follow each other is not looked at: that is for
        `verify`.

        Raises:
            JournalPositionLost: No line ends there, or another one: the file was cut, replaced, or removed.
            JournalDamaged: At the first line that is not what was written.
            JournalRefused: The path is no regular file.
        """
        try:
            with files.open_for_reading(self.path) as (fd, size):
                self._check_position(fd, size, offset, after)
                for start, raw in files.read_lines(fd, offset, size):
                    if _is_fragment(raw):
                        return
                    entry = decode(raw)
                    if isinstance(entry, Finding):
                        raise self._wrong(entry, files.number(fd, start))
                    yield start + len(raw), entry
        except FileNotFoundError:
            if offset or after:
                raise self._lost("there is no file any more") from None

    def find(self, run: str, key: str) -> Entry | None:
        """Return the event of a key, checked in full, or None when there is none."""
        with self._mutex, self._reading() as fd:
            return None if fd is None or key not in self._offsets(fd, run) else self._known(fd, run, key)

    def head(self, run: str) -> Head | None:
        """Return the end of a run, or None when it has no events. The data of its lines need not have been read."""
        with self._mutex, self._reading() as fd:
            return self._chain.heads.get(run) if fd is not None and self._offsets(fd, run) else None

    def runs(self) -> tuple[str, ...]:
        """Name every run, in the order of their first events; reads the whole file, after which no run is searched."""
        with self._mutex, self._reading() as fd:
            if fd is not None and not self._whole:
                chain = Chain()
                for offset, raw in files.read_lines(fd, 0, self._offset):
                    if (line := self._link(fd, offset, raw)) is not None:
                        self._adopt(fd, chain, offset, raw, line)
                self._chain, self._whole = chain, True
            return tuple(self._chain.heads)

    def _entries(self) -> Iterator[Entry]:
        chain = Chain()
        try:
            with files.open_for_reading(self.path) as (fd, size):
                for offset, raw in files.read_lines(fd, 0, size):
                    if _is_fragment(raw):
                        return
                    entry, problems = chain.check(raw)
                    if entry is None or problems:
                        raise self._wrong(problems[0], chain.lines + 1)
                    chain.adopt(entry, offset)
                    yield entry
        except FileNotFoundError as error:
            if self._inode is not None:
                raise self._damaged("the file was removed") from error

    def _entries_of(self, run: str) -> Iterator[Entry]:
        with self._mutex, self._reading() as fd:
            lines = [] if fd is None else [self._line(fd, offset) for offset in self._offsets(fd, run).values()]
            head = self._chain.heads.get(run, START)
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

    def _check_position(self, fd: int, size: int, offset: int, after: str) -> None:
        if not 0 <= offset <= size:
            raise self._lost(f"the file has {size} bytes, and the position is {offset}")
        if offset and os.pread(fd, 1, offset - 1) != b"\n":
            raise self._lost(f"no line ends at byte {offset}")
        if after:
            last = decode(self._line_before(fd, offset))
            if not isinstance(last, Entry) or last.hash != after:
                raise self._lost(f"the line that ends at byte {offset} is another one")

    def _line_before(self, fd: int, offset: int) -> bytes:
        start = files.last_line(fd, offset)
        return os.pread(fd, offset - start, start)

    def _extend(self, fd: int, folder: int, run: str, events: Sequence[Event]) -> tuple[Entry, ...]:
        size = os.fstat(fd).st_size
        self._catch_up(fd, size)
        entries, lines = self._stage(fd, run, events)
        if lines:
            if self._offset < size:
                files.set_aside(fd, self._offset, self.path, folder)
            files.write(fd, b"".join(line for _, line in lines), self.path)
            for entry, line in lines:
                self._chain.adopt(entry, self._offset)
                self._offset += len(line)
                self._last_line = line
        elif all(self._chain.offsets[run][event.key] < self._durable for event in events):
            return entries
        else:
            # Another wrote them, and may have died before they were on the disk.
            files.sync(fd, self.path)
        self._durable = self._offset
        return entries

    def _stage(self, fd: int, run: str, events: Sequence[Event]) -> tuple[tuple[Entry, ...], list[tuple[Entry, bytes]]]:
        """Give the entry of each event, and those among them that are new with their lines; writes nothing."""
        offsets = self._offsets(fd, run)
        head = self._chain.heads.get(run, START)
        entries: dict[str, Entry] = {}
        lines: list[tuple[Entry, bytes]] = []
        at = ""
        for event in events:
            known = entries.get(event.key)
            if known is None and event.key in offsets:
                known = self._known(fd, run, event.key)
            if known is None:
                at = at or self._stamp()
                known, line = make(event, after=head, at=at)
                if len(line) > MAX_LINE_BYTES:
                    raise self._refused(f"the line would have {len(line)} bytes; at most {MAX_LINE_BYTES} are allowed")
                head = Head(known.seq, known.hash)
                lines.append((known, line))
            elif (known.type, canonical(known.data)) != (event.type, canonical(event.data)):
                message = f"key {event.key!r} of run {run!r} already belongs to another event (seq {known.seq})"
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
            raise self._changed("its last known line", files.number(fd, self._offset - len(self._last_line)))
        if self._inode is None:
            self._offset = files.last_line(fd, size)
            self._whole = not self._offset
        self._inode = inode
        if size == self._offset:
            return
        for offset, raw in files.read_lines(fd, self._offset, size):
            line = self._link(fd, offset, raw)
            if line is None:
                return
            if self._whole or line.run in self._searched:
                self._adopt(fd, self._chain, offset, raw, line)
            self._offset = offset + len(raw)
            self._last_line = raw

    def _offsets(self, fd: int, run: str) -> Mapping[str, int]:
        """Return where the lines of a run begin, by key; they are searched for and checked at the first use of it."""
        if not self._whole and run not in self._searched:
            found = Chain()
            for offset, raw in files.search(fd, self._offset, canonical(run)):
                line = self._link(fd, offset, raw)
                if line is not None and line.run == run:
                    self._adopt(fd, found, offset, raw, line)
            self._chain.heads.update(found.heads)
            self._chain.offsets.update(found.offsets)
            self._searched.add(run)
        return self._chain.offsets.get(run, {})

    def _link(self, fd: int, offset: int, raw: bytes) -> Entry | Link | None:
        """Check a line by itself; None for the fragment at the end."""
        if _is_fragment(raw):
            return None
        line = skim(raw) or decode(raw)
        if isinstance(line, Finding):
            raise self._wrong(line, files.number(fd, offset))
        return line

    def _adopt(self, fd: int, chain: Chain, offset: int, raw: bytes, line: Entry | Link) -> None:
        """Check the place of a line in its run, and go on from it."""
        if not chain.fits(line):
            raise self._wrong(chain.check(raw)[1][0], files.number(fd, offset))
        chain.adopt(line, offset)

    def _known(self, fd: int, run: str, key: str) -> Entry:
        """Read the line of an event that was written before."""
        place = f"the line of key {key!r} of run {run!r}"
        entry = self._read(self._line(fd, self._chain.offsets[run][key]), place)
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
        raise JournalDamaged(entry.code, f"{place}: {_described(entry)}", path=self.path)

    def _line(self, fd: int, offset: int) -> bytes:
        return files.read_line(fd, offset, self._offset)

    def _wrong(self, wrong: Finding, line: int) -> JournalDamaged:
        return JournalDamaged(wrong.code, _described(wrong), path=self.path, line=line)

    def _changed(self, place: str, line: int = 0) -> JournalDamaged:
        return self._damaged(f"the file was edited: {place} has changed", line=line)

    def _damaged(self, message: str, *, line: int = 0) -> JournalDamaged:
        return JournalDamaged("JRN722", message, path=self.path, line=line)

    def _lost(self, message: str) -> JournalPositionLost:
        return JournalPositionLost("JRN723", message, path=self.path)

    def _refused(self, message: str, code: str = "JRN732") -> JournalRefused:
        return JournalRefused(code, message, path=self.path)
