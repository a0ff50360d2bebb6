"""Google's Gemini API on loopback: generateContent and streamGenerateContent."""

from collections.abc import Mapping
from typing import Any

from tests.agents.providers.base import Body, Provider, Reply, Request, arguments, events, objects, pieces, whole

_ERRORS = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}


class Google(Provider):
    """A server of `POST …/models/MODEL:generateContent` and `:streamGenerateContent`."""

    def serves(self, path: str) -> bool:
        return path.endswith((":generateContent", ":streamGenerateContent"))

    def tools_of(self, body: Mapping[str, Any]) -> tuple[str, ...]:
        rows = [each for tool in objects(body.get("tools")) for each in objects(tool.get("functionDeclarations"))]
        return tuple(str(row.get("name")) for row in rows)

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"error": {"code": status, "message": message, "status": _ERRORS.get(status, "INTERNAL")}}

    def aside(self, method: str, path: str) -> dict[str, Any] | None:
        return {"totalTokens": 11} if path.endswith(":countTokens") else None

    def answer(self, request: Request, reply: Reply) -> Body:
        calls = [{"functionCall": {"name": name, "args": dict(arguments(given))}} for name, given in reply.tool_calls]
        model = request.path.partition("/models/")[2].partition(":")[0]
        if ":streamGenerateContent" in request.path:
            parts = [[{"text": piece}] for piece in pieces(reply.text)] + ([calls] if calls else [])
            rows = [_row(model, reply, part, last=False) for part in parts]
            return events([*rows, _row(model, reply, [], last=True)])
        return whole(_row(model, reply, [*([{"text": reply.text}] if reply.text else []), *calls], last=True))


def _row(model: str, reply: Reply, parts: list[dict[str, Any]], *, last: bool) -> dict[str, Any]:
    read, written = reply.usage
    candidate = {
        "content": {"role": "model", "parts": parts},
        "index": 0,
        **({"finishReason": "MAX_TOKENS" if reply.fault == "length" else "STOP"} if last else {}),
    }
    row: dict[str, Any] = {"modelVersion": model, "responseId": "scripted", "candidates": [candidate]}
    if last:
        usage = {"promptTokenCount": read, "candidatesTokenCount": written, "totalTokenCount": read + written}
        row["usageMetadata"] = usage
    return row
