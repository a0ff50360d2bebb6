"""What the tools of the toolset `tasks` answer: the current state of a task run, and what was collected."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, cast

from interlock import graph
from interlock.graph import AgentOutcome, blocker_text, journal_of

if TYPE_CHECKING:
    from interlock.gates import Collection

Phase: TypeAlias = Literal["running", "waiting", "done"]


class TaskState(TypedDict):
    """The current state of a run.

    Shapes: `phase` is `running` while collectors or agents with a runner are at work, `waiting` when the roles in
    `waiting` must answer, `done` at the end; `next` says what to call.
    """

    run_id: str
    task_id: str
    status: str | None
    phase: Phase
    attempt: int
    waiting: list[str]
    fail_reasons: list[str]
    next: str


class AskObject(TypedDict):
    """What one role must do now: `system` is its role prompt, `prompt` the assignment with the envelope's contract."""

    role: str
    step: str
    attempt: int
    turn: int
    reask: int
    ask_id: str
    tree: str
    evidence: dict[str, list[str]]
    reports_dir: str
    system: str
    prompt: str


class Step(TaskState):
    """What `task_next` answers."""

    asks: list[AskObject]


class Submitted(TaskState):
    """What `task_submit` answers.

    Shapes: `ok`: whether the answer was accepted, null while it is kept or being judged; `findings` has code,
    level, field, line and message; `reask` is the text for the agent, with what was found, what is expected, and each
    fix; `repeated` says that this answer was handed in before and nothing was done now.
    """

    ok: bool | None
    outcome: AgentOutcome | None
    findings: list[dict[str, Any]]
    reask: str
    repeated: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of one answer: its outcome, the digest of its text, its findings, and the text for a re-ask."""

    outcome: AgentOutcome
    sha256: str
    findings: list[dict[str, Any]]
    reask: str


def task_state(view: "graph.RunView") -> TaskState:
    """Return the current state of a run and what to call next."""
    waiting = [item.role for item in view.waiting]
    # A run that has not taken its first step is at work, as its client sees it.
    phase: Phase = "running" if view.phase == "new" else view.phase
    return TaskState(
        run_id=view.run_id,
        task_id=view.task.task_id,
        status=view.status,
        phase=phase,
        attempt=int(view.values.get("attempt", 0)),
        waiting=waiting,
        fail_reasons=list(view.values.get("fail_reasons", [])),
        next=_next(phase, view.status, waiting, view.queued),
    )


def _next(phase: Phase, status: str | None, waiting: list[str], queued: Sequence[Mapping[str, Any]]) -> str:
    match phase:
        case "running" if queued:
            blockers = "; ".join(blocker_text(row) for row in queued[:3])
            return f"Call task_next again: the run waits in the queue for files of its scope. {blockers}."
        case "running":
            return "Call task_next again: Interlock collects evidence, or an agent with a runner of its own is at work."
        case "waiting" if not waiting:
            return "Wait: a person decides, and no agent; call task_next again later."
        case "waiting":
            roles = " and ".join(waiting)
            return f"Get the ask of {roles} from task_next, do the work, and hand in the envelope with task_submit."
        case "done" if status == "APPROVED":
            return "Nothing: the task is APPROVED."
        case "done":
            return "Fix what fail_reasons names, then begin a new run of the task with task_begin."


def open_asks(view: "graph.RunView") -> dict[str, AskObject]:
    """Return what each role that a run waits for is asked."""
    names = tuple(AskObject.__annotations__)
    return {item.role: cast("AskObject", {name: item.request[name] for name in names}) for item in view.waiting}


def judged(view: "graph.RunView", root: Path, role: str, ask_id: str | None) -> Judged | None:
    """Return what came of the answer to an ask, or to the last one without `ask_id`; None where none was judged."""
    last: graph.Answered | None = view.values.get("answers", {}).get(role)
    answered = None if last is None else (last["attempt"], last["turn"], last["reask"])
    place = answered if ask_id is None else _place_of(view, role, ask_id)
    # This is the key that a run gives to the event of an answer; see `asking`.
    event = None if place is None else _event(view, root, "{}.{}/{role}/answer/{}".format(*place, role=role))
    # An ask that ended without an answer, such as by a time limit, has an event without one.
    if event is None or "response_sha256" not in event:
        return None
    return Judged(
        outcome=event["outcome"],
        sha256=event["response_sha256"],
        findings=[dict(item) for item in event["findings"]],
        reask=last["findings_text"] if last is not None and place == answered else "",
    )


def _place_of(view: "graph.RunView", role: str, ask_id: str) -> tuple[int, ...] | None:
    # The form of an ask id. One of another run or role finds nothing, whatever numbers it has.
    name = re.escape(f"{view.run_id}/{view.task.task_id}/{role}/")
    found = re.fullmatch(name + r"(\d{1,5})\.(\d{1,5})/(\d{1,5})", ask_id, re.ASCII)
    return found and tuple(map(int, found.groups()))


def _event(view: "graph.RunView", root: Path, key: str) -> Mapping[str, Any] | None:
    """Return the data of an event of a run, from its journal or from the lines that wait to be written."""
    # An event is in the checkpoint first, and in the journal when the run's next step has written it.
    waiting: Mapping[str, graph.Event] = view.values.get("outbox", {})
    if key in waiting:
        return waiting[key]["data"]
    entry = journal_of(root).find(view.run_id, key)
    return None if entry is None else entry.data


class EvidenceRow(TypedDict):
    """One evidence file: `key` is its EVIDENCE key, `sha256` the digest of its content."""

    key: str
    path: str
    sha256: str
    size_bytes: int


class Made(TypedDict):
    """What was made for one gate: `tree` is the digest of the files that it shows."""

    gate: str
    ok: bool
    attempt: int
    tree: str
    manifest: str
    files: list[EvidenceRow]
    findings: list[dict[str, Any]]


class Collected(TypedDict):
    """What `collect_evidence` answers: `ok` when every collection shows no fault."""

    ok: bool
    collections: list[Made]


def collected(collections: "Iterable[Collection]") -> Collected:
    """Return several collections as one answer."""
    made = [
        Made(
            gate=each.gate,
            ok=each.ok,
            attempt=each.binding.attempt,
            tree=each.binding.tree,
            manifest=each.manifest,
            files=[
                EvidenceRow(key=file.key, path=file.path, sha256=file.sha256, size_bytes=file.size_bytes)
                for file in each.files
            ],
            findings=[finding.to_json() for finding in each.findings],
        )
        for each in collections
    ]
    return Collected(ok=all(row["ok"] for row in made), collections=made)
