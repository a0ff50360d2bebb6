"""Ollama on loopback: /api/chat, whole and as lines of JSON."""

import json
from collections.abc import Mapping
from typing import Any

from tests.agents.providers.base import Body, Provider, Reply, Request, arguments, objects, pieces, whole


class Ollama(Provider):
    """A server of `POST /api/chat`."""

    def serves(self, path: str) -> bool:
        return path.endswith("/api/chat")

    def tools_of(self, body: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(str(tool["function"]["name"]) for tool in objects(body.get("tools")))

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"error": message}

    def aside(self, method: str, path: str) -> dict[str, Any] | None:
        known: dict[str, dict[str, Any]] = {
            "/api/tags": {"models": []},
            "/api/version": {"version": "0.12.0"},
            "/api/show": {"capabilities": []},
        }
        return known.get(path)

    def answer(self, request: Request, reply: Reply) -> Body:
        model = str(request.json["model"])
        calls = [{"function": {"name": name, "arguments": dict(arguments(given))}} for name, given in reply.tool_calls]
        if request.json.get("stream", True):
            said = [_row(model, piece) for piece in pieces(reply.text)]
            called = [_row(model, "", calls)] if calls else []
            rows = [*said, *called, {**_row(model, ""), **_end(reply)}]
            return Body("application/x-ndjson", [json.dumps(row).encode() + b"\n" for row in rows], streamed=True)
        return whole({**_row(model, reply.text, calls), **_end(reply)})


def _row(model: str, text: str, calls: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
    return {"model": model, "created_at": "2026-01-01T00:00:00Z", "message": message, "done": False}


def _end(reply: Reply) -> dict[str, Any]:
    read, written = reply.usage
    return {
        "done": True,
        "done_reason": "length" if reply.fault == "length" else "stop",
        "total_duration": 2,
        "load_duration": 1,
        "prompt_eval_count": read,
        "prompt_eval_duration": 1,
        "eval_count": written,
        "eval_duration": 1,
    }
