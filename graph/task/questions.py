"""What a run asks a person, and how it may be answered: an objection, and whether to waive a gate for one tree.

A question has a number in its run. Its answer is a line of the journal under the key of that number, which
`runs.answer_question` writes while nobody drives the run; the node that asked goes on with what the line says. The
first answer stays, as any line under a key does.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias

QuestionKind: TypeAlias = Literal["objection", "waiver"]
AnswerKind: TypeAlias = Literal["correct", "refuse", "accept", "waive", "decline"]

WAYS: Final[Mapping[QuestionKind, tuple[AnswerKind, ...]]] = {
    "objection": ("correct", "refuse", "accept"),
    "waiver": ("waive", "decline"),
}
"""How each kind of question may be answered."""

ANSWERS: Final[Mapping[AnswerKind, str]] = {
    "correct": "objection_answered",
    "refuse": "objection_answered",
    "accept": "objection_answered",
    "waive": "waiver",
    "decline": "waiver_declined",
}
"""The types of the journal lines that are a person's answer."""

MAX_CHARS: Final = 1000
"""How long each text of a person may be: a reason, a comment."""


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
        """Return a question from what a node asks."""
        values: dict[str, Any] = {**row, "reasons": tuple(row["reasons"])}
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "gates": dict(self.gates), "reasons": list(self.reasons)}


def decision_key(number: int) -> str:
    """Return the key of the journal line that answers a question."""
    return f"question.{number}/answered"
