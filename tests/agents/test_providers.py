"""The loopback providers, as LangChain's own clients see them."""

import http.client
import json
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk

from tests.agents.providers.anthropic import Anthropic
from tests.agents.providers.base import Fault, Provider, Reply, Script
from tests.agents.providers.google import Google
from tests.agents.providers.ollama import Ollama
from tests.agents.providers.openai import OpenAI

ADD: dict[str, Any] = {
    "name": "add",
    "description": "Adds.",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
}
ENVELOPE: dict[str, Any] = {"type": "custom", "name": "envelope", "format": {"type": "text"}}


def openai(url: str, **more: Any) -> BaseChatModel:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="m", base_url=url, api_key="k", max_retries=0, stream_usage=True, **more)  # pyright: ignore[reportArgumentType, reportCallIssue]


def responses(url: str) -> BaseChatModel:
    return openai(url, use_responses_api=True)


def anthropic(url: str) -> BaseChatModel:
    from langchain_anthropic import ChatAnthropic

    return ChatAnthropic(model_name="m", base_url=url, api_key="k", max_retries=0, timeout=5, stop=None)  # pyright: ignore[reportArgumentType, reportCallIssue]


def google(url: str) -> BaseChatModel:
    from langchain_google_genai import ChatGoogleGenerativeAI

    return ChatGoogleGenerativeAI(model="m", base_url=url, api_key="k", max_retries=1, timeout=5)  # pyright: ignore[reportArgumentType, reportCallIssue]


def ollama(url: str) -> BaseChatModel:
    from langchain_ollama import ChatOllama

    return ChatOllama(model="m", base_url=url)


WIRES: Mapping[str, tuple[type[Provider], Callable[[str], BaseChatModel]]] = {
    "chat completions": (OpenAI, openai),
    "responses": (OpenAI, responses),
    "anthropic": (Anthropic, anthropic),
    "google": (Google, google),
    "ollama": (Ollama, ollama),
}
each_wire = pytest.mark.parametrize("wire", WIRES)
each_way = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


def say(model: Any, streamed: bool) -> AIMessage:
    """Ask, and return the message as LangChain puts it together."""
    if not streamed:
        return model.invoke("hello")
    parts: list[AIMessageChunk] = list(model.stream("hello"))
    message = parts[0]
    for part in parts[1:]:
        message += part
    return message


@pytest.mark.sample(every=3)
@each_way
@each_wire
def test_a_scripted_text_arrives_with_its_usage(wire: str, streamed: bool) -> None:
    server, client = WIRES[wire]
    with server([Reply("Gut so. " * 40, usage=(120, 34))]) as provider:
        message = say(client(provider.url), streamed)
    assert message.text == "Gut so. " * 40
    assert message.usage_metadata is not None
    assert (message.usage_metadata["input_tokens"], message.usage_metadata["output_tokens"]) == (120, 34)
    (request,) = provider.requests
    assert "hello" in request.words


@pytest.mark.sample(every=3)
@each_way
@each_wire
def test_scripted_tool_calls_arrive_beside_a_text(wire: str, streamed: bool) -> None:
    server, client = WIRES[wire]
    with server([Reply("I add.", [("add", {"a": 1}), ("add", {"a": 2})])]) as provider:
        message = say(client(provider.url).bind_tools([ADD]), streamed)
    assert [(call["name"], call["args"]) for call in message.tool_calls] == [("add", {"a": 1}), ("add", {"a": 2})]
    assert (message.text, provider.requests[0].tools) == ("I add.", ("add",))


@each_way
def test_a_custom_tool_of_openai_is_given_its_text(streamed: bool) -> None:
    with OpenAI([Reply(tool_calls=[("envelope", "STATUS: BLOCKED\n")])]) as provider:
        message = say(responses(provider.url).bind_tools([ENVELOPE]), streamed)
    assert provider.requests[0].tools == ("envelope",)
    assert "STATUS: BLOCKED\n" in json.dumps(message.content).encode().decode("unicode_escape")


WORDS = {
    "401": "scripted 401",
    "429": "scripted 429",
    "500": "scripted 500",
    "cut": "(?i)peer closed|incomplete|disconnected|connection",
}


@pytest.mark.sample(every=4)
@each_way
@each_wire
@pytest.mark.parametrize("fault", sorted(WORDS))
def test_a_fault_is_an_error_of_the_client(wire: str, streamed: bool, fault: Fault) -> None:
    server, client = WIRES[wire]
    with server([Reply("words and more words", fault=fault)]) as provider:
        model = client(provider.url)
        with pytest.raises(Exception, match=WORDS[fault]):
            say(model, streamed)
    assert len(provider.requests) == 1


def post(provider: Provider, path: str, body: Mapping[str, Any]) -> tuple[int, str | None, bytes]:
    """Send a body to a provider as it is; return status, Retry-After and body of the answer."""
    with closing(http.client.HTTPConnection(urlsplit(provider.url).netloc, timeout=5)) as connection:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.headers["Retry-After"], response.read()


BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def test_each_fault_looks_as_it_says() -> None:
    replies = [Reply("a text", fault=fault) for fault in ("429", "529", "malformed", "empty", "blank", "cut")]
    with Anthropic(replies) as provider:
        assert post(provider, "/v1/messages", BODY)[:2] == (429, "1")
        status, _, busy = post(provider, "/v1/messages", BODY)
        assert (status, json.loads(busy)["error"]["type"]) == (529, "overloaded_error")
        status, _, broken = post(provider, "/v1/messages", BODY)
        assert status == 200
        with pytest.raises(json.JSONDecodeError):
            json.loads(broken)
        assert json.loads(post(provider, "/v1/messages", BODY)[2])["content"] == []
        assert post(provider, "/v1/messages", BODY) == (200, None, b"")
        with pytest.raises(http.client.IncompleteRead):
            post(provider, "/v1/messages", BODY)


def test_a_provider_that_hangs_lets_go_at_the_end() -> None:
    with Anthropic([Reply(fault="hang")]) as provider:
        connection = http.client.HTTPConnection(urlsplit(provider.url).netloc, timeout=0.2)
        connection.request("POST", "/v1/messages", json.dumps(BODY))
        with closing(connection), pytest.raises(TimeoutError):
            connection.getresponse()


def test_a_script_that_is_used_up_is_told_at_the_end() -> None:
    def beyond(script: Script) -> None:
        with Ollama(script) as provider:
            assert post(provider, "/api/chat", BODY)[0] == 400

    with pytest.raises(AssertionError, match="one more was asked for"):
        beyond([])


def test_a_function_may_be_the_script() -> None:
    with OpenAI(lambda request: Reply(request.json["messages"][0]["content"].upper())) as provider:
        answer = json.loads(post(provider, "/v1/chat/completions", BODY)[2])
    assert answer["choices"][0]["message"]["content"] == "HELLO"
