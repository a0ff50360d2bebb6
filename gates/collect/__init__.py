"""Evidence made by a real browser: screenshots, console logs and accessibility reports of a page under check.

The names below are imported on first use, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING

from interlock.core.exports import lazy_exports

if TYPE_CHECKING:
    from interlock.gates.collect.browser import find_browser
    from interlock.gates.collect.engines import load_engines
    from interlock.gates.collect.look import Look
    from interlock.gates.collect.page import Cookie
    from interlock.gates.collect.run import COLLECTED, collect
    from interlock.gates.collect.site import resolve_target
    from interlock.gates.errors import CollectorError

__all__ = ["COLLECTED", "CollectorError", "Cookie", "Look", "collect", "find_browser", "load_engines", "resolve_target"]

__getattr__ = lazy_exports(__name__, __file__)
