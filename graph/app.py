"""The graphs that `langgraph.json` names for LangGraph's own tools (`langgraph dev`): of a task, and of a ticket.

Each thread works in a copy of an example of its own, so that none finds the work of another one done. With
`INTERLOCK_TASK`, a task file, both work in its folder, or in `INTERLOCK_ROOT`.

The tools call these functions in their event loop, in which no file may be read, and keep the state of each thread.
"""

import asyncio
import os
import shutil
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

from interlock.core import git, state
from interlock.graph.engine.folder import is_run_id
from interlock.graph.errors import TaskError
from interlock.graph.task.build import task_graph
from interlock.graph.task.state import TaskInput, TaskOutput, TaskState
from interlock.graph.task.task import load_task
from interlock.graph.ticket.build import PipelineGraph, pipeline_graph
from interlock.graph.ticket.spec import TICKET

EXAMPLE: Final = "pytest-project"
"""An example whose agent is a script; its tests need pytest, git, and no browser."""

_STEPS: Final = 1000
"""More steps than a run within its budgets takes; the tools stop after 25 unless a graph says otherwise."""


async def task(config: RunnableConfig) -> CompiledStateGraph[TaskState, None, TaskInput, TaskOutput]:
    """Compile the graph of a task: the one in `INTERLOCK_TASK`, else that of the example.

    Raises:
        TaskError: The task cannot start, or the example cannot be copied.
    """
    return await asyncio.to_thread(_task, config)


async def ticket(config: RunnableConfig) -> PipelineGraph:
    """Compile the pipeline of the Ticket Protocol over the same files.

    Raises:
        TaskError: The example cannot be copied.
    """
    return await asyncio.to_thread(lambda: pipeline_graph(TICKET, root=_root(config)))


def _task(config: RunnableConfig) -> CompiledStateGraph[TaskState, None, TaskInput, TaskOutput]:
    root, named = _root(config), os.environ.get("INTERLOCK_TASK")
    graph = task_graph(load_task(Path(named) if named else root / "task.toml"), root=root)
    return graph.with_config(recursion_limit=_STEPS)


def _root(config: RunnableConfig) -> Path:
    """Return the project's root, for a thread without a task of its own a copy of the example."""
    if named := os.environ.get("INTERLOCK_TASK"):
        return Path(os.environ.get("INTERLOCK_ROOT") or Path(named).resolve().parent)
    thread = str(config.get("configurable", {}).get("thread_id", "none"))
    if not is_run_id(thread):
        raise TaskError(f"`{thread[:80]}` cannot be the name of a folder", "Let LangGraph choose the thread's id.")
    root = Path(state.folder(), "langgraph", thread)
    if not (root / ".git").exists():
        with as_file(files("interlock").joinpath("examples", EXAMPLE)) as example:
            shutil.copytree(example, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        done = git.run(root, ["init", "--quiet"])
        if done.status != 0:
            raise TaskError(f"`git init` failed in {root}: {done.why}", "Install git; the example needs it.")
    return root
