"""The tables of the store and their rows: one statement for each question of `Transaction`.

SQLite and PostgreSQL both know these statements, but for how values are marked; see `postgres`.
"""
# ruff: noqa: S608 - names of tables and columns come from this package alone, values are always bound

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from interlock.reservations.store.records import (
    Agent,
    Event,
    Lease,
    Message,
    Negotiation,
    RecordT,
    Waiter,
    key_of,
    replace,
)

STORE_FORMAT: Final = 6
"""The number of the tables below, which a change of them raises: `PRAGMA user_version` of a store."""

TABLES: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO meta VALUES ('store_id', lower(hex(randomblob(8))));
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL);

CREATE TABLE process (
    host TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL, agent TEXT NOT NULL, bound_at REAL NOT NULL,
    PRIMARY KEY (host, pid, started)
);

CREATE TABLE agent (
    key TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER,
    started TEXT NOT NULL, client TEXT NOT NULL, joined_at REAL NOT NULL, last_seen REAL NOT NULL,
    cursor INTEGER NOT NULL
);

CREATE TABLE lease (
    reservation_id TEXT PRIMARY KEY, agent TEXT NOT NULL, pattern TEXT NOT NULL, prefix TEXT NOT NULL,
    exclusive INTEGER NOT NULL, no_force INTEGER NOT NULL, claim INTEGER NOT NULL, reason TEXT NOT NULL,
    token INTEGER NOT NULL, granted_at REAL NOT NULL, renewed_at REAL NOT NULL, expires_at REAL NOT NULL,
    agent_key TEXT NOT NULL, held_until REAL NOT NULL, root TEXT NOT NULL, branch TEXT NOT NULL
);
CREATE INDEX lease_prefix ON lease (prefix);
CREATE INDEX lease_agent ON lease (agent_key);
CREATE INDEX lease_expiry ON lease (expires_at);

CREATE TABLE waiter (
    waiter_id INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, patterns TEXT NOT NULL,
    exclusive INTEGER NOT NULL, no_force INTEGER NOT NULL, reason TEXT NOT NULL, ttl_seconds REAL NOT NULL,
    since REAL NOT NULL, until REAL NOT NULL
);

CREATE TABLE message (
    message_id INTEGER PRIMARY KEY AUTOINCREMENT, thread_id TEXT NOT NULL, sender TEXT NOT NULL,
    recipient TEXT NOT NULL, topic TEXT NOT NULL, importance TEXT NOT NULL, ack_required INTEGER NOT NULL,
    acked_at REAL, body TEXT NOT NULL, sent_at REAL NOT NULL, read_at REAL, recipient_key TEXT NOT NULL
);
CREATE INDEX message_inbox ON message (recipient_key, message_id);
CREATE INDEX message_unread ON message (recipient_key, message_id) WHERE read_at IS NULL;
CREATE INDEX message_thread ON message (thread_id);
CREATE INDEX message_read ON message (read_at) WHERE read_at IS NOT NULL;

CREATE TABLE negotiation (
    number INTEGER PRIMARY KEY, thread_id TEXT NOT NULL UNIQUE, reservation_id TEXT NOT NULL, pattern TEXT NOT NULL,
    holder TEXT NOT NULL, requester TEXT NOT NULL, file TEXT NOT NULL, reason TEXT NOT NULL, urgency TEXT NOT NULL,
    legacy INTEGER NOT NULL, state TEXT NOT NULL, eta_minutes INTEGER, note TEXT NOT NULL, created_at REAL NOT NULL,
    deadline REAL, resolved_at REAL, holder_key TEXT NOT NULL, requester_key TEXT NOT NULL
);
CREATE INDEX negotiation_open ON negotiation (created_at) WHERE state IN ('pending', 'deferred');
CREATE INDEX negotiation_created ON negotiation (created_at);
CREATE INDEX negotiation_resolved ON negotiation (resolved_at);

CREATE TABLE mark (
    agent_key TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (agent_key, key)
);
CREATE INDEX mark_age ON mark (at);

CREATE TABLE event (
    event_id INTEGER PRIMARY KEY AUTOINCREMENT, root TEXT NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE INDEX event_root ON event (root, event_id);
"""
"""`AUTOINCREMENT` where a number must not come back after its row is gone: cursors of inboxes, places in the queue,
keys of journal lines. No statement holds a `;` of its own."""

_MAX_INTEGER: Final = 2**63 - 1
_LAST_CHARACTER: Final = "\U0010ffff"


def _add(table: str, columns: tuple[str, ...]) -> str:
    """Return the statement that adds a row."""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def _put(table: str, columns: tuple[str, ...], *key: str, keep: str = "") -> str:
    """Return the statement that adds a row, or replaces the one with the same key; `keep` keeps its first value."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in (*key, keep))
    return f"{_add(table, columns)} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"


def _change(table: str, columns: tuple[str, ...], key: str) -> str:
    """Return the statement that replaces the row whose number is the first column, if it is there."""
    changes = ", ".join(f"{name} = ?{number}" for number, name in enumerate(columns, 1) if name != key)
    return f"UPDATE {table} SET {changes} WHERE {key} = ?1"


_OPEN: Final = "state IN ('pending', 'deferred')"
# One search in an index for each reason to be listed; an OR would read every row.
_RECENT: Final = " UNION ALL ".join(
    f"SELECT number FROM negotiation WHERE {each}" for each in (_OPEN, "created_at >= ?1", "resolved_at >= ?1")
)

STORE_ID: Final = "SELECT value FROM meta WHERE name = 'store_id'"
EVENT_COUNT: Final = "SELECT seq FROM sqlite_sequence WHERE name = 'event'"
_COUNT: Final = "INSERT INTO counter VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = counter.value + 1"
_BIND: Final = _put("process", ("host", "pid", "started", "agent", "bound_at"), "host", "pid", "started")
_REMEMBER: Final = _put("mark", ("agent_key", "key", "value", "at"), "agent_key", "key")
_PUT_AGENT: Final = _put("agent", (*Agent.field_names, "key"), "key", keep="name")
_PUT_LEASE: Final = _put("lease", (*Lease.field_names, "agent_key"), "reservation_id")
_PUT_NEGOTIATION: Final = _put("negotiation", (*Negotiation.field_names, "holder_key", "requester_key"), "thread_id")
_ADD_WAITER: Final = _add("waiter", Waiter.field_names[1:])
_CHANGE_WAITER: Final = _change("waiter", Waiter.field_names, "waiter_id")
_ADD_MESSAGE: Final = _add("message", (*Message.field_names[1:], "recipient_key"))
_CHANGE_MESSAGE: Final = _change("message", (*Message.field_names, "recipient_key"), "message_id")
_SELECT: Final[Mapping[type, str]] = {
    kind: f"SELECT {', '.join(kind.field_names)} FROM {kind.__name__.lower()}"
    for kind in (Agent, Lease, Waiter, Message, Negotiation)
}
_FLAGS: Final[Mapping[type, tuple[int, ...]]] = {Lease: (4, 5, 6), Waiter: (3, 4), Message: (6,), Negotiation: (8,)}
"""Record to the places of its truth values, where SQLite has 0 and 1."""
_PATTERNS: Final = 2
"""The place of the patterns of a waiter, which are JSON."""


def _read(kind: type[RecordT], rows: Iterable[tuple[Any, ...]]) -> list[RecordT]:
    found: list[RecordT] = []
    for row in rows:
        values = list(row)
        for place in _FLAGS.get(kind, ()):
            values[place] = bool(values[place])
        if kind is Waiter:
            values[_PATTERNS] = tuple(json.loads(values[_PATTERNS]))
        found.append(kind(*values))
    return found


def _columns(waiter: Waiter) -> tuple[object, ...]:
    return *waiter[:_PATTERNS], json.dumps(waiter.patterns), *waiter[_PATTERNS + 1 :]


def near_query(ancestors: Sequence[str], prefix: str) -> tuple[str, list[str]]:
    """Return the statement of `near` and its values: two searches in the index, where an OR would read every row."""
    # What begins with the prefix is found by the range; UNION ALL must not bring it twice.
    above = [each for each in dict.fromkeys(ancestors) if not each.startswith(prefix)]
    values = [*above, prefix, prefix + _LAST_CHARACTER]
    below = f"{_SELECT[Lease]} WHERE prefix >= ? AND prefix < ?"
    if not above:
        return below, values
    return f"{_SELECT[Lease]} WHERE prefix IN ({', '.join('?' * len(above))}) UNION ALL {below}", values


class Rows:
    """Rows as of one moment, over a connection with a transaction under way that may write."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection: sqlite3.Connection | None = connection

    def end(self) -> None:
        """Make every further use an error: outside the transaction a statement would commit by itself."""
        self._connection = None

    def _run(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        if self._connection is None:
            raise RuntimeError("this transaction has ended")
        return self._connection.execute(statement, values)


class Transaction(Rows):
    """The rows of the reservations.

    Nobody else writes until it ends; an exception undoes everything. Names of agents are looked up by `key_of`. What is
    not there is None or an empty list, never an error.
    """

    def _all(self, kind: type[RecordT], which: str, *values: object) -> list[RecordT]:
        return _read(kind, self._run(f"{_SELECT[kind]} {which}", values))

    def store_id(self) -> str:
        """Return the 16 hex digits that this store was made with."""
        return self._run(STORE_ID).fetchone()[0]

    def next_number(self, counter: str) -> int:
        """Return 1, 2, 3 … of a counter (`token`); a number is never given twice, a rolled back one may be."""
        self._run(_COUNT, (counter,))
        return self._run("SELECT value FROM counter WHERE name = ?", (counter,)).fetchone()[0]

    def bind_process(self, host: str, pid: int, started: str, agent: str, at: float) -> None:
        """Remember which agent a client process is; the last one counts."""
        self._run(_BIND, (host, pid, started, agent, at))

    def agent_of_process(self, host: str, pid: int, started: str) -> str | None:
        """Return the agent of a client process."""
        where = "SELECT agent FROM process WHERE host = ? AND pid = ? AND started = ?"
        row = self._run(where, (host, pid, started)).fetchone()
        return row and row[0]

    def agent(self, name: str) -> Agent | None:
        """Return an agent."""
        return next(iter(self._all(Agent, "WHERE key = ?", key_of(name))), None)

    def put_agent(self, agent: Agent) -> None:
        """Add an agent, or replace the one of that name; the name as it was first given stays."""
        self._run(_PUT_AGENT, (*agent, key_of(agent.name)))

    def agents(self) -> list[Agent]:
        """Return all agents, the one seen last first."""
        return self._all(Agent, "ORDER BY last_seen DESC, key")

    def lease(self, reservation_id: str) -> Lease | None:
        """Return a lease that has not ended, expired or not."""
        return next(iter(self._all(Lease, "WHERE reservation_id = ?", reservation_id)), None)

    def put_lease(self, lease: Lease) -> None:
        """Add a lease, or replace the one of that id."""
        self._run(_PUT_LEASE, (*lease, key_of(lease.agent)))

    def drop_lease(self, reservation_id: str) -> None:
        """End a lease; without one of that id, nothing happens."""
        self._run("DELETE FROM lease WHERE reservation_id = ?", (reservation_id,))

    def leases_of(self, agent: str) -> list[Lease]:
        """Return the leases of an agent, the oldest first."""
        return self._all(Lease, "WHERE agent_key = ? ORDER BY granted_at, token", key_of(agent))

    def leases(self) -> list[Lease]:
        """Return all leases, the oldest first."""
        return self._all(Lease, "ORDER BY granted_at, token")

    def leases_on(self, machine: str) -> list[Lease]:
        """Return the leases of agents of a machine, by its name, and of those who call over HTTP; the oldest first."""
        of_machine = "SELECT key FROM agent WHERE host IN ('', ?) OR substr(host, 1, ?) = ?"
        which = f"WHERE agent_key IN ({of_machine}) ORDER BY granted_at, token"
        # In a container of the machine the number of its processes' space follows; see `process.host`.
        return self._all(Lease, which, machine, len(machine) + 1, f"{machine}/")

    def near(self, ancestors: Sequence[str], prefix: str) -> list[Lease]:
        """Return the leases that a pattern may overlap by the literal beginnings alone, the oldest first.

        Those whose prefix is one of `ancestors`, and those whose prefix begins with `prefix` (`patterns.ancestors`,
        `Pattern.prefix`). It must use the index: its cost grows with what it returns, not with all leases.
        """
        found = _read(Lease, self._run(*near_query(ancestors, prefix)))
        return sorted(found, key=lambda lease: (lease.granted_at, lease.token))

    def expired(self, now: float) -> list[Lease]:
        """Return the leases with `expires_at <= now`, by `expires_at`."""
        return self._all(Lease, "WHERE expires_at <= ? ORDER BY expires_at, token", now)

    def add_waiter(self, waiter: Waiter) -> Waiter:
        """Put a waiter at the end of the queue; `waiter_id` is given by the store."""
        self._run(_ADD_WAITER, _columns(waiter)[1:])
        return replace(waiter, waiter_id=self._run("SELECT max(waiter_id) FROM waiter").fetchone()[0])

    def put_waiter(self, waiter: Waiter) -> None:
        """Replace the waiter of that id."""
        self._run(_CHANGE_WAITER, _columns(waiter))

    def drop_waiter(self, waiter_id: int) -> None:
        """Take a waiter out of the queue."""
        self._run("DELETE FROM waiter WHERE waiter_id = ?", (waiter_id,))

    def waiter(self, waiter_id: int) -> Waiter | None:
        """Return a waiter."""
        return next(iter(self._all(Waiter, "WHERE waiter_id = ?", waiter_id)), None)

    def waiters(self) -> list[Waiter]:
        """Return the queue in its order."""
        return self._all(Waiter, "ORDER BY waiter_id")

    def add_message(self, message: Message) -> Message:
        """Keep a message; `message_id` is given by the store."""
        self._run(_ADD_MESSAGE, (*message[1:], key_of(message.recipient)))
        return replace(message, message_id=self._run("SELECT max(message_id) FROM message").fetchone()[0])

    def put_message(self, message: Message) -> None:
        """Replace the message of that id."""
        self._run(_CHANGE_MESSAGE, (*message, key_of(message.recipient)))

    def inbox(self, agent: str, *, after: int, unread_only: bool, limit: int) -> list[Message]:
        """Return the messages to an agent with an id above `after`, in order, at most `limit`."""
        unread = "AND read_at IS NULL" if unread_only else ""
        values = (key_of(agent), *(min(max(number, 0), _MAX_INTEGER) for number in (after, limit)))
        return self._all(
            Message, f"WHERE recipient_key = ? AND message_id > ? {unread} ORDER BY message_id LIMIT ?", *values
        )

    def unread_count(self, agent: str) -> int:
        """Return how many messages to an agent have not been read."""
        query = "SELECT count(*) FROM message WHERE recipient_key = ? AND read_at IS NULL"
        return self._run(query, (key_of(agent),)).fetchone()[0]

    def thread(self, thread_id: str) -> list[Message]:
        """Return the messages of a thread, in order."""
        return self._all(Message, "WHERE thread_id = ? ORDER BY message_id", thread_id)

    def negotiation(self, thread_id: str) -> Negotiation | None:
        """Return a negotiation."""
        return next(iter(self._all(Negotiation, "WHERE thread_id = ?", thread_id)), None)

    def put_negotiation(self, negotiation: Negotiation) -> None:
        """Add a negotiation, or replace the one of that thread."""
        keys = key_of(negotiation.holder), key_of(negotiation.requester)
        self._run(_PUT_NEGOTIATION, (*negotiation, *keys))

    def open_negotiations(
        self, *, reservation_id: str | None = None, requester: str | None = None, holder: str | None = None
    ) -> list[Negotiation]:
        """Return the pending and deferred negotiations that fit every given filter, the oldest first."""
        given = {
            "reservation_id": reservation_id,
            "requester_key": requester and key_of(requester),
            "holder_key": holder and key_of(holder),
        }
        filters = {name: value for name, value in given.items() if value is not None}
        where = " AND ".join([_OPEN, *(f"{name} = ?" for name in filters)])
        return self._all(Negotiation, f"WHERE {where} ORDER BY created_at, number", *filters.values())

    def negotiations_since(self, at: float) -> list[Negotiation]:
        """Return the negotiations that are open, or were created or resolved at or after a time, the oldest first."""
        return self._all(Negotiation, f"WHERE number IN ({_RECENT}) ORDER BY created_at, number", at)

    def remembered(self, agent: str, key: str) -> str | None:
        """Return what was remembered of an agent."""
        row = self._run("SELECT value FROM mark WHERE agent_key = ? AND key = ?", (key_of(agent), key)).fetchone()
        return row and row[0]

    def remember(self, agent: str, key: str, value: str, at: float) -> None:
        """Remember something of an agent, in the place of what its key had before."""
        self._run(_REMEMBER, (key_of(agent), key, value, at))

    def add_event(self, root: str, type: str, data: str, at: float) -> None:  # noqa: A002
        """Queue an event for the journal of a checkout."""
        self._run("INSERT INTO event (root, type, data, at) VALUES (?, ?, ?, ?)", (root, type, data, at))

    def events(self, root: str | None, limit: int) -> list[Event]:
        """Return the first queued events of a checkout; None: of all of them."""
        which, values = ("", (limit,)) if root is None else ("WHERE root = ?", (root, limit))
        query = f"SELECT event_id, root, type, data, at FROM event {which} ORDER BY event_id LIMIT ?"
        return [Event(*row) for row in self._run(query, values)]

    def event_count(self) -> int:
        """Return how many events there ever were, in the queue or not."""
        return (self._run(EVENT_COUNT).fetchone() or (0,))[0]

    def drop_events(self, event_ids: Iterable[int]) -> None:
        """Take events out of the queue that are in the journal."""
        for event_id in event_ids:
            self._run("DELETE FROM event WHERE event_id = ?", (event_id,))

    def forget(self, before: float) -> None:
        """Remove what nobody asks for: marks, read messages, resolved negotiations older than a time."""
        self._run("DELETE FROM mark WHERE at < ?", (before,))
        self._run("DELETE FROM message WHERE read_at < ?", (before,))
        self._run(f"DELETE FROM negotiation WHERE resolved_at < ? AND NOT {_OPEN}", (before,))
