"""Promises of the chat runner where the wire fails: what passes is asked again, the rest is reported with a fix."""

import json
import socket
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from json import JSONDecodeError
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from interlock.agents import RunnerError
from interlock.agents.runners.model_errors import CutError, fault_of, is_cut
from interlock.agents.runners.turn import MAX_WAIT_SECONDS
from interlock.agents.usage import Limits
from tests.agents.chats import WIRES, Box, Clock, chat, said
from tests.agents.providers.anthropic import Anthropic
from tests.agents.providers.base import Body, Fault, Provider, Reply
from tests.refusals import raises_with
from tests.table import each_row

each_wire = pytest.mark.parametrize("wire", WIRES)
READ = ("read_file", {"path": "src/x.css"})
PASSING: tuple[Fault, ...] = ("429", "500", "529", "cut")


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.sample(every=2)
@each_wire
def test_a_fault_that_passes_is_no_answer_and_the_call_is_made_again(wire: str, fault: Fault, make_ask: Any) -> None:
    clock, box = Clock(), Box()
    script = [
        Reply(tool_calls=[READ], usage=(100, 20)),
        Reply("half of an answer " * 20, fault=fault),
        Reply("half of an answer " * 20, fault=fault),
        Reply("whole", usage=(200, 30)),
    ]
    answer, provider = said(script, make_ask(), wire, clock=clock, box=box)
    assert (answer.text, answer.usage.calls, answer.usage.tokens) == ("whole", 2, 350)
    assert (len(provider.requests), box.asked) == (4, ["src/x.css"])
    first, second = clock.waits
    assert 1 <= first <= 1.25
    assert second <= 1.25 if fault == "429" else 2 <= second <= 2.5
    assert answer.usage.seconds == pytest.approx(first + second)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("wire", ["chat completions", "anthropic", "google", "ollama"])
def test_a_provider_that_asks_to_wait_is_waited_for_up_to_a_bound(wire: str, make_ask: Any) -> None:
    clock = Clock()
    busy = Reply(fault="429", retry_after="17")
    assert said([busy, Reply("late")], make_ask(), wire, clock=clock)[0].text == "late"
    assert 17 <= clock.waits[0] <= 17 * 1.25
    clock = Clock()
    with raises_with(RunnerError, "3600 s"):
        said([Reply(fault="429", retry_after="3600")], make_ask(), wire, clock=clock)
    assert clock.waits == []


@pytest.mark.sample(every=2)
@each_wire
def test_a_fault_that_stays_stops_the_run(wire: str, make_ask: Any) -> None:
    server, settings = WIRES[wire]
    clock, box = Clock(), Box()
    with server([Reply(fault="500")] * 3) as provider, pytest.raises(RunnerError) as caught:
        chat(provider.url, settings, clock=clock, box=box, retries=2)(make_ask())
    assert (len(provider.requests), len(clock.waits)) == (3, 2)
    assert settings["model"] in caught.value.message
    assert "500" in caught.value.message
    assert box.open == 0


def test_without_retries_there_are_none(make_ask: Any) -> None:
    with Anthropic([Reply(fault="429")]) as provider, pytest.raises(RunnerError):
        chat(provider.url, {"model": "anthropic:m"}, retries=0)(make_ask())
    assert len(provider.requests) == 1


@pytest.mark.sample(every=2)
@each_wire
def test_what_came_whole_but_is_no_message_is_the_answer(wire: str, make_ask: Any) -> None:
    clock = Clock()
    answer, _ = said([Reply("STATUS: nothing of worth", fault="malformed")], make_ask(), wire, clock=clock)
    assert (answer.usage.calls, answer.stopped, clock.waits) == (1, "", [])
    with pytest.raises(JSONDecodeError):
        json.loads(answer.text)
    answer, _ = said([Reply(fault="empty")], make_ask(), wire, clock=clock)
    assert (answer.text, answer.stopped, clock.waits) == ("", "", [])


@pytest.mark.sample(every=2)
@each_wire
def test_where_nothing_comes_it_is_asked_again_and_the_address_is_named(wire: str, make_ask: Any) -> None:
    assert said([Reply(fault="blank"), Reply("there")], make_ask(), wire)[0].text == "there"
    with raises_with(RunnerError, "`base_url`"):
        said([Reply(fault="blank")] * 2, make_ask(), wire, retries=1)


@pytest.mark.sample(every=2)
@each_wire
def test_a_page_is_no_answer(wire: str, make_ask: Any, monkeypatch: Any) -> None:
    def page(_self: Provider, _method: str, handler: Any) -> None:
        handler.body()
        handler.send_body(Body("text/html", (b"<!doctype html><title>Welcome</title>",), streamed=False), None)

    monkeypatch.setattr(WIRES[wire][0], "handle", page)
    with raises_with(RunnerError, "/v1"):
        said([], make_ask(), wire)


@pytest.mark.sample(every=2)
@each_wire
def test_an_answer_that_never_comes_is_left_when_the_time_is_up(wire: str, make_ask: Any) -> None:
    answer, _ = said([Reply(fault="hang")], make_ask(limits=Limits(seconds=0.05)), wire)
    assert (answer.text, answer.stopped, answer.usage.calls) == ("", "0.05 of 0.05 seconds are spent", 0)


@pytest.mark.long
@pytest.mark.parametrize("wire", ["anthropic", "google"])
def test_a_provider_that_is_silent_is_given_up(wire: str, make_ask: Any) -> None:
    with pytest.raises(RunnerError, match="cannot be reached"):
        said([Reply(fault="hang")], make_ask(), wire, timeout_seconds=1, retries=0)


@pytest.mark.sample(every=2)
@each_wire
def test_an_address_where_nobody_listens_is_asked_again_and_reported(wire: str, make_ask: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        clock = Clock()
        with raises_with(RunnerError, "address"):
            chat(url, WIRES[wire][1], clock=clock, retries=1)(make_ask())
    assert len(clock.waits) == 1


class RefusedError(Exception):
    """An error as the providers' libraries raise them."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status_code = status
        self.response = type("Response", (), {"headers": dict(headers or {})})()


FIXES = {401: "key", 403: "key", 404: "`model`", 402: "account", 413: "longer context", 400: "settings"}


@each_row("status", FIXES)
def test_what_will_not_pass_is_refused_at_once_with_its_fix(status: int) -> None:
    fault = fault_of(RefusedError(status, "as the provider says it"))
    assert not fault.again
    assert fault.text is None
    assert FIXES[status] in fault.fix
    assert "as the provider says it" in fault.what


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("wire", ["chat completions", "anthropic", "google", "ollama"])
@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_is_known_over_the_wire(wire: str, status: int, make_ask: Any, monkeypatch: Any) -> None:
    def refuse(self: Provider, _method: str, handler: Any) -> None:
        handler.body()
        handler.send(status, self.error(status, "no"))

    monkeypatch.setattr(WIRES[wire][0], "handle", refuse)
    clock = Clock()
    # The usual key is not sent to an address of the user's own.
    own = ["`api_key_env`"] if status == 401 else []
    with raises_with(RunnerError, FIXES[status], *own, said=f"({status})"):
        said([], make_ask(), wire, clock=clock)
    assert clock.waits == []


def test_a_wait_is_reported_with_its_reason(make_ask: Any) -> None:
    rows: list[dict[str, Any]] = []
    said([Reply(fault="500"), Reply("late")], make_ask(notice=rows.append))
    assert ["waits 1 s" in row["tool"] for row in rows if "500" in row["tool"]] == [True]


def test_an_assignment_that_is_too_long_is_refused_as_that() -> None:
    from langchain_core.exceptions import ContextOverflowError

    for error in (
        ContextOverflowError("prompt is too long: 300000 tokens"),
        RefusedError(400, "the request exceeds the available context size (4096 tokens)"),
    ):
        fault = fault_of(error)
        assert not fault.again
        assert "longer context" in fault.fix


@pytest.mark.parametrize(("value", "seconds"), [("7", 7.0), ("0.5", 0.5), ("-3", 0.0), ("soon", None), ("", 40.0)])
def test_both_forms_of_retry_after_are_read(value: str, seconds: float | None) -> None:
    # The date is made here: workers must find tests of the same names, and some come late.
    value = value or format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    wait = fault_of(RefusedError(429, "busy", {"retry-after": value})).wait_seconds
    assert wait is None if seconds is None else wait == pytest.approx(seconds, abs=5)


def test_googles_word_for_a_wait_is_read() -> None:
    error = RefusedError(429, "{'details': [{'@type': 'RetryInfo', 'retryDelay': '34s'}]}")
    assert fault_of(error).wait_seconds == 34


def test_an_error_in_the_middle_of_a_stream_passes() -> None:
    class APIError(Exception):
        status_code = 200

    assert fault_of(APIError("overloaded")).again
    assert fault_of(CutError("cut", "")).again


def test_what_nobody_knows_is_refused_and_named() -> None:
    fault = fault_of(KeyError("choices"))
    assert (fault.again, fault.text) == (False, None)
    assert "KeyError" in fault.what


ENDS: Mapping[str, tuple[AIMessage, bool]] = {
    "stopped": (AIMessage("x", response_metadata={"model_provider": "openai", "finish_reason": "stop"}), False),
    "at its length": (AIMessage("x", response_metadata={"model_provider": "openai", "finish_reason": "length"}), False),
    "without an end": (AIMessage("x", response_metadata={"model_provider": "openai"}), True),
    "a call without an end": (
        AIMessage("", tool_calls=[{"name": "a", "args": {}, "id": "1"}], response_metadata={"model_provider": "x"}),
        True,
    ),
    "nothing": (AIMessage("", response_metadata={"model_provider": "openai"}), False),
    "a model that says nothing of itself": (AIMessage("x"), False),
}


@each_row("name", ENDS)
def test_an_answer_without_an_end_is_half(name: str) -> None:
    message, cut = ENDS[name]
    assert is_cut(message) is cut


def test_no_wait_goes_beyond_the_time_that_is_left(make_ask: Any) -> None:
    clock = Clock()
    answer, _ = said([Reply(fault="429", retry_after="30")], make_ask(limits=Limits(seconds=5)), clock=clock)
    assert (clock.waits, answer.stopped) == ([5.0], "5 of 5 seconds are spent")
    assert MAX_WAIT_SECONDS >= 30
