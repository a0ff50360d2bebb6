"""The ticket pipeline: specs, their LangGraph graph, and the runs that the server owns.

The names below are imported on first use: importing LangGraph takes a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from interlock.graph.pipeline.build import pipeline_graph
    from interlock.graph.pipeline.spec import POC, TICKET, PipelineSpec
    from interlock.graph.pipeline.tickets import Tickets

__all__ = ["POC", "TICKET", "PipelineSpec", "Tickets", "pipeline_graph"]

_HOME: Final = {
    "pipeline_graph": "build",
    **dict.fromkeys(("POC", "TICKET", "PipelineSpec"), "spec"),
    "Tickets": "tickets",
}


def __getattr__(name: str) -> object:
    """Import a public name from the module that defines it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
