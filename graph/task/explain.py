"""Why a task is where it is: what moved it there, which gates are missing, whether they can be met, what to do."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from interlock.agents.usage import Limits, Usage, total, usage_row
from interlock.core.text import few
from interlock.envelope.protocol import ANYBODY, STATUS_MEANING, GateSpec
from interlock.gates.collect import find_browser
from interlock.gates.errors import CollectorError, TreeError
from interlock.gates.manifest import from_json
from interlock.gates.shared import shared
from interlock.gates.tree import tree_diff, tree_files
from interlock.graph.engine.folder import journal_path
from interlock.graph.task.changes import left_changed
from interlock.graph.task.kept_evidence import present_path
from interlock.graph.task.machine import REWORKABLE, UNANSWERED, Cause, certified
from interlock.graph.task.policy import Policy
from interlock.graph.task.preflight import found_program
from interlock.graph.task.questions import Question
from interlock.graph.task.scope_leases import LOST_FIX, lost_files, waited_for
from interlock.graph.task.state import CollectedEvidence, absent_claims, excused_gates, waived_trees
from interlock.graph.task.store import RunStore
from interlock.graph.task.view import RunView
from interlock.journal import Entry, Journal

_MEANING: Mapping[Cause, str] = {
    "gate": "a gate was not passed",
    "stale": "files in scope changed after a verdict",
    "evidence": "an evidence file is no longer the one that was judged",
    "protocol": "an agent gave no valid answer within its budget of re-asks",
    "agent": "an agent blocked the task, or gave no answer",
    "collector": "the evidence could not be made",
    "task": "the task is not well-formed",
    "budget": "a budget is used up",
    "objection": "an agent objects to a gate",
    "waiver": "nothing is missing but a gate to which an objection was accepted",
}

_FIX: Mapping[Cause, str] = {
    "protocol": "Fix the agent that the reasons name, or give it another model, or raise `max_reasks` in [run]",
    "budget": "Raise the limit that the reasons name, or take it out",
}
"""What to do about a BLOCKED run whose reasons name nothing in the work."""


def run_summary(view: RunView, root: Path, journal: Journal | None = None) -> dict[str, Any]:
    """Return the status of a run and where its records are, as JSON values."""
    entries = list((journal or Journal(journal_path(root))).entries(view.run_id))
    store = RunStore(root, view.run_id)
    values = view.values
    attempt = int(values.get("attempt", 0))
    evidence: dict[str, list[str]] = {}
    for row in cast("dict[str, CollectedEvidence]", values.get("collected", {})).values():
        for file in from_json(row["collection"]).files if row["collection"] is not None else ():
            evidence.setdefault(file.key, []).append(present_path(root, file.path, file.sha256))
    head = view.head
    return {
        "schema": "interlock.run/1",
        "run_id": view.run_id,
        "task_id": view.task.task_id,
        "phase": view.phase,
        "status": view.status,
        "attempt": attempt,
        "driven": store.driven(),
        "abandoned": view.abandoned,
        "stopped": None if view.abandoned else store.stopped(),
        "path": [entry.data["to"] for entry in entries if entry.type == "status"],
        "updated_at": entries[-1].at if entries else None,
        "fail_reasons": list(values.get("fail_reasons", [])),
        "waiting": [{"role": item.role, "request": dict(item.request)} for item in view.waiting],
        "question": None if view.question is None else view.question.to_json(),
        "waived": waived_by(view),
        "kept": [{"role": role, "ask_id": view.again[role]} for role in view.kept],
        "usage": usage_of(view),
        "evidence": evidence,
        "journal": str(journal_path(root).relative_to(root)),
        "head": None if head is None else {"seq": head.seq, "hash": head.hash},
    }


def waived_by(view: RunView) -> dict[str, str]:
    """Return each gate that is waived for the present attempt and its tree, with the name of who waived it."""
    void = view.status == "BLOCKED" and view.values.get("cause") == "stale"
    of = waived_trees(view.values) if view.values.get("attempt") and not void else {}
    return {gate: view.values["waivers"][gate]["by"] for gate, tree in of.items() if tree == view.values.get("tree")}


def status_text(view_or_row: Mapping[str, Any]) -> str:
    """Return the status of a `run_summary` for a person: `APPROVED (GATE-X waived by ada)`."""
    status = view_or_row["status"] or "-"
    rows: Mapping[str, str] = view_or_row.get("waived", {}) if status == "APPROVED" else {}
    return f"{status} ({', '.join(f'{gate} waived by {name}' for gate, name in rows.items())})" if rows else status


def usage_of(view: RunView) -> dict[str, Any]:
    """Return what a run has spent and what is left of its budgets: `roles` by name, and `all` together.

    A row is that of `Usage.to_json` with `left`, in which each limit that was set has its name.
    """
    spent = {role: Usage.from_json(row) for role, row in view.values.get("spent", {}).items()}
    named = {role: view.policy.agents[role].limits for role in view.policy.protocol.roles if role in view.policy.agents}
    limited = [role for role, limits in named.items() if limits != Limits()]
    roles = [role for role in view.policy.protocol.roles if role in spent or role in limited]
    return {
        "roles": {role: usage_row(spent.get(role, Usage()), named.get(role, Limits())) for role in roles},
        "all": usage_row(total(spent.values()), view.policy.limits),
    }


def tree_after(view: RunView, root: Path, *, shared_only: bool = False) -> dict[str, list[str]]:
    """Return what of the tree is not as an ended run judged it, as JSON values; nothing of one that is not over.

    `not_judged` is as for `left_changed`. `changed_since` are the files in scope that are not as they were APPROVED.
    `not_there` are those that the approved hand-over named and that did not exist. With `shared_only` these are only
    the files that a caller with a token may know of.
    """
    if view.phase != "done":
        return {"not_judged": [], "changed_since": [], "not_there": []}
    since: list[str] = []
    approved = RunStore(root, view.run_id).handed_over(view.values["attempt"]) if view.status == "APPROVED" else {}
    with suppress(TreeError):
        diff = tree_diff(approved, tree_files(root, view.task.scope)) if approved else ()
        since = sorted((*diff.added, *diff.changed, *diff.removed)) if diff else []
    left = left_changed(root, view.values, view.policy.sealing)
    absent = absent_claims(view.values) if view.status == "APPROVED" else []
    named = {"not_judged": left, "changed_since": since, "not_there": absent}
    every = [path for paths in named.values() for path in paths]
    visible = shared(root, every) if shared_only else {*every}
    return {name: [path for path in paths if path in visible] for name, paths in named.items()}


def explain_run(view: RunView, root: Path, *, shared_only: bool = False) -> dict[str, Any]:
    """Return why a run is where it is, as JSON values with the schema `interlock.explanation/1`.

    With `shared_only` it names only the files that a caller with a token may know of.
    """
    entries = list(Journal(journal_path(root)).entries(view.run_id))
    moves = [entry for entry in entries if entry.type == "status"]
    values = view.values
    # Roles that are asked side by side have their lines written when the last of them has answered.
    waiting = [event["data"] for event in values.get("outbox", {}).values() if event["type"] == "answer"]
    answers = [*(entry.data for entry in entries if entry.type == "answer"), *waiting]
    refused = next((data for data in reversed(answers) if data["outcome"] == "invalid"), None)
    if answers and not waiting and answers[-1]["outcome"] != "invalid":
        refused = None
    tree = str(values.get("tree", ""))
    excused, waived = excused_gates(values), waived_by(view)
    held = certified(view.policy.protocol, values.get("verdicts", {}), int(values.get("attempt", 0)), tree, excused)
    if view.status == "BLOCKED":
        held -= {reason.partition(":")[0] for reason in values.get("fail_reasons", ())}
    if not any(data["outcome"] not in UNANSWERED for data in answers):
        held -= {gate_id for gate_id in held if view.policy.protocol.gate(gate_id).certifier == ANYBODY}
    store = RunStore(root, view.run_id)
    driven = store.driven()
    stopped = None if driven else store.stopped()
    lost = [] if driven or view.phase == "done" else lost_files(root, [view.run_id]).get(view.run_id, [])
    gates = [
        _gate_row(view, gate_id, gate_id in held, root)
        | ({"waived_by": waived[gate_id]} if gate_id in waived else {})
        | ({"excused": True} if gate_id in excused else {})
        for gate_id in view.task.gates_required
    ]
    return {
        "schema": "interlock.explanation/1",
        "run_id": view.run_id,
        "task_id": view.task.task_id,
        "status": view.status,
        "meaning": STATUS_MEANING[view.status] if view.status else "not started",
        "phase": view.phase,
        "driven": driven,
        "stopped": stopped,
        "why": " ".join([_why(moves, view), *([_stop(stopped)] if stopped else []), *(f"{row.text}." for row in lost)]),
        **({"files_lost": [row._asdict() for row in lost]} if lost else {}),
        "fail_reasons": list(values.get("fail_reasons", [])),
        "put_back": _put_back(moves, root, shared_only=shared_only),
        "gates": gates,
        "question": None if view.question is None else view.question.to_json(),
        "last_refusal": None if refused is None else _refusal(refused),
        "next": [
            *([stopped["fix"]] if stopped is not None else []),
            *([LOST_FIX] if lost else []),
            *_next_steps(view, root, moves, gates, driven=driven, shared_only=shared_only),
        ],
    }


def _put_back(moves: list[Entry], root: Path, *, shared_only: bool) -> dict[str, list[str]]:
    """Return the files that were put back as in the base, by the attempt that was handed over."""
    rows = {str(entry.data["attempt"]): entry.data["put_back"] for entry in moves if entry.data.get("put_back")}
    visible = shared(root, [path for paths in rows.values() for path in paths]) if shared_only else None
    known = {at: [path for path in paths if visible is None or path in visible] for at, paths in rows.items()}
    return {at: paths for at, paths in known.items() if paths}


def _why(moves: list[Entry], view: RunView) -> str:
    if not moves:
        return "The run has not dispatched anybody yet."
    last = moves[-1].data
    before = last["from"] or "the start"
    text = f"{last['by']} moved it from {before} to {last['to']} in attempt {last['attempt']}"
    if last["to"] != "BLOCKED":
        return text + "."
    cause: Cause = last["cause"]
    spent = "; the rework budget is spent" if view.phase == "done" and REWORKABLE[cause] else ""
    return f"{text}, because {_MEANING[cause]}{spent}."


def _stop(stopped: Mapping[str, str]) -> str:
    end = "" if stopped["message"].endswith((".", "!", "?")) else "."
    return f"There it stopped, since an agent gave no answer ({stopped['code']}): {stopped['message']}{end}"


def _gate_row(view: RunView, gate_id: str, held: bool, root: Path) -> dict[str, Any]:
    gate = view.policy.protocol.gate(gate_id)
    needs = list(gate.evidence) or (["any key"] if gate.any_evidence else [])
    return {
        "gate": gate_id,
        "passed": held,
        "certified_by": _certifiers(view.policy, gate),
        "evidence": needs,
        "satisfiable": _satisfiable(view, gate, root),
    }


def _certifiers(policy: Policy, gate: GateSpec) -> str:
    if gate.certifier == ANYBODY:
        return "any valid envelope"
    if gate.certifier is not None:
        return gate.certifier
    if gate.by_command:
        return "its command, run sealed" if gate.id in policy.seals else "the exit status of its command"
    return " or ".join(role.name for role in (*policy.protocol.of_kind("qa"), *policy.protocol.of_kind("review")))


def _satisfiable(view: RunView, gate: GateSpec, root: Path) -> str:
    """Return `yes`, or what prevents it now."""
    if gate.command and not found_program(root, gate.command[0]):
        return f"no: the command `{gate.command[0]}` is not found"
    if gate.check in ("visual", "a11y"):
        if view.task.page is None:
            return "no: the task names no page"
        try:
            find_browser()
        except CollectorError as error:
            return f"no: {error.message} {error.fix}"
    return "yes"


def _refusal(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "role": answer["role"],
        "attempt": answer["attempt"],
        "reask": answer["reask"],
        "findings": [item for item in answer["findings"] if item["level"] == "error"],
    }


def _next_steps(
    view: RunView, root: Path, moves: list[Entry], gates: list[dict[str, Any]], *, driven: bool, shared_only: bool
) -> list[str]:
    if driven:
        files = waited_for(root, view.run_id)
        held = [f"Wait: {files}. It goes on by itself once they are free."] if files else []
        return held or ["Wait: a process drives the run at this moment."]
    if view.abandoned:
        return ["Nothing: the run was abandoned. Start a new run of the task with `interlock run`."]
    if view.question is not None:
        return _decide(view.run_id, view.question)
    if view.phase == "waiting":
        return [
            f"Hand in the answer of {item.role}: interlock resume {view.run_id} --answer {item.role}=FILE"
            for item in view.waiting
        ] + [
            f"Hand in the corrected answer of {role}, or wait until it is asked again: "
            f"interlock resume {view.run_id} --answer {role}=FILE"
            for role in view.again
            if role not in view.kept and role not in [item.role for item in view.waiting]
        ]
    if view.phase in ("new", "running"):
        unstarted = [f"Or end it for good: interlock abandon {view.run_id}"] if view.phase == "new" else []
        return [f"Take the run on: interlock resume {view.run_id}", *unstarted]
    if view.status == "APPROVED":
        after = tree_after(view, root, shared_only=shared_only)
        steps = [f"Look at {path}: it was changed, and no gate judged the change." for path in after["not_judged"]]
        steps += [f"Look at {path}: it is not as it was approved." for path in after["changed_since"]]
        steps += [f"Read the hand-over again: it names {path}, which did not exist." for path in after["not_there"]]
        return steps or ["Nothing: the task is approved."]
    steps = [f"{row['gate']}: {row['satisfiable'][4:]}" for row in gates if row["satisfiable"] != "yes"]
    if view.failed:
        names = ", ".join(view.failed)
        return [*steps, f"Correct what the reasons name, then go on at {names}: interlock resume {view.run_id}"]
    fix = _FIX.get(moves[-1].data["cause"] if moves else "gate", "Fix what the reasons name")
    return [*steps, f"{fix}, then start a new run of the task with `interlock run`."]


def _decide(run_id: str, question: Question) -> list[str]:
    """Return how a person answers a question."""
    gate, which = next(iter(question.gates)), f"--question {question.number}"
    if question.kind == "waiver":
        return [
            f"Who has seen the work waives it: interlock answer {run_id} waive {which} --gate {gate} --reason WHY",
            f"Or brings the gate back: interlock answer {run_id} decline {which} --reason WHY",
        ]
    return [
        f"A person corrects the task: interlock answer {run_id} correct {which} --task FILE",
        f"Or refuses the objection: interlock answer {run_id} refuse {which} --reason WHY",
        f"Or accepts it, and decides about {gate} when the work is judged: interlock answer {run_id} accept {which}",
    ]


def explanation_text(data: dict[str, Any]) -> str:
    """Return an explanation for a person."""
    lines = [
        f"{data['run_id']}: {data['status'] or 'not started'} ({data['meaning']})",
        f"why: {data['why']}",
        *(f"  - {item}" for item in data["fail_reasons"]),
        *(
            f"put back as in the base, attempt {attempt}: {few(paths)} (interlock restore {data['run_id']} --show)"
            for attempt, paths in data["put_back"].items()
        ),
        "gates:",
    ]
    for row in data["gates"]:
        mark = "passed " if row["passed"] else "waived " if "waived_by" in row else "missing"
        needs = f", needs {' + '.join(row['evidence'])}" if row["evidence"] else ""
        line = f"  {mark}  {row['gate']}: certified by {row['certified_by']}{needs}"
        line += f", waived by {row['waived_by']}" if "waived_by" in row else ""
        line += ", an objection was accepted" if "excused" in row else ""
        lines.append(line if row["satisfiable"] == "yes" else f"{line}; cannot be met now: {row['satisfiable'][4:]}")
    if data["question"] is not None:
        of = data["question"]
        lines.append(f"question {of['number']} to a person: {of['kind']}, about the tree {of['tree']}")
        lines += [f"  {gate}: {why}" for gate, why in of["gates"].items()]
        lines += [f"  - {text}" for text in of["reasons"]]
    refusal = data["last_refusal"]
    if refusal is not None:
        lines.append(
            f"last refused answer: {refusal['role']}, attempt {refusal['attempt']}, ask {refusal['reask'] + 1}"
        )
        for item in refusal["findings"]:
            place = f" line {item['line']} {item['field']}" if item["line"] else ""
            lines.append(f"  {item['code']}{place}: {item['message']}")
            lines += [f"    fix: {item['fix']}"] if item.get("fix") else []
    return "\n".join([*lines, "next:", *(f"  - {item}" for item in data["next"])])
