"""The tables of docs/mcp.md are those of the code."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from interlock.graph.pipeline.contract import MinimalResponse
from interlock.graph.pipeline.minimal import FIELDS
from interlock.graph.pipeline.spec import POC
from interlock.graph.pipeline.tickets import Tickets
from interlock.server import make_server
from interlock.server.app import ALL, INSTRUCTIONS
from interlock.server.rules import RULES

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[2] / "docs" / "mcp.md"


def block(name: str) -> str:
    """Return what stands in the page between the marks of a generated part."""
    found = re.findall(f"<!-- {name} -->\n(.*?)<!-- /{name} -->", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(found) == 1, name
    return found[0]


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in lines)


async def test_the_tools_are_those_of_the_server(tmp_path: Path) -> None:
    rows: list[tuple[str, ...]] = []
    for toolset in ALL:
        for tool in await make_server(tmp_path, toolsets=[toolset]).list_tools():
            required = tool.input_schema.get("required", [])
            names = [name if name in required else f"{name}?" for name in tool.input_schema["properties"]]
            rows.append((toolset, f"`{tool.name}({', '.join(names)})`", str(tool.description)))
    assert block("tools") == table(("toolset", "tool", "what it does"), rows)


async def test_the_resources_are_those_of_the_server(tmp_path: Path) -> None:
    server = make_server(tmp_path)
    fixed = [(resource.uri, resource.description) for resource in await server.list_resources()]
    made = [(each.uri_template, each.description) for each in await server.list_resource_templates()]
    assert block("resources") == table(("resource", "what it holds"), [(f"`{a}`", str(b)) for a, b in [*made, *fixed]])


async def test_the_prompts_are_those_of_the_server(tmp_path: Path) -> None:
    rows = [(f"`{each.name}`", str(each.description)) for each in await make_server(tmp_path).list_prompts()]
    assert block("prompts") == table(("prompt", "what for"), rows)


@pytest.mark.long
def test_the_script_on_the_page_prints_what_the_page_says(tmp_path: Path) -> None:
    script, printed = re.findall(r"```python\n(.*?)```\n\nprints `(.*?)`", PAGE.read_text(encoding="utf-8"), re.DOTALL)[
        0
    ]
    # What the console script `interlock` does, for a checkout that is not installed.
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "interlock"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m interlock "$@"\n')
    command.chmod(0o755)
    (tmp_path / "project").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path / "project", capture_output=True, text=True, timeout=60,
        check=False, env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"{printed}\n"), done.stderr
    assert (tmp_path / "project" / ".interlock").is_dir()


def test_the_minimal_ticket_on_the_page_begins_a_run(tmp_path: Path) -> None:
    (text,) = re.findall(r"```json\n(\{\"ticket_id.*?)\n```", PAGE.read_text(encoding="utf-8"))
    answer = Tickets(tmp_path).next_step(text)
    assert (answer["gate_result"]["status"], answer["next_state"]) == ("pass", "extract_requirements")
    section = PAGE.read_text(encoding="utf-8").partition("### Minimal tickets")[2].partition("###")[0]
    words = {*FIELDS, *MinimalResponse.__annotations__, *(stage.name for stage in POC.stages), POC.end_state}
    assert [word for word in sorted(words) if word not in section] == []


def test_the_rules_are_those_of_the_guard() -> None:
    rows = [(row.code, row.title, row.expected, row.fix) for row in RULES.values()]
    assert block("rules") == table(("code", "rule", "expected", "fix"), rows)


def test_the_instructions_are_those_of_the_server() -> None:
    assert block("instructions") == f"```text\n{INSTRUCTIONS}\n```\n"
