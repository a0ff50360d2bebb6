"""The sessions of one token are bounded, and those that are over do not count. The clock is the test's own."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import Message, Receive, Scope, Send

from interlock.server.http.bounds import Limits
from interlock.server.http.sessions import SessionGate

pytestmark = pytest.mark.anyio

LIMITS = Limits(sessions_of_token=2, session_idle_seconds=100)


class Stage:
    """A gate before a server that opens a session for each request without one."""

    def __init__(self) -> None:
        self.now = 0.0
        self.opened = 0
        self.status = 200
        self.hold: anyio.Event | None = None
        self.gate = SessionGate(self._serve, LIMITS, lambda: self.now)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: list[tuple[bytes, bytes]] = []
        if not any(name == b"mcp-session-id" for name, _ in scope["headers"]):
            self.opened += 1
            headers = [(b"Mcp-Session-Id", f"s{self.opened}".encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        if self.hold is not None:
            await self.hold.wait()
        await send({"type": "http.response.body", "body": b""})

    async def ask(self, token: str = "t1", method: str = "POST", **headers: str) -> int:
        """Send a request with this token, and return the status."""
        sent: list[Message] = []

        async def receive() -> Message:
            raise AssertionError("the gate reads no body")

        async def send(message: Message) -> None:
            sent.append(message)

        named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        with bearing(token):
            await self.gate({"type": "http", "method": method, "path": "/mcp", "headers": named}, receive, send)
        return sent[0]["status"]


@contextmanager
def bearing(token: str) -> Generator[None]:
    """Let a request come in with a token."""
    access = AccessToken(token="", client_id="claude", subject=token, scopes=[])
    before = auth_context_var.set(AuthenticatedUser(access))
    try:
        yield
    finally:
        auth_context_var.reset(before)


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
async def full(stage: Stage) -> Stage:
    """Open all sessions that the token `t1` may have."""
    assert [await stage.ask(), await stage.ask()] == [200, 200]
    return stage


async def test_a_token_opens_so_many_sessions_and_another_token_its_own(stage: Stage) -> None:
    assert [await stage.ask() for _ in range(3)] == [200, 200, 429]
    assert stage.opened == 2
    assert [await stage.ask("t2") for _ in range(3)] == [200, 200, 429]


async def test_requests_of_open_sessions_and_of_the_newer_protocol_are_not_counted(full: Stage) -> None:
    assert await full.ask(mcp_session_id="s1") == 200
    assert await full.ask(mcp_protocol_version="2026-07-28") == 200
    assert await full.ask(mcp_protocol_version="2025-06-18") == 429


async def test_a_session_that_was_deleted_frees_its_slot(full: Stage) -> None:
    assert await full.ask("t2", "DELETE", mcp_session_id="s1") == 200
    assert await full.ask() == 429, "it is another token's"
    await full.ask(method="DELETE", mcp_session_id="s1")
    assert [await full.ask(), await full.ask()] == [200, 429]


async def test_a_session_that_is_not_found_any_more_frees_its_slot(full: Stage) -> None:
    full.status = 404
    await full.ask(mcp_session_id="s2")
    full.status = 200
    assert await full.ask() == 200


async def test_an_idle_session_frees_its_slot_and_one_in_use_does_not(full: Stage) -> None:
    full.now = 60
    await full.ask(mcp_session_id="s1")
    full.now = 99
    assert await full.ask() == 429
    full.now = 100
    assert [await full.ask(), await full.ask()] == [200, 429]


async def test_a_session_with_an_open_stream_is_in_use_however_long(full: Stage) -> None:
    full.hold = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: full.ask(method="GET", mcp_session_id="s1"))
        group.start_soon(lambda: full.ask(method="GET", mcp_session_id="s2"))
        await anyio.wait_all_tasks_blocked()
        full.now = 1000
        assert await full.ask() == 429
        full.hold.set()


async def test_sessions_that_are_being_opened_count(stage: Stage) -> None:
    stage.hold = anyio.Event()
    found: list[int] = []

    async def one() -> None:
        found.append(await stage.ask())

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(one)
        await anyio.wait_all_tasks_blocked()
        stage.hold.set()
    assert sorted(found) == [200, 200, 429, 429, 429]


async def test_a_session_that_was_refused_takes_no_slot(stage: Stage) -> None:
    stage.status = 400
    assert {await stage.ask() for _ in range(5)} == {400}
    stage.status = 200
    assert await stage.ask() == 200


async def test_what_is_no_request_passes(stage: Stage) -> None:
    seen: list[Any] = []

    async def lifespan(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    async def nothing(*_: Any) -> Any:
        return None

    await SessionGate(lifespan, LIMITS, lambda: stage.now)({"type": "lifespan"}, nothing, nothing)
    assert seen == ["lifespan"]
