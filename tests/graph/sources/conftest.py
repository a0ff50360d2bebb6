"""Trackers of the tests' own behind real MCP servers, and the tables of sources that lead to them."""

import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.child import environment
from tests.graph.ticket.walk import make_project
from tests.tracker import TOKEN

HOUSE = Path(__file__).resolve().parents[3]
KEY = "TRACKER_API_KEY"

TABLES = {
    "jira": """
tool = "jira_get_issue"
arguments = { issue_key = "{id}", fields = "summary,description,status" }
id = "key"
title = "summary"
text = "description"
state = "status.name"
write_back = WRITE
report = "https://ci.example.org/{run}"
comment = { tool = "jira_add_comment", arguments = { issue_key = "{id}", comment = "{text}" } }
comments = { tool = "jira_get_issue", arguments = { issue_key = "{id}", comment_limit = 1000 } }
""",
    "confluence": """
tool = "confluence_get_page"
arguments = { page_id = "{id}" }
id = "metadata.id"
title = "metadata.title"
text = "metadata.content.value"
""",
    "linear": """
tool = "get_issue"
arguments = { id = "{id}", cursor = "{cursor}" }
next = "nextCursor"
id = "identifier"
title = "title"
text = "description"
state = "status"
write_back = WRITE
comment = { tool = "create_comment", arguments = { issueId = "{id}", body = "{text}" } }
comments = { tool = "list_comments", arguments = { issueId = "{id}", cursor = "{cursor}" }, next = "cursor" }
""",
    "github": """
tool = "issue_read"
arguments = { method = "get", owner = "ada", repo = "shop", issue_number = "{number}" }
id = "number"
title = "title"
text = "body"
state = "state"
write_back = WRITE

[sources.github.comment]
tool = "add_issue_comment"
arguments = { owner = "ada", repo = "shop", issue_number = "{number}", body = "{text}" }

[sources.github.comments]
tool = "issue_read"
arguments = { method = "get_comments", owner = "ada", repo = "shop", issue_number = "{number}", page = "{page}" }
""",
}
TICKETS = {
    "ABC-12": {"title": "Greet politely", "text": "The greeting must end with an exclamation mark.\n\nNothing else."},
    "42": {"title": "Greet politely", "text": "The greeting must end with an exclamation mark."},
}


class Place:
    """A project whose sources are trackers of the tests.

    Args:
        root: The project.
        state: The file of the trackers.
    """

    def __init__(self, root: Path, state: Path) -> None:
        self.root, self.state = root, state

    def configure(self, shape: str, *, url: str = "", write_back: bool = False, more: str = "") -> None:
        """Write the table of one source: over standard input and output, or at an address."""
        argv = [sys.executable, "-m", "tests.tracker", "jira" if shape == "confluence" else shape, str(self.state)]
        where = (
            f'url = "{url}"\napi_key_env = "{KEY}"'
            if url
            else f'command = {json.dumps(argv)}\npass_env = ["PYTHONPATH"]'
        )
        table = TABLES[shape].replace("WRITE", str(write_back).lower())
        (self.root / "interlock.toml").write_text(f"[sources.{shape}]\n{where}{table}{more}")

    def set(self, **values: Any) -> None:
        """Change the state of the trackers."""
        self.state.write_text(json.dumps({**self.now, **values}))

    @property
    def now(self) -> dict[str, Any]:
        """The state of the trackers."""
        return json.loads(self.state.read_text())

    def comments(self, ticket: str) -> list[str]:
        """Return the comments on a ticket."""
        return self.now.get("comments", {}).get(ticket, [])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trackers: "Trackers") -> Place:
    """Return a project with a fresh tracker."""
    monkeypatch.setenv("PYTHONPATH", str(HOUSE))
    monkeypatch.setenv(KEY, TOKEN)
    monkeypatch.setattr("interlock.graph.sources.over_mcp._PAUSE_SECONDS", 0.05)
    made = Place(make_project(tmp_path / "project"), trackers.state)
    trackers.state.write_text(json.dumps({"tickets": TICKETS}))
    return made


class Trackers:
    """The servers over HTTP, one of each shape, started when a test first needs it; they share one state."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self._running: dict[str, tuple[subprocess.Popen[str], str]] = {}

    def url(self, shape: str, *more: str) -> str:
        """Return the address of the server of a shape."""
        name = " ".join([shape, *more])
        if name not in self._running:
            argv = [sys.executable, "-m", "tests.tracker", "jira" if shape == "confluence" else shape]
            options = environment(PYTHONPATH=str(HOUSE))
            served = subprocess.Popen(
                [*argv, str(self.state), "--http", *more],
                env=options,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            assert served.stdout is not None
            self._running[name] = served, served.stdout.readline().strip()
        return self._running[name][1]

    def stop(self) -> None:
        """End all of them."""
        for served, _ in self._running.values():
            served.kill()
            served.communicate()


@pytest.fixture(scope="session")
def trackers(tmp_path_factory: pytest.TempPathFactory) -> Generator[Trackers]:
    """Yield the servers over HTTP."""
    state = tmp_path_factory.mktemp("tracker") / "state.json"
    state.write_text(json.dumps({"tickets": TICKETS}))
    made = Trackers(state)
    yield made
    made.stop()
