"""Handing in answers from outside: to the asks that are open, and early to a re-ask that the run has not come to yet.

Roles that work side by side are one step of the graph, and a role whose answer was refused is asked again in the next
one. Its corrected answer may come before that. It is then kept beside the refused one, and whoever drives the run
hands it in as soon as the re-ask is open; from there on it is an answer like any other.
"""

from collections.abc import Mapping

from langgraph.types import StateSnapshot

from interlock.envelope import MAX_BYTES
from interlock.graph.errors import AnswerError
from interlock.graph.task.early import kept_answer, kept_key
from interlock.graph.task.policy import key_variables
from interlock.graph.task.store import RunStore
from interlock.graph.task.view import RunView
from interlock.redaction import redactor_for


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
    open_now = {task.name for task in state.tasks if task.interrupts}
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
    open_ids = {task.name: item.id for task in state.tasks for item in task.interrupts}
    open_asks = {task.name: str(item.value["ask_id"]) for task in state.tasks for item in task.interrupts}
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
