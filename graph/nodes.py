"""The nodes of the status machine: each collects facts, calls the machine, and writes what happened."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer

from interlock.envelope import parse
from interlock.envelope.protocol import Role, RoleKind, Status
from interlock.gates.collect import collect
from interlock.gates.command import run_command_gate
from interlock.gates.errors import CollectorError
from interlock.gates.judge import judge_collection, verify_again
from interlock.gates.manifest import CollectedFile, Collection, to_json
from interlock.graph.admission import exists
from interlock.graph.asking import (
    CAUSE,
    UNREADABLE,
    Desk,
    ask_role,
    binding,
    held_gates,
    own_collection,
    role_order,
)
from interlock.graph.errors import RunDamagedError
from interlock.graph.machine import (
    COMMAND_GATES,
    REWORKABLE,
    Budget,
    Cause,
    CitedFile,
    Outcome,
    Verdict,
    route,
    standing,
    tally,
)
from interlock.graph.orchestrator import MSG_STRICT, reason, repeated, statement
from interlock.graph.record import Recorder, set_aside
from interlock.graph.state import CollectedEvidence, Event, TaskState
from interlock.graph.store import RunStore

Update: TypeAlias = dict[str, Any]
Node: TypeAlias = Callable[[TaskState], Update]

EVIDENCE_SUFFIX = ".evidence"
QA_VERDICTS = "QA_VERDICTS"
REVIEW_VERDICTS = "REVIEW_VERDICTS"

_STANDING_TEXT: Mapping[Cause, str] = {
    "stale": "its verdict went stale, because files in scope changed after the hand-over",
    "evidence": "an evidence file of its verdict is no longer the one that was judged",
    "gate": "nobody entitled to certify this gate has passed it on the present tree",
}


class Nodes:
    """The node functions of one task.

    Args:
        desk: The task, its policy, its root and its runners.
        recorder: Writes journal lines.
    """

    def __init__(self, desk: Desk, recorder: Recorder) -> None:
        self.desk = desk
        self.recorder = recorder
        protocol, required = desk.policy.protocol, desk.task.gates_required
        build = protocol.of_kind("build")
        self.build_order = tuple(role for role in build if not role.hands_over) + tuple(
            role for role in build if role.hands_over
        )
        self.command_gates = tuple(
            gate for gate_id in required if (gate := protocol.gate(gate_id)).command and gate.certifier is None
        )

    # -- facts ---------------------------------------------------------------------------------------------------

    def collects(self, role: Role) -> bool:
        """Say whether Interlock makes the evidence of this role's gate itself."""
        return role.certifies is not None and self.desk.policy.protocol.gate(role.certifies).grade == "runner"

    def phase(self, kind: RoleKind) -> tuple[str, ...]:
        """Return the names whose verdicts one phase needs."""
        names = tuple(role.name for role in self.desk.policy.protocol.of_kind(kind))
        return (*names, COMMAND_GATES) if kind == "qa" and self.command_gates else names

    def entry(self, name: str) -> str:
        """Return the node at which a dispatched role begins: its evidence, if Interlock makes it."""
        role = self.desk.policy.protocol.roles.get(name)
        return f"{name}{EVIDENCE_SUFFIX}" if role is not None and self.collects(role) else name

    def budget(self, state: TaskState, name: str = "") -> Budget:
        """Return what is left to spend, for one role's answer or for the task."""
        last = state.get("answers", {}).get(name)
        cause: Cause | None = state.get("cause")
        policy = self.desk.policy
        return Budget(
            reask=last is not None and last["reask"] < policy.max_reasks,
            rework=cause is not None and REWORKABLE[cause] and state.get("attempt", 1) <= policy.max_rework,
            progress=state.get("turn", 1) < len(self.build_order) + policy.max_progress,
        )

    def _standing(self, state: TaskState, kind: RoleKind) -> tuple[Cause | None, list[str]]:
        """Hold every verdict of this attempt against the tree and the files as they are now."""
        desk = self.desk
        found = standing(
            desk.policy.protocol,
            desk.task.gates_required,
            state.get("verdicts", {}),
            attempt=state["attempt"],
            handed_over=state["tree"],
            present=desk.tree(),
            swapped=lambda files: bool(verify_again((CollectedFile(**file) for file in files), desk.root)),
            last=kind == "review",
        )
        if found.cause is None or found.reasons:
            return found.cause, repeated(found.reasons)
        text = _STANDING_TEXT[found.cause]
        gates = [gate for gate in found.gates if gate in desk.task.gates_required] or [MSG_STRICT]
        return found.cause, [reason(gate, text) for gate in gates]

    # -- status nodes --------------------------------------------------------------------------------------------

    def start(self, state: TaskState, config: RunnableConfig) -> Update:
        """Open the run's journal and check that what the task names is there."""
        run_id = str(state.get("run_id") or config.get("configurable", {})["thread_id"])
        desk = self.desk
        gone = [path for path in desk.task.inputs if not exists(desk.root, path)]
        data = {
            "task": desk.task.to_json() | {"base": ""},
            "task_sha256": desk.task.fingerprint(),
            "roster": list(desk.policy.protocol.roles),
            "fingerprints": dict(desk.policy.fingerprints),
            "missing_inputs": gone,
        }
        entry = self.recorder.keep(run_id, "run_started", "run_started", data)
        if entry.data["task_sha256"] != data["task_sha256"]:
            raise RunDamagedError(
                f"the journal says that run {run_id} was started with another task",
                "Start a new run; `interlock verify` shows what the journal holds.",
            )
        gone = entry.data["missing_inputs"]
        return {
            "run_id": run_id,
            "frozen": state.get("frozen", ""),
            "status": None,
            "attempt": 1,
            "turn": 0,
            "step": 0,
            "tree_before": "",
            "tree": "",
            "outcome": "broken" if gone else "holds",
            "cause": "task" if gone else None,
            "fail_reasons": repeated(reason(MSG_STRICT, f"the input {path} does not exist") for path in gone),
            "head": self.recorder.head(run_id),
        }

    def in_progress(self, state: TaskState) -> Update:
        """Dispatch a build role: the first one, the next one, or after a BLOCKED the one that hands over."""
        previous = state["status"]
        last = len(self.build_order) - 1
        attempt, turn, step = state["attempt"], state["turn"] + 1, state["step"]
        if previous == "BLOCKED":
            attempt, turn, step = attempt + 1, 1, last
        elif previous == "IN_PROGRESS":
            step = min(step + 1, last)
        role = self.build_order[step]
        cleared = self.recorder.flush(state)
        self._watch_policy(state)
        if turn == 1:
            set_aside(self.desk.root, self.desk.task.task_id, attempt, state["run_id"])
        before = self.desk.tree()
        data: Update = {"from": previous, "to": "IN_PROGRESS", "by": role.name, "attempt": attempt, "tree": before}
        if previous == "BLOCKED":
            data["fail_reasons"] = state["fail_reasons"]
        entry = self.recorder.keep(state["run_id"], f"{attempt}.{turn}/status/IN_PROGRESS", "status", data)
        self._notice(previous, "IN_PROGRESS", role.name, attempt)
        return {
            **cleared,
            "status": "IN_PROGRESS",
            "attempt": attempt,
            "turn": turn,
            "step": step,
            "tree_before": entry.data["tree"],
            "head": self.recorder.head(state["run_id"]),
        }

    def ready_for_qa(self, state: TaskState) -> Update:
        """Take the hand-over: from here on every verdict is bound to the tree as it is now."""
        role = self.build_order[state["step"]]
        cleared = self.recorder.flush(state)
        tree = self.desk.tree()
        data = {"from": "IN_PROGRESS", "to": "READY_FOR_QA", "by": role.name, "attempt": state["attempt"], "tree": tree}
        entry = self.recorder.keep(state["run_id"], f"{state['attempt']}/status/READY_FOR_QA", "status", data)
        self._notice("IN_PROGRESS", "READY_FOR_QA", role.name, state["attempt"])
        tree = entry.data["tree"]
        found: Update = {"outcome": "holds", "cause": None, "fail_reasons": []}
        if tree.startswith(UNREADABLE):
            why = reason(MSG_STRICT, f"the files in scope cannot be handed over: {tree}")
            found = {"outcome": "broken", "cause": "stale", "fail_reasons": [why]}
        return {
            **cleared,
            "status": "READY_FOR_QA",
            "tree": tree,
            **found,
            "head": self.recorder.head(state["run_id"]),
        }

    def qa_in_progress(self, state: TaskState) -> Update:
        """Dispatch every QA role, by name."""
        names = self.phase("qa")
        text = f"QA dispatched for attempt {state['attempt']}: {', '.join(names)}."
        actions = [f"{name} to judge the tree and answer" for name in names]
        return self._set(state, "QA_IN_PROGRESS", text, actions, extra={"dispatched": list(names)})

    def ready_for_review(self, state: TaskState) -> Update:
        """Dispatch every review role, by name."""
        names = self.phase("review")
        text = f"QA passed. Review dispatched for attempt {state['attempt']}: {', '.join(names)}."
        actions = [f"{name} to review the tree and answer" for name in names]
        return self._set(state, "READY_FOR_REVIEW", text, actions, extra={"dispatched": list(names)})

    def approved(self, state: TaskState) -> Update:
        """Verify everything once more, and only then set APPROVED."""
        run_id = state["run_id"]
        if self.recorder.find(run_id, f"{state['attempt']}/status/APPROVED") is None:
            cause, reasons = self._standing(state, "review")
            if cause is not None:
                return {"outcome": "broken", "cause": cause, "fail_reasons": reasons}
        text = f"Approved in attempt {state['attempt']}: every required gate is certified on tree {state['tree']}."
        return self._set(state, "APPROVED", text, [])

    def blocked(self, state: TaskState) -> Update:
        """Block the task with its reasons, and say whether another round may follow."""
        rework = self.budget(state).rework
        reasons = state["fail_reasons"]
        text = "The task is blocked." if not rework else "The task goes back to the build agent with these reasons."
        hands_over = self.build_order[-1].name
        actions = [f"{hands_over} to rework the task"] if rework else ["a person to read the reasons and decide"]
        return self._set(state, "BLOCKED", text, actions, reasons=reasons, extra={"cause": state.get("cause")})

    def _set(
        self,
        state: TaskState,
        status: Status,
        output: str,
        actions: list[str],
        *,
        reasons: list[str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Update:
        """Set a status as the orchestrator: render the envelope, hold it to the rules, write it down."""
        run_id, previous = state["run_id"], state["status"]
        cleared = self.recorder.flush(state)
        self._watch_policy(state)
        key = f"{state['attempt']}/status/{status}"
        if self.recorder.find(run_id, key) is None:
            passed = held_gates(self.desk, state) if status != "BLOCKED" else frozenset[str]()
            verdicts = state.get("verdicts", {}).values()
            files = [file for row in verdicts if row["attempt"] == state["attempt"] for file in row["evidence"]]
            envelope_text = statement(
                status,
                self.desk.task,
                self.desk.policy.protocol,
                previous=previous,
                gates_passed=passed,
                evidence=files if status != "BLOCKED" else (),
                fail_reasons=reasons or (),
                output=output,
                next_actions=actions,
            )
            envelope = parse(envelope_text).envelope
            data = {
                "from": previous,
                "to": status,
                "by": "orchestrator",
                "attempt": state["attempt"],
                "tree": state.get("tree", ""),
                "envelope": None if envelope is None else asdict(envelope),
                **(extra or {}),
            }
            self.recorder.keep(run_id, key, "status", data)
        self._notice(previous, status, "orchestrator", state["attempt"], reasons or [])
        return {**cleared, "status": status, "outcome": "holds", "head": self.recorder.head(run_id)}

    # -- role nodes ----------------------------------------------------------------------------------------------

    def build_role(self, role: Role) -> Node:
        """Return the node that asks a build role; it runs alone, so it may write what waits in the outbox.

        The reasons of the round before stay until the answer itself blocks the task: a re-ask needs them too.
        """
        after = self.after_role(role)

        def node(state: TaskState) -> Update:
            cleared = self.recorder.flush(state)
            update = ask_role(self.desk, role, state, self._store(state))
            update["outbox"] = {**cleared.get("outbox", {}), **update["outbox"]}
            answers = update["answers"]
            if after({**state, "answers": answers}) == "BLOCKED":
                answer = answers[role.name]
                update |= {"cause": CAUSE[answer["outcome"]], "fail_reasons": answer["reasons"]}
            return {**update, "head": self.recorder.head(state["run_id"])}

        return node

    def judging_role(self, role: Role) -> Node:
        """Return the node that asks a QA or review role; it may run beside others and writes no journal line."""

        def node(state: TaskState) -> Update:
            return ask_role(self.desk, role, state, self._store(state))

        return node

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
            made = run_command_gate(gate, root=desk.root, binding=work)
        else:
            made = collect(gate_id, target=desk.task.page or "", root=desk.root, binding=work, categories=gate.evidence)
        after = binding(desk, state, desk.tree())
        report = judge_collection(made, root=desk.root, protocol=protocol, binding=after, gate=gate_id)
        return replace(made, ok=report.ok, findings=report.findings)

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
            "outbox": {f"{state['attempt']}/{name}/evidence": event},
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
        return {f"{state['attempt']}/{name}/{suffix}": Event(type="evidence", data=data, order=order)}

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

    def verdicts(self, kind: RoleKind) -> Node:
        """Return the node that counts the verdicts of a phase and holds them against the present tree."""

        def node(state: TaskState) -> Update:
            if tally(self.phase(kind), state.get("verdicts", {}), state["attempt"]) == "pending":
                return {}
            cleared = self.recorder.flush(state)
            cause, reasons = self._standing(state, kind)
            outcome: Outcome = "holds" if cause is None else "broken"
            return {
                **cleared,
                "outcome": outcome,
                "cause": cause,
                "fail_reasons": reasons,
                "head": self.recorder.head(state["run_id"]),
            }

        return node

    # -- edges ---------------------------------------------------------------------------------------------------

    def after_status(self, state: TaskState) -> str:
        """Route after a check of the orchestrator's own."""
        return route(state["status"], "orchestrator", state["outcome"], "pending", self.budget(state))

    def dispatched(self, state: TaskState) -> str:
        """Return the build role whose step it is."""
        return self.build_order[state["step"]].name

    def after_verdicts(self, kind: RoleKind) -> Callable[[TaskState], str]:
        """Return the edge after a count of verdicts."""

        def edge(state: TaskState) -> str:
            count = tally(self.phase(kind), state.get("verdicts", {}), state["attempt"])
            return route(state["status"], "orchestrator", state["outcome"], count, self.budget(state))

        return edge

    def after_role(self, role: Role) -> Callable[[TaskState], str]:
        """Return the edge after a role's answer."""

        def edge(state: TaskState) -> str:
            outcome = state.get("answers", {})[role.name]["outcome"]
            return route(state["status"], role.kind, outcome, "pending", self.budget(state, role.name))

        return edge

    def after_approved(self, state: TaskState) -> str:
        """Route after the last check: to the end, or to BLOCKED when something no longer held."""
        return route(state["status"], "orchestrator", state["outcome"], "pass", self.budget(state))

    def after_evidence(self, role: Role) -> Callable[[TaskState], str]:
        """Return the edge after a collector: to the role, or past it when there is nothing to judge."""
        return lambda state: role.name if own_collection(state, role.name) is not None else "TALLY"

    # -- helpers -------------------------------------------------------------------------------------------------

    def _watch_policy(self, state: TaskState) -> None:
        self.recorder.watch_policy(self.desk.root, state["run_id"], self.desk.policy.fingerprints["config"])

    def _store(self, state: TaskState) -> RunStore:
        return RunStore(self.desk.root, state["run_id"])

    def _notice(
        self, previous: Status | None, status: Status, by: str, attempt: int, reasons: list[str] | None = None
    ) -> None:
        get_stream_writer()(
            {"kind": "status", "from": previous, "to": status, "by": by, "attempt": attempt, "reasons": reasons or []}
        )
