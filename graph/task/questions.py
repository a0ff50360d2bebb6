"""What a run asks a person, and the answers: to an objection, and whether to waive a gate for the handed-over tree.

A question has a number in its run, and a key that nobody knows before it is asked: a file that was laid out earlier is
never read as its answer. The answer is kept in the run's folder under that key before the graph goes on; the first one
stays. The journal line that follows holds its digest, so that an answer which is edited later is noticed.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias

from interlock.core.rule import rules
from interlock.graph.errors import GraphError, RunDamagedError
from interlock.graph.task.store import RunStore
from interlock.journal import Entry

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
               "`interlock answer RUN` shows what the run asks, and the number of the question."),
    "RUN641": ("A question is answered once; the first answer stays.",
               "Read what was answered; the run has gone on with it."),
    "RUN642": ("An objection is answered by correct, refuse or accept; a waiver by waive or decline, for its gate.",
               "Answer in one of the ways that `interlock answer RUN` names."),
    "RUN643": ("Who refuses, waives or declines says why.", "Give the reason: --reason WHY."),
    "RUN644": ("A correction keeps what the run froze: the task's id, page, agents and commands, and sealed gates.",
               "Leave that as it was, or abandon the run and start a new one."),
    "RUN646": ("An approval rests on the lines before it: each gate is passed by its certifier, or waived by a person.",
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
        key: Under what the answer is kept.
    """

    number: int
    kind: QuestionKind
    role: str
    gates: Mapping[str, str]
    tree: str
    attempt: int
    reasons: tuple[str, ...] = ()
    key: str = ""

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Question":
        """Return a question from what a node asks."""
        values: dict[str, Any] = {**row, "reasons": tuple(row["reasons"])}
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values for readers, without its key."""
        values = {**asdict(self), "gates": dict(self.gates), "reasons": list(self.reasons)}
        del values["key"]
        return values


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


def kept_as(store: RunStore, key: str) -> PersonsAnswer | None:
    """Return the answer that is kept under the key of a question; None when there is none.

    Raises:
        RunDamagedError: What is kept is not an answer.
    """
    text = store.answer(key)
    if text is None:
        return None
    try:
        return PersonsAnswer(**json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise store.damaged(f"answers/{key}.txt", "it is not an answer of a person") from error


NO_ANSWER: Final = "the journal knows no such answer of a person"
"""Why a run does not go on beside a file of `unknown_answers`."""


def unknown_answers(store: RunStore, entries: Iterable[Entry], open_keys: Collection[str]) -> list[str]:
    """Return the keys of answers of a person that are not as the journal's lines of the run say; see `NO_ANSWER`."""
    known = {str(entry.data["key"]): entry.data["answer_sha256"] for entry in entries if entry.type in ANSWERS}
    there = {key: store.answer(key) or "" for key in {*known, *(key for _, key in store.decisions())} - {*open_keys}}
    return [key for key, text in sorted(there.items()) if hashlib.sha256(text.encode()).hexdigest() != known.get(key)]


def taken(store: RunStore, question: Question, text: object) -> PersonsAnswer:
    """Return the answer that resumes a question, as the node takes it.

    Raises:
        RunDamagedError: It is not the one that is kept, or none to this question.
    """
    kept = kept_as(store, question.key)
    given = text.decode() if isinstance(text, bytes) else str(text)
    if kept is None or kept.text != given or kept.kind not in WAYS[question.kind]:
        raise RunDamagedError(
            f"the answer to question {question.number} of {store.run_id} is not what was kept",
            "Answer with `interlock answer`; nothing else takes such a run on.",
        )
    return kept
