"""Who may edit what right now: leases on path patterns, a line for those who wait, messages and negotiation.

Nothing here knows of tasks or tickets. Importing this package is cheap, because every hook does it; the public names
are loaded when they are first used.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from interlock.reservations.errors import ReservationError
    from interlock.reservations.opening import open_reservations
    from interlock.reservations.service import Reservations

__all__ = ["ReservationError", "Reservations", "open_reservations"]

PUBLIC_MODULES: Final = ("errors", "guard.syntax", "rules")
"""What others import besides the names above."""

_HOMES = {"ReservationError": "errors", "Reservations": "service", "open_reservations": "opening"}


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = __import__(f"{__name__}.{_HOMES[name]}", fromlist=[name])
    return getattr(module, name)
