"""Where a run stands: its phase, whom it waits for, and who may answer before it does."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from langgraph.types import StateSnapshot

from interlock.envelope.protocol import Status
from interlock.graph.task.early import asked_again, kept_answer
from interlock.graph.task.machine import unjudged
from interlock.graph.task.policy import Policy
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import Task
from interlock.journal import Head

RunPhase: TypeAlias = Literal["new", "running", "waiting", "done"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """One role that a run waits for. The request has prompt, contract and ask id."""

    role: str
    request: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunView:
    """Where a run stands.

    Args:
        run_id: The run.
        task: Its frozen task.
        policy: Its frozen policy.
        phase: `new` before its first node, `running` when a step was cut off, `waiting` for a remote answer, `done`.
        values: The state of the graph as last checkpointed.
        next: The nodes that come next.
        waiting: The roles that it waits for.
        queued: Who holds the files that it waits for before it can go on; told by whoever drives it.
        again: The ids of the re-asks that are open or to come, by role; see `graph.handing_in`.
        kept: Those of these roles whose answer is kept until it can be judged.
        abandoned: It was ended for good; it is `done`, wherever it was.
    """

    run_id: str
    task: Task
    policy: Policy
    phase: RunPhase
    values: Mapping[str, Any]
    next: tuple[str, ...]
    waiting: tuple[Waiting, ...]
    queued: tuple[Mapping[str, Any], ...] = ()
    again: Mapping[str, str] = field(default_factory=dict[str, str])
    kept: tuple[str, ...] = ()
    abandoned: bool = False

    @property
    def failed(self) -> tuple[str, ...]:
        """The steps that ended the run for a reason outside the work: `drive` can do them again."""
        if self.phase != "done" or self.status != "BLOCKED" or self.abandoned:
            return ()
        return unjudged(self.values.get("verdicts", {}), self.values["attempt"])

    @property
    def status(self) -> Status | None:
        """The status of the task, or None before the first dispatch."""
        return self.values.get("status")

    @property
    def head(self) -> Head | None:
        """The head of the run's journal as the checkpoint keeps it."""
        row = self.values.get("head")
        return None if not row or not row["seq"] else Head(row["seq"], row["hash"])


def view_of(store: RunStore, task: Task, policy: Policy, state: StateSnapshot) -> RunView:
    """Return where a run stands by its checkpoint and its files."""
    values = dict(state.values)
    again = asked_again(values, policy, task.task_id, store) if state.tasks else {}
    kept = tuple(role for role in again if kept_answer(values, role, store) is not None)
    waiting = tuple(
        Waiting(task_.name, item.value) for task_ in state.tasks for item in task_.interrupts if not task_.result
    )
    phase: RunPhase
    if state.created_at is None:
        phase = "new"
    elif not state.tasks:
        phase = "done"
    elif any(item.role in kept for item in waiting):  # a drive that was cut off, or ended as the answer came
        phase, waiting = "running", ()
    else:
        phase = "waiting" if waiting else "running"
    return RunView(store.run_id, task, policy, phase, values, state.next, waiting, again=again, kept=kept)
