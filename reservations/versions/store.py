"""What is kept of held files: contents, versions, calls in flight; outside of every checkout, and outside of git.

One file of SQLite for a checkout and everything inside it (submodules, nested repositories) with all worktrees, so that
one transaction is a look at all of them. Contents are there once each.

What is kept is bounded: a file of `MAX_FILE_BYTES`, `MAX_TOTAL_BYTES` in all, `KEEP_SECONDS`. What no longer belongs to
a held file goes first; what does is never dropped, so that the bound refuses what it cannot keep (RSV910).
"""

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias
from zlib import crc32

from interlock.core import state
from interlock.core.record import Record
from interlock.reservations import place
from interlock.reservations.errors import ReservationError
from interlock.reservations.store.records import replace
from interlock.reservations.store.sqlite import SqliteFile
from interlock.reservations.store.sqlite_rows import Rows

MAX_FILE_BYTES: Final = 64 * 1024 * 1024
MAX_TOTAL_BYTES: Final = 1024 * 1024 * 1024
KEEP_SECONDS: Final = 7 * 24 * 3600.0
_NAME: Final = "versions.sqlite"

Kind: TypeAlias = Literal["file", "link", "gone", "other"]
"""What is at a path; `other` is a folder, a pipe or a device."""
Why: TypeAlias = Literal["held", "undone", "both", "expected"]
"""`held`: its holder's; `undone`: it was put in place of one and was undone; `both`: nobody could tell whose it was;
`expected`: what an editing tool was about to write."""

_FORMAT: Final = 3
_TABLES: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE project (store_path TEXT PRIMARY KEY, root TEXT NOT NULL, common TEXT NOT NULL);
CREATE TABLE agent (key TEXT PRIMARY KEY, seen_at REAL NOT NULL);
CREATE TABLE content (digest TEXT PRIMARY KEY, size INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE file (
    root BLOB NOT NULL, path BLOB NOT NULL, kind TEXT NOT NULL, digest TEXT NOT NULL, mode INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL, mark TEXT NOT NULL, holders TEXT NOT NULL, PRIMARY KEY (root, path)
);
CREATE TABLE version (
    number INTEGER PRIMARY KEY AUTOINCREMENT, root BLOB NOT NULL, path BLOB NOT NULL, kind TEXT NOT NULL,
    digest TEXT NOT NULL, mode INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, why TEXT NOT NULL, holders TEXT NOT NULL,
    others TEXT NOT NULL, at REAL NOT NULL
);
CREATE INDEX version_path ON version (root, path);
CREATE INDEX version_age ON version (at);
CREATE TABLE call (
    number INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, session TEXT NOT NULL, use_id TEXT NOT NULL,
    tool TEXT NOT NULL, root TEXT NOT NULL, paths TEXT NOT NULL, expected TEXT NOT NULL, begun REAL NOT NULL,
    background INTEGER NOT NULL, pid INTEGER, started TEXT NOT NULL, speaks INTEGER NOT NULL,
    edit TEXT NOT NULL
);
CREATE TABLE stash (
    common TEXT NOT NULL, entry TEXT NOT NULL, agent TEXT NOT NULL, message TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (common, entry)
);
"""


def over_bound(message: str, fix: str) -> ReservationError:
    """Return the refusal where held work cannot be kept: it is larger than the bound, or there is no space."""
    return ReservationError(message, fix, "RSV910")


class Seen(Record):
    """What is at a path.

    Args:
        digest: SHA-256 of the content, or of where a link leads; empty for `gone` and `other`.
        mode: The permission bits.
        mark: Differs when the file was written, removed or replaced: of what `lstat` says.
    """

    kind: Kind
    digest: str = ""
    mode: int = 0
    mtime_ns: int = 0
    mark: str = ""

    def is_same(self, other: "Seen") -> bool:
        """Whether it is the same content of the same kind, with the same permissions."""
        return (self.kind, self.digest, self.mode) == (other.kind, other.digest, other.mode)


class Version(Record):
    """One kept version of a file."""

    number: int
    root: str
    path: str
    seen: Seen
    why: Why
    holders: tuple[str, ...]
    others: tuple[str, ...]
    at: float


class Call(Record):
    """A tool call that has begun and, as far as is known, not ended.

    Args:
        agent: Who made it.
        paths: The files that an editing tool writes, absolute; empty for one that may write anything.
        expected: Those of which it is known what the tool makes of them: path to the digest of what it was before.
        background: Its tool has ended, and what it started has not.
        pid: The client's process, and when it started; None when it is not known.
        speaks: Its command line or its tool names Interlock or git: who asks us now may be this call.
        edit: What the tool was asked to do to the files of `expected`, as JSON: see `flight.result`.
    """

    number: int
    agent: str
    session: str
    use_id: str
    tool: str
    root: str
    paths: tuple[str, ...]
    expected: Mapping[str, str]
    begun: float
    background: bool = False
    pid: int | None = None
    started: str = ""
    speaks: bool = False
    edit: str = ""


class VersionRows(Rows):
    """The rows of one moment."""

    # -- contents

    def keep(self, data: bytes) -> str:
        """Keep a content, and return its digest."""
        from hashlib import sha256  # noqa: PLC0415 - slow to import, and most looks find nothing new

        digest = sha256(data).hexdigest()
        if self._run("SELECT 1 FROM content WHERE digest = ?", (digest,)).fetchone() is None:
            self._make_space(len(data))
            self._run("INSERT INTO content VALUES (?, ?, ?)", (digest, len(data), data))
        return digest

    def content(self, digest: str) -> bytes:
        """Return a content that is kept; nothing for what has none."""
        if not digest:
            return b""
        row = self._run("SELECT data FROM content WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            raise KeyError(digest)
        return row[0]

    def forget(self, before: float) -> None:
        """Drop versions that are older, and contents that nothing needs any more."""
        self._run("DELETE FROM version WHERE at < ?", (before,))
        self._run("DELETE FROM content WHERE digest NOT IN (SELECT digest FROM file UNION SELECT digest FROM version)")

    def _make_space(self, size: int) -> None:
        """Drop the oldest versions until there is space, but for what is held now."""
        while self._run("SELECT coalesce(sum(size), 0) FROM content").fetchone()[0] + size > MAX_TOTAL_BYTES:
            times = self._run("SELECT at FROM version ORDER BY at LIMIT 1 OFFSET 100").fetchone()
            oldest = times or self._run("SELECT max(at) + 1 FROM version").fetchone()
            if oldest[0] is None:
                raise over_bound(
                    f"held files have more than {MAX_TOTAL_BYTES // 2**20} MiB of contents, which cannot all be kept.",
                    "Let their holders commit and release what they no longer edit: `interlock status` lists it.",
                )
            self.forget(oldest[0])

    # -- files and versions

    def files(self) -> dict[tuple[str, str], tuple[Seen, tuple[str, ...]]]:
        """Return the good version of each file that was held at the last look and its holders, by checkout and path."""
        rows = self._run("SELECT root, path, kind, digest, mode, mtime_ns, mark, holders FROM file")
        return {(decode(row[0]), decode(row[1])): (Seen(*row[2:7]), _names(row[7])) for row in rows}

    def file(self, root: str, path: str) -> Seen | None:
        """Return the good version of one file; None for one that was not held at the last look."""
        row = self._run(
            "SELECT kind, digest, mode, mtime_ns, mark FROM file WHERE root = ? AND path = ?",
            (encode(root), encode(path)),
        ).fetchone()
        return None if row is None else Seen(*row)

    def put_file(self, root: str, path: str, seen: Seen, holders: Iterable[str]) -> None:
        """Keep what the good version of a held file is."""
        row = (encode(root), encode(path), *seen, json.dumps([*holders]))
        self._run("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def drop_file(self, root: str, path: str) -> None:
        """Look at a file no more."""
        self._run("DELETE FROM file WHERE root = ? AND path = ?", (encode(root), encode(path)))

    def add_version(
        self, root: str, path: str, seen: Seen, why: Why, at: float, holders: Iterable[str], others: Iterable[str] = ()
    ) -> int:
        """Keep a version of a file, and return its number; the same one twice in a row is one."""
        last = self._run(
            "SELECT number, kind, digest, mode, why FROM version WHERE root = ? AND path = ? ORDER BY number DESC "
            "LIMIT 1",
            (encode(root), encode(path)),
        ).fetchone()
        if last is not None and last[1:] == (seen.kind, seen.digest, seen.mode, why):
            return last[0]
        row = (encode(root), encode(path), *seen[:4], why, json.dumps([*holders]), json.dumps([*others]), at)
        found = self._run("INSERT INTO version VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row).lastrowid
        assert found is not None
        return found

    def has_version(self, root: str, path: str, digest: str) -> bool:
        """Return whether a content of a file is among its versions."""
        query = "SELECT 1 FROM version WHERE root = ? AND path = ? AND digest = ?"
        return self._run(query, (encode(root), encode(path), digest)).fetchone() is not None

    def versions(self, path: str = "") -> list[Version]:
        """Return the versions that are kept, the newest first; of one path alone, in whatever checkout."""
        rows = self._run(
            "SELECT number, root, path, kind, digest, mode, mtime_ns, why, holders, others, at FROM version "
            "WHERE ? IN (x'', path) ORDER BY number DESC",
            (encode(path),),
        )
        found: list[Version] = []
        for number, root, name, *seen, why, holders, others, at in rows:
            file = (decode(root), decode(name), Seen(*seen))
            found.append(Version(number, *file, why, _names(holders), _names(others), at))
        return found

    # -- calls, agents, projects

    def add_call(self, call: Call) -> None:
        """Enter a call that is about to begin; its number is given by the store."""
        row = (*call[1:6], json.dumps(call.paths), json.dumps(call.expected), *call[8:])
        self._run("INSERT INTO call VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def calls(self) -> list[Call]:
        """Return the calls in flight, the oldest first."""
        return [_call(*row) for row in self._run("SELECT * FROM call ORDER BY number")]

    def drop_calls(self, numbers: Iterable[int]) -> None:
        """Take calls out that have ended."""
        for number in numbers:
            self._run("DELETE FROM call WHERE number = ?", (number,))

    def to_background(self, number: int) -> None:
        """Keep a call whose tool has ended and whose processes have not: what they write is not known any more."""
        self._run("UPDATE call SET background = 1, expected = '{}', edit = '' WHERE number = ?", (number,))

    def hooked(self) -> set[str]:
        """Return the keys of the agents whose tool calls pass hooks."""
        return {row[0] for row in self._run("SELECT key FROM agent")}

    def see(self, key: str, at: float) -> None:
        """Note that an agent's tool calls pass hooks."""
        self._run("INSERT OR REPLACE INTO agent VALUES (?, ?)", (key, at))

    def projects(self) -> list[place.Place]:
        """Return the projects whose held files are looked at."""
        rows = self._run("SELECT root, common, store_path FROM project ORDER BY store_path")
        return [place.Place(*row) for row in rows]

    def put_project(self, found: place.Place) -> None:
        """Look at the held files of a project from now on; it is known by any of its worktrees."""
        self._run("INSERT OR IGNORE INTO project VALUES (?, ?, ?)", (found.store_path, found.root, found.common))

    def value(self, name: str) -> str:
        """Return what is kept under a name; empty for nothing."""
        row = self._run("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return row[0] if row else ""

    def put_value(self, name: str, value: str) -> None:
        """Keep a text under a name."""
        self._run("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    # -- the stash

    def stash_entries(self, common: str) -> dict[str, tuple[str, str]]:
        """Return who made each entry of a repository's stash, as far as that was seen, and its message."""
        rows = self._run("SELECT entry, agent, message FROM stash WHERE common = ?", (common,))
        return {entry: (agent, message) for entry, agent, message in rows}

    def put_stash(self, common: str, entry: str, agent: str, message: str, at: float) -> None:
        """Note who made an entry of the stash."""
        self._run("INSERT OR REPLACE INTO stash VALUES (?, ?, ?, ?, ?)", (common, entry, agent, message, at))

    def drop_stash(self, common: str, entry: str) -> None:
        """Forget an entry that its owner has taken."""
        self._run("DELETE FROM stash WHERE common = ? AND entry = ?", (common, entry))


def _call(number: int, agent: str, session: str, use_id: str, tool: str, root: str, paths: str, *rest: Any) -> Call:
    expected, begun, background, pid, started, speaks, edit = rest
    call = Call(number, agent, session, use_id, tool, root, _names(paths), json.loads(expected), begun)
    return replace(call, background=bool(background), pid=pid, started=started, speaks=bool(speaks), edit=edit)


def path_of(found: place.Place) -> str:
    """Return where the versions of a project are: one file for the outermost checkout around it."""
    top = place.main_root(found.root)
    checkouts = [row for row in place.upwards_of(top) if row.common]
    outer = place.main_root(checkouts[-1].root) if checkouts else top
    name = f"{crc32(os.fsencode(outer)):08x}-{os.path.basename(outer) or 'root'}"
    return os.path.join(state.folder(), "versions", name, _NAME)


def place_of_session(session: str) -> place.Place | None:
    """Return the project in which a session's call is in flight: its folder may be gone, and these rows are not."""
    folder = os.path.join(state.folder(), "versions")
    for name in os.listdir(folder) if session and os.path.isdir(folder) else ():
        path = os.path.join(folder, name, _NAME)
        if os.path.exists(path):
            with _at(path).transaction() as tx:
                roots = {call.root for call in tx.calls() if call.session == session}
                if found := next((each for each in tx.projects() if each.root in roots), None):
                    return found
    return None


def owner_of_stash(found: place.Place, entry: str) -> str | None:
    """Return who made an entry of the stash, by its commit; None where that was not seen."""
    if not os.path.lexists(path_of(found)):
        return None
    with opened(found).transaction() as tx:
        return tx.stash_entries(found.common).get(entry, (None, ""))[0]


def opened(found: place.Place) -> SqliteFile[VersionRows]:
    """Return the versions of a project; they are made at the first use."""
    return _at(path_of(found))


def _at(path: str) -> SqliteFile[VersionRows]:
    # Each hook writes here. After a failure of power the checkout itself has what was saved.
    return SqliteFile(path, _TABLES, _FORMAT, VersionRows, is_durable=False)


encode, decode = os.fsencode, os.fsdecode
"""Names of files are bytes here, since not all of them are text."""


def _names(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))
