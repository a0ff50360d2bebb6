"""The re-ask: the one message that tells an agent how to fix a refused response in one turn."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from interlock.envelope.protocol import EVIDENCE_KEYS, LABELS

if TYPE_CHECKING:
    from interlock.core.finding import Finding

MAX_FINDINGS_BYTES: Final = 8000
"""The most bytes of UTF-8 that the findings of one re-ask take; the first is listed whatever its size."""
_MAX_LINE: Final = 400

_SHAPES: Final = {
    "STATUS": " <status>",
    "TASK_ID": " <task id>",
    "TASK": " <one line>",
    "ASSIGNED_AGENT": " <your role>",
    "REPORTS_TO": " orchestrator",
    "INPUTS_USED": "\n- <path>",
    "GATES_REQUIRED": "\n- <gate id>",
    "GATES_PASSED": "\n- <gate id>",
    "EVIDENCE": "".join(f"\n  {key}: []" for key in EVIDENCE_KEYS),
    "FAIL_REASONS": " NONE",
    "OUTPUT": "\n<text>",
    "NEXT_ACTIONS": "\n1. <step>",
}


def skeleton() -> str:
    """Return the bare layout of an envelope."""
    return "\n".join(f"{label}:{_SHAPES[label]}" for label in LABELS)


def reask(findings: "Iterable[Finding]") -> str:
    """Return the text that asks an agent again, or nothing when no finding is an error. Only errors are listed.

    Returns:
        A bounded message. It holds text of the agent only escaped and cut, or as the line that a fix restates.
    """
    errors = [finding for finding in findings if finding.level == "error"]
    if not errors:
        return ""
    entries: list[str] = []
    size = 0
    for number, finding in enumerate(errors, 1):
        entry = _entry(number, finding)
        # A finding may quote half a pair, which has no UTF-8.
        entry_size = len(entry.encode(errors="surrogatepass"))
        if entries and size + entry_size > MAX_FINDINGS_BYTES:
            break
        entries.append(entry)
        size += entry_size
    left = len(errors) - len(entries)
    count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
    parts = [
        "Your response was refused. Nothing moved: the task is where it was before.",
        f"It has {count}. Lines are counted from 1 in your response as you sent it.",
        "",
        *entries,
    ]
    if left:
        parts.append(f"\n{left} more are left out here. Fix these first; the rest follows if it is still there.")
    parts.append(
        "\nMake all of these changes together, in the numbering of the response as you sent it; make an edit once "
        "when it is stated twice. Put your own words in place of each `<…>`. If a fix does not say what is true, "
        "fix the finding in another way that is.\n"
        "Answer with the complete corrected envelope and nothing else: it begins with `STATUS:` and ends with the last "
        "item of NEXT_ACTIONS, without a heading, a code fence or a word around it."
    )
    if any(finding.code.startswith("ENV2") for finding in errors):
        parts.append(f"\nThe layout, label by label:\n\n{skeleton()}")
    return "\n".join(parts) + "\n"


def _entry(number: int, finding: "Finding") -> str:
    where = f"line {finding.line}" if finding.line else "the whole response"
    field = f" {finding.field}" if finding.field else ""
    rows = [
        f"{number}. {finding.code}{field}, {where}: {_cut(finding.message)}",
        f"   Found: {_cut(finding.found)}",
        f"   Expected: {_cut(finding.expected)}",
        f"   Fix: {finding.fix}",
    ]
    return "\n".join(rows)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_LINE else f"{text[: _MAX_LINE - 1]}…"
