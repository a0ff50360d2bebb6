"""What a caller with a token reserves of hidden files is held by its name, and says nothing of what is there."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from interlock.reservations import open_reservations
from interlock.server.mcp.reservations import ReservationCalls
from tests.child import git

PATTERNS = (
    "secrets", "secrets/", "secrets/**", "secrets/db.txt", "secrets/db.txt/", "secrets/db.txt/**", ".env", ".env/**",
    "secrets/lnk", "secrets/srclink/a.py", "secrets/nested", "secrets/nested/x", "secrets/[a].txt", "{secrets,.env}/**",
    "src/server.key", "src/server.key/**", ".interlock/runs", ".git/hooks/pre-commit", "../outside", "{root}/secrets",
    "/etc/hostname", "secrets/nested/.git/config", "./secrets/db.txt",
    "hid/db.txt", "hid/nested", "docs/server.key/**",
)  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in ("src/a.py", "src/[b].py", "secrets/db.txt", "secrets/[a].txt", ".env", "src/server.key", "vendor/x.c"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    (root / ".gitignore").write_text(".env\nsecrets/\n*.key\n")
    (root / "docs").symlink_to("src")
    (root / "hid").symlink_to("secrets")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    for nested in ("secrets/nested", "vendor"):
        git(root, "init", "--quiet", nested)
    (root / "secrets/lnk").symlink_to("/etc")
    (root / "secrets/srclink").symlink_to("../src")
    (tmp_path / "outside").write_text("x\n")
    return root


def asked(root: Path, text: str) -> list[Any]:
    """Return what the calls that take a pattern answer a token, without ids and times."""
    mine = ReservationCalls(root).of("claude")
    text = text.format(root=root) if "{root}" in text else text
    granted = mine.reserve_files([text], "why")
    negotiated = mine.negotiate_release(text, "why")
    checked = mine.check_conflicts([text])
    mine.release_all()
    held = [row["pattern"] for row in granted["reservations"]]
    return [held, granted["errors"], negotiated["status"], negotiated.get("errors"), json.loads(json.dumps(checked))]


@pytest.mark.long
def test_a_pattern_of_a_caller_with_a_token_says_nothing_of_hidden_files(root: Path) -> None:
    there = {text: asked(root, text) for text in PATTERNS}
    shutil.rmtree(root / "secrets")
    (root / ".env").unlink()
    (root / "src/server.key").unlink()
    (root.parent / "outside").unlink()
    assert {text: asked(root, text) for text in PATTERNS} == there


@pytest.mark.parametrize("mine", ["secrets", "secrets/", "secrets/**"])
def test_a_hidden_path_is_held_as_the_file_and_as_the_folder_that_it_may_be(root: Path, mine: str) -> None:
    assert ReservationCalls(root).of("claude").reserve_files([mine])["reservations"]
    ann = open_reservations(str(root), name="ann")
    for theirs in ("secrets", "secrets/db.txt", "secrets/**"):
        assert not ann.reserve_files([theirs])["reservations"]


def test_what_a_caller_with_a_token_may_see_is_held_as_it_is(root: Path) -> None:
    expected = {"src": "src/**", "src/a.py/": "src/a.py", "src/[b].py": "src/[[]b[]].py", "src/new.py": "src/new.py"}
    expected["docs/a.py"] = "src/a.py"
    for text, pattern in expected.items():
        assert asked(root, text)[0] == [pattern]
    assert asked(root, "vendor/x.c")[1][0]["code"] == "RSV101"
