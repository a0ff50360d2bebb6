"""What a role is given for one answer: its assignment, and what its runner has to know beside it."""

from interlock.agents.ask import REMOTE, Ask, Notice, agent_of_run
from interlock.agents.changes import ChangedFile
from interlock.agents.prompt import assignment, correction, reask
from interlock.envelope.protocol import EVIDENCE_KEYS, EvidenceKey, Role
from interlock.gates.errors import TreeError
from interlock.gates.tree import in_scope
from interlock.graph.task.budgets import left_for
from interlock.graph.task.changes import changes_in_scope, keep_start
from interlock.graph.task.desk import Desk, held_gates, own_collection
from interlock.graph.task.failures import failed_before
from interlock.graph.task.outside import as_told, diffs_outside
from interlock.graph.task.sealing import gate_notes
from interlock.graph.task.state import TaskState
from interlock.graph.task.store import RunStore


def make_ask(
    desk: Desk,
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
        keep_start(desk, store, state.get("sealing", {}))
    commands = _commands(desk, role)
    tree = state["tree"] if role.kind in ("qa", "review") else desk.tree()
    reports_dir = f"artifacts/reports/{desk.task.task_id}/{state['attempt']}"
    status = state["status"] or "IN_PROGRESS"
    prompt = assignment(
        role,
        desk.policy.protocol,
        task_id=desk.task.task_id,
        task=desk.task.task,
        status=status,
        gates_required=desk.task.gates_required,
        inputs=desk.task.inputs,
        scope=desk.task.scope,
        page=desk.task.page,
        attempt=state["attempt"],
        attempts=1 + desk.policy.max_rework,
        fail_reasons=tuple(state.get("fail_reasons", ())) if role.kind == "build" else (),
        failed=failed_before(desk, state) if role.kind == "build" else (),
        changes=_changes(desk, role, state, store),
        gate_notes=gate_notes(desk.task, desk.policy),
        commands=commands,
        evidence=evidence,
        digests={} if collection is None else {file.path: file.sha256 for file in collection.files},
        collected_findings=() if collection is None else collection.findings,
        certified=tuple(sorted(held_gates(desk, state))),
        outputs=_outputs(role, state),
        tree=tree,
        reports_dir=reports_dir,
    )
    return Ask(
        run_id=state["run_id"],
        task_id=desk.task.task_id,
        role=role.name,
        attempt=state["attempt"],
        reask=number,
        step="build" if role.kind == "build" else "qa" if role.kind == "qa" else "review",
        prompt=reask(prompt, refusal, refused=refused) if refusal else prompt,
        root=str(desk.root),
        tree=tree,
        evidence=evidence,
        reports_dir=reports_dir,
        system=desk.policy.agents[role.name].system,
        turn=state["turn"],
        agent=agent_of_run(state["run_id"]) if desk.policy.reserve else "",
        task=desk.task.task,
        required=desk.task.gates_required,
        status=status,
        protocol=desk.policy.protocol,
        in_scope=lambda path: _in_scope(desk, path),
        inputs=desk.task.inputs,
        commands=commands,
        correction=correction(refusal) if refusal else "",
        limits=left_for(desk.policy, state.get("spent", {}), role.name),
        notice=notice,
    )


def _commands(desk: Desk, role: Role) -> dict[str, tuple[str, ...]]:
    """Return what the role that hands over may run: the commands of the task, and those of its gates by their names."""
    if not role.hands_over:
        return {}
    gates = (desk.policy.protocol.gate(gate_id) for gate_id in desk.task.gates_required)
    return {**{gate.id: gate.command for gate in gates if gate.command}, **desk.policy.commands}


def _changes(desk: Desk, role: Role, state: TaskState, store: RunStore) -> list[ChangedFile] | None:
    """Return what changed since the run began, for a review role and for the QA role of a command gate.

    Who answers from outside may have a token, which is no right to read files.
    """
    gate = None if role.certifies is None else desk.policy.protocol.gate(role.certifies)
    if role.kind != "review" and (role.kind != "qa" or gate is None or not gate.command):
        return None
    sealing = state.get("sealing", {})
    found = changes_in_scope(desk, store, sealing)
    outside = diffs_outside(desk.root, state.get("outside", []), sealing, desk.redactor)
    if found is None and not outside:
        return None
    files = [*(found or []), *outside]
    return as_told(desk.root, files) if desk.runners[role.name] is REMOTE else files


def _outputs(role: Role, state: TaskState) -> dict[str, str]:
    """Return what the other roles reported in this attempt, as far as it is kept in the state."""
    return {
        name: row["output"]
        for name, row in state.get("answers", {}).items()
        if name != role.name and row["attempt"] == state["attempt"] and row["output"]
    }


def _in_scope(desk: Desk, path: str) -> bool:
    try:
        return in_scope(path, desk.task.scope)
    except TreeError:
        return False
