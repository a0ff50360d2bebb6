"""`interlock init` keeps what runs write out of commits, and `uninstall` leaves `.gitignore` as it was."""

from pathlib import Path

import pytest

from tests.child import git
from tests.interlock.checkout import interlock_command, make, tree

BEFORE = {"no file": None, "no line end at the end": b"*.pyc", "lines with CRLF": b"*.pyc\r\n", "an empty file": b""}


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Return a checkout in which nothing is ignored."""
    root = make(tmp_path / "bare")
    git(root, "rm", "-q", "-f", ".gitignore")
    return root


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_init_ignores_artifacts_says_so_and_uninstall_takes_that_back(bare: Path, before: bytes | None) -> None:
    if before is not None:
        (bare / ".gitignore").write_bytes(before)
    files = tree(bare)
    done = interlock_command(bare, "init", "--no-hooks")
    assert ".gitignore (git): `artifacts/` added" in done.stdout, done.stderr
    assert git(bare, "check-ignore", "artifacts/reports/x.md").strip() == "artifacts/reports/x.md"
    assert interlock_command(bare, "init", "--no-hooks").stdout.splitlines()[-1] == "all is done"
    assert interlock_command(bare, "uninstall").returncode == 0
    assert tree(bare) == files


def test_of_a_file_that_was_edited_since_only_our_line_goes(bare: Path) -> None:
    interlock_command(bare, "init", "--no-hooks")
    (bare / ".gitignore").write_text("*.pyc\nartifacts/\nbuild/\n")
    assert "only `artifacts/` is taken out" in interlock_command(bare, "uninstall").stdout
    assert (bare / ".gitignore").read_text() == "*.pyc\nbuild/\n"


@pytest.mark.parametrize("kept", [".gitignore", ".git/info/exclude", "artifacts/interlock/events.jsonl"])
def test_what_is_ignored_already_or_kept_with_the_code_stays_so(bare: Path, kept: str) -> None:
    (bare / kept).parent.mkdir(parents=True, exist_ok=True)
    (bare / kept).write_text("/artifacts\n")
    if kept.startswith("artifacts"):
        git(bare, "add", kept)
    files = (bare / ".gitignore").exists()
    assert ".gitignore" not in interlock_command(bare, "init", "--no-hooks").stdout
    assert (bare / ".gitignore").exists() == files
