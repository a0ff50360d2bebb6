"""A model of the whole machine: every state reachable with arbitrary answers, and what must hold where it ends.

The answers are real texts, held to the real rules; the moves are the real pure functions. Only evidence and tree
are abstract: a file is good or not, the tree is one of a few versions, and an adversary may change both at any time.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations, product
from typing import TypeAlias

import pytest

from interlock.envelope import Case, Envelope, render, validate
from interlock.envelope.protocol import DEFAULT_PROTOCOL, ROLES, STATUSES, GateSpec, Protocol, Role, Status
from interlock.graph.task.machine import (
    COMMAND_GATES,
    REWORKABLE,
    Budget,
    Cause,
    CitedFile,
    Outcome,
    Verdict,
    certified,
    is_no_obstacle,
    judges,
    objections,
    outcome_of,
    recheck,
    route,
    tally,
    waived,
)

COMMAND = GateSpec("GATE-TESTS", "the tests pass", evidence=("reports",), check="command", command=("make", "test"))


@dataclass(frozen=True)
class Table:
    """A roster, its gates, and those that a task requires."""

    protocol: Protocol
    gates: tuple[str, ...]

    def judges(self, status: Status | None) -> tuple[str, ...]:
        """Return whose verdicts a status needs."""
        return judges(self.protocol, self.gates, "qa" if status == "QA_IN_PROGRESS" else "review")


def table(gates: tuple[str, ...], *names: str) -> Table:
    """Return a roster of the orchestrator, the build roles and some judges, with one command gate."""
    roles = {role.name: role for role in ROLES if role.kind in ("orchestrator", "build") or role.name in names}
    return Table(Protocol(roles, {**DEFAULT_PROTOCOL.gates, COMMAND.id: COMMAND}), ("GATE-MSG-STRICT", *gates))


PAGE = ("GATE-VISUAL-QA", "GATE-A11Y-BASELINE", "GATE-CODE-REVIEW")
TABLES = {
    "the default roster": Table(DEFAULT_PROTOCOL, ("GATE-MSG-STRICT", *PAGE)),
    "a build role and a command": table(("GATE-TESTS",)),
    "a command and a QA role": table(("GATE-TESTS", "GATE-VISUAL-QA"), "visual-qa"),
    "a command and a review role": table(("GATE-TESTS", "GATE-CODE-REVIEW"), "code-reviewer"),
}
DEFAULT = TABLES["the default roster"]
GATES = DEFAULT.gates
QA, REVIEW = DEFAULT.judges("QA_IN_PROGRESS"), DEFAULT.judges("READY_FOR_REVIEW")
FULL: dict[str, tuple[str, ...]] = {
    "screenshots": ("artifacts/screenshots/T-1/1/375.png",),
    "a11y": ("artifacts/a11y/T-1/1/axe.json",),
    "console": ("artifacts/console/T-1/1/console.jsonl",),
    "reports": ("artifacts/reports/T-1/1/review.md",),
}
EMPTY: dict[str, tuple[str, ...]] = dict.fromkeys(FULL, ())


def subsets(items: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield every subset, in order."""
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))


Facts: TypeAlias = tuple[Outcome, tuple[str, ...], tuple[str, ...]]
"""What comes of an answer: its outcome, the gates that it certifies, and those that its reasons name."""

ANSWERS: dict[tuple[tuple[str, ...], str, Status, frozenset[str]], frozenset[Facts]] = {}


def answers(role_name: str, current: Status, held: frozenset[str], rows: Table = DEFAULT) -> frozenset[Facts]:
    """Return what can come of any answer of a role: outcome, the gates that it would certify, those that it fails.

    Every status, every set of claimed gates, with and without evidence, with and without each fail reason.
    """
    known = ANSWERS.get((rows.gates, role_name, current, held))
    if known is not None:
        return known
    protocol, gates = rows.protocol, rows.gates
    role = protocol.roles[role_name]
    reasons: list[tuple[str, ...]] = [(), *((f"{gate}: a fault",) for gate in gates)]
    found: set[Facts] = set()
    for status, passed, evidence, fails in product(STATUSES, subsets(gates), (FULL, EMPTY), reasons):
        text = render(
            Envelope(
                status=status,
                task_id="T-1",
                task="Work",
                assigned_agent=role.name,
                reports_to="orchestrator",
                inputs_used=(),
                gates_required=gates,
                gates_passed=passed,
                evidence=evidence,
                fail_reasons=fails,
                output="text",
                next_actions=("go on",),
            )
        )
        report = validate(
            text,
            Case(
                agent=role.name,
                task_id="T-1",
                gates=gates,
                current_status=current,
                certified=held,
                protocol=protocol,
            ),
        )
        outcome = outcome_of(role, ok=report.ok, status=report.effective_status, verdict=report.verdict)
        certifies = tuple(gate for gate in passed if protocol.may_certify(role, gate)) if outcome == "pass" else ()
        failed = tuple(reason.partition(":")[0] for reason in fails) if outcome == "fail" else ()
        found.add((outcome, certifies, failed))
        found.add(("invalid", (), ()))  # evidence that does not pass its content check makes any answer invalid
    ANSWERS[gates, role_name, current, held] = frozenset(found)
    return ANSWERS[gates, role_name, current, held]


@dataclass(frozen=True)
class World:
    """One state: the status of the task, what was judged, and what an adversary has done."""

    status: Status | None = None
    tree: int = 0
    handed: int = 0
    swapped: bool = False
    verdicts: tuple[tuple[str, str, Cause, int, tuple[str, ...], tuple[str, ...]], ...] = ()
    reasks: int = 0
    attempt: int = 1
    cause: Cause | None = None
    excused: frozenset[str] = frozenset()
    objected: frozenset[str] = frozenset()
    waived: frozenset[tuple[str, int, int]] = frozenset()

    def waivers(self) -> dict[str, str]:
        """Return what was waived in this attempt as the machine takes it."""
        return {gate: str(tree) for gate, tree, attempt in self.waived if attempt == self.attempt}

    def rows(self) -> dict[str, Verdict]:
        """Return the verdicts as the machine keeps them."""
        return {
            name: Verdict(
                role=name,
                result=result,  # type: ignore[typeddict-item]
                cause=cause,
                attempt=self.attempt,
                tree=str(tree),
                gates=list(gates),
                evidence=[CitedFile(key="reports", path="p", sha256="0", size_bytes=1)],
                reasons=["GATE-MSG-STRICT: x"],
                failed=list(failed),
            )
            for name, result, cause, tree, gates, failed in self.verdicts
        }


MAX_ATTEMPTS, MAX_REASKS, TREES, MAX_OBJECTIONS = 2, 1, 2, 1


def moves(world: World, rows: Table) -> Iterator[World]:
    """Yield every state that one move leads to: an answer, a check of the orchestrator, or the adversary."""
    if world.status == "APPROVED":
        return
    yield replace(world, tree=(world.tree + 1) % TREES)
    if not world.swapped:
        yield replace(world, swapped=True)
    match world.status:
        case None | "READY_FOR_QA":
            for outcome in ("holds", "broken"):
                yield go(world, route(world.status, "orchestrator", outcome, "pending", budget(world)), "task")
        case "IN_PROGRESS":
            yield from build_moves(world, rows)
        case "QA_IN_PROGRESS" | "READY_FOR_REVIEW":
            yield from judging_moves(world, rows)
        case "BLOCKED":
            if world.cause == "objection":
                yield from person_moves(world, rows)
                return
            target = route("BLOCKED", "orchestrator", "holds", "pending", budget(world))
            if target == "IN_PROGRESS":
                yield replace(
                    world,
                    status="IN_PROGRESS",
                    attempt=world.attempt + 1,
                    verdicts=(),
                    reasks=0,
                    swapped=False,
                    objected=frozenset(),
                )


def person_moves(world: World, rows: Table) -> Iterator[World]:
    """A person refuses an objection, or accepts it: to any one gate that an agent may name, required or not."""
    assert route("BLOCKED", "orchestrator", "objection", "pending", budget(world)) == "ASK_PERSON"
    assert route("BLOCKED", "orchestrator", "answered", "pending", budget(world)) == "IN_PROGRESS"
    back = replace(world, status="IN_PROGRESS", cause=None, reasks=0)
    said = [f"{gate}: OBJECTION: no" for gate in rows.gates]
    for gate in objections(rows.protocol, rows.gates, said, world.objected | world.excused):
        after = replace(back, objected=world.objected | {gate})
        yield after
        yield replace(after, excused=world.excused | {gate})


def waiver_moves(world: World, missing: tuple[str, ...]) -> Iterator[World]:
    """A person waives one of the gates, or declines."""
    for gate in missing:
        yield replace(world, excused=world.excused - {gate})
        yield replace(world, waived=world.waived | {(gate, world.handed, world.attempt)})


def budget(world: World) -> Budget:
    """Return what is left to spend."""
    rework = world.cause is not None and REWORKABLE[world.cause] and world.attempt < MAX_ATTEMPTS
    return Budget(reask=world.reasks < MAX_REASKS, rework=rework, progress=True)


def go(world: World, target: str, cause: Cause) -> World:
    """Move to a status."""
    assert target in STATUSES, target
    if target == "READY_FOR_QA":
        return replace(world, status=target, handed=world.tree, verdicts=(), reasks=0)
    return replace(world, status=target, reasks=0, cause=cause if target == "BLOCKED" else world.cause)


def build_moves(world: World, rows: Table) -> Iterator[World]:
    """Any build role answers anything."""
    for role in rows.protocol.of_kind("build"):
        for outcome, _, _ in {*answers(role.name, "IN_PROGRESS", frozenset(), rows), *objecting(world, rows)}:
            target = route("IN_PROGRESS", "build", outcome, "pending", budget(world))
            yield (
                replace(world, reasks=world.reasks + 1)
                if target == "ASK_AGAIN"
                else go(world, target, "objection" if outcome == "objection" else "agent")
            )


def objecting(world: World, rows: Table) -> Iterator[tuple[Outcome, tuple[str, ...], tuple[str, ...]]]:
    """Whatever can be objected to still is, while the attempts last: what is refused leads nowhere new."""
    if world.attempt == 1 and not set(rows.gates[1:]) <= world.objected and len(world.objected) < MAX_OBJECTIONS:
        yield "objection", (), ()


def judging_moves(world: World, tables: Table) -> Iterator[World]:
    """Any role without a verdict answers anything; when all have one, the orchestrator checks."""
    protocol, names = tables.protocol, tables.judges(world.status)
    rows = world.rows()
    held = certified(protocol, rows, world.attempt, str(world.handed), world.excused)
    for name in names:
        if name == COMMAND_GATES and name not in rows and world.status == "QA_IN_PROGRESS":
            yield from command_ends(world)
        elif name in protocol.roles and name not in rows:
            yield from judge(world, protocol.roles[name], held, tables)
    count = tally(names, rows, world.attempt, world.excused)
    found = recheck(
        protocol,
        tables.gates,
        rows,
        attempt=world.attempt,
        handed_over=str(world.handed),
        present=str(world.tree),
        swapped=lambda _files: world.swapped,
        last=world.status == "READY_FOR_REVIEW",
        excused=world.excused,
        waivers=world.waivers(),
    )
    outcome: Outcome = "holds" if found.cause is None else "waive" if found.cause == "waiver" else "broken"
    target = route(world.status, "orchestrator", outcome, count, budget(world))
    if target == "ASK_PERSON":
        assert set(found.gates) <= world.excused
        yield from waiver_moves(world, found.gates)
    elif target != "WAIT":
        yield go(world, target, found.cause or "gate")


def command_ends(world: World) -> Iterator[World]:
    """The command of the gates passes, fails, or cannot be started, on the tree as it is now."""
    own = (COMMAND.id,)
    for result, cause, gates, failed in (
        ("PASS", "gate", own, ()),
        ("FAIL", "gate", (), own),
        ("NONE", "collector", (), ()),
    ):
        row = (COMMAND_GATES, result, cause, world.tree, gates, failed)
        yield replace(world, verdicts=tuple(sorted((*world.verdicts, row))))  # type: ignore[arg-type]


def judge(world: World, role: Role, held: frozenset[str], tables: Table) -> Iterator[World]:
    """One QA or review role answers."""
    assert world.status is not None
    for outcome, gates, failed in answers(role.name, world.status, held, tables):
        target = route(world.status, role.kind, outcome, "pending", budget(world))
        if target == "ASK_AGAIN":
            yield replace(world, reasks=world.reasks + 1)
            continue
        assert target == "TALLY"
        outcome = "stale" if world.tree != world.handed else outcome  # noqa: PLW2901 - what `ask_role` does
        result = "PASS" if outcome == "pass" else "FAIL" if outcome == "fail" else "NONE"
        cause: Cause = "stale" if outcome == "stale" else "gate" if outcome in ("pass", "fail") else "protocol"
        row = (role.name, result, cause, world.tree, gates, failed if outcome == "fail" else ())
        yield replace(world, verdicts=tuple(sorted((*world.verdicts, row))))


def explore(rows: Table) -> tuple[set[World], set[tuple[World, World]]]:
    """Return every reachable state, and the moves into APPROVED."""
    seen, approvals, queue = {World()}, set[tuple[World, World]](), deque([World()])
    while queue:
        world = queue.popleft()
        for after in moves(world, rows):
            if after.status == "APPROVED":
                approvals.add((world, after))
            if after not in seen:
                seen.add(after)
                queue.append(after)
    return seen, approvals


@pytest.mark.sample("a build role and a command")
@pytest.mark.parametrize("rows", TABLES.values(), ids=TABLES.keys())
def test_approved_is_reached_only_with_every_gate_certified_on_the_present_tree_with_verified_evidence(
    rows: Table,
) -> None:
    seen, approvals = explore(rows)
    assert {world.status for world in seen} == {None, *STATUSES}
    assert approvals
    assert len(seen) > 50
    for before, _ in approvals:
        assert before.status == "READY_FOR_REVIEW"
        assert before.tree == before.handed
        assert not before.swapped
        by_role = {name: (result, tree, gates) for name, result, _, tree, gates, _ in before.verdicts}
        waived = {gate for gate, tree, attempt in before.waived if (tree, attempt) == (before.tree, before.attempt)}
        for gate in rows.gates[1:]:
            if gate in waived & before.excused:
                continue
            certifier = rows.protocol.gate(gate).certifier or COMMAND_GATES
            assert by_role[certifier][:2] == ("PASS", before.tree)
            assert gate in by_role[certifier][2]
            assert not any(gate in row[-1] for row in before.verdicts), "nobody failed it"
    assert any(before.waived for before, _ in approvals), "a waiver leads there"
    assert any(not before.waived for before, _ in approvals)


RUN = ("sh", "check.sh")
KINDS_OF_GATE = {
    GateSpec("GATE-X", "by its role", certifier="visual-qa"): {"visual-qa"},
    GateSpec("GATE-X", "by its role, from what a command made", certifier="visual-qa", grade="runner", command=RUN): {
        "visual-qa"
    },
    GateSpec("GATE-X", "by any judge"): {*QA, *REVIEW},
    GateSpec("GATE-X", "by its command", grade="runner", command=RUN): {COMMAND_GATES},
    GateSpec("GATE-X", "by its command, whatever is written", grade="written", command=RUN): {COMMAND_GATES},
}
"""Each kind of gate, and whose PASS certifies it."""


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(("gate", "certifiers"), KINDS_OF_GATE.items())
def test_only_a_pass_of_its_own_certifier_or_a_waiver_for_this_tree_and_nobodys_fail_lets_a_gate_be_approved(
    gate: GateSpec, certifiers: set[str]
) -> None:
    protocol = Protocol(gates={**DEFAULT_PROTOCOL.gates, gate.id: gate, COMMAND.id: COMMAND})
    approved = asked = 0
    listed = [*(("PASS", claims, ()) for claims in ((), (gate.id,))), ("NONE", (gate.id,), ())]
    listed += [("FAIL", claims, fails) for claims in ((), (gate.id,)) for fails in ((), (gate.id,), (COMMAND.id,))]
    names, places = (*protocol.roles, COMMAND_GATES), ((1, "t"), (1, "old"), (0, "t"))
    for first, second in product(names, names):
        for (result, claims, fails), (attempt, tree), other in product(listed, places, listed[::2]):
            if first == second:
                continue
            rows = {
                name: Verdict(
                    role=name,
                    result=said,  # type: ignore[typeddict-item]
                    cause="gate",
                    attempt=at,
                    tree=of,
                    gates=[*held],
                    evidence=[],
                    reasons=[],
                    failed=[*failed],
                )
                for name, said, at, of, held, failed in (
                    (first, result, attempt, tree, claims, fails),
                    (second, other[0], 1, "t", *other[1:]),
                )
            }
            now = [row for row in rows.values() if row["attempt"] == 1]
            for excused, until, present in product(((), (gate.id,), (COMMAND.id,)), (None, "t", "old"), ("t", "old")):
                on = [row for row in now if row["tree"] == "t" and is_no_obstacle(row, excused)]
                passed = any(gate.id in row["gates"] and row["role"] in certifiers for row in on)
                passed &= not any(gate.id in row["failed"] for row in now)  # type: ignore[typeddict-item]
                assert (gate.id in certified(protocol, rows, 1, "t", excused)) == passed
                found = recheck(
                    protocol,
                    ("GATE-MSG-STRICT", gate.id),
                    rows,
                    attempt=1,
                    handed_over="t",
                    present=present,
                    swapped=lambda _files: False,
                    last=True,
                    excused=excused,
                    waivers={} if until is None else {gate.id: until, "GATE-MSG-STRICT": until},
                )
                if found.cause not in (None, "waiver"):
                    continue
                assert {present, *(row["tree"] for row in now)} == {"t"}
                for row in now:
                    assert row["result"] == "PASS" or (row["failed"] and {*row["failed"]} <= {*excused})  # type: ignore[typeddict-item]
                assert (found.cause is None) == (passed or until == "t")
                assert found.cause is None or gate.id in excused
                approved, asked = approved + (found.cause is None), asked + (found.cause == "waiver")
    assert approved
    assert asked
    assert waived(protocol, {gate.id: "t", "GATE-MSG-STRICT": "t"}, "t") == {gate.id}


def test_a_roster_that_nobody_and_no_command_judges_never_ends_approved() -> None:
    nobody = table(("GATE-VISUAL-QA",))
    assert (nobody.judges("QA_IN_PROGRESS"), nobody.judges("READY_FOR_REVIEW")) == ((), ())
    seen, approvals = explore(nobody)
    assert "QA_IN_PROGRESS" in {world.status for world in seen}
    assert not approvals
