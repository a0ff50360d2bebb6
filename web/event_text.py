"""One sentence for each journal line, and for each notice of a turn: the log of a run as people read it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interlock.core.text import few, shown
from interlock.journal import Entry

_OUTCOMES: Final[Mapping[str, str]] = {
    "handover": "hands over", "progress": "reports progress", "pass": "PASS", "fail": "FAIL", "blocked": "is blocked",
    "objection": "objects", "invalid": "is refused", "stale": "is void: files changed", "spent": "has no budget left",
}  # fmt: skip
_FIELDS: Final[Mapping[str, str]] = {"task": "task text", "gates_required": "gates"}
"""Names of what a correction changed, where they are not those of the task file."""


@dataclass(frozen=True, slots=True)
class Said:
    """A line of the log: when, what, and whether it is `good`, `bad`, `odd` or plain (empty)."""

    at: str
    text: str
    look: str = ""

    def to_json(self) -> dict[str, str]:
        """Return it as JSON values."""
        return {"at": self.at, "text": self.text, "look": self.look}


def _status(data: Mapping[str, Any]) -> tuple[str, str]:
    envelope: Mapping[str, Any] = data.get("envelope") or {}
    why = "".join(f"\n- {reason}" for reason in envelope.get("fail_reasons") or ())
    why += f"\n- put back as in the base: {few(data['put_back'])}" if data.get("put_back") else ""
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
        "accept": f"accepts the objection to {gates}", "refuse": f"refuses the objection to {gates}",
        "correct": "corrects the task" + (f" ({changed})" if changed else ""),
    }.get(data["answer"], f"answers the objection: {data['answer']}")  # fmt: skip
    return f"{data['by']} {does}" + (f": {data['reason']}" if data.get("reason") else ""), "odd"


def _asking(data: Mapping[str, Any]) -> tuple[str, str]:
    return f"asking {data['role']}" + (f" again, re-ask {data['reask']}" if data.get("reask") else ""), ""


def _working(data: Mapping[str, Any]) -> tuple[str, str]:
    return f"{data['role']}: {data.get('tool') or 'thinking'}, {data.get('tokens') or 0} tokens", ""


_LINES: Final[Mapping[str, Callable[[Mapping[str, Any]], tuple[str, str]]]] = {
    "run_started": lambda _data: ("the run begins", ""),
    "status": _status,
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
_NOTICES: Final[Mapping[str, Callable[[Mapping[str, Any]], tuple[str, str]]]] = {
    "asking": _asking,
    "working": _working,
    "collecting": lambda data: (f"collecting evidence for {data['gate']}", ""),
    "gate": lambda data: (f"{data['gate']}: {data['line']}", ""),
    "queued": lambda data: (f"waits for files that others hold, {data['waited_seconds']} s", "odd"),
    "unqueued": lambda _data: ("its files are free", ""),
    "scope_lost": lambda _data: ("others hold files of the task now", "bad"),
}


def said(entry: Entry) -> Said:
    """Return a journal line in words; one of a type that this version does not know by its type."""
    return _said(entry.at, entry.type, _LINES.get(entry.type), entry.data)


def noticed(notice: Mapping[str, Any]) -> Said | None:
    """Return a notice in words; None for one that the journal has as well."""
    words = _NOTICES.get(str(notice.get("kind")))
    return None if words is None else _said(str(notice.get("at", "")), "notice", words, notice)


def _said(
    at: str, kind: str, words: Callable[[Mapping[str, Any]], tuple[str, str]] | None, data: Mapping[str, Any]
) -> Said:
    try:
        text, look = (kind, "") if words is None else words(data)
    except (LookupError, TypeError):
        text, look = f"{kind}: a line of another form", "odd"
    return Said(at, "\n".join(shown(line) for line in text.split("\n")), look)
