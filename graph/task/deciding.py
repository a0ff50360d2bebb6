"""The nodes in which a run waits for a person: an objection of an agent, and a gate to be waived or not."""

from collections.abc import Mapping
from typing import Final

from langgraph.types import interrupt

from interlock.envelope.protocol import Role
from interlock.graph.task.asking import step_mark
from interlock.graph.task.collecting import Collecting, Update
from interlock.graph.task.machine import certifiers
from interlock.graph.task.orchestrator import reason
from interlock.graph.task.questions import AnswerKind, Question, taken
from interlock.graph.task.state import Objection, TaskState, Waiver
from interlock.graph.task.store import RunStore, decision_key
from interlock.graph.task.task import CORRECTABLE, Task

_REASONS: Final[Mapping[AnswerKind, str]] = {
    "correct": "{by} corrected the task, which is now as assigned. {reason}",
    "refuse": "the objection is refused by {by}: {reason}",
    "accept": "the objection is accepted by {by}: leave this gate, finish everything else, and hand over. {reason}",
}
"""What a person's answer to its objection becomes in the next assignment of the build role."""


class Deciding(Collecting):
    """Nodes that ask a person, and no agent."""

    build_order: tuple[Role, ...]

    def objection(self, state: TaskState) -> Update:
        """Wait for a person's answer to an objection; what it says becomes a journal line and the next dispatch."""
        gates = state.get("objected", {})
        others = tuple(text for text in state["fail_reasons"] if text.partition(":")[0] not in gates)
        number = state.get("questions", 0) + 1
        role = self.build_order[state["step"]].name
        name = decision_key(number, step_mark())
        asked = Question(number, "objection", role, gates, self.context.tree(), state["attempt"], others, name)
        answer = taken(self._store(state), asked, interrupt({**asked.to_json(), "key": name}))
        data: Update = {"number": number, "key": name, "attempt": state["attempt"], "gates": dict(gates), "role": role}
        data |= {"answer": answer.kind, "by": answer.by, "reason": answer.reason, "answer_sha256": answer.sha256}
        if answer.task is not None:
            task = Task.from_json(answer.task)
            data |= {"task": {**answer.task, "base": ""}, "task_sha256": task.fingerprint()}
            data |= {"certifiers": certifiers(self.context.policy.protocol, task.gates_required)}
            # The graph is that of the corrected task already.
            earlier = state.get("task")
            before = self._store(state).load()[0] if earlier is None else Task.from_json(earlier)
            data |= {"changed": [name for name in CORRECTABLE if getattr(task, name) != getattr(before, name)]}
        self.recorder.keep(state["run_id"], f"question.{number}/answered", "objection_answered", data)
        rows = {
            gate: Objection(attempt=state["attempt"], reason=why, answer=answer.kind) for gate, why in gates.items()
        }
        said = [reason(gate, _REASONS[answer.kind].format(by=answer.by, reason=answer.reason)) for gate in gates]
        corrected = state.get("corrected", 0) + (answer.kind == "correct")
        return {
            "questions": number,
            "corrected": corrected,
            "same_attempt": answer.kind != "correct",
            "objections": {**state.get("objections", {}), **rows},
            "fail_reasons": [*said, *others],
            "outcome": "answered",
            **({} if answer.task is None else {"task": dict(answer.task)}),
        }

    def waiver(self, state: TaskState) -> Update:
        """Wait for a person to waive a gate for the tree that was handed over and judged, or to decline."""
        gate = state["fail_reasons"][0].partition(":")[0]
        rows = [row for row in state.get("verdicts", {}).values() if row["attempt"] == state["attempt"]]
        said = tuple(text for row in rows for text in row["reasons"] if gate in row.get("failed", ()))
        number = state.get("questions", 0) + 1
        why = state.get("objections", {})[gate]["reason"]
        name = decision_key(number, step_mark())
        asked = Question(number, "waiver", "", {gate: why}, state["tree"], state["attempt"], said, name)
        answer = taken(self._store(state), asked, interrupt({**asked.to_json(), "key": name}))
        data = {
            "number": number,
            "key": name,
            "gate": gate,
            "tree": state["tree"],
            "attempt": state["attempt"],
            "by": answer.by,
        }
        data |= {"reason": answer.reason, "answer_sha256": answer.sha256}
        kind = "waiver" if answer.kind == "waive" else "waiver_declined"
        self.recorder.keep(state["run_id"], f"question.{number}/answered", kind, data)
        if answer.kind == "waive":
            row = Waiver(tree=state["tree"], by=answer.by, reason=answer.reason, attempt=state["attempt"])
            return {"questions": number, "waivers": {**state.get("waivers", {}), gate: row}}
        known = state.get("objections", {})
        declined = Objection(attempt=known[gate]["attempt"], reason=known[gate]["reason"], answer="decline")
        why = f"{answer.by} declined to waive this gate: {answer.reason}"
        return {
            "questions": number,
            "objections": {**known, gate: declined},
            "declined": {**state.get("declined", {}), gate: why},
        }

    def _store(self, state: TaskState) -> RunStore:
        return RunStore(self.context.root, state["run_id"])
