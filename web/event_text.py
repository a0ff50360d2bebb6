"""One sentence for each journal line: the log of a run as people read it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interlock.core.text import few, shown
from interlock.journal import Entry

_OUTCOMES: Final[Mapping[str, str]] = {
    "handover": "hands over",
    "progress": "reports progress",
    "pass": "PASS",
    "fail": "FAIL",
    "blocked": "is blocked",
    "objection": "objects",
    "invalid": "is refused",
    "stale": "is void: files changed",
    "spent": "has no budget left",
}
_FIELDS: Final[Mapping[str, str]] = {"task": "task text", "gates_required": "gates"}
"""Names of what a correction changed, where they are not those of the task file."""


@dataclass(frozen=True, slots=True)
class Said:
    """A line of the log: when, what, and whether it is `good`, `bad`, `odd` or plain (empty)."""

    at: str
    text: str
    look: str = ""


def _status(data: Mapping[str, Any]) -> tuple[str, str]:
    envelope: Mapping[str, Any] = data.get("envelope") or {}
    why = "".join(f"\n- {reason}" for reason in envelope.get("fail_reasons") or ())
    look = {"APPROVED": "good", "BLOCKED": "bad"}.get(data["to"], "")
    return f"{data['to']} by {data['by']}, attempt {data['attempt']}{why}", look


def _answer(data: Mapping[str, Any]) -> tuple[str, str]:
    outcome = data["outcome"]
    codes = ", ".join(dict.fromkeys(row["code"] for row in data.get("findings", ()) if row["level"] == "error"))
    text = f"{data['role']} {_OUTCOMES.get(outcome, outcome)}" + (f" ({codes})" if codes else "")
    return text, "good" if outcome in ("pass", "handover", "progress") else "bad" if outcome == "fail" else "odd"


def _evidence(data: Mapping[str, Any]) -> tuple[str, str]:
    rows = "".join(f"\n- {row['message']}" for row in data.get("findings", ()))
    state = "clean" if data["ok"] else "not met"
    return f"evidence for {data['gate']}: {len(data['files'])} files, {state}{rows}", "" if data["ok"] else "bad"


def _objection_answered(data: Mapping[str, Any]) -> tuple[str, str]:
    gates = ", ".join(data.get("gates", ()))
    changed = ", ".join(_FIELDS.get(name) or str(name) for name in data.get("changed", ()))
    does = {
        "accept": f"accepts the objection to {gates}",
        "refuse": f"refuses the objection to {gates}",
        "correct": "corrects the task" + (f" ({changed})" if changed else ""),
    }.get(data["answer"], f"answers the objection: {data['answer']}")
    return f"{data['by']} {does}" + (f": {data['reason']}" if data.get("reason") else ""), "odd"


_LINES: Final[Mapping[str, Callable[[Mapping[str, Any]], tuple[str, str]]]] = {
    "run_started": lambda _data: ("the run begins", ""),
    "status": _status,
    "put_back": lambda data: (f"put back as in the base: {few(data['paths'])}", "odd"),
    "answer": _answer,
    "evidence": _evidence,
    "abandoned": lambda _data: ("abandoned", "bad"),
    "waiver": lambda data: (f"{data['gate']} waived by {data['by']}: {data['reason']}", "odd"),
    "waiver_declined": lambda data: (f"{data['by']} declines to waive {data['gate']}: {data['reason']}", "odd"),
    "objection_answered": _objection_answered,
    "comment": lambda data: (f"{data['by']} comments on {data['path']}:{data['line']}: {data['text']}", ""),
    "policy_changed": lambda _data: ("the policy of the project is not that of this run any more", "odd"),
    "lease_taken_over": lambda data: (f"{data['by']} took over its files `{data['pattern']}`", "bad"),
    "lease_forced": lambda data: (f"{data['by']} was given its files `{data['pattern']}`, whose time ran out", "bad"),
    "lease_expired": lambda data: (f"its reservation of `{data['pattern']}` ended", "odd"),
    "runner_failed": lambda data: (f"the agent of {data['role']} gave no answer", "bad"),
}


def said(entry: Entry) -> Said:
    """Return a journal line in words; one of a type that this version does not know by its type."""
    words = _LINES.get(entry.type)
    try:
        # A later version may have written the line: the log shows it, whatever its form.
        text, look = (entry.type, "") if words is None else words(entry.data)
    except (LookupError, TypeError):
        text, look = f"{entry.type}: a line of another form", "odd"
    return Said(entry.at, "\n".join(shown(line) for line in text.split("\n")), look)
