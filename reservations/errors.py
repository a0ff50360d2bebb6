"""What goes wrong besides the agent's own call: the store, the settings, the place."""

from interlock.core.errors import Exit, InterlockError


class ReservationError(InterlockError):
    """Base of all errors of this package.

    Fix: It has no code of its own: do what its message says, then call again.
    """

    code = "RSV900"


class StoreBusyError(ReservationError):
    """Another transaction took too long.

    Fix: One process writes at a time. Call again; if it lasts, another process hangs: end that one.
    """

    code = "RSV901"
    exit_code = Exit.SYSTEM


class StoreDamagedError(ReservationError):
    """The stored rows cannot be read, or were written by a newer version.

    Fix: No lease is granted on rows that cannot be read. After an upgrade elsewhere, upgrade this program too; else
    move the file away, which ends every lease, and see `interlock doctor`.
    """

    code = "RSV902"
    exit_code = Exit.SYSTEM


class StoreUnwrittenError(ReservationError):
    """The store cannot be made or written.

    Fix: The folder is missing, read-only or full, or the file is a link. Make `.interlock` of the checkout
    writable.
    """

    code = "RSV903"
    exit_code = Exit.SYSTEM


class SettingsError(ReservationError):
    """A variable that says what hooks do has a value that it cannot have.

    Fix: Set INTERLOCK_AUTO_RELEASE to 1 or clean, or unset it.
    """

    code = "RSV904"

    def __init__(self, message: str, fix: str, key: str = "") -> None:
        super().__init__(message, fix)
        self.key = key


class KeyInNameError(ReservationError):
    """What names an agent or a file holds a key of the environment, and names are kept as they are.

    Fix: Names are kept in the store and shown to others. Leave the key out, and replace it where it was shown.
    """

    code = "KEY101"

    def __init__(self, place: str, name: str) -> None:
        super().__init__(
            f"{place} holds the value of the environment variable {name}, which is a key",
            "Leave the key out: what names something is kept as it is, and a key is not kept.",
        )


class NameRefusedError(ReservationError):
    """The caller's name can be no agent's."""

    code = "RSV107"
