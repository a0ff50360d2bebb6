"""Judging a response outside a run as the project's open run of its task would judge it."""

from pathlib import Path
from typing import cast

from interlock.envelope import MAX_BYTES, Report, validate
from interlock.envelope.protocol import Protocol
from interlock.gates.response import Expected
from interlock.graph.engine.folder import runs_of
from interlock.graph.errors import RunDamagedError
from interlock.graph.task.context import TaskContext
from interlock.graph.task.judging import judge
from interlock.graph.task.runs import RunView, view_run
from interlock.graph.task.state import TaskState


def judge_by_run(
    text: str | bytes, expected: Expected, *, root: Path, protocol: Protocol, extract: bool, shared_only: bool = False
) -> Report | None:
    """Judge a response by the newest open run of its task: status, gates, collected evidence and policy are the run's.

    What only the run can know of an answer, such as whether its agent called any tool, is left out. Agent and task are
    those of `expected`, else those that the text names; the other arguments are as for `judge_response`.

    Returns:
        What the run would find, or None where it has no open run of the task, or does not know the agent.
    """
    read = validate(text, agent=expected.agent, protocol=protocol, extract=extract, max_bytes=MAX_BYTES)
    item = read.reading.fields.get("TASK_ID")
    named = expected.task_id or (item.items[0].text if item and item.items else "")
    view = open_run(root, named) if named else None
    if view is None:
        return None
    roles = view.policy.protocol.roles
    name = expected.agent or (read.role.name if read.role else "")
    if name not in roles:
        return None
    context = TaskContext(view.task, view.policy, root, {})
    state, answer = cast("TaskState", view.values), read.reading.text
    return judge(context, roles[name], state, answer, extract=extract, shared_only=shared_only).report


def open_run(root: Path, task_id: str) -> RunView | None:
    """Return the newest run of a task that has begun and not ended; runs that cannot be read are passed over."""
    for run_id in runs_of(root, "runs", task_id):
        try:
            view = view_run(run_id, root=root)
        except RunDamagedError:
            continue
        if view.phase in ("running", "waiting") and view.status is not None:
            return view
    return None
