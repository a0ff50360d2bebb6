"""Making evidence: the nodes that run Interlock's own collectors and the commands of gates, and what they report."""

from collections.abc import Callable
from contextvars import copy_context
from dataclasses import asdict, replace
from typing import Any, Final, TypeAlias

from langgraph.config import get_stream_writer

from interlock.agents.ask import REMOTE
from interlock.core.finding import Finding
from interlock.envelope.protocol import GateSpec, Role
from interlock.gates.collect import Look, collect
from interlock.gates.command import run_command_gate
from interlock.gates.errors import CollectorError
from interlock.gates.judge import judge_collection
from interlock.gates.manifest import Binding, Collection, to_json
from interlock.gates.shared import shared
from interlock.graph.task.context import TaskContext, binding, role_order
from interlock.graph.task.machine import COMMAND_GATES, CitedFile, Verdict
from interlock.graph.task.orchestrator import MAX_REASON_CHARS, reason
from interlock.graph.task.policy import script_fingerprint, script_key
from interlock.graph.task.record import Recorder
from interlock.graph.task.sealing import collect_sealed
from interlock.graph.task.state import CollectedEvidence, Event, TaskState, round_of

_MAX_REASONS: Final = 5
"""So many errors of one gate are fail reasons; its log has all."""
_MIN_FOUND_CHARS: Final = 20

Update: TypeAlias = dict[str, Any]
Node: TypeAlias = Callable[[TaskState], Update]


class Collecting:
    """The nodes of one task that make evidence."""

    def __init__(self, context: TaskContext, recorder: Recorder) -> None:
        self.context = context
        self.recorder = recorder
        gates = (context.policy.protocol.gate(gate_id) for gate_id in context.task.gates_required)
        self.command_gates = tuple(gate for gate in gates if gate.by_command)

    def collects(self, role: Role) -> bool:
        """Return whether Interlock makes the evidence of this role's gate itself."""
        return role.certifies is not None and self.context.policy.protocol.gate(role.certifies).grade == "runner"

    def evidence(self, role: Role) -> Node:
        """Return the node that makes the evidence of a role's gate with Interlock's own collector."""
        gate_id = role.certifies or ""

        def node(state: TaskState) -> Update:
            try:
                collection = self._collect(role.name, gate_id, state)
            except CollectorError as error:
                return self._collector_failed(state, role.name, gate_id, error)
            return {
                "collected": {role.name: _row(state, collection)},
                "outbox": self._evidence_event(state, role.name, collection),
            }

        return node

    def _collect(self, name: str, gate_id: str, state: TaskState) -> Collection:
        """Make and keep the evidence of a gate; made while the files changed, it does not fit the files after it."""
        get_stream_writer()({"kind": "collecting", "role": name, "gate": gate_id})
        context, protocol = self.context, self.context.policy.protocol
        gate, work = protocol.gate(gate_id), binding(self.context, state, self.context.tree())
        try:
            made = self._made(gate, state, work)
        finally:
            context.ended()
        after = binding(context, state, context.tree())
        report = judge_collection(made, root=context.root, protocol=protocol, binding=after, gate=gate_id)
        made = replace(made, ok=report.ok, findings=report.findings)
        self.recorder.keep_files(context.root, made)
        said = [item.message for item in made.findings]
        _report_collected(gate_id, ok=made.ok, files=[file.path for file in made.files], findings=said)
        return made

    def _made(self, gate: GateSpec, state: TaskState, work: Binding) -> Collection:
        context = self.context
        if gate.id in context.policy.seals:
            return collect_sealed(
                context.root,
                context.task,
                context.policy,
                gate,
                state.get("sealing", {}),
                binding=work,
                present=context.files,
                outside=_named_outside(context, state),
                progress=_progress(gate.id),
            )
        if not gate.command:
            return collect(
                gate.id,
                target=context.task.page or "",
                root=context.root,
                binding=work,
                categories=gate.evidence,
                look=Look(context.policy.look_seconds),
            )
        self._check_script(gate)
        made = run_command_gate(gate, root=context.root, binding=work)
        self._check_script(gate)
        return made

    def _check_script(self, gate: GateSpec) -> None:
        """Refuse a command whose script is not the one that the run began with."""
        frozen = self.context.policy.fingerprints.get(script_key(gate.id))
        present = script_fingerprint(gate, self.context.task, self.context.root) or ""
        changed = [row for row in (frozen or "").split("; ") if row and row not in present.split("; ")]
        if changed:
            raise CollectorError(
                "COL204",
                f"{changed[0].rpartition(' ')[0]}, which decides {gate.id}, was changed after the run began.",
                "Restore it and resume, or put it in the scope of the task and start a new run.",
            )

    def _collector_failed(self, state: TaskState, name: str, gate_id: str, error: CollectorError) -> Update:
        why = reason(gate_id, f"the evidence could not be made: {error.message} {error.fix}")
        verdict = Verdict(
            role=name, result="NONE", cause="collector", attempt=state["attempt"], tree=self.context.tree(), gates=[],
            evidence=[], reasons=[why],
        )  # fmt: skip
        row = CollectedEvidence(attempt=state["attempt"], tree="", collection=None, error=error.message, fix=error.fix)
        _report_collected(gate_id, ok=False, files=[], findings=[why])
        data = {"role": name, "gate": gate_id, "ok": False, "code": error.code}
        data |= {"error": error.message, "fix": error.fix}
        event = Event(type="evidence", data=data, order=[role_order(self.context, name), 0])
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
        order = [role_order(self.context, name), 0]
        suffix = "evidence" if name != COMMAND_GATES else f"evidence/{collection.gate}"
        return {f"{round_of(state)}/{name}/{suffix}": Event(type="evidence", data=data, order=order)}

    def command_gates_node(self, state: TaskState) -> Update:
        """Run the command of every required gate that no role certifies; the exit status decides."""
        outbox: dict[str, Event] = {}
        collected: dict[str, CollectedEvidence] = {}
        made: list[Collection] = []
        for gate in self.command_gates:
            try:
                made.append(self._collect(COMMAND_GATES, gate.id, state))
            except CollectorError as error:
                return self._collector_failed(state, COMMAND_GATES, gate.id, error)
            outbox |= self._evidence_event(state, COMMAND_GATES, made[-1])
            collected[f"{COMMAND_GATES}/{gate.id}"] = _row(state, made[-1])
        failed = [item for item in made if not item.ok]
        verdict = Verdict(
            role=COMMAND_GATES,
            result="FAIL" if failed else "PASS",
            cause="gate",
            attempt=state["attempt"],
            tree=next((item.binding.tree for item in made if item.binding.tree != state["tree"]), state["tree"]),
            gates=[item.gate for item in made if item.ok],
            evidence=[CitedFile(**asdict(file)) for item in made for file in item.files],
            reasons=[why for item in failed for why in _reasons(item)],
            failed=[item.gate for item in failed],
        )
        return {"verdicts": {COMMAND_GATES: verdict}, "collected": collected, "outbox": outbox}


def _row(state: TaskState, made: Collection) -> CollectedEvidence:
    tree = made.binding.tree
    return CollectedEvidence(attempt=state["attempt"], tree=tree, collection=to_json(made), error="", fix="")


def _report_collected(gate: str, *, ok: bool, files: list[str], findings: list[str]) -> None:
    get_stream_writer()({"kind": "collected", "gate": gate, "ok": ok, "files": files, "findings": findings})


def _reasons(made: Collection) -> list[str]:
    errors = [found for found in made.findings if found.level == "error"]
    shown = [_in_a_line(made.gate, found) for found in errors[:_MAX_REASONS]]
    if len(errors) > _MAX_REASONS:
        shown.append(f"and {len(errors) - _MAX_REASONS} more")
    shown += [f"{found.message} {found.fix}" for found in made.findings if found.level == "warning"]
    return [reason(made.gate, text.removeprefix(f"{made.gate}: ")) for text in shown]


def _in_a_line(gate: str, item: Finding) -> str:
    """Return what a finding says in one reason: what is wrong, as much as fits of what was found, and what to do."""
    found = " ".join(item.found.split()).rstrip(".")
    left = MAX_REASON_CHARS - len(f"{gate}: {item.message} Found: …. Fix: {item.fix}")
    if not found or left < _MIN_FOUND_CHARS:
        return f"{item.message} Fix: {item.fix}"
    return f"{item.message} Found: {found if len(found) <= left else found[:left] + '…'}. Fix: {item.fix}"


def _named_outside(context: TaskContext, state: TaskState) -> tuple[str, ...]:
    """Return the changed files outside the scope that a log may name: those that a remote reader may know of."""
    paths = [row["path"] for row in state.get("outside", [])]
    visible = shared(context.root, paths) if REMOTE in context.runners.values() else paths
    return tuple(path for path in paths if path in visible)


def _progress(gate_id: str) -> Callable[[str], None]:
    """Return what writes a line of progress, also from the threads that read what observers send."""
    write, context = get_stream_writer(), copy_context()
    return lambda line: context.copy().run(write, {"kind": "gate", "gate": gate_id, "line": line})
