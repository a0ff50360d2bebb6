"""A case: one response before the rules, with what its assignment expects."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, NamedTuple, TypeAlias

from interlock.core.text import closest
from interlock.envelope.characters import name
from interlock.envelope.draft import Change, Draft, snippet
from interlock.envelope.model import FieldText, Item
from interlock.envelope.protocol import (
    DEFAULT_PROTOCOL,
    ECHO,
    EVIDENCE_KEYS,
    STATUSES,
    TRANSITIONS,
    EvidenceKey,
    Protocol,
    Role,
    Status,
)
from interlock.envelope.scanner import says_nothing

Inputs: TypeAlias = Literal["warn", "must-exist"]

GATE: Final = re.compile(r"GATE-[A-Z0-9]+(?:-[A-Z0-9]+)*")
GATE_IN_TEXT: Final = re.compile(r"(?<![A-Za-z0-9_-])GATE-[A-Z0-9]+(?:-[A-Z0-9]+)*(?![A-Za-z0-9_-])")
TASK_ID: Final = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)+")
REASON: Final = "what failed or is missing, such as the total is wrong"
STEP: Final = "<next step, such as orchestrator to read the output>"
TASK_ID_HOLE: Final = "<task id, such as HOME-IA-001>"
GATE_HOLE: Final = "<gate id, such as GATE-MSG-STRICT>"
_IN_ASCII: Final = frozenset({"STATUS", "TASK_ID", "ASSIGNED_AGENT", "REPORTS_TO", "GATES_REQUIRED", "GATES_PASSED"})
"""The fields of closed vocabularies."""


class Gate(NamedTuple):
    """One item of a gate list: the gate id meant, empty when it is unknown, and the item as written."""

    id: str
    item: Item
    position: int


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """What a response is held to, and what the rules look at.

    Args:
        agent: The agent that the task was assigned to.
        task_id: The task id of the assignment.
        gates: The gates that the assignment requires.
        current_status: The task's status before this response. Without it no status may be repeated, and transitions
            are not judged.
        protocol: The tables in force.
        certified: Gates that the journal holds as passed for the present tree; any agent may list these.
        failed: Gates that the journal shows failed; each needs its reason.
        excused: Gates of QA that may be missing at READY_FOR_REVIEW: a person accepted an objection to them.
        input_exists: Returns whether a path of INPUTS_USED exists; None leaves that unchecked.
        inputs: Whether a missing input is a warning or an error.
        fields: What was read of the response, by label and by `EVIDENCE.key`; `validate` fills it in.
    """

    agent: str | None = None
    task_id: str | None = None
    gates: Collection[str] | None = None
    current_status: Status | None = None
    protocol: Protocol = DEFAULT_PROTOCOL
    certified: Collection[str] = frozenset()
    failed: Collection[str] = frozenset()
    excused: Collection[str] = frozenset()
    input_exists: Callable[[str], bool] | None = None
    inputs: Inputs = "must-exist"
    fields: Mapping[str, FieldText] = field(default_factory=dict[str, FieldText])

    def value(self, label: str) -> Item | None:
        """Return the value of a field of one line."""
        read = self.fields.get(label)
        return read.items[0] if read is not None and read.items else None

    def items(self, label: str) -> tuple[Item, ...]:
        """Return the items of a list field; none when it is missing."""
        read = self.fields.get(label)
        return read.items if read else ()

    # -- status and role

    @cached_property
    def stated_status(self) -> Status | None:
        """The status as written, when it is one of the six."""
        item = self.value("STATUS")
        return next((status for status in STATUSES if item and status == item.text), None)

    @cached_property
    def role(self) -> Role | None:
        """The roster's row of the agent that answers: the one assigned, else the one named or probably meant.

        Who sends a plain report without an assignment is taken for the one that hands work over.
        """
        roles = self.protocol.roles
        if self.agent in roles:
            return roles[self.agent]
        item = self.value("ASSIGNED_AGENT")
        if item is not None:
            # Near enough for `frontend_implementer`.
            return roles.get(item.text) or roles.get(closest(item.text, roles, 0.7))
        return None if self.fields else next((role for role in roles.values() if role.hands_over), None)

    @cached_property
    def echo(self) -> Status | None:
        """The status that this role may repeat now."""
        status = ECHO.get(self.role.kind) if self.role else None
        return status if status is not None and status == self.current_status else None

    @cached_property
    def way_to_pass(self) -> str:
        """How a judge whose gate passed says so where the status of the task is not known; empty for all others."""
        status = ECHO.get(self.role.kind) if self.role else None
        if status is None or self.current_status is not None:
            return ""
        return (
            f"If {self.own_gate or 'the gate'} passed, state `STATUS: {status}` instead, with it in GATES_PASSED and "
            f"no reasons, and say where this is checked that the task has that status: `--current-status {status}`."
        )

    @cached_property
    def legal(self) -> tuple[Status, ...]:
        """The statuses that this agent may state now, in order; all of them when its role is unknown."""
        role = self.role
        if role is None:
            return STATUSES
        # While the status of the task is not known, no move is judged, only who may make it.
        owned = {status for status in STATUSES if self.protocol.may_set(role, status)}
        if self.current_status is not None:
            owned &= {move.target for move in TRANSITIONS if move.source == self.current_status}
            owned |= {self.echo} if self.echo else set()
        return tuple(status for status in STATUSES if status in owned)

    @cached_property
    def status(self) -> Status | None:
        """The stated status when this agent may state it; None leaves the rules that build on it silent."""
        return self.stated_status if self.stated_status in self.legal else None

    @cached_property
    def own_gate(self) -> str | None:
        """The gate that this role certifies."""
        return self.role.certifies if self.role else None

    @cached_property
    def better_status(self) -> Status | None:
        """The status to state instead of a wrong one: the nearest legal one; None when the task is closed.

        Whether its gates and reasons allow it is found by the rules once it is tried.
        """
        item = self.value("STATUS")
        # `Ready for QA` is near enough; `DONE` is near nothing.
        near = closest(item.text.upper().replace(" ", "_"), STATUSES, 0.75) if item else ""
        for status in self.legal:
            if status == near:
                return status
        if self.role is not None and self.role.kind == "build" and self.legal:
            # The statuses are in the order of the work, so this is the furthest that a builder may go.
            return self.legal[-1]
        # A judge whose answer is a pass in all other fields is taken at its word.
        if self.echo and self.own_gate in self.passed_ids and not self.own_reasons and self.own_gate not in self.failed:
            return self.echo
        return "BLOCKED" if "BLOCKED" in self.legal else None

    # -- gates

    @cached_property
    def required(self) -> tuple[str, ...] | None:
        """The gates of the task: those of the assignment, else those stated; None when neither is there."""
        if self.gates is not None:
            return tuple(dict.fromkeys(self.gates))
        if "GATES_REQUIRED" not in self.fields:
            return None
        return tuple(dict.fromkeys(gate.id for gate in self.gate_items("GATES_REQUIRED") if gate.id))

    @cached_property
    def passed(self) -> tuple[Gate, ...]:
        """The items of GATES_PASSED."""
        return self.gate_items("GATES_PASSED")

    @cached_property
    def passed_ids(self) -> frozenset[str]:
        """The gates that the response says have passed."""
        return frozenset(gate.id for gate in self.passed if gate.id)

    @cached_property
    def first_claims(self) -> tuple[Gate, ...]:
        """The first claim of each gate; a repeated one is refused as such."""
        first: dict[str, Gate] = {}
        for gate in self.passed:
            if gate.id:
                first.setdefault(gate.id, gate)
        return tuple(first.values())

    @cached_property
    def claims(self) -> tuple[Gate, ...]:
        """The claims that count: known to the task, by one who may make them, and not failed as well."""
        return tuple(
            gate
            for gate in self.first_claims
            if (self.required is None or gate.id in self.required)
            and self.may_claim(gate.id)
            # A gate that is also said to have failed is refused by ENV416, and needs no evidence on top.
            and gate.id not in self.reason_gates
        )

    def may_claim(self, gate_id: str) -> bool:
        """Return whether this role may list a gate in GATES_PASSED."""
        return self.role is None or gate_id in self.certified or self.protocol.may_certify(self.role, gate_id)

    def gate_items(self, label: str) -> tuple[Gate, ...]:
        """Read the items of a gate list, corrected where the gate meant is plain."""
        return tuple(self._gate(item, index) for index, item in enumerate(self.items(label)))

    def _gate(self, item: Item, index: int) -> Gate:
        if GATE.fullmatch(item.text):
            return Gate(item.text, item, index)
        inside = GATE_IN_TEXT.findall(item.text)
        # `GATE-A or GATE-B` names none.
        if len(inside) == 1:
            return Gate(inside[0], item, index)
        # Sorted, so that of two names that are equally near the same one is taken each time.
        return Gate(closest(item.text.upper(), sorted({*self.protocol.gates, *(self.gates or ())}), 0.8), item, index)

    @cached_property
    def known_gates(self) -> frozenset[str]:
        """The gates that the task requires, the project has, or the journal names."""
        return frozenset({*(self.required or ()), *self.protocol.gates, *self.failed})

    @cached_property
    def required_of_qa(self) -> list[str]:
        """The required gates of QA roles, but for those whose objection a person accepted."""
        of_qa = {role.certifies for role in self.protocol.of_kind("qa")}
        return [gate for gate in self.required or () if gate in of_qa and gate not in self.excused]

    @cached_property
    def open_gate(self) -> str:
        """The gate that most likely failed: the role's own, else one that failed or is not said to have passed."""
        still = sorted(self.now_failed) + [gate for gate in self.required or () if gate not in self.passed_ids]
        return self.own_gate or (still or ["GATE-MSG-STRICT"])[0]

    @cached_property
    def now_failed(self) -> frozenset[str]:
        """The gates that the journal shows failed, and does not hold as passed since."""
        return frozenset(self.failed) - frozenset(self.certified)

    def evidence_keys(self, gate_id: str) -> tuple[EvidenceKey, ...]:
        """Return the keys under which a claim of a gate needs an entry; `reports` where any key will do."""
        spec = self.protocol.gate(gate_id)
        if spec.any_evidence:
            filled: list[EvidenceKey] = [key for key in EVIDENCE_KEYS if self.items(f"EVIDENCE.{key}")]
            # One key that has an entry will do; where none has, a report is what any agent can write.
            return tuple(filled[:1] or ["reports"])
        return spec.evidence

    # -- reasons

    @cached_property
    def reasons(self) -> tuple[tuple[int, Item], ...]:
        """The bullets of FAIL_REASONS but for NONE, however it is written, with their indexes."""
        items = enumerate(self.items("FAIL_REASONS"))
        return tuple((index, item) for index, item in items if not says_nothing(item.text))

    @cached_property
    def reason_gates(self) -> frozenset[str]:
        """The gate that each reason names first: the gate that it says has failed."""
        named = (GATE_IN_TEXT.search(item.text) for _, item in self.reasons)
        return frozenset(gate[0] for gate in named if gate)

    @cached_property
    def own_reasons(self) -> bool:
        """Whether a reason is more than the repetition of another gate's failure that the journal holds."""
        # Each failed gate needs its reason in every answer, so a judge that passes its own gate repeats those of
        # others.
        others = set(self.failed) - {self.own_gate}
        named = [GATE_IN_TEXT.search(item.text) for _, item in self.reasons]
        return any(gate is None or gate[0] not in others for gate in named)

    # -- what a fix writes

    def default(self, label: str) -> tuple[str, ...]:
        """Return the values to begin with where a field is missing or empty; `<…>` is for the agent to fill in."""
        if label == "GATES_REQUIRED":
            known = self.gates or dict.fromkeys([*(gate.id for gate in self.first_claims), *sorted(self.reason_gates)])
            return tuple(known) or (GATE_HOLE,)
        # An echo without its gate would be neither a pass nor a fail.
        if label == "GATES_PASSED" and self.own_gate and self.status is not None and self.status == self.echo:
            return (f"<gates that passed, such as {self.own_gate}>",)
        status = self.stated_status
        names = [
            role.name
            for role in self.protocol.roles.values()
            # The orchestrator may set nearly all of them, and is hardly ever the one that answers.
            if status is None or (self.protocol.may_set(role, status) and role.kind != "orchestrator")
        ] or ["orchestrator"]
        likely = self.role.name if self.role else names[0]
        better = self.better_status or "BLOCKED"
        choices = " or ".join(self.legal)
        values = {
            "STATUS": f"<your status: {choices}, such as {better}>" if len(self.legal) > 1 else better,
            "TASK_ID": self.task_id or TASK_ID_HOLE,
            "TASK": "<what was attempted, such as Correct the total>",
            "ASSIGNED_AGENT": self.agent or f"<your role, such as {likely}>",
            "REPORTS_TO": "orchestrator",
            "INPUTS_USED": "<what you read, such as the assignment>",
            "OUTPUT": "<what you deliver, such as a summary of the work>",
            # Nothing follows an approval: NONE is right there.
            "NEXT_ACTIONS": "" if status == "APPROVED" else STEP,
        }
        value = values.get(label, "")
        return (value,) if value else ()


def draft(
    code: str,
    label: str,
    item: Item | FieldText | None,
    message: str,
    expected: str,
    *changes: Change,
    advice: str = "",
    found: str | None = None,
) -> Draft:
    """Make a draft at an item, or at the value of a field where there is no item."""
    if isinstance(item, Item):
        line, column, text = item.line, item.column, item.text
    else:
        line, column, text = (item.line, item.value_column, "") if item is not None else (0, 0, "")
    shown = snippet(text) if found is None else found
    # Nobody can read that a letter only looks like the one that is expected.
    foreign = next((char for char in text if not char.isascii()), "") if label in _IN_ASCII else ""
    shown += f", with {name(foreign)}" if foreign else ""
    return Draft(code, label, line, column, message, shown, expected, changes, advice)


def put(label: str, text: str, index: int = 0) -> Change:
    """Put another text in place of a value."""
    return Change(label, index, text)


def drop(label: str, index: int) -> Change:
    """Take one value out of a list."""
    return Change(label, index, None)


def add(label: str, text: str) -> Change:
    """Put a value at the end of a list."""
    return Change(label, None, text)


def state(case: Case, status: Status | None) -> tuple[Change, ...]:
    """State another status; nothing where there is none to state."""
    return () if status is None or case.value("STATUS") is None else (put("STATUS", status),)


def choice(names: Collection[str], what: str) -> str:
    """Return a placeholder for one of several names."""
    listed = list(names)
    return f"<{what}, such as {listed[0]}>" if listed else f"<{what}>"


def evidence_hole(gate: str, key: str) -> str:
    """Return a placeholder for the path of one evidence file; it suggests no name, so that nobody invents one."""
    return f"<path of a {key} file for {gate} that exists>"
