"""The state of a run as its checkpoint and its journal show it, and what resumes the asks that are open."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from langgraph.types import StateSnapshot

from interlock.envelope import MAX_BYTES
from interlock.envelope.protocol import Status
from interlock.graph.errors import ANSWER, GraphError
from interlock.graph.task.machine import QUESTIONS
from interlock.graph.task.policy import Policy
from interlock.graph.task.questions import Question
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import Task
from interlock.journal import Head

RunPhase: TypeAlias = Literal["new", "running", "waiting", "done"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """One role that a run waits for. The request has prompt, contract and ask id."""

    role: str
    request: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunView:
    """The state of a run.

    Args:
        phase: `new` before its first node, `running` when a step was cut off, `waiting` for an answer from outside or a
            person, `done`.
        values: The state of the graph as last checkpointed.
        waiting: The roles that it waits for.
        queued: Who holds the files that it waits for before it can go on, as far as this process drives it.
        abandoned: It was ended for good; it is `done`, wherever it was.
        question: What it waits for a person to decide; `answer_question` answers it, and no agent.
        of_another_version: Another version began it, so that it does not go on, and waits for nobody.
    """

    run_id: str
    task: Task
    policy: Policy
    phase: RunPhase
    values: Mapping[str, Any]
    next: tuple[str, ...]
    waiting: tuple[Waiting, ...]
    queued: tuple[Mapping[str, Any], ...] = ()
    abandoned: bool = False
    question: Question | None = None
    of_another_version: bool = False

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
    """Return the view of a run; its task is as a person corrected it last."""
    waiting: list[Waiting] = []
    question: Question | None = None
    correction: Mapping[str, Any] | None = state.values.get("task")
    answered, other = False, store.is_of_another_version()
    for step in state.tasks:
        # A step with a result has ended, although its superstep, in which others still wait, has not.
        for item in step.interrupts if not step.result and not other else ():
            if step.name not in QUESTIONS:
                waiting.append(Waiting(step.name, item.value))
                continue
            question = Question.from_json(item.value)
            answer = store.decision(question.number)
            if answer is not None:
                # The answer is in the journal before a drive takes it up; until then the checkpoint still has the
                # question.
                answered, correction = True, answer.get("task", correction)
    phase: RunPhase
    # LangGraph gives no time where there is no checkpoint yet.
    if state.created_at is None:
        phase = "new"
    elif not state.tasks:
        phase = "done"
    elif answered or not (waiting or question):  # a drive was cut off, or has not begun since a person answered
        phase, question = "running", None
    else:
        phase = "waiting"
    if correction is not None:
        try:
            task = Task.from_json({**correction, "base": task.base})
        except ValueError as error:
            raise store.damaged("checkpoints.sqlite", "it holds a correction that is no task") from error
    values = dict(state.values)
    if policy.sealing and values:
        values["sealing"] = policy.sealing  # as it is on this machine
    return RunView(
        store.run_id,
        task,
        policy,
        phase,
        values,
        state.next,
        tuple(waiting),
        question=question,
        of_another_version=other,
    )


def resume_map(
    view: RunView, state: StateSnapshot, store: RunStore, answers: Mapping[str, str], asks: Mapping[str, str]
) -> dict[str, Any]:
    """Return what resumes the interrupts that are open: the answers of agents outside, and that of a person.

    `asks` maps a role to the id of the ask that its response is for.

    Raises:
        GraphError: One is for a role that is not asked, or for another ask.
    """
    given: dict[str, Any] = {}
    open_roles = {step.name: item for step in state.tasks for item in step.interrupts if step.name not in QUESTIONS}
    for role, text in answers.items():
        if role not in open_roles:
            raise GraphError(
                f"run {view.run_id} does not wait for {role}; it waits for {', '.join(open_roles) or 'nobody'}",
                "Answer for a role that the run waits for; `interlock status` names it.",
                ANSWER,
            )
        asked, named = str(open_roles[role].value["ask_id"]), asks.get(role)
        if named not in (None, asked):
            raise GraphError(
                f"the answer of {role} is for the ask {named[:300]}, and the run now asks {asked}",
                "Read what the run asks now, and answer that.",
                ANSWER,
            )
        # As bytes, since a checkpoint would put a question mark in place of half a character and make the text valid.
        given[open_roles[role].id] = text[: MAX_BYTES + 1].encode("utf-8", "surrogatepass")
    for step in state.tasks:
        for item in step.interrupts:
            if step.name in QUESTIONS and store.decision(item.value["number"]) is not None:
                # What was answered is in the journal, where the node reads it.
                given[item.id] = True
    return given
