"""A tool of an MCP server, called for the pages of its answer: over standard input and output, or over HTTP.

A call that reads is repeated where that can help: the server asked for a pause (429), was busy (502 to 504), or the
connection broke. One that writes is not: whether it arrived is looked up by its caller.
"""

import json
import logging
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, TextIO, cast

import anyio
import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, CallToolResult, TextContent

from interlock.core.process import environment_of
from interlock.core.text import one_line, shown, whole
from interlock.gates.config import SourceCall, SourceConfig
from interlock.graph.errors import SOURCE_ANSWER, SOURCE_BUSY, SOURCE_LOGIN, SOURCE_SETUP, SOURCE_UNKNOWN, GraphError
from interlock.graph.sources.answer_path import found

SECONDS: Final = 45.0
"""How long a call takes at most, with its repetitions; the clients that wait least give up after 60 seconds."""
MAX_PAGES: Final = 100
MAX_BYTES: Final = 16 * 1024 * 1024
"""How much one answer may hold."""
_TRIES: Final = 3
_PAUSE_SECONDS: Final = 1.0
_BUSY: Final = frozenset({429, 502, 503, 504})
_TAIL_CHARS: Final = 400

# What the library logs about a connection is said by the errors here.
logging.getLogger("mcp.client").addHandler(logging.NullHandler())
logging.getLogger("mcp.client").propagate = False


class _Refused(Exception):  # noqa: N818 - what the server said, on its way to `_fault`
    """A tool answered with an error."""


class _Http:
    """What the server said over HTTP last; the library says of a refusal only that it was one."""

    status = 0
    pause_seconds = 0.0

    async def note(self, response: httpx2.Response) -> None:
        """Take a response."""
        self.status = response.status_code
        self.pause_seconds = float(whole(response.headers.get("retry-after"))) or _PAUSE_SECONDS


def call(
    root: Path, name: str, source: SourceConfig, asked: SourceCall, values: Mapping[str, str], *, writes: bool = False
) -> list[Any]:
    """Call a tool of a source, and return what it answered: a JSON value for each page.

    Args:
        root: Where the source's program runs.
        name: The source's name, for messages.
        source: Where the server is.
        asked: The tool, its arguments, and where the next page is named.
        values: What `{…}` in the arguments is: `id` and `text`.
        writes: Whether the call changes something, so that it is made once.

    Raises:
        GraphError: `SRC101` the server cannot be started or reached, `SRC102` it wants another key, `SRC103` it does
            not have that, `SRC104` it gave no answer in time, or refused, `SRC105` the answer is too large.
    """

    async def tried() -> list[Any]:
        with anyio.fail_after(SECONDS) as scope:
            for left in reversed(range(1 if writes else _TRIES)):
                seen = _Http()
                with TemporaryFile("w+", errors="replace") as said:
                    try:
                        async with _client(root, source, seen, said) as client:
                            return [page async for page in _pages(client, asked, values)]
                    except Exception as error:
                        fault, pause = _fault(name, source, error, seen, said)
                        # A pause that lasts longer than the call may is said, and not waited for.
                        if not left or pause is None or anyio.current_time() + pause > scope.deadline:
                            raise fault from error
                await anyio.sleep(pause)
        raise AssertionError("the last try returns or raises")

    try:
        return anyio.run(tried)
    except TimeoutError as error:
        fix = f"See what it does: `interlock source show {name}:ID`."
        raise GraphError(f"the source {name} gave no answer within {SECONDS:.0f} s", fix, SOURCE_BUSY) from error


@asynccontextmanager
async def _client(root: Path, source: SourceConfig, seen: _Http, said: TextIO) -> AsyncGenerator[Client]:
    if source.command is not None:
        program, *arguments = source.command
        # With a slash it is found from the root, as every command of the configuration.
        program = str(root / program) if "/" in program else program
        env = environment_of(source.pass_env)
        started = StdioServerParameters(command=program, args=arguments, env=env, cwd=root)
        async with Client(stdio_client(started, said)) as client:
            yield client
        return
    key = os.environ.get(source.api_key_env, "") if source.api_key_env else ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=SECONDS, event_hooks={"response": [seen.note]}) as http,
        Client(streamable_http_client(source.url, http_client=http, max_sse_event_size=MAX_BYTES)) as client,
    ):
        yield client


async def _pages(client: Client, asked: SourceCall, values: Mapping[str, str]) -> AsyncIterator[Any]:
    """Yield the pages of an answer: while there is a cursor, or, where the arguments count them, until none is new."""
    cursor, last, size = "", None, 0
    counts = "{page}" in json.dumps(asked.arguments)
    for number in range(1, MAX_PAGES + 1):
        given = filled(asked.arguments, {**values, "cursor": cursor, "page": str(number)})
        result = await client.call_tool(asked.tool, given)
        page, length = _read(result)
        size += length
        if size > MAX_BYTES:
            fix = "Have the tool return less: its arguments are in the table of the source."
            raise GraphError(f"`{asked.tool}` answered with more than {MAX_BYTES} bytes", fix, SOURCE_ANSWER)
        # A server that does not know of pages answers each with the first one.
        if not page or page == last:
            return
        yield page
        cursor, last = str(next(found(page, asked.next), "") or "") if asked.next else "", page
        if not (cursor or counts):
            return


def _read(result: CallToolResult) -> tuple[Any, int]:
    """Return the JSON value of a result, and how long its text is; a text that is no JSON is `{"text": …}`."""
    text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
    if result.is_error:
        raise _Refused(text)
    try:
        return json.loads(text), len(text)
    except (ValueError, RecursionError):
        # Servers that give a structured answer give it as text, too; this one did not.
        return result.structured_content or ({"text": text} if text else None), len(text)


def filled(value: Any, values: Mapping[str, str]) -> Any:
    """Return arguments with what `{…}` in their texts is; an empty cursor leaves its argument out.

    Raises:
        GraphError: `SRC103` the id has to be a number, and is none.
    """
    if isinstance(value, Mapping):
        rows = cast("Mapping[str, Any]", value).items()
        return {key: filled(item, values) for key, item in rows if item != "{cursor}" or values.get("cursor")}
    if isinstance(value, list):
        return [filled(item, values) for item in cast("list[Any]", value)]
    if value == "{page}":
        return int(values["page"])
    if value == "{number}":
        if not (values["id"].isascii() and values["id"].isdecimal()):
            message = f"{shown(values['id'], 80)} is no number, and the tickets of this source have numbers"
            raise GraphError(message, "Write the id as the tracker does.", SOURCE_UNKNOWN)
        return int(values["id"][:18])
    if isinstance(value, str):
        # In one go, so that what is put in is not looked through again.
        return re.sub(r"\{(\w+)\}", lambda each: values.get(each[1], each[0]), value)
    return value


# -- what went wrong ---------------------------------------------------------------------------------------------------


def _fault(
    name: str, source: SourceConfig, error: BaseException, seen: _Http, said: TextIO
) -> tuple[GraphError, float | None]:
    """Return the error of a call that failed, and after how many seconds it may be repeated, if that can help.

    The server's own words are shown, and decide nothing.
    """
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, GraphError):
        return error, None
    place, key, status = source.url or (source.command or ("",))[0], source.api_key_env, seen.status
    why, again = shown(str(error), 300) or type(error).__name__, f"Try it: `interlock source show {name}:ID`."
    closed = isinstance(error, MCPError) and error.code == CONNECTION_CLOSED
    if isinstance(error, _Refused) or (isinstance(error, MCPError) and not closed and status < 400):
        unset = [each for each in source.pass_env if not environment_of([each])]
        fix = f"Set {', '.join(unset)}, which `pass_env` names and nothing sets here." if unset else "Do what it says."
        return GraphError(f"the source {name} refused: {why}{_last_words(said)}", f"{fix} {again}", SOURCE_BUSY), None
    if status in (401, 403):
        fix = (
            f"Put a new token into {key}." if key else f"Name the variable with it: `api_key_env` in [sources.{name}]."
        )
        return GraphError(f"the source {name} refused the key (HTTP {status})", f"{fix} {again}", SOURCE_LOGIN), None
    if status == 404:
        fix = f"Correct `url` in [sources.{name}]."
        return GraphError(f"there is no MCP server at {place} (HTTP 404)", fix, SOURCE_SETUP), None
    if status >= 400:
        wait = f"Try again in {seen.pause_seconds:.0f} s." if status in _BUSY else f"Try again later. {again}"
        fault = GraphError(f"the source {name} failed (HTTP {status})", wait, SOURCE_BUSY)
        return fault, seen.pause_seconds if status in _BUSY else None
    if isinstance(error, (OSError, httpx2.ConnectError)):
        message = f"the server of the source {name} cannot be started or reached at {place}: {why}"
        fix = f"Correct `{'url' if source.url else 'command'}` in [sources.{name}], or start the server."
        return GraphError(message, fix, SOURCE_SETUP), None
    return GraphError(f"the source {name} gave no answer: {why}{_last_words(said)}", again, SOURCE_BUSY), _PAUSE_SECONDS


def _last_words(said: TextIO) -> str:
    """Return the end of a program's error output, for a message."""
    said.seek(0)
    # Servers of the MCP library draw a box around each traceback; the error itself is below it.
    last = one_line(" ".join(line for line in said if not set(line) & set("╭│╰")))[-_TAIL_CHARS:]
    return f"; its program said: {last}" if last else ""
