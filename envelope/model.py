"""The model: what an envelope says, where in the text it says it, and its canonical text."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from interlock.envelope.protocol import EVIDENCE_KEYS, LABELS

OR_NONE: Final = ("FAIL_REASONS", "NEXT_ACTIONS")
"""The lists that say `NONE` when they are empty."""
LISTS: Final = ("INPUTS_USED", "GATES_REQUIRED", "GATES_PASSED", *OR_NONE)


@dataclass(frozen=True, slots=True)
class Envelope:
    """The twelve fields of one well-formed response (Strict Envelope §2).

    The values are as written: a well-formed envelope may still hold an unknown status. `validate` judges that. Each
    field has the value of its label; lists are empty for NONE, `evidence` has the four keys in their order, `output`
    its lines without blank lines around them.
    """

    status: str
    task_id: str
    task: str
    assigned_agent: str
    reports_to: str
    inputs_used: tuple[str, ...]
    gates_required: tuple[str, ...]
    gates_passed: tuple[str, ...]
    evidence: Mapping[str, tuple[str, ...]]
    fail_reasons: tuple[str, ...]
    output: str
    next_actions: tuple[str, ...]


class Item(NamedTuple):
    """One value in the text and its place.

    Args:
        text: The value, without bullet, number or blanks around it.
        line: 1-based line of the text as given; 0 for one that a fix adds.
        column: 1-based column of its first character, in code points.
        number: The number before a step, such as `3.`; empty for any other value.
    """

    text: str
    line: int = 0
    column: int = 0
    number: str = ""


class FieldText(NamedTuple):
    """One field and its place in the text.

    Args:
        label: `STATUS`, or `EVIDENCE.a11y` for one key of EVIDENCE.
        line: 1-based line of its label.
        end_line: 1-based last line that belongs to it; blank lines after it do not.
        items: Its values: one for a single value, one for each list item, one for each line of OUTPUT. `NONE` is no
            value of FAIL_REASONS and NEXT_ACTIONS.
        value_column: 1-based column on the label's line where a value is or would be.
    """

    label: str
    line: int
    end_line: int
    items: tuple[Item, ...]
    value_column: int

    @property
    def texts(self) -> tuple[str, ...]:
        """The values alone."""
        return tuple(item.text for item in self.items)


def render(envelope: Envelope) -> str:
    """Return the canonical text of an envelope: what is valid stays valid, and reads back as the same envelope.

    Values are written as they are; nothing is escaped or quoted.

    Returns:
        Text with LF line ends and a final newline.
    """
    values: dict[str, Sequence[str]] = {f"EVIDENCE.{key}": texts for key, texts in envelope.evidence.items()}
    for label in LABELS:
        value = getattr(envelope, label.lower())
        # EVIDENCE is written key by key, from the entries above; its own value here is not looked at.
        values[label] = (value,) if isinstance(value, str) else value
    return "\n".join(line for label in LABELS for line in field_lines(label, values)) + "\n"


def field_lines(label: str, values: Mapping[str, Sequence[str]], indent: str = "") -> list[str]:
    """Return the canonical lines of one field.

    Args:
        label: One of the twelve.
        values: The values by label and by `EVIDENCE.key`; a label that is missing has none.
        indent: Blanks before the items of a list.
    """
    texts = values.get(label, ())
    if label == "EVIDENCE":
        lines = ["EVIDENCE:"]
        for key in EVIDENCE_KEYS:
            lines += _list(f"  {key}:", values.get(f"EVIDENCE.{key}", ()), "    ")
        return lines
    if label == "OUTPUT":
        return ["OUTPUT:", *texts]
    if label == "NEXT_ACTIONS" and texts:
        return ["NEXT_ACTIONS:", *(f"{number}. {step}" for number, step in enumerate(texts, 1))]
    if label in LISTS:
        return _list(f"{label}:", texts, indent, "NONE" if label in OR_NONE else "[]")
    # A no-break space at the end is part of the value.
    return [f"{label}: {texts[0] if texts else ''}".rstrip(" \t")]


def _list(head: str, items: Iterable[str], indent: str = "", nothing: str = "[]") -> list[str]:
    bullets = [f"{indent}- {item}" for item in items]
    return [head, *bullets] if bullets else [f"{head} {nothing}"]
