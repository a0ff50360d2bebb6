"""What every node of a task works with: the task and its policy, and what the run itself has recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from interlock.agents.ask import Remote, Runner
from interlock.agents.quoting import visible
from interlock.gates.errors import TreeError
from interlock.gates.manifest import Binding, Collection, from_json
from interlock.gates.tree import tree_digest, tree_files
from interlock.graph.task.machine import certified
from interlock.graph.task.policy import Policy
from interlock.graph.task.state import TaskState, excused_gates
from interlock.graph.task.task import Task
from interlock.redaction import Redactor, redactor_for

UNREADABLE: Final = "unreadable: "
"""How the text begins that replaces the digest of a tree which cannot be read."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What every node of one task works with."""

    task: Task
    policy: Policy
    root: Path
    runners: Mapping[str, Runner | Remote]
    redactor: Redactor = field(default_factory=redactor_for)

    def tree(self, *, contents: bool = False) -> str:
        """Digest the files in scope as they are now; `contents` as for `gates.tree.tree_files`.

        A tree that cannot be read gets a text that is not a digest, so that it equals no tree which was handed over.
        """
        try:
            return tree_digest(self.root, self.task.scope, contents=contents)
        except TreeError as error:
            return f"{UNREADABLE}{visible(self.redactor.text(error.message))[:500]} {error.fix}"

    def files(self) -> Mapping[str, str]:
        """List the files in scope as they are now; see `gates.tree.tree_files`.

        Raises:
            TreeError: They cannot be read.
        """
        return tree_files(self.root, self.task.scope, contents=False)


def own_collection(state: TaskState, name: str) -> Collection | None:
    """Return what the collector made for a role in this attempt, as the run itself recorded it."""
    row = state.get("collected", {}).get(name)
    if row is None or row["attempt"] != state["attempt"] or row["collection"] is None:
        return None
    return from_json(row["collection"])


def collections(state: TaskState) -> tuple[Collection, ...]:
    """Return everything that the run's collectors made in this attempt."""
    return tuple(found for name in state.get("collected", {}) if (found := own_collection(state, name)) is not None)


def binding(context: TaskContext, state: TaskState, tree: str) -> Binding:
    """Return what evidence of the present step must be evidence of."""
    return Binding(state["run_id"], context.task.task_id, state["attempt"], tree)


def held_gates(context: TaskContext, state: TaskState) -> frozenset[str]:
    """Return the gates that the journal holds for the tree as handed over in this attempt."""
    verdicts, excused = state.get("verdicts", {}), excused_gates(state)
    return certified(context.policy.protocol, verdicts, state["attempt"], state.get("tree", ""), excused)


def role_order(context: TaskContext, name: str) -> int:
    """Return the place of a role in the roster, by which journal lines of one phase are ordered."""
    names = list(context.policy.protocol.roles)
    return names.index(name) if name in names else len(names)
