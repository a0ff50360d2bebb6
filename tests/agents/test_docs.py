"""Promises of docs/agents.md: the runner that it shows is short and works, and its script is one that reads."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import RunnerError, make_runner
from interlock.agents.role_file import parse_role
from interlock.agents.runners.replay import PLACEHOLDERS, read_script

DOCS = Path(__file__).parents[2] / "docs" / "agents.md"


def block(language: str, holding: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", DOCS.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return next(text for text in blocks if holding in text)


def test_the_twenty_line_runner_asks_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_ask: Any) -> None:
    code = block("python", "def claude")
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    (tmp_path / "my_agents.py").write_text(code, "utf-8")
    program = tmp_path / "claude"
    program.write_text('#!/bin/sh\n[ "$3" = "You build." ] || exit 3\npwd\ncat\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_agents", raising=False)
    settings = {"runner": "python:my_agents:claude"}
    run: Any = make_runner("frontend-implementer", settings, root=tmp_path)
    assert run(make_ask(tmp_path)) == f"{tmp_path.resolve()}\nDo it."
    with pytest.raises(RunnerError):
        run(make_ask(tmp_path, system="another prompt"))
    program.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunnerError):
        run(make_ask(tmp_path))


def test_the_script_that_the_docs_show_reads(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    path = tmp_path / "agents" / "a.toml"
    path.write_text(block("toml", "[[turn]]"), "utf-8")
    assert [turn.attempts for turn in read_script(path)] == [(1,), (1,), (2, 3)]


def test_the_docs_name_every_placeholder_and_show_a_role_file_that_reads() -> None:
    text = DOCS.read_text("utf-8")
    assert all(f"{{{name}}}" in text for name in PLACEHOLDERS)
    assert parse_role(block("markdown", "name: visual-qa"), path="x", role="visual-qa").body
