"""The tree that is observed: what git lists, or every file."""

import os
from pathlib import Path

import pytest

from interlock.gates.errors import TreeError
from interlock.gates.git_files import list_tree, revealed
from interlock.gates.tree import TreeDiff, tree_diff, tree_files
from tests.child import git
from tests.gates.support import put
from tests.refusals import raises_code


def seen(root: Path) -> list[str]:
    return [path for path, value in list_tree(root).items() if not value.startswith("ignored")]


def ignored(root: Path) -> list[str]:
    return [path for path, value in list_tree(root).items() if value.startswith("ignored")]


def changes(root: Path, before: dict[str, str]) -> TreeDiff:
    """Return what observation finds since an earlier listing."""
    return tree_diff(before, revealed(root, before, list_tree(root)))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a checkout with one commit."""
    folder = tmp_path / "checkout"
    put(folder, ".gitignore", "*.log\nbuild/\n")
    put(folder, "src/a.py", "a\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Begin")
    return folder


def test_tracked_and_untracked_files_are_listed_and_ignored_ones_are_not(root: Path) -> None:
    put(root, "new file.txt", "n")
    put(root, "debug.log", "l")
    put(root, "build/out", "o")
    assert seen(root) == [".gitignore", "new file.txt", "src/a.py"]
    assert ignored(root) == [".git/", "build/", "debug.log"]


def test_own_state_evidence_and_caches_are_left_out(root: Path) -> None:
    for path in (".interlock/x", "artifacts/x", "src/__pycache__/a.pyc"):
        put(root, path, "x")
    git(root, "add", "-f", "artifacts/x")
    assert seen(root) == [".gitignore", "src/a.py"]
    assert ignored(root) == [".git/"]


def test_without_git_every_file_is_listed(tmp_path: Path) -> None:
    for path in ("deep/a.py", ".env", "build/out", ".interlock/x", "artifacts/x"):
        put(tmp_path, path, "x")
    assert list(list_tree(tmp_path)) == [".env", "build/out", "deep/a.py"]
    assert list_tree(tmp_path) == tree_files(tmp_path, ["**"])


def test_values_are_those_of_every_other_tree(root: Path) -> None:
    put(root, "run.sh", "x")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("src/a.py")
    (root / "dangling").symlink_to("nowhere")
    assert list_tree(root) == tree_files(root, ["**"]) | {".git/": "ignored"}


def test_changes_are_seen_whether_or_not_they_are_staged_or_committed(root: Path) -> None:
    before = list_tree(root)
    put(root, "src/a.py", "b\n")
    put(root, "src/b.py", "b\n")
    (root / ".gitignore").unlink()
    changed = TreeDiff(("src/b.py",), (".gitignore",), ("src/a.py",))
    assert tree_diff(before, list_tree(root)) == changed
    git(root, "add", "-A")
    assert tree_diff(before, list_tree(root)) == changed
    git(root, "commit", "-qm", "Change")
    assert tree_diff(before, list_tree(root)) == changed


def test_a_change_that_git_is_configured_to_overlook_is_seen(root: Path) -> None:
    before = list_tree(root)
    git(root, "update-index", "--assume-unchanged", "src/a.py")
    put(root, "src/a.py", "hidden\n")
    assert tree_diff(before, list_tree(root)).changed == ("src/a.py",)


def test_a_folder_of_a_checkout_is_a_root_of_its_own(root: Path) -> None:
    assert seen(root / "src") == ["../.gitignore", "a.py"]


def test_a_root_that_its_checkout_ignores_is_listed_with_every_file(root: Path) -> None:
    put(root, "build/inner/a.log", "x")
    assert list(list_tree(root / "build")) == ["inner/a.log"]
    assert list(list_tree(root / "build/inner")) == ["a.log"]


def test_a_repository_inside_is_listed_with_its_files(root: Path, tmp_path: Path) -> None:
    put(root, "nested/b.py", "b")
    git(root / "nested", "init", "-q")
    git(tmp_path, "clone", "-q", str(root), str(tmp_path / "other"))
    git(root, "submodule", "add", "-q", str(tmp_path / "other"), "sub")
    listed = list_tree(root)
    assert {"nested/b.py", "sub/src/a.py", ".gitmodules"} < set(listed)
    put(root, "sub/src/a.py", "changed\n")
    assert tree_diff(listed, list_tree(root)).changed == ("sub/src/a.py",)


def test_a_link_in_the_place_of_a_folder_is_not_followed(root: Path, tmp_path: Path) -> None:
    put(tmp_path, "outside/a.py", "a\n")
    (root / "src/a.py").unlink()
    (root / "src").rmdir()
    (root / "src").symlink_to(tmp_path / "outside")
    assert seen(root) == [".gitignore", "src"]


def test_no_program_of_the_repository_is_started(root: Path) -> None:
    put(root, "spy.sh", f"#!/bin/sh\ntouch '{root}/started'\n")
    (root / "spy.sh").chmod(0o755)
    git(root, "config", "core.fsmonitor", str(root / "spy.sh"))
    list_tree(root)
    assert not (root / "started").exists()


def test_the_environment_never_leads_git_elsewhere(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = list_tree(root)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    assert list_tree(root) == before


def test_a_missing_git_and_a_broken_repository_are_no_empty_list(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, raises_code(TreeError, "TREE105"):
        patch.setenv("PATH", "/nowhere")
        list_tree(root)
    (root / ".git/HEAD").write_text("broken")
    with raises_code(TreeError, "TREE105") as caught:
        list_tree(root)
    assert caught.value.fix


def test_only_ignore_files_of_the_tree_hide_a_file(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "excludes", "everywhere.py\n")
    git(root, "config", "core.excludesFile", str(tmp_path / "excludes"))
    git(root, "config", "core.ignoreCase", "true")
    put(root, ".git/info/exclude", "outside.py\n")
    for path in ("outside.py", "everywhere.py", "BUILD/out"):
        put(root, path, "x")
    everything = [".gitignore", "BUILD/out", "everywhere.py", "outside.py", "src/a.py"]
    assert seen(root) == everything
    git(root, "config", "--unset", "core.excludesFile")
    put(tmp_path, "home/.config/git/ignore", "everywhere.py\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home/.config"))
    assert seen(root) == everything


def test_a_work_tree_that_was_moved_away_in_the_settings_is_listed_as_it_is(root: Path, tmp_path: Path) -> None:
    put(tmp_path, ".gitignore", "*.py\n")
    before = list_tree(root)
    git(root, "config", "core.worktree", str(tmp_path))
    put(root, "outside.py", "x")
    assert changes(root, before) == TreeDiff(("outside.py",), (), ())


def test_a_root_that_only_the_settings_of_git_ignore_is_listed_by_git(root: Path) -> None:
    put(root, "src/deep/.gitignore", "*.log\n")
    put(root, "src/deep/b.log", "b")
    put(root, ".git/info/exclude", "/src/deep\n")
    assert seen(root / "src/deep") == ["../../.gitignore", ".gitignore"]


OLD = {"build/old": "o", "debug.log": "l"}
RULES = "*.log\nbuild/\n"
HIDING: dict[str, tuple[dict[str, str], dict[str, str], TreeDiff]] = {
    "a file": (OLD, {".gitignore": f"{RULES}new.py\n", "new.py": "x"}, TreeDiff(("new.py",), (), (".gitignore",))),
    "a folder": (
        OLD, {".gitignore": f"{RULES}lib/\n", "lib/deep/x.py": "x"}, TreeDiff(("lib/deep/x.py",), (), (".gitignore",)),
    ),
    "a folder by its content": (
        OLD, {".gitignore": f"{RULES}lib/**\n", "lib/deep/x.py": "x"},
        TreeDiff(("lib/deep/x.py",), (), (".gitignore",)),
    ),
    "a folder by itself": (
        OLD, {"lib/.gitignore": "*\n", "lib/deep/x.py": "x"}, TreeDiff(("lib/.gitignore", "lib/deep/x.py"), (), ()),
    ),
    "itself and another": (
        OLD, {"src/.gitignore": ".gitignore\nnew.py\n", "src/new.py": "x"},
        TreeDiff(("src/.gitignore", "src/new.py"), (), ()),
    ),
    "another, in a file that hid itself before": (
        {"lib/.gitignore": "/*.tmp\n.gitignore\n", "lib/x.tmp": "x"},
        {"lib/.gitignore": "/*.py\n/*.tmp\n.gitignore\n", "lib/new.py": "x"}, TreeDiff(("lib/new.py",), (), ()),
    ),
    "files that were there": (
        {"lib/a.py": "a", "lib/b.py": "b"}, {".gitignore": f"{RULES}lib/\n", "lib/b.py": "other"},
        TreeDiff((), (), (".gitignore", "lib/b.py")),
    ),
    "nothing any more": (OLD | {"build/deep/out": "o"}, {".gitignore": "\n"}, TreeDiff((), (), (".gitignore",))),
    "a folder that only happened to hold ignored files": (
        {"logs/deep/a.log": "l"}, {".gitignore": f"{RULES}logs/\n", "logs/deep/new.py": "n"},
        TreeDiff(("logs/deep/new.py",), (), (".gitignore",)),
    ),
    "nothing more: output under an ignored name": ({}, {"build/out": "o", "src/debug.log": "l"}, TreeDiff((), (), ())),
}  # fmt: skip
"""What an ignore file hides: the files before and those that are written then, and the changes that are seen."""


@pytest.mark.parametrize(("before", "then", "seen"), HIDING.values(), ids=HIDING.keys())
def test_what_a_changed_ignore_file_hides_is_seen_and_what_was_hidden_is_no_change(
    root: Path, before: dict[str, str], then: dict[str, str], seen: TreeDiff
) -> None:
    for path, text in before.items():
        put(root, path, text)
    listed = list_tree(root)
    for path, text in then.items():
        put(root, path, text)
    if before is OLD:
        put(root, "build/more", "o")
    assert changes(root, listed) == seen


def test_a_file_that_git_stops_tracking_is_compared_still(root: Path) -> None:
    for name in ("one.log", "two.log"):
        put(root, name, "l")
        git(root, "add", "-f", name)
    before = list_tree(root)
    git(root, "rm", "-q", "--cached", "one.log", "two.log")
    put(root, "two.log", "other")
    assert changes(root, before) == TreeDiff((), (), ("two.log",))


def test_an_ignore_file_above_the_root_is_compared_too(root: Path) -> None:
    before = list_tree(root / "src")
    put(root, ".gitignore", "*.log\nbuild/\nnew.py\n")
    put(root, "src/new.py", "n")
    assert changes(root / "src", before) == TreeDiff(("new.py",), (), ("../.gitignore",))


def test_a_checkout_that_begins_while_acting_hides_nothing(tmp_path: Path) -> None:
    put(tmp_path, ".gitignore", "*.log\n")
    put(tmp_path, "old.log", "l")
    before = list_tree(tmp_path)
    git(tmp_path, "init", "-q")
    put(tmp_path, "new.log", "l")
    assert changes(tmp_path, before) == TreeDiff(("new.log",), (), ())


def test_a_name_that_is_not_utf_8_is_an_error_unless_it_is_ignored(root: Path) -> None:
    try:
        (Path(os.fsdecode(os.fsencode(root) + b"/\xff.log"))).write_text("x")
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    assert seen(root) == [".gitignore", "src/a.py"]
    (Path(os.fsdecode(os.fsencode(root) + b"/\xff.txt"))).write_text("x")
    with raises_code(TreeError, "TREE103"):
        list_tree(root)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_an_error(root: Path) -> None:
    (root / "src/a.py").chmod(0)
    with raises_code(TreeError, "TREE104"):
        list_tree(root)
