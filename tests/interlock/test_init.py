"""`interlock init` and the entry of the server: what it writes, what it leaves alone, and the way back."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from interlock.install import Launch, apply, pick, plan, plan_undo
from tests import warm
from tests.interlock.checkout import tree, write_hook

SERVERS = pick(["all"], hooks=False)
PATHS = {row.name: row.path for row in SERVERS}
JSON_CLIENTS = [row.name for row in SERVERS if row.path.endswith(".json")]
LAUNCH = Launch("interlock", ("mcp",), "for a test")


@pytest.fixture
def path_with_interlock(tmp_path: Path) -> str:
    """Return a PATH on which `interlock` is found."""
    write_hook(tmp_path / "bin/interlock", "#!/bin/sh\n")
    return f"{tmp_path}/bin:/usr/bin:/bin"


def init(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command for the servers alone; `interlock` is not on PATH unless the caller puts it there."""
    environment = {**os.environ, "PATH": "/usr/bin:/bin", **variables}
    return warm.interlock(folder, "init", "--no-hooks", *arguments, env=environment)


def uninstall(folder: Path) -> subprocess.CompletedProcess[str]:
    """Take it back by the command."""
    return warm.interlock(folder, "uninstall", env={**os.environ, "PATH": "/usr/bin:/bin"})


def servers(root: Path, client: str) -> dict[str, Any]:
    """Return the servers that a client's file names, as the client reads them."""
    text = (root / PATHS[client]).read_text()
    return json.loads(text)["mcpServers"] if client != "codex" else tomllib.loads(text)["mcp_servers"]


def put(root: Path, client: str, text: str) -> Path:
    """Write a client's file byte for byte."""
    path = root / PATHS[client]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    return path


def other_server(client: str) -> str:
    """Return a file that a client's user wrote, with a server of another name."""
    if client == "codex":
        return '# mine\nmodel = "m"\n\n[mcp_servers.other]\ncommand = "other"\n'
    return '{\n    "theme": "dark",\n    "mcpServers": {\n        "other": {"command": "other"}\n    }\n}\n'


def test_the_default_is_claude_and_the_file_is_the_one_of_the_docs(project: Path, path_with_interlock: str) -> None:
    shown = init(project, "--dry-run", PATH=path_with_interlock).stdout
    done = init(project, PATH=path_with_interlock)
    assert done.returncode == 0, done.stderr
    assert json.loads((project / ".mcp.json").read_text()) == {
        "mcpServers": {"interlock": {"command": "interlock", "args": ["mcp"]}}
    }
    assert not any((project / path).exists() for client, path in PATHS.items() if client != "claude")
    assert "+++ b/.mcp.json" in shown
    assert path_with_interlock.partition(":")[0] in done.stdout


def test_without_interlock_on_path_the_interpreter_is_named_and_a_folder_of_that_name_is_no_trap(project: Path) -> None:
    (project / "interlock").mkdir()
    (project / "interlock" / "__init__.py").write_text("raise SystemExit(99)")
    done = init(project)
    row = servers(project, "claude")["interlock"]
    assert row["command"] == sys.executable
    assert sys.executable in done.stdout
    ran = subprocess.run(
        [row["command"], *row["args"][:-1], "--version"], cwd=project, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


LAYOUTS = [
    "",
    '{"mcpServers":{"a":{"command":"x"}},"z":1}',
    '{\n\t"b": 1,\n\t"mcpServers": {\n\t\t"a": {}\n\t},\n\t"a": 2\n}',
    '{\r\n  "mcpServers": {\r\n    "a": {}\r\n  }\r\n}\r\n',
    '{\n  "emoji": "\u00e4 \\u00e4 \U0001f600",\n  "n": 1.0e3\n}\n',
]


@pytest.mark.parametrize("text", LAYOUTS)
def test_any_layout_of_json_keeps_its_keys_order_indentation_and_line_ends(project: Path, text: str) -> None:
    path = put(project, "claude", text)
    (change,) = plan(project, pick(["claude"], hooks=False), LAUNCH)
    apply(project, [change])
    after = path.read_bytes().decode()
    data, old = json.loads(after), json.loads(text or "{}")
    assert [key for key in data if key in old] == list(old)
    assert data == {**old, "mcpServers": {**old.get("mcpServers", {}), "interlock": data["mcpServers"]["interlock"]}}
    assert ("\r\n" in after) == ("\r\n" in text)
    assert not ("\r\n" in text and "\n" in after.replace("\r\n", ""))
    assert ("\n\t" in after, after.endswith("\n")) == ("\n\t" in text, text.endswith("\n") or not text)
    (back,) = plan_undo(project, pick(["claude"], hooks=False))
    assert back.after is not None
    assert back.after.data == text.encode()


@pytest.mark.parametrize("client", PATHS)
def test_a_dry_run_shows_the_diff_and_writes_nothing(project: Path, client: str) -> None:
    put(project, client, other_server(client))
    before = tree(project)
    done = init(project, "--client", client, "--dry-run")
    assert done.returncode == 0
    assert f"--- a/{PATHS[client]}" in done.stdout
    assert done.stdout.splitlines()[0].endswith(": our part added or renewed")
    assert tree(project) == before


def test_a_second_init_says_that_all_is_done_and_changes_nothing(project: Path) -> None:
    assert init(project, "--client", "all").returncode == 0
    before = tree(project)
    done = init(project, "--client", "all")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "all is done")
    assert tree(project) == before


@pytest.mark.parametrize("filled", [False, True], ids=["new files", "files that were there"])
def test_undo_restores_every_file_byte_for_byte_and_leaves_no_trace(project: Path, *, filled: bool) -> None:
    if filled:
        for client in PATHS:
            put(project, client, other_server(client).replace("\n", "\r\n"))
    before = tree(project)
    assert init(project, "--client", "all").returncode == 0
    assert tree(project) != before
    assert uninstall(project).returncode == 0
    assert tree(project) == before
    again = uninstall(project)
    assert (again.returncode, again.stdout) == (0, "nothing to undo\n")


@pytest.mark.parametrize("client", PATHS)
def test_undo_of_a_file_that_was_edited_since_takes_our_entry_alone(project: Path, client: str) -> None:
    path = put(project, client, other_server(client))
    init(project, "--client", client)
    addition = '\n[mcp_servers.later]\ncommand = "later"\n' if client == "codex" else "\n\n"
    path.write_text(path.read_text().replace("other", "edited") + addition)
    done = uninstall(project)
    assert done.returncode == 0, done.stderr
    assert "only the entry is taken out" in done.stdout
    assert "interlock" not in servers(project, client)
    read = tomllib.loads if client == "codex" else json.loads
    assert read(path.read_text()) == read(other_server(client).replace("other", "edited") + addition)


BAD = {
    "a comment": ('{\n  // mine\n  "a": 1\n}\n', "INI101", ".mcp.json:2:3"),
    "a list": ("[]\n", "INI101", ".mcp.json:1:1"),
    "servers that are no object": ('{"mcpServers": []}', "INI102", ".mcp.json"),
    "another server of our name": ('{"mcpServers": {"interlock": {"command": "gate"}}}', "INI102", ".mcp.json"),
    "a key twice": ('{"mcpServers": {}, "mcpServers": {}}', "INI101", ".mcp.json"),
    "nested too deeply": ("[" * 100_000, "INI101", ".mcp.json"),
    "Latin-1": (b'{\n"a": "\xe4"}', "INI101", ".mcp.json:2:1"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_refused_file_names_place_and_snippet_and_no_file_is_written(project: Path, name: str) -> None:
    text, code, place = BAD[name]
    (project / ".mcp.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    before = tree(project)
    done = init(project, "--client", "all")
    assert done.returncode == 2
    first = done.stderr.splitlines()[0]
    assert first.startswith(place), done.stderr
    assert f": error {code}: " in first
    for label in ("found:", "expected:", "fix: Nothing was written."):
        assert label in done.stderr
    assert "interlock" in json.loads(pasted(done.stderr))["mcpServers"]
    assert tree(project) == before


def pasted(stderr: str) -> str:
    """Return what the first refusal asks a person to paste."""
    lines = stderr.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("  fix:")) + 1
    last = next((at for at in range(first, len(lines)) if not lines[at].startswith(" " * 12)), len(lines))
    return "\n".join(line.strip() for line in lines[first:last])


TOML = {
    "a value": ("INI102", "mcp_servers = 3\n"),
    "no TOML": ("INI101", "[mcp_servers\n"),
}


@pytest.mark.parametrize("name", TOML)
def test_a_toml_file_that_cannot_be_edited_is_refused_with_what_to_merge(project: Path, name: str) -> None:
    code, text = TOML[name]
    put(project, "codex", text)
    before = tree(project)
    done = init(project, "--client", "codex", "--client", "claude")
    assert (done.returncode, code in done.stderr, tree(project)) == (2, True, before)
    assert list(tomllib.loads(pasted(done.stderr))["mcp_servers"]["interlock"]) == ["command", "args"]


def test_links_are_refused_for_files_and_for_folders(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mcp.json").write_text("{}")
    (project / ".cursor").symlink_to(elsewhere)
    (project / ".mcp.json").symlink_to(elsewhere / "mcp.json")
    done = init(project, "--client", "claude", "--client", "cursor")
    assert (done.returncode, done.stderr.count("INI101"), (elsewhere / "mcp.json").read_text()) == (2, 2, "{}")


def test_an_entry_that_runs_another_interlock_is_kept(project: Path) -> None:
    entry = {"command": ".venv/bin/interlock", "args": ["mcp"], "env": {"A": "1"}}
    put(project, "claude", json.dumps({"mcpServers": {"interlock": entry}}))
    before = tree(project)
    done = init(project)
    assert (done.returncode, tree(project)) == (0, before)
    assert "left as somebody wrote it: interlock (take that out" in done.stdout
    assert done.stdout.splitlines()[-1] == "nothing was written"


def test_it_is_run_from_any_folder_below_the_root(project: Path) -> None:
    done = init(project / "src")
    assert done.returncode == 0
    assert str(project) in done.stdout.splitlines()[0]
    assert (project / ".mcp.json").exists()
    assert str(project) not in init(project).stdout
    assert uninstall(project / "src").returncode == 0
    assert not (project / ".mcp.json").exists()


def test_a_home_folder_is_refused(project: Path) -> None:
    done = init(project, HOME=str(project))
    assert done.returncode == 2
    assert "--root" in done.stderr
    assert not (project / ".mcp.json").exists()


def test_json_lists_each_file_with_its_diff(project: Path) -> None:
    data = json.loads(init(project, "--client", "all", "--json").stdout)
    assert data["schema"] == "interlock.init/1"
    assert data["written"] is True
    assert [row["path"] for row in data["files"]] == list(PATHS.values())
    assert all(row["changed"] and row["diff"].startswith("--- /dev/null") for row in data["files"])
    again = json.loads(init(project, "--client", "all", "--json").stdout)
    assert (again["written"], [row["changed"] for row in again["files"]]) == (False, [False] * 4)
