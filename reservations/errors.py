"""What goes wrong besides the agent's own call: the store, the settings, the place."""

from interlock.core.errors import Exit, InterlockError


class ReservationError(InterlockError):
    """Base of all errors of this package."""

    code = "RSV900"


class StoreBusyError(ReservationError):
    """Another transaction took too long."""

    code = "RSV901"
    exit_code = Exit.SYSTEM


class StoreDamagedError(ReservationError):
    """The stored rows cannot be read, or were written by a newer version."""

    code = "RSV902"
    exit_code = Exit.SYSTEM


class StoreUnwrittenError(ReservationError):
    """The store cannot be made or written."""

    code = "RSV903"
    exit_code = Exit.SYSTEM


class SettingsError(ReservationError):
    """`[reservations]` of the configuration is wrong, at a key such as `reservations.timeout_minutes.urgent`."""

    code = "RSV904"

    def __init__(self, message: str, fix: str, key: str = "") -> None:
        super().__init__(message, fix)
        self.key = key


class KeyInNameError(ReservationError):
    """What names an agent or a file holds a key of the environment, and names are kept as they are."""

    code = "KEY101"

    def __init__(self, place: str, name: str) -> None:
        super().__init__(
            f"{place} holds the value of the environment variable {name}, which is a key",
            "Leave the key out: what names something is kept as it is, and a key is not kept.",
        )


class NameRefusedError(ReservationError):
    """The caller's name can be no agent's."""

    code = "RSV107"
