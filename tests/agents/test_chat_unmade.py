"""Promises of tool calls that cannot be trusted: none that may be half is made, and the model is told."""

from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from interlock.agents.runners.model_errors import ending
from interlock.agents.runners.turn import unmade
from tests.agents.chats import WIRES, Box, chat, said
from tests.agents.providers.base import Body, Reply, Request
from tests.agents.providers.openai import OpenAI
from tests.table import each_row

READ = ("read_file", {"path": "src/a-long-name.css"})


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_of_an_answer_that_was_cut_is_not_made_and_the_model_is_told_why(wire: str, make_ask: Any) -> None:
    box = Box()
    script = [Reply(tool_calls=[READ, READ], fault="length"), Reply(tool_calls=[READ]), Reply("done")]
    answer, provider = said(script, make_ask(), wire, box=box)
    assert box.asked == ["src/a-long-name.css"]
    assert (answer.text, answer.usage.calls, answer.tool_calls) == ("done", 3, 1)
    told = [line for line in provider.requests[1].words.split("\n") if "`max_tokens`" in line]
    assert len(told) == 2


class Unreadable(OpenAI):
    """A server that sends something else in place of some arguments."""

    sent = b""

    def answer(self, request: Request, reply: Reply) -> Body:
        body = super().answer(request, reply)
        mark = rb'"{\"path\": \"first\"}"'
        chunks = [chunk.replace(mark, self.sent) for chunk in body.chunks]
        return Body(body.content_type, chunks, body.streamed)


@pytest.mark.parametrize(("streaming", "sent"), [(True, b'"[1, 2]"'), (False, b'"{nope"')])
def test_a_call_without_readable_arguments_does_not_end_the_turn(streaming: bool, sent: bytes, make_ask: Any) -> None:
    box = Box()
    first = ("read_file", {"path": "first"})
    script = [Reply(tool_calls=[first]), Reply(tool_calls=[first, READ]), Reply("done")]
    with Unreadable(script) as provider:
        provider.sent = sent
        settings = {"model": "openai:m", "options": {"streaming": streaming}}
        answer = chat(provider.url, settings, box=box)(make_ask())
    assert (answer.text, answer.tool_calls, box.asked) == ("done", 1, ["src/a-long-name.css"])
    assert "no JSON object" in provider.requests[1].words
    calls = [row for row in provider.requests[-1].json["messages"] if row["role"] == "tool"]
    assert len({row["tool_call_id"] for row in calls}) == 3


def test_a_call_without_a_name_of_its_own_is_answered_too() -> None:
    call: Any = {"type": "invalid_tool_call", "id": None, "name": None, "args": "[", "error": None}
    message = AIMessage("", id="call-1", invalid_tool_calls=[call, call])
    first, second = unmade(message)
    assert [call["id"] for call in message.tool_calls] == [first.tool_call_id, second.tool_call_id]
    assert first.tool_call_id != second.tool_call_id


def test_an_answer_that_is_cut_is_judged_as_it_came(make_ask: Any) -> None:
    answer, _ = said([Reply("STATUS: BLOCKED\nTASK", fault="length")], make_ask(), "chat completions")
    assert (answer.text, answer.stopped) == ("STATUS: BLOCKED\nTASK", "")


ENDS: Mapping[str, tuple[dict[str, Any], str]] = {
    "of itself": ({"finish_reason": "stop"}, ""),
    "for its tools": ({"stop_reason": "tool_use"}, ""),
    "not known": ({}, ""),
    "OpenAI, cut": ({"finish_reason": "length"}, "max_tokens"),
    "Responses, cut": ({"status": "incomplete"}, "max_tokens"),
    "Anthropic, cut": ({"stop_reason": "max_tokens"}, "max_tokens"),
    "Google, cut": ({"finish_reason": "MAX_TOKENS"}, "max_tokens"),
    "OpenAI, filtered": ({"finish_reason": "content_filter"}, "filter"),
    "Anthropic, filtered": ({"stop_reason": "refusal"}, "filter"),
    "Google, filtered": ({"finish_reason": "SAFETY"}, "filter"),
}


@each_row("name", ENDS)
def test_what_ended_an_answer_is_known(name: str) -> None:
    facts, word = ENDS[name]
    said = ending(AIMessage("x", response_metadata=facts))
    assert word in said
    assert bool(said) is bool(word)
