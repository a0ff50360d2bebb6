"""What a role is given for one answer: its assignment, and what its runner has to know beside it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from interlock.agents.ask import REMOTE, Ask, Notice, agent_of_run
from interlock.agents.changes import ChangedFile, FailedGate, FailedTest
from interlock.agents.prompt import assignment, correction, reask
from interlock.envelope.protocol import EVIDENCE_KEYS, EvidenceKey, Role
from interlock.gates.evidence import EvidenceFile, read_evidence
from interlock.gates.manifest import from_json
from interlock.gates.shared import shared
from interlock.graph.task.changes import changes_in_scope, diffs_outside, keep_start, visible_changes
from interlock.graph.task.comments import given_now
from interlock.graph.task.context import TaskContext, held_gates, own_collection
from interlock.graph.task.hand_over_writer import keep_base
from interlock.graph.task.policy import left_for
from interlock.graph.task.put_back import put_back_of
from interlock.graph.task.sealing import gate_notes
from interlock.graph.task.state import TaskState
from interlock.graph.task.store import RunStore

_OUTPUT_BYTES: Final = 8 * 1024
_OWN_MESSAGE: Final = frozenset({"failed", "still_failing", "not_collected"})
"""Faults whose `found` is what the test runner said."""


def failed_before(context: TaskContext, state: TaskState) -> tuple[FailedGate, ...]:
    """Return the command gates that failed in the round before this one, in the order of the task.

    A log that is not the one that was judged is named, and not quoted.
    """
    found: dict[str, FailedGate] = {}
    for row in state.get("collected", {}).values():
        if row["attempt"] != state["attempt"] - 1 or row["collection"] is None:
            continue
        made = from_json(row["collection"])
        if made.ok or not context.policy.protocol.gate(made.gate).command:
            continue
        log = next((file for file in made.files if file.path.endswith(".log")), None)
        read = None if log is None else read_evidence(context.root, log.path)
        is_it = log is not None and isinstance(read, EvidenceFile) and read.sha256 == log.sha256
        header, _, output = read.data.partition(b"\n") if is_it and isinstance(read, EvidenceFile) else (b"", b"", b"")
        # Keys go before anything is cut: half of one would not be known.
        text = context.redactor.data(output)[-_OUTPUT_BYTES:].decode("utf-8", "replace")
        tests, more = _failed_tests(context, header)
        found[made.gate] = FailedGate(made.gate, log.path if log is not None else "", tests, text, more)
    return tuple(found[gate] for gate in context.task.gates_required if gate in found)


def _failed_tests(context: TaskContext, header: bytes) -> tuple[tuple[FailedTest, ...], int]:
    """Return the tests that a sealed gate found at fault, and how many more its log does not name."""
    if not header:
        return (), 0
    sealed = cast("Mapping[str, Any] | None", json.loads(header).get("sealed"))
    if sealed is None:
        return (), 0
    named = [row for row in sealed["faults"] if row["test"]]
    tests = tuple(FailedTest(row["test"], context.redactor.text(_failure_text(row))) for row in named)
    return tests, int(sealed["more_faults"]) if named else 0


def _failure_text(fault: Mapping[str, str]) -> str:
    """Return the text about a failed test: its own message where it failed, else what is wrong with it."""
    if fault["kind"] in _OWN_MESSAGE:
        return fault["found"]
    return f"{fault['message']} Found: {fault['found']}"


def make_ask(
    context: TaskContext,
    role: Role,
    state: TaskState,
    store: RunStore,
    number: int,
    notice: Notice,
    *,
    refusal: str = "",
    refused: str = "",
) -> Ask:
    """Build everything that the role is given for this answer.

    `number` answers of this turn were refused; `refused` is the last one, `refusal` the findings on it.
    """
    collection = own_collection(state, role.name)
    evidence: dict[EvidenceKey, tuple[str, ...]] = {}
    if collection is not None:
        evidence = {
            key: paths
            for key in EVIDENCE_KEYS
            if (paths := tuple(file.path for file in collection.files if file.key == key))
        }
    if role.kind == "build" and (state["attempt"], state["turn"], number) == (1, 1, 0):
        keep_start(context, store, state.get("sealing", {}))
        keep_base(context, store, state.get("sealing", {}))
    builds = role.kind == "build"
    ask = Ask(
        run_id=state["run_id"],
        task_id=context.task.task_id,
        role=role.name,
        attempt=state["attempt"],
        reask=number,
        step="build" if builds else "qa" if role.kind == "qa" else "review",
        prompt="",
        root=str(context.root),
        tree=state["tree"] if role.kind in ("qa", "review") else context.tree(),
        evidence=evidence,
        reports_dir=f"artifacts/reports/{context.task.task_id}/{state['attempt']}",
        system=context.policy.agents[role.name].system,
        turn=state["turn"],
        agent=agent_of_run(state["run_id"]) if context.policy.reserve else "",
        task=context.task.task,
        required=context.task.gates_required,
        status=state["status"] or "IN_PROGRESS",
        protocol=context.policy.protocol,
        in_scope=context.task.covers,
        inputs=context.task.inputs,
        commands=_commands(context, role),
        correction=correction(refusal) if refusal else "",
        limits=left_for(context.policy, state.get("spent", {}), role.name),
        notice=notice,
    )
    prompt = assignment(
        ask,
        attempts=1 + context.policy.max_rework,
        scope=context.task.scope,
        page=context.task.page,
        digests={} if collection is None else {file.path: file.sha256 for file in collection.files},
        collected_findings=() if collection is None else collection.findings,
        fail_reasons=tuple(state.get("fail_reasons", ())) if builds else (),
        failed=failed_before(context, state) if builds else (),
        put_back=_put_back_before(context, role, state, store) if builds else (),
        changes=_changes(context, role, state, store),
        certified=tuple(sorted(held_gates(context, state))),
        gate_notes=gate_notes(context.task, context.policy),
        outputs=_outputs(role, state),
        comments=given_now(store) if builds else (),
    )
    return replace(ask, prompt=reask(prompt, refusal, refused=refused) if refusal else prompt)


def _commands(context: TaskContext, role: Role) -> dict[str, tuple[str, ...]]:
    """Return what the role that hands over may run: the commands of the task, and those of its gates by their names."""
    if not role.hands_over:
        return {}
    gates = (context.policy.protocol.gate(gate_id) for gate_id in context.task.gates_required)
    return {**{gate.id: gate.command for gate in gates if gate.command}, **context.policy.commands}


def _changes(context: TaskContext, role: Role, state: TaskState, store: RunStore) -> list[ChangedFile] | None:
    """Return what changed since the run began, for a review role and for the QA role of a command gate.

    Who answers from outside may have a token, which gives no right to read files.
    """
    gate = None if role.certifies is None else context.policy.protocol.gate(role.certifies)
    if role.kind != "review" and (role.kind != "qa" or gate is None or not gate.command):
        return None
    sealing = state.get("sealing", {})
    found = changes_in_scope(context, store, sealing)
    outside = diffs_outside(context.root, state.get("outside", []), sealing, context.redactor)
    if found is None and not outside:
        return None
    files = [*(found or []), *outside]
    return visible_changes(context.root, files) if context.runners[role.name] is REMOTE else files


def _put_back_before(context: TaskContext, role: Role, state: TaskState, store: RunStore) -> list[str]:
    """Return the files that were put back at the hand-over of the round before, as far as the role may know of them."""
    paths = [path for row in put_back_of(store) if row.attempt == state["attempt"] - 1 for path in row.paths]
    visible = shared(context.root, paths) if context.runners[role.name] is REMOTE else paths
    return [context.redactor.text(path) for path in paths if path in visible]


def _outputs(role: Role, state: TaskState) -> dict[str, str]:
    return {
        name: row["output"]
        for name, row in state.get("answers", {}).items()
        if name != role.name and row["attempt"] == state["attempt"] and row["output"]
    }
