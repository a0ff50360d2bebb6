"""How people are notified of what happens while they are elsewhere: by a command, a webhook, or apprise.

It knows no runs: whoever has something to say hands over events, each with a key that is the same whoever sees it.
"""

from typing import TYPE_CHECKING, Final

from interlock.core.exports import lazy_exports

if TYPE_CHECKING:
    from interlock.notify.sending import CODES, Event, deliver, post
    from interlock.notify.settings import Settings, build

__all__ = ["CODES", "Event", "Settings", "build", "deliver", "post"]

PUBLIC_MODULES: Final = ("settings",)

__getattr__ = lazy_exports(__name__, __file__)
