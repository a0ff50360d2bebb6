"""A pipeline as data: its stages in order, the edges between them, and the two specs that ship."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from interlock.gates.stages import Field, Stage
from interlock.graph.ticket.contract import FAIL_CLOSED, GateStatus

COMPLETE: Final = "complete"


class TransitionResult(NamedTuple):
    """Where an attempt leads (Governance Design §FSM Engine); `agent_role` is that of the next state."""

    status: GateStatus
    next_state: str
    agent_role: str
    reason: str


@dataclass(frozen=True)
class PipelineSpec:
    """The stages that a ticket walks through, one after the other.

    Fields have different names in all of its stages: checks read those of earlier stages by the name alone.

    Args:
        name: What runs call it.
        stages: The stages in order, at least one; their names are the states.
        end_state: The state of a run whose last stage passed; it may be the name of the last stage.

    Raises:
        ValueError: Two stages share a name, or a name is not free.
    """

    name: str
    stages: tuple[Stage, ...]
    end_state: str = COMPLETE

    def __post_init__(self) -> None:
        """Refuse what could not become a graph."""
        names = [stage.name for stage in self.stages]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"pipeline {self.name}: it needs stages, each with a name of its own; found {names}")
        # Stages are nodes of the graph beside these three. The last one alone may also be the end state.
        if {COMPLETE, FAIL_CLOSED, BEGIN} & set(names) or self.end_state in {*names[:-1], FAIL_CLOSED}:
            raise ValueError(f"pipeline {self.name}: a stage has the name of a terminal state, or of `{BEGIN}`")

    def stage(self, name: str) -> Stage:
        """Return the stage of a state.

        Raises:
            KeyError: The pipeline has no such stage.
        """
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(name)

    def after(self, name: str) -> Stage | None:
        """Return the stage after one, or None after the last."""
        following = self.stages.index(self.stage(name)) + 1
        return self.stages[following] if following < len(self.stages) else None

    def transition(self, current_state: str, status: GateStatus = "pass") -> TransitionResult:
        """Return where an attempt of a stage leads: the one definition of the pipeline's edges.

        Raises:
            KeyError: The pipeline has no such stage.
        """
        following = self.after(current_state)
        match status:
            case "pass":
                done, next_state = following is None, self.end_state if following is None else following.name
                reason = f"{current_state} passed; the run is {'complete' if done else f'in {next_state}'}"
                return TransitionResult(status, next_state, self.role(next_state, done=done), reason)
            case "retry":
                return TransitionResult(status, current_state, self.role(current_state), f"{current_state} failed")
            case "stop":
                reason = f"{current_state} cannot be passed"
                return TransitionResult(status, FAIL_CLOSED, self.role(FAIL_CLOSED), reason)

    def role(self, state: str, *, done: bool = False) -> str:
        """Return what the agent is to do in a state; `done` says that the run reached its end there."""
        if state == FAIL_CLOSED:
            return "Stop. Report the reason and the invalidation report to the user."
        if done:
            return "The run is complete. Nothing is left to do."
        return self.stage(state).role

    @property
    def acts(self) -> bool:
        """Whether a stage of it changes files."""
        return any(stage.acts for stage in self.stages)


BEGIN: Final = "begin"
"""The node that opens a run."""

_SOURCE: Final = "where the ticket comes from, such as jira or github"
_REQUIREMENTS: Final = Stage(
    name="extract_requirements",
    role=(
        "Extract acceptance criteria, constraints, and unknowns from the ticket. One plain sentence each. The criteria "
        "get the ids ac_001, ac_002, … in the order that you give; every one must be covered by the plan later, or "
        "stand among the unknowns."
    ),
    fields=(
        Field("acceptance_criteria", "texts", "what must hold when the ticket is done"),
        Field("constraints", "texts", "what must not change or be done", may_be_empty=True),
        Field("unknowns", "texts", "what the ticket leaves open", may_be_empty=True),
    ),
)
_SCOPE: Final = Stage(
    name="scope_context",
    role=(
        "Determine what must be read to do the work, and why. Write files as repo:PATTERN, such as repo:src/login/**; "
        "files that match may be changed while acting."
    ),
    fields=(
        Field("retrieval_targets", "texts", "what to read: repo:PATTERN, a URL, a document"),
        Field("retrieval_justification", "text", "why these targets suffice"),
    ),
    checks=("targets",),
)
_EVIDENCE: Final = Stage(
    name="gather_evidence",
    role=(
        "Collect snippets with pointers to their sources. For source_type repo the locator is path:line or "
        "path:start-end, and the snippet is copied from those lines as it stands, whole lines best. Other types are "
        "one word, such as web or ticket. One item for each locator."
    ),
    fields=(
        Field(
            "evidence_items",
            "items",
            "what was found",
            fields=(
                Field("source_id", meaning="an id of your own, such as ev_1"),
                Field("source_type", meaning="repo, or another kind of source such as web or ticket"),
                Field("locator", meaning="path:line or path:start-end for repo, otherwise an address"),
                Field("snippet", meaning="the text as it is there"),
                Field(
                    "claim",
                    "item",
                    "the value of one subject, where sources may disagree",
                    fields=(Field("subject", meaning="such as login timeout"), Field("value", meaning="such as 30 s")),
                    optional=True,
                ),
            ),
        ),
    ),
    checks=("unique_ids", "grounded", "no_conflict", "one_value"),
)
_PLAN: Final = Stage(
    name="propose_plan",
    role=(
        "Propose a plan. Each step names the requirements that it serves and the evidence that it rests on, by their "
        "ids; every acceptance criterion is served by a step. Change no file yet."
    ),
    fields=(
        Field(
            "plan_steps",
            "items",
            "the steps in order",
            fields=(
                Field("step_id", meaning="an id of your own, such as step_1"),
                Field("intent", meaning="what the step does, one line"),
                Field("requirement_refs", "texts", "ids such as ac_001"),
                Field("evidence_refs", "texts", "source_ids of evidence items"),
            ),
        ),
    ),
    checks=("unique_ids", "known_refs", "covered"),
)
_ACT_ROLE: Final = (
    "Carry out the plan with your tools, inside its scope, and report what you did. The files are compared with those "
    "of the moment the plan passed."
)
_ACT_FIELDS: Final = (
    Field("actions_taken", "texts", "what was done, one entry for each action"),
    Field("outputs", "texts", "what came of it, such as the files that were changed"),
    Field("checkpoints", "texts", "what was checked, and with what result"),
)
_FINAL_ROLE: Final = "Record what is handed over, sum it up, and state the outcome."
_FINAL_FIELDS: Final = (
    Field("artifacts", "texts", "what is handed over: files, links"),
    Field("final_summary", "text", "what was done and what is left"),
    Field("outcome", "choice", "how it ended", choices=("success", "partial", "blocked")),
)
_FINAL_CHECKS: Final = ("artifacts_exist", "unchanged_said")

TICKET: Final = PipelineSpec(
    name="ticket",
    stages=(
        Stage(
            name="fetch_ticket",
            role="Fetch the ticket from its tracker, or take it from the user, and record it word for word.",
            fields=(
                Field("external_source", meaning=_SOURCE),
                Field("external_ticket_id", meaning="its id there"),
                Field("title", meaning="its title"),
                Field("description", meaning="its whole text"),
            ),
        ),
        _REQUIREMENTS,
        _SCOPE,
        _EVIDENCE,
        _PLAN,
        Stage("act_via_tools", _ACT_ROLE, _ACT_FIELDS, ("observed",), acts=True),
        Stage("record_and_finalize", _FINAL_ROLE, _FINAL_FIELDS, _FINAL_CHECKS),
    ),
)
"""The pipeline of the Ticket Protocol."""

POC: Final = PipelineSpec(
    name="poc",
    stages=(
        Stage(
            name="intake",
            role="Parse the ticket: its id, title and description.",
            fields=(
                Field("ticket_id", meaning="its id"),
                Field("title", meaning="its title"),
                Field("description", meaning="its text", optional=True),
            ),
        ),
        _REQUIREMENTS,
        _SCOPE,
        _EVIDENCE,
        _PLAN,
        Stage("act", _ACT_ROLE, _ACT_FIELDS, ("observed",), acts=True),
        Stage("finalize", _FINAL_ROLE, _FINAL_FIELDS, _FINAL_CHECKS),
    ),
    end_state="finalize",
)
"""The pipeline of the Governance Design, with its minimal ticket."""

SPECS: Final = {spec.name: spec for spec in (TICKET, POC)}
"""Those that ship; `interlock graph --pipeline` lists their names once more."""
