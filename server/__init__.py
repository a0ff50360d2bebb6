"""The doors: the MCP server, its toolsets, stdio and HTTP, and who is calling. No rules of its own.

The names below are imported on first use: importing the SDK takes half a second.
"""

from typing import TYPE_CHECKING, Final

from interlock.core.exports import lazy_exports

if TYPE_CHECKING:
    from interlock.server.app import ALL, InterlockServer, make_server
    from interlock.server.guard import inspect

__all__ = ["ALL", "InterlockServer", "inspect", "make_server"]

PUBLIC_MODULES: Final = ("app", "codes", "door", "http", "rules", "tokens")
"""What others import besides the names above."""

# fmt: off
__getattr__ = lazy_exports(
    __name__,
    {
        "app": "ALL InterlockServer make_server",
        "guard": "inspect",
    },
)
# fmt: on
