"""Anthropic on loopback: messages, whole and streamed."""

from collections.abc import Iterator, Mapping
from typing import Any

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

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


class Anthropic(Provider):
    """A server of `POST /v1/messages`."""

    def serves(self, path: str) -> bool:
        return path.endswith("/v1/messages")

    def tools_of(self, body: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(str(tool.get("name")) for tool in objects(body.get("tools")))

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": _ERRORS.get(status, "api_error"), "message": message}}

    def aside(self, method: str, path: str) -> dict[str, Any] | None:
        if path.endswith("/count_tokens"):
            return {"input_tokens": 11}
        return {} if method == "HEAD" else None

    def answer(self, request: Request, reply: Reply) -> Body:
        blocks = self._blocks(reply)
        message: dict[str, Any] = {
            "id": self.new_id("msg"),
            "type": "message",
            "role": "assistant",
            "model": request.json["model"],
            "content": blocks,
            "stop_reason": "max_tokens" if reply.fault == "length" else "tool_use" if reply.tool_calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": reply.usage[0], "output_tokens": reply.usage[1]},
        }
        if request.json.get("stream"):
            return events(list(_stream(message, reply)), named=True)
        return whole(message)

    def _blocks(self, reply: Reply) -> list[dict[str, Any]]:
        text = [{"type": "text", "text": reply.text}] if reply.text or not reply.tool_calls else []
        calls = [
            {"type": "tool_use", "id": self.new_id("toolu"), "name": name, "input": dict(arguments(given))}
            for name, given in reply.tool_calls
        ]
        return [*text, *calls]


def _stream(message: Mapping[str, Any], reply: Reply) -> Iterator[dict[str, Any]]:
    begun = {**message["usage"], "output_tokens": 1}
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "usage": begun}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            yield {"type": "content_block_start", "index": index, "content_block": {**block, "text": ""}}
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        else:
            yield {"type": "content_block_start", "index": index, "content_block": {**block, "input": {}}}
            given = pieces(written(reply, block["input"]))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in given]
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": message["usage"]}
    yield {"type": "message_stop"}
