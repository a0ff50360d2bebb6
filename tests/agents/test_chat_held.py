"""Promises of answers that are held to the grammar: how each server gets it, and when it gets it at all."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from interlock.agents import make_runner
from interlock.agents.runners import llama
from interlock.agents.runners.chat import CLOSING, ChatRunner
from interlock.agents.runners.model_settings import read_model
from interlock.agents.tables import Table
from interlock.envelope import parse
from tests.agents.chats import Box, Clock, chat, said
from tests.agents.providers.base import Reply, Request
from tests.agents.providers.openai import OpenAI
from tests.graph.conftest import envelope

READ = ("read_file", {"path": "src/x.css"})


class Server(OpenAI):
    """A server of OpenAI's protocol that says who it is."""

    owner = "vllm"

    def aside(self, method: str, path: str) -> dict[str, Any] | None:
        return {"data": [{"id": "m", "owned_by": self.owner}]} if path.endswith("/models") else None


class Llama(Server):
    owner = "llamacpp"


GRAMMARS: Mapping[str, type[Server]] = {"vllm": Server, "llama.cpp": Llama}


def grammar_of(request: Request, name: str) -> str | None:
    body = request.json
    return body.get("structured_outputs", {}).get("grammar") if name == "vllm" else body.get("grammar")


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_server_that_knows_grammars_is_held_from_the_first_call_without_tools(name: str, make_ask: Any) -> None:
    with GRAMMARS[name]([Reply("held")] * 2) as provider:
        runner = chat(provider.url, {"model": "openai:m", "tools": False})
        assert [runner(make_ask()).text for _ in range(2)] == ["held", "held"]
        assert provider.others == ["GET /v1/models"]
    assert all("HOME-UI-001" in (grammar_of(request, name) or "") for request in provider.requests)


@pytest.mark.parametrize("name", GRAMMARS)
def test_with_tools_the_work_is_free_and_the_answer_is_held(name: str, make_ask: Any) -> None:
    box = Box()
    script = [Reply(tool_calls=[READ]), Reply("All done, it is fine!"), Reply("held", usage=(5, 5))]
    with GRAMMARS[name](script) as provider:
        answer = chat(provider.url, {"model": "openai:m"}, box=box)(make_ask())
    assert (answer.text, answer.tool_calls, answer.usage.calls) == ("held", 1, 3)
    assert [grammar_of(request, name) is not None for request in provider.requests] == [False, False, True]
    last = provider.requests[-1]
    assert last.tools == ()
    assert CLOSING in last.words
    assert "it says: hello" in last.words


def test_an_answer_that_reads_already_is_not_asked_for_again(make_ask: Any) -> None:
    text = envelope(make_ask(), "READY_FOR_QA")
    assert parse(text).envelope is not None
    with Server([Reply(text)]) as provider:
        assert chat(provider.url, {"model": "openai:m"})(make_ask()).text == text


def test_a_tool_of_openai_takes_the_answer_under_the_grammar(make_ask: Any, monkeypatch: Any) -> None:
    script = [Reply(tool_calls=[READ]), Reply("done!"), Reply(tool_calls=[("envelope", "STATUS: BLOCKED\n")])]
    with OpenAI(script) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        answer = chat("", {"model": "openai:gpt-5.5"})(make_ask())
    assert (answer.text, answer.tool_calls) == ("STATUS: BLOCKED\n", 1)
    (tool,) = provider.requests[-1].json["tools"]
    assert (tool["type"], tool["name"], tool["format"]["syntax"]) == ("custom", "envelope", "lark")
    assert provider.requests[-1].json["tool_choice"] == {"type": "custom", "name": "envelope"}


def test_off_is_off_and_who_knows_no_grammar_is_asked_plainly(make_ask: Any) -> None:
    with Server([Reply("free")]) as provider:
        assert chat(provider.url, {"model": "openai:m", "constrain": "off"})(make_ask()).text == "free"
        assert provider.others == []
    for wire in ("chat completions", "anthropic"):
        assert said([Reply("free")], make_ask(), wire)[0].text == "free"


def test_what_the_user_adds_to_the_body_stays_beside_the_grammar(make_ask: Any) -> None:
    options = {"extra_body": {"chat_template_kwargs": {"thinking": False}}}
    with Server([Reply("held")]) as provider:
        chat(provider.url, {"model": "openai:m", "tools": False, "options": options})(make_ask())
    body = provider.requests[0].json
    assert body["chat_template_kwargs"] == {"thinking": False}
    assert "structured_outputs" in body


def test_the_local_runner_asks_its_server_held_and_for_nothing(make_ask: Any, monkeypatch: Any, tmp_path: Any) -> None:
    asked: list[Any] = []
    with Llama([Reply("held", usage=(9, 3))]) as provider:

        def served(path: Any, *, context: Any, threads: Any) -> llama.Served:
            asked.append((path, context, threads))
            return llama.Served(provider.url, "tiny", 4096, cast("Any", None))

        monkeypatch.setattr(llama, "server_for", served)
        table = {"runner": "local", "context": 4096, "threads": 1, "temperature": 0.1, "budget": {"usd": 1}}
        runner: Any = make_runner("frontend-implementer", table, root=tmp_path)
        assert asked == []
        answer = runner(make_ask(tmp_path))
    assert asked == [(None, 4096, 1)]
    assert (answer.text, answer.model, answer.usage.usd, answer.tool_calls) == ("held", "tiny", 0.0, 0)
    body = provider.requests[0].json
    assert body["grammar"]
    assert body["max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"] > 1024
    assert provider.requests[0].tools == ()


def serve_in_turn(monkeypatch: Any, *servers: Llama) -> None:
    """Let each start of the local server find the next of these."""
    served = iter([llama.Served(server.url, "tiny", 4096, cast("Any", None)) for server in servers])

    def server_for(_path: Any, **_more: Any) -> llama.Served:
        return next(served)

    monkeypatch.setattr(llama, "server_for", server_for)


def test_a_local_server_that_ends_in_mid_turn_is_started_again(make_ask: Any, monkeypatch: Any, tmp_path: Any) -> None:
    first, second = Llama([Reply("half of it", fault="cut")]), Llama([Reply("whole")])
    with first, second:
        serve_in_turn(monkeypatch, first, second)
        settings = read_model(Table({"runner": "local"}, "interlock.toml", "agents.visual-qa"))
        assert ChatRunner(settings, sleep=Clock().sleep)(make_ask(tmp_path)).text == "whole"


def test_a_local_server_that_ended_is_started_again(make_ask: Any, monkeypatch: Any, tmp_path: Any) -> None:
    first, second = Llama([Reply("one")]), Llama([Reply("two")])
    with first, second:
        serve_in_turn(monkeypatch, first, second)
        runner: Any = make_runner("frontend-implementer", {"runner": "local"}, root=tmp_path)
        assert [runner(make_ask(tmp_path)).text for _ in range(2)] == ["one", "two"]
