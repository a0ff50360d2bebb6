"""The nodes of the status machine: each collects facts, calls the machine, and writes what happened.

They stand in the order in which a run comes to them: the start, the dispatch and the answer of a build role, the
hand-over, the evidence and the answers of judges, the count of their verdicts, the approval; then BLOCKED and the
questions to a person. The edges between them follow, and what several nodes do.

A node may run again from its first line after a crash. So whatever it does has a key in the journal, and a line that is
there already is taken over as a fact. Nodes that run side by side write no line: they leave theirs in the outbox of the
state, and the next node that runs alone writes them.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import asdict, replace
from typing import Any, Final, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.types import interrupt

from interlock.agents.ask import REMOTE
from interlock.core.text import few
from interlock.envelope import parse
from interlock.envelope.protocol import ANYBODY, GateSpec, Role, RoleKind, Status
from interlock.gates.collect import Look, collect
from interlock.gates.command import run_command_gate
from interlock.gates.errors import CollectorError
from interlock.gates.judge import judge_collection, verify_again
from interlock.gates.manifest import Binding, CollectedFile, Collection, to_json
from interlock.gates.sealed import SealError
from interlock.gates.shared import shared
from interlock.graph.errors import RunDamagedError
from interlock.graph.task.asking import CAUSE, ask_role, changed_since
from interlock.graph.task.carried import save_beside
from interlock.graph.task.comments import to_give
from interlock.graph.task.context import UNREADABLE, TaskContext, binding, held_gates, own_collection, role_order
from interlock.graph.task.machine import (
    COMMAND_GATES,
    REWORKABLE,
    Budget,
    Cause,
    CitedFile,
    Outcome,
    Tally,
    Verdict,
    judges,
    objections,
    recheck,
    route,
    tally,
    waived,
)
from interlock.graph.task.orchestrator import MSG_STRICT, reason, repeated, statement
from interlock.graph.task.questions import AnswerKind, Question, decision_key
from interlock.graph.task.record import Recorder, open_journal, set_aside
from interlock.graph.task.sealing import base_of, collect_sealed, seal_run, sealed_gates
from interlock.graph.task.state import (
    CollectedEvidence,
    Event,
    Objection,
    Outside,
    TaskState,
    Waiver,
    excused_gates,
    objected_before,
    round_of,
    waived_trees,
)
from interlock.graph.task.store import RunStore
from interlock.graph.task.trees import (
    PUT_BACK,
    absent_files,
    approved_tree,
    changed_outside,
    holders,
    snapshot,
    to_put_back,
)

EVIDENCE_SUFFIX = ".evidence"
QA_VERDICTS = "QA_VERDICTS"
REVIEW_VERDICTS = "REVIEW_VERDICTS"

Update: TypeAlias = dict[str, Any]
Node: TypeAlias = Callable[[TaskState], Update]

_RECHECK_TEXT: Mapping[Cause, str] = {
    "stale": "its verdict went stale, because files in scope changed after the hand-over",
    "evidence": "an evidence file of its verdict is no longer the one that was judged",
    "gate": "nobody entitled to certify this gate has passed it on the present tree",
    "waiver": "nothing else is missing, and a person has not waived it for the present tree",
}

_ANSWERED: Final[Mapping[AnswerKind, str]] = {
    "correct": "{by} corrected the task, which is now as assigned. {reason}",
    "refuse": "the objection is refused by {by}: {reason}",
    "accept": "the objection is accepted by {by}: leave this gate, finish everything else, and hand over. {reason}",
}
"""What a person's answer to its objection becomes in the next assignment of the build role."""

_NO_REVIEW: Final = "No review was required: the roster has no review role, and a command decides a required gate."
_UNREVIEWED: Final = {"review_required": False}
"""What the journal says beside READY_FOR_REVIEW and APPROVED where no role reviews."""


class Nodes:
    """The node functions of one task."""

    def __init__(self, context: TaskContext, recorder: Recorder) -> None:
        self.context = context
        self.recorder = recorder
        protocol = context.policy.protocol
        build = protocol.of_kind("build")
        # The role that hands over comes last, and after a BLOCKED it alone works again (`in_progress`).
        self.build_order = (
            *(role for role in build if not role.hands_over),
            *(role for role in build if role.hands_over),
        )
        gates = (protocol.gate(gate_id) for gate_id in context.task.gates_required)
        self.command_gates = tuple(gate for gate in gates if gate.by_command)

    # -- facts ---------------------------------------------------------------------------------------------------

    def phase(self, kind: RoleKind) -> tuple[str, ...]:
        """Return the names whose verdicts one phase needs; see `machine.judges`."""
        return judges(self.context.policy.protocol, self.context.task.gates_required, kind)

    @property
    def reviewed(self) -> bool:
        """Whether a review role judges the work; without one the commands of its gates do alone."""
        return bool(self.context.policy.protocol.of_kind("review"))

    def collects(self, role: Role) -> bool:
        """Return whether Interlock makes the evidence of this role's gate itself."""
        return role.certifies is not None and self.context.policy.protocol.gate(role.certifies).grade == "runner"

    def entry(self, name: str) -> str:
        """Return the node at which a dispatched role begins: its evidence, if Interlock makes it."""
        role = self.context.policy.protocol.roles.get(name)
        return f"{name}{EVIDENCE_SUFFIX}" if role is not None and self.collects(role) else name

    def budget(self, state: TaskState, name: str = "") -> Budget:
        """Return what is left to spend, for one role's answer or for the task."""
        policy, last = self.context.policy, state.get("answers", {}).get(name)
        cause: Cause | None = state["cause"]
        # The first round is no rework, and neither is one for a task that a person corrected.
        reworked = state["attempt"] - 1 - state.get("corrected", 0)
        # Each question that a person answers in an attempt is followed by one dispatch more, which is no progress.
        answered = state.get("questions", 0) - state.get("questions_before", 0)
        dispatched = state["turn"] - answered
        return Budget(
            reask=last is not None and last["reask"] < policy.max_reasks,
            rework=cause is not None and REWORKABLE[cause] and reworked < policy.max_rework,
            progress=dispatched < len(self.build_order) + policy.max_progress,
        )

    # -- the start, and work -------------------------------------------------------------------------------------

    def start(self, state: TaskState, config: RunnableConfig) -> Update:
        """Open the run's journal, unless that was done, and check that what the task names is there."""
        run_id = str(state.get("run_id") or config.get("configurable", {})["thread_id"])
        context = self.context
        # A graph that was started without `start_run` freezes here what its sealed gates need.
        sealing = context.policy.sealing or seal_run(context.root, context.task, context.policy)
        entry = open_journal(self.recorder, run_id, context.root, context.task, context.policy, sealing)
        # Taken from the line and not looked up again: a node that is repeated must come to the same end.
        gone = entry.data["missing_inputs"]
        return {
            "run_id": run_id,
            "frozen": state.get("frozen", ""),
            "status": None,
            "attempt": 1,
            "turn": 0,
            "step": 0,
            "origin": entry.data.get("origin", ""),
            "tree_before": "",
            "tree": "",
            "sealing": dict(sealing),
            "outside": [],
            "outcome": "broken" if gone else "holds",
            "cause": "task" if gone else None,
            "fail_reasons": repeated(reason(MSG_STRICT, f"the input {path} does not exist") for path in gone),
            "head": self.recorder.head(run_id),
        }

    def in_progress(self, state: TaskState) -> Update:
        """Dispatch a build role: the first one, the next one, or after a BLOCKED the one that hands over."""
        previous, last = state["status"], len(self.build_order) - 1
        attempt, turn, step = state["attempt"], state["turn"] + 1, state["step"]
        cleared: Update = {}
        if previous == "BLOCKED" and state.get("same_attempt"):
            cleared = {"same_attempt": False}
        elif previous == "BLOCKED":
            # The other build roles have done their part; the reasons go to the one that hands over.
            attempt, turn, step = attempt + 1, 1, last
            cleared = {"declined": {}, "questions_before": state.get("questions", 0)}
        elif previous == "IN_PROGRESS":
            step = min(step + 1, last)
        role = self.build_order[step]
        # The events of the roles that ran side by side before this are written first, so that the journal has them in
        # order.
        cleared |= self.recorder.flush(state)
        self._watch_policy(state)
        if turn == 1:
            # Evidence of an older run under the same attempt would else lie where this attempt is judged.
            set_aside(self.context.root, self.context.task.task_id, attempt, state["run_id"])
        # What is there now is what a hand-over is compared with; RUN610 refuses one that changed nothing.
        before = self.context.tree()
        data: Update = {"from": previous, "to": "IN_PROGRESS", "by": role.name, "attempt": attempt, "tree": before}
        if previous is None:
            # Only the first dispatch keeps a snapshot: all changes of the run are shown against it.
            data["snapshot"] = self._snapshot(state)
        if previous == "BLOCKED":
            data["fail_reasons"] = state["fail_reasons"]
        data |= to_give(self.context, self._store(state))
        entry = self.recorder.keep(state["run_id"], f"{attempt}.{turn}/status/IN_PROGRESS", "status", data)
        self._notice(previous, "IN_PROGRESS", role.name, attempt)
        return {
            **cleared,
            "status": "IN_PROGRESS",
            "attempt": attempt,
            "turn": turn,
            "step": step,
            # From the line, not from `before`: after a crash the agent may have worked already.
            "tree_before": entry.data["tree"],
            "first_snapshot": state.get("first_snapshot") or entry.data.get("snapshot", ""),
        }

    def build_role(self, role: Role) -> Node:
        """Return the node that asks a build role; it runs alone, so it may write what waits in the outbox.

        The reasons of the round before stay until the answer itself blocks the task: a re-ask needs them too.
        """
        after = self.after_role(role)

        def node(state: TaskState) -> Update:
            cleared = self.recorder.flush(state)
            update = ask_role(self.context, role, state, self._store(state))
            update["outbox"] = {**cleared.get("outbox", {}), **update["outbox"]}
            answers = update["answers"]
            # The edge is asked in advance, since a node cannot know afterwards where it led.
            if after({**state, "answers": answers}) == "BLOCKED":
                answer = answers[role.name]
                update |= {"cause": CAUSE[answer["outcome"]], "fail_reasons": answer["reasons"]}
            return update

        return node

    def ready_for_qa(self, state: TaskState) -> Update:
        """Take the hand-over: from here on every verdict is bound to the tree as it is now."""
        role, attempt = self.build_order[state["step"]], state["attempt"]
        cleared = self.recorder.flush(state)
        key = f"{attempt}/status/READY_FOR_QA"
        entry = self.recorder.find(state["run_id"], key)
        if entry is None:
            # Put back first, then look: the tree that is handed over must be the one that stays.
            self._put_back(state)
            handed_over = self._snapshot(state)
            outside = self._outside(state, handed_over)
            data: Update = {"from": "IN_PROGRESS", "to": "READY_FOR_QA", "by": role.name, "attempt": attempt}
            data |= {"tree": self.context.tree(), "snapshot": handed_over, **({"outside": outside} if outside else {})}
            entry = self.recorder.keep(state["run_id"], key, "status", data)
        self._notice("IN_PROGRESS", "READY_FOR_QA", role.name, attempt)
        tree, outside = entry.data["tree"], entry.data.get("outside", [])
        if outside:
            get_stream_writer()({"kind": "outside", "files": outside})
        line = self.recorder.find(state["run_id"], f"{attempt}/{PUT_BACK}")
        restored: list[str] = [] if line is None else line.data["paths"]
        if restored:
            get_stream_writer()({"kind": PUT_BACK, "files": restored})
        result: Update = {"outcome": "holds", "cause": None, "fail_reasons": []}
        # No verdict can be bound to it. The work goes back, as with files that changed: the agent can make them
        # readable.
        if tree.startswith(UNREADABLE):
            why = reason(MSG_STRICT, f"the files in scope cannot be handed over: {tree}")
            result = {"outcome": "broken", "cause": "stale", "fail_reasons": [why]}
        # Nothing is left of the work once the tests are as they were. Each sealed gate says so, since each would fail.
        elif restored and tree == state["tree_before"]:
            why = f"the work changed nothing but what keeps its base content, and was put back: {few(restored)}"
            gates = sealed_gates(self.context.task, self.context.policy)
            result = {"outcome": "broken", "cause": "gate", "fail_reasons": [reason(gate.id, why) for gate in gates]}
        snapshots = {"snapshot": entry.data["snapshot"], "outside": outside}
        return {**cleared, "status": "READY_FOR_QA", "tree": tree, **snapshots, **result}

    def _put_back(self, state: TaskState) -> None:
        """Put back what keeps its base content; see `graph.task.trees`.

        The line comes first: a node that runs again after a crash puts back what is left of it, and the tree as the
        agent left it is known.
        """
        context, sealing, run_id = self.context, state["sealing"], state["run_id"]
        key = f"{state['attempt']}/{PUT_BACK}"
        line, base = self.recorder.find(run_id, key), base_of(sealing)
        if base is None:
            return
        work = self._snapshot(state) if line is None else line.data["work"]
        with suppress(SealError):  # of what cannot be read, the gates will speak
            paths = to_put_back(context.task, sealing, work, lambda paths: holders(context.root, run_id, paths))
            if paths:
                data = {"attempt": state["attempt"], "work": work, "paths": paths}
                self.recorder.keep(run_id, key, PUT_BACK, data)
                base.store.restore(base.tree, [base.inside(path) for path in paths])

    # -- evidence ------------------------------------------------------------------------------------------------

    def qa_in_progress(self, state: TaskState) -> Update:
        """Dispatch every QA role, by name."""
        return self._dispatch(state, "QA_IN_PROGRESS", self.phase("qa"), "QA dispatched", "judge")

    def evidence(self, role: Role) -> Node:
        """Return the node that makes the evidence of a role's gate with Interlock's own collector."""
        gate_id = role.certifies or ""

        def node(state: TaskState) -> Update:
            try:
                made = self._collect(role.name, gate_id, state)
            except CollectorError as error:
                return self._collector_failed(state, role.name, gate_id, error)
            key = f"{round_of(state)}/{role.name}/evidence"
            return {"collected": {role.name: _kept(state, made)}, "outbox": {key: self._event(role.name, made)}}

        return node

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
            outbox[f"{round_of(state)}/{COMMAND_GATES}/evidence/{gate.id}"] = self._event(COMMAND_GATES, made[-1])
            collected[f"{COMMAND_GATES}/{gate.id}"] = _kept(state, made[-1])
        failed = [item for item in made if not item.ok]
        verdict = Verdict(
            role=COMMAND_GATES,
            result="FAIL" if failed else "PASS",
            cause="gate",
            attempt=state["attempt"],
            # If files changed between two commands, the verdict carries a tree that differs, and so it is stale.
            tree=next((item.binding.tree for item in made if item.binding.tree != state["tree"]), state["tree"]),
            gates=[item.gate for item in made if item.ok],
            evidence=[CitedFile(**asdict(file)) for item in made for file in item.files],
            reasons=[why for item in failed for why in _reasons(item)],
            failed=[item.gate for item in failed],
        )
        return {"verdicts": {COMMAND_GATES: verdict}, "collected": collected, "outbox": outbox}

    def _collect(self, name: str, gate_id: str, state: TaskState) -> Collection:
        """Make and keep the evidence of a gate; made while the files changed, it does not fit the files after it."""
        get_stream_writer()({"kind": "collecting", "role": name, "gate": gate_id})
        context, protocol = self.context, self.context.policy.protocol
        # Bound to the tree before the work of the collector, and judged against the one after it: evidence that was
        # made while files changed fits neither.
        made = self._made(protocol.gate(gate_id), state, binding(context, state, context.tree()))
        after = binding(context, state, context.tree())
        report = judge_collection(made, root=context.root, protocol=protocol, binding=after)
        made = replace(made, ok=report.ok, findings=report.findings)
        # Kept by digest before anybody learns of it: a later attempt or run writes the same paths.
        self.recorder.keep_files(context.root, made)
        findings = [item.message for item in made.findings]
        _report_collected(gate_id, ok=made.ok, files=[file.path for file in made.files], findings=findings)
        save_beside(context.root, state["run_id"], context.task, context.policy)
        return made

    def _made(self, gate: GateSpec, state: TaskState, work: Binding) -> Collection:
        """Run what makes the evidence of a gate: a sealed command, a command in the checkout, or a look at a page."""
        context = self.context
        if gate.id in context.policy.seals:
            return collect_sealed(
                context.root,
                context.task,
                context.policy,
                gate,
                state["sealing"],
                binding=work,
                present=context.files,
                outside=_named_outside(context, state),
                progress=_progress(gate.id),
            )
        if gate.command:
            return run_command_gate(gate, root=context.root, binding=work)
        return collect(
            gate.id,
            target=context.task.page or "",
            root=context.root,
            binding=work,
            categories=gate.evidence,
            look=Look(context.policy.look_seconds),
        )

    def _collector_failed(self, state: TaskState, name: str, gate_id: str, error: CollectorError) -> Update:
        why = reason(gate_id, f"the evidence could not be made: {error.message} {error.fix}")
        verdict = Verdict(
            role=name,
            result="NONE",
            cause="collector",
            attempt=state["attempt"],
            tree=self.context.tree(),
            gates=[],
            evidence=[],
            reasons=[why],
        )
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

    def _event(self, name: str, made: Collection) -> Event:
        data = {
            "role": name,
            "gate": made.gate,
            "ok": made.ok,
            "tree": made.binding.tree,
            "manifest": made.manifest,
            "files": [{"key": file.key, "path": file.path, "sha256": file.sha256} for file in made.files],
            "findings": [
                {"code": item.code, "level": item.level, "message": item.message[:500], "found": item.found[:500]}
                for item in made.findings[:50]
            ],
        }
        return Event(type="evidence", data=data, order=[role_order(self.context, name), 0])

    # -- judges and their verdicts ---------------------------------------------------------------------------------

    def judging_role(self, role: Role) -> Node:
        """Return the node that asks a QA or review role; it may run beside others and writes no journal line."""
        return lambda state: ask_role(self.context, role, state, self._store(state))

    def verdicts(self, kind: RoleKind) -> Node:
        """Return the node that counts the verdicts of a phase and holds them against the present tree."""

        def node(state: TaskState) -> Update:
            # Roles run side by side, and this node follows each of them; only the last one is counted after.
            if self._tally(state, kind) == "pending":
                return {}
            cleared = self.recorder.flush(state)
            cause, reasons = self._recheck(state, kind)
            outcome: Outcome = "holds" if cause is None else "waive" if cause == "waiver" else "broken"
            return {**cleared, "outcome": outcome, "cause": cause, "fail_reasons": reasons}

        return node

    def _recheck(self, state: TaskState, kind: RoleKind, *, contents: bool = False) -> tuple[Cause | None, list[str]]:
        """Compare every verdict of this attempt with the tree and the files as they are now; see `TaskContext.tree`."""
        context, protocol = self.context, self.context.policy.protocol
        checked = recheck(
            protocol,
            context.task.gates_required,
            state.get("verdicts", {}),
            attempt=state["attempt"],
            handed_over=state["tree"],
            present=context.tree(contents=contents),
            swapped=lambda files: bool(verify_again((CollectedFile(**file) for file in files), context.root)),
            last=kind == "review",
            excused=excused_gates(state),
            waivers=waived_trees(state),
        )
        if checked.cause is None:
            return None, []
        reasons = [reason(gate, text) for gate, text in state.get("declined", {}).items()]
        changed = ""
        if checked.cause == "stale":
            changed = changed_since(self.context, state)
            for gate in waived_trees(state):
                by = state.get("waivers", {})[gate]["by"]
                why = f"the waiver of {by} is void, because files in scope changed after it{changed}"
                reasons.append(reason(gate, why))
        if checked.reasons:
            return checked.cause, repeated([*reasons, *checked.reasons])
        text = _RECHECK_TEXT[checked.cause] + changed
        required = [gate for gate in checked.gates if gate in context.task.gates_required]
        reasons += [reason(gate, text) for gate in required if protocol.gate(gate).certifier != ANYBODY]
        return checked.cause, reasons or [reason(MSG_STRICT, text)]

    def ready_for_review(self, state: TaskState) -> Update:
        """Dispatch every review role, by name; where there is none, say so."""
        missing = sorted(excused_gates(state) - held_gates(self.context, state))
        but = f", but for {', '.join(missing)}, to which an objection was accepted" if missing else ""
        if self.reviewed:
            done = f"QA passed{but}. Review dispatched"
            return self._dispatch(state, "READY_FOR_REVIEW", self.phase("review"), done, "review")
        text = f"QA passed{but} in attempt {state['attempt']}. {_NO_REVIEW}"
        actions = ["orchestrator to verify every gate again"]
        return self._set(state, "READY_FOR_REVIEW", text, actions, extra={"dispatched": [], **_UNREVIEWED})

    def _dispatch(self, state: TaskState, status: Status, names: tuple[str, ...], done: str, verb: str) -> Update:
        text = f"{done} for attempt {state['attempt']}: {', '.join(names)}."
        actions = [f"{name} to {verb} the tree and answer" for name in names]
        return self._set(state, status, text, actions, extra={"dispatched": list(names)})

    def approved(self, state: TaskState) -> Update:
        """Verify everything once more, and only then set APPROVED."""
        # A line that is there was written after this check; the files may have changed since, by whomever.
        if self.recorder.find(state["run_id"], f"{round_of(state)}/status/APPROVED") is None:
            # Between the last count and this node another agent, or a person, may have written into the scope.
            self.recorder.watch(state["run_id"], anew=True)
            cause, reasons = self._recheck(state, "review", contents=True)
            if cause is not None:
                return {"outcome": "broken", "cause": cause, "fail_reasons": reasons}
        text = f"Approved in attempt {state['attempt']}: every required gate is certified on tree {state['tree']}."
        waivers = {gate: state.get("waivers", {})[gate] for gate in sorted(self._waived(state))}
        for gate, row in waivers.items():
            text += f"\n{gate} was waived for it by {row['by']}: {row['reason']}"
        extra: Update = {"waived": {gate: row["by"] for gate, row in waivers.items()}} if waivers else {}
        if tree := approved_tree(self.context.root, self.context.task, state["sealing"], state.get("snapshot", "")):
            extra["approved_tree"] = tree
        if absent := absent_files(self.context.root, state):
            text += f"\nRUN616: the hand-over names files that do not exist: {few(absent)}."
        if not self.reviewed:
            text, extra = f"{text} {_NO_REVIEW}", {**extra, **_UNREVIEWED}
        return self._set(state, "APPROVED", text, [], extra=extra)

    def _waived(self, state: TaskState) -> frozenset[str]:
        return waived(self.context.policy.protocol, waived_trees(state), state["tree"])

    # -- BLOCKED, and what a person decides ------------------------------------------------------------------------

    def blocked(self, state: TaskState) -> Update:
        """Block the task with its reasons, and record whether another round may follow."""
        rework, reasons = self.budget(state).rework, state["fail_reasons"]
        text, actions = "The task is blocked.", ["a person to read the reasons and decide"]
        if rework:
            text = "The task goes back to the build agent with these reasons."
            actions = [f"{self.build_order[-1].name} to rework the task"]
        extra: Update = {"cause": state["cause"]}
        # What the reasons object to is read from their texts again: it is the same function that judged the answer.
        required = self.context.task.gates_required
        objected = objections(self.context.policy.protocol, required, reasons, objected_before(state))
        if state["cause"] != "objection" or not objected:
            return self._set(state, "BLOCKED", text, actions, reasons=reasons, extra=extra)
        text, actions = "An agent objects to a gate, and a person decides.", ["a person to answer the objection"]
        now = self._snapshot(state)
        extra |= {"question": state.get("questions", 0) + 1, "snapshot": now}
        if outside := self._outside(state, now):
            extra["outside"] = outside
        update = self._set(state, "BLOCKED", text, actions, reasons=reasons, extra=extra)
        return {**update, "outcome": "objection", "objected": objected}

    def objection(self, state: TaskState) -> Update:
        """Wait for a person's answer to an objection; what it says becomes the next dispatch."""
        gates = state.get("objected", {})
        others = tuple(text for text in state["fail_reasons"] if text.partition(":")[0] not in gates)
        role = self.build_order[state["step"]].name
        answer = self._decision(state, "objection", role, gates, self.context.tree(), others)
        kind: AnswerKind = answer["answer"]
        text = _ANSWERED[kind].format(by=answer["by"], reason=answer["reason"])
        rows = {gate: Objection(attempt=state["attempt"], reason=why, answer=kind) for gate, why in gates.items()}
        update: Update = {
            "questions": answer["number"],
            "corrected": state.get("corrected", 0) + (kind == "correct"),
            # A corrected task begins a new attempt; other answers go on in the same one, whose turn was interrupted.
            "same_attempt": kind != "correct",
            "objections": {**state.get("objections", {}), **rows},
            "fail_reasons": [*(reason(gate, text) for gate in gates), *others],
            "outcome": "answered",
        }
        if kind == "correct":
            update["task"] = answer["task"]
        return update

    def waiver(self, state: TaskState) -> Update:
        """Wait for a person to waive a gate for the tree that was handed over and judged, or to decline."""
        gate = state["fail_reasons"][0].partition(":")[0]
        rows = [row for row in state.get("verdicts", {}).values() if row["attempt"] == state["attempt"]]
        verdicts = tuple(text for row in rows for text in row["reasons"] if gate in row.get("failed", ()))
        objected = state.get("objections", {})[gate]
        answer = self._decision(state, "waiver", "", {gate: objected["reason"]}, state["tree"], verdicts)
        update: Update = {"questions": answer["number"]}
        if answer["answer"] == "waive":
            row = Waiver(tree=state["tree"], by=answer["by"], reason=answer["reason"], attempt=state["attempt"])
            return {**update, "waivers": {**state.get("waivers", {}), gate: row}}
        declined = Objection(attempt=objected["attempt"], reason=objected["reason"], answer="decline")
        why = f"{answer['by']} declined to waive this gate: {answer['reason']}"
        return {
            **update,
            "objections": {**state.get("objections", {}), gate: declined},
            "declined": {**state.get("declined", {}), gate: why},
        }

    def _decision(
        self, state: TaskState, kind: Any, role: str, gates: Mapping[str, str], tree: str, reasons: tuple[str, ...]
    ) -> Mapping[str, Any]:
        """Ask a person, and return the answer: the journal line that `answer_question` wrote.

        Raises:
            RunDamagedError: The question was resumed, and the journal has no answer to it.
        """
        number = state.get("questions", 0) + 1
        # The value that resumes this is only a sign: the answer itself is the journal line, which a person wrote
        # under the lock.
        interrupt(Question(number, kind, role, gates, tree, state["attempt"], reasons).to_json())
        entry = self.recorder.find(state["run_id"], decision_key(number))
        if entry is None:
            raise RunDamagedError(
                f"the journal has no answer to question {number} of run {state['run_id']}",
                "Answer with `interlock answer`; nothing else takes such a run on.",
            )
        return entry.data

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
            return route(
                state["status"], "orchestrator", state["outcome"], self._tally(state, kind), self.budget(state)
            )

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

    def _tally(self, state: TaskState, kind: RoleKind) -> Tally:
        return tally(self.phase(kind), state.get("verdicts", {}), state["attempt"], excused_gates(state))

    # -- what several nodes do -------------------------------------------------------------------------------------

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
        # Edited settings change nothing in this run, but whoever reads the journal must know that they differ.
        self._watch_policy(state)
        key = f"{round_of(state)}/status/{status}"
        if self.recorder.find(run_id, key) is None:
            # BLOCKED lists no gate as passed and cites nothing, whatever was passed before (Strict Envelope §4).
            passed = held_gates(self.context, state) if status != "BLOCKED" else frozenset[str]()
            verdicts = [row for row in state.get("verdicts", {}).values() if row["attempt"] == state["attempt"]]
            files = [file for row in verdicts for file in row["evidence"]]
            envelope_text = statement(
                status,
                self.context.task,
                self.context.policy.protocol,
                previous=previous,
                gates_passed=passed,
                evidence=files if status != "BLOCKED" else (),
                fail_reasons=reasons or (),
                output=output,
                next_actions=actions,
                waived=self._waived(state) if status == "APPROVED" else (),
                excused=excused_gates(state),
            )
            envelope = parse(envelope_text).envelope
            data: Update = {"from": previous, "to": status, "by": "orchestrator", "attempt": state["attempt"]}
            data |= {"tree": state.get("tree", ""), "envelope": None if envelope is None else asdict(envelope)}
            data |= extra or {}
            self.recorder.keep(run_id, key, "status", data)
        cause = state["cause"] if status == "BLOCKED" else None
        self._notice(previous, status, "orchestrator", state["attempt"], reasons or [], cause)
        return {**cleared, "status": status, "outcome": "holds"}

    def _store(self, state: TaskState) -> RunStore:
        return RunStore(self.context.root, state["run_id"])

    def _snapshot(self, state: TaskState) -> str:
        """Store the files of the checkout as they are now."""
        return snapshot(self.context.root, self.context.task, self.context.policy, state["sealing"])

    def _outside(self, state: TaskState, now: str) -> list[Outside]:
        """Return the files outside the scope that differ in a snapshot from the first one, each with its holder."""
        context = self.context
        names = (state.get("first_snapshot", ""), now)
        run_id = state["run_id"] if context.policy.reserve else ""
        try:
            return changed_outside(context.root, context.task, state["sealing"], names, run_id)
        except SealError:
            return []

    def _watch_policy(self, state: TaskState) -> None:
        self.recorder.watch_policy(self.context.root, state["run_id"], self.context.policy.fingerprints)

    def _notice(
        self,
        previous: Status | None,
        status: Status,
        by: str,
        attempt: int,
        reasons: list[str] | None = None,
        cause: Cause | None = None,
    ) -> None:
        """Say in the stream that the status moved."""
        step: Update = {"kind": "status", "from": previous, "to": status, "by": by, "attempt": attempt}
        get_stream_writer()({**step, "reasons": reasons or [], "cause": cause})


def _kept(state: TaskState, made: Collection) -> CollectedEvidence:
    """Return a collection as the state keeps it."""
    tree = made.binding.tree
    return CollectedEvidence(attempt=state["attempt"], tree=tree, collection=to_json(made), error="", fix="")


def _report_collected(gate: str, *, ok: bool, files: list[str], findings: list[str]) -> None:
    get_stream_writer()({"kind": "collected", "gate": gate, "ok": ok, "files": files, "findings": findings})


def _reasons(made: Collection) -> list[str]:
    """Return the errors of a gate as fail reasons, then its warnings."""
    errors = [item for item in made.findings if item.level == "error"]
    texts = [f"{item.message} Fix: {item.fix} Found: {item.found}" for item in errors]
    texts += [f"{item.message} {item.fix}" for item in made.findings if item.level == "warning"]
    return [reason(made.gate, text.removeprefix(f"{made.gate}: ")) for text in texts]


def _named_outside(context: TaskContext, state: TaskState) -> tuple[str, ...]:
    """Return the changed files outside the scope that a log may name: those that a remote reader may know of."""
    paths = [row["path"] for row in state.get("outside", [])]
    visible = shared(context.root, paths) if REMOTE in context.runners.values() else paths
    return tuple(path for path in paths if path in visible)


def _progress(gate_id: str) -> Callable[[str], None]:
    """Return what writes a line of progress, also from the threads that read what observers send."""
    write, context = get_stream_writer(), copy_context()
    return lambda line: context.copy().run(write, {"kind": "gate", "gate": gate_id, "line": line})
