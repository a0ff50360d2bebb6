"""Promises of the chat runner: whole turns over every wire, counted and bounded; faults stop the run with a fix."""

from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from interlock.agents import Answer, RunnerError
from interlock.agents.runners.chat import ChatRunner
from interlock.agents.runners.models import ModelSettings
from interlock.agents.runners.pictures import arranged
from interlock.agents.runners.turn import unmade
from interlock.agents.usage import Limits, Price
from tests.agents.chats import WIRES, Box, chat, notices, said, tools_reported
from tests.agents.providers.anthropic import Anthropic
from tests.agents.providers.base import Body, Fault, Reply, Request
from tests.agents.providers.openai import OpenAI
from tests.refusals import raises_with

each_wire = pytest.mark.parametrize("wire", WIRES)
READ = ("read_file", {"path": "src/x.css"})
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SEEN = PNG[:48]  # Google writes the rest in another alphabet
PICTURE: list[Any] = [
    {"type": "text", "text": '{"path": "a.png", "errors": []}'},
    {"type": "image", "base64": PNG, "mime_type": "image/png"},
]


@pytest.mark.sample(every=3)
@each_wire
def test_a_turn_works_with_its_tools_and_says_its_answer(wire: str, make_ask: Any) -> None:
    box, (rows, notice) = Box(), notices()
    script = [
        Reply("I look.", [READ, ("read_file", {"path": "src/y.css"})], usage=(100, 20)),
        Reply(tool_calls=[READ], usage=(200, 10)),
        Reply("STATUS: BLOCKED\nßü", usage=(300, 40)),
    ]
    answer, provider = said(script, make_ask(notice=notice), wire, box=box, price=Price(3.0, 15.0))
    assert (answer.text, box.asked) == ("STATUS: BLOCKED\nßü", ["src/x.css", "src/y.css", "src/x.css"])
    assert (answer.usage.calls, answer.usage.input_tokens, answer.usage.output_tokens) == (3, 600, 70)
    assert answer.usage.usd == pytest.approx((600 * 3 + 70 * 15) / 1e6)
    assert (answer.model, answer.tool_calls, answer.stopped, box.open) == ("m", 3, "", 0)
    first, *_, last = provider.requests
    assert "You build." in first.words
    assert "Do it." in first.words
    assert first.tools == ("read_file",)
    assert "it says: hello" in last.words
    assert tools_reported(rows) == ["read_file src/x.css", "read_file src/y.css", "read_file src/x.css"]
    assert [row["tokens"] for row in rows if not row["tool"]] == [0, 120, 330]
    assert {row["role"] for row in rows} == {"frontend-implementer"}


@pytest.mark.sample(every=3)
@each_wire
def test_an_empty_answer_is_an_answer(wire: str, make_ask: Any) -> None:
    answer, _ = said([Reply("")], make_ask(), wire)
    assert (answer.text, answer.tool_calls, answer.stopped) == ("", 0, "")


def scripted(message: AIMessage, ask: Any, price: Price | None = None) -> Answer:
    """Let a fake model of LangChain say a message."""
    model = GenericFakeChatModel(messages=iter([message]), disable_streaming=True)
    return ChatRunner(model, ModelSettings("openai:m", tools=False), price)(ask)


def test_reasoning_is_no_part_of_the_answer(make_ask: Any) -> None:
    blocks: list[Any] = [{"type": "reasoning", "reasoning": "hmm"}, *({"type": "text", "text": "one "},) * 2]
    assert scripted(AIMessage(blocks), make_ask()).text == "one one "


def test_unreported_usage_is_counted_by_length_and_has_no_price(make_ask: Any) -> None:
    answer = scripted(AIMessage("word " * 100), make_ask(), Price(1.0, 1.0))
    assert answer.usage.output_tokens > 100
    assert answer.usage.input_tokens > 0
    assert answer.usage.usd is None


@pytest.mark.parametrize(("cached_input", "usd"), [(None, 300), (0.5, 200)])
def test_cached_input_has_an_own_price(cached_input: float | None, usd: float, make_ask: Any) -> None:
    usage: Any = {"input_tokens": 200, "output_tokens": 100, "total_tokens": 300}
    message = AIMessage("said", usage_metadata={**usage, "input_token_details": {"cache_read": 200}})
    answer = scripted(message, make_ask(), Price(1e6, 1e6, cached_input and cached_input * 1e6))
    assert (answer.usage.input_tokens, answer.usage.usd) == (200, usd)


LIMITS: Mapping[str, tuple[Limits, str, int]] = {
    "calls": (Limits(calls=2), "2 of 2 calls are spent", 2),
    "tokens": (Limits(tokens=150), "240 of 150 tokens are spent", 2),
    "usd": (Limits(usd=0.0015), "0.0018 of 0.0015 usd are spent", 3),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_ends_the_turn_with_its_figures(name: str, make_ask: Any) -> None:
    limits, words, calls = LIMITS[name]
    reads = Reply(tool_calls=[READ], usage=(100, 20))
    answer, provider = said(lambda _request: reads, make_ask(limits=limits), price=Price(3.0, 15.0))
    assert (answer.text, answer.stopped) == ("", words)
    assert answer.usage.calls == len(provider.requests) == calls
    assert answer.tool_calls == calls


def test_a_turn_has_a_bound_of_its_own(make_ask: Any) -> None:
    answer, _ = said(lambda _request: Reply(tool_calls=[READ]), make_ask(), max_calls=3)
    assert answer.stopped == "3 of 3 calls are spent"


def test_an_answer_that_never_comes_is_left_when_the_time_is_up(make_ask: Any) -> None:
    answer, _ = said([Reply(fault="hang")], make_ask(limits=Limits(seconds=0.05)))
    assert (answer.text, answer.stopped, answer.usage.calls) == ("", "0.05 of 0.05 seconds are spent", 0)


def shown_to(wire: str, make_ask: Any, **more: Any) -> Request:
    script = [Reply(tool_calls=[READ]), Reply("seen")]
    answer, provider = said(script, make_ask(), wire, box=Box(PICTURE), **more)
    assert answer.text == "seen"
    return provider.requests[-1]


@pytest.mark.sample(every=3)
@each_wire
def test_a_picture_of_a_tool_reaches_a_model_that_takes_pictures(wire: str, make_ask: Any) -> None:
    assert SEEN in shown_to(wire, make_ask, images=True).words
    request = shown_to(wire, make_ask, images=False)
    assert SEEN not in request.words
    assert "takes none" in request.words


def test_a_model_that_is_not_known_to_take_pictures_is_shown_none(make_ask: Any) -> None:
    assert SEEN not in shown_to("chat completions", make_ask).words
    assert SEEN in shown_to("chat completions", make_ask, model="openai:gpt-5").words


def test_pictures_follow_all_the_results_that_were_asked_for_together() -> None:
    calls: list[Any] = [{"name": "see", "args": {}, "id": name} for name in "ab"]
    messages: list[Any] = [
        HumanMessage("look"),
        AIMessage("", tool_calls=calls),
        ToolMessage(PICTURE, tool_call_id="a", name="see"),
        ToolMessage(PICTURE, tool_call_id="b", name="see"),
        AIMessage("I see"),
    ]
    kinds = [message.type for message in arranged(messages, taken=True)]
    assert kinds == ["human", "ai", "tool", "tool", "human", "ai"]
    assert [message.type for message in arranged(messages, taken=False)] == [message.type for message in messages]
    assert messages[2].content == PICTURE


def test_a_tool_that_does_not_exist_is_an_error_that_the_model_gets(make_ask: Any) -> None:
    box = Box()
    answer, provider = said([Reply(tool_calls=[("rm_rf", {})]), Reply("sorry")], make_ask(), box=box)
    assert (answer.text, box.asked) == ("sorry", [])
    assert "rm_rf" in provider.requests[-1].words


def test_without_tools_none_are_offered(make_ask: Any) -> None:
    answer, provider = said([Reply("plain")], make_ask(), tools=False)
    assert (answer.text, provider.requests[0].tools) == ("plain", ())


# -- calls that cannot be trusted ------------------------------------------------------------------------------------

LONG = ("read_file", {"path": "src/a-long-name.css"})


@pytest.mark.parametrize("wire", ["responses", "anthropic", "google"])
def test_a_call_of_an_answer_that_was_cut_is_not_made_and_the_model_learns_why(wire: str, make_ask: Any) -> None:
    box = Box()
    script = [Reply(tool_calls=[LONG, LONG], fault="length"), Reply(tool_calls=[LONG]), Reply("done")]
    answer, provider = said(script, make_ask(), wire, box=box)
    assert box.asked == ["src/a-long-name.css"]
    assert (answer.text, answer.usage.calls, answer.tool_calls) == ("done", 3, 1)
    reasons = [line for line in provider.requests[1].words.split("\n") if "`max_tokens`" in line]
    assert len(reasons) == 2


class Unreadable(OpenAI):
    """A server that sends something else in place of some arguments."""

    def answer(self, request: Request, reply: Reply) -> Body:
        body = super().answer(request, reply)
        mark = rb'"{\"path\": \"first\"}"'
        return Body(body.content_type, [chunk.replace(mark, b'"{nope"') for chunk in body.chunks], body.streamed)


def test_a_call_without_readable_arguments_does_not_end_the_turn(make_ask: Any) -> None:
    box = Box()
    first = ("read_file", {"path": "first"})
    script = [Reply(tool_calls=[first, LONG]), Reply(tool_calls=[LONG]), Reply("done")]
    with Unreadable(script) as provider:
        answer = chat(provider.url, {"model": "openai:m"}, box=box)(make_ask())
    assert (answer.text, answer.tool_calls, box.asked) == ("done", 1, ["src/a-long-name.css"])
    assert provider.requests[1].words.count("no JSON object") == 2


def test_a_call_without_a_name_of_its_own_is_answered_too() -> None:
    call: Any = {"type": "invalid_tool_call", "id": None, "name": None, "args": "[", "error": None}
    message = AIMessage("", id="call-1", invalid_tool_calls=[call, call])
    first, second = unmade(message)
    assert [call["id"] for call in message.tool_calls] == [first.tool_call_id, second.tool_call_id]
    assert first.tool_call_id != second.tool_call_id


def test_an_answer_that_is_cut_is_judged_as_it_came(make_ask: Any) -> None:
    answer, _ = said([Reply("STATUS: BLOCKED\nTASK", fault="length")], make_ask(), "chat completions")
    assert (answer.text, answer.stopped) == ("STATUS: BLOCKED\nTASK", "")


# -- where the wire fails --------------------------------------------------------------------------------------------

AT_ONCE: Mapping[str, Any] = {"options": {"max_retries": 0}}


def test_a_fault_that_passes_is_asked_again_by_the_client_of_the_provider(make_ask: Any) -> None:
    answer, provider = said([Reply(fault="500"), Reply("whole")], make_ask(), "chat completions")
    assert (answer.text, answer.usage.calls, len(provider.requests)) == ("whole", 1, 2)


@pytest.mark.parametrize(("fault", "fix"), [("401", "key"), ("429", "limits"), ("500", "resume"), ("cut", "resume")])
@pytest.mark.parametrize("wire", ["chat completions", "anthropic"])
def test_a_fault_that_stays_stops_the_run_with_its_fix_and_half_an_answer_is_none(
    wire: str, fault: Fault, fix: str, make_ask: Any
) -> None:
    box, half = Box(), Reply("half of an answer " * 20, fault=fault)
    with raises_with(RunnerError, fix, said=WIRES[wire][1]["model"]) as caught:
        said([Reply(tool_calls=[READ], usage=(100, 20)), half], make_ask(), wire, box=box, **AT_ONCE)
    assert caught.value.spent is not None
    assert (caught.value.spent.calls, caught.value.spent.tokens, box.open) == (1, 120, 0)


def test_an_address_where_nobody_listens_and_a_page_that_is_no_message_name_the_address(make_ask: Any) -> None:
    with raises_with(RunnerError, "`base_url`"):
        chat("http://127.0.0.1:9/v1", {"model": "openai:m"}, **AT_ONCE)(make_ask())
    with Anthropic([Reply(fault="blank")]) as provider, raises_with(RunnerError, "`base_url`"):
        chat(provider.url, {"model": "anthropic:m"}, **AT_ONCE)(make_ask())


def test_a_silent_provider_is_given_up_after_the_seconds_of_a_call(make_ask: Any) -> None:
    with raises_with(RunnerError, "resume", said="Timeout"):
        said([Reply(fault="hang")], make_ask(), "chat completions", timeout_seconds=1, **AT_ONCE)
