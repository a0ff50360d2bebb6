"""`interlock doctor`: each check sees what it is for, and --prove finds every entry point that does not refuse."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.doctor import CHECKS
from interlock.doctor.checks import diagnose, scene
from interlock.gates.sealed import sandbox
from interlock.reservations import place, process
from tests.child import environment, git
from tests.interlock.checkout import install, tree, write_hook
from tests.interlock.doctoring import command_gone, edit, entry_gone, hold, look, own_checkout, switched_off


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout, of a user with a home of his own."""
    return own_checkout(tmp_path, monkeypatch)


# -- the checks --------------------------------------------------------------------------------------------------------


def test_a_fresh_project_has_no_failure_and_looking_leaves_no_trace(root: Path) -> None:
    before = tree(root)
    found = diagnose(scene(root, {**environment(), "HOME": os.environ["HOME"]}))
    assert len(found) >= 12
    assert {check.id for check, finding in found if finding.verdict == "fail"} <= {"command"}
    assert tree(root) == before


def test_every_check_says_what_it_is_for_and_every_trouble_has_a_fix(root: Path) -> None:
    assert len({row.id for row in CHECKS}) == len(CHECKS) >= 12
    assert all(row.what and row.fix for row in CHECKS)
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
    assert ("/proc" in found.found) is not process.HAS_PROC
    monkeypatch.setattr(process, "HAS_PROC", False)
    assert "no /proc here" in look(root, "isolation").found
    monkeypatch.setattr(sys, "platform", "darwin")
    assert (look(root, "isolation").verdict, "need Linux" in look(root, "isolation").found) == ("warn", True)


def test_what_is_installed_is_seen(root: Path) -> None:
    install(root, "all", git_hooks=True)
    for check in ("hooks-claude", "hooks-codex", "hooks-gemini", "git-hooks", "server"):
        assert look(root, check).verdict == "ok", look(root, check)


def program_gone(root: Path) -> None:
    path = root / ".git/hooks/pre-commit"
    path.write_text(path.read_text().replace(f"{sys.prefix}/bin", "/nowhere/bin"))


def store_damaged(root: Path) -> None:
    write_hook(Path(place.find(str(root)).store_path), "no database at all" * 100, 0o600)


FAILURES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "the program of a hook is gone": ("hooks-claude", command_gone),
    "hooks are switched off": ("hooks-claude", switched_off),
    "the settings are nested too deeply": (
        "hooks-claude",
        lambda root: (root / ".claude/settings.json").write_text("[" * 100_000),
    ),
    "the settings are no JSON": ("hooks-claude", lambda root: (root / ".claude/settings.json").write_text("{")),
    "the hooks were taken out": ("hooks-claude", lambda root: (root / ".claude/settings.json").write_text("{}")),
    "no hook before an edit": (
        "hooks-claude",
        lambda root: edit(root / ".claude/settings.json", '"PreToolUse"', '"PostToolBatch"'),
    ),
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
    "the store is no database": ("store", store_damaged),
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


@pytest.mark.parametrize(
    ("check", "path", "old", "new"),
    [
        ("hooks-claude", ".claude/settings.json", "(?!(Read|", "(?!(NotebookEdit|Read|"),
        ("hooks-claude", ".claude/settings.json", '"onFailure": "block"', '"onFailure": "continue"'),
        ("git-hooks", ".git/hooks/pre-commit", "may_be_held", "as_it_was"),
    ],
)
def test_hooks_that_are_not_as_init_writes_them_are_a_warning(
    root: Path, check: str, path: str, old: str, new: str
) -> None:
    install(root, "claude", git_hooks=True)
    edit(root / path, old, new)
    assert look(root, check).verdict == "warn"


def test_what_is_held_further_up_is_named_and_a_store_there_that_cannot_be_read_is_a_failure(root: Path) -> None:
    assert look(root, "store").verdict == "ok"
    git(root.parent, "init", "-q")
    hold(root.parent, "ada", "project/**").close()
    found = look(root, "store")
    assert (found.verdict, f"{root.parent}/" in found.found) == ("ok", True)
    Path(place.find(str(root.parent)).store_path).write_bytes(b"no database at all" * 100)
    found = look(root, "store")
    assert (found.verdict, str(root.parent) in found.found) == ("fail", True)


def test_a_hook_of_another_installation_that_is_gone_is_taken_out_by_what_the_fix_says(root: Path) -> None:
    install(root, "claude", git_hooks=True)
    program_gone(root)
    shutil.rmtree(root / ".interlock")
    path = root / ".git/hooks/pre-commit"
    assert look(root, "git-hooks").fix == f"To renew it, remove {path} and run `interlock init`."
    path.unlink()
    install(root, "claude", git_hooks=True)
    assert look(root, "git-hooks").verdict == "ok"


def test_artifacts_that_git_would_commit_are_a_warning(root: Path) -> None:
    assert look(root, "ignored").verdict == "ok"
    (root / ".gitignore").unlink()
    assert look(root, "ignored").verdict == "warn"
    write_hook(root / "artifacts/interlock/events.jsonl", "", 0o644)
    git(root, "add", "artifacts")
    assert look(root, "ignored").verdict == "ok"


def test_other_things_in_a_group_of_hooks_are_passed_over(root: Path) -> None:
    install(root, "claude")
    edit(root / ".claude/settings.json", '"hooks": [\n          {', '"hooks": [\n          "x", {')
    assert look(root, "hooks-claude").verdict == "ok"
