"""The state of a run, and answers from outside: to open asks, and early to a re-ask that is still to come.

Roles that work side by side are one step of the graph, and a role whose answer was refused is asked again in the next
one. Its corrected answer may come before that. It is then kept beside the refused one, and whoever drives the run
hands it in as soon as the re-ask is open; from there on it is an answer like any other. Its key is made from that of
the refused answer: nobody knows that before the refusal, and it belongs to one re-ask alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from langgraph.types import StateSnapshot

from interlock.envelope import MAX_BYTES
from interlock.envelope.protocol import Status
from interlock.graph.errors import AnswerError
from interlock.graph.task.asking import may_ask_again, reask_number
from interlock.graph.task.machine import QUESTIONS, unjudged
from interlock.graph.task.policy import Policy, key_variables
from interlock.graph.task.questions import Question, kept_as
from interlock.graph.task.state import TaskState
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import Task
from interlock.journal import Head
from interlock.redaction import redactor_for


def asked_again(values: Mapping[str, Any], policy: Policy, task_id: str, store: RunStore) -> dict[str, str]:
    """Return the ids of the re-asks that are open or to come, by role: of roles that answer from outside.

    Their last answer in this turn was refused, and they have a re-ask left; so they have no verdict yet.
    """
    state = cast("TaskState", values)
    return {
        role: f"{store.run_id}/{task_id}/{role}/{last['attempt']}.{last['turn']}/{last['reask'] + 1}"
        for role, last in values.get("answers", {}).items()
        if reask_number(state, role)
        and may_ask_again(state, role, last["reask"], policy.max_reasks)
        and not store.cost(last["stored"])  # what a runner brings has a cost
    }


def kept_answer(values: Mapping[str, Any], role: str, store: RunStore) -> str | None:
    """Return the answer that is kept for the re-ask of a role, or None."""
    return store.answer(kept_key(values, role)) if reask_number(cast("TaskState", values), role) else None


def kept_key(values: Mapping[str, Any], role: str) -> str:
    """Return the key under which the answer to the re-ask of a role is kept."""
    return f"{values['answers'][role]['stored']}.again"


RunPhase: TypeAlias = Literal["new", "running", "waiting", "done"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """One role that a run waits for. The request has prompt, contract and ask id."""

    role: str
    request: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunView:
    """The state of a run, as its checkpoint and its files show it.

    Args:
        phase: `new` before its first node, `running` when a step was cut off, `waiting` for a remote answer, `done`.
        values: The state of the graph as last checkpointed.
        waiting: The roles that it waits for.
        queued: Who holds the files that it waits for before it can go on, as far as this process drives it.
        again: The ids of the re-asks that are open or to come, by role; see `graph.task.view`.
        kept: Those of these roles whose answer is kept until it can be judged.
        abandoned: It was ended for good; it is `done`, wherever it was.
        question: What it waits for a person to decide; `answer_question` answers it, and no agent.
        open_keys: The key of that question, also when its answer is kept and the run has not gone on yet.
    """

    run_id: str
    task: Task
    policy: Policy
    phase: RunPhase
    values: Mapping[str, Any]
    next: tuple[str, ...]
    waiting: tuple[Waiting, ...]
    queued: tuple[Mapping[str, Any], ...] = ()
    again: Mapping[str, str] = field(default_factory=dict[str, str])
    kept: tuple[str, ...] = ()
    abandoned: bool = False
    question: Question | None = None
    open_keys: frozenset[str] = frozenset()

    @property
    def failed(self) -> tuple[str, ...]:
        """The steps that ended the run for a reason outside the work: `drive` can do them again."""
        if self.phase != "done" or self.status != "BLOCKED" or self.abandoned:
            return ()
        return unjudged(self.values.get("verdicts", {}), self.values["attempt"])

    @property
    def status(self) -> Status | None:
        """The status of the task, or None before the first dispatch."""
        return self.values.get("status")

    @property
    def head(self) -> Head | None:
        """The head of the run's journal as the checkpoint keeps it."""
        row = self.values.get("head")
        return None if not row or not row["seq"] else Head(row["seq"], row["hash"])


def view_of(store: RunStore, task: Task, policy: Policy, state: StateSnapshot) -> RunView:
    """Return the view of a run by its checkpoint and its files."""
    values = dict(state.values)
    again = asked_again(values, policy, task.task_id, store) if state.tasks else {}
    kept = tuple(role for role in again if kept_answer(values, role, store) is not None)
    open_now = [(task_.name, item.value) for task_ in state.tasks for item in task_.interrupts if not task_.result]
    waiting = tuple(Waiting(name, value) for name, value in open_now if name not in QUESTIONS)
    asked = next((Question.from_json(value) for name, value in open_now if name in QUESTIONS), None)
    answered = asked is not None and kept_as(store, asked.key) is not None
    phase: RunPhase
    if state.created_at is None:
        phase = "new"
    elif not state.tasks:
        phase = "done"
    elif answered or any(item.role in kept for item in waiting):  # a drive that was cut off, or ended as it came
        phase, waiting, asked = "running", (), None
    else:
        phase = "waiting" if waiting or asked else "running"
    return RunView(
        store.run_id, task, policy, phase, values, state.next, waiting, again=again, kept=kept, question=asked,
        open_keys=open_keys(state),
    )  # fmt: skip


def keep_early(view: RunView, store: RunStore, answers: Mapping[str, str], asks: Mapping[str, str]) -> dict[str, str]:
    """Keep the answers to re-asks that the run comes to later, and return the other ones. Safe to repeat.

    `asks` maps a role to the id of the ask that its response is for.

    Raises:
        AnswerError: One is for another ask, or another answer to that ask is kept already.
    """
    for role in answers:
        if role in view.again:
            _check_ask(role, asks.get(role), view.again[role], "Hand the corrected answer in for that ask.")
    for role, text in answers.items():
        if role in view.again:
            _keep(view, store, role, text)
    return {role: text for role, text in answers.items() if role not in view.again}


def hand_in(
    view: RunView, state: StateSnapshot, store: RunStore, answers: Mapping[str, str], asks: Mapping[str, str]
) -> dict[str, bytes]:
    """Keep the answers to re-asks that are still to come, and return what resumes the asks that are open.

    Raises:
        AnswerError: As for `keep_early` and `resume_map`; nothing was done.
    """
    open_now = {task.name for task in state.tasks if task.interrupts and task.name not in QUESTIONS}
    early = {role: text for role, text in answers.items() if role in view.again and role not in open_now}
    given = resume_map(view, state, store, {role: answers[role] for role in answers if role not in early}, asks)
    keep_early(view, store, early, asks)
    return given


def keep_given(view: RunView, store: RunStore, answers: Mapping[str, str]) -> None:
    """Keep the answers to re-asks that are open, so that no other one is taken for the same ask.

    Raises:
        AnswerError: Another one is kept already.
    """
    for role, text in answers.items():
        if role in view.again:
            _keep(view, store, role, text)


def resume_map(
    view: RunView, state: StateSnapshot, store: RunStore, answers: Mapping[str, str], asks: Mapping[str, str]
) -> dict[str, bytes]:
    """Match answers, those that are kept among them, to the interrupts that are open now.

    Raises:
        AnswerError: One is for a role that is not asked, or for another ask.
    """
    asked = [(task.name, item) for task in state.tasks for item in task.interrupts]
    open_ids = {name: item.id for name, item in asked if name not in QUESTIONS}
    open_asks = {name: str(item.value["ask_id"]) for name, item in asked if name not in QUESTIONS}
    for role in answers:
        if role not in open_ids:
            roles = ", ".join(open_ids) or "nobody"
            raise AnswerError(
                f"run {view.run_id} does not wait for {role}; it waits for {roles}",
                "Answer for a role that the run waits for; `interlock status` names it.",
            )
        _check_ask(role, asks.get(role), open_asks[role], "Read what the run asks now, and answer that.")
    kept = {role: text for role in open_ids if (text := kept_answer(view.values, role, store)) is not None}
    # As bytes, since a checkpoint would put a question mark in place of half a character and make the text valid.
    return {
        open_ids[role]: text[: MAX_BYTES + 1].encode("utf-8", "surrogatepass")
        for role, text in {**answers, **kept}.items()
    }


def task_now(task: Task, state: StateSnapshot, store: RunStore) -> Task:
    """Return a run's task as a person corrected it last, which may be in the answer that goes into the run next.

    Raises:
        RunDamagedError: That is not an answer, or holds no task.
    """
    kept = [answer for key in open_keys(state) if (answer := kept_as(store, key)) is not None]
    rows = [state.values.get("task"), *(answer.task for answer in kept)]
    last = next((row for row in reversed(rows) if row is not None), None)
    try:
        return task if last is None else Task.from_json(last)
    except (ValueError, LookupError, TypeError) as error:
        raise store.damaged("answers", "a correction holds no task") from error


def open_keys(state: StateSnapshot) -> frozenset[str]:
    """Return the keys of the questions to a person that are open."""
    asked = (item.value for task in state.tasks for item in task.interrupts if task.name in QUESTIONS)
    return frozenset(str(value["key"]) for value in asked)


def decided(state: StateSnapshot, store: RunStore) -> dict[str, bytes]:
    """Return what resumes the question to a person that is open, where its answer is kept."""
    return {
        item.id: answer.text.encode()
        for task in state.tasks
        for item in task.interrupts
        if task.name in QUESTIONS and (answer := kept_as(store, str(item.value["key"]))) is not None
    }


def _check_ask(role: str, named: str | None, asked: str, fix: str) -> None:
    if named not in (None, asked):
        raise AnswerError(f"the answer of {role} is for the ask {named[:300]}, and the run now asks {asked}", fix)


def _keep(view: RunView, store: RunStore, role: str, text: str) -> None:
    clean = redactor_for(store.root, key_variables(view.policy)).text(text)[: MAX_BYTES + 1]
    if store.keep_first(kept_key(view.values, role), clean) != clean:
        raise AnswerError(
            f"run {view.run_id} has another answer of {role} to the ask {view.again[role]}, which is not judged yet",
            "Wait until it is judged: task_next and `interlock explain` say what came of it.",
        )
