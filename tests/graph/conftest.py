"""A small project without a page: command gates in place of a browser, scripted functions in place of agents."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import REMOTE, Ask, Remote
from interlock.envelope import Envelope, render
from interlock.graph.task.runs import RunView, drive, start_run
from interlock.graph.task.task import Task, task_from_mapping
from interlock.journal import Entry, Journal
from tests.clients import scripted

CONFIG = f"""{scripted.CONFIG}
[gates.GATE-LINT]
title = "no tabs"
command = ["sh", "lint.sh"]
product = ["src/**"]
"""

GATES = ("GATE-MSG-STRICT", "GATE-TESTS", "GATE-LINT", "GATE-REVIEW")

Answer = Callable[[Ask], str]
NO_EVIDENCE: dict[str, tuple[str, ...]] = {"screenshots": (), "a11y": (), "console": (), "reports": ()}


def envelope(ask: Ask, status: str, **fields: object) -> str:
    """Return a canonical envelope of the asked role with some fields replaced."""
    values: dict[str, object] = {
        "status": status,
        "task_id": ask.task_id,
        "task": "Write the greeting",
        "assigned_agent": ask.role,
        "reports_to": "orchestrator",
        "inputs_used": (),
        "gates_required": GATES,
        "gates_passed": ("GATE-MSG-STRICT",),
        "evidence": NO_EVIDENCE,
        "fail_reasons": (),
        "output": "as asked",
        "next_actions": ("orchestrator to go on",),
        **fields,
    }
    return render(Envelope(**values))  # type: ignore[arg-type]


def build(text: str = "hello\n") -> Answer:
    """Return a builder that writes the greeting and hands over."""

    def answer(ask: Ask) -> str:
        (Path(ask.root) / "src" / "greeting.txt").write_text(text, encoding="utf-8")
        return envelope(ask, "READY_FOR_QA")

    return answer


def judge_log(ask: Ask) -> str:
    """Answer as a tester that believes the log."""
    logs = ask.evidence.get("reports", ())
    text = (Path(ask.root) / logs[0]).read_text(encoding="utf-8")
    evidence = {**NO_EVIDENCE, "reports": logs}
    if '"exit_status": 0' in text or '"exit_status":0' in text:
        return envelope(ask, "QA_IN_PROGRESS", gates_passed=("GATE-MSG-STRICT", "GATE-TESTS"), evidence=evidence)
    return envelope(ask, "BLOCKED", fail_reasons=("GATE-TESTS: the tests fail",), evidence=evidence)


def reviewing(ask: Ask) -> str:
    """Answer as a reviewer that writes a report on the present tree."""
    path = f"{ask.reports_dir}/review.md"
    target = Path(ask.root) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"# Review\n\nRead tree {ask.tree}. No objection.\n", encoding="utf-8")
    evidence = {**NO_EVIDENCE, "reports": (path,)}
    passed = ("GATE-MSG-STRICT", "GATE-REVIEW")
    return envelope(ask, "READY_FOR_REVIEW", gates_passed=passed, evidence=evidence)


@dataclass
class Scripted:
    """A runner that gives its answers one after another, then the last one again, and keeps the asks."""

    answers: Sequence[Answer | str]
    asks: list[Ask] = field(default_factory=list[Ask])

    def __call__(self, ask: Ask, /) -> str:
        """Return the next answer."""
        answer = self.answers[min(len(self.asks), len(self.answers) - 1)]
        self.asks.append(ask)
        return answer if isinstance(answer, str) else answer(ask)


def asks_of(view: RunView, root: Path) -> dict[str, Ask]:
    """Return the asks that a run waits for, by role, as agents outside get them."""
    given = {row.name for row in fields(Ask)} - {"root"}
    return {
        item.role: Ask(root=str(root), **{name: value for name, value in item.request.items() if name in given})
        for item in view.waiting
    }


def drop_last_line(root: Path, run_id: str) -> None:
    """Take the last line of a run out of a journal; other runs may have written after it."""
    path = root / "artifacts/interlock/events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines) if json.loads(line)["run"] == run_id)
    path.write_bytes(b"".join(lines[:last] + lines[last + 1 :]))


@dataclass
class Project:
    """A project on disk, its task, and the runners of its roles."""

    root: Path
    runners: dict[str, Scripted | Remote]
    task: Task

    def start(self, run_id: str | None = None) -> str:
        """Start a run of the task."""
        return start_run(self.root, self.task, run_id=run_id, roles=tuple(self.runners))

    def drive(self, run_id: str, **answers: str) -> RunView:
        """Take a run on."""
        return drive(run_id, root=self.root, runners=self.runners, answers=answers)

    def run(self) -> RunView:
        """Start a run and take it as far as it goes."""
        return self.drive(self.start())

    def waiting(self, role: str) -> RunView:
        """Take a run to a role that answers from outside."""
        self.runners[role] = REMOTE
        return self.run()

    def entries(self, kind: str | None = None) -> list[Entry]:
        """Return the journal's lines."""
        entries = Journal(self.root / "artifacts/interlock/events.jsonl").entries()
        return [entry for entry in entries if kind in (None, entry.type)]

    def drop_last_line(self, run_id: str) -> None:
        """Take the last line of a run out of the journal."""
        drop_last_line(self.root, run_id)

    def configure(self, text: str) -> None:
        """Add something to the configuration."""
        path = self.root / "interlock.toml"
        path.write_text(f"{path.read_text()}\n{text}\n")

    def use(self, role: str, runner: Any) -> None:
        """Let a role be run by a function of any form of answer."""
        self.runners[role] = runner

    def codes(self, role: str) -> list[list[str]]:
        """Return the codes of the errors in each answer of a role."""
        rows = [entry.data for entry in self.entries("answer") if entry.data["role"] == role]
        return [[item["code"] for item in row["findings"] if item["level"] == "error"] for row in rows]

    def path(self) -> list[str]:
        """Return the statuses that the run went through."""
        return [entry.data["to"] for entry in self.entries("status")]

    def asks(self, role: str) -> list[Ask]:
        """Return what a role was asked."""
        runner = self.runners[role]
        assert isinstance(runner, Scripted)
        return runner.asks


def make_project(root: Path) -> Project:
    """Make a project whose builder writes a good greeting at once."""
    (root / "src").mkdir(parents=True)
    (root / "interlock.toml").write_text(CONFIG, encoding="utf-8")
    (root / "check.sh").write_text("grep -qx hello src/greeting.txt\n", encoding="utf-8")
    (root / "lint.sh").write_text("! grep -q '\t' src/greeting.txt\n", encoding="utf-8")
    task = task_from_mapping(
        {"task_id": "HELLO-001", "task": "Write the greeting", "gates_required": list(GATES), "scope": ["src/**"]},
        base=str(root),
    )
    runners: dict[str, Scripted | Remote] = {
        "builder": Scripted([build()]),
        "tester": Scripted([judge_log]),
        "reviewer": Scripted([reviewing]),
    }
    return Project(root, runners, task)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project whose builder writes a good greeting at once."""
    return make_project(tmp_path)


def qa_role(name: str, gate: str, rest: str) -> str:
    """Return the configuration of one more QA role and of the gate that it certifies."""
    role = f'[roles.{name}]\nkind = "qa"\ncertifies = "{gate}"\n'
    return f'\n{role}[gates.{gate}]\ntitle = "what {name} looks at"\ncertifier = "{name}"\n{rest}\n'


SPELLING = qa_role("spelling", "GATE-SPELLING", 'evidence = ["reports"]')


def widened(answer: Answer) -> Answer:
    """Return an agent that requires the second QA role's gate too."""
    return lambda ask: answer(ask).replace(
        "- GATE-REVIEW\nGATES_PASSED", "- GATE-REVIEW\n- GATE-SPELLING\nGATES_PASSED"
    )


@pytest.fixture
def spelled(project: Project) -> Project:
    """Return the project with a second QA role whose evidence is a file of its own."""
    (project.root / "interlock.toml").write_text(CONFIG + SPELLING)
    gates = (*GATES, "GATE-SPELLING")
    project.task = replace(project.task, gates_required=gates)

    for name, answer in (("builder", build()), ("tester", judge_log), ("reviewer", reviewing)):
        project.runners[name] = Scripted([widened(answer)])
    project.runners["spelling"] = Scripted([spelling()])
    return project


def spelling(path: str = "", **more: tuple[str, ...]) -> Answer:
    """Return a speller that writes its file, or cites another one, and cites more under other keys."""

    def answer(ask: Ask) -> str:
        cited = path or f"{ask.reports_dir}/spelling.md"
        if not path:
            (Path(ask.root) / cited).parent.mkdir(parents=True, exist_ok=True)
            (Path(ask.root) / cited).write_text("no mistakes\n")
        return envelope(
            ask,
            "QA_IN_PROGRESS",
            gates_required=(*GATES, "GATE-SPELLING"),
            gates_passed=("GATE-MSG-STRICT", "GATE-SPELLING"),
            evidence={**NO_EVIDENCE, **more, "reports": (cited,)},
        )

    return answer
