"""The model: what an envelope says, where in the text it says it, and its canonical text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from interlock.envelope.protocol import EVIDENCE_KEYS


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
        line: 1-based line of the text as given.
        column: 1-based column of its first character, in code points.
        end: 1-based column after its last character.
        marker: The bullet or number before it (`-`, `3.`); empty for a value on the label's line.
        start: 1-based column of the marker, or of the value when there is none.
    """

    text: str
    line: int
    column: int
    end: int
    marker: str = ""
    start: int = 0


class FieldText(NamedTuple):
    """One field and its place in the text.

    Args:
        label: `STATUS`, or `EVIDENCE.a11y` for one key of EVIDENCE.
        line: 1-based line of its label.
        end_line: 1-based last line that belongs to it; blank lines after it do not.
        items: Its values: one for a single value, one for each list item, one for each line of OUTPUT.
            `NONE` in FAIL_REASONS and NEXT_ACTIONS is an item like any other.
        value_column: 1-based column on the label's line where a value is or would be.
        value_end: 1-based column after the value on the label's line; equal to `value_column` when there is none.
        inline: Whether the values are in brackets on the label's line.
    """

    label: str
    line: int
    end_line: int
    items: tuple[Item, ...]
    value_column: int
    value_end: int
    inline: bool = False

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
    lines = [
        f"STATUS: {envelope.status}",
        f"TASK_ID: {envelope.task_id}",
        f"TASK: {envelope.task}",
        f"ASSIGNED_AGENT: {envelope.assigned_agent}",
        f"REPORTS_TO: {envelope.reports_to}",
        *_list("INPUTS_USED:", envelope.inputs_used),
        *_list("GATES_REQUIRED:", envelope.gates_required),
        *_list("GATES_PASSED:", envelope.gates_passed),
        "EVIDENCE:",
    ]
    for key in EVIDENCE_KEYS:
        lines += _list(f"  {key}:", envelope.evidence.get(key, ()), "    ")
    lines += _list("FAIL_REASONS:", envelope.fail_reasons) if envelope.fail_reasons else ["FAIL_REASONS: NONE"]
    lines += ["OUTPUT:", envelope.output]
    steps = [f"{number}. {step}" for number, step in enumerate(envelope.next_actions, 1)]
    lines += ["NEXT_ACTIONS:", *steps] if steps else ["NEXT_ACTIONS: NONE"]
    return "\n".join(lines) + "\n"


def _list(label: str, items: Iterable[str], indent: str = "") -> list[str]:
    bullets = [f"{indent}- {item}" for item in items]
    return [label, *bullets] if bullets else [f"{label} []"]
