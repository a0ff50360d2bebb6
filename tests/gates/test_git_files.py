"""The tree that is observed: what git lists, or every file."""

import errno
import os
from pathlib import Path

import pytest

from interlock.gates.errors import TreeError
from interlock.gates.git_files import list_tree
from interlock.gates.tree import TreeDiff, tree_diff, tree_files
from tests.child import git
from tests.gates.support import put
from tests.refusals import raises_code


def seen(root: Path) -> list[str]:
    return list(list_tree(root))


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


def test_own_state_evidence_and_caches_are_left_out(root: Path) -> None:
    for path in (".interlock/x", "artifacts/x", "src/__pycache__/a.pyc"):
        put(root, path, "x")
    git(root, "add", "-f", "artifacts/x")
    assert seen(root) == [".gitignore", "src/a.py"]


def test_without_git_every_file_is_listed(tmp_path: Path) -> None:
    for path in ("deep/a.py", ".env", "build/out", ".interlock/x", "artifacts/x"):
        put(tmp_path, path, "x")
    assert list(list_tree(tmp_path)) == [".env", "build/out", "deep/a.py"]
    assert list_tree(tmp_path) == tree_files(tmp_path, ["**"])


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


def test_a_folder_of_a_checkout_is_a_root_of_its_own(root: Path) -> None:
    assert seen(root / "src") == ["a.py"]


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


def test_a_folder_that_cannot_be_looked_into_is_an_error_and_no_removed_file(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lstat = os.lstat

    def closed(path: os.PathLike[str], **more: int) -> os.stat_result:
        if os.fspath(path).endswith("src/a.py"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return lstat(path, **more)

    monkeypatch.setattr(os, "lstat", closed)
    with raises_code(TreeError, "TREE104"):
        list_tree(root)
