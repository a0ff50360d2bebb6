"""A small project in git whose gate is sealed and takes no time: a shell script in place of a test runner."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from interlock.agents import Ask
from interlock.graph.task.task import task_from_mapping
from tests.child import git
from tests.graph.conftest import Project, Scripted, envelope

GATES = ("GATE-MSG-STRICT", "GATE-TESTS")
CONFIG = """
roster = "replace"
[roles.orchestrator]
kind = "orchestrator"
[roles.builder]
kind = "build"
hands_over = true
[gates.GATE-TESTS]
title = "the tests pass"
command = ["sh", "tests/check.sh"]
product = ["src/**"]
tests = ["tests/**"]
"""
FILES = {
    "interlock.toml": CONFIG,
    ".gitignore": "artifacts/\n.interlock/\n",
    "src/greeting.txt": "hullo\n",
    "tests/check.sh": "grep -qx hello src/greeting.txt\n",
    "tests/more.sh": "true\n",
    "Makefile": "test:\n\tsh tests/check.sh\n",
    "notes.txt": "of a person\n",
}
WEAK = "true\n"
RIGHT = {"src/greeting.txt": "hello\n"}


def write(root: Path, files: Mapping[str, str | None]) -> None:
    """Write files; None removes one."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            (root / name).unlink()
        else:
            (root / name).write_text(text)


def text_of(root: Path, name: str) -> str | None:
    return (root / name).read_text() if (root / name).exists() else None


def sealed_project(root: Path) -> Project:
    """Make a project in git whose test fails, and whose tests and recipe are in scope."""
    write(root, FILES)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Start")
    fields: dict[str, Any] = {"task_id": "HELLO-001", "task": "Greet", "gates_required": list(GATES)}
    fields |= {"scope": ["src/**", "tests/**", "Makefile"], "run": {"max_rework": 1}}
    return Project(root, {}, task_from_mapping(fields, base=str(root)))


def working(*rounds: Mapping[str, str | None], gates: tuple[str, ...] = GATES) -> Scripted:
    """Return a builder that writes these files, in one round after another."""

    def answer(ask: Ask) -> str:
        write(Path(ask.root), rounds[min(ask.attempt, len(rounds)) - 1])
        return envelope(ask, "READY_FOR_QA", gates_required=tuple(gates))

    return Scripted([answer])
