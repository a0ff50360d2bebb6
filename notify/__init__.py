"""How people are notified of what happens while they are elsewhere: by a command, a webhook, or on the desktop.

It knows no runs: whoever has something to say hands over events, each with a key that is the same whoever sees it. It
uses the standard library alone.
"""

from typing import TYPE_CHECKING, Final

from interlock.core.exports import lazy_exports

if TYPE_CHECKING:
    from interlock.notify.channels import CODES, DeliveryError, body_of, deliver, missing
    from interlock.notify.queue import Event, Kind, Why, forget, history, is_sending, post, start_sender, waiting
    from interlock.notify.settings import Settings, build, faults

__all__ = [
    "CODES", "DeliveryError", "Event", "Kind", "Settings", "Why", "body_of", "build", "deliver", "faults", "forget",
    "history", "is_sending", "missing", "post", "start_sender", "waiting",
]  # fmt: skip

PUBLIC_MODULES: Final = ("queue", "settings")

__getattr__ = lazy_exports(__name__, __file__)
