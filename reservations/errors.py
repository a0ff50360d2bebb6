"""What goes wrong besides the agent's own call: the store, the settings, the place."""

from interlock.core.errors import Exit, InterlockError


class ReservationError(InterlockError):
    """Base of all errors of this package.

    Fix: It has no code of its own: do what its message says, then call again.
    """

    code = "RSV900"


class StoreError(ReservationError):
    """What was stored or recorded cannot be read, or another version wrote it.

    Fix: No lease is granted on rows that cannot be read. Have one version of Interlock everywhere; else move the file
    away, which ends every lease, and see `interlock doctor`.
    """

    code = "RSV902"
    exit_code = Exit.SYSTEM
