"""`interlock doctor`: each check sees what it is for, and --prove finds every entry point that does not refuse."""

import os
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.doctor import CHECKS
from interlock.doctor.checks import diagnose, scene
from interlock.gates.sealed import sandbox
from interlock.install.hooks import CLAUDE as EVENTS
from interlock.reservations import SqliteStore, place
from tests.child import environment, git
from tests.interlock.checkout import install, interlock_command, make_store, tree, write_hook
from tests.interlock.doctoring import command_gone, edit, entry_gone, hold, hooks_path, look, own_checkout, switched_off


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout, of a user with a home of his own."""
    return own_checkout(tmp_path, monkeypatch)


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


@pytest.mark.parametrize(
    ("level", "verdict", "said"), [("namespaces", "ok", "by bubblewrap"), ("none", "warn", "SEAL301")]
)
def test_how_sealed_gates_are_isolated_is_said(
    root: Path, level: str, verdict: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "level", lambda: level)
    found = look(root, "isolation")
    assert (found.verdict, said in found.found, f"`{level}`" in found.found) == (verdict, True, True)
    assert ("bubblewrap" in found.fix) == (level == "none")


def test_what_is_installed_is_seen(root: Path) -> None:
    install(root, "all", git_hooks=True)
    for check in ("hooks-claude", "hooks-codex", "hooks-gemini", "git-hooks", "server", "chained"):
        assert look(root, check).verdict == "ok", look(root, check)


def program_gone(root: Path) -> None:
    path = root / ".git/hooks/pre-commit"
    path.write_text(path.read_text().replace(f"{sys.prefix}/bin", "/nowhere/bin"))


def store_of_others(root: Path) -> None:
    make_store(root)
    path = Path(place.find(str(root)).store_path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    path.chmod(0o600)


def store_damaged(root: Path) -> None:
    write_hook(Path(place.find(str(root)).store_path), "no database at all" * 100, 0o600)


def store_linked(root: Path) -> None:
    path = Path(place.find(str(root)).store_path)
    path.parent.mkdir()
    path.symlink_to(root / "a.txt")


def clock_ahead(root: Path) -> None:
    hold(root, "ada", "x", at=time.time() + 3600).close()


def journal_changed(root: Path) -> None:
    interlock_command(root, "reserve", "x", INTERLOCK_AGENT_ID="ada")
    edit(root / "artifacts/interlock/events.jsonl", "ada", "eve")


FAILURES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "the program of a hook is gone": ("hooks-claude", command_gone),
    "hooks are switched off": ("hooks-claude", switched_off),
    "the settings are no JSON": ("hooks-claude", lambda root: (root / ".claude/settings.json").write_text("{")),
    "the hooks were taken out": ("hooks-claude", lambda root: (root / ".claude/settings.json").write_text("{}")),
    "no hook before an edit": (
        "hooks-claude",
        lambda root: edit(root / ".claude/settings.json", '"PreToolUse"', '"PostToolBatch"'),
    ),
    "core.hooksPath leads elsewhere": ("git-hooks", hooks_path),
    "a hook of git is not executable": ("git-hooks", lambda root: (root / ".git/hooks/pre-commit").chmod(0o644)),
    "a hook of git was replaced": (
        "git-hooks",
        lambda root: write_hook(root / ".git/hooks/reference-transaction", "#!/bin/sh\n"),
    ),
    "the program of a hook of git is gone": ("git-hooks", program_gone),
    "the program of the server is gone": ("server", command_gone),
    "the entry of the server is gone": ("server", entry_gone),
    "the settings are wrong": (
        "settings",
        lambda root: (root / "interlock.toml").write_text("[reservations]\nttl_minuts = 3\n"),
    ),
    "the store is of a newer version": ("schema", store_of_others),
    "the store is no database": ("schema", store_damaged),
    "the store is a link": ("store", store_linked),
    "the clock went back": ("clock", clock_ahead),
    "the journal was changed": ("journal", journal_changed),
    "the server is another agent": (
        "agent",
        lambda root: edit(root / ".mcp.json", '"args"', '"env": {"INTERLOCK_AGENT_ID": "eve"}, "args"'),
    ),
}


@pytest.mark.sample(every=6)
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


def test_the_name_is_the_same_at_all_entry_points_when_a_variable_gives_it(root: Path) -> None:
    install(root, "claude")
    found = look(root, "agent", INTERLOCK_AGENT_ID="ada")
    assert found.verdict == "ok"
    assert "you are ada, " in found.found


def test_artifacts_that_git_would_commit_are_a_warning(root: Path) -> None:
    assert look(root, "ignored").verdict == "ok"
    (root / ".gitignore").unlink()
    assert look(root, "ignored").verdict == "warn"
    write_hook(root / "artifacts/interlock/events.jsonl", "", 0o644)
    git(root, "add", "artifacts")
    assert look(root, "ignored").verdict == "ok"


def test_a_worktree_without_the_hooks_of_the_main_one_is_unguarded_and_said_to_be(root: Path) -> None:
    linked = root.parent / "linked"
    git(root, "worktree", "add", "-q", str(linked))
    assert look(linked, "hooks-claude").verdict == "ok"
    install(root, "claude")
    found = look(linked, "hooks-claude")
    assert found.verdict == "fail"
    assert ".claude/settings.json" in found.fix
    assert look(linked, "hooks-gemini").verdict == "ok"
    install(linked, "claude")
    assert look(linked, "hooks-claude").verdict == "ok"
