"""Promises of how a model is named, in tables and on the command line: keys by name alone, a fix for each slip."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import AgentConfigError, make_runner
from interlock.agents.model_spec import SPECS, agent_table, split_role
from interlock.agents.runners import model_settings, models
from interlock.agents.runners.chat import ChatRunner
from interlock.agents.runners.model_settings import ModelSettings, read_model
from interlock.agents.runners.models import chat_model
from interlock.agents.runners.presets import PRESETS
from interlock.agents.tables import Table
from interlock.agents.usage import Limits, Price
from tests.refusals import raises_with
from tests.table import each_row

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "MY_KEY")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


def make(tmp_path: Path, **settings: Any) -> Any:
    more = {name: settings.pop(name) for name in ("prices", "limits") if name in settings}
    return make_runner("visual-qa", {"runner": "chat", **settings}, root=tmp_path, **more)


SLIPS: dict[str, tuple[dict[str, Any], str, str]] = {
    "no model": ({}, "model", "model ="),
    "no provider": ({"model": "claude-sonnet-4-5"}, "model", "`anthropic`"),
    "only a provider": ({"model": "openai"}, "model", "openai:name"),
    "no name": ({"model": "openai:"}, "model", "`openai`"),
    "a provider misspelt": ({"model": "antropic:x"}, "model", "anthropic:x"),
    "a provider that nobody knows": ({"model": "qqqq:x"}, "model", "`ollama`"),
    "no key": ({"model": "anthropic:x"}, "api_key_env", "ANTHROPIC_API_KEY"),
    "no key of Google": ({"model": "google_genai:x"}, "api_key_env", "GOOGLE_API_KEY or GEMINI_API_KEY"),
    "no key of that name": ({"model": "openai:x", "api_key_env": "MY_KEY"}, "api_key_env", "Set MY_KEY"),
    "a name that is the key": ({"model": "openai:x", "api_key_env": "sk-123"}, "api_key_env", "MY_KEY"),
    "an address without a scheme": ({"model": "openai:x", "base_url": "localhost"}, "base_url", "http://"),
    "an address with a password": ({"model": "openai:x", "base_url": "http://a:b@c"}, "base_url", "api_key_env"),
    "a temperature in words": ({"model": "ollama:x", "temperature": "hot"}, "temperature", "0.2"),
    "a temperature beyond": ({"model": "ollama:x", "temperature": 3}, "temperature", "0.2"),
    "no tokens": ({"model": "ollama:x", "max_tokens": 0}, "max_tokens", "whole number"),
    "a word for constrain": ({"model": "ollama:x", "constrain": "on"}, "constrain", '"auto"'),
    "a number for tools": ({"model": "ollama:x", "tools": 1}, "tools", "tools = true"),
    "options in a list": ({"model": "ollama:x", "options": []}, "options", "below `options`"),
    "an option with a key of its own": (
        {"model": "ollama:x", "options": {"timeout": 3}},
        "options.timeout",
        "timeout_",
    ),
    "an option misspelt": ({"model": "ollama:x", "options": {"num_cxt": 3}}, "options.num_cxt", "`num_ctx`"),
    "an option of nobody": (
        {"model": "openai:x", "base_url": "http://a/v1", "options": {"qqqqqq": 3}},
        "options.qqqqqq",
        "Remove",
    ),
    "a misspelt key": ({"model": "ollama:x", "temprature": 1}, "temprature", "`temperature`"),
    "a key of local": ({"model": "ollama:x", "threads": 1}, "threads", "Remove it"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_refused_with_its_key_and_fix(tmp_path: Path, name: str) -> None:
    settings, key, fix = SLIPS[name]
    with raises_with(AgentConfigError, fix, key=f"agents.visual-qa.{key}"):
        make(tmp_path, **settings)


SECRET = "sk-live-0123456789"
LITERALS: tuple[dict[str, Any], ...] = (
    {"api_key": SECRET},
    {"options": {"openai_api_key": SECRET}},
    {"options": {"default_headers": {"X-Api-Key": SECRET}}},
    {"options": {"model_kwargs": [{"Authorization": SECRET}]}},
    {"options": {"access_token": SECRET}},
    {"api_key_env": SECRET},
    {"base_url": f"https://user:{SECRET}@host/v1"},
)


@pytest.mark.parametrize("settings", LITERALS, ids=str)
def test_a_key_in_the_file_is_refused_and_not_repeated(tmp_path: Path, settings: dict[str, Any]) -> None:
    allowed = (*model_settings.CHAT_KEYS, "api_key", "runner")
    table = Table({"runner": "chat", "model": "openai:m", **settings}, "interlock.toml", "agents.x")
    table.close(allowed)
    with pytest.raises(AgentConfigError) as caught:
        read_model(table)
    assert SECRET not in f"{caught.value} {caught.value.fix}"
    with pytest.raises(AgentConfigError):
        make(tmp_path, model="openai:m", **settings)


def test_max_tokens_is_no_secret() -> None:
    options = {"max_completion_tokens": 5, "tokens": 1}
    table = Table({"model": "openai:m", "options": options}, "interlock.toml", "agents.x")
    assert read_model(table).options == options


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    def found(name: str) -> object:
        return None if name == package else find_spec(name)

    monkeypatch.setattr(models, "find_spec", found)


@pytest.mark.parametrize("package", ["langchain", "langchain_anthropic"])
def test_a_missing_extra_is_reported_with_its_command(tmp_path: Path, monkeypatch: Any, package: str) -> None:
    without(monkeypatch, package)
    with raises_with(AgentConfigError, "interlock[llm]", key="agents.visual-qa.model"):
        make(tmp_path, model="anthropic:x")


def test_a_missing_extra_of_the_local_model_is_reported_with_its_command(tmp_path: Path, monkeypatch: Any) -> None:
    without(monkeypatch, "xllamacpp")
    with raises_with(AgentConfigError, "interlock[local]", key="agents.visual-qa.runner"):
        make_runner("visual-qa", {"runner": "local"}, root=tmp_path)


def test_a_local_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with raises_with(AgentConfigError, key="agents.visual-qa.model_file", said=str(tmp_path / "absent.gguf")):
        make_runner("visual-qa", {"runner": "local", "model_file": "absent.gguf"}, root=tmp_path)


def test_what_langchain_refuses_is_reported_without_the_key(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    with raises_with(AgentConfigError, key="agents.visual-qa") as caught:
        make(tmp_path, model="anthropic:x", options={"top_k": "many"})
    assert "top_k" in caught.value.message
    assert SECRET not in str(caught.value)


def model_of(**settings: Any) -> Any:
    return chat_model(read_model(Table(settings, "interlock.toml", "agents.x")), where="agents.x")


def test_the_settings_reach_the_model_and_its_own_retries_are_off(monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("GEMINI_API_KEY", SECRET)
    shared = {"temperature": 0.5, "max_tokens": 77, "timeout_seconds": 9}
    openai = model_of(model="openai:gpt-x", options={"seed": 3}, **shared)
    assert (openai.model_name, openai.temperature, openai.max_tokens, openai.seed) == ("gpt-x", 0.5, 77, 3)
    assert (openai.max_retries, openai.request_timeout, openai.streaming) == (0, 9, True)
    assert openai.openai_api_key.get_secret_value() == SECRET
    google = model_of(model="google_genai:gem", **shared)
    assert (google.max_retries, google.timeout, google.max_output_tokens) == (1, 9, 77)
    ollama = model_of(model="ollama:llama3:8b", **shared)
    assert (ollama.model, ollama.num_predict, ollama.temperature) == ("llama3:8b", 77, 0.5)
    assert ollama.client_kwargs == {"timeout": 9}


def test_the_key_of_a_provider_is_not_sent_to_another_address(monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("MY_KEY", "other-key")
    elsewhere = {"model": "openai:m", "base_url": "http://127.0.0.1:9/v1"}
    assert model_of(**elsewhere).openai_api_key.get_secret_value() == "none"
    assert model_of(**elsewhere, api_key_env="MY_KEY").openai_api_key.get_secret_value() == "other-key"
    headers = model_of(model="ollama:m", api_key_env="MY_KEY").client_kwargs["headers"]
    assert headers == {"authorization": "Bearer other-key"}
    monkeypatch.setenv("OLLAMA_API_KEY", SECRET)
    assert SECRET not in str(client_headers(model_of(model="ollama:m", base_url="http://127.0.0.1:9")))
    assert SECRET in str(client_headers(model_of(model="ollama:m")))


def client_headers(model: Any) -> Any:
    """Return what Ollama's client sends with each request."""
    return dict(model._client._client.headers)


def test_a_price_is_counted_by_the_million() -> None:
    assert Price(3.0, 15.0).usd(1_000_000, 100_000) == 4.5


def test_a_limit_in_money_needs_a_price(tmp_path: Path) -> None:
    given = {"model": "ollama:m"}
    with raises_with(AgentConfigError, '[prices."ollama:m"]', key="agents.visual-qa.budget.usd"):
        make(tmp_path, **given, budget={"usd": 2})
    with raises_with(AgentConfigError, key="budget.usd"):
        make(tmp_path, **given, limits=Limits(usd=2.0))
    prices = {"ollama:m": Price(0.0, 0.0)}
    assert isinstance(make(tmp_path, **given, budget={"usd": 2}, prices=prices), ChatRunner)
    assert isinstance(make(tmp_path, **given, budget={"calls": 2}), ChatRunner)
    assert isinstance(make_runner("x", {"runner": "local", "budget": {"usd": 2}}, root=tmp_path), ChatRunner)


def test_no_run_without_models_imports_langchain() -> None:
    code = (
        "import sys, interlock.agents, interlock.agents.runners.models\n"
        "assert not [name for name in sys.modules if name.startswith(('langchain', 'openai', 'pydantic'))]\n"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env={**os.environ, "PYTHONPATH": root}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "anthropic:x"}, "ANTHROPIC_API_KEY"),
        ({"model": "google_genai:x"}, "GOOGLE_API_KEY or GEMINI_API_KEY"),
        ({"model": "openai:x", "api_key_env": "MY_KEY", "base_url": "http://127.0.0.1/v1"}, "MY_KEY"),
        ({"model": "openai:x", "base_url": "http://127.0.0.1/v1"}, "`api_key_env`"),
        ({"model": "mistralai:x"}, "the variable"),
    ],
)
def test_a_message_names_the_variable_of_the_key_that_was_sent(settings: dict[str, Any], words: str) -> None:
    assert words in ModelSettings(**settings).key_place


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
    with raises_with(AgentConfigError, named, path="--model"):
        agent_table(spec)


def test_a_role_stands_before_the_first_equals_sign_unless_that_belongs_to_the_model() -> None:
    assert split_role("visual-qa=anthropic:x=y") == ("visual-qa", "anthropic:x=y")
    assert split_role("openai:ft=mine") == ("", "openai:ft=mine")
    assert split_role("local") == ("", "local")


def test_what_a_shell_is_offered_is_taken_once_the_name_stands_behind_it() -> None:
    for spec in SPECS:
        assert agent_table(f"{spec}name" if spec.endswith(":") else spec)
