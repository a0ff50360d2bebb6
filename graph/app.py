"""The compiled graph for LangGraph's own tools (`langgraph.json`): the task that `INTERLOCK_TASK` names."""

import os
from pathlib import Path

from langgraph.graph.state import CompiledStateGraph

from interlock.graph.errors import TaskError
from interlock.graph.task.build import task_graph
from interlock.graph.task.state import TaskInput, TaskOutput, TaskState
from interlock.graph.task.task import load_task


def task() -> CompiledStateGraph[TaskState, None, TaskInput, TaskOutput]:
    """Compile the graph of the task file in `INTERLOCK_TASK`; its folder, or `INTERLOCK_ROOT`, is the root.

    Raises:
        TaskError: The variable is not set, or the task cannot start.
    """
    name = os.environ.get("INTERLOCK_TASK")
    if not name:
        raise TaskError("INTERLOCK_TASK is not set", "Set it to the path of a task file.")
    path = Path(name).resolve()
    return task_graph(load_task(path), root=os.environ.get("INTERLOCK_ROOT") or path.parent)
