"""`interlock uninstall`: what init wrote goes, and everything is as it was, byte for byte and with its mode."""

import json
from pathlib import Path

import pytest

from tests.child import git
from tests.interlock.checkout import install, interlock_command, tree, write_hook


def test_init_installs_all_and_uninstall_leaves_every_file_as_it_was(root: Path) -> None:
    write_hook(root / ".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n", 0o750)
    (root / ".claude").mkdir()
    (root / ".claude/settings.json").write_text('{"model": "m"}')
    before = tree(root)
    shown = interlock_command(root, "init", "--client", "all", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert tree(root) == before
    assert "+++ b/.git/hooks/reference-transaction" in shown.stdout
    done = interlock_command(root, "init", "--client", "all", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["files"]
    assert {row["client"] for row in rows} == {"claude", "codex", "gemini", "cursor", "git"}
    assert all(row["changed"] for row in rows)
    assert interlock_command(root, "init", "--client", "all").stdout.splitlines()[-1] == "all is done"
    gone = interlock_command(root, "uninstall")
    assert gone.returncode == 0, gone.stderr
    assert tree(root) == before


@pytest.mark.parametrize(("client", "gone"), [("gemini", ".gemini"), ("git", ".git/hooks/pre-commit")])
def test_one_client_or_the_hooks_of_git_alone_are_taken_back(root: Path, client: str, gone: str) -> None:
    install(root, "claude", "gemini", git_hooks=True)
    paths = {".gemini", ".claude/settings.json", ".git/hooks/pre-commit"}
    assert all((root / path).exists() for path in paths)
    done = interlock_command(root, "uninstall", "--client", client)
    assert done.returncode == 0, done.stderr
    assert {path for path in paths if not (root / path).exists()} == {gone}


def test_a_dry_run_shows_what_would_go_and_takes_nothing_back(root: Path) -> None:
    install(root, "claude", git_hooks=True)
    before = tree(root)
    done = interlock_command(root, "uninstall", "--dry-run", "--json")
    data = json.loads(done.stdout)
    assert (data["undo"], data["written"]) == (True, False)
    assert {row["path"] for row in data["files"]} >= {".mcp.json", ".claude/settings.json", ".git/hooks/pre-commit"}
    assert tree(root) == before


def test_reservations_and_the_journal_stay(root: Path) -> None:
    install(root, "claude", git_hooks=True)
    assert interlock_command(root, "reserve", "a.txt").returncode == 0
    done = interlock_command(root, "uninstall")
    assert done.returncode == 0
    assert f"stay: {root}/.git/interlock, " in done.stdout
    assert (root / ".git/interlock/reservations.sqlite").exists()
    assert (root / "artifacts/interlock/events.jsonl").exists()


def test_hooks_come_back_in_a_folder_that_the_configuration_names(root: Path) -> None:
    write_hook(root / "hooks dir/pre-commit", "#!/bin/sh -e\nexit 0\n", 0o755)
    git(root, "config", "core.hooksPath", "hooks dir")
    before = tree(root)
    install(root, git_hooks=True)
    assert (root / "hooks dir/reference-transaction").exists()
    git(root, "commit", "--allow-empty", "-qm", "second")
    assert interlock_command(root, "uninstall").returncode == 0
    assert {name: row for name, row in tree(root).items() if "interlock" not in name} == before
