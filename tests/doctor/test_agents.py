"""`interlock doctor --prove` of agents: what they ask, what they do not, and which cannot be tried.

`tests/clients/test_acp_programs.py` tries the real programs.
"""

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlock.cli.main import interlock
from interlock.doctor import AgentProof, prove_agents
from interlock.doctor.agents import prove_agent
from tests.agents import acp_peer

GEMINI = {"runner": "acp:gemini"}
MODES = {"currentModeId": "default", "availableModes": [{"id": "default", "name": "Default"}]}
ASKS = 'permitted("edit", "by-edit.txt"); permitted("execute", title="touch by-command.txt")'
WRITES = 'open("by-edit.txt", "w").close()'
LOOKS = 'update("tool_call", toolCallId="1", kind="execute", title="ls")'


def plant(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program on PATH that is taken for Gemini CLI."""
    program = folder / "gemini"
    lines = [f"#!{sys.executable}", f"import sys; sys.path.insert(0, {str(Path(acp_peer.__file__).parent)!r})"]
    hello = {"agentInfo": {"name": "fake", "version": "7"}}
    lines += ["from acp_peer import *", f"start({hello!r}, {{'modes': {MODES!r}}})", script, "done()"]
    program.write_text("\n".join([*lines, "start(); done(); leave()"]), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("script", "edits", "runs", "found"),
    [
        (ASKS, "asks", "asks", ()),
        ("", "not seen", "not seen", ()),
        (LOOKS, "not seen", "does not ask", ()),
        (WRITES, "does not ask", "not seen", ("by-edit.txt",)),
        # It asks, and does it all the same.
        (f"{ASKS}; {WRITES}", "asks", "asks", ("by-edit.txt",)),
    ],
)
def test_what_an_agent_asks_and_what_it_does_all_the_same_is_told_apart(
    script: str, edits: str, runs: str, found: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path, script, monkeypatch)
    assert prove_agent(tmp_path, GEMINI) == AgentProof("acp:gemini", "fake 7", edits, runs, found)


def test_the_agents_of_the_configuration_are_tried_each_once_and_the_reason_is_given_where_one_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path, "sys.exit(3)", monkeypatch)
    tables = [
        f'[agents.{role}]\nrunner = "acp:{name}"\n' for role, name in (("a", "gemini"), ("b", "gemini"), ("c", "x y"))
    ]
    (tmp_path / "interlock.toml").write_text("".join(tables) + '[agents.d]\nrunner = "remote"\n')
    gemini, missing, other = prove_agents(tmp_path, ["acp:gemini", "remote"])
    assert "status 3" in gemini.problem
    assert (missing.agent, "no program" in missing.problem) == ("acp:x y", True)
    assert "acp:NAME" in other.problem


@pytest.mark.long
def test_the_table_is_printed_and_is_json_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, ASKS, monkeypatch)
    (tmp_path / "interlock.toml").write_text("")
    words = ["doctor", "--root", str(tmp_path), "--agent", "acp:gemini"]
    done = CliRunner().invoke(interlock, [*words, "--agent", "acp:no-such-agent"])
    lines = [line.split() for line in done.output.splitlines() if line.startswith("  acp:")]
    assert lines[0] == ["acp:gemini", "fake", "7", "asks", "asks", "held", "nothing"]
    assert lines[1][:3] == ["acp:no-such-agent", "not", "tried"]
    form = CliRunner().invoke(interlock, [*words[:3], "--agent", "acp:x y", "--format", "github"])
    assert (form.exit_code, "::error title=agents acp%3Ax y::" in form.output) == (1, True)
    rows = json.loads(CliRunner().invoke(interlock, [*words, "--json"]).output)["agents"]
    assert rows[0]["before_editing"] == "asks"
