"""Who may edit what right now: leases on path patterns, a wait queue, messages and negotiation.

Nothing here knows of tasks or tickets. Importing this package is cheap, because every hook does it: the names below
are imported on first use.
"""

from typing import TYPE_CHECKING, Final

from interlock.core.exports import lazy_exports

if TYPE_CHECKING:
    from interlock.reservations.errors import ReservationError
    from interlock.reservations.git.attribution import Authors, AuthorsOf, authors_of
    from interlock.reservations.git.commit import CommitAnswer, commit
    from interlock.reservations.git.hook_scripts import GIT_HOOKS, KEPT_SUFFIX, git_hook
    from interlock.reservations.git.verify_commits import SHORT_ID_CHARS, Breach, Report, check_commits
    from interlock.reservations.leases.arguments import typed
    from interlock.reservations.leases.fencing import NotCoveredError, guarded
    from interlock.reservations.leases.handover import review_command
    from interlock.reservations.leases.lending import LentLeases
    from interlock.reservations.leases.liveness import state_of
    from interlock.reservations.leases.runtime import Caller, Runtime
    from interlock.reservations.leases.views import span
    from interlock.reservations.messages.bodies import MAX_ETA_MINUTES
    from interlock.reservations.service import Reservations, open_reservations, open_runtime
    from interlock.reservations.shared_files import is_ticket_file
    from interlock.reservations.status import leave_queue
    from interlock.reservations.store.choice import store_at
    from interlock.reservations.store.copying import copy_rows
    from interlock.reservations.store.outbox import JOURNAL_RUN, drain_events
    from interlock.reservations.store.postgres import TABLES as POSTGRES_TABLES
    from interlock.reservations.store.postgres import PostgresStore
    from interlock.reservations.store.records import Agent, Lease, Message, Negotiation, Waiter, iso, key_of, replace
    from interlock.reservations.store.sqlite import SqliteStore, to_read
    from interlock.reservations.store.sqlite_rows import STORE_FORMAT, Transaction
    from interlock.reservations.truncation import MAX_ANSWER_BYTES, bounded
    from interlock.reservations.versions.flight import acting
    from interlock.reservations.versions.watch import is_watched, look_now

__all__ = [
    "GIT_HOOKS",
    "JOURNAL_RUN",
    "KEPT_SUFFIX",
    "MAX_ANSWER_BYTES",
    "MAX_ETA_MINUTES",
    "POSTGRES_TABLES",
    "SHORT_ID_CHARS",
    "STORE_FORMAT",
    "Agent",
    "Authors",
    "AuthorsOf",
    "Breach",
    "Caller",
    "CommitAnswer",
    "Lease",
    "LentLeases",
    "Message",
    "Negotiation",
    "NotCoveredError",
    "PostgresStore",
    "Report",
    "ReservationError",
    "Reservations",
    "Runtime",
    "SqliteStore",
    "Transaction",
    "Waiter",
    "acting",
    "authors_of",
    "bounded",
    "check_commits",
    "commit",
    "copy_rows",
    "drain_events",
    "git_hook",
    "guarded",
    "is_ticket_file",
    "is_watched",
    "iso",
    "key_of",
    "leave_queue",
    "look_now",
    "open_reservations",
    "open_runtime",
    "replace",
    "review_command",
    "span",
    "state_of",
    "store_at",
    "to_read",
    "typed",
]

PUBLIC_MODULES: Final = (
    "answers",
    "errors",
    "git.commands",
    "guard.line",
    "hooks.client_input",
    "hooks.main",
    "identity",
    "place",
    "process",
    "rules",
    "settings",
    "versions.recovery",
)
"""What others import besides the names above."""

__getattr__ = lazy_exports(__name__, __file__)
