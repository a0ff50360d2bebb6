"""Making evidence: the nodes that run Interlock's own collectors and the commands of gates, and what they report."""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, TypeAlias

from langgraph.config import get_stream_writer

from interlock.envelope.protocol import GateSpec, Role
from interlock.gates.collect import collect
from interlock.gates.command import run_command_gate
from interlock.gates.errors import CollectorError
from interlock.gates.judge import judge_collection
from interlock.gates.manifest import Collection, to_json
from interlock.graph.desk import Desk, binding, role_order
from interlock.graph.machine import COMMAND_GATES, CitedFile, Verdict
from interlock.graph.orchestrator import reason
from interlock.graph.policy import script_fingerprint, script_key
from interlock.graph.record import Recorder
from interlock.graph.state import CollectedEvidence, Event, TaskState, round_of

Update: TypeAlias = dict[str, Any]
Node: TypeAlias = Callable[[TaskState], Update]


class Collecting:
    """The nodes of one task that make evidence.

    Args:
        desk: The task, its policy, its root and its runners.
        recorder: Keeps copies of what was made.
    """

    def __init__(self, desk: Desk, recorder: Recorder) -> None:
        self.desk = desk
        self.recorder = recorder
        gates = (desk.policy.protocol.gate(gate_id) for gate_id in desk.task.gates_required)
        self.command_gates = tuple(gate for gate in gates if gate.by_command)

    def collects(self, role: Role) -> bool:
        """Say whether Interlock makes the evidence of this role's gate itself."""
        return role.certifies is not None and self.desk.policy.protocol.gate(role.certifies).grade == "runner"

    def evidence(self, role: Role) -> Node:
        """Return the node that makes the evidence of a role's gate with Interlock's own collector."""
        gate_id = role.certifies or ""

        def node(state: TaskState) -> Update:
            get_stream_writer()({"kind": "collecting", "role": role.name, "gate": gate_id})
            try:
                collection = self._collect(gate_id, state)
            except CollectorError as error:
                return self._collector_failed(state, role.name, gate_id, error)
            self.recorder.keep_files(self.desk.root, collection)
            get_stream_writer()(
                {
                    "kind": "collected",
                    "gate": gate_id,
                    "ok": collection.ok,
                    "files": [file.path for file in collection.files],
                    "findings": [item.message for item in collection.findings],
                }
            )
            row = CollectedEvidence(
                attempt=state["attempt"], tree=collection.binding.tree, collection=to_json(collection), error="", fix=""
            )
            return {"collected": {role.name: row}, "outbox": self._evidence_event(state, role.name, collection)}

        return node

    def _collect(self, gate_id: str, state: TaskState) -> Collection:
        """Make the evidence of a gate; what was made while the files changed does not fit the files after it."""
        desk, protocol = self.desk, self.desk.policy.protocol
        gate, work = protocol.gate(gate_id), binding(self.desk, state, self.desk.tree())
        if gate.command:
            self._check_script(gate)
            made = run_command_gate(gate, root=desk.root, binding=work)
            self._check_script(gate)
        else:
            made = collect(gate_id, target=desk.task.page or "", root=desk.root, binding=work, categories=gate.evidence)
        after = binding(desk, state, desk.tree())
        report = judge_collection(made, root=desk.root, protocol=protocol, binding=after, gate=gate_id)
        return replace(made, ok=report.ok, findings=report.findings)

    def _check_script(self, gate: GateSpec) -> None:
        """Refuse a command whose script is not the one that the run began with."""
        frozen = self.desk.policy.fingerprints.get(script_key(gate.id))
        if frozen is not None and frozen != script_fingerprint(gate, self.desk.task, self.desk.root):
            raise CollectorError(
                "COL204",
                f"{frozen.partition(' ')[0]}, which decides {gate.id}, was changed after the run began.",
                "Restore it and resume, or put it in the scope of the task and start a new run.",
            )

    def _collector_failed(self, state: TaskState, name: str, gate_id: str, error: CollectorError) -> Update:
        why = reason(gate_id, f"the evidence could not be made: {error.message} {error.fix}")
        verdict = Verdict(
            role=name, result="NONE", cause="collector", attempt=state["attempt"], tree=self.desk.tree(), gates=[],
            evidence=[], reasons=[why],
        )  # fmt: skip
        row = CollectedEvidence(attempt=state["attempt"], tree="", collection=None, error=error.message, fix=error.fix)
        get_stream_writer()({"kind": "collected", "gate": gate_id, "ok": False, "files": [], "findings": [why]})
        data = {
            "role": name,
            "gate": gate_id,
            "ok": False,
            "code": error.code,
            "error": error.message,
            "fix": error.fix,
        }
        event = Event(type="evidence", data=data, order=[role_order(self.desk, name), 0])
        return {
            "collected": {name: row},
            "verdicts": {name: verdict},
            "outbox": {f"{round_of(state)}/{name}/evidence": event},
        }

    def _evidence_event(self, state: TaskState, name: str, collection: Collection) -> dict[str, Event]:
        data = {
            "role": name,
            "gate": collection.gate,
            "ok": collection.ok,
            "tree": collection.binding.tree,
            "manifest": collection.manifest,
            "files": [{"key": file.key, "path": file.path, "sha256": file.sha256} for file in collection.files],
            "findings": [
                {"code": item.code, "level": item.level, "message": item.message[:500]}
                for item in collection.findings[:50]
            ],
        }
        order = [role_order(self.desk, name), 0]
        suffix = "evidence" if name != COMMAND_GATES else f"evidence/{collection.gate}"
        return {f"{round_of(state)}/{name}/{suffix}": Event(type="evidence", data=data, order=order)}

    def command_gates_node(self, state: TaskState) -> Update:
        """Run the command of every required gate that no role certifies; the exit status decides."""
        outbox: dict[str, Event] = {}
        collected: dict[str, CollectedEvidence] = {}
        made: list[Collection] = []
        for gate in self.command_gates:
            get_stream_writer()({"kind": "collecting", "role": COMMAND_GATES, "gate": gate.id})
            try:
                made.append(self._collect(gate.id, state))
            except CollectorError as error:
                return self._collector_failed(state, COMMAND_GATES, gate.id, error)
            self.recorder.keep_files(self.desk.root, made[-1])
            outbox |= self._evidence_event(state, COMMAND_GATES, made[-1])
            collected[f"{COMMAND_GATES}/{gate.id}"] = CollectedEvidence(
                attempt=state["attempt"], tree=made[-1].binding.tree, collection=to_json(made[-1]), error="", fix=""
            )
        failed = [item for item in made if not item.ok]
        verdict = Verdict(
            role=COMMAND_GATES,
            result="FAIL" if failed else "PASS",
            cause="gate",
            attempt=state["attempt"],
            tree=next((item.binding.tree for item in made if item.binding.tree != state["tree"]), state["tree"]),
            gates=[] if failed else [item.gate for item in made],
            evidence=[CitedFile(**asdict(file)) for item in made for file in item.files] if not failed else [],
            reasons=[
                reason(item.gate, next(found.message for found in item.findings if found.level == "error"))
                for item in failed
            ],
        )
        return {"verdicts": {COMMAND_GATES: verdict}, "collected": collected, "outbox": outbox}
