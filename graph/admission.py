"""Admission: whether a task may start under a roster, with every reason why not."""

import json
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from interlock.envelope.finding import Level
from interlock.envelope.protocol import Protocol
from interlock.gates.errors import TreeError
from interlock.gates.patterns import compile_scope
from interlock.gates.registry import roster_problems
from interlock.gates.tree import in_scope
from interlock.graph.errors import TaskError
from interlock.graph.machine import COMMAND_GATES, START_NODE
from interlock.graph.orchestrator import MSG_STRICT, StatementError, statement
from interlock.graph.state import TaskState
from interlock.graph.task import Task

RESERVED: Final = frozenset({START_NODE, COMMAND_GATES, *TaskState.__annotations__})
"""Names that a run needs for itself; no role can have one."""

MAX_TASK_ID_CHARS: Final = 100
MAX_TASK_BYTES: Final = 64 * 1024
"""A task stands whole in one journal line and in every envelope of the orchestrator."""


def task_findings(task: Task, protocol: Protocol, root: Path) -> tuple[tuple[Level, str], ...]:
    """Return what is wrong with a task before it starts: a level, and a sentence with its fix.

    An `error` keeps the task from starting.

    Args:
        task: The task.
        protocol: The roster of this task and the gates of the project.
        root: The root that inputs are relative to.
    """
    found: list[tuple[Level, str]] = [
        (item.level, f"{item.code} {item.field}: {item.message} {item.fix}")
        for item in roster_problems(protocol, task.gates_required, page=task.page)
    ]
    ours = [*_bounds(task), *_files(task, root), *_names(protocol)]
    if not ours and not any(level == "error" for level, _ in found):
        ours += _envelope(task, protocol)
    return (*found, *(("error", text) for text in ours))


def check_task(task: Task, protocol: Protocol, root: Path) -> tuple[str, ...]:
    """Return the warnings about a task that may start.

    Raises:
        TaskError: The task cannot start; every problem is listed.
    """
    findings = task_findings(task, protocol, root)
    errors = tuple(text for level, text in findings if level == "error")
    if errors:
        name = task.task_id[:MAX_TASK_ID_CHARS]
        raise TaskError(f"task {name} cannot start: {errors[0]}", "Correct the task.", errors)
    return tuple(text for _, text in findings)


def exists(root: Path, path: str) -> bool:
    """Say whether a path below the root exists; one that the system cannot even look up does not."""
    try:
        return (root / path).exists()
    except OSError:
        return False


def _bounds(task: Task) -> Iterator[str]:
    if len(task.task_id) > MAX_TASK_ID_CHARS:
        yield f"task_id: it has {len(task.task_id)} characters. Write at most {MAX_TASK_ID_CHARS}."
    size = len(json.dumps(task.to_json()))
    if size > MAX_TASK_BYTES:
        yield f"task: it has {size} bytes as JSON. Leave at most {MAX_TASK_BYTES}; put long texts into files."


def _files(task: Task, root: Path) -> Iterator[str]:
    for path in task.inputs:
        if not exists(root, path):
            yield f"inputs: `{path[:200]}` does not exist below {root}. Create it, or take it out."
    try:
        compile_scope(task.scope)
        if task.page and "://" not in task.page and not in_scope(posixpath.normpath(task.page), task.scope):
            yield f"page: `{task.page[:200]}` is not in scope, so no verdict would be bound to it. Add it to `scope`."
    except TreeError as error:
        yield f"scope: {error.message} {error.fix}"


def _names(protocol: Protocol) -> Iterator[str]:
    for name in protocol.roles:
        if name in RESERVED:
            yield f"roles.{name}: the run itself needs the name `{name}`. Rename the role."


def _envelope(task: Task, protocol: Protocol) -> Iterator[str]:
    """Say why the orchestrator could not write about the task in an envelope of its own."""
    try:
        statement(
            "BLOCKED", task, protocol, previous=None, fail_reasons=[f"{MSG_STRICT}: a trial"], output="A trial.",
            next_actions=["orchestrator to start the task"],
        )  # fmt: skip
    except StatementError as error:
        yield from (f"{item.field.lower()}: {item.message} {item.fix}" for item in error.findings)
