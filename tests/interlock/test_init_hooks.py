"""The hooks that `interlock init` installs: in the clients' settings and in git, chained, and taken back whole."""

import json
import shlex
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlock.install import InstallError, pick, plan
from interlock.install.clients import EVENTS, INSTALLATIONS, is_ours
from interlock.reservations.hooks import client_input
from interlock.reservations.hooks.client_input import CLIENTS, EDITS, SHELLS
from tests.interlock.checkout import LAUNCH, install, interlock_command, tree, uninstall

PATHS = {row.client: row.path for row in INSTALLATIONS if row.has_hooks}
CALL = shlex.join(LAUNCH.program)


def settings_of(root: Path, client: str) -> dict[str, Any]:
    """Return the settings that a client reads."""
    return json.loads((root / PATHS[client]).read_text())


def hooks_of(root: Path, client: str) -> dict[str, list[dict[str, Any]]]:
    """Return the hooks that a client reads."""
    return settings_of(root, client)["hooks"]


def given(root: Path, client: str, text: str) -> Path:
    """Write the settings that somebody has, byte for byte."""
    path = root / PATHS[client]
    path.parent.mkdir()
    path.write_bytes(text.encode())
    return path


@contextmanager
def edited(root: Path, client: str) -> Generator[dict[str, Any]]:
    """Give a client's settings to be changed, and write them in another layout."""
    data = settings_of(root, client)
    yield data
    (root / PATHS[client]).write_text(json.dumps(data, indent=3))


# -- the clients ------------------------------------------------------------------------------------------------------


def test_claude_gets_a_hook_for_each_event_that_blocks_when_it_cannot_be_started(root: Path) -> None:
    install(root, "claude")
    hooks = hooks_of(root, "claude")
    (edit,) = hooks["PreToolUse"]
    assert (edit["hooks"][0]["command"], edit["hooks"][0]["onFailure"]) == (f"{CALL} hook pre-edit", "block")
    rest = [hooks[name][0]["hooks"][0]["command"] for name in ("PostToolUse", "SessionStart", "Stop", "SessionEnd")]
    assert rest == [f"{CALL} hook {name}" for name in ("post-tool", "session-start", "stop", "stop")]


OWN = {
    "claude": ("Edit", "Write", "NotebookEdit", "Bash"),
    "codex": ("Bash", "apply_patch", "Edit", "Write"),
    "gemini": ("write_file", "replace", "run_shell_command"),
}
SERVED = {"claude": "mcp__{}__{}", "codex": "mcp__{}__{}", "gemini": "mcp_{}_{}"}
"""How each client names the tool of an MCP server."""
FILE_TOOLS = ("write_file", "writeFile", "create_text_file", "edit_block", "delete_lines", "move_file", "rename")
"""Tools of such servers that write a file."""


@pytest.mark.parametrize("client", EVENTS)
def test_the_hook_reads_the_tools_of_servers_that_write(client: str) -> None:
    assert {*OWN[client]} <= {*EDITS, *SHELLS}
    for tool in FILE_TOOLS:
        call = client_input.Call("", "", "", SERVED[client].format("files", tool), "", {"path": "a"}, {})
        assert client_input.written(call) == ["a"], call.tool


@pytest.mark.parametrize("client", ["codex", "gemini"])
def test_other_clients_are_named_on_the_command_line(root: Path, client: str) -> None:
    install(root, client)
    lines = [row["command"] for groups in hooks_of(root, client).values() for group in groups for row in group["hooks"]]
    assert lines
    assert all(line.endswith(f" --client {client}") for line in lines)


SETTINGS = {
    "nothing": None,
    "empty": "{}",
    "other settings": '{\n    "theme": "dark"\n}\n',
    "other hooks": (
        '{\r\n\t"hooks": {\r\n\t\t"PreToolUse": [\r\n\t\t\t{"matcher": "Edit", "hooks": [{"type": "command", '
        '"command": "mine"}]}\r\n\t\t],\r\n\t\t"BeforeTool": [], "Stop": []\r\n\t},\r\n\t"z": 1\r\n}\r\n'
    ),
    "one line": '{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"mine"}]}]},"a":[1,{"b":2}]}',
}


@pytest.mark.parametrize("client", PATHS)
@pytest.mark.parametrize("name", SETTINGS)
def test_other_settings_stay_and_the_undo_restores_every_byte_and_mode(root: Path, client: str, name: str) -> None:
    path = root / PATHS[client]
    text = SETTINGS[name]
    if text is not None:
        given(root, client, text).chmod(0o640)
    before = tree(root)
    install(root, client)
    if text is not None:
        old, new = json.loads(text), json.loads(path.read_bytes())
        assert {key: new[key] for key in old if key != "hooks"} == {key: old[key] for key in old if key != "hooks"}
        for event, groups in old.get("hooks", {}).items():
            assert new["hooks"][event][: len(groups)] == groups
        assert ("\r\n" in text, path.stat().st_mode & 0o777) == (b"\r\n" in path.read_bytes(), 0o640)
    installed = tree(root)
    install(root, client)
    assert tree(root) == installed
    uninstall(root)
    assert tree(root) == before


@pytest.mark.parametrize("client", PATHS)
def test_an_undo_after_an_edit_takes_our_groups_alone(root: Path, client: str) -> None:
    install(root, client)
    mine = {"matcher": "Read", "hooks": [{"type": "command", "command": "mine"}]}
    with edited(root, client) as data:
        event = next(iter(data["hooks"]))
        data["hooks"][event].append(mine)
    uninstall(root)
    assert settings_of(root, client) == {"hooks": {event: [mine]}}


def test_a_hook_that_runs_another_installation_is_left(root: Path) -> None:
    path = given(
        root, "claude", '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/opt/interlock hook stop"}]}]}}'
    )
    install(root, "claude")
    (group,) = hooks_of(root, "claude")["Stop"]
    assert group["hooks"][0]["command"] == "/opt/interlock hook stop"
    assert path.exists()


def test_a_group_of_ours_that_was_changed_by_hand_goes_with_the_others(root: Path) -> None:
    before = tree(root)
    install(root, "claude")
    path = root / PATHS["claude"]
    path.write_text(path.read_text().replace('"timeout": 30', '"timeout": 3'))
    uninstall(root)
    assert tree(root) == before


def test_a_hook_that_somebody_put_into_a_group_of_ours_stays(root: Path) -> None:
    install(root, "claude")
    mine = {"type": "command", "command": "mine"}
    with edited(root, "claude") as data:
        data["hooks"]["Stop"][0]["hooks"].append(mine)
    uninstall(root)
    assert settings_of(root, "claude") == {"hooks": {"Stop": [{"hooks": [mine]}]}}


@pytest.mark.parametrize("client", PATHS)
@pytest.mark.parametrize("text", ['{"model":"x"}', "{}\n", None])
def test_an_uninstall_after_a_second_init_restores_every_byte(root: Path, client: str, text: str | None) -> None:
    if text is not None:
        given(root, client, text)
    before = tree(root)
    install(root, client)
    for event in [row.name for row in EVENTS[client]][1:]:
        with edited(root, client) as data:
            del data["hooks"][event]
        install(root, client)
    uninstall(root)
    assert tree(root) == before


OLD = "Edit|Write|Bash"


def older(root: Path, client: str) -> None:
    """Install what an older version wrote: another matcher before an edit."""
    first, *rest = EVENTS[client]
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(EVENTS, client, (replace(first, matcher=OLD), *rest))
        install(root, client)
    assert OLD in (root / PATHS[client]).read_text()


@pytest.mark.parametrize("client", PATHS)
def test_hooks_as_init_wrote_them_are_brought_up_to_date_and_go_whole(root: Path, client: str) -> None:
    before = tree(root)
    older(root, client)
    install(root, client)
    event = EVENTS[client][0]
    (group,) = hooks_of(root, client)[event.name]
    assert group.get("matcher", "") == event.matcher
    uninstall(root)
    assert tree(root) == before


def test_a_matcher_that_somebody_chose_is_left_and_goes_with_the_uninstall(root: Path) -> None:
    older(root, "claude")
    with edited(root, "claude") as data:
        data["theme"] = "dark"
        data["hooks"]["PreToolUse"][0]["matcher"] = "Edit"
        del data["hooks"]["Stop"]
    install(root, "claude")
    assert hooks_of(root, "claude")["PreToolUse"][0]["matcher"] == "Edit"
    assert "Stop" in hooks_of(root, "claude")
    uninstall(root)
    assert settings_of(root, "claude") == {"theme": "dark"}


@pytest.mark.parametrize("text", ['{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', "{"])
def test_settings_that_cannot_be_edited_are_refused_with_what_to_paste(root: Path, text: str) -> None:
    given(root, "claude", text)
    before = tree(root)
    with pytest.raises(InstallError) as caught:
        plan(root, pick(["claude"]), LAUNCH)
    (problem,) = caught.value.problems
    assert problem.code in {"INI101", "INI102"}
    assert problem.path.startswith(PATHS["claude"])
    pasted = json.loads(problem.fix.partition("\n")[2])
    assert set(pasted["hooks"]) == {event.name for event in EVENTS["claude"]}
    assert tree(root) == before


def test_only_a_call_of_ours_counts_as_ours() -> None:
    ours = ["interlock hook stop", "/a b/interlock hook pre-edit --client codex", "x -P -m interlock hook  post-tool"]
    assert all(is_ours(line) for line in ours)
    assert not any(is_ours(line) for line in ["interlock mcp", "hook stop", "interlock hook other", None, 3])


# -- the commands ------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("option", ["--no-hooks", "--no-git-hooks"])
def test_hooks_are_left_out_on_request(root: Path, option: str) -> None:
    done = interlock_command(root, "init", option, "--json")
    assert done.returncode == 0, done.stderr
    written = {".mcp.json"} if option == "--no-hooks" else {".mcp.json", ".claude/settings.json"}
    assert {row["path"] for row in json.loads(done.stdout)["files"]} == written


def test_the_hooks_of_git_are_installed_alone_on_request(root: Path) -> None:
    done = interlock_command(root, "init", "--client", "git", "--json")
    assert {row["client"] for row in json.loads(done.stdout)["files"]} == {"git"}
    assert not (root / ".mcp.json").exists()


def test_the_hooks_read_the_input_of_every_client_that_init_installs_them_in() -> None:
    assert set(EVENTS) == set(CLIENTS)
