"""`interlock doctor --prove`: every entry point that does not refuse is found, and nothing is left behind."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Generator, Iterable
from pathlib import Path

import pytest

from interlock.doctor import Proof
from interlock.doctor.installed import Handler
from interlock.doctor.prove import entry_points, planted
from interlock.install import Launch
from interlock.install.clients import EVENTS
from interlock.reservations import place
from tests.child import environment
from tests.interlock.checkout import install, interlock_command, tree, write_hook
from tests.interlock.doctoring import (
    GONE,
    command_gone,
    edit,
    entry_gone,
    hold,
    hooks_path,
    look,
    own_checkout,
    switched_off,
)
from tests.interlock.test_init_hooks import FILE_TOOLS, OWN, SERVED


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout, of a user with a home of his own."""
    return own_checkout(tmp_path, monkeypatch)


def proofs(root: Path, *beginnings: str, **more: str) -> Generator[Proof]:
    """Try the entry points whose names begin so."""
    with planted(root, {**environment(**more), "HOME": os.environ["HOME"]}) as scratch:
        for via in entry_points(root):
            if via.name.startswith(beginnings):
                yield via.prove(scratch)


def is_open(found: Iterable[Proof]) -> dict[str, bool]:
    """Return for each entry point whether it let the conflict pass; an open one has a fix."""
    rows = list(found)
    assert rows
    assert all(bool(row.fix) != row.refused for row in rows)
    return {row.name: not row.refused for row in rows}


@pytest.mark.long
def test_every_entry_point_refuses_a_real_conflict_and_nothing_is_left_behind(root: Path, tmp_path: Path) -> None:
    log = root / ".git/log"
    write_hook(root / ".git/hooks/pre-commit", f"#!/bin/sh\ntouch {log}\n")
    install(root, "all", git_hooks=True)
    store = hold(root, "ada", "src/**")
    store.close()
    # A folder of its own: other tests prove entry points at the same time.
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    before = tree(root)
    done = interlock_command(root, "doctor", "--prove", "--json", HOME=os.environ["HOME"], TMPDIR=str(scratch))
    data = json.loads(done.stdout)
    assert all(row["refused"] for row in data["entry_points"]), data["entry_points"]
    names = {row["name"].partition(" (")[0] for row in data["entry_points"]}
    assert names == {
        "interlock reserve",
        "interlock commit",
        "server",
        "Claude Code: Edit",
        "Claude Code: Write",
        "Claude Code: NotebookEdit",
        "Claude Code: Bash",
        "Claude Code: mcp__files__write_file",
        "Codex: apply_patch",
        "Codex: Bash",
        "Codex: mcp__files__write_file",
        "Gemini CLI: write_file",
        "Gemini CLI: replace",
        "Gemini CLI: run_shell_command",
        "Gemini CLI: mcp_files_write_file",
        "Claude Code: two subagents of a session",
        "Codex: two subagents of a session",
        "git pre-commit",
        "git pre-rebase",
        "git reference-transaction",
    }
    assert (done.returncode == 0) == data["ok"]
    assert tree(root) == before
    assert not log.exists()
    assert list(scratch.iterdir()) == []


PRE_EDIT = f"{shlex.join((sys.executable, '-P', '-m', 'interlock'))} hook pre-edit"


def as_always_refusing(root: Path, line: str) -> None:
    """A program that refuses everything knows nothing of the conflict."""
    write_hook(root / ".git/interlock", "#!/bin/sh\necho no >&2\nexit 2\n")
    edit(root / ".claude/settings.json", line, f"{root}/.git/interlock hook pre-edit")


BROKEN: dict[str, Callable[[Path, str], object]] = {
    "as_exit_0": lambda root, line: edit(root / ".claude/settings.json", line, "exit 0"),
    "as_swallowed": lambda root, line: edit(root / ".claude/settings.json", line, f"{line} || true"),
    "as_missing": lambda root, _: edit(root / ".claude/settings.json", sys.executable, GONE),
    "as_always_refusing": as_always_refusing,
    "as_removed": lambda root, _: (root / ".claude/settings.json").write_text("{}"),
    "as_switched_off": lambda root, _: switched_off(root),
}


@pytest.mark.alternate
@pytest.mark.sample(every=6)
@pytest.mark.parametrize("break_it", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_hook_of_a_client_lets_the_conflict_pass(root: Path, break_it: Callable[[Path, str], object]) -> None:
    install(root, "claude")
    break_it(root, PRE_EDIT)
    # What a command does is undone by the hook after it.
    assert {name for name, open_ in is_open(proofs(root, "Claude Code")).items() if not open_} <= {"Claude Code: Bash"}


@pytest.mark.long
def test_a_matcher_that_leaves_out_a_tool_lets_the_conflict_pass_for_that_tool(root: Path) -> None:
    install(root, "claude")
    edit(root / ".claude/settings.json", "(?!(Read|", "(?!(NotebookEdit|Read|")
    assert [name for name, open_ in is_open(proofs(root, "Claude Code")).items() if open_] == [
        "Claude Code: NotebookEdit"
    ]


def test_one_hook_that_refuses_is_enough(root: Path, tmp_path: Path) -> None:
    install(root, "claude")
    extra = {"PreToolUse": [{"hooks": [{"type": "command", "command": "true interlock hook pre-edit"}]}]}
    (root / ".claude/settings.local.json").write_text(json.dumps({"hooks": extra}))
    assert not any(is_open(proofs(root, "Claude Code: Edit")).values())


def test_a_plugin_that_is_switched_on_is_named(root: Path) -> None:
    local = root / ".claude/settings.local.json"
    local.parent.mkdir()
    local.write_text('{"enabledPlugins": {"interlock@market": true}}')
    for check in ("hooks-claude", "server"):
        assert look(root, check).found.startswith("the plugin interlock@market ")
    assert [via.name for via in entry_points(root)] == ["interlock reserve", "interlock commit"]


@pytest.mark.long
def test_a_commit_that_takes_what_others_hold_fails_the_proof(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_open(proofs(root, "interlock commit")) == {"interlock commit": False}
    program = root / ".git/interlock"
    write_hook(program, "#!/bin/sh\ngit commit -q -a -m x; echo held; exit 1\n")
    launch = Launch(str(program), ("mcp",), "")
    monkeypatch.setattr(sys.modules["interlock.doctor.prove"], "find_launch", lambda: launch)
    assert is_open(proofs(root, "interlock commit")) == {"interlock commit": True}


def git_early_exit(path: Path) -> None:
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], "exit 0", *lines[2:], ""]))


BROKEN_OF_GIT: dict[str, Callable[[Path], object]] = {
    "git_exit_0": lambda path: write_hook(path, "#!/bin/sh\nexit 0\n"),
    "git_early_exit": git_early_exit,
    "git_removed": lambda path: path.unlink(),
    "git_missing": lambda path: path.write_text(path.read_text().replace(f"{sys.prefix}/bin", "/nowhere/bin")),
    "git_not_executable": lambda path: path.chmod(0o644),
}


@pytest.mark.alternate
@pytest.mark.sample(every=5)
@pytest.mark.parametrize("break_it", BROKEN_OF_GIT.values(), ids=BROKEN_OF_GIT.keys())
def test_a_broken_hook_of_git_lets_the_conflict_pass(root: Path, break_it: Callable[[Path], object]) -> None:
    install(root, git_hooks=True)
    names = ["git pre-commit", "git pre-rebase", "git reference-transaction"]
    for name in names:
        break_it(root / ".git/hooks" / name.removeprefix("git "))
    assert is_open(proofs(root, "git")) == dict.fromkeys(names, True)


def test_hooks_of_git_in_a_folder_that_git_does_not_use_let_the_conflict_pass(root: Path) -> None:
    install(root, git_hooks=True)
    hooks_path(root)
    assert all(is_open(proofs(root, "git")).values())


def server_toolsets(root: Path) -> None:
    edit(root / ".mcp.json", '"mcp"', '"mcp", "--toolsets", "envelope"')


def server_elsewhere(root: Path) -> None:
    edit(root / ".mcp.json", sys.executable, "/bin/true")


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("break_it", [command_gone, entry_gone, server_toolsets, server_elsewhere])
def test_a_broken_server_lets_the_conflict_pass(root: Path, break_it: Callable[[Path], None]) -> None:
    install(root, "claude")
    break_it(root)
    assert list(is_open(proofs(root, "server")).values()) == [True]


@pytest.mark.long
def test_what_an_entry_of_the_server_sets_does_not_lead_the_proof_astray(root: Path) -> None:
    install(root, "claude")
    set_ = '"env": {"INTERLOCK_PROJECT": "/", "INTERLOCK_AGENT_ID": "eve"}, "args"'
    edit(root / ".mcp.json", '"args"', set_)
    assert list(is_open(proofs(root, "server")).values()) == [False]
    assert not Path(place.find(str(root)).store_path).exists()


@pytest.mark.long
def test_hooks_that_are_off_let_the_conflict_pass(root: Path) -> None:
    install(root, "claude", git_hooks=True)
    found = is_open(proofs(root, "Claude Code: Edit", "git pre-commit", INTERLOCK_HOOKS="off"))
    assert set(found.values()) == {True}


@pytest.mark.long
def test_one_broken_hook_of_git_does_not_hide_behind_the_others_and_the_command_names_it(root: Path) -> None:
    install(root, git_hooks=True)
    git_early_exit(root / ".git/hooks/pre-commit")
    done = interlock_command(root, "doctor", "--prove", HOME=os.environ["HOME"])
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("OPEN: git pre-commit:")
    assert [name for name, open_ in is_open(proofs(root, "git")).items() if open_] == ["git pre-commit"]


READING = {
    "claude": ("Read", "TodoWrite", "BashOutput", "Task"),
    "codex": (),
    "gemini": ("read_file", "list_directory"),
}


@pytest.mark.parametrize("client", EVENTS)
def test_the_edit_hook_is_called_for_every_tool_that_it_reads_and_started_for_no_other(client: str) -> None:
    before = EVENTS[client][0]
    via = Handler(before.name, before.matcher, "", "", blocks=False)
    named = [SERVED[client].format(at, tool) for at in ("files", "my-own_1") for tool in FILE_TOOLS]
    assert [tool for tool in (*OWN[client], *named) if not via.matches(tool)] == []
    assert [tool for tool in READING[client] if via.matches(tool)] == []
