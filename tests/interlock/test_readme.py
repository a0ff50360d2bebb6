"""README and the pages of the documentation show what works, and what is really printed."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from interlock.graph import task_from_mapping
from tests.interlock.replay import BLOCK, Shop, alike, steps

REPO = Path(__file__).parents[2]
README = (REPO / "README.md").read_text(encoding="utf-8")


def page(name: str) -> str:
    return (REPO / "docs" / name).read_text(encoding="utf-8")


def blocks(text: str, language: str = "") -> list[str]:
    """Return the fenced blocks of one language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == language]


def test_the_readme_is_short_its_links_lead_somewhere_and_its_picture_fetches_nothing() -> None:
    assert len(README.splitlines()) <= 165
    links = re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", README)
    assert len(links) > 10
    assert [link for link in links if not (REPO / link).exists()] == []
    picture = (REPO / "docs" / "images" / "refusal.svg").read_text(encoding="utf-8")
    assert ("RSV207" in picture, re.findall(r"url\((?!#)|@import|<script|href=", picture)) == (True, [])


def test_the_refusal_on_the_page_and_in_the_readme_is_what_the_command_prints(tmp_path: Path) -> None:
    text = page("check-an-answer.md")
    response = next(block for block in blocks(text) if block.startswith("STATUS: APPROVED"))
    shown = next(block for block in blocks(text) if block.startswith("$ validate-envelope response.txt"))
    (tmp_path / "response.txt").write_text(response, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "interlock.validate_envelope", "response.txt"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, shown.partition("\n")[2]) == (1, done.stdout)
    short = next(block for block in blocks(README) if block.startswith("$ validate-envelope"))
    assert shown.startswith(short)


@pytest.mark.long
def test_every_session_of_sharing_a_checkout_goes_as_it_is_written(tmp_path: Path) -> None:
    """To renew it: `python -m tests.interlock.replay docs/sharing-a-checkout.md`."""
    written = BLOCK.findall(page("sharing-a-checkout.md"))
    assert written
    shop = Shop(tmp_path)
    shop.begin()
    for step in [step for block in written for step in steps(block)]:
        seen = shop.run(step.name, step.command)
        assert alike(seen) == alike(step.output), step.command
        shop.learn(step.output, seen)


def test_the_quotation_that_a_refusal_corrects_is_in_the_line_that_it_names() -> None:
    line, text = re.findall(r'Write it exactly as line (\d+): "(.*)"', page("first-ticket.md"))[0]
    assert text in (REPO / "interlock/core/errors.py").read_text(encoding="utf-8").splitlines()[int(line) - 1]


def test_the_tasks_on_the_pages_are_tasks() -> None:
    found = [text for each in (README, page("page-project.md")) for text in blocks(each, "toml")]
    tasks = [task_from_mapping(tomllib.loads(text)) for text in found if text.startswith("task_id")]
    assert [task.task_id for task in tasks] == ["PRICES-1", "HOME-UI-001"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the project that a page describes, as the current folder; its one agent gives up at once."""
    for start, name in (("[agents.frontend-implementer]", "interlock.toml"), ("task_id", "task.toml")):
        (text,) = [text for text in blocks(page("page-project.md"), "toml") if text.startswith(start)]
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


def test_the_graph_on_the_page_runs_as_it_is_written(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = [text for text in blocks(page("embedding.md"), "python") if "task_graph" in text]
    exec(text, {})
    assert capsys.readouterr().out.startswith("BLOCKED [")
    assert (project / "artifacts/interlock/events.jsonl").exists()


def test_the_pipeline_on_the_page_runs_as_it_is_written(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = [text for text in blocks(page("embedding.md"), "python") if "PipelineSpec" in text]
    names: dict[str, Any] = {}
    exec(text, names)
    assert set(names["graph"].get_graph().nodes) >= {"collect", "announce", "complete", "fail_closed"}
    assert capsys.readouterr().out == "collect ['version', 'changes']\nannounce ['channel']\n"
    assert not (project / "artifacts").exists()
