"""The pure core of the pipeline: what issues and budgets decide, and the states that journal lines lead to."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from interlock.core.json import canonical
from interlock.gates.stages import Issue, issue_record, requirement_ids
from interlock.graph.engine.folder import HeadRecord
from interlock.graph.ticket.contract import (
    FAIL_CLOSED,
    GateStatus,
    HistoryEntry,
    InvalidationReport,
    IssueRecord,
    Validation,
    ValidationStatus,
)
from interlock.graph.ticket.rules import REASON_CODES
from interlock.graph.ticket.spec import SPECS, PipelineSpec
from interlock.graph.ticket.state import Failure, RunState, retries_left, terminal
from interlock.journal import Entry

MAX_ISSUES: Final = 50
"""So many findings one answer names; what is left shows at the next attempt."""

MAX_ERRORS: Final = 20
"""So many of them the ticket repeats under `validation`; the ticket must fit into one line of the snapshots."""

GATE_EVENTS: Final[Mapping[GateStatus, str]] = {"pass": "gate_passed", "retry": "gate_retry", "stop": "gate_stop"}

_VALIDATION: Final[Mapping[GateStatus, ValidationStatus]] = {
    "pass": "valid",
    "retry": "invalid_fixable",
    "stop": "invalid_blocking",
}

_STOPPED: Final = {
    "repeated_failure": "the same findings came back {count} times",
    "stage_retries_spent": "the {count} retries of this stage are spent",
    "run_retries_spent": "the {count} retries of this run are spent",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """What came of one attempt.

    Args:
        status: Where the edge leads.
        reason_code: Why, for the invalidation report; empty for a pass.
        why: The same as a clause; empty where the findings say it all.
    """

    status: GateStatus
    reason_code: str = ""
    why: str = ""


def decide(state: RunState, issues: Sequence[Issue]) -> Decision:
    """Decide one attempt by its findings and the run's budgets; total, and never a pass with a blocking finding."""
    blocking = next((item for item in issues if item.level == "stop"), None)
    if blocking is not None:
        return Decision("stop", REASON_CODES.get(blocking.code, "blocking_finding"))
    if all(item.level == "warn" for item in issues):
        return Decision("pass")
    policy, left = state["policy"], retries_left(state, signature(issues))
    budgets = (
        ("repeated_failure", left["identical"], policy["max_identical"] - left["identical"]),
        ("stage_retries_spent", left["stage"], policy["max_retries"]),
        ("run_retries_spent", left["run"], policy["max_retries_run"]),
    )
    for code, more, count in budgets:
        if more <= 0:
            return Decision("stop", code, _STOPPED[code].format(count=count))
    return Decision("retry", "invalid_payload")


def signature(issues: Iterable[Issue]) -> str:
    """Return what makes two failures the same: the codes, the places, and what was found there."""
    rows = sorted([item.code, item.field, item.found] for item in issues if item.level != "warn")
    return hashlib.sha256(canonical(rows)).hexdigest()


def digest(payload: Mapping[str, Any]) -> str:
    """Return the digest of a payload."""
    return hashlib.sha256(canonical(payload)).hexdigest()


Attempt: TypeAlias = dict[str, Any]
"""One attempt as its gate event keeps it: everything that the next state needs beside the state before it."""


def edge(spec: PipelineSpec, stage: str, status: GateStatus) -> tuple[str, bool]:
    """Return where an attempt of a stage leads, and whether the run is done there."""
    following = spec.after(stage)
    passed = spec.end_state if following is None else following.name
    return {"pass": passed, "retry": stage, "stop": FAIL_CLOSED}[status], status == "pass" and following is None


def check_attempt(spec: PipelineSpec, state: RunState, kind: str, gate: Mapping[str, Any]) -> None:
    """Refuse an attempt, read back from the journal, that this state cannot have had.

    A run that began with other rows of its pipeline may have taken edges that are not there any more.

    Raises:
        ValueError: It is of another revision or stage, of a run that is over, or leads where no edge leads.
    """
    here = (gate["revision"], gate["state"], GATE_EVENTS[gate["status"]])
    if terminal(state) or here != (state["revision"], state["state"], kind):
        raise ValueError(f"{kind} of revision {gate['revision']} in a run at {state['revision']}, {state['state']}")
    known = state["spec_sha256"] == spec.fingerprint()
    if known and (gate["next_state"], gate["done"]) != edge(spec, state["state"], gate["status"]):
        raise ValueError(f"{kind} leads from {state['state']} to {gate['next_state']}, where no edge leads")


def attempt(
    spec: PipelineSpec,
    state: RunState,
    payload: Mapping[str, Any],
    issues: Sequence[Issue],
    *,
    tree: str = "",
    outcomes: Mapping[str, str] | None = None,
) -> Attempt:
    """Return the data of the gate event of one attempt.

    Where the next stage acts, `tree` is the digest of the files; `outcomes` are the statuses of delegated tasks by step
    id.
    """
    decision = decide(state, issues)
    left = retries_left(state, signature(issues))
    next_state, done = edge(spec, state["state"], decision.status)
    return {
        "state": state["state"],
        "revision": state["revision"],
        "status": decision.status,
        "next_state": next_state,
        "done": done,
        "reason_code": decision.reason_code,
        "why": decision.why,
        "retries_left": max(min(left["stage"], left["run"]) - 1, 0) if decision.status == "retry" else 0,
        "identical_left": max(left["identical"] - 1, 0) if decision.status == "retry" else 0,
        "payload_sha256": digest(payload),
        "signature": signature(issues),
        "issues": [issue_record(item) for item in issues[:MAX_ISSUES]],
        "tree": tree,
        "outcomes": dict(outcomes or {}),
    }


def apply(state: RunState, payload: Mapping[str, Any], gate: Mapping[str, Any], at: str) -> RunState:
    """Return the state after one attempt."""
    status: GateStatus = gate["status"]
    issues = cast("list[IssueRecord]", gate["issues"])
    entry = HistoryEntry(
        revision=state["revision"],
        state=state["state"],
        gate=status,
        next_state=gate["next_state"],
        at=at,
        payload_sha256=gate["payload_sha256"],
        issues=[item["code"] for item in issues],
    )
    assigned = requirement_ids(payload) if status == "pass" else {}
    if status == "pass":
        entry["payload"] = dict(payload)
    if assigned:
        entry["assigned"] = assigned
    if gate["outcomes"]:
        entry["outcomes"] = dict(gate["outcomes"])
    failed = [item for item in issues if item["level"] != "warn"]
    failures = state["failures"]
    if status != "pass":
        failures = [*failures, Failure(state=state["state"], signature=gate["signature"])]
    return {
        **state,
        "state": gate["next_state"],
        "revision": state["revision"] + 1,
        "done": gate["done"],
        # What tasks filled in is not the agent's to submit again.
        "payload": {} if status == "pass" or gate["outcomes"] else dict(payload),
        "validation": Validation(status=_VALIDATION[status], errors=[item["message"] for item in failed[:MAX_ERRORS]]),
        "invalidation_report": None if status == "pass" else _report(state["state"], gate, failed),
        "history": [*state["history"], entry],
        "failures": failures,
        "gate": dict(gate),
        "trees": {**state["trees"], **({gate["next_state"]: gate["tree"]} if gate["tree"] else {})},
        "outcomes": dict(gate["outcomes"]) or state["outcomes"],
        "updated_at": at,
    }


def _report(state: str, gate: Mapping[str, Any], failed: Sequence[IssueRecord]) -> InvalidationReport:
    fixable = gate["status"] == "retry"
    blocking = [item["fix"] for item in failed if item["level"] == "stop"]
    again = "Fix what the findings name, and submit the ticket again."
    # The fix of a finding that stops a run says itself what comes before a new one.
    stop = f"Stop, and report this to the user. {blocking[0] if blocking else 'Then begin a new run.'}"
    return InvalidationReport(
        state=state,
        reason_code=gate["reason_code"],
        fixable=fixable,
        missing_or_invalid_fields=fields_of(failed),
        required_next_action=again if fixable else stop,
    )


def fields_of(issues: Iterable[IssueRecord]) -> list[str]:
    """Return the places of findings, each once, in order."""
    return list(dict.fromkeys(item["field"] for item in issues if item["field"] and item["level"] != "warn"))


def begun(started: Mapping[str, Any], spec: PipelineSpec, at: str) -> RunState:
    """Return the first state of a run from the data of its `run_started` event."""
    return RunState(
        run_id=started["run_id"],
        ticket_id=started["ticket_id"],
        pipeline=spec.name,
        spec_sha256=started["spec_sha256"],
        owner=started["owner"],
        policy=started["policy"],
        state=spec.stages[0].name,
        revision=1,
        done=False,
        payload={},
        validation=Validation(status="pending", errors=[]),
        invalidation_report=None,
        history=[],
        failures=[],
        gate={},
        trees={"begin": started["tree"]} if started["tree"] else {},
        outcomes={},
        created_at=at,
        updated_at=at,
    )


_PREFIX: Final = "ticket:"
_GATES: Final = frozenset(GATE_EVENTS.values())


class Rebuilder:
    """Folds journal lines to the states of their ticket runs; lines of other runs are passed over."""

    def __init__(self, specs: Mapping[str, PipelineSpec] = SPECS) -> None:
        self.specs = specs
        self.states: dict[str, RunState] = {}
        self._calls: dict[str, Mapping[str, Any]] = {}
        self._foreign: set[str] = set()

    def take(self, entry: Entry) -> None:
        """Take one line, in the order of the journal.

        Raises:
            ValueError: The line does not follow from those before it.
        """
        if not entry.run.startswith(_PREFIX):
            return
        run_id = entry.run.removeprefix(_PREFIX)
        try:
            self._take(run_id, entry)
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"{entry.type}: {type(error).__name__}: {error}"[:200]) from error

    def _take(self, run_id: str, entry: Entry) -> None:
        if entry.type == "run_started" and entry.data["pipeline"] not in self.specs:
            self._foreign.add(run_id)
        if run_id in self._foreign:
            return
        if entry.type == "run_started":
            if run_id in self.states:
                raise ValueError("run_started of a run that has begun")
            state = begun(entry.data, self.specs[entry.data["pipeline"]], entry.at)
        elif entry.type == "tool_call":
            self._calls[run_id] = entry.data
            return
        elif entry.type in _GATES:
            state = self._after(self.states[run_id], entry)
        elif entry.type in {"transition", "fail_closed"}:
            state = self.states[run_id]
            if (entry.data["to"], entry.data["revision"]) != (state["state"], state["revision"]):
                raise ValueError(f"{entry.type} to {entry.data['to']}, but the gate led to {state['state']}")
        else:
            return
        state["head"] = HeadRecord(seq=entry.seq, hash=entry.hash)
        self.states[run_id] = state

    def _after(self, state: RunState, entry: Entry) -> RunState:
        call, gate = self._calls[state["run_id"]], entry.data
        check_attempt(self.specs[state["pipeline"]], state, entry.type, gate)
        if call["revision"] != state["revision"]:
            raise ValueError(f"tool_call of revision {call['revision']} in a run at {state['revision']}")
        return apply(state, call["payload"], gate, entry.at)


def rebuild(entries: Iterable[Entry], specs: Mapping[str, PipelineSpec] = SPECS) -> dict[str, RunState]:
    """Return the state of every ticket run in some journal lines, by run id.

    Raises:
        ValueError: A line does not follow from those before it.
    """
    rebuilder = Rebuilder(specs)
    for entry in entries:
        rebuilder.take(entry)
    return rebuilder.states
