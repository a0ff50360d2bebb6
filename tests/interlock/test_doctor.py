"""`interlock doctor`: each check sees what it is for, and --prove finds every door that does not refuse."""

import json
import os
import shlex
import sqlite3
import sys
import time
from collections.abc import Callable, Generator, Iterable
from pathlib import Path

import pytest

from interlock.doctor import CHECKS, Finding, Proof
from interlock.doctor.checks import diagnose, scene
from interlock.doctor.prove import doors
from interlock.doctor.scratch import planted
from interlock.install import Launch
from interlock.install.hooks import CLAUDE as EVENTS
from interlock.reservations import place
from interlock.reservations.desk import Caller, Desk
from interlock.reservations.leases import reserve
from interlock.reservations.sqlite import SqliteStore
from tests.interlock.checkout import attempt, environment, git, install, interlock_command, make, tree, write_hook
from tests.interlock.test_plugin import PLUGIN

GONE = "/nowhere/bin/interlock"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout, of a user with a home of his own."""
    for name in list(os.environ):
        if name.startswith(("GIT_", "INTER", "CLAUDE")):
            monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return make(tmp_path / "project")


def look(root: Path, check: str, **more: str) -> Finding:
    """Run one check."""
    (row,) = (row for row in CHECKS if row.id == check)
    return row.run(scene(root, {**environment(**more), "HOME": os.environ["HOME"]}))


def hold(root: Path, name: str, *patterns: str, at: float | None = None) -> SqliteStore:
    """Let somebody without a process hold something."""
    store = SqliteStore(place.find(str(root)).store_path)
    desk = Desk(store, clock=time.time if at is None else lambda: at)
    assert not reserve(desk, Caller(name, "agent", str(root), "cli"), list(patterns))["errors"]
    return store


# -- the checks --------------------------------------------------------------------------------------------------------


def test_a_fresh_project_has_no_failure_and_looking_leaves_no_trace(root: Path) -> None:
    before = tree(root)
    found = diagnose(scene(root, {**environment(), "HOME": os.environ["HOME"]}))
    assert len(found) >= 15
    assert {check.id for check, finding in found if finding.verdict == "fail"} <= {"command", "on-failure"}
    assert tree(root) == before


def test_every_check_says_what_it_is_for_and_every_trouble_has_a_fix(root: Path) -> None:
    assert len({row.id for row in CHECKS}) == len(CHECKS) >= 15
    assert all(row.what and row.how for row in CHECKS)
    for _, finding in diagnose(scene(root, environment(INTERLOCK_HOOKS="off"))):
        assert bool(finding.fix) == (finding.verdict != "ok") or finding.found.startswith("not installed")


def test_what_is_installed_is_seen(root: Path) -> None:
    install(root, "all", git_hooks=True)
    for check in ("hooks-claude", "hooks-codex", "hooks-gemini", "git-hooks", "server", "chained"):
        assert look(root, check).verdict == "ok", look(root, check)


def edit(path: Path, old: str, new: str) -> None:
    """Change a text in a file; it is there."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def command_gone(root: Path) -> None:
    for name in (".claude/settings.json", ".mcp.json"):
        edit(root / name, sys.executable, GONE)


def switched_off(root: Path) -> None:
    edit(root / ".claude/settings.json", "{\n", '{\n  "disableAllHooks": true,\n')


def no_json(root: Path) -> None:
    (root / ".claude/settings.json").write_text("{")


def hooks_removed(root: Path) -> None:
    (root / ".claude/settings.json").write_text("{}")


def one_event_missing(root: Path) -> None:
    edit(root / ".claude/settings.json", '"PreToolUse"', '"PostToolBatch"')


def hooks_path(root: Path) -> None:
    git(root, "config", "core.hooksPath", ".githooks")


def not_executable(root: Path) -> None:
    (root / ".git/hooks/pre-commit").chmod(0o644)


def replaced(root: Path) -> None:
    write_hook(root / ".git/hooks/reference-transaction", "#!/bin/sh\n")


def program_gone(root: Path) -> None:
    path = root / ".git/hooks/pre-commit"
    path.write_text(path.read_text().replace(f"{sys.prefix}/bin", "/nowhere/bin"))


def entry_gone(root: Path) -> None:
    (root / ".mcp.json").write_text("{}")


def broken_settings(root: Path) -> None:
    (root / "interlock.toml").write_text("[reservations]\nttl_minuts = 3\n")


def store_of_others(root: Path) -> None:
    path = Path(place.find(str(root)).store_path)
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    path.chmod(0o600)


def store_damaged(root: Path) -> None:
    path = Path(place.find(str(root)).store_path)
    path.parent.mkdir()
    path.write_bytes(b"no database at all" * 100)
    path.chmod(0o600)


def store_linked(root: Path) -> None:
    path = Path(place.find(str(root)).store_path)
    path.parent.mkdir()
    path.symlink_to(root / "a.txt")


def clock_ahead(root: Path) -> None:
    hold(root, "ada", "x", at=time.time() + 3600).close()


def journal_changed(root: Path) -> None:
    interlock_command(root, "reserve", "x", INTERLOCK_AGENT_ID="ada")
    edit(root / "artifacts/interlock/events.jsonl", "ada", "eve")


def two_agents(root: Path) -> None:
    edit(root / ".mcp.json", '"args"', '"env": {"INTERLOCK_AGENT_ID": "eve"}, "args"')


FAILURES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "the program of a hook is gone": ("hooks-claude", command_gone),
    "hooks are switched off": ("hooks-claude", switched_off),
    "the settings are no JSON": ("hooks-claude", no_json),
    "the hooks were taken out": ("hooks-claude", hooks_removed),
    "no hook before an edit": ("hooks-claude", one_event_missing),
    "core.hooksPath leads elsewhere": ("git-hooks", hooks_path),
    "a hook of git is not executable": ("git-hooks", not_executable),
    "a hook of git was replaced": ("git-hooks", replaced),
    "the program of a hook of git is gone": ("git-hooks", program_gone),
    "the program of the server is gone": ("server", command_gone),
    "the entry of the server is gone": ("server", entry_gone),
    "the settings are wrong": ("settings", broken_settings),
    "the store is of a newer version": ("schema", store_of_others),
    "the store is no database": ("schema", store_damaged),
    "the store is a link": ("store", store_linked),
    "the clock went back": ("clock", clock_ahead),
    "the journal was changed": ("journal", journal_changed),
    "the server is another agent": ("agent", two_agents),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_check_fails_on_what_it_is_for_and_says_what_to_do(root: Path, name: str) -> None:
    check, break_it = FAILURES[name]
    install(root, "claude", git_hooks=True)
    assert look(root, check).verdict == "ok"
    break_it(root)
    found = look(root, check)
    assert (found.verdict, bool(found.fix)) == ("fail", True), found


def test_hooks_that_are_off_in_the_environment_are_a_failure(root: Path) -> None:
    assert look(root, "switch", INTERLOCK_HOOKS="off").verdict == "fail"


def test_another_installation_on_the_path_is_a_failure(root: Path, tmp_path: Path) -> None:
    write_hook(tmp_path / "bin/interlock", "#!/bin/sh\n")
    assert look(root, "command", PATH=f"{tmp_path}/bin:/usr/bin:/bin").verdict == "fail"
    assert look(root, "command", PATH="/usr/bin:/bin").verdict == "warn"
    write_hook(tmp_path / "bin/interlock", f"#!{sys.executable}\n")
    assert look(root, "command", PATH=f"{tmp_path}/bin:/usr/bin:/bin").verdict == "ok"


def test_another_matcher_than_that_of_init_is_a_warning(root: Path) -> None:
    install(root, "claude")
    edit(root / ".claude/settings.json", EVENTS[0].matcher, "Edit|Write|MultiEdit|NotebookEdit|Bash")
    found = look(root, "hooks-claude")
    assert (found.verdict, "mcp__files__write_file" in found.found) == ("warn", True)
    edit(root / ".claude/settings.json", "Edit|Write|MultiEdit|NotebookEdit|Bash", "*")
    assert look(root, "hooks-claude").verdict == "ok"


def test_a_hook_of_git_with_another_text_is_a_warning(root: Path) -> None:
    install(root, git_hooks=True)
    edit(root / ".git/hooks/pre-commit", "may_be_held", "as_it_was")
    assert look(root, "git-hooks").verdict == "warn"


@pytest.mark.parametrize(
    ("name", "text"),
    [(".pre-commit-config.yaml", "repos: []\n"), (".lintstagedrc.json", "{}"), ("package.json", '{"lint-staged": {}}')],
)
def test_a_hook_that_sets_unstaged_work_aside_is_a_warning(root: Path, name: str, text: str) -> None:
    (root / "package.json").write_text('{"name": "x"}')
    assert look(root, "set-aside").verdict == "ok"
    (root / name).write_text(text)
    found = look(root, "set-aside")
    assert (found.verdict, name in found.found) == ("warn", True)


def test_what_is_held_further_up_is_named_and_a_store_there_that_cannot_be_read_is_a_failure(root: Path) -> None:
    assert look(root, "around").verdict == "ok"
    git(root.parent, "init", "-q")
    hold(root.parent, "ada", "project/**").close()
    found = look(root, "around")
    assert (found.verdict, f"in {root.parent} " in found.found) == ("ok", True)
    Path(place.find(str(root.parent)).store_path).write_bytes(b"no database at all" * 100)
    found = look(root, "around")
    assert (found.verdict, str(root.parent) in found.found) == ("fail", True)


def test_a_silent_holder_is_a_warning(root: Path) -> None:
    hold(root, "ada", "x").close()
    assert look(root, "leases").verdict == "ok"
    store = hold(root, "bob", "y", at=time.time() - 600)
    store.close()
    found = look(root, "leases")
    assert found.verdict == "warn"
    assert "bob" in found.found


def test_events_of_a_checkout_that_is_gone_are_a_warning(root: Path) -> None:
    store = SqliteStore(place.find(str(root)).store_path)
    with store.transaction() as tx:
        tx.add_event("/nowhere", "agent_joined", "{}", time.time())
    store.close()
    assert look(root, "outbox").verdict == "warn"


def test_a_kept_hook_that_is_gone_is_a_failure_and_a_dull_one_a_warning(root: Path) -> None:
    path = root / ".git/hooks/pre-commit"
    write_hook(path, "#!/bin/sh\n")
    install(root, git_hooks=True)
    kept = path.with_name("pre-commit.before-interlock")
    kept.chmod(0o644)
    assert look(root, "chained").verdict == "warn"
    kept.unlink()
    assert look(root, "chained").verdict == "fail"


def test_a_client_that_lets_an_edit_pass_when_its_hook_fails_is_a_warning(root: Path, tmp_path: Path) -> None:
    install(root, "claude")
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    for version, verdict in (("2.1.294", "warn"), ("2.1.295", "ok"), ("2.2.0", "ok")):
        write_hook(tmp_path / "bin/claude", f"#!/bin/sh\necho '{version} (Claude Code)'\n")
        assert look(root, "on-failure", PATH=path).verdict == verdict
    edit(root / ".claude/settings.json", '"onFailure": "block"', '"onFailure": "continue"')
    assert look(root, "on-failure", PATH=path).verdict == "warn"


def test_the_names_of_all_doors_are_one_when_a_variable_gives_it(root: Path) -> None:
    install(root, "claude")
    found = look(root, "agent", INTERLOCK_AGENT_ID="ada")
    assert found.verdict == "ok"
    assert found.found.startswith("ada ")


def test_artifacts_that_git_would_commit_are_a_warning(root: Path) -> None:
    assert look(root, "ignored").verdict == "ok"
    (root / ".gitignore").unlink()
    assert look(root, "ignored").verdict == "warn"
    write_hook(root / "artifacts/interlock/events.jsonl", "", 0o644)
    git(root, "add", "artifacts")
    assert look(root, "ignored").verdict == "ok"


# -- the proof ---------------------------------------------------------------------------------------------------------


def proofs(root: Path, *beginnings: str, **more: str) -> Generator[Proof]:
    """Try the doors whose names begin so."""
    with planted(root, {**environment(**more), "HOME": os.environ["HOME"]}) as scratch:
        for door in doors(root):
            if door.name.startswith(beginnings):
                yield door.attempt(scratch)


def is_open(found: Iterable[Proof]) -> dict[str, bool]:
    """Return for each door whether it let the conflict pass; an open one has a fix."""
    rows = list(found)
    assert rows
    assert all(bool(row.fix) != row.refused for row in rows)
    return {row.door: not row.refused for row in rows}


def test_every_door_refuses_a_real_conflict_and_nothing_is_left_behind(root: Path, tmp_path: Path) -> None:
    log = root / ".git/log"
    write_hook(root / ".git/hooks/pre-commit", f"#!/bin/sh\ntouch {log}\n")
    install(root, "all", git_hooks=True)
    store = hold(root, "ada", "src/**")
    store.close()
    # A folder of its own: other tests prove doors at the same time.
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    before = tree(root)
    done = interlock_command(root, "doctor", "--prove", "--json", HOME=os.environ["HOME"], TMPDIR=str(scratch))
    data = json.loads(done.stdout)
    assert all(row["refused"] for row in data["doors"]), data["doors"]
    names = {row["door"].partition(" (")[0] for row in data["doors"]}
    assert names == {
        "interlock reserve", "interlock commit", "server", "Claude Code: Edit", "Claude Code: Write",
        "Claude Code: MultiEdit", "Claude Code: NotebookEdit", "Claude Code: Bash",
        "Claude Code: mcp__files__write_file", "Codex: apply_patch", "Codex: Bash", "Codex: mcp__files__write_file",
        "Gemini CLI: write_file", "Gemini CLI: replace", "Gemini CLI: run_shell_command",
        "Gemini CLI: mcp_files_write_file", "git pre-commit", "git pre-rebase", "git applypatch-msg",
        "git reference-transaction",
    }  # fmt: skip
    assert (done.returncode == 0) == data["ok"]
    assert tree(root) == before
    assert not log.exists()
    assert list(scratch.iterdir()) == []


def as_exit_0(root: Path, line: str) -> None:
    edit(root / ".claude/settings.json", line, "exit 0")


def as_swallowed(root: Path, line: str) -> None:
    edit(root / ".claude/settings.json", line, f"{line} || true")


def as_missing(root: Path, line: str) -> None:
    edit(root / ".claude/settings.json", sys.executable, GONE)


def as_always_refusing(root: Path, line: str) -> None:
    """A program that refuses everything knows nothing of the conflict."""
    write_hook(root / ".git/interlock", "#!/bin/sh\necho no >&2\nexit 2\n")
    edit(root / ".claude/settings.json", line, f"{root}/.git/interlock hook pre-edit")


def as_removed(root: Path, line: str) -> None:
    (root / ".claude/settings.json").write_text("{}")


def as_switched_off(root: Path, line: str) -> None:
    switched_off(root)


@pytest.mark.parametrize(
    "break_it", [as_exit_0, as_swallowed, as_missing, as_always_refusing, as_removed, as_switched_off]
)
def test_a_broken_hook_of_a_client_is_an_open_door(root: Path, break_it: Callable[[Path, str], None]) -> None:
    install(root, "claude")
    break_it(root, f"{shlex.join((sys.executable, '-P', '-m', 'interlock'))} hook pre-edit")
    assert set(is_open(proofs(root, "Claude Code")).values()) == {True}


def test_a_matcher_that_leaves_out_a_tool_is_an_open_door_for_that_tool(root: Path) -> None:
    install(root, "claude")
    edit(root / ".claude/settings.json", "|NotebookEdit|Bash", "|Bash")
    assert [name for name, open_ in is_open(proofs(root, "Claude Code")).items() if open_] == [
        "Claude Code: NotebookEdit"
    ]


def test_one_hook_that_refuses_is_enough(root: Path, tmp_path: Path) -> None:
    install(root, "claude")
    extra = {"PreToolUse": [{"hooks": [{"type": "command", "command": "true interlock hook pre-edit"}]}]}
    (root / ".claude/settings.local.json").write_text(json.dumps({"hooks": extra}))
    assert not any(is_open(proofs(root, "Claude Code: Edit")).values())


def plug_in(root: Path, *, switched: bool = True, folder: Path = PLUGIN) -> str:
    """Give Claude Code the plugin, and `interlock` on PATH, as the plugin starts it; return that PATH."""
    home = Path(os.environ["HOME"])
    (home / ".claude" / "plugins").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text(json.dumps({"enabledPlugins": {"interlock@market": switched}}))
    others = {"scope": "project", "projectPath": "/elsewhere", "installPath": "/nowhere"}
    rows = {"interlock@market": [others, {"scope": "user", "installPath": str(folder)}]}
    installed = {"version": 2, "plugins": rows}
    (home / ".claude" / "plugins" / "installed_plugins.json").write_text(json.dumps(installed))
    write_hook(home / "bin/interlock", f'#!/bin/sh\nexec {sys.executable} -P -m interlock "$@"\n')
    return f"{home}/bin:{os.environ['PATH']}"


def test_the_hooks_and_the_server_of_the_plugin_are_doors(root: Path) -> None:
    path = plug_in(root)
    assert look(root, "hooks-claude", PATH=path).verdict == "ok"
    assert look(root, "server", PATH=path).verdict == "ok"
    doors = ("Claude Code (plugin interlock@market): Edit", "server (plugin interlock@market)")
    assert is_open(proofs(root, *doors, PATH=path)) == dict.fromkeys(doors, False)
    assert is_open(proofs(root, *doors, PATH="/usr/bin:/bin")) == dict.fromkeys(doors, True)


def test_a_plugin_whose_files_are_gone_is_an_open_door(root: Path) -> None:
    plug_in(root, folder=Path("/nowhere/plugin"))
    assert look(root, "hooks-claude").verdict == "fail"
    found = is_open(proofs(root, "Claude Code"))
    assert len(found) == 6
    assert all(found.values())


def test_a_plugin_that_the_project_switches_off_is_no_door(root: Path) -> None:
    plug_in(root)
    local = root / ".claude/settings.local.json"
    local.parent.mkdir()
    local.write_text('{"enabledPlugins": {"interlock@market": false}}')
    assert [door.name for door in doors(root)] == ["interlock reserve", "interlock commit"]


def test_the_plugin_beside_what_init_wrote_is_a_warning_and_hides_no_open_door(root: Path) -> None:
    path = plug_in(root)
    install(root, "claude")
    for check in ("hooks-claude", "server"):
        found = look(root, check, PATH=path)
        assert (found.verdict, "interlock uninstall --client claude" in found.fix) == ("warn", True)
    as_exit_0(root, f"{shlex.join((sys.executable, '-P', '-m', 'interlock'))} hook pre-edit")
    found = is_open(proofs(root, "Claude Code: Edit", "Claude Code (plugin interlock@market): Edit", PATH=path))
    assert list(found.values()) == [True, False]


def test_a_commit_that_takes_what_others_hold_is_an_open_door(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_open(proofs(root, "interlock commit")) == {"interlock commit": False}
    program = root / ".git/interlock"
    write_hook(program, "#!/bin/sh\ngit commit -q -a -m x; echo held; exit 1\n")
    launch = Launch(str(program), ("mcp",), "")
    monkeypatch.setattr(sys.modules["interlock.doctor.prove"], "find_launch", lambda: launch)
    assert is_open(proofs(root, "interlock commit")) == {"interlock commit": True}


@pytest.mark.parametrize("client", ["codex", "gemini"])
def test_a_broken_hook_of_another_client_is_an_open_door(root: Path, client: str) -> None:
    install(root, client)
    title = "Codex" if client == "codex" else "Gemini CLI"
    assert not any(is_open(proofs(root, title)).values())
    path = root / (".codex/hooks.json" if client == "codex" else ".gemini/settings.json")
    edit(path, f"pre-edit --client {client}", f"pre-edit --client {client}; exit 0")
    assert all(is_open(proofs(root, title)).values())


def git_exit_0(path: Path) -> None:
    write_hook(path, "#!/bin/sh\nexit 0\n")


def git_early_exit(path: Path) -> None:
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], "exit 0", *lines[2:], ""]))


def git_removed(path: Path) -> None:
    path.unlink()


def git_missing(path: Path) -> None:
    path.write_text(path.read_text().replace(f"{sys.prefix}/bin", "/nowhere/bin"))


def git_not_executable(path: Path) -> None:
    path.chmod(0o644)


@pytest.mark.parametrize("break_it", [git_exit_0, git_early_exit, git_removed, git_missing, git_not_executable])
def test_a_broken_hook_of_git_is_an_open_door(root: Path, break_it: Callable[[Path], None]) -> None:
    install(root, git_hooks=True)
    names = ["git pre-commit", "git pre-rebase", "git applypatch-msg", "git reference-transaction"]
    for name in names:
        break_it(root / ".git/hooks" / name.removeprefix("git "))
    assert is_open(proofs(root, "git")) == dict.fromkeys(names, True)


def test_one_broken_hook_of_git_does_not_hide_behind_the_others(root: Path) -> None:
    install(root, git_hooks=True)
    git_early_exit(root / ".git/hooks/pre-commit")
    assert [name for name, open_ in is_open(proofs(root, "git")).items() if open_] == ["git pre-commit"]


def test_hooks_of_git_in_a_folder_that_git_does_not_use_are_open_doors(root: Path) -> None:
    install(root, git_hooks=True)
    hooks_path(root)
    assert all(is_open(proofs(root, "git")).values())


def server_toolsets(root: Path) -> None:
    edit(root / ".mcp.json", '"mcp"]', '"mcp", "--toolsets", "envelope"]')


def server_elsewhere(root: Path) -> None:
    edit(root / ".mcp.json", sys.executable, "/bin/true")


@pytest.mark.parametrize("break_it", [command_gone, entry_gone, server_toolsets, server_elsewhere])
def test_a_broken_server_is_an_open_door(root: Path, break_it: Callable[[Path], None]) -> None:
    install(root, "claude")
    break_it(root)
    assert list(is_open(proofs(root, "server")).values()) == [True]


def test_what_an_entry_of_the_server_sets_does_not_lead_the_proof_astray(root: Path) -> None:
    install(root, "claude")
    set_ = '"env": {"INTERLOCK_PROJECT": "/", "INTERLOCK_AGENT_ID": "eve"}, "args"'
    edit(root / ".mcp.json", '"args"', set_)
    assert list(is_open(proofs(root, "server")).values()) == [False]
    assert not Path(place.find(str(root)).store_path).exists()


def test_hooks_that_are_off_are_open_doors(root: Path) -> None:
    install(root, "claude", git_hooks=True)
    found = is_open(proofs(root, "Claude Code: Edit", "git pre-commit", INTERLOCK_HOOKS="off"))
    assert set(found.values()) == {True}


def test_the_command_names_the_open_door_and_fails(root: Path) -> None:
    install(root, git_hooks=True)
    git_early_exit(root / ".git/hooks/pre-commit")
    done = interlock_command(root, "doctor", "--prove", HOME=os.environ["HOME"])
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("OPEN: git pre-commit:")


def test_the_real_store_does_not_see_the_proof(root: Path) -> None:
    store = hold(root, "ada", "src/**")
    install(root, "claude")
    list(proofs(root, "server", "interlock", "Claude Code: Edit"))
    with store.transaction() as tx:
        assert [row.name for row in tx.agents()] == ["ada"]
        assert [row.pattern for row in tx.leases()] == ["src/**"]
    store.close()
    assert attempt(root, "git", "status", "--porcelain", "--ignored").stdout.count("probe") == 0
