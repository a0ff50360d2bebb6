"""What a run asks a person, and the answers: to an objection, and whether to waive a gate for the handed-over tree.

A question has a number in its run. Its answer is kept in the run's folder under that number before the graph goes on;
the first one stays. The journal line that follows holds its digest, so that an answer which is edited later is noticed.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from interlock.core.rule import rules
from interlock.envelope.protocol import Protocol
from interlock.graph.errors import GraphError, RunAbandonedError, RunDamagedError
from interlock.graph.task.policy import Policy, key_variables
from interlock.graph.task.preflight import check_task
from interlock.graph.task.store import RunStore, decision_key
from interlock.graph.task.task import Task
from interlock.redaction import redactor_for

QuestionKind: TypeAlias = Literal["objection", "waiver"]
AnswerKind: TypeAlias = Literal["correct", "refuse", "accept", "waive", "decline"]

WAYS: Final[Mapping[QuestionKind, tuple[AnswerKind, ...]]] = {
    "objection": ("correct", "refuse", "accept"),
    "waiver": ("waive", "decline"),
}
"""How each kind of question may be answered."""

ANSWERS: Final = frozenset({"objection_answered", "waiver", "waiver_declined"})
"""The types of the journal lines that hold a person's answer."""

MAX_REASON_CHARS: Final = 1000


CODES: Final = rules({
    "RUN640": ("A run is answered that asks a person for a decision.",
               "`interlock explain RUN` says what the run waits for."),
    "RUN641": ("A question is answered once; the first answer stays.",
               "Read what was answered; the run has gone on with it."),
    "RUN642": ("An objection is answered by correct, refuse or accept; a waiver by waive or decline, for its gate.",
               "Answer in one of the ways that `interlock answer RUN` names."),
    "RUN643": ("Who refuses, waives or declines says why.", "Give the reason: --reason WHY."),
    "RUN644": ("A correction keeps what the run froze: the task's id, page, agents and commands, and sealed gates.",
               "Leave that as it was, or abandon the run and start a new one."),
    "RUN646": ("An approval names every gate that its task requires, but for those that a person waived for its tree.",
               "Restore artifacts/interlock/events.jsonl from a copy: Interlock approved no such run."),
})  # fmt: skip
"""Why an answer is not taken, and what `verify` holds approvals against."""


class QuestionError(GraphError):
    """An answer to a question of a run is not taken; nothing was changed. Its code is one of `CODES`."""

    def __init__(self, code: str, message: str, fix: str) -> None:
        super().__init__(message, fix, code)


@dataclass(frozen=True, slots=True)
class Question:
    """What a run waits for a person to decide.

    Args:
        number: Its number in the run, from 1.
        kind: An objection of an agent, or whether to waive a gate.
        role: Who objected; empty for a waiver.
        gates: The gates that are meant, each with the reason of the objection.
        tree: Digest of the scope; for a waiver, of what was handed over.
        attempt: The round of work.
        reasons: What was said besides: the other reasons of the answer, or what the judges said of the gate.
    """

    number: int
    kind: QuestionKind
    role: str
    gates: Mapping[str, str]
    tree: str
    attempt: int
    reasons: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Question":
        """Return a question that `to_json` made."""
        values: dict[str, Any] = {**row, "reasons": tuple(row["reasons"])}
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "gates": dict(self.gates), "reasons": list(self.reasons)}


@dataclass(frozen=True, slots=True)
class PersonsAnswer:
    """An answer as it is kept: `by` is a login name, `at` in UTC, `task` the corrected task as JSON or None."""

    kind: AnswerKind
    gate: str
    reason: str
    by: str
    at: str
    task: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The bytes that count, as text."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def sha256(self) -> str:
        """The digest that the journal line has."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def kept_to(store: RunStore, number: int) -> PersonsAnswer | None:
    """Return the answer that is kept to a question; None when there is none.

    Raises:
        RunDamagedError: What is kept is no answer.
    """
    row = store.decision(number)
    if row is None:
        return None
    try:
        return PersonsAnswer(**row)
    except TypeError as error:
        raise store.damaged(f"answers/question.{number}.txt", "it is no answer of a person") from error


def answer_question(
    root: Path,
    run_id: str,
    kind: AnswerKind,
    *,
    by: str,
    reason: str = "",
    gate: str = "",
    task: Task | None = None,
    number: int | None = None,
) -> Question:
    """Answer what a run asks a person; `drive` then takes the run on. The first answer stays.

    Args:
        root: The project's root.
        run_id: The run.
        kind: How; see `WAYS`.
        by: The login name of who answers.
        reason: Why; needed but for `correct` and `accept`.
        gate: The gate that is waived; it may be left out, since a question about a waiver is about one gate.
        task: The corrected task, for `correct`.
        number: The number of the question that was read; an answer to another one is not taken.

    Returns:
        The question that was answered.

    Raises:
        QuestionError: The answer is not taken.
        TaskError: The corrected task cannot start.
        UnknownRunError, RunDamagedError: See `graph.errors`.
    """
    from interlock.graph.task.runs import view_run  # noqa: PLC0415 - that module reads the answers kept here

    store = RunStore(root, run_id)
    view = view_run(run_id, root=root)
    if view.abandoned:
        raise RunAbandonedError(run_id)
    question = view.question
    if number is not None and (before := kept_to(store, number)) is not None:
        raise _answered(run_id, before)
    if question is None or number not in (None, question.number):
        raise QuestionError(
            "RUN640",
            f"run {run_id} asks no person for a decision",
            f"`interlock explain {run_id}` says what it waits for.",
        )
    if kind not in WAYS[question.kind]:
        ways = " or ".join(WAYS[question.kind])
        raise QuestionError("RUN642", f"`{kind}` is no answer to this {question.kind}", f"Answer {ways}.")
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
    if store.keep_first(decision_key(question.number), given.text) != given.text:
        other = kept_to(store, question.number)
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
    sealed = [gate for gate in fresh if _runs_a_command(policy.protocol, gate)]
    if sealed:
        raise QuestionError(
            "RUN644", f"the run did not freeze what {', '.join(sealed)} would run",
            "Leave the gate out, or abandon the run and start a new one.",
        )  # fmt: skip
    check_task(kept, policy.protocol, root)
    if kept == old:
        raise QuestionError("RUN644", "the correction changes nothing", "Change the task, or refuse or accept.")
    return kept


def _runs_a_command(protocol: Protocol, gate: str) -> bool:
    return bool(protocol.gate(gate).command)


def taken(store: RunStore, question: Question, text: object) -> PersonsAnswer:
    """Return the answer that resumes a question, as the node takes it.

    Raises:
        RunDamagedError: It is not the one that is kept, or none to this question.
    """
    kept = kept_to(store, question.number)
    given = text.decode() if isinstance(text, bytes) else str(text)
    if kept is None or kept.text != given or kept.kind not in WAYS[question.kind]:
        raise RunDamagedError(
            f"the answer to question {question.number} of {store.run_id} is not what was kept",
            "Answer with `interlock answer`; nothing else takes such a run on.",
        )
    return kept
