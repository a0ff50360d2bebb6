"""What a model may do inside a run: tools of LangChain over our own files, commands and evidence.

The names below are imported on first use: whoever asks no model does not pay for LangChain.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from interlock.agents.tools.by_role import toolbox
    from interlock.agents.tools.commands import command_tool
    from interlock.agents.tools.files import building_tools, reading_tools

__all__ = ["building_tools", "command_tool", "reading_tools", "toolbox"]

_HOME: Final = {
    "building_tools": "files",
    "command_tool": "commands",
    "reading_tools": "files",
    "toolbox": "by_role",
}


def __getattr__(name: str) -> object:
    """Import a public name from the module that defines it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
