"""A checkout with a task in it, and tools that are called as a model calls them."""

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool

from interlock.agents import Ask
from interlock.agents.tools import toolbox
from interlock.agents.truncation import CONTENT_BYTES
from tests.gates.support import put

ROW = {"code", "message", "place", "found", "expected", "fix"}
REPORTS = "artifacts/reports/T-1/2"


def in_src(path: str) -> bool:
    return path.startswith("src/")


class Tools:
    """The tools of an ask by name.

    Args:
        tools: The tools.
    """

    def __init__(self, tools: Sequence[BaseTool]) -> None:
        self.by_name = {tool.name: tool for tool in tools}

    def message(self, name: str, /, arguments: dict[str, Any]) -> Any:
        """Call a tool as a model does and return its message."""
        call = {"type": "tool_call", "id": "1", "name": name, "args": arguments}
        return self.by_name[name].invoke(call)  # pyright: ignore[reportArgumentType] - the shape of a ToolCall

    def __call__(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its answer, which is JSON within its bound and has well-formed refusals."""
        content = self.message(name, arguments).content
        text = content if isinstance(content, str) else content[0]["text"]
        assert len(text.encode()) <= CONTENT_BYTES + 8192
        answer = json.loads(text)
        for row in answer["errors"]:
            assert set(row) >= ROW
            assert all(row[key] for key in ROW - {"found"})
        return answer

    def codes(self, name: str, /, **arguments: Any) -> list[str]:
        """Return the codes of the refusals that a call gets."""
        return [row["code"] for row in self(name, **arguments)["errors"]]


Opened = Callable[..., Tools]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    for name in (".interlock", REPORTS):
        (folder / name).mkdir(parents=True)
    put(folder, "src/a.py", "one\ntwo\nthree\n")
    put(folder, "src/app/b.py", "two of them: two\n")
    put(folder, "docs/brief.md", "Make it two.\n")
    put(folder, "README.md", "two\n")
    put(folder, "interlock.toml", "")
    put(folder, ".git/config", "[core]\n")
    return folder


@pytest.fixture
def ask(root: Path, make_ask: Any) -> Callable[..., Ask]:
    """Make asks of the task of this checkout."""

    def make(**changes: Any) -> Ask:
        values: dict[str, Any] = {"task_id": "T-1", "reports_dir": REPORTS, "in_scope": in_src, "evidence": {}}
        return make_ask(root, **{**values, **changes})

    return make


@pytest.fixture
def opened(ask: Callable[..., Ask]) -> Generator[Opened]:
    """Open the tools of an ask; keyword arguments replace its fields."""
    with ExitStack() as stack:

        def make(**changes: Any) -> Tools:
            return Tools(stack.enter_context(toolbox(ask(**changes))))

        yield make
