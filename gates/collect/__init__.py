"""Evidence made by a real browser: screenshots, console logs and accessibility reports of a page under check.

The names below are imported on first use, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from interlock.gates.collect.browser import find_browser
    from interlock.gates.collect.engines import engines
    from interlock.gates.collect.look import Look
    from interlock.gates.collect.run import COLLECTED, collect
    from interlock.gates.collect.site import resolve_target
    from interlock.gates.errors import CollectorError

__all__ = ["COLLECTED", "CollectorError", "Look", "collect", "engines", "find_browser", "resolve_target"]

_HOME: Final = {
    "COLLECTED": "interlock.gates.collect.run",
    "CollectorError": "interlock.gates.errors",
    "Look": "interlock.gates.collect.look",
    "collect": "interlock.gates.collect.run",
    "engines": "interlock.gates.collect.engines",
    "find_browser": "interlock.gates.collect.browser",
    "resolve_target": "interlock.gates.collect.site",
}


def __getattr__(name: str) -> object:
    """Import a public name from the module that defines it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
