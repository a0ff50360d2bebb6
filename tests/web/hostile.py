"""Texts that try to become markup, code, style or another address, and projects whose every field is one of them."""

import hashlib
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, Final

from interlock.core.text import one_line
from interlock.graph import journal_path
from interlock.journal import Journal

_PARTS: Final = json.loads((Path(__file__).resolve().parent.parent / "fixtures/hostile.json").read_bytes())

STRINGS: Final = tuple(
    dict.fromkeys(
        (
            *(f"<{tag} src=x href=javascript:alert(1) onload=alert(1) onerror=alert(1)>" for tag in _PARTS["tags"]),
            *(f"</{tag}>" for tag in _PARTS["tags"]),
            *(f'" on{event}="alert(1)" x="' for event in _PARTS["events"]),
            *(f"<b on{event}=alert(1) autofocus tabindex=1>" for event in _PARTS["events"]),
            *(f"' on{event}=alert`1` x='" for event in _PARTS["events"][::2]),
            *(place.format(url) for url, place in product(_PARTS["urls"], _PARTS["places"])),
            *_PARTS["templates"],
            *_PARTS["styles"],
            *_PARTS["ends"],
            *(f"<scr{char}ipt>{char}alert(1)" for char in _PARTS["hidden"]),
        )
    )
)
LONG: Final = ("<b>" * 3000, '"' * 9000, "A" * 12000, "&lt;" * 2500, "\u202e" * 2000, "<svg>" * 2000, "{{" * 4000)
"""Some that are long as well; each is as many bytes as a line of the journal takes several times."""

_KEPT: Final = frozenset(" \n\r/:-.,0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def harmless(text: str) -> str:
    """Return a text of the same form in which no character means anything to a browser."""
    return "".join(char if char in _KEPT else "x" for char in text)


class Texts:
    """Gives one field after another its text, each different from all others by its end.

    Args:
        texts: What the fields hold, in turn.
        change: Applied to each.
    """

    def __init__(self, texts: tuple[str, ...], change: Callable[[str], str] = str) -> None:
        self._texts = texts
        self._change = change
        self.given = 0

    def __call__(self) -> str:
        """Return the next text."""
        text = self._texts[self.given % len(self._texts)]
        self.given += 1
        return self._change(f"{text} {self.given}")

    def name(self) -> str:
        """Return the next one as a name: on one line, without a slash."""
        return one_line(self().replace("/", "|"))[-400:]


def write_run(root: Path, run: str, text: Texts, *, closed: bool = True) -> None:
    """Write a run's journal lines and evidence, every text of which is hostile.

    Args:
        root: The project.
        run: The name of the run.
        text: Gives the texts.
        closed: Whether words that only Interlock writes, such as statuses, are what they always are.
    """

    def word(usual: str) -> str:
        return usual if closed else text.name()

    gates = [text(), text(), "GATE-TESTS"]
    envelope = {
        "status": "BLOCKED",
        "fail_reasons": [f"{gates[0]}: {text()}", text()],
        "gates_passed": [gates[1]],
        "output": text(),
        "task": text(),
        "inputs_used": [text()],
        "next_actions": [text()],
    }
    task = {
        "task_id": text(),
        "task": text(),
        "gates_required": gates,
        "scope": [text()],
        "inputs": [text()],
        "page": text(),
    }

    def answer(role: str, attempt: int, reask: int, outcome: str) -> dict[str, Any]:
        findings = [
            {
                "code": text(),
                "level": word(level),
                "field": text(),
                "line": line,
                "message": text(),
                "found": text(),
                "expected": text(),
                "fix": text(),
            }
            for level, line in (("error", 1), ("warning", None), ("error", 900))
        ]
        return {
            "role": role,
            "attempt": attempt,
            "reask": reask,
            "outcome": word(outcome),
            "findings": findings,
            "model": text(),
            "tree": text(),
            "response_sha256": text(),
            "envelope": envelope,
            "evidence": [],
            "usage": {"seconds": 2.5, "input_tokens": 10, "output_tokens": 20, "usd": 0.5},
        }

    def evidence(attempt: int, gate: str, ok: bool) -> dict[str, Any]:
        return {
            "role": text(),
            "attempt": attempt,
            "gate": gate,
            "ok": ok,
            "tree": text(),
            "manifest": text(),
            "files": files(root, text),
            "findings": [{"code": text(), "level": word("error"), "message": text()}],
        }

    roles = [text.name(), text.name()]

    def status(to: str, by: str, attempt: int) -> tuple[str, dict[str, Any]]:
        data = {"to": word(to), "by": by, "attempt": attempt, "cause": text(), "tree": text(), "envelope": envelope}
        return "status", data

    lines: list[tuple[str, dict[str, Any]]] = [
        ("run_started", {"task": task, "roster": [text()]}),
        status("IN_PROGRESS", roles[0], 1),
        ("answer", answer(roles[0], 1, 0, "invalid")),
        ("answer", answer(roles[0], 1, 1, "handover")),
        ("evidence", evidence(1, gates[0], ok=False)),
        status("BLOCKED", roles[1], 1),
        ("objection_answered", {"by": text(), "answer": text(), "reason": text(), "gates": {text(): text()}}),
        ("objection_answered", {"by": text(), "answer": "correct", "changed": [text()], "task": task}),
        ("waiver_declined", {"gate": gates[2], "by": text(), "reason": text(), "tree": text(), "attempt": 1}),
        ("waiver", {"gate": gates[2], "by": text(), "reason": text(), "tree": text(), "attempt": 2}),
        ("comment", {"by": text(), "path": text(), "line": 3, "text": text()}),
        ("runner_failed", {"role": text(), "message": text()}),
        status("IN_PROGRESS", roles[0], 2),
        ("answer", answer(roles[1], 2, 0, "fail")),
        ("evidence", evidence(2, gates[0], ok=True)),
        (text.name(), {text(): text(), text(): {text(): [text()]}}),
        ("abandoned", {}),
    ]
    Journal(journal_path(root)).extend(
        run, [(f"{n} {text.name()}", kind, data) for n, (kind, data) in enumerate(lines)]
    )


def write_ticket(root: Path, run: str, text: Texts) -> None:
    """Write the lines of a ticket, every text of which is hostile."""
    payload = {
        "title": text(),
        "description": text(),
        "external_ticket_id": text(),
        "acceptance_criteria": [text(), text()],
    }
    issue = {"message": text(), "code": text(), "path": text(), "expected": text(), "found": text(), "fix": text()}
    lines = [
        ("run_started", {"ticket_id": text(), "pipeline": text()}),
        ("tool_call", {"revision": 1, "state": "fetch_ticket", "tool": text(), "caller": text(), "payload": payload}),
        ("gate_retry", {"revision": 1, "state": text(), "status": "retry", "issues": [issue], "why": text()}),
        ("tool_call", {"revision": 1, "state": text(), "payload": {text(): text()}}),
    ]
    Journal(journal_path(root)).extend(f"ticket:{run}", [(f"{n}", kind, data) for n, (kind, data) in enumerate(lines)])


def files(root: Path, text: Texts) -> list[dict[str, str]]:
    """Write the evidence files of an attempt and return how a line names them."""

    def node() -> dict[str, Any]:
        return {
            "target": [text(), text()],
            "html": text(),
            "failureSummary": text(),
            "impact": text(),
            "boxes": {text(): [text()]},
        }

    axe = {"violations": [{"id": text(), "help": text(), "impact": text(), "nodes": [node(), node()]}]}
    console: list[dict[str, Any]] = [
        {"schema": text()},
        *({"kind": text(), "level": text(), "text": text(), "url": text(), "width": text()} for _ in range(3)),
    ]
    tests = {"tests": [{"id": text(), "outcome": text(), "message": text()} for _ in range(3)]}
    log = {"sealed": {"level": text()}, "command": [text()]}
    made = (
        ("a11y", f"{text.name()}.axe.json", json.dumps(axe)),
        ("console", f"{text.name()}.jsonl", "\n".join(map(json.dumps, console))),
        ("reports", f"{text.name()}.tests.json", json.dumps(tests)),
        ("reports", f"{text.name()}.log", f"{json.dumps(log)}\n{text()}\n{text()}\n"),
        ("screenshots", f"{text.name()}.png", text()),
    )
    return [
        {"key": key, "path": f"artifacts/{text()}/{name}", "sha256": keep(root, data.encode("utf-8", "surrogatepass"))}
        for key, name, data in made
    ]


def keep(root: Path, data: bytes) -> str:
    """Put evidence where its copies are kept, and return its digest."""
    digest = hashlib.sha256(data).hexdigest()
    path = root / "artifacts/interlock/objects" / digest[:2] / digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return digest


def groups(size: int) -> tuple[str, ...]:
    """Return all texts, so many at a time in one."""
    return tuple(" ".join(STRINGS[start : start + size]) for start in range(0, len(STRINGS), size))
