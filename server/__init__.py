"""The interfaces: the MCP server, its toolsets, stdio and HTTP, and who is calling. No rules of its own.

The names below are imported on first use: importing the SDK takes half a second.
"""

from typing import TYPE_CHECKING, Final

from interlock.core.exports import lazy_exports

if TYPE_CHECKING:
    from interlock.server.mcp.app import InterlockServer
    from interlock.server.mcp.toolsets import ALL, make_server

__all__ = ["ALL", "InterlockServer", "make_server"]

PUBLIC_MODULES: Final = ("http.access", "http.serving", "http.tokens", "mcp.app", "rules")
"""What others import besides the names above."""

__getattr__ = lazy_exports(__name__, __file__)
