"""The state of a ticket run and its transitions: pure, JSON values only, and all of it in the checkpoint.

**Theory of operation.** A ticket walks through the stages of its `PipelineSpec`, one after the other. The graph
(`build`) waits in a stage with an `interrupt()`; a submission answers it. There are two kinds of answers:

* an *attempt* was judged by the gate of its stage. `decide` says pass, retry or stop: a blocking finding stops,
  findings to fix are a retry as long as a budget is left, anything else passes. `attempted` makes the next state: the
  revision grows by one, whatever came of it, and the edge leads on, back, or to `fail_closed`.
* a *refusal* never reached the gate, since the ticket was stale, partial or tampered with. `refused` counts it and
  stays where it is, at the same revision, until its budget is spent; the run then stops like after an attempt.

The checkpoint is where a run stands; the journal is what happened. Both must survive a kill at any moment, and neither
can be written together with the other. So a step *carries* its journal lines in the state: `lines` is what it has to
write, `before` where the run ended in the journal before them, `at` when it happened. `open_runs` appends them once the
checkpoint is on the disk, and again at the next opening if a kill came in between. What must never happen: a line
that no checkpoint carried, a transition that no line tells of, the same line twice.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NotRequired, cast

from typing_extensions import TypedDict

from interlock.core.json import canonical
from interlock.core.text import visible
from interlock.gates.config import load_config
from interlock.gates.stages import Issue, issue_record, requirement_ids
from interlock.graph.engine.folder import HeadRecord
from interlock.graph.ticket.contract import (
    FAIL_CLOSED,
    SCHEMA_VERSION,
    GateStatus,
    InvalidationReport,
    IssueRecord,
    RunStatus,
    Ticket,
    TicketStep,
    Validation,
    ValidationStatus,
)
from interlock.graph.ticket.rules import REASON_CODES, issue
from interlock.graph.ticket.spec import PipelineSpec

MAX_ISSUES: Final = 50
"""So many findings one answer names; what is left shows at the next attempt."""

_MAX_IDS: Final = 60
_MAX_ERRORS: Final = 20

_GATE_EVENTS: Final[Mapping[GateStatus, str]] = {"pass": "gate_passed", "retry": "gate_retry", "stop": "gate_stop"}
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


class TicketPolicy(TypedDict):
    """What a run is judged by, frozen when it begins; `unchanged` and `unattributed` are error or warn."""

    scope: list[str]
    max_retries: int
    max_retries_run: int
    max_identical: int
    unchanged: str
    unattributed: str


class Failure(TypedDict):
    """A submission that failed or was refused: the state it was made in, and the digest of what was wrong."""

    state: str
    signature: str


class Attempt(TypedDict):
    """One judged submission; `revision` is the one that was submitted.

    Shapes: `payload` is kept for a pass; `issues` are codes.
    """

    revision: int
    state: str
    gate: GateStatus
    next_state: str
    at: str
    payload_sha256: str
    issues: list[str]
    payload: NotRequired[dict[str, Any]]


class Line(TypedDict):
    """A journal line that a step has to write."""

    key: str
    type: str
    data: dict[str, Any]


class RunState(TypedDict):
    """Everything that is known of a run between two submissions.

    Shapes: `gate` is the data of the last gate event, empty before the first; `trees` maps `begin` and the acting stage
    to what was listed there (see `Answer`); `edge` is the way out of the node that ended the last step; `before`, `at`
    and `lines` are what the step has to write into the journal; `source` is the record of a ticket that Interlock
    fetched (see `graph.sources`).
    """

    run_id: str
    ticket_id: str
    pipeline: str
    owner: str
    policy: TicketPolicy
    state: str
    revision: int
    done: bool
    abandoned: bool
    payload: dict[str, Any]
    validation: Validation
    invalidation_report: InvalidationReport | None
    history: list[Attempt]
    failures: list[Failure]
    refusals: list[Failure]
    gate: dict[str, Any]
    trees: dict[str, Any]
    created_at: str
    updated_at: str
    edge: GateStatus
    before: HeadRecord
    at: str
    lines: list[Line]
    source: NotRequired[dict[str, Any]]


class RunInput(TypedDict, total=False):
    """What begins a run: `run_id` defaults to the thread id, `policy` to the configuration's, `at` to now.

    `before` and `tree` are as in `Answer`. Of a ticket that Interlock fetched, `source` is the record and `fetched` the
    payload of the first stage.
    """

    run_id: str
    ticket_id: str
    pipeline: str
    owner: str
    policy: TicketPolicy
    at: str
    before: HeadRecord
    tree: str
    source: dict[str, Any]
    fetched: dict[str, Any]


class Answer(TypedDict, total=False):
    """What the interrupt of a stage is answered with; `payload` alone is enough.

    Shapes: `tree` is the digest of a listing that was kept as a file of the run (see `TicketStore.keep_tree`); without
    it the stage lists the files itself and keeps the listing in the state, which suits small projects. `refused` are
    findings that kept the submission from its gate, `noted` findings besides those of the gate. `before` is where the
    run ends in the journal.
    """

    payload: dict[str, Any]
    tool: str
    caller: str
    agent: str
    at: str
    before: HeadRecord
    tree: str
    refused: list[IssueRecord]
    noted: list[IssueRecord]


# -- what a state says -----------------------------------------------------------------------------------------------


def terminal(state: RunState) -> bool:
    """Return whether the run is over."""
    return state["done"] or state["abandoned"] or state["state"] == FAIL_CLOSED


def earlier(state: RunState) -> dict[str, Any]:
    """Return the fields of every stage that passed, by name."""
    fields: dict[str, Any] = {}
    for attempt in state["history"]:
        fields.update(attempt.get("payload", {}))
    return fields


def acted_on_nothing(spec: PipelineSpec, state: RunState) -> bool:
    """Return whether acting passed without a changed file."""
    passed = [row for row in state["history"] if row["gate"] == "pass" and spec.stage(row["state"]).acts]
    # The warning that no file changed while acting.
    return any("STG602" in row["issues"] for row in passed)


def issue_ticket(spec: PipelineSpec, state: RunState) -> Ticket:
    """Return the ticket of a state; equal states give equal tickets."""
    following = None if terminal(state) else spec.after(state["state"])
    validation = state["validation"]
    if validation["errors"] and state["history"]:
        # The findings themselves are in the answer; their codes keep the ticket small.
        validation = Validation(status=validation["status"], errors=state["history"][-1]["issues"])
    return Ticket(
        schema_version=SCHEMA_VERSION,
        run_id=state["run_id"],
        ticket_id=state["ticket_id"],
        state=state["state"],
        # Its first sentence alone: the ticket goes both ways at each step, and the answer says the whole.
        agent_role=order(spec, state).partition(". ")[0].removesuffix(".") + ".",
        required_fields=required_fields(spec, state),
        payload=state["payload"],
        next_stage_fields=[] if following is None else [field.name for field in following.fields if not field.optional],
        validation=validation,
        invalidation_report=state["invalidation_report"],
        created_at=state["created_at"],
        updated_at=state["updated_at"],
        revision=state["revision"],
        history=ticket_steps(state),
    )


def ticket_steps(state: RunState) -> list[TicketStep]:
    """Return the history of a run as its ticket has it."""
    steps: list[TicketStep] = []
    for attempt in state["history"]:
        step = TicketStep(revision=attempt["revision"], state=attempt["state"], gate=attempt["gate"])
        if attempt["issues"]:
            step["issues"] = attempt["issues"]
        steps.append(step)
    return steps


def run_status(spec: PipelineSpec, state: RunState) -> RunStatus:
    """Return the status of a run."""
    # The findings of the last gate are those that may recur.
    over, left = terminal(state), retries_left(state, state["gate"].get("signature", ""))
    return RunStatus(
        run_id=state["run_id"],
        ticket_id=state["ticket_id"],
        pipeline=spec.name,
        state=state["state"],
        revision=state["revision"],
        terminal=over,
        required_fields=required_fields(spec, state),
        agent_role=agent_role(spec, state),
        validation=state["validation"],
        invalidation_report=state["invalidation_report"],
        # A retry stays where it is, and is no step of the path.
        path=[spec.stages[0].name, *(row["next_state"] for row in state["history"] if row["gate"] != "retry")],
        retries_left={name: 0 if over else max(number, 0) for name, number in left.items()},
        updated_at=state["updated_at"],
    )


def required_fields(spec: PipelineSpec, state: RunState) -> list[str]:
    """Return the fields that the present stage asks the agent for; none at the end."""
    if terminal(state):
        return []
    return [field.name for field in spec.stage(state["state"]).fields if not field.optional]


def agent_role(spec: PipelineSpec, state: RunState) -> str:
    """Return what the agent is to do now; of what agents and trackers wrote, only ids and quoted names of files."""
    return " ".join([order(spec, state), *particulars(spec, state)])


def order(spec: PipelineSpec, state: RunState) -> str:
    """Return what the agent is to do now, in the words of the pipeline alone."""
    return spec.role(state["state"], done=state["done"])


def particulars(spec: PipelineSpec, state: RunState) -> list[str]:
    """Return the ids that the present stage may refer to, and the files that it may change, as JSON texts."""
    if terminal(state):
        return []
    stage, known = spec.stage(state["state"]), earlier(state)
    rows: list[str] = []
    if "known_refs" in stage.checks:
        evidence = [str(item.get("source_id", "")) for item in known.get("evidence_items", ())]
        rows = [f"Requirement ids: {_listed([*requirement_ids(known)])}.", f"Evidence ids: {_listed(evidence)}."]
    if stage.acts:
        names = [json.dumps(visible(path), ensure_ascii=False) for path in allowed_paths(state)]
        rows.append(f"Files that may change: {_listed(names)}.")
    return rows


def allowed_paths(state: RunState) -> tuple[str, ...]:
    """Return the paths and patterns that the plan of a run covers."""
    known = earlier(state)
    items = [item for item in known.get("evidence_items", ()) if item.get("source_type") == "repo"]
    # What is cited may be changed: its locator is PATH:LINE.
    cited = [str(item.get("locator", "")).rpartition(":")[0] for item in items]
    targets = [str(target) for target in known.get("retrieval_targets", ())]
    targets = [target[5:].strip() for target in targets if target.startswith("repo:")]
    return tuple(dict.fromkeys(path for path in (*cited, *targets, *state["policy"]["scope"]) if path))


def _listed(ids: list[str]) -> str:
    more = f" and {len(ids) - _MAX_IDS} more" if len(ids) > _MAX_IDS else ""
    return (", ".join(ids[:_MAX_IDS]) + more) or "none"


def ticket_policy(root: Path) -> TicketPolicy:
    """Return the `[tickets]` section of a project as JSON values.

    Raises:
        ConfigError: `interlock.toml` is wrong.
    """
    section = asdict(load_config(root).tickets)
    return cast("TicketPolicy", {**section, "scope": list(section["scope"])})


# -- the first state -------------------------------------------------------------------------------------------------


def begun(spec: PipelineSpec, given: RunInput, policy: TicketPolicy, tree: Any, at: str) -> RunState:
    """Return the first state of a run, whose `run_id` is given; `tree` is what was listed, empty where nothing acts."""
    run_id = given.get("run_id", "")
    started: dict[str, Any] = {
        "run_id": run_id,
        "ticket_id": given.get("ticket_id", ""),
        "owner": given.get("owner", ""),
        "policy": policy,
        "pipeline": spec.name,
        "tree": tree if isinstance(tree, str) else "",
    }
    source = given.get("source")
    started |= {"source": source} if source else {}
    state = RunState(
        run_id=run_id,
        ticket_id=given.get("ticket_id", ""),
        pipeline=spec.name,
        owner=given.get("owner", ""),
        policy=policy,
        state=spec.stages[0].name,
        revision=1,
        done=False,
        abandoned=False,
        payload={},
        validation=Validation(status="pending", errors=[]),
        invalidation_report=None,
        history=[],
        failures=[],
        refusals=[],
        gate={},
        trees={"begin": tree} if tree else {},
        created_at=at,
        updated_at=at,
        edge="pass",
        before=given.get("before", HeadRecord(seq=0, hash="0" * 64)),
        at=at,
        lines=[Line(key="run_started", type="run_started", data=started)],
    )
    return {**state, "source": source} if source else state


# -- attempts --------------------------------------------------------------------------------------------------------


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
    # In this order: that a failure repeats says more than how many there were.
    for code, more, count in budgets:
        if more <= 0:
            return Decision("stop", code, _STOPPED[code].format(count=count))
    return Decision("retry", "invalid_payload")


def retries_left(state: RunState, mark: str) -> dict[str, int]:
    """Return how often the present stage and the run may fail before a failure ends the run, and with these findings.

    `mark` is the signature of the findings; below 0 is nothing.
    """
    policy, failures = state["policy"], state["failures"]
    same = failures.count(Failure(state=state["state"], signature=mark))
    return {
        "stage": policy["max_retries"] - sum(failure["state"] == state["state"] for failure in failures),
        "run": policy["max_retries_run"] - len(failures),
        # The failure at hand is one of the equal ones, and not among those that are counted.
        "identical": policy["max_identical"] - 1 - same,
    }


def signature(issues: Iterable[Issue]) -> str:
    """Return what makes two failures the same: the codes, the places, and what was found there."""
    rows = sorted([item.code, item.field, item.found] for item in issues if item.level != "warn")
    return hashlib.sha256(canonical(rows)).hexdigest()


def digest(payload: Mapping[str, Any]) -> str:
    """Return the digest of a payload."""
    return hashlib.sha256(canonical(payload)).hexdigest()


def attempted(
    spec: PipelineSpec,
    state: RunState,
    answer: Answer,
    issues: Sequence[Issue],
    *,
    tree: Any = "",
    artifacts: Sequence[Mapping[str, Any]] = (),
) -> RunState:
    """Return the state after an attempt that had these findings.

    Where the next stage acts, `tree` is what was listed. `artifacts` are digests of what is handed over.
    """
    payload, at, stage = answer.get("payload", {}), answer.get("at", ""), state["state"]
    decision = decide(state, issues)
    moved = spec.transition(stage, decision.status)
    done = decision.status == "pass" and spec.after(stage) is None
    mark = signature(issues)
    left = retries_left(state, mark)
    records = [cast("IssueRecord", issue_record(item)) for item in issues[:MAX_ISSUES]]
    gate: dict[str, Any] = {
        "state": stage,
        "revision": state["revision"],
        "status": decision.status,
        "next_state": moved.next_state,
        "done": done,
        "reason_code": decision.reason_code,
        "why": decision.why,
        # One less: this attempt is not among the failures yet, and takes one.
        "retries_left": max(min(left["stage"], left["run"]) - 1, 0) if decision.status == "retry" else 0,
        "payload_sha256": digest(payload),
        "signature": mark,
        "issues": records,
        "tree": tree if isinstance(tree, str) else "",
    }
    if artifacts:
        gate["artifacts"] = [dict(row) for row in artifacts]
    entry = Attempt(
        revision=state["revision"],
        state=stage,
        gate=decision.status,
        next_state=moved.next_state,
        at=at,
        payload_sha256=gate["payload_sha256"],
        issues=[item["code"] for item in records],
    )
    if decision.status == "pass":
        # What failed is a line of the journal; here, every later checkpoint would carry it along.
        entry["payload"] = payload
    failed = [item for item in records if item["level"] != "warn"]
    passed = decision.status == "pass"
    after: RunState = {
        **state,
        "state": moved.next_state,
        "revision": state["revision"] + 1,
        "done": done,
        "payload": {} if passed else payload,
        "validation": Validation(
            status=_VALIDATION[decision.status], errors=[item["message"] for item in failed[:_MAX_ERRORS]]
        ),
        "invalidation_report": None if passed else _report(gate, failed),
        "history": [*state["history"], entry],
        "failures": state["failures"] if passed else [*state["failures"], Failure(state=stage, signature=mark)],
        "gate": gate,
        "trees": {**state["trees"], **({moved.next_state: tree} if tree and passed else {})},
        "updated_at": at,
        "edge": decision.status,
        "before": answer.get("before", state["before"]),
        "at": at,
        "lines": _lines(answer, gate),
    }
    return after


def _lines(answer: Answer, gate: dict[str, Any]) -> list[Line]:
    """Return what the journal keeps of an attempt: the call, what its gate said, and the transition if there is one."""
    revision, status = gate["revision"], gate["status"]
    call: dict[str, Any] = {
        "tool": answer.get("tool", "resume"),
        "caller": answer.get("caller", ""),
        "state": gate["state"],
        "revision": revision,
        "payload": answer.get("payload", {}),
    }
    lines = [
        Line(key=f"{revision}/tool_call", type="tool_call", data=call),
        Line(key=f"{revision}/gate", type=_GATE_EVENTS[status], data=gate),
    ]
    if status != "retry":
        move = {"from": gate["state"], "to": gate["next_state"], "revision": revision + 1}
        kind = "transition" if status == "pass" else "fail_closed"
        move |= {"done": gate["done"]} if status == "pass" else {"reason_code": gate["reason_code"]}
        lines.append(Line(key=f"{revision}/{kind}", type=kind, data=move))
    return lines


def _report(gate: Mapping[str, Any], failed: Sequence[IssueRecord]) -> InvalidationReport:
    fixable = gate["status"] == "retry"
    blocking = [item["fix"] for item in failed if item["level"] == "stop"]
    again = "Fix what the findings name, and submit the ticket again."
    # The fix of a finding that stops a run says itself what comes before a new one.
    stop = f"Stop, and report this to the user. {blocking[0] if blocking else 'Then begin a new run.'}"
    return InvalidationReport(
        state=gate["state"],
        reason_code=gate["reason_code"],
        fixable=fixable,
        missing_or_invalid_fields=fields_of(failed),
        required_next_action=again if fixable else stop,
    )


def fields_of(issues: Iterable[IssueRecord]) -> list[str]:
    """Return the places of findings, each once, in order."""
    return list(dict.fromkeys(item["field"] for item in issues if item["field"] and item["level"] != "warn"))


# -- refusals --------------------------------------------------------------------------------------------------------


def refused(spec: PipelineSpec, state: RunState, answer: Answer) -> RunState:
    """Return the state after a submission that was refused before its gate.

    The run stays where it is, at its revision, until so many were refused that it stops. Refusals have the budgets of
    gate failures and are counted apart from them.
    """
    records = answer.get("refused", [])
    # As JSON, since they came through the interrupt and its checkpoint.
    issues = [Issue(**item) for item in records]
    refusals = [*state["refusals"], Failure(state=state["state"], signature=signature(issues))]
    row: dict[str, Any] = {
        "tool": answer.get("tool", "resume"),
        "caller": answer.get("caller", ""),
        "state": state["state"],
        "revision": state["revision"],
        "signature": refusals[-1]["signature"],
        "issues": records,
    }
    line = Line(key=f"refused/{len(refusals)}", type="tamper_refused", data=row)
    why = _spent(state, refusals)
    if why is not None:
        spent = issue(
            "TKT124",
            issues[0].field,
            f"{why[:1].upper()}{why[1:]}; the last one: {issues[0].message}",
            found=why,
            expected="the ticket as the server returned it last, with `payload` filled in",
            fix="Begin a new run, and submit its tickets as they come back.",
        )
        # From here on like an attempt that a finding stops; the refused payload, which no gate judged, is not kept.
        after = attempted(spec, state, {**answer, "payload": {}}, [spent, *issues])
        return {**after, "refusals": refusals, "lines": [line, *after["lines"]]}
    return {
        **state,
        "refusals": refusals,
        "edge": "retry",
        "before": answer.get("before", state["before"]),
        "at": answer.get("at", ""),
        "lines": [line],
    }


def _spent(state: RunState, refusals: Sequence[Failure]) -> str | None:
    """Return which budget some refusals have spent, the last one of them; None where something is left of each."""
    policy, last = state["policy"], refusals[-1]
    here = [each for each in refusals if each["state"] == last["state"]]
    same = here.count(last)
    # The last refusal counts in each. The first bound ends the run when it is reached, the others when it is passed.
    if same >= policy["max_identical"]:
        return f"{same} submissions were refused with the same findings"
    if len(here) > policy["max_retries"]:
        return f"{len(here)} submissions of this stage were refused"
    if len(refusals) > policy["max_retries_run"]:
        return f"{len(refusals)} submissions of this run were refused"
    return None
