"""The README shows what the commands really print."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.graph.task import task_from_mapping

REPO = Path(__file__).parents[2]
README = (REPO / "README.md").read_text(encoding="utf-8")


def blocks(language: str = "") -> list[str]:
    """Return the fenced blocks of one language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == language]


def test_the_refusal_in_the_readme_is_what_the_command_prints(tmp_path: Path) -> None:
    response = next(text for text in blocks() if text.startswith("STATUS: APPROVED"))
    shown = next(text for text in blocks() if text.startswith("$ validate-envelope response.txt"))
    (tmp_path / "response.txt").write_text(response, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "interlock.validate_envelope", "response.txt"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert shown.partition("\n")[2] == done.stdout


@pytest.mark.parametrize("page", ["README.md", "docs/first-ticket.md"])
def test_the_quotation_that_a_refusal_corrects_stands_in_the_line_that_it_names(page: str) -> None:
    line, text = re.findall(r'Write it exactly as line (\d+): "(.*)"', (REPO / page).read_text(encoding="utf-8"))[0]
    assert text in (REPO / "interlock/core/errors.py").read_text(encoding="utf-8").splitlines()[int(line) - 1]


def test_the_runner_in_the_readme_is_the_one_that_is_tried() -> None:
    (runner,) = [text for text in blocks("python") if "def claude" in text]
    assert runner in (REPO / "docs" / "agents.md").read_text(encoding="utf-8")


def test_the_task_in_the_readme_is_a_task() -> None:
    import tomllib

    (text,) = [text for text in blocks("toml") if text.startswith("task_id")]
    assert task_from_mapping(tomllib.loads(text)).task_id == "HOME-UI-001"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the project that the README describes, as the current folder; its one agent gives up at once."""
    for start, name in (("[agents.frontend-implementer]", "interlock.toml"), ("task_id", "task.toml")):
        (text,) = [text for text in blocks("toml") if text.startswith(start)]
        (tmp_path / name).write_text(text)
    (tmp_path / "my_agents.py").write_text(GIVES_UP)
    for name in ("docs/brief.md", "site/index.html"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("a page\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


GIVES_UP = """
from dataclasses import replace
from interlock.envelope import render
from interlock.envelope.template import example

def claude(ask):
    said = example(ask.role, outcome="blocked", task_id=ask.task_id)
    return render(replace(said, inputs_used=()))
"""


def test_the_graph_in_the_readme_runs_as_it_stands(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = [text for text in blocks("python") if "task_graph" in text]
    exec(text, {})
    assert capsys.readouterr().out.startswith("BLOCKED [")
    assert (project / "artifacts/interlock/events.jsonl").exists()


def test_the_pipeline_in_the_readme_runs_as_it_stands(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = [text for text in blocks("python") if "PipelineSpec" in text]
    names: dict[str, Any] = {}
    exec(text, names)
    assert set(names["graph"].get_graph().nodes) >= {"collect", "announce", "complete", "fail_closed"}
    assert capsys.readouterr().out == "collect ['version', 'changes']\nannounce ['channel']\n"
    assert (project / "artifacts/interlock/tickets.jsonl").exists()


def test_every_local_link_of_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (REPO / link).exists()] == []
