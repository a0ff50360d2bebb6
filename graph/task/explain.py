"""Why a task is where it is: what moved it there, which gates are missing, whether they can be met, what to do.

And what of a run waits for a person: `waits_of` is the one list behind the inbox, `interlock watch` and notifications.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from interlock.agents.usage import Limits, Usage, total, usage_row
from interlock.core.database import database_of
from interlock.core.text import few
from interlock.envelope.protocol import ANYBODY, STATUS_MEANING, GateSpec
from interlock.gates.manifest import from_json
from interlock.gates.shared import shared
from interlock.graph.engine.folder import LANDED, beside_run, journal_of, journal_path, list_runs, runs_of
from interlock.graph.errors import RunDamagedError
from interlock.graph.task.kept_evidence import present_path
from interlock.graph.task.left_agents import left_text
from interlock.graph.task.machine import REWORKABLE, UNANSWERED, Cause, certified
from interlock.graph.task.policy import Policy
from interlock.graph.task.progress import agents_at_work
from interlock.graph.task.questions import Question
from interlock.graph.task.record import tree_of
from interlock.graph.task.scope_leases import waited_for
from interlock.graph.task.sealing import place_in
from interlock.graph.task.state import CollectedEvidence, excused_gates, waived_trees
from interlock.graph.task.store import RunStore
from interlock.graph.task.trees import PUT_BACK, absent_files, changed_in_scope, left_changed, snapshot
from interlock.graph.task.view import RunView
from interlock.journal import Entry, Journal
from interlock.reservations import place

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


def run_summary(view: RunView, root: Path, journal: Journal | None = None) -> dict[str, Any]:
    """Return the status of a run and where its records are, as JSON values."""
    entries = list((journal or journal_of(root)).entries(view.run_id))
    store = RunStore(root, view.run_id)
    values = view.values
    attempt, driven = int(values.get("attempt", 0)), store.driven()
    left = "" if driven or view.phase == "done" else left_text(store)
    evidence: dict[str, list[str]] = {}
    for row in cast("dict[str, CollectedEvidence]", values.get("collected", {})).values():
        for file in from_json(row["collection"]).files if row["collection"] is not None else ():
            evidence.setdefault(file.key, []).append(present_path(root, file.path, file.sha256))
    head = view.head
    return {
        "schema": "interlock.run/1",
        "run_id": view.run_id,
        "task_id": view.task.task_id,
        "task": view.task.task,
        "phase": view.phase,
        "status": view.status,
        "attempt": attempt,
        "driven": driven,
        **({"left": left} if left else {}),
        **({"tree": tree_of(view.policy)} if view.policy.tree else {}),
        "at_work": agents_at_work(root, view.run_id) if driven else [],
        "abandoned": view.abandoned,
        **({"earlier_version": True} if view.of_another_version else {}),
        "stopped": None if view.abandoned else store.stopped(),
        "path": [entry.data["to"] for entry in entries if entry.type == "status"],
        "updated_at": entries[-1].at if entries else None,
        "fail_reasons": list(values.get("fail_reasons", [])),
        "waiting": [{"role": item.role, "request": dict(item.request)} for item in view.waiting],
        "question": None if view.question is None else view.question.to_json(),
        "waived": waived_by(view),
        "usage": usage_of(view),
        "evidence": evidence,
        "put_back": put_back(entries, root, shared_only=False).get(str(attempt), []),
        "journal": str(journal_path(root).relative_to(root)),
        "head": None if head is None else {"seq": head.seq, "hash": head.hash},
    }


def waived_by(view: RunView) -> dict[str, str]:
    """Return each gate that is waived for the present attempt and its tree, with the name of who waived it."""
    # After `stale` the files differ from `tree` although the state still has it: the waiver is for files that are gone.
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

    `not_judged` is as for `left_changed`. `changed_since` are the files in scope that are not as they were APPROVED, as
    long as that work is what the checkout has uncommitted: once it is committed, or another run has begun there, other
    files are no news. `not_there` are those that the approved hand-over named and that did not exist.
    With `shared_only` these are only the files that a caller with a token may know of.
    """
    if view.phase != "done":
        return {"not_judged": [], "changed_since": [], "not_there": []}
    since: list[str] = []
    if view.status == "APPROVED" and (approved := view.values.get("snapshot")) and _is_present_work(view, root):
        sealing = view.values["sealing"]
        now = snapshot(root, view.task, view.policy, sealing)
        since = changed_in_scope(root, view.task, sealing, (approved, now))
    absent = absent_files(root, view.values) if view.status == "APPROVED" else []
    named = {"not_judged": left_changed(view.values, view.policy.sealing), "changed_since": since, "not_there": absent}
    every = [path for paths in named.values() for path in paths]
    visible = shared(root, every) if shared_only else {*every}
    return {name: [path for path in paths if path in visible] for name, paths in named.items()}


def _is_present_work(view: RunView, root: Path) -> bool:
    """Return whether a run in the checkout was the last to begin there, and HEAD is the commit that it began with."""
    if view.policy.tree:
        return False
    if view.policy.commit:
        top, _ = place_in(root, view.values["sealing"])
        head = place.commit_at(str(top))
        if head and head != view.policy.commit:
            return False
    for run_id in reversed(list_runs(root, "runs")):
        if run_id == view.run_id:
            break
        with suppress(RunDamagedError):
            # A run in a tree of its own changes nothing in the checkout.
            if not RunStore(root, run_id).load()[1].tree:
                return False
    return True


def explain_run(view: RunView, root: Path, *, shared_only: bool = False) -> dict[str, Any]:
    """Return why a run is where it is, as JSON values with the schema `interlock.explanation/1`.

    With `shared_only` it names only the files that a caller with a token may know of.

    Raises:
        RunDamagedError: The journal lacks lines of the run.
    """
    store = RunStore(root, view.run_id)
    entries = store.lines(view.head)
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
    # What blocked the task is not shown as passed, although a verdict may have certified it on this tree.
    if view.status == "BLOCKED":
        held -= {reason.partition(":")[0] for reason in values.get("fail_reasons", ())}
    # A gate that any valid answer certifies counts as held from the start, even before there is an answer.
    if not any(data["outcome"] not in UNANSWERED for data in answers):
        held -= {gate_id for gate_id in held if view.policy.protocol.gate(gate_id).certifier == ANYBODY}
    driven = store.driven()
    stopped = None if driven else store.stopped()
    left = "" if driven or view.phase == "done" else left_text(store)
    gates = [
        _gate_row(view, gate_id, gate_id in held)
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
        "why": " ".join(
            [
                why(moves, over=view.phase == "done"),
                *([_stop(stopped)] if stopped else []),
                *([f"Now {left}."] if left else []),
            ]
        ),
        "fail_reasons": list(values.get("fail_reasons", [])),
        "put_back": put_back(entries, root, shared_only=shared_only),
        "gates": gates,
        "question": None if view.question is None else view.question.to_json(),
        "last_refusal": None if refused is None else refused_answer(refused),
        "next": [
            *([stopped["fix"]] if stopped is not None and not view.of_another_version else []),
            *_next_steps(view, root, driven=driven, shared_only=shared_only),
        ],
    }


def put_back(entries: list[Entry], root: Path, *, shared_only: bool) -> dict[str, list[str]]:
    """Return the files that were put back as in the base, by the attempt that was handed over."""
    rows = {str(entry.data["attempt"]): entry.data["paths"] for entry in entries if entry.type == PUT_BACK}
    every = [path for paths in rows.values() for path in paths]
    visible = shared(root, every) if shared_only else {*every}
    known = {attempt: [path for path in paths if path in visible] for attempt, paths in rows.items()}
    return {attempt: paths for attempt, paths in known.items() if paths}


def why(moves: list[Entry], *, over: bool) -> str:
    """Return in a sentence what moved a run to where it is, by its lines of the type `status`."""
    if not moves:
        return "The run has not dispatched anybody yet."
    last = moves[-1].data
    before = last["from"] or "the start"
    text = f"{last['by']} moved it from {before} to {last['to']} in attempt {last['attempt']}"
    if last["to"] != "BLOCKED":
        return text + "."
    cause: Cause = last["cause"]
    spent = "; the rework budget is spent" if over and REWORKABLE[cause] else ""
    return f"{text}, because {_MEANING[cause]}{spent}."


def _stop(stopped: Mapping[str, str]) -> str:
    end = "" if stopped["message"].endswith((".", "!", "?")) else "."
    return f"There it stopped, since an agent gave no answer ({stopped['code']}): {stopped['message']}{end}"


def _gate_row(view: RunView, gate_id: str, held: bool) -> dict[str, Any]:
    gate = view.policy.protocol.gate(gate_id)
    needs = list(gate.evidence) or (["any key"] if gate.any_evidence else [])
    return {
        "gate": gate_id,
        "passed": held,
        "certified_by": _certifiers(view.policy, gate),
        "evidence": needs,
    }


def _certifiers(policy: Policy, gate: GateSpec) -> str:
    if gate.certifier == ANYBODY:
        return "any valid envelope"
    if gate.certifier is not None:
        return gate.certifier
    if gate.by_command:
        return "its command, run sealed" if gate.id in policy.seals else "the exit status of its command"
    return " or ".join(role.name for role in (*policy.protocol.of_kind("qa"), *policy.protocol.of_kind("review")))


def refused_answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer that was refused, with what refused it."""
    return {
        "role": answer["role"],
        "attempt": answer["attempt"],
        "reask": answer["reask"],
        "findings": [item for item in answer["findings"] if item["level"] == "error"],
    }


def _next_steps(view: RunView, root: Path, *, driven: bool, shared_only: bool) -> list[str]:
    if driven:
        files = waited_for(root, view.run_id)
        held = [f"Wait: {files}. It goes on by itself once they are free."] if files else []
        shared = "Wait: a worker drives it, or is going to; `interlock workers` shows what waits for whom."
        return held or [shared if database_of(root) else "Wait: a process drives the run at this moment."]
    if view.abandoned:
        return ["Nothing: the run was abandoned. Start a new run of the task with `interlock run`."]
    if view.of_another_version and view.phase != "done":
        other = "Another version of Interlock began it, and it does not go on. End it for good, which frees its files"
        return [f"{other}: interlock abandon {view.run_id}", "Then start a new run of the task."]
    if view.question is not None:
        return _decide(view.run_id, view.question)
    if view.phase == "waiting":
        return [
            f"Hand in the answer of {item.role}: interlock resume {view.run_id} --answer {item.role}=FILE"
            for item in view.waiting
        ]
    if view.phase in ("new", "running"):
        unstarted = [f"Or end it for good: interlock abandon {view.run_id}"] if view.phase == "new" else []
        return [f"Take the run on: interlock resume {view.run_id}", *unstarted]
    if view.status == "APPROVED":
        after = tree_after(view, root, shared_only=shared_only)
        steps = [f"Look at {path}: it was changed, and no gate judged the change." for path in after["not_judged"]]
        steps += [f"Look at {path}: it is not as it was approved." for path in after["changed_since"]]
        steps += [f"Read the hand-over again: it names {path}, which did not exist." for path in after["not_there"]]
        return steps or [_after_approval(view, root)]
    return ["Fix what the reasons name, then start a new run of the task with `interlock run`."]


def _landed(root: Path, run_id: str) -> str:
    """Say where a run has landed; empty where it has not."""
    lines = [entry.data for entry in journal_of(root).entries(beside_run(run_id)) if entry.type == LANDED]
    if not lines:
        return ""
    target, commit = lines[-1]["target"], str(lines[-1]["commit"])[:12]
    return (
        f"{target} had its changes at {commit}"
        if lines[-1].get("judged") == "before"
        else f"it has landed on {target} as {commit}"
    )


def _after_approval(view: RunView, root: Path) -> str:
    """Return where an approved run has landed, or how it does."""
    if landed := _landed(root, view.run_id):
        return f"Nothing: {landed}."
    if not view.policy.commit:
        return "Nothing: the task is approved."
    newest = runs_of(root, "runs", view.task.task_id)[0]
    if newest != view.run_id:  # as after a conflict with what had landed
        if landed := _landed(root, newest):
            return f"Nothing: run {newest} has taken the task up since, and {landed}."
        this = f"this one lands by `interlock land {view.run_id}`"
        return f"Look at run {newest}, which has taken the task up since (`interlock explain {newest}`); {this}."
    return f"Land it: interlock land {view.run_id}"


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
        lines.append(line)
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


# -- what waits for a person -------------------------------------------------------------------------------------------

WaitKind: TypeAlias = Literal[
    "objection", "waiver", "review", "answer", "stopped", "cut off", "blocked", "negotiation", "claim"
]

COMMANDS: Final[dict[WaitKind, str]] = {
    "objection": "interlock answer {run}",
    "waiver": "interlock answer {run}",
    "review": "interlock ask {run} {role}",
    "answer": "interlock ask {run} {role}",
    "stopped": "interlock resume {run}",
    "cut off": "interlock resume {run}",
    "blocked": "interlock explain {run}",
    "negotiation": "interlock respond {run} release",
    "claim": "interlock reserve {file}",
}
"""What goes on from each kind of wait."""


class Wait(NamedTuple):
    """One thing that waits.

    Args:
        kind: What for. An `answer` is that of a role other than reviewer, and may be an agent's to give; a run that is
            `cut off` waits for whoever takes it on.
        run: The run; of a negotiation its thread, of a claim its reservation.
        text: What is to be done.
        key: What it is known by: the same for the same thing, whoever looks.
        role: Who is asked, of a review and an answer.
        file: What is asked for, of a negotiation; what was granted, of a claim.
    """

    kind: WaitKind
    run: str
    text: str
    key: str
    role: str = ""
    file: str = ""

    @property
    def command(self) -> str:
        """The command that goes on from here."""
        return COMMANDS[self.kind].format(run=self.run, role=self.role, file=quote(self.file))


def waits_of(view: RunView, store: RunStore) -> Iterator[Wait]:
    """Yield what waits in a run."""
    run, head = view.run_id, 0 if view.head is None else view.head.seq
    if view.abandoned or view.of_another_version:
        return
    if (asked := view.question) is not None:
        for gate, why in asked.gates.items():
            yield Wait(asked.kind, run, f"{gate}: {why}", f"{run}/question/{asked.number}/{gate}")
    if view.phase == "waiting":
        for each in view.waiting:
            kind = "review" if view.policy.protocol.roles[each.role].kind == "review" else "answer"
            again = ", again" if each.request["reask"] else ""
            text = f"{each.role} is asked{again}: {view.task.task}"
            yield Wait(kind, run, text, str(each.request["ask_id"]), each.role)
    elif view.phase in ("running", "new"):
        if store.driven():
            return
        if (stopped := store.stopped()) is not None:
            text = f"{stopped['code']}: {stopped['message']}"
            yield Wait("stopped", run, text, f"{run}/stopped/{head}/{stopped['code']}")
        else:
            text = "nobody drives it; it can be taken on"
            if view.phase == "new":
                text = f"it was begun and has not started; take it on, or remove it: interlock abandon {run}"
            yield Wait("cut off", run, left_text(store) or text, f"{run}/cut-off/{head}")
    elif view.phase == "done" and view.status == "BLOCKED":
        reasons: list[str] = view.values.get("fail_reasons") or ["no reason is kept"]
        text = f"{reasons[0]}{f' and {len(reasons) - 1} more' if len(reasons) > 1 else ''}"
        yield Wait("blocked", run, text, f"{run}/blocked/{head}")
