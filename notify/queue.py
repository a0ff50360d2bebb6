"""The queue of events: stored once by key, grouped so that no run sends too many, and delivered.

`.interlock/notify.sqlite` of a project holds them. Whoever has an event writes it there, which takes milliseconds, and
starts a sender: a process of its own, so that nothing waits for a slow webhook and what comes later than the end of a
command is sent all the same. One sender works at a time; it ends when nothing is left to do. A sender that is killed
leaves everything in the file, and the next one goes on. An attempt is counted before it is made: one that a crash cut
off may be made again, with the same `id`.

Of one run at most one notification is sent in `APART_SECONDS`. What happens meanwhile goes into the next one: the
newest event is what it says, and `earlier` holds the others, the newest first. Nothing is left out.
"""

import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from interlock.core.locks import locked
from interlock.core.process import start
from interlock.notify.channels import DeliveryError, body_of, deliver
from interlock.notify.settings import Settings, build
from interlock.redaction import redactor_for

APART_SECONDS: Final = 60.0
DELAYS_SECONDS: Final = (2.0, 10.0, 30.0, 120.0)
"""How long after each failed attempt the next one is made, where that may help."""
MAX_TEXT_CHARS: Final = 1000
_LOOK_SECONDS: Final = 1.0
_FILE: Final = "notify.sqlite"
_LOCK: Final = "notify.lock"

Kind: TypeAlias = Literal["waits", "ended", "refused", "test"]
Why: TypeAlias = Literal[
    "review", "objection", "waiver", "negotiation", "stopped", "blocked", "approved", "complete", "abandoned",
    "gate", "agent", "test",
]  # fmt: skip

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS event (
    key TEXT PRIMARY KEY, run TEXT NOT NULL, row TEXT NOT NULL, settings TEXT NOT NULL, sent_in INTEGER);
CREATE TABLE IF NOT EXISTS notification (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL, at REAL NOT NULL, row TEXT NOT NULL, settings TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS delivery (
    notification INTEGER NOT NULL, channel TEXT NOT NULL, tries INTEGER NOT NULL, due REAL, error TEXT NOT NULL,
    PRIMARY KEY (notification, channel));
CREATE INDEX IF NOT EXISTS pending ON event (run) WHERE sent_in IS NULL;
CREATE INDEX IF NOT EXISTS apart ON notification (run, at);
"""


class Event(NamedTuple):
    """Something that a person may want to know.

    Args:
        key: What it is known by in its project: the same for the same thing, whoever sees it.
        kind: Somebody is waited for, a run has ended, or something was refused again and again.
        why: What in particular.
        run: The run, or the request, that it is about; of each, not too much is sent at a time.
        title: What happened, in a few words.
        text: The same in a sentence.
        next: The command that goes on from here, or nothing.
    """

    key: str
    kind: Kind
    why: Why
    run: str
    title: str
    text: str
    next: str = ""

    def row(self, root: str, now: float) -> dict[str, Any]:
        """Return it as JSON values, without keys of the environment."""
        at = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return redactor_for(root).value({
            "event": self.kind, "why": self.why, "run": self.run, "title": self.title,
            "text": self.text[:MAX_TEXT_CHARS], "next": self.next, "at": at, "root": root,
        })  # fmt: skip


def post(root: str | Path, table: Mapping[str, Any], events: Iterable[Event]) -> None:
    """Queue events to be sent as a `[notify]` table says, each once; those queued before are skipped.

    Whatever goes wrong here is nobody's reason to stop: a file that cannot be written loses the events.
    """
    settings = build(table)
    if not settings.channels:
        return
    home, now = os.fspath(root), time.time()
    rows = [(each.key, each.run, json.dumps(each.row(home, now)), json.dumps(settings)) for each in events]
    with suppress(OSError, sqlite3.Error):
        with _opened(home) as db:
            before = db.total_changes
            db.executemany("INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?, NULL)", rows)
            new = db.total_changes > before
        if new:
            start_sender(home)


def start_sender(root: str) -> None:
    """Start a detached process that sends what is queued; it exits at once when another one is at work."""
    line = '"$@" </dev/null >/dev/null 2>&1 &'
    start(["/bin/sh", "-c", line, "sh", sys.executable, "-P", "-m", "interlock.notify", root], cwd=root).wait()


def send(root: str, *, clock: Callable[[], float] = time.time, pause: Callable[[float], object] = time.sleep) -> None:
    """Send what is queued until nothing is left, unless another process does so."""
    with (Path(root) / ".interlock" / _LOCK).open("ab") as file:
        while waiting(root):  # looked at again without the lock: an event may have come when this one was about to end
            with locked(file, seconds=0) as mine:
                if not mine:
                    return
                while (due := _step(root, clock)) is not None:
                    pause(min(_LOOK_SECONDS, max(0.0, due - clock())))


def is_sending(root: str) -> bool:
    """Return whether some process is sending now."""
    try:
        with (Path(root) / ".interlock" / _LOCK).open("rb") as file, locked(file, shared=True, seconds=0) as free:
            return not free
    except FileNotFoundError:
        return False


def _step(root: str, clock: Callable[[], float]) -> float | None:
    """Send what is due, and return when something is due next; None when nothing is left."""
    with _opened(root) as db:
        _gather(db, clock())
    while True:
        with _opened(root) as db:
            found = db.execute(
                "SELECT id, channel, tries, row, settings FROM delivery JOIN notification ON id = notification "
                "WHERE due <= ? ORDER BY due LIMIT 1", (clock(),),
            ).fetchone()  # fmt: skip
            if found is None:
                return _next_due(db)
            number, channel, tries, row, settings = found
            db.execute(
                "UPDATE delivery SET tries = tries + 1, due = ?, error = 'it was cut off' "
                "WHERE notification = ? AND channel = ?",
                (_after(tries, clock()), number, channel),
            )
        error, due = "", None
        try:
            deliver(channel, build(dict(zip(Settings._fields, json.loads(settings), strict=True))), root,
                    body_of({"id": number, **json.loads(row)}))  # fmt: skip
        except DeliveryError as failed:
            error = str(redactor_for(root).value(f"{failed.code}: {failed.message}"))
            due = _after(tries, clock()) if failed.again else None
        with _opened(root) as db:
            db.execute("UPDATE delivery SET due = ?, error = ? WHERE notification = ? AND channel = ?",
                       (due, error, number, channel))  # fmt: skip


def _after(tries: int, now: float) -> float | None:
    return now + DELAYS_SECONDS[tries] if tries < len(DELAYS_SECONDS) else None


def _gather(db: sqlite3.Connection, now: float) -> None:
    """Make one notification of the queued events of each run whose interval is over."""
    db.execute("BEGIN IMMEDIATE")
    for (run,) in db.execute("SELECT DISTINCT run FROM event WHERE sent_in IS NULL").fetchall():
        (last,) = db.execute("SELECT max(at) FROM notification WHERE run = ?", (run,)).fetchone()
        if last is not None and last <= now < last + APART_SECONDS:
            continue
        held = db.execute(
            "SELECT key, row, settings FROM event WHERE run = ? AND sent_in IS NULL ORDER BY rowid DESC", (run,)
        ).fetchall()
        rows = [json.loads(row) for _, row, _ in held]
        row, settings = {**rows[0], "earlier": rows[1:]}, held[0][2]
        number = db.execute(
            "INSERT INTO notification (run, at, row, settings) VALUES (?, ?, ?, ?)",
            (run, now, json.dumps(row), settings),
        ).lastrowid
        db.executemany("UPDATE event SET sent_in = ? WHERE key = ?", [(number, key) for key, _, _ in held])
        channels = build(dict(zip(Settings._fields, json.loads(settings), strict=True))).channels
        db.executemany("INSERT INTO delivery VALUES (?, ?, 0, ?, '')", [(number, name, now) for name in channels])


def _next_due(db: sqlite3.Connection) -> float | None:
    (attempt,) = db.execute("SELECT min(due) FROM delivery").fetchone()
    (again,) = db.execute(
        "SELECT min((SELECT max(at) FROM notification WHERE notification.run = event.run)) "
        "FROM event WHERE sent_in IS NULL"
    ).fetchone()
    times = [time for time in (attempt, None if again is None else again + APART_SECONDS) if time is not None]
    if not times and waiting_in(db):
        return 0.0
    return min(times, default=None)


def waiting_in(db: sqlite3.Connection) -> int:
    """Return how many events and attempts are still to come."""
    return int(db.execute(
        "SELECT (SELECT count(*) FROM event WHERE sent_in IS NULL) "
        "+ (SELECT count(*) FROM delivery WHERE due IS NOT NULL)"
    ).fetchone()[0])  # fmt: skip


def waiting(root: str) -> int:
    """Return the same of a project; 0 where nothing was ever sent.

    Raises:
        OSError, sqlite3.Error: The file cannot be read.
    """
    if not (Path(root) / ".interlock" / _FILE).exists():
        return 0
    with _opened(root) as db:
        return waiting_in(db)


def history(root: str, limit: int = 20) -> list[dict[str, Any]]:
    """Return the last notifications, the newest first, each with `deliveries`: what became of it in each way.

    `state` of one is `sent`, `failed`, or `waiting` for its next attempt.

    Raises:
        OSError, sqlite3.Error: The file cannot be read.
    """
    if not (Path(root) / ".interlock" / _FILE).exists():
        return []
    with _opened(root) as db:
        found = db.execute("SELECT id, row FROM notification ORDER BY id DESC LIMIT ?", (limit,)).fetchall()
        return [
            {"id": number, **json.loads(row), "deliveries": [
                {"channel": channel, "tries": tries, "error": error,
                 "state": "waiting" if due is not None else "failed" if error else "sent"}
                for channel, tries, due, error in db.execute(
                    "SELECT channel, tries, due, error FROM delivery WHERE notification = ? ORDER BY channel", (number,)
                )
            ]}
            for number, row in found
        ]  # fmt: skip


def forget(root: str | Path, run: str) -> None:
    """Forget what was sent of a run whose folder is removed."""
    home = os.fspath(root)
    if not (Path(home) / ".interlock" / _FILE).exists():
        return
    with suppress(OSError, sqlite3.Error), _opened(home) as db:
        db.execute("DELETE FROM delivery WHERE notification IN (SELECT id FROM notification WHERE run = ?)", (run,))
        db.execute("DELETE FROM notification WHERE run = ?", (run,))
        db.execute("DELETE FROM event WHERE run = ?", (run,))


@contextmanager
def _opened(root: str) -> Generator[sqlite3.Connection]:
    """Open the file for one transaction; its folder is there, since a run or a store is."""
    path = Path(root) / ".interlock" / _FILE
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    db = sqlite3.connect(path, timeout=5.0)
    try:
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            db.executescript(_TABLES)
        with db:
            yield db
    finally:
        db.close()
