"""The pure core of the status machine: what one answer, one count of verdicts and one budget decide.

No function here reads a file, a clock or a model. The nodes collect facts and call these functions; the tests call them
over every combination of their inputs.

Theory of operation
===================

A task moves through six statuses, which are those of the Strict Envelope:

    IN_PROGRESS       a build role works
    READY_FOR_QA      the work is handed over; from here on it is one tree
    QA_IN_PROGRESS    QA roles and the commands of gates judge that tree, side by side
    READY_FOR_REVIEW  QA passed; review roles judge the same tree
    APPROVED          every required gate is passed on that tree, by those who may
    BLOCKED           something failed; another round of work follows, or a person, or the end

**Agents propose, the machine decides.** An agent may write two of these statuses into an answer that count: a build
role says that it hands over, and anybody says that it is blocked. The others are set by the orchestrator, which is this
code. What an answer says is first reduced to an `Outcome`, one word out of a closed list (`outcome_of`). `route` sees
that word and never the answer, so no wording can lead anywhere that the list does not lead.

**One function, four inputs.** `route` takes the present status, the kind of role that acted, the outcome, the tally of
the verdicts of the phase, and what is left of the budgets. Every move of a run is one call of it. Where no row of it
matches, the answer is BLOCKED (or END after an end): nothing is the default but to stop. `TRANSITIONS` in
`envelope/protocol.py` has the same moves as a table, for documents and for the check of envelopes; a test compares
both.

**Attempts, turns, asks.** An attempt is a round of work, from a dispatch to BLOCKED or APPROVED. Within one, each
dispatch of a build role is a turn: the roles that do not hand over go first, then the one that does, which may report
progress a few times. Within a turn a role is asked once, and again while its answer is refused and re-asks are left.
Each of the three has a budget (`Budget`), and a budget that is spent is a reason of its own, never an exception.

**Verdicts are derived, and bound to a tree.** What a judge found is kept as a `Verdict`: for which attempt, on the
digest of which files, with which evidence by its digest. `tally` counts those of the present attempt alone. `recheck`
holds them against the present files before each move: before the review, before the approval, and once more inside
APPROVED, with every file read. A file in scope that changed makes all of them stale, and a cited file that is another
one voids its verdict. A verdict of an earlier attempt never counts again.

**Who certifies.** A gate is passed by the role that the table names for it, by the roles whose gate it is, or, where
its command decides, by the orchestrator that ran the command (`COMMAND_GATES`). A role that lists the gate of another
one has said nothing. `certified` applies this, `missing_gates` says what is left, and APPROVED needs nothing to be
left.

**Causes of BLOCKED.** A `Cause` says what kind of failure it was, and `REWORKABLE` whether work can cure it. A failed
gate, stale verdicts and swapped evidence go back to the build role while rounds are left. A judge that gives no valid
answer, a collector that breaks, a spent budget and an ill-formed task do not: another round would meet the same. The
run ends there, and a new one begins with the files as they are.

**Objections and waivers.** A build role may object to a gate that cannot be met, instead of working around it. That
spends no round: a person corrects the task, refuses, or accepts (`OBJECTION`). To accept excuses the gate for now; it
waives nothing, since nobody has seen the work yet. Only when all else is passed does a person decide whether this tree
may do without the gate (`WAIVER`). A waiver is for one tree, as a verdict is, and dies with it. So `excused` and
`waivers` are two inputs of `recheck`: the first lets the work move on, the second alone lets it be approved.

What must never happen
----------------------

* APPROVED without every required gate passed by its certifier, or waived by a person, on the tree that is there now.
* A move that an agent's text caused and `route` does not have.
* A verdict, evidence or waiver of one tree or attempt that counts for another.
* A run that goes on for ever: each cycle of the graph spends a budget or an answer of a person.
* A run that waits for nobody: each wait has a role or a person that is asked.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, NotRequired, TypeAlias, get_args

from typing_extensions import TypedDict

from interlock.envelope.protocol import ANYBODY, EvidenceKey, Protocol, Role, RoleKind, Status

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
        # A judge moves nothing by itself; once it has a verdict, or no ask left, all of them are counted together.
        case ("QA_IN_PROGRESS", "qa") | ("READY_FOR_REVIEW", "review"):
            return "ASK_AGAIN" if outcome == "invalid" and budget.reask else "TALLY"
        case "QA_IN_PROGRESS", "orchestrator":
            return _after_tally("READY_FOR_REVIEW", outcome, tally)
        case "READY_FOR_REVIEW", "orchestrator":
            # Asked here and not earlier: only now has every other gate been judged on the tree that would be waived.
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
    # No names at all is no pass: a phase that nobody can judge must not be empty and therefore passed.
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
    # A FAIL of one role outweighs a PASS of another for the same gate.
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


def waived(protocol: Protocol, waivers: Mapping[str, str], tree: str) -> frozenset[str]:
    """Return the gates that are waived for this tree: `waivers` has a tree for each; one for another tree is void.

    A gate that any valid answer certifies is never waived.
    """
    return frozenset(
        # A tree that could not be read has no digest, and an empty one equals no tree that a person has seen.
        gate
        for gate, of in waivers.items()
        if of == tree and protocol.gate(gate).certifier != ANYBODY and tree
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
    # Verdicts of earlier attempts stay in the state for those who read it, and never count.
    rows = {name: row for name, row in verdicts.items() if row["attempt"] == attempt}
    bad = [row for row in rows.values() if not is_no_obstacle(row, excused)]
    if bad:
        causes: list[Cause] = [row["cause"] for row in bad]
        # One cause stands for all: what no round of work can cure goes first, then what work did, and `stale` last,
        # since a gate that failed says more than that files changed.
        causes.sort(key=lambda cause: (REWORKABLE[cause], cause == "stale"))
        return Recheck(causes[0], reasons=tuple(reason for row in bad for reason in row["reasons"]))
    # The trees of the verdicts are compared as well as the present one: files may have changed and changed back.
    if any(tree != handed_over for tree in (present, *(row["tree"] for row in rows.values()))):
        return Recheck("stale", tuple(dict.fromkeys(gate for row in rows.values() for gate in row["gates"])))
    for row in rows.values():
        if swapped(row["evidence"]):
            return Recheck("evidence", (*row["gates"], *row.get("failed", ())))
    # Found here, since the envelope of the approval could not be written otherwise, and a run must not stop there.
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


OBJECTS: Final = re.compile(r"(GATE-[A-Z0-9-]+):\s*OBJECTION:\s*(\S.*)", re.ASCII | re.DOTALL)
"""The form of an objection: its gate, and why."""


def objections(
    protocol: Protocol, required: Iterable[str], reasons: Iterable[str], before: Collection[str]
) -> dict[str, str]:
    """Return the gates to which fail reasons object, each with the reason: `GATE-X: OBJECTION: reason`.

    Only a required gate that some answer has to certify counts, and none that was objected to `before` in the attempt.
    """
    # A second objection to the same gate in one attempt would ask the person the same question for ever.
    open_gates = {gate for gate in required if protocol.gate(gate).certifier != ANYBODY} - {*before}
    found = (match for text in reasons if (match := OBJECTS.fullmatch(text.strip())) is not None)
    return {match[1]: match[2] for match in found if match[1] in open_gates}


Weight: TypeAlias = Literal["failed", "void", "objected", "unjudged"]
"""What a reason of a BLOCKED says of its gate: see `weighed`."""

_WEIGHTS: Final[Mapping[str, Weight]] = {"stale": "void", "objection": "unjudged", "waiver": "unjudged"}
"""What the reasons of a BLOCKED with these causes say of their gates; with others, a gate failed."""


def weighed(cause: str, reasons: Iterable[str]) -> Iterator[tuple[str, Weight, str]]:
    """Yield each reason of a BLOCKED with its gate, and what it says of that gate.

    `failed`; `void` where files changed after the gate was judged or waived; `objected` where the agent objects to it,
    and `unjudged` for what the agent says besides, and where a waiver alone is missing.
    """
    for text in reasons:
        objected = cause in ("objection", "agent") and OBJECTS.fullmatch(text.strip()) is not None
        yield text.partition(":")[0], "objected" if objected else _WEIGHTS.get(cause, "failed"), text


def failed_gates(cause: str, reasons: Iterable[str]) -> list[str]:
    """Return the gates that failed, by the reasons of a BLOCKED, each once."""
    return list(dict.fromkeys(gate for gate, weight, _ in weighed(cause, reasons) if weight == "failed"))
