"""The protocol tables: labels, statuses, roles, owners, transitions and gates.

Every check, edge, prompt, diagram and document is made from the rows below; nothing restates them.
An absent row means forbidden.
"""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

Status: TypeAlias = Literal["BLOCKED", "IN_PROGRESS", "READY_FOR_QA", "QA_IN_PROGRESS", "READY_FOR_REVIEW", "APPROVED"]
RoleKind: TypeAlias = Literal["orchestrator", "build", "qa", "review"]
EvidenceKey: TypeAlias = Literal["screenshots", "a11y", "console", "reports"]
ContentCheck: TypeAlias = Literal["validator", "visual", "a11y", "report", "not-empty", "command"]
"""What judges the files of a gate: a case of `gates.checks.check_gate` for each."""
Grade: TypeAlias = Literal["written", "runner"]
Setter: TypeAlias = Literal["any agent", "assigned build agent", "frontend-implementer", "orchestrator"]

STATUSES: Final[tuple[Status, ...]] = get_args(Status)
EVIDENCE_KEYS: Final[tuple[EvidenceKey, ...]] = get_args(EvidenceKey)

LABELS: Final = (
    "STATUS",
    "TASK_ID",
    "TASK",
    "ASSIGNED_AGENT",
    "REPORTS_TO",
    "INPUTS_USED",
    "GATES_REQUIRED",
    "GATES_PASSED",
    "EVIDENCE",
    "FAIL_REASONS",
    "OUTPUT",
    "NEXT_ACTIONS",
)
"""The twelve labels in their fixed order (Strict Envelope §2)."""

STATUS_MEANING: Final[dict[Status, str]] = {
    "BLOCKED": "cannot proceed: a dependency is missing or a gate failed",
    "IN_PROGRESS": "work is being done",
    "READY_FOR_QA": "the implementation is complete and waits for every QA role",
    "QA_IN_PROGRESS": "the QA roles are at work",
    "READY_FOR_REVIEW": "QA passed; the work waits for review",
    "APPROVED": "every gate passed and all evidence was verified",
}
"""What each status says (Strict Envelope §3 STATUS)."""

STATUS_OWNER: Final[dict[Status, Setter]] = {
    "BLOCKED": "any agent",
    "IN_PROGRESS": "assigned build agent",
    "READY_FOR_QA": "frontend-implementer",
    "QA_IN_PROGRESS": "orchestrator",
    "READY_FOR_REVIEW": "orchestrator",
    "APPROVED": "orchestrator",
}
"""Who may set a status (Strict Envelope §3 Status Ownership).

`frontend-implementer` means the role that hands over.
"""

ECHO: Final[dict[RoleKind, Status]] = {"qa": "QA_IN_PROGRESS", "review": "READY_FOR_REVIEW"}
"""The one current status that a kind of role may repeat; an echo moves nothing (ours, see docs/history)."""


@dataclass(frozen=True, slots=True)
class Role:
    """One row of the roster: who an agent is to the protocol.

    Args:
        name: The value of ASSIGNED_AGENT.
        kind: What the role does.
        hands_over: Whether this build role may set READY_FOR_QA. Exactly one role of a roster does.
        certifies: The gate that this QA or review role alone may pass, or None.
    """

    name: str
    kind: RoleKind
    hands_over: bool = False
    certifies: str | None = None


@dataclass(frozen=True, slots=True)
class GateSpec:
    """One row of the gate registry: what must be true before a gate counts as passed.

    Args:
        id: `GATE-…`.
        title: What the gate assures, in a few words.
        certifier: The role that alone certifies it; None means any QA or review role, "anybody" means any agent.
        evidence: The EVIDENCE keys that must each have an entry. Empty with `any_evidence` means one entry anywhere.
        any_evidence: At least one entry under any key is needed.
        check: The content check that the evidence must pass.
        grade: The weakest grade that a graph run accepts.
        command: The command of a command gate (argv), else empty.
        timeout_seconds: How long a command gate may run.
    """

    id: str
    title: str
    certifier: str | None = None
    evidence: tuple[EvidenceKey, ...] = ()
    any_evidence: bool = False
    check: ContentCheck = "not-empty"
    grade: Grade = "written"
    command: tuple[str, ...] = ()
    timeout_seconds: float = 300.0

    @property
    def by_command(self) -> bool:
        """Whether the exit status of its command alone passes it: it has a command, and no role certifies it."""
        return bool(self.command) and self.certifier is None


ANYBODY: Final = "anybody"

ROLES: Final = (
    Role("orchestrator", "orchestrator"),
    Role("web-design-lead", "build"),
    Role("frontend-implementer", "build", hands_over=True),
    Role("visual-qa", "qa", certifies="GATE-VISUAL-QA"),
    Role("a11y-auditor", "qa", certifies="GATE-A11Y-BASELINE"),
    Role("code-reviewer", "review", certifies="GATE-CODE-REVIEW"),
)
"""The default roster (Strict Envelope §3 ASSIGNED_AGENT)."""

GATES: Final = (
    GateSpec("GATE-MSG-STRICT", "the response is a valid envelope", ANYBODY, check="validator"),
    GateSpec(
        "GATE-VISUAL-QA",
        "the page renders at every width and the console is clean",
        "visual-qa",
        ("screenshots", "console"),
        check="visual",
        grade="runner",
    ),
    GateSpec(
        "GATE-A11Y-BASELINE",
        "no serious or critical accessibility violation is found",
        "a11y-auditor",
        ("a11y",),
        check="a11y",
        grade="runner",
    ),
    GateSpec("GATE-CODE-REVIEW", "a reviewer read the present tree", "code-reviewer", ("reports",), check="report"),
)
"""The gates that ship (Strict Envelope §3 EVIDENCE)."""

OTHER_GATE: Final = GateSpec("GATE-…", "any other gate", None, any_evidence=True, check="not-empty")
"""The row for a gate that no registry names: one non-empty file, certified by any QA or review role."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One legal move of the status machine.

    Args:
        source: The status before, or None at the start of a task.
        target: The status after.
        by: Who may make the move.
        after: What must hold first.
        clause: Where the rule comes from.
    """

    source: Status | None
    target: Status
    by: Setter
    after: str
    clause: str


TRANSITIONS: Final = (
    Transition(None, "IN_PROGRESS", "assigned build agent", "the task is well-formed", "Strict Envelope §6"),
    Transition(None, "BLOCKED", "any agent", "fail reasons name a gate", "Strict Envelope §3 FAIL_REASONS"),
    Transition("BLOCKED", "IN_PROGRESS", "assigned build agent", "rework budget left", "Strict Envelope §6"),
    Transition("BLOCKED", "BLOCKED", "any agent", "fail reasons name a gate", "Strict Envelope §3 FAIL_REASONS"),
    Transition("IN_PROGRESS", "IN_PROGRESS", "assigned build agent", "a progress report", "Strict Envelope §6"),
    Transition("IN_PROGRESS", "READY_FOR_QA", "frontend-implementer", "a valid envelope", "Strict Envelope §6"),
    Transition("IN_PROGRESS", "BLOCKED", "any agent", "fail reasons name a gate", "Strict Envelope §3 FAIL_REASONS"),
    Transition("READY_FOR_QA", "QA_IN_PROGRESS", "orchestrator", "every QA role is dispatched", "Strict Envelope §5"),
    Transition("READY_FOR_QA", "BLOCKED", "any agent", "fail reasons name a gate", "Strict Envelope §3 FAIL_REASONS"),
    Transition("QA_IN_PROGRESS", "READY_FOR_REVIEW", "orchestrator", "every QA verdict is PASS", "Strict Envelope §6"),
    Transition("QA_IN_PROGRESS", "BLOCKED", "any agent", "fail reasons name a gate", "Strict Envelope §6"),
    Transition(
        "READY_FOR_REVIEW",
        "APPROVED",
        "orchestrator",
        "review PASS, every required gate passed, all evidence verified again",
        "Strict Envelope §4",
    ),
    Transition("READY_FOR_REVIEW", "BLOCKED", "any agent", "fail reasons name a gate", "Strict Envelope §6"),
)
"""Every legal move (Strict Envelope §6); a pair without a row is forbidden."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """The tables that one project works under: the shipped rows, or those rows and the project's own."""

    roles: dict[str, Role] = field(default_factory=lambda: {role.name: role for role in ROLES})
    gates: dict[str, GateSpec] = field(default_factory=lambda: {gate.id: gate for gate in GATES})

    def gate(self, gate_id: str) -> GateSpec:
        """Return the row of a gate; an unnamed gate has the row of any other gate."""
        return self.gates.get(gate_id, OTHER_GATE)

    def of_kind(self, kind: RoleKind) -> tuple[Role, ...]:
        """Return the roles of one kind in roster order."""
        return tuple(role for role in self.roles.values() if role.kind == kind)

    def may_set(self, role: Role, status: Status) -> bool:
        """Return whether a role owns a status (Strict Envelope §3 Status Ownership)."""
        owner = STATUS_OWNER[status]
        if owner == "any agent":
            return True
        if owner == "orchestrator":
            return role.kind == "orchestrator"
        if owner == "frontend-implementer":
            return role.hands_over
        return role.kind == "build"

    def may_certify(self, role: Role, gate_id: str) -> bool:
        """Return whether a role may certify a gate by itself; a gate that its command decides is certified by none."""
        gate = self.gate(gate_id)
        if gate.certifier == ANYBODY or role.kind == "orchestrator":
            return True
        if gate.certifier is None:
            return role.kind in ("qa", "review") and not gate.by_command
        return role.name == gate.certifier


DEFAULT_PROTOCOL: Final = Protocol()
