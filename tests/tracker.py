"""A tracker behind a real MCP server, in the shapes of three vendors, over standard input and output or HTTP.

`python -m tests.tracker SHAPE STATE` serves on standard input and output; with `--http` it prints its address. STATE is
a file of JSON that the tests read and write: `tickets` and `comments` by id, `faults` of the next calls, `calls`.

The shapes are those of mcp-atlassian (Jira and Confluence), of Linear's server and of GitHub's.
"""

import fcntl
import json
import os
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

PER_PAGE = 2
TOKEN = "token-of-the-tests"


class Tracker:
    """The state of a tracker in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def open(self) -> Generator[dict[str, Any]]:
        """Read the state, and write it at the end; one at a time."""
        with self.path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            state = json.loads(file.read())
            yield state
            file.seek(0)
            file.write(json.dumps(state).encode())
            file.truncate()

    def ticket(self, name: str) -> dict[str, Any]:
        """Return a ticket, unless the next fault of the tool comes first."""
        with self.open() as state:
            state["calls"] = state.get("calls", 0) + 1
            fault = state["tool_faults"].pop(0) if state.get("tool_faults") else ""
            found = state["tickets"].get(name)
        if fault == "die":
            sys.stderr.write("out of memory, of all things\n")
            os._exit(3)
        if fault == "crash":
            sys.stderr.write("│ a traceback │\nKeyError: 'TRACKER_URL'\n")
            raise KeyError("TRACKER_URL")
        if fault:
            raise ToolError(fault)
        if found is None:
            raise ToolError(f"HTTP 404: {name} does not exist or you do not have permission to see it")
        return found

    def comments(self, name: str) -> list[str]:
        """Return the comments on a ticket."""
        with self.open() as state:
            return state.setdefault("comments", {}).setdefault(name, [])

    def add(self, name: str, text: str) -> None:
        """Add a comment; a state may say that the answer gets lost."""
        with self.open() as state:
            state.setdefault("comments", {}).setdefault(name, []).append(text)
            die = state.pop("die_after_comment", False)
        if die:
            os._exit(3)


def page_of(rows: list[Any], first: int) -> list[Any]:
    return rows[first : first + PER_PAGE]


def jira(server: MCPServer[Any], tracker: Tracker) -> None:
    @server.tool()
    def jira_get_issue(issue_key: str, fields: str = "*all", comment_limit: int = 10) -> str:  # pyright: ignore[reportUnusedFunction]
        row = tracker.ticket(issue_key)
        comments = [{"id": str(at), "body": text} for at, text in enumerate(tracker.comments(issue_key))]
        shown = {"id": "1", "key": issue_key, "summary": row["title"], "description": row["text"]}
        status = {"name": row.get("state", "To Do"), "category": "new"}
        link = f"https://jira.example.org/browse/{issue_key}"
        return json.dumps({**shown, "status": status, "url": link, "comments": comments[:comment_limit]})

    @server.tool()
    def jira_add_comment(issue_key: str, comment: str) -> str:  # pyright: ignore[reportUnusedFunction]
        tracker.ticket(issue_key)
        tracker.add(issue_key, comment)
        return json.dumps({"id": "7", "body": comment})

    @server.tool()
    def confluence_get_page(page_id: str, convert_to_markdown: bool = True) -> str:  # pyright: ignore[reportUnusedFunction]
        row = tracker.ticket(page_id)
        content = {"value": row["text"], "format": "markdown"}
        return json.dumps({"metadata": {"id": page_id, "title": row["title"], "type": "page", "content": content}})


def linear(server: MCPServer[Any], tracker: Tracker) -> None:
    @server.tool(structured_output=True)
    def get_issue(id: str, cursor: str = "") -> dict[str, Any]:  # noqa: A002 # pyright: ignore[reportUnusedFunction]
        row = tracker.ticket(id)
        shown = {"id": "0b0c", "identifier": id, "title": row["title"], "status": row.get("state", "Todo")}
        if "pages" not in row:
            return {**shown, "description": row["text"]}
        at = int(cursor or 0)
        more = {"nextCursor": str(at + 1)} if at + 1 < len(row["pages"]) else {"nextCursor": None}
        return {**shown, "description": row["pages"][at], **more}

    @server.tool()
    def list_comments(issueId: str, cursor: str = "") -> dict[str, Any]:  # noqa: N803 # pyright: ignore[reportUnusedFunction]
        first = int(cursor or 0)
        rows = [{"id": str(at), "body": text} for at, text in enumerate(tracker.comments(issueId))]
        following = first + PER_PAGE
        return {"comments": page_of(rows, first), **({"cursor": str(following)} if following < len(rows) else {})}

    @server.tool()
    def create_comment(issueId: str, body: str) -> dict[str, Any]:  # noqa: N803 # pyright: ignore[reportUnusedFunction]
        tracker.add(issueId, body)
        return {"id": "c1"}


def github(server: MCPServer[Any], tracker: Tracker) -> None:
    @server.tool()
    def issue_read(method: str, owner: str, repo: str, issue_number: int, page: int = 1) -> str:  # pyright: ignore[reportUnusedFunction]
        row = tracker.ticket(str(issue_number))
        if method == "get_comments":
            rows = [{"id": at, "body": text} for at, text in enumerate(tracker.comments(str(issue_number)))]
            return json.dumps(page_of(rows, (page - 1) * PER_PAGE))
        link = f"https://github.com/{owner}/{repo}/issues/{issue_number}"
        shown = {"number": issue_number, "title": row["title"], "body": row["text"], "html_url": link}
        return json.dumps({**shown, "state": row.get("state", "open"), "user": {"login": "ann"}})

    @server.tool()
    def add_issue_comment(owner: str, repo: str, issue_number: int, body: str) -> str:  # pyright: ignore[reportUnusedFunction]
        tracker.add(str(issue_number), body)
        return json.dumps({"id": "9", "url": "https://github.com"})


SHAPES = {"jira": jira, "linear": linear, "github": github}


class Faulty:
    """An application that asks for the token, and does to calls of tools what the state says."""

    def __init__(self, inner: Any, tracker: Tracker) -> None:
        self.inner, self.tracker = inner, tracker

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part.get("body", b""), part.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        called = b'"tools/call"' in body
        with self.tracker.open() as state:
            token = state.get("token", TOKEN)
            faults: list[dict[str, Any]] = state.get("http_faults") or [{}]
            fault = faults.pop(0) if called else {}
        if headers.get("authorization") != f"Bearer {token}":
            await answer(send, 401, {"www-authenticate": 'Bearer error="invalid_token"'})
        elif fault.get("status"):
            await answer(send, fault["status"], fault.get("headers", {}))
        elif fault.get("cut"):
            start = {"content-type": "application/json", "content-length": "5000"}
            await answer(send, 200, start, b'{"jsonrpc": "2.0", ')
            raise ConnectionError
        else:
            given = [{"type": "http.request", "body": body, "more_body": False}]

            async def replay() -> Any:
                return given.pop(0) if given else await receive()

            await self.inner(scope, replay, send)


async def answer(send: Any, status: int, headers: dict[str, str], body: bytes = b"") -> None:
    rows = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": rows})
    await send({"type": "http.response.body", "body": body, "more_body": bool(body)})


def main() -> None:
    """Serve until the client or a signal ends it."""
    shape, path, *more = sys.argv[1:]
    tracker = Tracker(Path(path))
    server: MCPServer[Any] = MCPServer("tracker", log_level="CRITICAL")
    SHAPES[shape](server, tracker)
    with tracker.open() as state:
        state["environment"] = sorted(os.environ)
    if not more:
        server.run("stdio")
        return
    bound = socket.create_server(("127.0.0.1", 0))
    inner = server.streamable_http_app(json_response="--json" in more)
    print(f"http://127.0.0.1:{bound.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(Faulty(inner, tracker), lifespan="on", log_config=None, access_log=False)
    uvicorn.Server(config).run(sockets=[bound])


if __name__ == "__main__":
    main()
