"""The tables of the SQLite store, and the steps from each version to the next."""

from collections.abc import Sequence
from typing import Final

_FIRST: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) {strict};
INSERT INTO meta VALUES ('store_id', lower(hex(randomblob(8))));
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) {strict};

CREATE TABLE process (
    host TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL, agent TEXT NOT NULL, bound_at REAL NOT NULL,
    PRIMARY KEY (host, pid, started)
) {strict};

CREATE TABLE agent (
    key TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER,
    started TEXT NOT NULL, client TEXT NOT NULL, joined_at REAL NOT NULL, last_seen REAL NOT NULL,
    cursor INTEGER NOT NULL
) {strict};

CREATE TABLE lease (
    reservation_id TEXT PRIMARY KEY, agent TEXT NOT NULL, pattern TEXT NOT NULL, prefix TEXT NOT NULL,
    exclusive INTEGER NOT NULL, no_force INTEGER NOT NULL, claim INTEGER NOT NULL, reason TEXT NOT NULL,
    token INTEGER NOT NULL, granted_at REAL NOT NULL, renewed_at REAL NOT NULL, expires_at REAL NOT NULL,
    agent_key TEXT NOT NULL
) {strict};
CREATE INDEX lease_prefix ON lease (prefix);
CREATE INDEX lease_agent ON lease (agent_key);
CREATE INDEX lease_expiry ON lease (expires_at);

CREATE TABLE waiter (
    waiter_id INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, patterns TEXT NOT NULL,
    exclusive INTEGER NOT NULL, no_force INTEGER NOT NULL, reason TEXT NOT NULL, ttl_seconds REAL NOT NULL,
    since REAL NOT NULL, until REAL NOT NULL, granted TEXT NOT NULL
) {strict};

CREATE TABLE message (
    message_id INTEGER PRIMARY KEY AUTOINCREMENT, thread_id TEXT NOT NULL, sender TEXT NOT NULL,
    recipient TEXT NOT NULL, topic TEXT NOT NULL, importance TEXT NOT NULL, ack_required INTEGER NOT NULL,
    acked_at REAL, body TEXT NOT NULL, sent_at REAL NOT NULL, read_at REAL, recipient_key TEXT NOT NULL
) {strict};
CREATE INDEX message_inbox ON message (recipient_key, message_id);
CREATE INDEX message_unread ON message (recipient_key, message_id) WHERE read_at IS NULL;
CREATE INDEX message_thread ON message (thread_id);
CREATE INDEX message_read ON message (read_at) WHERE read_at IS NOT NULL;

CREATE TABLE negotiation (
    number INTEGER PRIMARY KEY, thread_id TEXT NOT NULL UNIQUE, reservation_id TEXT NOT NULL, pattern TEXT NOT NULL,
    holder TEXT NOT NULL, requester TEXT NOT NULL, file TEXT NOT NULL, reason TEXT NOT NULL, urgency TEXT NOT NULL,
    legacy INTEGER NOT NULL, state TEXT NOT NULL, eta_minutes INTEGER, note TEXT NOT NULL, created_at REAL NOT NULL,
    deadline REAL, resolved_at REAL, holder_key TEXT NOT NULL, requester_key TEXT NOT NULL
) {strict};
CREATE INDEX negotiation_open ON negotiation (created_at) WHERE state IN ('pending', 'deferred');
CREATE INDEX negotiation_created ON negotiation (created_at);
CREATE INDEX negotiation_resolved ON negotiation (resolved_at);

CREATE TABLE answer (
    agent_key TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, answer TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (agent_key, key)
) {strict};
CREATE INDEX answer_age ON answer (at);

CREATE TABLE event (
    event_id INTEGER PRIMARY KEY AUTOINCREMENT, root TEXT NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL,
    at REAL NOT NULL
) {strict};
CREATE INDEX event_root ON event (root, event_id);
"""

_SECOND: Final = """
ALTER TABLE lease ADD COLUMN held_until REAL NOT NULL DEFAULT 0;
"""

_THIRD: Final = """
ALTER TABLE lease ADD COLUMN root TEXT NOT NULL DEFAULT '';
ALTER TABLE lease ADD COLUMN branch TEXT NOT NULL DEFAULT '';
"""

SCHEMA_STEPS: Final = (_FIRST, _SECOND, _THIRD)
"""The statements from version 0 to 1, from 1 to 2 and so on; `PRAGMA user_version` is how many steps a file has taken.

A step that was released is never changed. `AUTOINCREMENT` is used where a number must not come back after its row is
gone: cursors of inboxes, places in the queue, keys of journal lines. No statement holds a `;` of its own.
"""

FIRST_STRICT: Final = (3, 37, 0)
"""The first SQLite that knows strict tables; an older one cannot open a file that has them."""


def statements(step: int, sqlite_version: tuple[int, ...], steps: Sequence[str] = SCHEMA_STEPS) -> list[str]:
    """Return the statements of a step as this SQLite understands them, the last of which counts the step."""
    text = steps[step].replace("{strict}", "STRICT" if sqlite_version >= FIRST_STRICT else "")
    return [*filter(None, map(str.strip, text.split(";"))), f"PRAGMA user_version = {step + 1}"]
