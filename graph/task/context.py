"""What every node of a task works with: the task and its policy, and what the run itself has recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from interlock.agents.ask import Remote, Runner
from interlock.agents.quoting import visible
from interlock.agents.recording import AskObserver
from interlock.core.text import few
from interlock.gates.errors import TreeError
from interlock.gates.manifest import Binding, Collection, from_json
from interlock.gates.tree import TreeReader, tree_diff
from interlock.graph.task.machine import certified
from interlock.graph.task.policy import Policy
from interlock.graph.task.state import TaskState, excused_gates
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import Task
from interlock.redaction import Redactor, redactor_for

UNREADABLE: Final = "unreadable: "
"""How the text begins that replaces the digest of a tree which cannot be read."""

_MOMENT_SECONDS: Final = 1.0
_MAX_NAMED: Final = 5
"""So many changed files a fail reason names."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What every node of one task works with."""

    task: Task
    policy: Policy
    root: Path
    runners: Mapping[str, Runner | Remote]
    observer: AskObserver = field(default_factory=AskObserver)
    redactor: Redactor = field(default_factory=redactor_for)
    _reader: TreeReader = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_reader", TreeReader(self.root, self.task.scope))

    def tree(self, *, contents: bool = False) -> str:
        """Digest the files in scope as they are now; with `contents` each of them is read, changed or not.

        A look less than a second ago counts, unless an agent or a command has ended since; see `ended`.

        A tree that cannot be read gets a text that is not a digest, so that it equals no tree which was handed over.
        """
        try:
            return self._reader.look(contents=contents, within_seconds=_MOMENT_SECONDS).digest
        except TreeError as error:
            return f"{UNREADABLE}{visible(self.redactor.text(error.message))[:500]} {error.fix}"

    def ended(self) -> None:
        """Let the next look be a new one, since an agent or a command has ended, which may have changed files."""
        self._reader.expire()

    def hand_over(self, store: RunStore, attempt: int, *, fresh: bool = False) -> str:
        """Digest the files as handed over, as `tree` does, and store their list for `changes`.

        With `fresh`, a look that was taken a moment ago does not count.
        """
        try:
            look = self._reader.look(within_seconds=0.0 if fresh else _MOMENT_SECONDS)
        except TreeError:
            return self.tree()
        store.keep_tree(attempt, self.redactor.value(dict(look.files)))
        return look.digest

    def changes(self, store: RunStore, attempt: int) -> str:
        """Name the files in scope that changed after a hand-over, as the end of a sentence; empty when unknown."""
        handed_over = store.handed_over(attempt)
        try:
            found = (
                tree_diff(handed_over, self.redactor.value(dict(self._reader.look().files))) if handed_over else None
            )
        except TreeError:
            found = None
        if not found:
            return ""
        paths = [visible(path) for path in (*found.changed, *found.added, *found.removed)]
        return f": {few(paths, _MAX_NAMED)}"

    def files(self) -> Mapping[str, str]:
        """List the files in scope as they were when this process last looked; see `gates.tree.tree_files`.

        Raises:
            TreeError: They cannot be read.
        """
        return (self._reader.last or self._reader.look()).files


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
