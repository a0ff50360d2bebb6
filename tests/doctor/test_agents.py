"""`interlock doctor --prove` of agents: what they ask, what they do not, and which cannot be tried."""

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlock.cli.main import interlock
from interlock.doctor import AgentProof, prove_agents
from interlock.doctor.agents import TRIALS, prove_agent
from tests.agents import acp_peer
from tests.clients.programs import AGENTS, INSTALLED, Program

MODES = {"currentModeId": "default", "availableModes": [{"id": "default", "name": "Default"}]}
ASKS = 'permitted("edit", "by-edit.txt"); permitted("execute", title="touch by-command.txt")'
WRITES = 'open("by-edit.txt", "w").close()'


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
        (ASKS, True, True, ()),
        ("", False, False, ()),
        (WRITES, False, False, ("by-edit.txt",)),
        # It asks, and does it all the same.
        (f"{ASKS}; {WRITES}", True, True, ("by-edit.txt",)),
    ],
)
def test_what_an_agent_asks_and_what_it_does_all_the_same_is_told_apart(
    script: str, edits: bool, runs: bool, found: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path, script, monkeypatch)
    assert prove_agent("acp:gemini") == AgentProof("acp:gemini", "fake 7", edits, runs, found)


def test_the_agents_of_the_configuration_are_tried_each_once_and_the_reason_is_given_where_one_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path, "sys.exit(3)", monkeypatch)
    tables = [
        f'[agents.{role}]\nrunner = "acp:{name}"\n' for role, name in (("a", "gemini"), ("b", "gemini"), ("c", "x y"))
    ]
    (tmp_path / "interlock.toml").write_text("".join(tables) + '[agents.d]\nrunner = "remote"\n')
    gemini, other = prove_agents(tmp_path, ["acp:gemini"])
    assert "status 3" in gemini.problem
    assert (other.agent, "not known" in other.problem) == ("acp:x y", True)


@pytest.mark.long
def test_the_table_is_printed_and_is_json_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, ASKS, monkeypatch)
    (tmp_path / "interlock.toml").write_text("")
    words = ["doctor", "--root", str(tmp_path), "--agent", "acp:gemini"]
    done = CliRunner().invoke(interlock, [*words, "--agent", "acp:other"])
    lines = [line.split() for line in done.output.splitlines() if line.startswith("  acp:")]
    assert lines[0] == ["acp:gemini", "fake", "7", "asks", "asks", "held", "nothing"]
    assert lines[1][:3] == ["acp:other", "not", "tried"]
    rows = json.loads(CliRunner().invoke(interlock, [*words, "--json"]).output)["agents"]
    assert rows[0]["asks_before_editing"] is True


@pytest.mark.slow
@pytest.mark.parametrize("program", AGENTS, ids=lambda program: program.name)
def test_each_agent_that_is_known_asks_and_a_refusal_holds(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex runs a command in a sandbox of its own where nothing can be written, without a question."""
    modules = INSTALLED / (program.folder or program.name) / "node_modules"
    if not (modules / program.start).exists():
        pytest.skip(f"{program.name} is not installed; `sh scripts/prepare {program.folder}` does that")
    for name, file in {program.name.removeprefix("acp:"): program.start, **program.links}.items():
        (tmp_path / name).symlink_to(modules / file)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    proof = prove_agent(program.name)
    assert (proof.problem, proof.found, proof.asks_before_editing) == ("", (), True)
    assert proof.asks_before_commands is (program.name != "acp:codex")


def test_every_agent_that_is_known_can_be_tried() -> None:
    assert {f"acp:{name}" for name in TRIALS} == {program.name for program in AGENTS}
