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
    from interlock.reservations.git.commit_check import SHORT_ID_CHARS, Breach, Report, check_commits
    from interlock.reservations.git.hook_scripts import GIT_HOOKS, KEPT_SUFFIX, git_hook
    from interlock.reservations.git.journal_check import Comparison, compare_here
    from interlock.reservations.leases.arguments import typed
    from interlock.reservations.leases.fencing import NotCoveredError, guarded
    from interlock.reservations.leases.handover import review_command
    from interlock.reservations.leases.lending import LentLeases
    from interlock.reservations.leases.liveness import state_of
    from interlock.reservations.leases.losses import Lost
    from interlock.reservations.leases.runtime import Caller, Runtime
    from interlock.reservations.leases.views import span
    from interlock.reservations.messages.bodies import MAX_ETA_MINUTES
    from interlock.reservations.messages.sending import MAX_INBOX_BYTES
    from interlock.reservations.patterns.globs import expand_braces, normal
    from interlock.reservations.patterns.steps import ANY_NAME, Step, steps_of
    from interlock.reservations.service import Reservations, open_reservations, open_runtime
    from interlock.reservations.status import leave_queue
    from interlock.reservations.store.migrations import SCHEMA_STEPS
    from interlock.reservations.store.outbox import JOURNAL_RUN, drain_events, journal_of
    from interlock.reservations.store.records import Agent, Lease, Message, Negotiation, Waiter, key_of, replace
    from interlock.reservations.store.sqlite import FIRST_SOUND_WAL, SqliteStore, journal_mode, to_read
    from interlock.reservations.store.sqlite_rows import Transaction
    from interlock.reservations.ticket_files import is_ticket_file
    from interlock.reservations.truncation import MAX_ANSWER_BYTES, bounded, page_of_agents, page_of_leases
    from interlock.reservations.versions.flight import acting
    from interlock.reservations.versions.watch import is_watched, look_now

__all__ = [
    "ANY_NAME", "FIRST_SOUND_WAL", "GIT_HOOKS", "JOURNAL_RUN", "KEPT_SUFFIX", "MAX_ANSWER_BYTES", "MAX_ETA_MINUTES",
    "MAX_INBOX_BYTES", "SCHEMA_STEPS", "SHORT_ID_CHARS", "Agent", "Authors", "AuthorsOf", "Breach", "Caller",
    "CommitAnswer", "Comparison", "Lease", "LentLeases", "Lost", "Message", "Negotiation", "NotCoveredError", "Report",
    "ReservationError", "Reservations", "Runtime", "SqliteStore", "Step", "Transaction", "Waiter", "acting",
    "authors_of", "bounded", "check_commits", "commit", "compare_here", "drain_events", "expand_braces", "git_hook",
    "guarded", "is_ticket_file", "is_watched", "journal_mode", "journal_of", "key_of", "leave_queue", "look_now",
    "normal", "open_reservations",
    "open_runtime", "page_of_agents", "page_of_leases", "replace", "review_command", "span", "state_of", "steps_of",
    "to_read", "typed",
]  # fmt: skip

PUBLIC_MODULES: Final = (
    "answers", "errors", "git.commands", "guard.syntax", "hooks.client_input", "hooks.main", "identity", "patterns",
    "place", "process", "rules", "settings", "versions.recovery",
)  # fmt: skip
"""What others import besides the names above."""

__getattr__ = lazy_exports(__name__, __file__)
