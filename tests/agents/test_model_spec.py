"""What a model is called on the command line, and the table that the name stands for."""

from pathlib import Path
from typing import Any

import pytest

from interlock.agents import AgentConfigError
from interlock.agents.model_spec import SPECS, agent_table, split_role
from interlock.agents.runners.presets import PRESETS
from tests.refusals import raises_told
from tests.table import each_row


@each_row(
    ("spec", "table"),
    [
        ("anthropic:claude-x", {"runner": "chat", "model": "anthropic:claude-x"}),
        ("ollama:qwen3:0.6b", {"runner": "chat", "model": "ollama:qwen3:0.6b"}),
        ("openai:ft=mine", {"runner": "chat", "model": "openai:ft=mine"}),
        ("local", {"runner": "local"}),
        ("local:/models/a.gguf", {"runner": "local", "model_file": "/models/a.gguf"}),
        *((f"command:{name}", {"runner": "command", "preset": name}) for name in PRESETS),
    ],
)
def test_each_form_of_a_spec_stands_for_one_table(spec: str, table: dict[str, Any]) -> None:
    assert agent_table(spec) == table


def test_a_file_is_found_from_the_current_folder_and_below_the_home_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/srv/me")
    assert agent_table("local:a.gguf")["model_file"] == str(tmp_path / "a.gguf")
    assert agent_table("local:~/a.gguf")["model_file"] == "/srv/me/a.gguf"


@each_row(
    ("spec", "named"),
    [
        ("claude", "`command:claude`"), ("loca", "`local`"), ("command:cluade", "`command:claude`"),
        ("command:", "command:claude"), ("anthropic", "`anthropic:MODEL`"), ("anthropic:", "`anthropic:MODEL`"),
        ("local:", "`local`"), (":gpt", "PROVIDER:MODEL"), ("claude-sonnet-4-5", "`anthropic:claude-sonnet-4-5`"),
        ("gpt-4o", "`openai:gpt-4o`"), ("openai/gpt-4o", "`openai:gpt-4o`"),
        ("python:team:builder", 'runner = "python:team:builder"'), ("anthropic/", "`anthropic:MODEL`"),
        ("", "PROVIDER:MODEL"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_what_was_meant(spec: str, named: str) -> None:
    with raises_told(AgentConfigError, named, path="--model"):
        agent_table(spec)


def test_a_role_stands_before_the_first_equals_sign_unless_that_belongs_to_the_model() -> None:
    assert split_role("visual-qa=anthropic:x=y") == ("visual-qa", "anthropic:x=y")
    assert split_role("openai:ft=mine") == ("", "openai:ft=mine")
    assert split_role("local") == ("", "local")


def test_what_a_shell_is_offered_is_taken_once_the_name_stands_behind_it() -> None:
    for spec in SPECS:
        assert agent_table(f"{spec}name" if spec.endswith(":") else spec)
