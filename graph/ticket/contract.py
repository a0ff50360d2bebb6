"""The ticket contract: what the server issues and what its tools answer, as JSON shapes."""

from typing import Any, Final, Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

# What is part of the graph's state: Pydantic makes no schema of the other kind before Python 3.12.
from typing_extensions import TypedDict as StateDict

from interlock.core.finding import FindingJson

SCHEMA_VERSION: Final = "1.0.0"

GateStatus: TypeAlias = Literal["pass", "retry", "stop"]
ValidationStatus: TypeAlias = Literal["pending", "valid", "invalid_fixable", "invalid_blocking"]

FAIL_CLOSED: Final = "fail_closed"
"""The terminal state of every spec after a blocking failure."""


class IssueRecord(FindingJson):
    """One finding about a submission; `level` is retry, stop or warn, `field` a path such as `plan_steps[0].intent`."""

    level: Literal["retry", "stop", "warn"]
    field: str


class GateResult(TypedDict):
    """What came of one submission: each finding once, and the places that blocked."""

    status: GateStatus
    missing_or_invalid_fields: list[str]
    issues: list[IssueRecord]


class MinimalGateResult(GateResult):
    """What came of a minimal ticket, with the lists of the Governance Design.

    Shapes: `reasons` and `fixes` go together by position, but the first reason of a pass says what passed and has no
    fix.
    """

    reasons: list[str]
    fixes: list[str]


class Validation(StateDict):
    """What came of the last submission of a run: `pending` before the first, `valid` after a pass."""

    status: ValidationStatus
    errors: list[str]


class InvalidationReport(StateDict):
    """Why the last submission failed: `fixable` after a retry, not after a stop."""

    state: str
    reason_code: str
    fixable: bool
    missing_or_invalid_fields: list[str]
    required_next_action: str


class TicketStep(StateDict):
    """One gate attempt, as the ticket names it. `revision` is the one that was submitted, `issues` are codes.

    What was handed in is in the `tool_call` line of the journal, and for a pass in the copies for people.
    """

    revision: int
    state: str
    gate: GateStatus
    issues: NotRequired[list[str]]


class Ticket(TypedDict):
    """The ticket as the server issues it and an agent sends it back; the agent fills `payload` and nothing else.

    Shapes: `agent_role` is one sentence, the whole is `next_role` of the answer; `errors` of `validation` are codes.
    """

    schema_version: str
    run_id: str
    ticket_id: str
    state: str
    agent_role: str
    required_fields: list[str]
    payload: dict[str, Any]
    next_stage_fields: list[str]
    validation: Validation
    invalidation_report: InvalidationReport | None
    created_at: str
    updated_at: str
    revision: int
    history: list[TicketStep]


TicketResponse = TypedDict(
    "TicketResponse",
    {
        "ticket_json": Ticket | None,
        "field_types": dict[str, str],
        "continue": bool,
        "reason": str,
        "next_role": str,
        "next_state": str,
        "gate_result": GateResult,
        "ticket_text": NotRequired[str],
    },
)
"""What the ticket tools answer; `ticket_json` is null where no run could be found.

Shapes: `field_types` says what each of `required_fields` holds, in words; `ticket_text` is what Interlock fetched from
the ticket's source, quoted, when a run begins.
"""


class MinimalTicket(TypedDict):
    """The ticket of the Governance Design: what the run began with, and where it is."""

    ticket_id: str
    run_id: str
    title: NotRequired[str]
    description: NotRequired[str]
    state: str
    revision: int


class MinimalResponse(TypedDict):
    """What `interlock_next_step` answers to a minimal ticket; `updated_ticket` is null where no run could be found."""

    status: GateStatus
    next_state: str
    agent_role: str
    gate_result: MinimalGateResult
    reason: str
    fixes: list[str]
    updated_ticket: MinimalTicket | None


class RunStatus(TypedDict):
    """The status of a ticket run, for `interlock_run_status`."""

    run_id: str
    ticket_id: str
    pipeline: str
    state: str
    revision: int
    terminal: bool
    required_fields: list[str]
    agent_role: str
    validation: Validation
    invalidation_report: InvalidationReport | None
    path: list[str]
    retries_left: dict[str, int]
    updated_at: str
