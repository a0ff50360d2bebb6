"""Runs in trees of their own: one is begun, and driven, by a process in its tree.

The process is `graph.task.inside`. It reads one request from its standard input, a line of JSON, and writes lines of
JSON: what happens, and at last a result or an error. It ends with this process, whatever becomes of that.
"""

import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple, TypeAlias

from interlock.agents.ask import RunnerError
from interlock.core import process
from interlock.gates.config import load_config
from interlock.gates.sealed import SealError
from interlock.graph.errors import TREE, GraphError, RunBusyError
from interlock.graph.sources.inputs import fetch_inputs
from interlock.graph.task.clone import Clone, find, lay_over, make
from interlock.graph.task.progress import Notice
from interlock.graph.task.task import Task

Line: TypeAlias = Mapping[str, Any]
_MAX_CHARS: Final = 500
_ERRORS: Final[Mapping[str, type[RunnerError] | type[RunBusyError]]] = {
    RunnerError.code: RunnerError,
    RunBusyError.code: RunBusyError,
}
"""Errors that callers tell apart by their class."""


class Start(NamedTuple):
    """How a run in a tree of its own begins.

    Args:
        commit: The commit of its tree.
        note: What its builders are takers beside the task.
        files: A git tree whose files are laid over those of the commit before anybody works; empty for none.
        accept_base: As for `start_run`.
    """

    commit: str
    note: str = ""
    files: str = ""
    accept_base: bool = False


def start_apart(
    root: Path,
    task: Task,
    begin: Start,
    *,
    warn: Callable[[str], None] = lambda _text: None,
    progress: Callable[[str], None] = lambda _line: None,
) -> str:
    """Make a tree, begin a run of a task in it, and return its id; `drive` takes it on.

    Raises:
        GraphError, InterlockError: The tree cannot be made, a command of `[trees] setup` failed, or the task cannot
            start; nothing is left.
    """
    # In the tree, git does not say where the repository is on GitHub.
    tickets = [asdict(ticket) for ticket in fetch_inputs(root, task)]
    clone = make(root, begin.commit)
    takers = {"warning": warn, "progress": progress}
    try:
        with clone.used():
            if load_config(root).trees.setup:
                _ask(clone, {"do": "setup"}, lambda step: progress(step["text"]), bare=True)
            asked = {
                "do": "start",
                "task": task.to_json(),
                "tree": clone.name,
                "note": begin.note,
                "accept_base": begin.accept_base,
                "tickets": tickets,
            }
            run_id = str(_ask(clone, asked, lambda step: takers[step["kind"]](step["text"])))
            if begin.files:
                lay_over(clone, begin.files)
    except BaseException:
        clone.remove()
        raise
    return run_id


def drive_inside(run_id: str, root: Path, tree: str, given: Line, notice: Notice) -> None:
    """Have a run driven by a process in its tree; `given` are `answers`, `asks` and `until` of `drive`.

    Raises:
        GraphError, RunnerError: As `drive` does; also where the tree is gone.
    """
    clone = find(root, tree)
    with clone.used():
        _ask(clone, {"do": "drive", "run": run_id, **given}, notice)


def _ask(clone: Clone, request: Line, notice: Notice, *, bare: bool = False) -> Any:
    """Have a process inside do something, and return its result."""
    said: dict[str, Any] = {}
    guard, rest = Lock(), bytearray()

    def take(data: bytes) -> None:
        rest.extend(data)
        with guard:
            *lines, left = rest.split(b"\n")
            rest[:] = left
        for line in lines:
            step = json.loads(line)
            if "notice" in step:
                notice(step["notice"])
            else:
                said.update(step)

    complaints = bytearray()
    argv = clone.command(
        [sys.executable, "-P", "-m", "interlock.graph.task.inside", os.fspath(clone.inside)], bare=bare
    )
    ended = process.run(
        argv,
        cwd="/" if clone.mounted else clone.inside,
        env={**os.environ, **clone.variables},
        timeout_seconds=math.inf,
        output=take,
        complaints=complaints.extend,
        stdin=json.dumps(request).encode() + b"\n",
        hold=True,
    )
    if "result" in said:
        return said["result"]
    if "error" in said:
        code, message, fix = said["error"]
        if code in _ERRORS:
            raise _ERRORS[code](message, fix)
        raise SealError(code, message, fix) if code.startswith(("SEAL", "HELD")) else GraphError(message, fix, code)
    # Of a traceback the last line says what happened.
    said_last = complaints.decode("utf-8", "replace").rstrip().rpartition("\n")[2][:_MAX_CHARS] or "nothing"
    message = f"the process in the tree {clone.name} ended with status {ended.status}, and said: {said_last}"
    raise GraphError(message, "Do what it says, and resume the run.", TREE)
