"""A provider of models on this machine, which answers what a script says, and keeps every paid call."""

import json
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

ASK: Final = "X-Ask"
"""The header in which a scripted agent names its ask: `<run> <attempt>.<turn>-<role>-<reask>`."""
_PROMPT: Final = {
    "task": re.compile(r"^# Assignment (\S+)$", re.MULTILINE),
    "role": re.compile(r"^- You are: (\S+)$", re.MULTILINE),
    "attempt": re.compile(r"^- Attempt: (\d+) of", re.MULTILINE),
}


class Call(NamedTuple):
    """One paid call.

    Args:
        run: The run; a chat model, which is not told it, has the first run of its task.
        ask: Which answer it is for: `<attempt>.<turn>-<role>-<reask>`.
        part: 0 for the first call of an answer; a model with tools makes more of them.
        began: When it came, in seconds since the epoch.
        ended: When its answer had been sent; 0 where nobody took it.
    """

    run: str
    ask: str
    part: int
    began: float
    ended: float = 0.0


class Provider(ThreadingHTTPServer):
    """Answers in the form of OpenAI, each call after some seconds.

    Args:
        seconds: How long a call takes.
    """

    daemon_threads = True
    request_queue_size = 100

    def __init__(self, seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seconds = seconds
        self._calls = dict[int, Call]()
        self._news = threading.Condition()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def address(self) -> str:
        """What goes into `base_url`."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def calls(self) -> list[Call]:
        """All calls until now, in the order in which they came."""
        with self._news:
            return [*self._calls.values()]

    def wait_for(self, holds: Callable[[Call], bool], seconds: float) -> Call | None:
        """Wait until there is a call for which something holds, and return it; None when it does not come."""
        end = time.monotonic() + seconds
        with self._news:
            while True:
                if found := next(filter(holds, self._calls.values()), None):
                    return found
                if not self._news.wait(end - time.monotonic()):
                    return None

    def note(self, number: int, call: Call) -> None:
        """Keep a call, or what became of it."""
        with self._news:
            self._calls[number] = call
            self._news.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: who asked was killed."""


class _Handler(BaseHTTPRequestHandler):
    server: Provider  # pyright: ignore[reportIncompatibleVariableOverride] - as the server makes it
    protocol_version = "HTTP/1.1"
    numbers = iter(range(10**9))

    def do_POST(self) -> None:
        began, number = time.time(), next(self.numbers)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        messages = body["messages"]
        call = _named(self.headers.get(ASK), messages, began)
        self.server.note(number, call)
        time.sleep(self.server.seconds)
        message = _said(call, body, messages)
        data = json.dumps(
            {
                "id": f"call-{number}",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()
        self.server.note(number, call._replace(ended=time.time()))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the standard library
        pass


def _named(header: str | None, messages: list[dict[str, Any]], began: float) -> Call:
    if header:
        run, ask = header.split()
        return Call(run, ask, 0, began)
    prompt = next(row["content"] for row in messages if row["role"] == "user")
    found = {name: pattern.search(prompt) for name, pattern in _PROMPT.items()}
    task, role, attempt = (match[1] if match else "?" for match in found.values())
    part = sum(row["role"] == "assistant" for row in messages)
    return Call(f"{task}.1", f"{attempt}.1-{role}-0", part, began)


_ENVELOPE: Final = """STATUS: READY_FOR_QA
TASK_ID: {task}
TASK: Write {task}
ASSIGNED_AGENT: builder
REPORTS_TO: orchestrator
INPUTS_USED: []
GATES_REQUIRED:
- GATE-TESTS
GATES_PASSED: []
EVIDENCE:
  screenshots: []
  a11y: []
  console: []
  reports: []
FAIL_REASONS: NONE
OUTPUT:
Done.
NEXT_ACTIONS:
1. orchestrator to go on
"""


def _said(call: Call, body: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a message: for a model with tools the file first and the answer then, for an agent a word."""
    task = call.run.rpartition(".")[0]
    if not body.get("tools"):
        return {"role": "assistant", "content": "good"}
    if call.part:
        return {"role": "assistant", "content": _ENVELOPE.format(task=task)}
    arguments = json.dumps({"path": f"src/{task}.txt", "text": "good\n"})
    function = {"name": "write_file", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"tool-{len(messages)}", "type": "function", "function": function}],
    }
