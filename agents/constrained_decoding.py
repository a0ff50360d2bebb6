"""Constrained decoding: which provider is held to which form of the grammar, and how a request says so.

A held answer parses. It need not be true or even valid: that is for the rules and the gates.
"""

import json
import re
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, assert_never, cast

from interlock.agents.ask import Ask
from interlock.envelope.export import export
from interlock.envelope.export.language import Bounds, Known, envelope_language
from interlock.envelope.export.notation import longest_bytes
from interlock.envelope.protocol import DEFAULT_PROTOCOL

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Form: TypeAlias = Literal["gbnf", "guided", "lark-tool"]
"""`gbnf`: `grammar` of llama.cpp's server. `guided`: `structured_outputs` of vLLM, whose usual engine, xgrammar, reads
GBNF. `lark-tool`: a custom tool of OpenAI's Responses API."""

TOOL: Final = "envelope"
"""The name of the custom tool that takes the answer."""

BOUNDS: Final = Bounds(chars=400, lines=60, items=24)
"""What an answer may hold when nothing is said: more than a model that finds an end needs."""

LOCAL_BOUNDS: Final = Bounds(chars=100, lines=4, items=4, parts=5, part_chars=32)
"""What a small model on this machine may write: a page of text at most, in any alphabet."""

_SERVERS: Final[Mapping[str, Form]] = {"llamacpp": "gbnf", "vllm": "guided"}
"""What a server calls itself in its list of models (`owned_by`), and the form that it takes."""

_CUSTOM_TOOLS: Final = re.compile(r"gpt-(?!5-chat)([5-9]|[1-9][0-9])\b", re.ASCII)
"""The models of OpenAI that know custom tools with grammars: from GPT-5 on."""

_PROBE_SECONDS: Final = 5
_PROBE_BYTES: Final = 1_000_000


def form_for(provider: str, model: str, base_url: str = "", *, key: str = "") -> Form | None:
    """Return the form that a model can be held to; None: it is asked plainly.

    A server behind a `base_url` of the user's own is asked who it is, with the `key` that it wants to see.
    """
    if provider == "local":
        return "gbnf"
    if provider != "openai":
        return None
    if base_url:
        return _SERVERS.get(_owner(base_url, key))
    return "lark-tool" if _CUSTOM_TOOLS.match(model) else None


def _owner(base_url: str, key: str) -> str:
    """Return what a server calls itself in its list of models; empty when it does not say."""
    try:
        request = urllib.request.Request(f"{base_url.rstrip('/')}/models")  # noqa: S310 - the user's own
        if key:
            # Not sent on to where the server may redirect to.
            request.add_unredirected_header("Authorization", f"Bearer {key}")
        with urllib.request.urlopen(request, timeout=_PROBE_SECONDS) as answer:  # noqa: S310
            rows = json.loads(answer.read(_PROBE_BYTES))["data"]
            return str(rows[0]["owned_by"])
    except (OSError, HTTPException, ValueError, LookupError, TypeError):
        # Whoever does not list its models is a server that we know no grammar of; whether it works at all is seen
        # when it is asked.
        return ""


def constraint(form: Form, ask: Ask, bounds: Bounds = BOUNDS) -> dict[str, Any]:
    """Return what a request must say so that the answer to an ask is an envelope: arguments for `ChatOpenAI.bind`.

    TASK_ID, TASK, ASSIGNED_AGENT, REPORTS_TO and GATES_REQUIRED are fixed, STATUS is one that the role may write, and
    GATES_PASSED holds required gates. The rest is the model's.
    """
    known = _known(ask)
    dialect = "lark" if form == "lark-tool" else "gbnf"
    grammar = export(
        dialect,
        ask.protocol or DEFAULT_PROTOCOL,
        agent=known.agent,
        task_id=known.task_id,
        task=known.task,
        gates=known.gates,
        bounds=bounds,
    )
    match form:
        case "gbnf":
            return {"extra_body": {"grammar": grammar}}
        case "guided":
            return {"extra_body": {"structured_outputs": {"grammar": grammar}}}
        case "lark-tool":
            tool = {
                "type": "custom",
                "name": TOOL,
                "description": "Takes your whole answer: the envelope as your contract describes it.",
                "format": {"type": "grammar", "syntax": "lark", "definition": grammar},
            }
            choice = {"type": "custom", "name": TOOL}
            return {"tools": [tool], "tool_choice": choice, "parallel_tool_calls": False}
        case _:
            assert_never(form)


def answer_text(form: Form, message: "BaseMessage") -> str:
    """Return the answer out of the message that a constrained request brought; empty when it holds none."""
    if form != "lark-tool":
        return str(message.text)
    calls = cast("list[dict[str, Any]]", getattr(message, "tool_calls", []))
    return next((str(call["args"].get("__arg1", "")) for call in calls if call["name"] == TOOL), "")


def longest_answer(ask: Ask, bounds: Bounds = BOUNDS) -> int:
    """Return how many tokens the longest answer to an ask can have: a token stands for at least one byte."""
    return int(longest_bytes(envelope_language(ask.protocol or DEFAULT_PROTOCOL, _known(ask), bounds)))


def _known(ask: Ask) -> Known:
    return Known(ask.role, ask.task_id, ask.task or None, ask.required)
