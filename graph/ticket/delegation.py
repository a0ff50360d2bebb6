"""Carrying a plan out by tasks: each step becomes one task of the status machine, one after the other."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from interlock.agents.ask import AgentsError
from interlock.gates.errors import GateError, TreeError
from interlock.gates.git_files import list_tree, revealed
from interlock.gates.patterns import compile_scope
from interlock.gates.stages import Issue
from interlock.gates.tree import tree_diff, tree_digest
from interlock.graph.errors import GraphError, RunBusyError, TaskError
from interlock.graph.task.background import Drives
from interlock.graph.task.explain import status_text, waived_by
from interlock.graph.task.scope_leases import blocker_text
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import Task
from interlock.graph.ticket.rules import issue
from interlock.graph.ticket.state import Delegate, RunState, TicketPolicy, allowed_paths, earlier, tree_before
from interlock.graph.ticket.store import TicketStore
from interlock.reservations import is_ticket_file

if TYPE_CHECKING:
    from interlock.graph.task.runs import RunView

_MAX_INTENT_CHARS: Final = 500
_MAX_LISTED: Final = 50
_AGAIN: Final = "Submit again with an empty payload."
_PATTERN_CHARACTERS: Final = frozenset("*?[]{}!")


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of the tasks of a plan.

    Args:
        issues: What the caller must wait for or fix; empty once every task is at its end.
        payload: The payload of the acting stage, made from the outcomes.
        outcomes: Status by step id; `NOT_STARTED` for steps after a blocked one.
        tasks: The task runs, for the journal.
    """

    issues: tuple[Issue, ...] = ()
    payload: dict[str, Any] = field(default_factory=dict[str, Any])
    outcomes: dict[str, str] = field(default_factory=dict[str, str])
    tasks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


class Delegation:
    """The tasks of delegated plans below one root."""

    def __init__(self, root: Path, drives: Drives) -> None:
        self.root = root
        self.drives = drives

    def trial(self, policy: TicketPolicy, ticket_id: str) -> Issue | None:
        """Return why a plan cannot be delegated, before a run begins; when it can, freeze what its gates mean."""
        delegate = policy["delegate"]
        if delegate is None:
            return None
        scope = tuple(delegate["scope"]) or ("**",)
        try:
            delegate["fingerprints"] = self._checked(self._task(delegate, ticket_id, 1, "A trial.", scope))
        except (TaskError, GateError, AgentsError) as error:
            return _cannot("the tasks of a plan cannot start", error)
        return None

    def advance(self, state: RunState) -> Progress:
        """Take the tasks of a run's plan on, in order, as far as the waiting time allows. Safe to repeat."""
        delegate = state["policy"]["delegate"]
        assert delegate is not None, "asked for the tasks of a stage that is not delegated"
        until = time.monotonic() + delegate["wait_seconds"]
        done: list[tuple[str, RunView | None]] = []
        blocked = False
        for number, step in enumerate(earlier(state)["plan_steps"], 1):
            if blocked:
                done.append((step["step_id"], None))
                continue
            try:
                view = self._step(state, delegate, number, step, until)
            except RunBusyError as error:
                return Progress((_unfinished(step["step_id"], "another process drives it", error.fix),))
            except (GraphError, GateError, AgentsError) as error:
                return Progress((_cannot(f"the task of step {step['step_id']} cannot go on", error),))
            if view.phase != "done":
                return Progress((_wait(step["step_id"], view),))
            blocked = view.status != "APPROVED"
            done.append((step["step_id"], view))
        changed = self._changed_since(done)
        return Progress((changed,)) if changed is not None else self._report(state, done)

    def _changed_since(self, done: "Sequence[tuple[str, RunView | None]]") -> Issue | None:
        """Return a finding when the files of the last approved task are no longer those that were approved."""
        approved = [(step_id, view) for step_id, view in done if view is not None and view.status == "APPROVED"]
        if not approved or len(approved) < len(done):
            return None
        step_id, view = approved[-1]
        if tree_digest(self.root, view.task.scope) == view.values["tree"]:
            return None
        return issue(
            "TKT144", "payload", f"Files in the scope of step {step_id} changed after its task was approved.",
            found=f"another tree than run {view.run_id} approved", expected=f"the tree {view.values['tree']}",
            fix="Take these edits back, and submit again; or begin a new run.",
        )  # fmt: skip

    def waiting(self, state: RunState) -> list[str]:
        """Return what the tasks of a run wait for, one line each; empty before the first one starts."""
        from interlock.graph.task.runs import view_run  # noqa: PLC0415 - runs builds graphs, which few calls need

        lines: list[str] = []
        store = TicketStore(self.root, state["run_id"])
        for number, step in enumerate(earlier(state)["plan_steps"], 1):
            run_id = store.claimed(number)
            if run_id is not None and RunStore(self.root, run_id).exists():
                view = view_run(run_id, root=self.root)
                roles = ", ".join(item.role for item in view.waiting)
                where = f"waits for {roles}" if roles else f"is {view.status or 'not started'}"
                where = "waits for a person to decide" if view.question is not None else where
                lines.append(f"{step['step_id']}: task run {view.run_id} {where}")
        return lines

    def _step(self, state: RunState, delegate: Delegate, number: int, step: dict[str, Any], until: float) -> "RunView":
        """Start the task of one step unless it was, and take it on until a monotonic time that all steps share."""
        from interlock.graph.task.runs import start_run  # noqa: PLC0415 - as above

        store = TicketStore(self.root, state["run_id"])
        # A cited file whose name reads as a pattern would mean other files, or none.
        scope = tuple(delegate["scope"]) or tuple(path for path in allowed_paths(state) if self._is_scope(path))
        task = self._task(delegate, state["ticket_id"], number, str(step["intent"]), scope)
        run_id = store.claimed(number)
        if run_id is None or self._is_another(run_id, task):
            run_id = self._free(state, number)
            store.claim(number, run_id)
        if not RunStore(self.root, run_id).exists():
            self._check_policy(delegate, task)
            start_run(self.root, task, run_id=run_id)
        return self.drives.advance(run_id, wait_seconds=max(until - time.monotonic(), 0.0))

    def _is_scope(self, path: str) -> bool:
        """Return whether a task's scope can hold a path of the plan: as a pattern, or as a plain name."""
        if _PATTERN_CHARACTERS.isdisjoint(path):
            return True
        try:
            compile_scope([path])
        except TreeError:
            return False
        return not (self.root / path).exists()

    def _is_another(self, run_id: str, task: Task) -> bool:
        store = RunStore(self.root, run_id)
        return store.exists() and store.load()[0].fingerprint() != task.fingerprint()

    def _free(self, state: RunState, number: int) -> str:
        """Return an id for the task run of a step that nobody took: the first of them can be guessed."""
        names = (f"{state['run_id']}.s{number}" + (f"-{again}" if again else "") for again in count())
        return next(name for name in names if not RunStore(self.root, name).exists())

    def _task(self, delegate: Delegate, ticket_id: str, number: int, intent: str, scope: Sequence[str]) -> Task:
        line = " ".join(intent.split())
        return Task(
            task_id=f"{_slug(ticket_id)}-S{number}",
            task=line if len(line) <= _MAX_INTENT_CHARS else f"{line[: _MAX_INTENT_CHARS - 1]}…",
            gates_required=tuple(delegate["gates"]),
            scope=tuple(scope),
            agents=delegate["agents"],
            base=str(self.root),
        )

    def _checked(self, task: Task) -> dict[str, str]:
        from interlock.gates.config import load_config  # noqa: PLC0415
        from interlock.graph.task.policy import make_policy  # noqa: PLC0415
        from interlock.graph.task.preflight import check_task  # noqa: PLC0415

        policy = make_policy(task, load_config(self.root), self.root)
        check_task(task, policy.protocol, self.root)
        return {name: value for name, value in policy.fingerprints.items() if name not in ("config", "grammar")}

    def _check_policy(self, delegate: Delegate, task: Task) -> None:
        """Refuse to start a task by other gates, roles or scripts than those that the run began with."""
        present = self._checked(task)
        frozen = delegate.get("fingerprints", {})
        differing = sorted(name for name, value in frozen.items() if present.get(name) != value)
        if differing:
            raise TaskError(
                f"since the run began, these were changed: {', '.join(differing)}",
                "Restore interlock.toml and the scripts of the gates, or begin a new run.",
            )

    def _report(self, state: RunState, done: "Sequence[tuple[str, RunView | None]]") -> Progress:
        before = TicketStore(self.root, state["run_id"]).tree(tree_before(state))
        actions: list[str] = []
        checks: list[str] = []
        outcomes: dict[str, str] = {}
        tasks: list[dict[str, Any]] = []
        for step_id, view in done:
            if view is None:
                outcomes[step_id] = "NOT_STARTED"
                actions.append(f"{step_id}: not started, since a step before it was blocked")
                continue
            status = str(view.status)
            outcomes[step_id] = status
            shown = status_text({"status": status, "waived": (waived := waived_by(view))})
            attempts = view.values.get("attempt", 0)
            head = view.head
            mark = f"{view.run_id}:{head.seq}:{head.hash}" if head else view.run_id
            actions.append(f"{step_id}: task {view.task.task_id}, run {view.run_id}, attempt {attempts}, ended {shown}")
            reasons = "; ".join(view.values.get("fail_reasons", ()))[:_MAX_INTENT_CHARS]
            gates = ", ".join(gate for gate in view.task.gates_required if gate not in waived)
            checks.append(f"{step_id}: {shown}; " + (reasons or f"gates {gates}"))
            tasks.append({"step_id": step_id, "run_id": view.run_id, "status": status, "head": mark})
        outputs = self._changed(before) or ["no file was changed"]
        payload = {"actions_taken": actions, "outputs": outputs, "checkpoints": checks}
        return Progress(payload=payload, outcomes=outcomes, tasks=tasks)

    def _changed(self, before: dict[str, str]) -> list[str]:
        diff = tree_diff(before, revealed(self.root, before, list_tree(self.root)))
        lines = [
            f"{what} {path}"
            for what, paths in (("changed", diff.changed), ("added", diff.added), ("removed", diff.removed))
            for path in paths
            if not is_ticket_file(self.root, path)
        ]
        more = len(lines) - _MAX_LISTED
        return [*lines[:_MAX_LISTED], f"and {more} more"] if more > 0 else lines


def _slug(ticket_id: str) -> str:
    text = re.sub(r"[^A-Z0-9]+", "-", ticket_id.upper())[:60].strip("-")
    return text if text[:1].isalpha() else f"T{text}"


def _wait(step_id: str, view: "RunView") -> Issue:
    roles = ", ".join(item.role for item in view.waiting)
    if view.queued:
        first = "; ".join(blocker_text(row) for row in view.queued[:3])
        return _unfinished(step_id, f"it waits in the queue for files of its scope: {first}", _AGAIN)
    if view.question is not None:
        fix = f"Have a person decide (`interlock answer {view.run_id}`), then submit again."
        return _unfinished(step_id, "it waits for a person to decide", fix)
    if not roles:
        return _unfinished(step_id, f"it is {view.status or 'starting'}", _AGAIN)
    fix = f"Have {roles} answer with task_next and task_submit (run {view.run_id}), then submit again."
    return _unfinished(step_id, f"it waits for {roles}", fix)


def _unfinished(step_id: str, why: str, fix: str) -> Issue:
    return issue(
        "TKT142", "payload", f"The task of step {step_id} is not at its end: {why}.", found=why,
        expected="APPROVED or BLOCKED", fix=fix,
    )  # fmt: skip


def _cannot(what: str, error: GraphError | GateError | AgentsError) -> Issue:
    return issue(
        "TKT143", "payload", f"{what[:1].upper()}{what[1:]}: {error.message.rstrip('.')}.", found=error.message,
        expected="a task that can start under `[tickets.delegate]`", fix=error.fix,
    )  # fmt: skip
