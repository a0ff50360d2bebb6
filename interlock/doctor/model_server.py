"""A model on loopback that makes the calls that it is given, in the words of three providers; it stands for no model.

An agent takes it for its own, so that it can be seen what it asks before it acts.
"""

import json
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, TypeAlias, cast

Call: TypeAlias = tuple[str, Mapping[str, Any] | str]
"""The name of a tool and its arguments; a text for a tool that takes one."""

_FEW_TOOLS: Final = 4
"""What asks with fewer is no turn: agents have titles made and the like."""
_USED: Final = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


@contextmanager
def model_server(calls: Sequence[Call]) -> Generator[str]:
    """Serve a model that makes these calls in order, and then says that it is done; yield its address."""
    left, lock = [*calls], threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            tools = cast("list[Any]", body.get("tools") or [{}])
            is_turn = len(tools[0].get("functionDeclarations") or tools) >= _FEW_TOOLS
            with lock:
                call = left.pop(0) if is_turn and left else None
            rows = [*_events(self.path, body, call, f"c{len(left)}", "Done." if is_turn else '{"title": "A trial"}')]
            events = (f"event: {row['type']}\n" if "type" in row else "" for row in rows)
            whole = "".join(f"{event}data: {json.dumps(row)}\n\n" for event, row in zip(events, rows, strict=True))
            self._send(200 if rows else 404, "text/event-stream", whole.encode())

        def do_GET(self) -> None:
            self._send(404, "application/json", b"{}")

        do_HEAD = do_GET

        def _send(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(data if self.command == "POST" else b"")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is that of the base
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _events(path: str, body: Mapping[str, Any], call: Call | None, number: str, text: str) -> Iterator[dict[str, Any]]:
    """Yield the events of an answer, by the path of the request; none for a path that is not known."""
    name, given = call or ("", "")
    if "/messages" in path:
        block: dict[str, Any] = {"type": "tool_use", "id": number, "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
        if not call:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
        about = {"id": number, "type": "message", "role": "assistant", "model": body.get("model"), "usage": _USED}
        yield {"type": "message_start", "message": {**about, "content": []}}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        yield {"type": "message_delta", "delta": {"stop_reason": "tool_use" if call else "end_turn"}, "usage": _USED}
        yield {"type": "message_stop"}
    elif "/responses" in path:
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        own = (
            {"type": "custom_tool_call", "input": given} if isinstance(given, str) else {"arguments": json.dumps(given)}
        )
        item = {"type": "function_call", **own, "call_id": number, "name": name} if call else said
        yield {"type": "response.created", "response": {"id": number}}
        yield {"type": "response.output_item.done", "item": {"id": number, **item}}
        yield {"type": "response.completed", "response": {"id": number, "usage": _USED}}
    elif ":streamGenerateContent" in path:
        part = {"functionCall": {"name": name, "args": given}} if call else {"text": text}
        yield {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
