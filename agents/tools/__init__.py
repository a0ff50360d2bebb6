"""What a model may do inside a run: tools of LangChain over our own files, commands and evidence.

The names below are imported on first use: whoever asks no model does not pay for LangChain.
"""

from typing import TYPE_CHECKING

from interlock.core.exports import lazy_exports

if TYPE_CHECKING:
    from interlock.agents.tools.by_role import toolbox
    from interlock.agents.tools.commands import command_tool

__all__ = ["command_tool", "toolbox"]

__getattr__ = lazy_exports(__name__, __file__)
