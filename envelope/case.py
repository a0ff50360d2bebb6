"""A case: one response before the rules, with what its assignment expects and the means to fix it."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple, TypeAlias

from interlock.core.text import closest
from interlock.envelope.draft import Delete, Draft, Insert, Op, Patch, snippet
from interlock.envelope.fields import says_nothing
from interlock.envelope.lookalikes import folded, plain
from interlock.envelope.model import FieldText, Item
from interlock.envelope.protocol import ECHO, EVIDENCE_KEYS, STATUSES, TRANSITIONS, Protocol, Role, Status

Inputs: TypeAlias = Literal["warn", "must-exist"]

GATE: Final = re.compile(r"GATE-[A-Z0-9]+(?:-[A-Z0-9]+)*")
GATE_IN_TEXT: Final = re.compile(r"(?<![A-Za-z0-9_-])GATE-[A-Z0-9]+(?:-[A-Z0-9]+)*(?![A-Za-z0-9_-])")
TASK_ID: Final = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)+")
_REMARK: Final = re.compile(r"[ \t]*[(\[{].*")
REASON: Final = "what failed or is missing, such as the total is wrong"


class Gate(NamedTuple):
    """One item of a gate list.

    Args:
        id: The gate id meant; empty when it is unknown.
        item: The item as written.
        remark: Whether there is a remark beside the id.
    """

    id: str
    item: Item
    remark: bool = False


class NamedGate(NamedTuple):
    """A gate that a reason names.

    Args:
        id: Its id, in ASCII.
        start: 0-based index in the reason at which it begins.
        end: 0-based index behind it.
        exact: Whether it is written so; otherwise it only looks like it.
    """

    id: str
    start: int
    end: int
    exact: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """What the rules look at. Arguments as for `validate`."""

    fields: Mapping[str, FieldText]
    protocol: Protocol
    agent: str | None = None
    task_id: str | None = None
    gates: tuple[str, ...] | None = None
    current_status: Status | None = None
    certified: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    excused: frozenset[str] = frozenset()
    input_exists: Callable[[str], bool] | None = None
    inputs: Inputs = "must-exist"

    def value(self, label: str) -> Item | None:
        """Return the value of a field of one line, with look-alike letters read as the ASCII that they resemble."""
        field = self.fields.get(label)
        if field is None or not field.items:
            return None
        item = field.items[0]
        return item if item.text.isascii() else item._replace(text=plain(item.text))

    def items(self, label: str) -> tuple[Item, ...]:
        """Return the items of a list field; none when it is missing."""
        field = self.fields.get(label)
        return field.items if field else ()

    @cached_property
    def stated_status(self) -> Status | None:
        """The status as written, when it is one of the six."""
        item = self.value("STATUS")
        return next((status for status in STATUSES if item and status == item.text), None)

    @cached_property
    def agent_name(self) -> str:
        """The agent that answers: one of the roster that was assigned, else the one named or probably meant."""
        if self.agent in self.protocol.roles:
            return self.agent
        item = self.value("ASSIGNED_AGENT")
        if item is None:
            return ""
        return item.text if item.text in self.protocol.roles else closest(item.text, self.protocol.roles, 0.7)

    @cached_property
    def role(self) -> Role | None:
        """The roster's row of the agent that answers."""
        return self.protocol.roles.get(self.agent_name)

    @cached_property
    def echo(self) -> Status | None:
        """The status that this role may repeat now."""
        status = ECHO.get(self.role.kind) if self.role else None
        return status if status is not None and status == self.current_status else None

    @cached_property
    def legal(self) -> tuple[Status, ...]:
        """The statuses that this agent may state now, in order; all of them when its role is unknown."""
        role = self.role
        if role is None:
            return STATUSES
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
    def required(self) -> tuple[str, ...] | None:
        """The gates of the task: those of the assignment, else those stated; None when neither is there."""
        if self.gates is not None:
            return self.gates
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
    def claims(self) -> tuple[Gate, ...]:
        """The claims that count: known to the task, made once, by one who may make them, and not failed as well."""
        first: dict[str, Gate] = {}
        for gate in self.passed:
            if gate.id and (self.required is None or gate.id in self.required) and self.may_claim(gate.id):
                first.setdefault(gate.id, gate)
        return tuple(gate for gate in first.values() if gate.id not in self.reason_gates)

    def may_claim(self, gate_id: str) -> bool:
        """Return whether this role may list a gate in GATES_PASSED."""
        return self.role is None or gate_id in self.certified or self.protocol.may_certify(self.role, gate_id)

    def gate_items(self, label: str) -> tuple[Gate, ...]:
        """Read the items of a gate list, corrected where the gate meant is plain."""
        return tuple(self.gate(item) for item in self.items(label))

    def gate(self, item: Item) -> Gate:
        """Read one item of a gate list."""
        text = plain(item.text)
        if GATE.fullmatch(text):
            return Gate(text, item)
        word = _REMARK.sub("", text).strip(" \t\"'`*_.,;:")
        if GATE.fullmatch(word):
            return Gate(word, item, remark=len(_REMARK.sub("", text)) != len(text))
        inside = GATE_IN_TEXT.findall(text)
        if len(inside) == 1:
            return Gate(inside[0], item, remark=True)
        corrected = re.sub(r"[ _]+", "-", word.upper())
        corrected = corrected if corrected.startswith("GATE-") else f"GATE-{corrected}"
        known = {*self.protocol.gates, *(self.gates or ())}
        if GATE.fullmatch(corrected) and (corrected in known or word.upper().startswith("GATE")):
            return Gate(corrected, item)
        return Gate(closest(word, known, 0.8), item)

    @cached_property
    def reasons(self) -> tuple[Item, ...]:
        """The bullets of FAIL_REASONS but for NONE, however it is written."""
        return tuple(item for item in self.items("FAIL_REASONS") if not says_nothing(item.text))

    @cached_property
    def reason_gates(self) -> frozenset[str]:
        """The gate that each reason names first: the gate that it says has failed."""
        return frozenset(gates[0].id for item in self.reasons if (gates := self.named_gates(item)))

    @cached_property
    def own_reasons(self) -> bool:
        """Whether a reason is more than the repetition of another gate's failure that the journal holds."""
        others = self.failed - {self.own_gate}
        return any(not (gates := self.named_gates(item)) or gates[0].id not in others for item in self.reasons)

    def named_gates(self, item: Item) -> tuple[NamedGate, ...]:
        """Return the gates that a reason names, in its order, and those that a reader takes for one of this task's."""
        exact = tuple(NamedGate(match[0], *match.span()) for match in GATE_IN_TEXT.finditer(item.text))
        if item.text.isascii():
            return exact
        read = folded(item.text)
        alike = tuple(
            NamedGate(match[0], read.origin[match.start()], read.end(match.end()), exact=False)
            for match in GATE_IN_TEXT.finditer(read.text)
        )
        written = {gate.id for gate in exact}
        meant = [gate for gate in alike if gate.id not in written and (not exact or gate.id in self.known_gates)]
        # What a look-alike cuts in two is one gate, not its first half.
        kept = [gate for gate in exact if not any(other.start <= gate.start < other.end for other in meant)]
        return tuple(sorted((*kept, *meant), key=lambda gate: gate.start))

    @cached_property
    def known_gates(self) -> frozenset[str]:
        """The gates that the task requires, the project has, or the journal names."""
        return frozenset({*(self.required or ()), *self.protocol.gates, *self.failed})

    @cached_property
    def needed_keys(self) -> frozenset[str]:
        """The EVIDENCE keys that the claims that count need."""
        keys = {key for gate in self.claims for key in self.protocol.gate(gate.id).evidence}
        if any(self.protocol.gate(gate.id).any_evidence for gate in self.claims):
            filled = [key for key in EVIDENCE_KEYS if self.items(f"EVIDENCE.{key}")]
            keys |= set(filled[:1])
        return frozenset(keys)


def draft(
    code: str,
    field: str,
    item: Item | None,
    message: str,
    expected: str,
    ops: Iterable[Op] = (),
    advice: str = "",
    *,
    found: str | None = None,
    place: FieldText | None = None,
) -> Draft:
    """Make a draft at an item, or at the value of a field where there is no item."""
    if item is not None:
        line, column = item.line, item.column
    elif place is not None:
        line, column = place.line, place.value_column
    else:
        line, column = 0, 0
    shown = found if found is not None else snippet(item.text if item else "")
    return Draft(code, field, line, column, message, shown, expected, tuple(ops), advice)


def put(item: Item, text: str) -> Op:
    """Put another text in place of an item."""
    return Patch(item.line, item.column, item.end, text)


def drop(field: FieldText, item: Item) -> Op:
    """Take one item out of a list."""
    if item.marker or not field.inline:
        return Delete(item.line, item.line)
    index = field.items.index(item)
    if index:
        return Patch(item.line, field.items[index - 1].end, item.end, "")
    until = field.items[1].column if len(field.items) > 1 else item.end
    return Patch(item.line, item.column, until, "")


def add(field: FieldText, texts: Iterable[str]) -> tuple[Op, ...]:
    """Put items at the end of a list."""
    texts = tuple(texts)
    if not texts:
        return ()
    if field.items and field.items[-1].marker:
        last = field.items[-1]
        return (Insert(last.line, tuple(f"{' ' * (last.start - 1)}- {text}" for text in texts)),)
    if field.items:
        return (Patch(field.line, field.items[-1].end, field.items[-1].end, "".join(f", {text}" for text in texts)),)
    indent = "    - " if "." in field.label else "  - "
    cleared = (
        (Patch(field.line, field.value_column, field.value_end, ""),) if field.value_end > field.value_column else ()
    )
    return (*cleared, Insert(field.line, tuple(indent + text for text in texts)))


def choice(names: Collection[str], what: str) -> str:
    """Return a placeholder for one of several names."""
    listed = list(names)
    return f"<{what}, such as {listed[0]}>" if listed else f"<{what}>"
