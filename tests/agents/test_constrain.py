"""Constrained decoding: who is held to what, and that a request says so in the provider's own words."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from interlock.agents import Ask
from interlock.agents.constrained_decoding import (
    BOUNDS,
    LOCAL_BOUNDS,
    TOOL,
    Form,
    answer_text,
    constraint,
    form_for,
    longest_answer,
)
from interlock.agents.runners.llama import CONTEXT
from interlock.envelope import render
from interlock.envelope.outcomes import outcomes
from interlock.envelope.protocol import DEFAULT_PROTOCOL, Protocol, Role
from interlock.envelope.template import example
from tests.agents.conftest import AskMaker
from tests.agents.providers.base import Reply
from tests.agents.providers.openai import OpenAI
from tests.envelope.grammars import by_llguidance
from tests.table import each_row

FORMS: tuple[Form, ...] = ("gbnf", "guided", "lark-tool")
BUILT = example("visual-qa", outcome="pass")


@pytest.fixture
def ask(make_ask: AskMaker) -> Ask:
    return make_ask(role="visual-qa", step="qa", task_id=BUILT.task_id, task=BUILT.task, required=BUILT.gates_required)


def grammar_of(form: Form, options: Mapping[str, Any]) -> str:
    if form == "lark-tool":
        return options["tools"][0]["format"]["definition"]
    body = options["extra_body"]
    return body["grammar"] if form == "gbnf" else body["structured_outputs"]["grammar"]


def engine(options: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return the reader of what a request says."""
    return by_llguidance(grammar_of("lark-tool", options))


@each_row(
    ("provider", "model", "form"),
    [
        ("local", "packaged", "gbnf"), ("openai", "gpt-5", "lark-tool"), ("openai", "gpt-5.2-mini", "lark-tool"),
        ("openai", "gpt-5-codex", "lark-tool"), ("openai", "gpt-6", "lark-tool"), ("openai", "gpt-5-chat-latest", None),
        ("openai", "gpt-4.1", None), ("openai", "gpt-50x", None), ("openai", "o3", None), ("anthropic", "gpt-5", None),
        ("ollama", "gemma3", None),
    ],
)  # fmt: skip
def test_a_provider_is_held_to_the_form_that_it_knows(provider: str, model: str, form: Form | None):
    assert form_for(provider, model) == form


class Listing(OpenAI):
    """A server that lists one model."""

    models: Any = None

    def aside(self, method: str, path: str) -> dict[str, Any] | None:
        return self.models if path.endswith("/models") else None


@each_row(
    ("models", "form"),
    [
        ({"object": "list", "data": [{"id": "m", "owned_by": "llamacpp"}]}, "gbnf"),
        ({"object": "list", "data": [{"id": "m", "owned_by": "vllm"}]}, "guided"),
        ({"object": "list", "data": [{"id": "m", "owned_by": "somebody"}]}, None),
        ({"object": "list", "data": [{"id": "m"}]}, None),
        ({"object": "list", "data": []}, None),
        ({"data": "none"}, None),
    ],
)
def test_a_server_of_ones_own_is_asked_who_it_is(models: Any, form: Form | None):
    with Listing([]) as server:
        server.models = models
        assert form_for("openai", "gpt-5", server.url) == form


class Elsewhere(Listing):
    """A server that sends whoever asks for its models to another one."""

    to = ""

    def handle(self, method: str, handler: Any) -> None:
        handler.body()
        self.others.append(str(handler.headers["Authorization"]))
        handler.send(302, {}, {"Location": f"{self.to}/models"})


def test_a_key_is_not_sent_on_to_where_a_server_redirects():
    with Listing([]) as other, Elsewhere([]) as server:
        other.models = {"data": [{"id": "m", "owned_by": "vllm"}]}
        server.to = other.url
        heard: list[str] = []
        handle = other.handle
        other.handle = lambda method, handler: (heard.append(str(handler.headers)), handle(method, handler))[1]
        assert form_for("openai", "m", server.url, key="k-123") == "guided"
    assert (server.others, len(heard)) == (["Bearer k-123"], 1)
    assert "k-123" not in heard[0]


def test_a_server_that_cannot_be_asked_is_held_to_nothing():
    with Listing([]) as server:
        gone = server.url
    assert form_for("openai", "any", gone) is None


@pytest.mark.parametrize("form", FORMS)
def test_what_the_ask_says_is_in_the_grammar_and_what_the_role_may_not_say_is_not(form: Form, ask: Ask):
    grammar = grammar_of(form, constraint(form, ask))
    for text in (ask.task_id, ask.task, ask.role, *ask.required, "QA_IN_PROGRESS", "BLOCKED"):
        assert text in grammar
    for text in ("READY_FOR_REVIEW", "APPROVED", "code-reviewer"):
        assert text not in grammar


def test_an_ask_with_a_roster_of_its_own_is_held_to_that(make_ask: AskMaker):
    protocol = Protocol(roles={"tester": Role("tester", "build", hands_over=True)})
    grammar = constraint("gbnf", make_ask(role="tester", protocol=protocol))["extra_body"]["grammar"]
    assert '"ASSIGNED_AGENT: " ("tester")' in grammar
    assert "READY_FOR_QA" in grammar


@pytest.mark.parametrize("role", [role.name for role in DEFAULT_PROTOCOL.roles.values() if role.kind != "orchestrator"])
def test_every_good_answer_of_a_role_can_be_given_under_the_bounds_of_a_local_model(role: str, make_ask: AskMaker):
    for outcome in outcomes(DEFAULT_PROTOCOL.roles[role]):
        row = example(role, outcome=outcome.name)
        known = make_ask(role=role, task_id=row.task_id, task=row.task, required=row.gates_required)
        assert engine(constraint("lark-tool", known, LOCAL_BOUNDS))(render(row)), outcome.name


def test_an_engine_that_reads_lark_as_openai_does_accepts_a_good_answer_and_no_other_task(ask: Ask):
    reads = engine(constraint("lark-tool", ask))
    assert reads(render(BUILT))
    assert not reads(render(replace(BUILT, task_id="OTHER-1")))


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
def test_openai_is_made_to_answer_through_the_tool_and_the_answer_is_read_from_it(streaming: bool, ask: Ask):
    text = render(BUILT)
    with OpenAI([Reply(tool_calls=[(TOOL, text)])]) as server:
        model = ChatOpenAI(
            model="gpt-5", base_url=server.url, api_key=SecretStr("none"), max_retries=0, streaming=streaming
        )
        message = model.bind(**constraint("lark-tool", ask)).invoke("Answer.")
    asked = server.requests[0]
    assert asked.path.endswith("/responses")
    assert asked.json["tool_choice"] == {"type": "custom", "name": TOOL}
    assert asked.json["tools"] == constraint("lark-tool", ask)["tools"]
    assert answer_text("lark-tool", message) == text


@pytest.mark.parametrize(("form", "key"), [("gbnf", "grammar"), ("guided", "structured_outputs")])
def test_a_server_gets_the_grammar_beside_the_messages(form: Form, key: str, ask: Ask):
    with OpenAI([Reply(text="STATUS: …")]) as server:
        model = ChatOpenAI(model="m", base_url=server.url, api_key=SecretStr("none"), max_retries=0)
        message = model.bind(**constraint(form, ask)).invoke("Answer.")
    assert server.requests[0].path.endswith("/chat/completions")
    assert server.requests[0].json[key] == constraint(form, ask)["extra_body"][key]
    assert answer_text(form, message) == "STATUS: …"


def test_a_message_without_the_tool_holds_no_answer():
    assert answer_text("lark-tool", AIMessage("I would rather talk.")) == ""
    assert answer_text("lark-tool", AIMessage("", tool_calls=[{"name": "other", "args": {}, "id": "1"}])) == ""


def test_the_longest_answer_of_a_local_model_leaves_room_for_a_prompt(ask: Ask):
    longest = longest_answer(ask, LOCAL_BOUNDS)
    assert len(render(BUILT).encode()) < longest < CONTEXT - 8000
    assert longest < longest_answer(ask, BOUNDS)


def test_a_grammar_is_small_enough_to_be_sent_with_each_ask(ask: Ask):
    for form in FORMS:
        assert len(json.dumps(constraint(form, ask))) < 16_000
