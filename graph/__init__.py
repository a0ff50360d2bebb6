"""How work moves: the pure status machine, its LangGraph form, checkpoints, run and resume.

The names below are imported on first use: importing LangGraph takes a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from interlock.graph.build import task_graph
    from interlock.graph.diagram import status_mermaid, transition_table
    from interlock.graph.errors import (
        AnswerError,
        GraphError,
        RunBusyError,
        RunDamagedError,
        TaskError,
        UnknownRunError,
    )
    from interlock.graph.machine import route
    from interlock.graph.pipeline.build import pipeline_graph
    from interlock.graph.policy import Policy, make_policy
    from interlock.graph.runs import RunView, drive, start_run, view_run
    from interlock.graph.task import Task, load_task, task_from_mapping

__all__ = [
    "AnswerError",
    "GraphError",
    "Policy",
    "RunBusyError",
    "RunDamagedError",
    "RunView",
    "Task",
    "TaskError",
    "UnknownRunError",
    "drive",
    "load_task",
    "make_policy",
    "pipeline_graph",
    "route",
    "start_run",
    "status_mermaid",
    "task_from_mapping",
    "task_graph",
    "transition_table",
    "view_run",
]

PUBLIC_MODULES: Final = ("errors", "rules")
"""What others import besides the names above."""

_HOME: Final = {
    **dict.fromkeys(("status_mermaid", "transition_table"), "diagram"),
    **dict.fromkeys(("RunView", "drive", "start_run", "view_run"), "runs"),
    **dict.fromkeys(
        ("AnswerError", "GraphError", "RunBusyError", "RunDamagedError", "TaskError", "UnknownRunError"), "errors"
    ),
    "route": "machine",
    **dict.fromkeys(("Policy", "make_policy"), "policy"),
    **dict.fromkeys(("Task", "load_task", "task_from_mapping"), "task"),
    "pipeline_graph": "pipeline.build",
    "task_graph": "build",
}


def __getattr__(name: str) -> object:
    """Import a public name from the module that defines it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
