"""The doors: the MCP server, its toolsets, stdio and HTTP, and who is calling. No rules of its own.

The names below are imported on first use: importing the SDK takes half a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from interlock.server.app import ALL, InterlockServer, make_server
    from interlock.server.guard import inspect

__all__ = ["ALL", "InterlockServer", "inspect", "make_server"]

PUBLIC_MODULES: Final = ("app", "codes", "door", "http", "rules", "tokens")
"""What others import besides the names above."""

_HOME: Final = {
    **dict.fromkeys(("ALL", "InterlockServer", "make_server"), "app"),
    "inspect": "guard",
}


def __getattr__(name: str) -> object:
    """Import a public name from the module that defines it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
