"""Admission: whether a task may start under a roster, with every reason why not."""

import json
import posixpath
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from interlock.core.finding import Finding
from interlock.envelope.protocol import Protocol
from interlock.gates.errors import TreeError
from interlock.gates.patterns import compile_scope
from interlock.gates.registry import roster_problems
from interlock.gates.response import input_exists
from interlock.gates.tree import in_scope
from interlock.graph.errors import TaskError
from interlock.graph.task.machine import COMMAND_GATES, RESUMED, START_NODE
from interlock.graph.task.orchestrator import MSG_STRICT, StatementError, statement
from interlock.graph.task.state import TaskState
from interlock.graph.task.task import Task

RESERVED: Final = frozenset({START_NODE, COMMAND_GATES, RESUMED, *TaskState.__annotations__})
"""Names that a run needs for itself; no role can have one."""

MAX_TASK_ID_CHARS: Final = 100
MAX_TASK_BYTES: Final = 64 * 1024
"""A task stands whole in one journal line and in every envelope of the orchestrator."""


def task_findings(task: Task, protocol: Protocol, root: Path) -> tuple[Finding, ...]:
    """Return what is wrong with a task before it starts."""
    found = [
        item._replace(field=item.field.lower())
        for item in roster_problems(protocol, task.gates_required, page=task.page)
    ]
    found += (*_bounds(task), *_files(task, root), *_names(protocol))
    if not any(item.level == "error" for item in found):
        found += _envelope(task, protocol)
    return tuple(found)


def check_task(task: Task, protocol: Protocol, root: Path) -> tuple[str, ...]:
    """Return the warnings about a task that may start.

    Raises:
        TaskError: The task cannot start; every problem is listed.
    """
    return admitted(task, task_findings(task, protocol, root))


def admitted(task: Task, faults: Sequence[Finding]) -> tuple[str, ...]:
    """Return the texts of the warnings among some faults.

    Raises:
        TaskError: One of them is an error; every error is listed.
    """
    errors = tuple(one_line(item) for item in faults if item.level == "error")
    if errors:
        name = task.task_id[:MAX_TASK_ID_CHARS]
        raise TaskError(f"task {name} cannot start: {errors[0]}", "Correct the task.", errors)
    return tuple(map(one_line, faults))


def one_line(item: Finding) -> str:
    """Return a finding in one line, with what to do."""
    code = "" if item.code == TaskError.code else f"{item.code} "
    return f"{code}{item.text} {item.fix}"


def _fault(key: str, message: str, fix: str) -> Finding:
    return Finding(TaskError.code, "error", key, message, fix=fix)


def _bounds(task: Task) -> Iterator[Finding]:
    if len(task.task_id) > MAX_TASK_ID_CHARS:
        yield _fault("task_id", f"it has {len(task.task_id)} characters.", f"Write at most {MAX_TASK_ID_CHARS}.")
    size = len(json.dumps(task.to_json()))
    if size > MAX_TASK_BYTES:
        fix = f"Leave at most {MAX_TASK_BYTES}; put long texts into files."
        yield _fault("task", f"it has {size} bytes as JSON.", fix)


def _files(task: Task, root: Path) -> Iterator[Finding]:
    for path in task.inputs:
        if not input_exists(str(root), path):
            yield _fault("inputs", f"`{path[:200]}` does not exist below {root}.", "Create it, or take it out.")
    try:
        compile_scope(task.scope)
        if task.page and "://" not in task.page and not in_scope(posixpath.normpath(task.page), task.scope):
            message = f"`{task.page[:200]}` is not in scope, so no verdict would be bound to it."
            yield _fault("page", message, "Add it to `scope`.")
    except TreeError as error:
        yield _fault("scope", error.message, error.fix)


def _names(protocol: Protocol) -> Iterator[Finding]:
    for name in protocol.roles:
        if name in RESERVED:
            yield _fault(f"roles.{name}", f"the run itself needs the name `{name}`.", "Rename the role.")


def _envelope(task: Task, protocol: Protocol) -> Iterator[Finding]:
    try:
        statement(
            "BLOCKED", task, protocol, previous=None, fail_reasons=[f"{MSG_STRICT}: a trial"], output="A trial.",
            next_actions=["orchestrator to start the task"],
        )  # fmt: skip
    except StatementError as error:
        yield from (_fault(item.field.lower(), item.message, item.fix) for item in error.findings)
