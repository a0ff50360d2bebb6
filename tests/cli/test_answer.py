"""`interlock answer` and `interlock ui`: for a person in a terminal, and for no agent."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from interlock.cli.main import interlock as group
from interlock.reservations import identity, process
from interlock.reservations.process import Process
from tests.graph.conftest import Project, Scripted, build, make_project
from tests.graph.test_objections import WHY, objecting
from tests.table import each_row


def is_open(_descriptor: int) -> bool:
    """Say that there is a terminal."""
    return True


def is_closed(_descriptor: int) -> bool:
    """Say that there is none."""
    return False


@pytest.fixture
def objected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Project, str]:
    """Return a run that waits for an answer, called by a person: the tests themselves may be run by an agent."""
    for name in identity.AGENT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "isatty", is_open)
    monkeypatch.setattr(process, "ancestors", lambda: iter([Process(1, 0, "bash", "")]))
    project = make_project(tmp_path)
    project.runners["builder"] = Scripted([objecting(), build("hi\n")])
    return project, project.run().run_id


def answer(project: Project, *arguments: str) -> Result:
    """Call the command."""
    return CliRunner().invoke(group, ["answer", *arguments, "--root", str(project.root)], catch_exceptions=True)


def test_without_an_answer_the_question_is_shown(objected: tuple[Project, str]) -> None:
    project, run_id = objected
    shown = answer(project, run_id)
    assert shown.exit_code == 3
    assert f"GATE-TESTS: {WHY}" in shown.output
    assert f"interlock answer {run_id} accept --question 1" in shown.output
    asked = json.loads(answer(project, run_id, "--json").output)["question"]
    assert (asked["kind"], asked["number"]) == ("objection", 1)


def test_an_answer_is_kept_under_the_login_name(objected: tuple[Project, str], monkeypatch: pytest.MonkeyPatch) -> None:
    project, run_id = objected
    monkeypatch.setenv("USER", "somebody-else")
    assert answer(project, run_id, "accept", "--question", "1", "--no-drive").exit_code == 0
    view = project.drive(run_id)
    assert view.question is not None
    assert answer(project, run_id, "waive", "--question", "2", "--reason", "x").exit_code == 2, (
        "the gate is to be named"
    )
    waive = ("waive", "--gate", "GATE-TESTS", "--reason", "x", "--no-drive")
    assert "--question" in answer(project, run_id, *waive).output, "the question is to be named"
    assert answer(project, run_id, *waive, "--question", "2").exit_code == 0
    assert project.drive(run_id).status == "APPROVED"
    assert project.entries("waiver")[0].data["by"] not in ("", "somebody-else")


@each_row(
    ("variable", "name", "words"),
    [
        *((variable, "bash", []) for variable in ("INTERLOCK_AGENT_ID", "CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI")),
        *(("", name, [f"{name}.exe"]) for name in ("claude", "codex", "Claude")),
        ("", "node", ["node", "/usr/lib/node_modules/@google/gemini-cli/bundle/gemini.js"]),
        ("", "node", ["node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"]),
        *(("", "interlock", ["python", "/bin/interlock", name, "T-1.1"]) for name in ("run", "mcp", "ui", "answer")),
        ("", "MainThread", ["/usr/bin/node", "--a", "--b", "--no-warnings", "/usr/local/bin/codex", "exec"]),
        ("", "node", ["/home/a/.local/share/cursor-agent/versions/1/node", "index.js"]),
        ("", "python", ["python3.12", "-I", "-X", "dev", "-m", "interlock", "resume", "T-1"]),
        ("no terminal", "bash", []),
    ],
)
def test_whoever_looks_like_an_agent_is_refused(
    variable: str, name: str, words: list[str], objected: tuple[Project, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, run_id = objected

    def words_of(pid: int) -> list[str]:
        return words if pid == 8 else ["bash"]

    def above() -> Iterator[Process]:
        yield from (Process(9, 8, "bash", ""), Process(8, 1, name, ""))

    with monkeypatch.context() as patch:
        patch.setattr(process, "ancestors", above)
        patch.setattr(process, "words_of", words_of)
        if variable == "no terminal":
            patch.setattr(os, "isatty", is_closed)
        elif variable:
            patch.setenv(variable, "agent")
        for call in (["answer", run_id, "accept"], ["ui", "--no-browser"])[: 1 if variable == "no terminal" else 2]:
            done = CliRunner().invoke(group, [*call, "--root", str(project.root)])
            assert getattr(done.exception, "code", "") == "RUN645", call
    assert project.drive(run_id).question is not None


@each_row(
    "words",
    [
        *(line.split() for line in ("vim docs/claude.md", "grep interlock codex", "make interlock")),
        *(line.split() for line in ("python -c interlock", "python serve.py interlock", "tmux new -s gemini")),
        [],
    ],
)
def test_a_program_that_only_speaks_of_one_is_no_agent(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def words_of(_pid: int) -> list[str]:
        return words

    monkeypatch.setattr(process, "words_of", words_of)
    monkeypatch.setattr(process, "ancestors", lambda: iter([Process(9, 1, "zsh", "")]))
    assert identity.agent_behind({}) == ""
