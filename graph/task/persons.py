"""What a person says to a run from outside: the answer to its question, a comment on a line."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from interlock.graph.errors import CommentError, RunAbandonedError
from interlock.graph.task.comments import FIX, Comment, keep_comment
from interlock.graph.task.policy import Policy, key_variables
from interlock.graph.task.preflight import check_task
from interlock.graph.task.questions import (
    MAX_REASON_CHARS,
    WAYS,
    AnswerKind,
    PersonsAnswer,
    Question,
    QuestionError,
    kept_as,
)
from interlock.graph.task.runs import view_run
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import Task
from interlock.redaction import redactor_for


def comment(root: Path, run_id: str, attempt: int, path: str, line: int, text: str, by: str) -> Comment:
    """Keep a comment on a line of a hand-over, also while the run is driven. Safe to repeat.

    Line breaks in the text become blanks; keys of the environment are taken out.

    Raises:
        UnknownRunError, RunDamagedError: See `graph.errors`.
        CommentError: The run is over, or the comment cannot be kept as it is.
        JournalError: The journal cannot be written.
    """
    _check_open(root, run_id, attempt)
    return keep_comment(root, run_id, attempt, path, line, text, by)


def _check_open(root: Path, run_id: str, attempt: int) -> None:
    view = view_run(run_id, root=root)
    if view.phase == "done" and not view.failed:
        how = "abandoned" if view.abandoned else view.status
        raise CommentError(
            f"run {run_id} is over ({how}), and nobody acts on a comment any more",
            "Start a new run with the comment in its task.",
        )
    last = int(view.values.get("attempt", 0))
    if not 0 <= attempt <= last:
        raise CommentError(f"run {run_id} has no attempt {attempt}; the last one is {last}", FIX)


def answer_question(
    root: Path,
    run_id: str,
    kind: AnswerKind,
    *,
    number: int,
    by: str,
    reason: str = "",
    gate: str = "",
    task: Task | None = None,
) -> Question:
    """Answer what a run asks a person; `drive` then takes the run on. The first answer stays.

    Args:
        root: The project's root.
        run_id: The run.
        kind: How; see `WAYS`.
        number: The number of the question that was read; an answer to another one is not taken.
        by: The login name of who answers.
        reason: Why; needed but for `correct` and `accept`.
        gate: The gate that is waived; it may be left out, since a question about a waiver is about one gate.
        task: The corrected task, for `correct`.

    Returns:
        The question that was answered.

    Raises:
        QuestionError: The answer is not taken.
        TaskError: The corrected task cannot start.
        UnknownRunError, RunDamagedError: See `graph.errors`.
    """
    store = RunStore(root, run_id)
    view = view_run(run_id, root=root)
    if view.abandoned:
        raise RunAbandonedError(run_id)
    question = view.question
    if question is None or question.number != number:
        for key in (key for at, key in store.decisions() if at == number):
            if (given := kept_as(store, key)) is not None:
                raise _answered(run_id, given)
        asks = "no person for a decision" if question is None else f"question {question.number} now, and not {number}"
        raise QuestionError("RUN640", f"run {run_id} asks {asks}", f"Read what it asks: `interlock answer {run_id}`.")
    if kind not in WAYS[question.kind]:
        ways = " or ".join(WAYS[question.kind])
        raise QuestionError("RUN642", f"`{kind}` is not an answer to this {question.kind}", f"Answer {ways}.")
    reason = redactor_for(root, key_variables(view.policy)).text(" ".join(reason.split()))[:MAX_REASON_CHARS]
    if not reason and kind in ("refuse", "waive", "decline"):
        raise QuestionError("RUN643", f"`{kind}` needs a reason, which the journal keeps", "Say why in a sentence.")
    meant = gate or next(iter(question.gates))
    if meant not in question.gates:
        raise QuestionError("RUN642", f"the question is not about {meant}", f"Name {', '.join(question.gates)}.")
    if kind == "correct":
        task = _correction(root, view.task, view.policy, task)
    now = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="seconds")
    given = PersonsAnswer(kind, meant, reason, by, now, task.to_json() if kind == "correct" and task else None)
    if store.keep_first(question.key, given.text) != given.text:
        other = kept_as(store, question.key)
        assert other is not None, "it was there a moment ago"
        raise _answered(run_id, other)
    return question


def _answered(run_id: str, before: PersonsAnswer) -> QuestionError:
    why = f": {before.reason}" if before.reason else ""
    return QuestionError(
        "RUN641", f"{before.by} answered `{before.kind}` at {before.at}{why}",
        f"Nothing was changed by you; `interlock explain {run_id}` says how the run goes on.",
    )  # fmt: skip


def _correction(root: Path, old: Task, policy: Policy, new: Task | None) -> Task:
    """Return a corrected task as this run can take it.

    Raises:
        QuestionError: What it changes was frozen when the run began.
        TaskError: It could not start.
    """
    if new is None:
        raise QuestionError("RUN644", "a correction needs the corrected task", "Give the task file: --task FILE.")
    kept = replace(new, base=old.base)
    frozen = ("task_id", "page", "agents", "run", "budget", "commands")
    changed = [name for name in frozen if getattr(kept, name) != getattr(old, name)]
    if changed:
        raise QuestionError(
            "RUN644", f"the correction changes {', '.join(f'`{name}`' for name in changed)}, which the run froze",
            "Leave it as it was, or abandon the run and start a new one.",
        )  # fmt: skip
    fresh = [gate for gate in kept.gates_required if gate not in old.gates_required]
    sealed = [gate for gate in fresh if policy.protocol.gate(gate).command]
    if sealed:
        raise QuestionError(
            "RUN644", f"the run did not freeze what {', '.join(sealed)} would run",
            "Leave the gate out, or abandon the run and start a new one.",
        )  # fmt: skip
    check_task(kept, policy.protocol, root)
    if kept == old:
        raise QuestionError("RUN644", "the correction changes nothing", "Change the task, or refuse or accept.")
    return kept
