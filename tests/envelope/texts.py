"""Envelopes for tests: three that are valid, and a way to change one field of them."""

from typing import Any

from interlock.envelope import MAX_BYTES, Case, Report, validate
from interlock.envelope.protocol import LABELS

BUILD = """\
STATUS: READY_FOR_QA
TASK_ID: HOME-UI-001
TASK: Implement the home page
ASSIGNED_AGENT: frontend-implementer
REPORTS_TO: orchestrator
INPUTS_USED:
  - docs/wireframes.md
  - docs/tokens.md (section 2)
GATES_REQUIRED:
  - GATE-MSG-STRICT
  - GATE-VISUAL-QA
  - GATE-A11Y-BASELINE
  - GATE-CODE-REVIEW
GATES_PASSED:
  - GATE-MSG-STRICT
EVIDENCE:
  screenshots: []
  a11y: []
  console: []
  reports: []
FAIL_REASONS: NONE
OUTPUT:
## Summary

The page is built: hero, cards and footer.

```tsx
export const Hero = () => <h1>Hello</h1>;
```
NEXT_ACTIONS:
1. orchestrator to invoke visual-qa
2. orchestrator to invoke a11y-auditor
"""
QA = """\
STATUS: QA_IN_PROGRESS
TASK_ID: HOME-UI-001
TASK: Look at the home page at three widths
ASSIGNED_AGENT: visual-qa
REPORTS_TO: orchestrator
INPUTS_USED: [docs/wireframes.md]
GATES_REQUIRED: [GATE-MSG-STRICT, GATE-VISUAL-QA]
GATES_PASSED: [GATE-MSG-STRICT, GATE-VISUAL-QA]
EVIDENCE:
screenshots: [artifacts/screenshots/home-375.png, artifacts/screenshots/home-1280.png]
a11y: []
console: [artifacts/console/home.jsonl]
reports: []
FAIL_REASONS: NONE
OUTPUT: Nothing overlaps and the console is clean.
NEXT_ACTIONS:
1. orchestrator to read the verdict
"""
APPROVAL = """\
STATUS: APPROVED
TASK_ID: HOME-UI-001
TASK: Approve the home page
ASSIGNED_AGENT: orchestrator
REPORTS_TO: orchestrator

INPUTS_USED:
GATES_REQUIRED:
- GATE-MSG-STRICT
- GATE-CODE-REVIEW
GATES_PASSED:
- GATE-MSG-STRICT
- GATE-CODE-REVIEW

EVIDENCE:
  screenshots: []
  a11y: []
  console: []
  reports:
    - artifacts/reports/review.md
FAIL_REASONS:
- NONE
OUTPUT:
Every gate passed and every digest was checked again.
NEXT_ACTIONS: NONE
"""
IN_PROGRESS: dict[str, Any] = {"current_status": "IN_PROGRESS"}
IN_QA: dict[str, Any] = {"current_status": "QA_IN_PROGRESS"}
IN_REVIEW: dict[str, Any] = {"current_status": "READY_FOR_REVIEW"}


def blocks(text: str) -> dict[str, str]:
    """Split an envelope into its fields, each with its label and its final newline."""
    found: dict[str, str] = {}
    label = ""
    for line in text.removesuffix("\n").split("\n"):
        word = line.split(":")[0]
        label = word if word in LABELS else label
        found[label] = found.get(label, "") + line + "\n"
    return found


def change(text: str, **fields: str | None) -> str:
    """Put other lines in place of whole fields; None takes a field out."""
    parts: dict[str, str | None] = {**blocks(text), **fields}
    return "".join(part if part.endswith("\n") else f"{part}\n" for part in parts.values() if part is not None)


NO_EVIDENCE = "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: []\n  reports: []"
FAIL = change(
    QA,
    STATUS="STATUS: BLOCKED",
    GATES_PASSED="GATES_PASSED: [GATE-MSG-STRICT]",
    FAIL_REASONS="FAIL_REASONS:\n- GATE-VISUAL-QA: the menu covers the title",
)


def check(text: str | bytes, *, extract: bool = False, max_bytes: int = MAX_BYTES, **context: Any) -> Report:
    """Validate a text in a situation: `context` has the arguments of `Case`."""
    return validate(text, Case(**context), extract=extract, max_bytes=max_bytes)


def codes(report: Report) -> set[str]:
    """Return the codes of all that is found."""
    return {finding.code for finding in report.findings}


def reorder(text: str, *labels: str) -> str:
    """Put some fields first, in the order given."""
    parts = blocks(text)
    return "".join(parts.pop(label) for label in labels) + "".join(parts.values())
