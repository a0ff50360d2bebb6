"""The pure core of the status machine: what one answer, one tally and one budget decide.

No function here reads a file, a clock or a model. The nodes collect facts and call these functions; the tests
call them over every combination of their inputs.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, NotRequired, TypeAlias, TypedDict, get_args

from interlock.envelope.protocol import ANYBODY, EvidenceKey, Protocol, Role, RoleKind, Status
from interlock.graph.blocked_reasons import OBJECTS

AgentOutcome: TypeAlias = Literal[
    "stale", "spent", "invalid", "progress", "handover", "blocked", "objection", "pass", "fail"
]
"""What came of asking an agent."""

Outcome: TypeAlias = Literal[AgentOutcome, "holds", "broken", "answered", "waive"]
"""What came of one step: those from `holds` on are of the orchestrator's own checks, the rest of an agent's answer.

`stale` and `spent` are said before anybody is asked: files changed, or the budget is used up. `objection` is kept while
the task is BLOCKED by one, `answered` follows a person's answer to it, and `waive` says that nothing is missing but
gates to which an objection was accepted."""

Tally: TypeAlias = Literal["pending", "pass", "fail"]
"""The verdicts of one phase taken together."""

Next: TypeAlias = Status | Literal["ASK_AGAIN", "ASK_PERSON", "TALLY", "WAIT", "END"]
"""Where work goes: a status, the same role again, a person, the count of verdicts, nowhere yet, or the end."""

Cause: TypeAlias = Literal[
    "gate", "stale", "protocol", "agent", "collector", "task", "evidence", "budget", "objection", "waiver"
]
"""Why a task is BLOCKED. `REWORKABLE` says which of them another round of work can fix."""

OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
UNANSWERED: Final[frozenset[Outcome]] = frozenset({"stale", "spent", "invalid"})
"""Outcomes without an answer that counts."""
TALLIES: Final[tuple[Tally, ...]] = get_args(Tally)

REWORKABLE: Final[Mapping[Cause, bool]] = {
    "gate": True,
    "stale": True,
    "evidence": True,
    "protocol": False,
    "agent": False,
    "collector": False,
    "task": False,
    "budget": False,
    "objection": False,
    "waiver": False,
}
"""A spent re-ask, an agent that gave up, a broken collector or an ill-formed task needs a person, not a round."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What is left to spend."""

    reask: bool
    rework: bool
    progress: bool


class CitedFile(TypedDict):
    """One evidence file of a verdict: EVIDENCE key, path below the root, the digest that counts, size in bytes."""

    key: EvidenceKey
    path: str
    sha256: str
    size_bytes: int


class Verdict(TypedDict):
    """What one QA or review role found, derived from a checked answer and never stated by the agent.

    Shapes: `result` is PASS, FAIL, or NONE when no usable answer came; `gates` are the gates that the answer
    certifies; `tree` is the digest of the scope that was judged; `reasons` each begin with a gate id; `failed` are all
    gates that the reasons of a FAIL name, whole as the agent wrote them. `evidence` is that of a FAIL too.
    """

    role: str
    result: Literal["PASS", "FAIL", "NONE"]
    cause: Cause
    attempt: int
    tree: str
    gates: list[str]
    evidence: list[CitedFile]
    reasons: list[str]
    failed: NotRequired[list[str]]


def route(status: Status | None, kind: RoleKind, outcome: Outcome, tally: Tally, budget: Budget) -> Next:
    """Return where work goes next; total over its inputs, and BLOCKED or END wherever no row matches.

    The status is None before the first dispatch; "orchestrator" acts where the machine checks by itself.

    Returns:
        The next node. A returned status is always a row of `TRANSITIONS`, or the status is kept to the end.

    Source: Strict Envelope §5 and §6.
    """
    match status, kind:
        case None, "orchestrator":
            return "IN_PROGRESS" if outcome == "holds" else "BLOCKED"
        case "IN_PROGRESS", "build":
            return _after_build(outcome, budget)
        case "READY_FOR_QA", "orchestrator":
            return "QA_IN_PROGRESS" if outcome == "holds" else "BLOCKED"
        case ("QA_IN_PROGRESS", "qa") | ("READY_FOR_REVIEW", "review"):
            return "ASK_AGAIN" if outcome == "invalid" and budget.reask else "TALLY"
        case "QA_IN_PROGRESS", "orchestrator":
            return _after_tally("READY_FOR_REVIEW", outcome, tally)
        case "READY_FOR_REVIEW", "orchestrator":
            if outcome == "waive" and tally == "pass":
                return "ASK_PERSON"
            return _after_tally("APPROVED", outcome, tally)
        case "BLOCKED", "orchestrator":
            if outcome == "objection":
                return "ASK_PERSON"
            return "IN_PROGRESS" if budget.rework or outcome == "answered" else "END"
        case "APPROVED", _:
            return "END"
        case _:
            return "BLOCKED"


def _after_build(outcome: Outcome, budget: Budget) -> Next:
    if outcome == "invalid" and budget.reask:
        return "ASK_AGAIN"
    if outcome == "progress" and budget.progress:
        return "IN_PROGRESS"
    return "READY_FOR_QA" if outcome == "handover" else "BLOCKED"


def _after_tally(target: Status, outcome: Outcome, tally: Tally) -> Next:
    if tally == "pending":
        return "WAIT"
    return target if tally == "pass" and outcome == "holds" else "BLOCKED"


def outcome_of(role: Role, *, ok: bool, status: Status | None, verdict: str | None, objects: bool = False) -> Outcome:
    """Derive the outcome of one answer from its checked reading; `objects`: whether its reasons object to a gate."""
    if not ok:
        return "invalid"
    if role.kind in ("qa", "review"):
        return "pass" if verdict == "PASS" else "fail" if verdict == "FAIL" else "invalid"
    if status == "BLOCKED":
        return "objection" if objects and role.kind == "build" else "blocked"
    if status == "READY_FOR_QA" and role.hands_over:
        return "handover"
    return "progress" if status == "IN_PROGRESS" and role.kind == "build" else "invalid"


_NONE: Final[frozenset[str]] = frozenset()


def is_no_obstacle(verdict: Verdict, excused: Collection[str]) -> bool:
    """Return whether a verdict lets the work move on: a PASS, or a FAIL that names excused gates and no others.

    A verdict NONE never does: nothing was judged.
    """
    failed = {*verdict.get("failed", ())}
    return verdict["result"] == "PASS" or (verdict["result"] == "FAIL" and bool(failed) and failed <= {*excused})


def tally(
    names: Iterable[str], verdicts: Mapping[str, Verdict], attempt: int, excused: Collection[str] = _NONE
) -> Tally:
    """Count the verdicts of one attempt: pending until every name has one, pass only when none is an obstacle."""
    rows = [verdicts.get(name) for name in names]
    if not rows or any(row is None or row["attempt"] != attempt for row in rows):
        return "pending"
    return "pass" if all(row is not None and is_no_obstacle(row, excused) for row in rows) else "fail"


def certified(
    protocol: Protocol, verdicts: Mapping[str, Verdict], attempt: int, tree: str, excused: Collection[str] = _NONE
) -> frozenset[str]:
    """Return the gates that their own certifiers passed in this attempt on this tree.

    A gate that anybody may list is certified by any valid answer, and so always. A gate of a command without a
    certifier is passed by the orchestrator, which ran the command. A FAIL for excused gates alone certifies the others
    that it lists; a gate that anybody failed is certified by nobody.
    """
    held = {gate.id for gate in protocol.gates.values() if gate.certifier == ANYBODY}
    rows = {name: verdict for name, verdict in verdicts.items() if verdict["attempt"] == attempt}
    failed = {gate for verdict in rows.values() for gate in verdict.get("failed", ())}
    for name, verdict in rows.items():
        if is_no_obstacle(verdict, excused) and verdict["tree"] == tree:
            held |= {gate for gate in verdict["gates"] if gate not in failed and _is_certifier(protocol, name, gate)}
    return frozenset(held)


def judges(protocol: Protocol, required: Iterable[str], kind: RoleKind) -> tuple[str, ...]:
    """Return the names whose verdicts a phase needs: its roles, and in QA the commands of gates that no role certifies.

    Without a review role, the review is passed by what those commands found, and by nothing else. A phase for which
    nobody can give a verdict has no names, and never ends.
    """
    names = tuple(role.name for role in protocol.of_kind(kind))
    by_command = any(protocol.gate(gate_id).by_command for gate_id in required)
    return (*names, COMMAND_GATES) if by_command and (kind == "qa" or not names) else names


def _is_certifier(protocol: Protocol, name: str, gate_id: str) -> bool:
    if name == COMMAND_GATES:
        return protocol.gate(gate_id).by_command
    role = protocol.roles.get(name)
    return role is not None and role.kind in ("qa", "review") and protocol.may_certify(role, gate_id)


def certifiers(protocol: Protocol, required: Iterable[str]) -> dict[str, list[str]]:
    """Return for each required gate whose PASS certifies it; what any valid answer certifies is left out."""
    names = (*protocol.roles, COMMAND_GATES)
    return {
        gate: [name for name in names if _is_certifier(protocol, name, gate)]
        for gate in required
        if protocol.gate(gate).certifier != ANYBODY
    }


def unjudged(verdicts: Mapping[str, Verdict], attempt: int) -> tuple[str, ...]:
    """Return whose step of this attempt failed for a reason outside the work, so that it can be done again.

    Their evidence could not be made, or the judge gave no valid answer.
    """
    return tuple(
        name
        for name, row in verdicts.items()
        if row["attempt"] == attempt and row["result"] == "NONE" and row["cause"] in ("collector", "protocol")
    )


def waived(protocol: Protocol, waivers: Mapping[str, str], tree: str) -> frozenset[str]:
    """Return the gates that are waived for this tree: `waivers` has a tree for each; one for another tree is void.

    A gate that any valid answer certifies is never waived.
    """
    return frozenset(
        gate for gate, of in waivers.items() if of == tree and protocol.gate(gate).certifier != ANYBODY and tree
    )


def missing_gates(
    protocol: Protocol,
    required: Iterable[str],
    verdicts: Mapping[str, Verdict],
    attempt: int,
    tree: str,
    *,
    excused: Collection[str] = _NONE,
    waivers: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, ...]:
    """Return the required gates that nobody entitled has passed, or waived for this tree, in task order."""
    held = certified(protocol, verdicts, attempt, tree, excused) | waived(protocol, waivers, tree)
    return tuple(gate_id for gate_id in required if gate_id not in held)


@dataclass(frozen=True, slots=True)
class Recheck:
    """What a recheck of one attempt's verdicts found: whether they hold for the present tree and the present files.

    Args:
        cause: Why the task cannot move on, or None when everything holds.
        gates: The gates that are concerned, for the fail reasons.
        reasons: Reasons that agents gave; each begins with a gate id.
    """

    cause: Cause | None
    gates: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


def recheck(
    protocol: Protocol,
    required: Iterable[str],
    verdicts: Mapping[str, Verdict],
    *,
    attempt: int,
    handed_over: str,
    present: str,
    swapped: Callable[[Iterable[CitedFile]], bool],
    last: bool,
    excused: Collection[str] = _NONE,
    waivers: Mapping[str, str] = MappingProxyType({}),
) -> Recheck:
    """Return whether the verdicts of an attempt still justify the next move (Strict Envelope §4 and §5).

    `handed_over` is the digest of the scope at the hand-over, `present` that of now. `swapped` returns whether any of
    some files is no longer the one that was judged. With `last` the next move is APPROVED, so every required gate must
    be certified, or waived for the present tree. `excused` are gates to which an objection was accepted: they may be
    missing until a person has seen the work. Where nothing else is missing, the cause is `waiver`.
    """
    rows = {name: row for name, row in verdicts.items() if row["attempt"] == attempt}
    bad = [row for row in rows.values() if not is_no_obstacle(row, excused)]
    if bad:
        causes: list[Cause] = [row["cause"] for row in bad]
        causes.sort(key=lambda cause: (REWORKABLE[cause], cause == "stale"))
        return Recheck(causes[0], reasons=tuple(reason for row in bad for reason in row["reasons"]))
    if any(tree != handed_over for tree in (present, *(row["tree"] for row in rows.values()))):
        return Recheck("stale", tuple(dict.fromkeys(gate for row in rows.values() for gate in row["gates"])))
    for row in rows.values():
        if swapped(row["evidence"]):
            return Recheck("evidence", (*row["gates"], *row.get("failed", ())))
    clash = _cited_twice(rows.values())
    if clash:
        return Recheck("evidence", reasons=clash)
    if not last:
        return Recheck(None)
    missing = missing_gates(protocol, required, rows, attempt, present, excused=excused, waivers=waivers)
    if not missing:
        return Recheck(None)
    return Recheck("waiver" if {*missing} <= {*excused} else "gate", missing)


def _cited_twice(rows: Iterable[Verdict]) -> tuple[str, ...]:
    """Return a reason for each file that two roles cite under different keys: one envelope cannot say both."""
    keys: dict[str, str] = {}
    return tuple(
        f"{gate}: the file {file['path']} is cited under `{key}` and under `{file['key']}`"
        for row in rows
        for gate in (row["gates"] or row.get("failed", []))[-1:]
        for file in row["evidence"]
        if (key := keys.setdefault(file["path"], file["key"])) != file["key"]
    )


COMMAND_GATES: Final = "command-gates"
"""The node that runs the commands of gates which no role certifies."""

START_NODE: Final = "start"
"""The node that opens a run."""

OBJECTION: Final = "OBJECTION"
"""The node in which a run waits for a person to answer an objection."""

WAIVER: Final = "WAIVER"
"""The node in which a run waits for a person to waive a gate for the tree that was handed over, or not to."""

QUESTIONS: Final = frozenset({OBJECTION, WAIVER})
"""The nodes in which a person is asked, and no agent."""


def objections(
    protocol: Protocol, required: Iterable[str], reasons: Iterable[str], before: Collection[str]
) -> dict[str, str]:
    """Return the gates to which fail reasons object, each with the reason: `GATE-X: OBJECTION: reason`.

    Only a required gate that some answer has to certify counts, and none that was objected to `before` in the attempt.
    """
    open_gates = {gate for gate in required if protocol.gate(gate).certifier != ANYBODY} - {*before}
    found = (match for text in reasons if (match := OBJECTS.fullmatch(text.strip())) is not None)
    return {match[1]: match[2] for match in found if match[1] in open_gates}


RESUMED: Final = "resumed"
"""The node that takes up the steps of a BLOCKED attempt which failed for a reason outside the work."""
