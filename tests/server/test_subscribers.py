"""What one client subscribes to is bounded, takes nothing from another, and holds up nobody."""

from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from mcp.server.connection import Connection
from mcp.server.session import ServerSession

from interlock.server.mcp.subscribers import MAX_SUBSCRIPTIONS, MAX_URI_CHARS, Subscribers
from interlock.server.rules import CallError
from tests.server.stdio_process import server

pytestmark = pytest.mark.anyio

URI = "interlock://runs/r1/ticket"


class Wire:
    """The sending end of a connection: it notes what goes over it, or takes nothing."""

    def __init__(self, *, stuck: bool = False) -> None:
        self.sent: list[str] = []
        self.stuck = stuck
        self.connection = Connection.for_loop(cast("Any", self))

    async def notify(self, method: str, params: dict[str, Any], opts: object = None) -> None:
        """Send a notice."""
        if self.stuck:
            await anyio.sleep_forever()
        self.sent.append(params["uri"])

    @property
    def session(self) -> ServerSession:
        """The session of one more request over this connection."""
        return ServerSession(cast("Any", None), self.connection)


async def test_a_client_with_too_many_is_refused_and_nobody_loses_any() -> None:
    subscribers, first, second = Subscribers(), Wire(), Wire()
    subscribers.add(first.session, URI)
    for number in range(MAX_SUBSCRIPTIONS):
        subscribers.add(second.session, f"interlock://runs/{number}/ticket")
    with pytest.raises(CallError):
        subscribers.add(second.session, URI)
    subscribers.add(second.session, "interlock://runs/0/ticket")
    subscribers.remove(second.session, "interlock://runs/1/ticket")
    subscribers.add(second.session, URI)
    await subscribers.notify(URI)
    await subscribers.notify("interlock://runs/0/ticket")
    await subscribers.notify("interlock://runs/1/ticket")
    assert (first.sent, second.sent) == ([URI], [URI, "interlock://runs/0/ticket"])


async def test_an_address_that_is_none_of_a_resource_takes_no_space() -> None:
    with pytest.raises(CallError):
        Subscribers().add(Wire().session, "interlock://" + "x" * MAX_URI_CHARS)


async def test_a_connection_that_ended_is_notified_of_nothing_more() -> None:
    subscribers, wire = Subscribers(), Wire()
    subscribers.add(wire.session, URI)
    await wire.connection.exit_stack.aclose()
    await subscribers.notify(URI)
    assert wire.sent == []


async def test_a_client_that_takes_no_notice_keeps_the_others_waiting_once_at_most() -> None:
    subscribers, stuck, other = Subscribers(patience_seconds=0.01), Wire(stuck=True), Wire()
    subscribers.add(stuck.session, URI)
    subscribers.add(other.session, URI)
    with anyio.fail_after(30):
        await subscribers.notify(URI)
    stuck.stuck = False
    await subscribers.notify(URI)
    assert (stuck.sent, other.sent) == ([], [URI, URI])


@pytest.mark.long
def test_a_refused_subscription_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    params = {"uri": "interlock://" + "x" * MAX_URI_CHARS}
    with server(tmp_path) as wire:
        answer = wire.ask({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": params})
    assert answer["error"]["data"]["code"] == "MCP303"
    assert answer["error"]["data"]["fix"]
