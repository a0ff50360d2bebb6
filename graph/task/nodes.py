"""The nodes of the status machine: each collects facts, calls the machine, and writes what happened."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer

from interlock.core.text import few
from interlock.envelope import parse
from interlock.envelope.protocol import ANYBODY, Role, RoleKind, Status
from interlock.gates.judge import verify_again
from interlock.gates.manifest import CollectedFile
from interlock.gates.response import input_exists
from interlock.graph.errors import RunDamagedError
from interlock.graph.task.asking import CAUSE, ask_role, may_ask_again, reask_number
from interlock.graph.task.changes import changes_outside, holders, keep_listing
from interlock.graph.task.collecting import Node, Update
from interlock.graph.task.comments import to_give
from interlock.graph.task.context import UNREADABLE, TaskContext, held_gates, own_collection
from interlock.graph.task.deciding import Deciding
from interlock.graph.task.hand_over_writer import keep_hand_over
from interlock.graph.task.machine import (
    RESUMED,
    REWORKABLE,
    Budget,
    Cause,
    Outcome,
    Tally,
    certifiers,
    judges,
    objections,
    recheck,
    route,
    tally,
    unjudged,
    waived,
)
from interlock.graph.task.orchestrator import MSG_STRICT, reason, repeated, statement
from interlock.graph.task.put_back import put_back
from interlock.graph.task.record import Recorder, set_aside, undelivered
from interlock.graph.task.sealing import seal_run, sealed_gates
from interlock.graph.task.state import (
    Outside,
    TaskState,
    absent_claims,
    excused_gates,
    objected_before,
    round_of,
    waived_trees,
)

EVIDENCE_SUFFIX = ".evidence"
QA_VERDICTS = "QA_VERDICTS"
REVIEW_VERDICTS = "REVIEW_VERDICTS"

_RECHECK_TEXT: Mapping[Cause, str] = {
    "stale": "its verdict went stale, because files in scope changed after the hand-over",
    "evidence": "an evidence file of its verdict is no longer the one that was judged",
    "gate": "nobody entitled to certify this gate has passed it on the present tree",
    "waiver": "nothing else is missing, and a person has not waived it for the present tree",
}


_NO_REVIEW: Final = "No review was required: the roster has no review role, and a command decides a required gate."
_UNREVIEWED: Final = {"review_required": False}
"""What the journal says beside READY_FOR_REVIEW and APPROVED where no role reviews."""


class Nodes(Deciding):
    """The node functions of one task."""

    def __init__(self, context: TaskContext, recorder: Recorder) -> None:
        super().__init__(context, recorder)
        build = context.policy.protocol.of_kind("build")
        self.build_order = tuple(role for role in build if not role.hands_over) + tuple(
            role for role in build if role.hands_over
        )

    # -- facts ---------------------------------------------------------------------------------------------------

    def phase(self, kind: RoleKind) -> tuple[str, ...]:
        """Return the names whose verdicts one phase needs; see `machine.judges`."""
        return judges(self.context.policy.protocol, self.context.task.gates_required, kind)

    @property
    def reviewed(self) -> bool:
        """Whether a review role judges the work; without one the commands of its gates do alone."""
        return bool(self.context.policy.protocol.of_kind("review"))

    def entry(self, name: str) -> str:
        """Return the node at which a dispatched role begins: its evidence, if Interlock makes it."""
        role = self.context.policy.protocol.roles.get(name)
        return f"{name}{EVIDENCE_SUFFIX}" if role is not None and self.collects(role) else name

    def budget(self, state: TaskState, name: str = "") -> Budget:
        """Return what is left to spend, for one role's answer or for the task."""
        last = state.get("answers", {}).get(name)
        cause: Cause | None = state.get("cause")
        policy = self.context.policy
        return Budget(
            reask=last is not None and may_ask_again(state, name, last["reask"], policy.max_reasks),
            rework=cause is not None
            and REWORKABLE[cause]
            and state.get("attempt", 1) - state.get("corrected", 0) <= policy.max_rework,
            progress=state.get("turn", 1) - state.get("questions", 0) + state.get("questions_before", 0)
            < len(self.build_order) + policy.max_progress,
        )

    def _recheck(self, state: TaskState, kind: RoleKind, *, contents: bool = False) -> tuple[Cause | None, list[str]]:
        """Compare every verdict of this attempt with the tree and the files as they are now; see `TaskContext.tree`."""
        context = self.context
        found = recheck(
            context.policy.protocol,
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
        if found.cause is None:
            return None, []
        said = [reason(gate, text) for gate, text in state.get("declined", {}).items()]
        changed = context.changes(self._store(state), state["attempt"]) if found.cause == "stale" else ""
        for gate in waived_trees(state) if found.cause == "stale" else ():
            by = state.get("waivers", {})[gate]["by"]
            said.append(reason(gate, f"the waiver of {by} is void, because files in scope changed after it{changed}"))
        if found.reasons:
            return found.cause, repeated([*said, *found.reasons])
        of_one = [gate for gate in found.gates if context.policy.protocol.gate(gate).certifier != ANYBODY]
        gates = [gate for gate in of_one if gate in context.task.gates_required]
        text = _RECHECK_TEXT[found.cause] + changed
        said += [reason(gate, text) for gate in gates]
        return found.cause, said or [reason(MSG_STRICT, text)]

    # -- status nodes --------------------------------------------------------------------------------------------

    def start(self, state: TaskState, config: RunnableConfig) -> Update:
        """Open the run's journal and check that what the task names is there."""
        run_id = str(state.get("run_id") or config.get("configurable", {})["thread_id"])
        context = self.context
        gone = [path for path in context.task.inputs if not input_exists(str(context.root), path)]
        # A graph that was started without `start_run` freezes here what its sealed gates need.
        sealing = context.policy.sealing or seal_run(context.root, context.task, context.policy)
        data: Update = {
            "task": context.task.to_json() | {"base": ""},
            "task_sha256": context.task.fingerprint(),
            "roster": list(context.policy.protocol.roles),
            "certifiers": certifiers(context.policy.protocol, context.task.gates_required),
            "fingerprints": dict(context.policy.fingerprints),
            "missing_inputs": gone,
        }
        if origin := undelivered(self.recorder.journal, context.task, run_id):
            data["origin"] = origin
        if sealing:
            data["base"] = sealing["frozen"]["base"]
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
        previous = state["status"]
        last = len(self.build_order) - 1
        attempt, turn, step = state["attempt"], state["turn"] + 1, state["step"]
        cleared: Update = {}
        if previous == "BLOCKED" and state.get("same_attempt"):
            cleared = {"same_attempt": False}
        elif previous == "BLOCKED":
            attempt, turn, step = attempt + 1, 1, last
            cleared = {"resumed": 0, "first_asks": {}, "declined": {}, "questions_before": state.get("questions", 0)}
        elif previous == "IN_PROGRESS":
            step = min(step + 1, last)
        role = self.build_order[step]
        cleared |= self.recorder.flush(state)
        self._watch_policy(state)
        if turn == 1:
            set_aside(self.context.root, self.context.task.task_id, attempt, state["run_id"])
        keep_listing(self.context.root, self._store(state), state.get("sealing", {}))
        before = self.context.tree()
        data: Update = {"from": previous, "to": "IN_PROGRESS", "by": role.name, "attempt": attempt, "tree": before}
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
            "tree_before": entry.data["tree"],
        }

    def ready_for_qa(self, state: TaskState) -> Update:
        """Take the hand-over: from here on every verdict is bound to the tree as it is now."""
        role = self.build_order[state["step"]]
        cleared = self.recorder.flush(state)
        key = f"{state['attempt']}/status/READY_FOR_QA"
        outside, restored = self._put_back(state, key)
        tree = self.context.hand_over(self._store(state), state["attempt"], fresh=bool(restored))
        data: Update = {"from": "IN_PROGRESS", "to": "READY_FOR_QA", "by": role.name, "attempt": state["attempt"]}
        data |= {"tree": tree, **({"outside": outside} if outside else {})}
        data |= {"put_back": restored} if restored else {}
        entry = self.recorder.keep(state["run_id"], key, "status", data)
        self._notice("IN_PROGRESS", "READY_FOR_QA", role.name, state["attempt"])
        keep_hand_over(self.context, self._store(state), state, outside, entry.data["tree"])
        if "outside" in entry.data:
            get_stream_writer()({"kind": "outside", "files": entry.data["outside"]})
        if "put_back" in entry.data:
            get_stream_writer()({"kind": "put_back", "files": entry.data["put_back"]})
        tree = entry.data["tree"]
        found: Update = {"outcome": "holds", "cause": None, "fail_reasons": []}
        if tree.startswith(UNREADABLE):
            why = reason(MSG_STRICT, f"the files in scope cannot be handed over: {tree}")
            found = {"outcome": "broken", "cause": "stale", "fail_reasons": [why]}
        elif (paths := entry.data.get("put_back")) and tree == state["tree_before"]:
            why = f"the work changed nothing but what keeps its base content, and was put back: {few(paths)}"
            gates = sealed_gates(self.context.task, self.context.policy)
            reasons = [reason(gate.id, why) for gate in gates]
            found = {"outcome": "broken", "cause": "gate", "fail_reasons": reasons}
        outside = entry.data.get("outside", [])
        return {**cleared, "status": "READY_FOR_QA", "tree": tree, "outside": outside, **found}

    def qa_in_progress(self, state: TaskState) -> Update:
        """Dispatch every QA role, by name."""
        return self._dispatch(state, "QA_IN_PROGRESS", self.phase("qa"), "QA dispatched", "judge")

    def ready_for_review(self, state: TaskState) -> Update:
        """Dispatch every review role, by name; where there is none, say so."""
        missing = sorted(excused_gates(state) - held_gates(self.context, state))
        passed = "QA passed" + (
            f", but for {', '.join(missing)}, to which an objection was accepted" if missing else ""
        )
        if not self.reviewed:
            text = f"{passed} in attempt {state['attempt']}. {_NO_REVIEW}"
            actions = ["orchestrator to verify every gate again"]
            return self._set(state, "READY_FOR_REVIEW", text, actions, extra={"dispatched": [], **_UNREVIEWED})
        return self._dispatch(state, "READY_FOR_REVIEW", self.phase("review"), f"{passed}. Review dispatched", "review")

    def _dispatch(self, state: TaskState, status: Status, names: tuple[str, ...], done: str, verb: str) -> Update:
        text = f"{done} for attempt {state['attempt']}: {', '.join(names)}."
        actions = [f"{name} to {verb} the tree and answer" for name in names]
        return self._set(state, status, text, actions, extra={"dispatched": list(names)})

    def approved(self, state: TaskState) -> Update:
        """Verify everything once more, and only then set APPROVED."""
        run_id = state["run_id"]
        if self.recorder.find(run_id, f"{round_of(state)}/status/APPROVED") is None:
            cause, reasons = self._recheck(state, "review", contents=True)
            if cause is not None:
                return {"outcome": "broken", "cause": cause, "fail_reasons": reasons}
        text = f"Approved in attempt {state['attempt']}: every required gate is certified on tree {state['tree']}."
        rows = {gate: state.get("waivers", {})[gate] for gate in sorted(self._waived(state))}
        text += "".join(f"\n{gate} was waived for it by {row['by']}: {row['reason']}" for gate, row in rows.items())
        if absent := absent_claims(state):
            text += f"\nThe hand-over names files that do not exist: {', '.join(absent)}."
        extra: Update = {"waived": {gate: row["by"] for gate, row in rows.items()}} if rows else {}
        if self.reviewed:
            return self._set(state, "APPROVED", text, [], extra=extra)
        return self._set(state, "APPROVED", f"{text} {_NO_REVIEW}", [], extra={**extra, **_UNREVIEWED})

    def _waived(self, state: TaskState) -> frozenset[str]:
        return waived(self.context.policy.protocol, waived_trees(state), state["tree"])

    def blocked(self, state: TaskState) -> Update:
        """Block the task with its reasons, and record whether another round may follow."""
        rework = self.budget(state).rework
        reasons = state["fail_reasons"]
        text = "The task is blocked." if not rework else "The task goes back to the build agent with these reasons."
        hands_over = self.build_order[-1].name
        actions = [f"{hands_over} to rework the task"] if rework else ["a person to read the reasons and decide"]
        required = self.context.task.gates_required
        meant = objections(self.context.policy.protocol, required, reasons, objected_before(state))
        objected = bool(meant) and state.get("cause") == "objection"
        if objected:
            text, actions = "An agent objects to a gate, and a person decides.", ["a person to answer the objection"]
        update = self._set(state, "BLOCKED", text, actions, reasons=reasons, extra={"cause": state.get("cause")})
        if not objected:
            return update
        self.context.tree()  # what is kept are the files of the last look
        number = state.get("questions", 0) + 1
        keep_hand_over(self.context, self._store(state), state, self._outside(state), "", number)
        return {**update, "outcome": "objection", "objected": meant}

    def resumed(self, state: TaskState) -> Update:
        """Take up the steps of this attempt that failed for a reason outside the work; all other verdicts stay."""
        names = unjudged(state.get("verdicts", {}), state["attempt"])
        number = state.get("resumed", 0) + 1
        status = self._phase_of(names)
        answers, collected = state.get("answers", {}), state.get("collected", {})
        data = {"from": "BLOCKED", "to": status, "attempt": state["attempt"], "number": number, "roles": list(names)}
        self.recorder.keep(state["run_id"], f"{state['attempt']}/{RESUMED}/{number}", RESUMED, data)
        self._notice("BLOCKED", status, "orchestrator", state["attempt"])
        return {
            "status": status,
            "take_up": False,
            "resumed": number,
            "first_asks": {name: answers[name]["reask"] + 1 for name in names if reask_number(state, name) > 0},
            "verdicts": dict.fromkeys(names),
            "collected": {name: None for name in names if name in collected and collected[name]["collection"] is None},
            "outcome": "holds",
            "cause": None,
            "fail_reasons": [],
        }

    def _phase_of(self, names: Collection[str]) -> Status:
        return "QA_IN_PROGRESS" if set(names) & set(self.phase("qa")) else "READY_FOR_REVIEW"

    def taken_up(self, state: TaskState) -> list[str]:
        """Return the nodes at which the steps that were taken up begin: those of the phase without a verdict."""
        phase = self.phase("qa" if state["status"] == "QA_IN_PROGRESS" else "review")
        names = [name for name in phase if name not in state["verdicts"]]
        return [name if own_collection(state, name) is not None else self.entry(name) for name in names]

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
        key = f"{round_of(state)}/status/{status}"
        if self.recorder.find(run_id, key) is None:
            passed = held_gates(self.context, state) if status != "BLOCKED" else frozenset[str]()
            verdicts = state.get("verdicts", {}).values()
            files = [file for row in verdicts if row["attempt"] == state["attempt"] for file in row["evidence"]]
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
        of = {"reasons": reasons or [], "cause": state.get("cause") if status == "BLOCKED" else None}
        self._notice(previous, status, "orchestrator", state["attempt"], **of)
        return {**cleared, "status": status, "outcome": "holds"}

    # -- role nodes ----------------------------------------------------------------------------------------------

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
            if after({**state, "answers": answers}) == "BLOCKED":
                answer = answers[role.name]
                update |= {"cause": CAUSE[answer["outcome"]], "fail_reasons": answer["reasons"]}
            return update

        return node

    def judging_role(self, role: Role) -> Node:
        """Return the node that asks a QA or review role; it may run beside others and writes no journal line."""

        def node(state: TaskState) -> Update:
            return ask_role(self.context, role, state, self._store(state))

        return node

    def verdicts(self, kind: RoleKind) -> Node:
        """Return the node that counts the verdicts of a phase and holds them against the present tree."""

        def node(state: TaskState) -> Update:
            if self._tally(state, kind) == "pending":
                return {}
            cleared = self.recorder.flush(state)
            cause, reasons = self._recheck(state, kind)
            outcome: Outcome = "holds" if cause is None else "waive" if cause == "waiver" else "broken"
            return {**cleared, "outcome": outcome, "cause": cause, "fail_reasons": reasons}

        return node

    # -- edges ---------------------------------------------------------------------------------------------------

    def after_status(self, state: TaskState) -> str:
        """Route after a check of the orchestrator's own."""
        return route(state["status"], "orchestrator", state["outcome"], "pending", self.budget(state))

    def after_blocked(self, state: TaskState) -> str:
        """Route after BLOCKED: as after any check, or to the steps that a person has taken up again."""
        if state.get("take_up") and unjudged(state.get("verdicts", {}), state["attempt"]):
            return RESUMED
        return self.after_status(state)

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

    # -- helpers -------------------------------------------------------------------------------------------------

    def _outside(self, state: TaskState) -> list[Outside]:
        context, sealing = self.context, state.get("sealing", {})
        reserve = context.policy.reserve
        return changes_outside(context.root, context.task, self._store(state), sealing, reserve=reserve)

    def _put_back(self, state: TaskState, key: str) -> tuple[list[Outside], list[str]]:
        """Put back what keeps its base content, once; return what else lies outside the scope, and what was put back.

        `key` is of the line that the journal has of the hand-over: where it has one, that was done.
        """
        context, store = self.context, self._store(state)
        if self.recorder.find(state["run_id"], key) is not None:
            return self._outside(state), []
        found = put_back(
            context.root, context.task, context.policy, store, state.get("sealing", {}), state["attempt"],
            lambda paths: holders(context.root, store.run_id, paths),
        )  # fmt: skip
        return self._outside(state), [] if found is None else list(found.paths)

    def _watch_policy(self, state: TaskState) -> None:
        self.recorder.watch_policy(self.context.root, state["run_id"], self.context.policy.fingerprints)

    def _notice(self, previous: Status | None, status: Status, by: str, attempt: int, **more: Any) -> None:
        row: Update = {"kind": "status", "from": previous, "to": status, "by": by, "attempt": attempt}
        get_stream_writer()({**row, "reasons": [], "cause": None, **more})
