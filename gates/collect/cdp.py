"""The Chrome DevTools Protocol over a pair of pipes: NUL-ended JSON, one connection, many sessions.

Pipes and not a port: no other user of the machine can speak to the browser, and it ends when its collector does.
"""

import json
import os
import select
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from interlock.core.errors import InterlockError
from interlock.gates.collect.errors import collector_error
from interlock.gates.errors import CollectorError

Params: TypeAlias = Mapping[str, Any]
Handler: TypeAlias = Callable[[str, str, dict[str, Any]], None]
"""Receives session id (empty for the browser), event name, parameters."""

_GONE = (
    "Session with given id not found",
    "Inspected target navigated or closed",
    "Invalid InterceptionId",
    "Invalid state for",
    "No target with given id",
)
"""Answers to commands that lost a race with a frame or request that is no more."""


class CdpError(InterlockError):
    """The browser refused a command."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "Collect the evidence again.")


class Connection:
    """A synchronous DevTools client: `call` waits for its answer and hands on every event that comes before it.

    The browser writes to `read_fd`; after `deadline`, of `time.monotonic()`, every wait ends in COL303. What the
    browser refuses is a `CdpError`, its end COL304.
    """

    def __init__(self, read_fd: int, write_fd: int, deadline: float) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._deadline = deadline
        self.handler: Handler = lambda _session, _method, _params: None
        """Called for each event. It may `post` and raise, never `call`."""
        self._buffer = bytearray()
        self._last_id = 0
        # A command may be larger than the pipe, as one with a whole engine in it.
        self._unsent: deque[memoryview] = deque()
        self._is_sending = False
        self._posted: dict[int, tuple[str, Callable[[], None]]] = {}
        self._asked: dict[int, str] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self.waiting_for = "the browser to start"

    def post(
        self, method: str, params: Params | None = None, session: str = "", then: Callable[[], None] = lambda: None
    ) -> None:
        """Send a command and do not wait; a refusal that is not a lost race is raised when it arrives.

        `session` is empty for the browser; `then` is called when the answer is there, a lost race included.
        """
        self._posted[self._send(method, params, session)] = method, then

    def call(self, method: str, params: Params | None = None, session: str = "") -> dict[str, Any]:
        """Send a command and return its result."""
        return self.answer(self.ask(method, params, session))

    def ask(self, method: str, params: Params | None = None, session: str = "") -> int:
        """Send a command whose answer is waited for later; return what `answer` takes."""
        number = self._send(method, params, session)
        self._asked[number] = method
        return number

    def answer(self, number: int) -> dict[str, Any]:
        """Wait for the answer to an `ask` and return its result."""
        while number not in self._answers:
            self._pump(self._deadline)
        method, answer = self._asked.pop(number), self._answers.pop(number)
        if "error" in answer:
            raise CdpError(f"{method}: {answer['error'].get('message', 'refused')}")
        return answer.get("result", {})

    def wait(self, done: Callable[[], bool], until: float | None = None) -> bool:
        """Hand on events until `done()`; return False when `until` (monotonic) came first."""
        while not done():
            if until is not None and time.monotonic() >= until:
                return False
            self._pump(self._deadline if until is None else min(until, self._deadline))
        return True

    def _send(self, method: str, params: Params | None, session: str) -> int:
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        self._unsent.append(memoryview(json.dumps(message).encode() + b"\0"))
        # While a full pipe is waited for, events are handed on, and a handler may post: then the outer call sends it,
        # after the rest of its own command.
        if not self._is_sending:
            self._is_sending = True
            try:
                self._send_all()
            finally:
                self._is_sending = False
        return self._last_id

    def _send_all(self) -> None:
        while self._unsent:
            try:
                rest = self._unsent[0][os.write(self._write_fd, self._unsent[0]) :]
            except BlockingIOError:
                self._pump(self._deadline, sending=True)
                continue
            except BrokenPipeError as error:
                raise _crashed() from error
            if rest:
                self._unsent[0] = rest
            else:
                self._unsent.popleft()

    def _pump(self, until: float, *, sending: bool = False) -> None:
        """Read once, at most until `until`, and dispatch every whole message."""
        now = time.monotonic()
        if now >= self._deadline:
            raise collector_error("COL303", f"The time was up while the collector waited for {self.waiting_for}.")
        writers = [self._write_fd] if sending else []
        ready, _, _ = select.select([self._read_fd], writers, [], max(0.0, until - now))
        if not ready:
            return
        chunk = os.read(self._read_fd, 1 << 20)
        if not chunk:
            raise _crashed()
        # Messages are as long as a screenshot: they come in many reads, and several in one.
        self._buffer += chunk
        *messages, rest = self._buffer.split(b"\0")
        self._buffer = rest
        for message in messages:
            self._dispatch(json.loads(message))

    def _dispatch(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            self.handler(message.get("sessionId", ""), message["method"], message.get("params", {}))
            return
        method, then = self._posted.pop(message["id"], ("", None))
        if then is None:
            self._answers[message["id"]] = message
            return
        reason = message["error"].get("message", "refused") if "error" in message else ""
        if reason and not reason.startswith(_GONE):
            raise CdpError(f"{method}: {reason}")
        then()


def _crashed() -> CollectorError:
    return collector_error("COL304", "The browser ended in the middle of the collection.")
