"""How a turn may end: the table from which examples, forms and prompts are made."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from interlock.envelope.protocol import Role, RoleKind, Status

OutcomeName: TypeAlias = Literal[
    "progress", "hand-over", "pass", "fail", "start-qa", "start-review", "approve", "blocked"
]
Passed: TypeAlias = Literal["any agent's", "own", "of QA", "all"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way in which a kind of role ends its turn.

    Args:
        name: What to ask `example` for.
        kind: The kind of role that may end its turn so.
        before: The status of the task before the answer.
        status: The value of STATUS: set, or echoed when it equals `before` for a QA or review role.
        passed: Which of the required gates the answer lists as passed.
        output: A sample OUTPUT; `{task_id}` and `{gate}` are filled in.
        actions: A sample of NEXT_ACTIONS; `{role}` and `{gate}` are filled in.
        reason: A sample FAIL_REASON after its gate; empty for NONE.
    """

    name: OutcomeName
    kind: RoleKind
    before: Status
    status: Status
    passed: Passed
    output: str
    actions: tuple[str, ...] = ()
    reason: str = ""


OUTCOMES: Final = (
    Outcome(
        "hand-over",
        "build",
        "IN_PROGRESS",
        "READY_FOR_QA",
        "any agent's",
        "The page is built and every input was followed.\n\n- index.html: landmarks, headings and the form\n"
        "- styles.css: one column to 767 px, two from 768 px",
        ("orchestrator to dispatch every QA role",),
    ),
    Outcome(
        "progress",
        "build",
        "IN_PROGRESS",
        "IN_PROGRESS",
        "any agent's",
        "The layout is decided: three sections under one heading, one form at the end.",
        ("{role} to finish the open part",),
    ),
    Outcome(
        "blocked",
        "build",
        "IN_PROGRESS",
        "BLOCKED",
        "any agent's",
        "Nothing was changed.",
        ("orchestrator to supply what the fail reasons name",),
        "an input that the task needs does not exist",
    ),
    Outcome(
        "pass",
        "qa",
        "QA_IN_PROGRESS",
        "QA_IN_PROGRESS",
        "own",
        "{gate} holds: every file under EVIDENCE was read and shows no fault.",
        ("orchestrator to collect the verdicts of the other QA roles",),
    ),
    Outcome(
        "fail",
        "qa",
        "QA_IN_PROGRESS",
        "BLOCKED",
        "any agent's",
        "{gate} does not hold; the fail reasons say where and what to change.",
        ("the build agent to fix what the fail reasons name",),
        "the form field for the e-mail address has no label",
    ),
    Outcome(
        "pass",
        "review",
        "READY_FOR_REVIEW",
        "READY_FOR_REVIEW",
        "own",
        "{gate} holds: the present files were read; no change is asked for.",
        ("orchestrator to verify all evidence again",),
    ),
    Outcome(
        "fail",
        "review",
        "READY_FOR_REVIEW",
        "BLOCKED",
        "any agent's",
        "{gate} does not hold; the fail reasons say where and what to change.",
        ("the build agent to fix what the fail reasons name",),
        "index.html repeats one block three times",
    ),
    Outcome(
        "start-qa",
        "orchestrator",
        "READY_FOR_QA",
        "QA_IN_PROGRESS",
        "any agent's",
        "The hand-over of {task_id} is valid; every QA role is dispatched.",
        ("every QA role to judge its gate",),
    ),
    Outcome(
        "start-review",
        "orchestrator",
        "QA_IN_PROGRESS",
        "READY_FOR_REVIEW",
        "of QA",
        "Every QA verdict on {task_id} is a pass.",
        ("the review role to read the present files",),
    ),
    Outcome(
        "approve",
        "orchestrator",
        "READY_FOR_REVIEW",
        "APPROVED",
        "all",
        "Every gate of {task_id} passed and all evidence was verified again.",
    ),
    Outcome(
        "blocked",
        "orchestrator",
        "QA_IN_PROGRESS",
        "BLOCKED",
        "any agent's",
        "{task_id} goes back to its build agent.",
        ("the build agent to fix what the fail reasons name",),
        "the gate did not hold",
    ),
)
"""How each kind of role ends its turn; the first row of a kind is its usual one."""


def outcomes(role: Role) -> tuple[Outcome, ...]:
    """Return the ways in which a role may end its turn, the usual one first."""
    return tuple(row for row in OUTCOMES if row.kind == role.kind and (row.name != "hand-over" or role.hands_over))
