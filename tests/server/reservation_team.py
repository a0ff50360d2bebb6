"""Several agents around one project, each with a client and a server of its own, in this process."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client

from interlock.server import make_server

Answer = dict[str, Any]


@asynccontextmanager
async def team(root: Path, *names: str) -> AsyncGenerator[list[Client]]:
    """Connect one client for each agent; they meet in the store alone."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(Client(make_server(root, caller=lambda name=name: name))) for name in names
        ]


async def call(client: Client, tool: str, **arguments: Any) -> Answer:
    """Call a tool that answers, with a refusal or without."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


def codes(answer: Answer) -> list[str]:
    """Return the codes of an answer's refusals; each says what to do."""
    assert all(each["message"] and each["fix"] and each["place"] for each in answer["errors"])
    return [each["code"] for each in answer["errors"]]
