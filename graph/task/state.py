"""The state of one run: JSON values only, with a reducer on every key that parallel nodes write."""

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired

from typing_extensions import TypedDict

from interlock.agents.changes import ChangeKind
from interlock.envelope.protocol import Status
from interlock.graph.engine.folder import HeadRecord
from interlock.graph.task.machine import Cause, Outcome, Verdict


class Outside(TypedDict):
    """One file outside the scope that changed: its path relative to the root, what became of it, and who holds it."""

    path: str
    kind: ChangeKind
    holder: str


class Objection(TypedDict):
    """An objection that a person answered: in which attempt, and the agent's reason.

    `answer` is `correct`, `refuse`, `accept`, or `decline` where an accepted one was not followed by a waiver.
    """

    attempt: int
    reason: str
    answer: str


class Waiver(TypedDict):
    """A gate that a person waived for one tree."""

    tree: str
    by: str
    reason: str
    attempt: int


class Event(TypedDict):
    """One journal line that waits in the outbox; `order` is its place among those of the same phase."""

    type: str
    data: dict[str, Any]
    order: list[int]


class Answered(TypedDict):
    """The last answer of one role: what came of it, its OUTPUT, and the text for a re-ask if it was refused.

    `stored` is the key under which its text is kept, `sha256` the digest of that text; `opened` are the files that the
    role was shown in this run, None when that is not known.
    """

    outcome: Outcome
    attempt: int
    turn: int
    reask: int
    findings_text: str
    reasons: list[str]
    output: str
    stored: str
    sha256: str
    opened: list[str] | None


class CollectedEvidence(TypedDict):
    """What Interlock's own collector made for one role; `collection` is a `gates.manifest.Collection` as JSON."""

    attempt: int
    tree: str
    collection: dict[str, Any] | None
    error: str
    fix: str


def merge(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge by key; a None value removes its key."""
    merged = {**(old or {}), **(new or {})}
    return {key: value for key, value in merged.items() if value is not None}


class TaskState(TypedDict):
    """Everything a run knows about itself between two nodes.

    Shapes: `attempt` counts rounds of work from 1; `turn` counts dispatches of a build role within an attempt;
    `reask` counts by role; `origin` is the tree that an earlier run of the task began with, where its work is
    still to be delivered, or empty; `tree` is the digest of the scope as handed over; `spent` is an
    `agents.usage.Usage` as JSON by role, over the whole run; `sealing` is what the run froze for its sealed gates;
    `first_snapshot` and `snapshot` name the trees as work was assigned first, and as handed over; `outside` are the
    files outside the scope that differ between them; `questions` counts what a person was
    asked and answered, `questions_before` those before this attempt; `objected` are the gates of the last objection,
    with its reasons; `task` is the task as a person corrected it last, and `corrected` how often: such an attempt is no
    round of rework;
    `same_attempt` says that after BLOCKED the attempt goes on; `objections` and `waivers` are by gate, and so is
    `declined`: what a person said who declined to waive the gate in this attempt.
    """

    run_id: str
    frozen: str
    status: Status | None
    attempt: int
    turn: int
    step: int
    origin: NotRequired[str]
    tree_before: str
    tree: str
    answers: Annotated[dict[str, Answered], merge]
    verdicts: Annotated[dict[str, Verdict], merge]
    collected: Annotated[dict[str, CollectedEvidence], merge]
    sealing: dict[str, Any]
    first_snapshot: NotRequired[str]
    snapshot: NotRequired[str]
    outside: list[Outside]
    spent: Annotated[dict[str, dict[str, Any]], merge]
    outbox: Annotated[dict[str, Event], merge]
    questions: NotRequired[int]
    questions_before: NotRequired[int]
    objected: NotRequired[dict[str, str]]
    task: NotRequired[dict[str, Any]]
    corrected: NotRequired[int]
    same_attempt: NotRequired[bool]
    objections: NotRequired[dict[str, Objection]]
    waivers: NotRequired[dict[str, Waiver]]
    declined: NotRequired[dict[str, str]]
    cause: Cause | None
    fail_reasons: list[str]
    outcome: Outcome
    head: HeadRecord


def round_of(state: TaskState) -> str:
    """Return what the journal keys of the present round begin with.

    That is the attempt, and how many questions a person has answered.
    """
    questions = state.get("questions", 0)
    # Without the number, a step that is repeated after an answer would find the line of the one before it.
    return f"{state['attempt']}~{questions}" if questions else str(state["attempt"])


def excused_gates(state: Mapping[str, Any]) -> frozenset[str]:
    """Return the gates to which an objection was accepted."""
    rows: Mapping[str, Objection] = state.get("objections", {})
    return frozenset(gate for gate, row in rows.items() if row["answer"] == "accept")


def waived_trees(state: Mapping[str, Any]) -> dict[str, str]:
    """Return for each gate that was waived in this attempt the tree that it is waived for."""
    rows: Mapping[str, Waiver] = state.get("waivers", {})
    return {gate: row["tree"] for gate, row in rows.items() if row["attempt"] == state["attempt"]}


def objected_before(state: Mapping[str, Any]) -> frozenset[str]:
    """Return the gates to which an objection was answered in the present attempt, or accepted in any."""
    rows: Mapping[str, Objection] = state.get("objections", {})
    return frozenset(
        gate for gate, row in rows.items() if row["attempt"] == state["attempt"] or row["answer"] == "accept"
    )


class TaskInput(TypedDict, total=False):
    """What starts a run: its id (default: the thread id), and the digest of the frozen task and policy, if kept."""

    run_id: str
    frozen: str


class TaskOutput(TypedDict, total=False):
    """What a run ends with."""

    run_id: str
    status: Status | None
    attempt: int
    fail_reasons: list[str]
    head: HeadRecord
