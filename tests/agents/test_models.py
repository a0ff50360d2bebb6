"""Promises of how a model is named, in tables and on the command line: keys by name alone, a fix for each slip."""

import os
import subprocess
import sys
from datetime import date
from math import inf
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import AgentConfigError, make_runner
from interlock.agents.model_spec import agent_table, split_role
from interlock.agents.runners.chat import ChatRunner
from interlock.agents.runners.models import chat_model, read_model
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
    "no model": ({}, "model", 'Write `model = "'),
    "an empty address": ({"model": "openai:x", "base_url": ""}, "base_url", "`base_url`"),
    "only a provider": ({"model": "openai"}, "model", "openai:name"),
    "a provider misspelt": ({"model": "antropic:x"}, "model", "`anthropic:x`"),
    "no key": ({"model": "anthropic:x"}, "api_key_env", "ANTHROPIC_API_KEY"),
    "no key of Google": ({"model": "google_genai:x"}, "api_key_env", "GOOGLE_API_KEY or GEMINI_API_KEY"),
    "no key of that name": ({"model": "openai:x", "api_key_env": "MY_KEY"}, "api_key_env", "Set MY_KEY"),
    "a temperature beyond": ({"model": "ollama:x", "temperature": 3}, "temperature", "Correct `"),
    "a number for tools": ({"model": "ollama:x", "tools": 1}, "tools", "Correct `"),
    "a misspelt option": ({"model": "ollama:x", "options": {"num_ctxx": 1}}, "options.num_ctxx", "`num_ctx`"),
    "a key among the options": ({"model": "openai:x", "options": {"api_key": "k"}}, "options.api_key", "`api_key_env`"),
    "an address among them": ({"model": "ollama:x", "options": {"base_url": "u"}}, "options.base_url", "`base_url`"),
    "a date": ({"model": date(2026, 1, 2)}, "model", "as text"),
    "no number": ({"model": "ollama:x", "budget": {"usd": inf}}, "budget", "finite number"),
    "a misspelt key": ({"model": "ollama:x", "temprature": 1}, "temprature", "`temperature`"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_refused_with_its_key_and_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    settings, key, fix = SLIPS[name]
    if settings.get("model") == "openai:x" and "options" in settings:
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with raises_with(AgentConfigError, fix, key=f"agents.visual-qa.{key}"):
        make(tmp_path, **settings)


SECRET = "sk-live-0123456789"


@pytest.mark.parametrize("settings", [{"api_key_env": SECRET}, {"api_key_env": [SECRET]}, {"temperature": SECRET}])
def test_a_value_in_the_wrong_place_may_be_a_key_and_is_not_repeated(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(AgentConfigError) as caught:
        make(tmp_path, model="openai:m", **settings)
    assert SECRET not in f"{caught.value} {caught.value.fix}"


def test_a_missing_package_is_reported_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)

    def fail(*_words: object, **_options: object) -> None:
        raise ImportError("No module named 'langchain_anthropic'")

    # LangChain remembers a provider that it has loaded once, so that taking its package away is not enough.
    monkeypatch.setattr("langchain.chat_models.init_chat_model", fail)
    with raises_with(AgentConfigError, "interlock[llm]", key="agents.visual-qa.model"):
        make(tmp_path, model="anthropic:x")


def test_what_langchain_refuses_is_reported_without_the_key(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    with raises_with(AgentConfigError, key="agents.visual-qa.model") as caught:
        make(tmp_path, model="anthropic:x", options={"top_k": "many"})
    assert "top_k" in caught.value.message
    assert SECRET not in str(caught.value)


def model_of(**settings: Any) -> Any:
    table = Table(settings, "interlock.toml", "agents.x")
    return chat_model(read_model(table), table)


def test_the_settings_reach_the_model_and_no_answer_streams(monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("GEMINI_API_KEY", SECRET)
    shared = {"temperature": 0.5, "max_tokens": 77, "timeout_seconds": 9}
    openai = model_of(model="openai:gpt-x", options={"seed": 3}, **shared)
    assert (openai.model_name, openai.temperature, openai.max_tokens, openai.seed) == ("gpt-x", 0.5, 77, 3)
    assert (openai.request_timeout, openai.disable_streaming) == (9, True)
    assert openai.openai_api_key.get_secret_value() == SECRET
    google = model_of(model="google_genai:gem", **shared)
    assert (google.timeout, google.max_output_tokens) == (9, 77)
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
    for options in ({}, {"client_kwargs": {"verify": False}}):
        given = {"model": "ollama:m", "base_url": "http://127.0.0.1:9", "options": options}
        assert SECRET not in str(client_headers(model_of(**given)))
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


@each_row(
    ("spec", "table"),
    [
        ("anthropic:claude-x", {"runner": "chat", "model": "anthropic:claude-x"}),
        ("ollama:qwen3:0.6b", {"runner": "chat", "model": "ollama:qwen3:0.6b"}),
        ("openai:ft=mine", {"runner": "chat", "model": "openai:ft=mine"}),
        *((f"command:{name}", {"runner": "command", "preset": name}) for name in PRESETS),
        ("acp:gemini", {"runner": "acp:gemini"}),
    ],
)
def test_each_form_of_a_spec_stands_for_one_table(spec: str, table: dict[str, Any]) -> None:
    assert agent_table(spec) == table


@each_row(
    ("spec", "named"),
    [
        ("claude", "`command:claude`"),
        ("command:cluade", "`command:claude`"),
        ("command:", "command:claude"),
        ("anthropic:", "PROVIDER:MODEL"),
        (":gpt", "PROVIDER:MODEL"),
        ("python:team:builder", "PROVIDER:MODEL"),
        ("acp:", "acp:claude"),
        ("", "PROVIDER:MODEL"),
    ],
)
def test_anything_else_is_refused_with_what_was_meant(spec: str, named: str) -> None:
    with raises_with(AgentConfigError, named, path="--model"):
        agent_table(spec)


def test_a_role_stands_before_the_first_equals_sign_unless_that_belongs_to_the_model() -> None:
    assert split_role("visual-qa=anthropic:x=y") == ("visual-qa", "anthropic:x=y")
    assert split_role("openai:ft=mine") == ("", "openai:ft=mine")
