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

from interlock.core import process
from interlock.core.database import ADDRESS, Database, Leg, address_of, database_of
from interlock.gates.config import load_config
from interlock.graph.engine import legs
from interlock.graph.errors import TREE, GraphError
from interlock.graph.task.carried import push_objects
from interlock.graph.task.clone import Clone, find, lay_over, make
from interlock.graph.task.progress import Notice
from interlock.graph.task.task import Task
from interlock.graph.task.ticket_inputs import fetch_inputs

Line: TypeAlias = Mapping[str, Any]
AtStart: TypeAlias = Callable[[int], object]
_MAX_CHARS: Final = 500


def _never(_pid: int) -> None:
    pass


class Start(NamedTuple):
    """How a run in a tree of its own begins.

    Args:
        commit: The commit of its tree.
        note: What its builders are told beside the task.
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
    run_id: str = "",
    leg: Leg | None = None,
) -> str:
    """Make a tree, begin a run of a task in it, and return its id; `drive` takes it on.

    With a database a worker does it, and this call waits; a worker gives the id and the leg in which it begins the run.

    Raises:
        GraphError, InterlockError: The tree cannot be made, a command of `[trees] setup` failed, or the task cannot
            start; nothing is left.
    """
    takers = {"warning": warn, "progress": progress}
    if leg is None and (database := database_of(root)) is not None:
        legs.check_workers(database)
        run = ask_to_begin(root, database, task, begin, drive=False)
        legs.await_legs(database, run, notice=lambda step: takers[step["kind"]](step["text"]))
        return run
    # In the tree, git does not say where the repository is on GitHub.
    tickets = [asdict(ticket) for ticket in fetch_inputs(root, task)]
    clone = make(root, begin.commit)
    try:
        with clone.used():
            if load_config(root).trees.setup:
                _ask(clone, {"do": "setup"}, lambda step: progress(step["text"]), bare=True)
            asked = {
                "do": "start",
                "task": task.to_json(),
                "tree": clone.name,
                "note": begin.note,
                "files": begin.files,
                "accept_base": begin.accept_base,
                "tickets": tickets,
                "run": run_id,
            }
            run_id = str(_ask(clone, asked, lambda step: takers[step["kind"]](step["text"]), leg=leg))
            if begin.files:
                lay_over(clone, begin.files)
    except BaseException:
        clone.remove()
        raise
    return run_id


def ask_to_begin(
    root: Path,
    database: Database,
    task: Task,
    begin: Start,
    *,
    drive: bool = True,
    until: str = "",
    land: bool = False,
    landings: int = legs.LANDINGS,
    priority: int = legs.NORMAL,
) -> str:
    """Have a worker begin a run, and perhaps drive it on, as far as `until`; return the id of the run.

    To `land` it, a worker tries that once it is approved, and for the runs that take up its conflicts: so many
    `landings` in all.

    Raises:
        GraphError: `RUN653` the commit cannot be brought to the workers.
        DatabaseError: The database cannot be used.
    """
    push_objects(root, [begin.commit, begin.files])
    run = legs.reserve(database, task.task_id, land=landings if land else 0)
    asked = {
        "task": task.to_json() | {"base": ""},
        "base": os.path.relpath(task.base or root, root),
        "commit": begin.commit,
        "note": begin.note,
        "files": begin.files,
        "accept_base": begin.accept_base,
    }
    legs.enqueue(database, run, {"begin": asked, "drive": drive, "until": until}, priority=priority)
    return run


def drive_inside(
    run_id: str,
    root: Path,
    tree: str,
    given: Line,
    notice: Notice,
    *,
    leg: Leg | None = None,
    at_start: AtStart = _never,
) -> None:
    """Have a run driven by a process in its tree; `given` are `answers`, `asks`, `until` and `stops` of `drive`.

    A worker names the leg, and takes the number of the process.

    Raises:
        GraphError, RunnerError: As `drive` does; also where the tree is gone.
    """
    clone = find(root, tree)
    with clone.used():
        _ask(clone, {"do": "drive", "run": run_id, **given}, notice, leg=leg, at_start=at_start)


def _ask(
    clone: Clone,
    request: Line,
    notice: Notice,
    *,
    bare: bool = False,
    leg: Leg | None = None,
    at_start: AtStart = _never,
) -> Any:
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
        # Named, so that what an agent writes into the tree's interlock.toml leads nowhere else.
        env={
            **os.environ,
            **clone.variables,
            ADDRESS: address_of(clone.top / clone.root),
            **(leg.environment() if leg else {}),
        },
        timeout_seconds=math.inf,
        output=take,
        complaints=complaints.extend,
        stdin=json.dumps(request).encode() + b"\n",
        hold=True,
        at_start=at_start,
    )
    if "result" in said:
        return said["result"]
    if "error" in said:
        raise legs.error_of(*said["error"])
    # Of a traceback the last line says what happened.
    said_last = complaints.decode("utf-8", "replace").rstrip().rpartition("\n")[2][:_MAX_CHARS] or "nothing"
    message = f"the process in the tree {clone.name} ended with status {ended.status}, and said: {said_last}"
    raise GraphError(message, "Do what it says, and resume the run.", TREE)
