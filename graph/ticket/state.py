"""The state of a ticket run: JSON values only, its frozen policy, and the ticket that is issued from it."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from interlock.core.text import visible
from interlock.gates.config import load_config
from interlock.gates.stages import requirement_ids
from interlock.graph.engine.folder import HeadRecord
from interlock.graph.ticket.contract import (
    FAIL_CLOSED,
    SCHEMA_VERSION,
    HistoryEntry,
    InvalidationReport,
    RunStatus,
    Ticket,
    Validation,
)
from interlock.graph.ticket.spec import PipelineSpec

_MAX_IDS = 60


class Delegate(TypedDict):
    """How the plan is carried out by tasks: their gates, scope, agents, and how long one call waits for them.

    `fingerprints` are those of gates, roster and scripts as they were when the run began.
    """

    gates: list[str]
    scope: list[str]
    agents: dict[str, dict[str, Any]]
    wait_seconds: float
    fingerprints: NotRequired[dict[str, str]]


class TicketPolicy(TypedDict):
    """What a run is judged by, frozen when it begins; `unchanged` and `unattributed` are error or warn."""

    scope: list[str]
    max_retries: int
    max_retries_run: int
    max_identical: int
    unchanged: str
    unattributed: NotRequired[str]
    delegate: Delegate | None


class Failure(TypedDict):
    """One retry: the state it happened in, and the digest of what was wrong."""

    state: str
    signature: str


class RunState(TypedDict):
    """Everything that a run knows between two submissions.

    Shapes: `gate` is the data of the last gate event, empty before the first; `trees` maps `begin` and the acting stage
    to the digests of their listings; `outcomes` maps step ids to the statuses of delegated tasks; `head` and
    `snapshots` are the ends of the run's journal lines and of its ticket snapshots.
    """

    run_id: str
    ticket_id: str
    pipeline: str
    spec_sha256: str
    owner: str
    policy: TicketPolicy
    state: str
    revision: int
    done: bool
    payload: dict[str, Any]
    validation: Validation
    invalidation_report: InvalidationReport | None
    history: list[HistoryEntry]
    failures: list[Failure]
    gate: dict[str, Any]
    trees: dict[str, str]
    outcomes: dict[str, str]
    created_at: str
    updated_at: str
    head: NotRequired[HeadRecord]
    snapshots: NotRequired[HeadRecord]


class RunInput(TypedDict, total=False):
    """What begins a run: `run_id` defaults to the thread id, `policy` to the configuration's.

    `spec_sha256` is the fingerprint of the pipeline as the run began. A call of a run that goes on has its whole
    `RunState` in place of this.
    """

    run_id: str
    ticket_id: str
    pipeline: str
    spec_sha256: str
    owner: str
    policy: TicketPolicy


def terminal(state: RunState) -> bool:
    """Return whether the run is over."""
    return state["done"] or state["state"] == FAIL_CLOSED


def earlier(state: RunState) -> dict[str, Any]:
    """Return the fields of every stage that passed, by name."""
    return {name: value for entry in state["history"] for name, value in entry.get("payload", {}).items()}


def acted_on_nothing(spec: PipelineSpec, state: RunState) -> bool:
    """Return whether acting passed without a changed file."""
    passed = [row for row in state["history"] if row["gate"] == "pass" and spec.stage(row["state"]).acts]
    return any("STG603" in row["issues"] for row in passed)


def tree_before(state: RunState) -> str:
    """Return the digest of the files as they were when the present stage began to act."""
    return state["trees"].get(state["state"], state["trees"]["begin"])


def delegated(spec: PipelineSpec, state: RunState) -> bool:
    """Return whether the present stage is carried out by tasks: it acts, on a plan that an earlier stage passed."""
    acts = state["policy"]["delegate"] is not None and not terminal(state) and spec.stage(state["state"]).acts
    return acts and "plan_steps" in earlier(state)


def issue_ticket(spec: PipelineSpec, state: RunState) -> Ticket:
    """Return the ticket of a state; equal states give equal tickets."""
    following = None if terminal(state) else spec.after(state["state"])
    return Ticket(
        schema_version=SCHEMA_VERSION,
        run_id=state["run_id"],
        ticket_id=state["ticket_id"],
        state=state["state"],
        agent_role=agent_role(spec, state),
        required_fields=required_fields(spec, state),
        payload=state["payload"],
        next_stage_fields=[] if following is None else [field.name for field in following.fields if not field.optional],
        validation=state["validation"],
        invalidation_report=state["invalidation_report"],
        history=state["history"],
        created_at=state["created_at"],
        updated_at=state["updated_at"],
        revision=state["revision"],
    )


def retries_left(state: RunState, found: str) -> dict[str, int]:
    """Return how often the present stage and the run may fail before a failure ends the run, and with these findings.

    `found` is the signature of the findings; below 0 is nothing.
    """
    policy, failures = state["policy"], state["failures"]
    same = failures.count(Failure(state=state["state"], signature=found))
    return {
        "stage": policy["max_retries"] - sum(failure["state"] == state["state"] for failure in failures),
        "run": policy["max_retries_run"] - len(failures),
        "identical": policy["max_identical"] - 1 - same,
    }


def run_status(spec: PipelineSpec, state: RunState, waiting: Sequence[str] = ()) -> RunStatus:
    """Return the status of a run."""
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
        path=[spec.stages[0].name, *(row["next_state"] for row in state["history"] if row["gate"] != "retry")],
        retries_left={name: 0 if over else max(number, 0) for name, number in left.items()},
        waiting=list(waiting),
        updated_at=state["updated_at"],
    )


def required_fields(spec: PipelineSpec, state: RunState) -> list[str]:
    """Return the fields that the present stage asks the agent for; none at the end and while tasks do the work."""
    if terminal(state) or delegated(spec, state):
        return []
    return [field.name for field in spec.stage(state["state"]).fields if not field.optional]


def agent_role(spec: PipelineSpec, state: RunState) -> str:
    """Return what the agent is to do now; of what agents and trackers wrote, only ids and quoted names of files."""
    return " ".join([order(spec, state), *particulars(spec, state)])


def order(spec: PipelineSpec, state: RunState) -> str:
    """Return what the agent is to do now, in the words of the pipeline alone."""
    if state["state"] == FAIL_CLOSED:
        return "Stop. Report the reason and the invalidation report to the user."
    if state["done"] and spec.closing is not None:
        return f"The run is complete. {spec.closing.role} One submission for {spec.closing.name} is recorded."
    if state["done"]:
        return "The run is complete. Nothing is left to do."
    if delegated(spec, state):
        return (
            "Acting is delegated: each plan step is worked on as a task of the status machine. Submit with an empty "
            "payload to take the tasks on, and again until they are at their end. Do not carry the plan out yourself."
        )
    return spec.stage(state["state"]).role


def particulars(spec: PipelineSpec, state: RunState) -> list[str]:
    """Return the ids that the present stage may refer to, and the files that it may change, as JSON texts."""
    if terminal(state) or delegated(spec, state):
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
    located = (
        str(item.get("locator", "")).rpartition(":")[0]
        for item in known.get("evidence_items", ())
        if item.get("source_type") == "repo"
    )
    targets = (
        str(target)[5:].strip() for target in known.get("retrieval_targets", ()) if str(target).startswith("repo:")
    )
    delegate = state["policy"]["delegate"]
    delegated = () if delegate is None else delegate["scope"]
    given = (*located, *targets, *state["policy"]["scope"], *delegated)
    return tuple(dict.fromkeys(path for path in given if path))


def _listed(ids: list[str]) -> str:
    more = f" and {len(ids) - _MAX_IDS} more" if len(ids) > _MAX_IDS else ""
    return (", ".join(ids[:_MAX_IDS]) + more) or "none"


def ticket_policy(root: Path) -> TicketPolicy:
    """Return the `[tickets]` section of a project as JSON values.

    Raises:
        ConfigError: `interlock.toml` is wrong.
    """
    section = asdict(load_config(root).tickets)
    del section["agent"]  # who works a ticket does not judge it
    delegate = section["delegate"]
    if delegate is not None:
        section["delegate"] = {
            **delegate,
            **{name: list(delegate[name]) for name in ("gates", "scope")},
            "agents": {name: dict(table) for name, table in delegate["agents"].items()},
        }
    return cast("TicketPolicy", {**section, "scope": list(section["scope"])})
