"""OpenAI on loopback: chat completions, and responses whole and streamed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tests.agents.providers.base import (
    Body,
    Provider,
    Reply,
    Request,
    arguments,
    events,
    objects,
    pieces,
    whole,
    written,
)

Calls: TypeAlias = Sequence[tuple[str, str, Mapping[str, Any] | str]]
"""Tool calls: id, name, arguments."""

_ID = "scripted"


SEARCH = "tool_search"
"""The tool with which a model finds tools that it was not offered at once."""


class OpenAI(Provider):
    """A server of `POST /v1/chat/completions` and `POST /v1/responses`.

    A tool call whose arguments are a text is one of a custom tool.
    """

    base = "/v1"

    def serves(self, path: str) -> bool:
        return path.endswith(("/chat/completions", "/responses"))

    def tools_of(self, body: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(_tool_name(tool) for tool in objects(body.get("tools")))

    def error(self, status: int, message: str) -> dict[str, Any]:
        kind = {429: "rate_limit_exceeded", 400: "invalid_request_error"}.get(status, "server_error")
        return {"error": {"message": message, "type": kind, "param": None, "code": kind}}

    def aside(self, method: str, path: str) -> dict[str, Any] | None:
        return {"object": "list", "data": []} if path.endswith("/models") else None

    def answer(self, request: Request, reply: Reply) -> Body:
        body = request.json
        calls = [(self.new_id("call"), name, given) for name, given in reply.tool_calls]
        if request.path.partition("?")[0].endswith("/responses"):
            rows = list(_response_events(body, reply, calls))
            return events(rows, named=True) if body.get("stream") else whole(rows[-1]["response"])
        return whole(_chat(body, reply, calls))


def _tool_name(tool: dict[str, Any]) -> str:
    """Return a tool's name; what the provider has built in is named by its type."""
    row: dict[str, Any] = tool.get("function") or tool.get("custom") or tool
    return str(row.get("name") or row["type"])


def _chat(body: Mapping[str, Any], reply: Reply, called: Calls) -> dict[str, Any]:
    calls = [_chat_call(reply, *call) for call in called]
    message = {"role": "assistant", "content": reply.text or None, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": _chat_end(reply), "logprobs": None}
    return {
        **_chat_head(body, "chat.completion"),
        "choices": [choice],
        "usage": _chat_usage(reply),
    }


def _chat_head(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{_ID}", "object": kind, "created": 1700000000, "model": body["model"]}


def _chat_end(reply: Reply) -> str:
    return "length" if reply.fault == "length" else "tool_calls" if reply.tool_calls else "stop"


def _chat_call(reply: Reply, call_id: str, name: str, given: Mapping[str, Any] | str) -> dict[str, Any]:
    call = {"id": call_id}
    if isinstance(given, str):
        return {**call, "type": "custom", "custom": {"name": name, "input": given}}
    return {**call, "type": "function", "function": {"name": name, "arguments": written(reply, arguments(given))}}


def _chat_usage(reply: Reply) -> dict[str, int]:
    read, written = reply.usage
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _response_events(body: Mapping[str, Any], reply: Reply, called: Calls) -> Iterator[dict[str, Any]]:
    """Give the events of a streamed response; the last one holds the response whole."""
    head: dict[str, Any] = {
        "id": f"resp_{_ID}",
        "object": "response",
        "created_at": 1700000000,
        "model": body["model"],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "top_p": 1.0,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
    }
    items = list(_response_items(reply, called))
    number = 0
    for kind, row in _response_steps(head, items):
        yield {"type": kind, "sequence_number": number, **row}
        number += 1
    read, written = reply.usage
    usage = {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }
    state, details = "completed", None
    if reply.fault == "length":
        state, details = "incomplete", {"reason": "max_output_tokens"}
    response = {**head, "status": state, "incomplete_details": details, "output": items, "usage": usage}
    yield {"type": f"response.{state}", "sequence_number": number, "response": response}


def _response_items(reply: Reply, called: Calls) -> Iterator[dict[str, Any]]:
    if reply.text or not reply.tool_calls:
        part: dict[str, Any] = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        yield {"type": "message", "id": "msg_0", "status": "completed", "role": "assistant", "content": [part]}
    for call_id, name, given in called:
        row = {"id": f"item_{call_id}", "call_id": call_id, "name": name, "status": "completed"}
        if isinstance(given, str):
            yield {**row, "type": "custom_tool_call", "input": given}
        elif name == SEARCH:
            # The client looks the tools up, and offers them as a namespace from then on.
            yield {**row, "type": "tool_search_call", "execution": "client", "arguments": dict(given)}
        else:
            space, _, own = name.rpartition("/")
            place = {"name": own, "namespace": space} if space else {}
            yield {**row, **place, "type": "function_call", "arguments": written(reply, arguments(given))}


def _response_steps(head: Mapping[str, Any], items: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    begun: dict[str, Any] = {**head, "status": "in_progress", "output": [], "usage": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for number, item in enumerate(items):
        place = {"output_index": number, "item_id": item["id"]}
        if item["type"] == "tool_search_call":
            yield "response.output_item.added", {"output_index": number, "item": {**item, "status": "in_progress"}}
            yield "response.output_item.done", {"output_index": number, "item": item}
            continue
        key = {"message": "content", "function_call": "arguments", "custom_tool_call": "input"}[item["type"]]
        blank: dict[str, Any] = {**item, "status": "in_progress", key: [] if key == "content" else ""}
        yield "response.output_item.added", {"output_index": number, "item": blank}
        if item["type"] == "message":
            (part,) = item["content"]
            inside = {**place, "content_index": 0}
            yield "response.content_part.added", {**inside, "part": {**part, "text": ""}}
            for piece in pieces(part["text"]):
                yield "response.output_text.delta", {**inside, "delta": piece, "logprobs": []}
            yield "response.output_text.done", {**inside, "text": part["text"], "logprobs": []}
            yield "response.content_part.done", {**inside, "part": part}
        else:
            event = f"response.{'function_call_arguments' if key == 'arguments' else 'custom_tool_call_input'}"
            for piece in pieces(item[key]):
                yield f"{event}.delta", {**place, "delta": piece}
            yield f"{event}.done", {**place, key: item[key]}
        yield "response.output_item.done", {"output_index": number, "item": item}
