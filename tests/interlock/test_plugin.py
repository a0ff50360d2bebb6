"""The plugin: every file that Claude Code reads is there, and every name in it exists."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

import interlock
from interlock.cli.main import COMMANDS
from interlock.install.clients import EVENTS
from interlock.reservations.rules import RULES
from interlock.server import make_server
from tests.child import environment
from tests.interlock.checkout import attempt, interlock_command, make, write_hook
from tests.server.test_reservations import TOOLS

ROOT = Path(interlock.__file__).resolve().parent.parent
PLUGIN = ROOT / "plugin"
TEXTS = sorted(PLUGIN.rglob("*.md"))
WORD = re.compile(r"`([a-z]+(?:_[a-z]+)+)\b")


def header(path: Path) -> dict[str, str]:
    """Return the front matter of a text."""
    text = path.read_text()
    assert text.startswith("---\n"), path
    rows = text.split("---\n")[1].splitlines()
    return dict(row.split(": ", 1) for row in rows)  # pyright: ignore[reportReturnType, reportArgumentType]


def load(name: str) -> Any:
    """Read a JSON file of the plugin."""
    return json.loads((PLUGIN / name).read_text())


def test_the_plugin_has_every_part_that_it_promises() -> None:
    assert {path.stem for path in (PLUGIN / "commands").iterdir()} == {"join", "leave", "status", "setup"}
    assert {path.name for path in (PLUGIN / "skills").iterdir()} == {"coordination-protocol", "conflict-recovery"}
    for path in (PLUGIN / "skills").iterdir():
        assert header(path / "SKILL.md")["name"] == path.name
    for path in TEXTS:
        assert 20 < len(header(path)["description"]) < 400
    for name in ("interlock-mcp", "interlock-hook"):
        assert os.access(PLUGIN / "bin" / name, os.X_OK)
        assert subprocess.run(["sh", "-n", PLUGIN / "bin" / name], check=False).returncode == 0


def test_a_command_may_call_every_tool_that_it_names_or_sends_to() -> None:
    for path in (PLUGIN / "commands").iterdir():
        allowed = {name.rpartition("__")[2] for name in header(path)["allowed-tools"].split(", ")}
        named = set(WORD.findall(path.read_text())) & TOOLS
        named |= {"respond_to_release"} if "fetch_inbox" in named else set()
        assert named <= allowed, path.name


def test_the_plugin_is_of_this_version_and_the_marketplace_leads_to_it() -> None:
    row = load(".claude-plugin/plugin.json")
    assert (row["name"], row["version"]) == ("interlock", interlock.__version__)
    (entry,) = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text())["plugins"]
    assert entry["name"] == row["name"]
    assert (ROOT / entry["source"]).resolve() == PLUGIN


def test_the_hooks_of_the_plugin_are_those_of_init() -> None:
    hooks = load("hooks/hooks.json")["hooks"]
    assert set(hooks) == {event.name for event in EVENTS["claude"]}
    for event in EVENTS["claude"]:
        (group,) = hooks[event.name]
        (handler,) = group["hooks"]
        assert group.get("matcher", "") == event.matcher
        assert handler["command"].endswith(f"/bin/interlock-hook {event.hook}")
        assert dict(event.more).items() <= handler.items()


def test_every_tool_that_a_text_names_is_a_tool_of_the_server(tmp_path: Path) -> None:
    server = make_server(tmp_path)
    offered = {tool.name for tool in anyio.run(server.list_tools)}
    assert offered >= TOOLS
    arguments = {
        name for tool in anyio.run(server.list_tools) if tool.name in TOOLS for name in tool.input_schema["properties"]
    }
    answers = {"thread_id", "expires_at", "taken_over"}
    named = {word for path in TEXTS for word in WORD.findall(path.read_text())}
    assert named >= TOOLS
    assert named <= offered | arguments | answers
    allowed = {
        word for path in TEXTS for word in re.findall(r"mcp__plugin_interlock_interlock__(\w+)", path.read_text())
    }
    assert allowed <= offered
    for path in TEXTS:
        for name, given in re.findall(r"`(\w+)\(([^`]*)\)", path.read_text()):
            (tool,) = (tool for tool in anyio.run(server.list_tools) if tool.name == name)
            words = set(re.findall(r"(\w+)=", re.sub(r'"[^"]*"', "", given)))
            assert words <= set(tool.input_schema["properties"]), (path, name)


def test_every_command_and_code_that_a_text_names_exists() -> None:
    words = {word for path in TEXTS for word in re.findall(r"`interlock ([a-z]+)", path.read_text())}
    assert words >= {"commit", "reserve", "status", "doctor", "init", "uninstall"}
    assert words <= set(COMMANDS)
    codes = {code for path in TEXTS for code in re.findall(r"RSV\d{3}", path.read_text())}
    assert {code for code in codes if code < "RSV9"} <= set(RULES)


def test_the_server_of_the_plugin_starts_the_interlock_on_the_path(tmp_path: Path) -> None:
    write_hook(tmp_path / "bin/interlock", '#!/bin/sh\necho "$@"\n')
    row = load(".mcp.json")["mcpServers"]["interlock"]
    program = row["command"].replace("${CLAUDE_PLUGIN_ROOT}", str(PLUGIN))
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    assert attempt(tmp_path, program, "--x", PATH=path).stdout == "mcp --x\n"
    gone = attempt(tmp_path, program, PATH="/usr/bin:/bin")
    assert (gone.returncode, gone.stderr.count("\n")) == (127, 1)


@pytest.mark.parametrize(("hook", "status"), [("pre-edit", 2), ("stop", 1)])
def test_a_hook_without_a_program_refuses_an_edit_and_says_why(hook: str, status: int) -> None:
    line = (str(PLUGIN / "bin/interlock-hook"), hook)
    done = attempt(ROOT, *line, PATH="/usr/bin:/bin")
    assert (done.returncode, done.stderr.count("\n")) == (status, 1)
    assert attempt(ROOT, *line, PATH="/usr/bin:/bin", INTERLOCK_HOOKS="off").returncode == 0


@pytest.mark.parametrize("line", [("bin/interlock-hook", "pre-edit"), ("hooks/pre-edit.sh",)])
def test_a_hook_of_the_plugin_refuses_what_another_agent_holds(line: tuple[str, ...], tmp_path: Path) -> None:
    root = make(tmp_path / "project")
    assert interlock_command(root, "reserve", "a.txt", INTERLOCK_AGENT_ID="ada").returncode == 0
    write_hook(tmp_path / "bin/interlock", f'#!/bin/sh\nexec {sys.executable} -P -m interlock "$@"\n')
    call = {"session_id": "s", "cwd": str(root), "tool_name": "Edit", "tool_input": {"file_path": str(root / "a.txt")}}
    done = subprocess.run(
        [PLUGIN / line[0], *line[1:]],
        input=json.dumps(call),
        capture_output=True,
        text=True,
        check=False,
        env=environment(PATH=f"{tmp_path}/bin:/usr/bin:/bin"),
    )
    assert done.returncode == 2
    assert "ada" in done.stderr
