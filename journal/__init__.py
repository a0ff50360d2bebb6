"""The journal: what happened, append-only, hash-chained for each run, and how to prove that it is whole.

One event is one line of JSON: `run, seq, key, type, at, data, prev, hash`. `hash` covers the bytes of the rest of the
line, `prev` is the hash of the run's line before, so no line can be changed, dropped, repeated or moved within its
run without a trace; a `Head` kept elsewhere also pins the end. Lines go in under the file's own lock, those of one
call with one write, and are on the disk when `append` or `extend` returns. A fragment that a killed writer left was
never acknowledged: the next append cuts it off and goes on. The journal does not know what an event
means. Keys of the environment are taken out of what it is given (`interlock.redaction`); the hash is of what is kept.
"""

from typing import Final

from interlock.journal.errors import RULES, JournalError
from interlock.journal.line import MAX_DEPTH, MAX_LINE_BYTES, Entry, Head, canonical, not_json
from interlock.journal.log import Journal
from interlock.journal.project import journal_of, path_of
from interlock.journal.shared import Upstream
from interlock.journal.verification import verify

__all__ = [
    "MAX_DEPTH",
    "MAX_LINE_BYTES",
    "RULES",
    "Entry",
    "Head",
    "Journal",
    "JournalError",
    "Upstream",
    "canonical",
    "journal_of",
    "not_json",
    "path_of",
    "verify",
]

PUBLIC_MODULES: Final = ("errors",)
"""What others import besides the names above."""
