"""Scope patterns and tree digests."""

import fnmatch
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.gates import tree
from interlock.gates.errors import TreeError
from interlock.gates.patterns import compile_scope, expand
from interlock.gates.tree import digest_of, in_scope, tree_diff, tree_digest, tree_files
from tests.gates.support import put
from tests.refusals import raises_code, raises_with
from tests.table import each_row

REFUSED = (
    r"/site/** ~/x C:/x ../x a/../b ./a a//b a\b a[b a[] a[!] [a]b[ {a a} a}{b {a,/b} .git/config artifacts/** "
    ".interlock/x {src,artifacts}/* /"
)


@each_row("pattern", ["", "a\nb", *REFUSED.split()])
def test_a_pattern_that_leaves_the_tree_or_is_none_is_refused(pattern: str) -> None:
    with raises_with(TreeError, code="TREE102", path=pattern) as refused:
        compile_scope(["ok/**", pattern])
    assert refused.value.fix


def test_a_scope_without_patterns_and_braces_that_multiply_without_end_are_refused() -> None:
    with raises_code(TreeError, "TREE101"):
        compile_scope([])
    with pytest.raises(TreeError):
        expand("{a,b}" * 30)


def brute(pattern: list[str], path: list[str]) -> bool:
    """Match in the plainest way: try every split."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        least = 1 if len(pattern) == 1 else 0
        return any(brute(pattern[1:], path[n:]) for n in range(least, len(path) + 1))
    return bool(path) and fnmatch.fnmatchcase(path[0], pattern[0]) and brute(pattern[1:], path[1:])


steps = st.sampled_from(["**", "*", "a", "b", "a*", "?b", "[ab]", "ab", "[!a]*"])
names = st.sampled_from(["a", "b", "ab", "ba", "aab", "c"])


@given(st.lists(steps, min_size=1, max_size=6), st.lists(names, min_size=1, max_size=6))
def test_patterns_match_as_trying_every_split_does(pattern: list[str], path: list[str]) -> None:
    assert compile_scope(["/".join(pattern)]).matches("/".join(path)) is brute(pattern, path)


@given(
    st.lists(st.lists(names, min_size=1, max_size=4).map("/".join), max_size=6), st.lists(steps, min_size=1, max_size=4)
)
def test_the_walk_finds_exactly_the_files_that_match(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str], pattern: list[str]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    for path in paths:
        below_file = any((root / path).is_relative_to(f) for f in root.rglob("*") if f.is_file())
        if not below_file and not (root / path).exists():
            put(root, path, "x")
    scope = compile_scope(["/".join(pattern)])
    every = {str(f.relative_to(root)) for f in root.rglob("*") if f.is_file()}
    assert set(tree_files(root, ["/".join(pattern)])) == {path for path in every if scope.matches(path)}


def small(root: Path) -> Path:
    put(root, "site/index.html", "<p>")
    put(root, "site/css/a.css", "p{}")
    put(root, "README.md", "read")
    return root


def test_a_digest_says_the_same_for_the_same_files_wherever_they_lie(tmp_path: Path) -> None:
    one, two = small(tmp_path / "one"), small(tmp_path / "two")
    os.utime(two / "README.md", ns=(1, 1))
    assert tree_digest(one, ["**"]) == tree_digest(two, ["site/**", "README.md", "*.md"])
    assert tree_digest(one, ["**"]).startswith("sha256:")
    assert digest_of(tree_files(one, ["**"])) == tree_digest(one, ["**"])


def test_changes_outside_the_scope_and_interlocks_own_state_do_not_count(tmp_path: Path) -> None:
    root = small(tmp_path)
    before = tree_digest(root, ["**"])
    for path in (".git/HEAD", "site/.git/HEAD", "artifacts/a11y/x.json", ".interlock/state.db"):
        put(root, path, "x")
    (root / "empty").mkdir()
    assert tree_digest(root, ["**"]) == before
    put(root, "site/artifacts/x", "x")
    assert tree_digest(root, ["**"]) != before


def test_a_link_is_recorded_by_its_text_and_never_followed(tmp_path: Path) -> None:
    root = small(tmp_path / "root")
    put(tmp_path, "secret", "one")
    (root / "link").symlink_to("../secret")
    files = tree_files(root, ["**"])
    assert files["link"].startswith("120000 ")
    put(tmp_path, "secret", "two")
    assert tree_files(root, ["**"]) == files


def test_a_pipe_in_scope_is_recorded_and_never_waited_for(tmp_path: Path) -> None:
    root = small(tmp_path)
    os.mkfifo(root / "pipe")
    assert tree_files(root, ["*"])["pipe"] == "other"


def test_a_file_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = small(tmp_path)

    def refuse(*_args: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with raises_with(TreeError, code="TREE104", path="README.md"):
        tree_files(root, ["README.md"])


def test_a_name_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"bad\xff")).touch()
    with raises_code(TreeError, "TREE103"):
        tree_files(tmp_path, ["*"])


def test_a_tree_of_any_depth_is_walked_and_one_that_is_gone_is_an_error(tmp_path: Path) -> None:
    path = "/".join(["d"] * 800) + "/f"
    put(tmp_path, path, "x")
    assert list(tree_files(tmp_path, ["**"])) == [path]
    with pytest.raises(TreeError):
        tree_files(tmp_path / "gone", ["*"])


def test_a_diff_distinguishes_added_removed_and_changed(tmp_path: Path) -> None:
    root = small(tmp_path)
    old = tree_files(root, ["**"])
    assert not tree_diff(old, old)
    put(root, "site/index.html", "new")
    put(root, "added", "x")
    (root / "README.md").unlink()
    diff = tree_diff(old, tree_files(root, ["**"]))
    assert (diff.added, diff.removed, diff.changed) == (("added",), ("README.md",), ("site/index.html",))
    assert diff


def test_a_path_is_in_scope_before_it_exists() -> None:
    assert in_scope("site/new.html", ["site/**"])
    assert not in_scope("docs/new.html", ["site/**"])
    assert not in_scope("artifacts/x", ["**"])
    assert not in_scope("site/.git/x", ["**"])


def test_a_pattern_after_an_exclamation_mark_takes_files_out(tmp_path: Path) -> None:
    for name in ("src/a.py", "src/gen/b.py", "src/gen/deep/c.py"):
        put(tmp_path, name, "x")
    scope = ["src/**", "!src/gen/**"]
    assert list(tree_files(tmp_path, scope)) == ["src/a.py"]
    assert in_scope("src/a.py", scope)
    assert not in_scope("src/gen/new.py", scope)
    with pytest.raises(TreeError):
        tree_files(tmp_path, ["!src/**"])


def test_the_caches_of_a_gates_command_void_nothing(tmp_path: Path) -> None:
    put(tmp_path, "src/a.py", "x")
    before = tree_digest(tmp_path, ["src/**"])
    for cache in ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"):
        put(tmp_path, f"src/{cache}/x", "y")
    assert tree_digest(tmp_path, ["src/**"]) == before


def rewrite(path: Path, text: str) -> None:
    """Write a file in place, with the times that it had."""
    times = path.stat()
    path.write_text(text)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "same size and times": lambda root: rewrite(root / "src/a.py", "b = 2\n"),
    "another file by its name": lambda root: (root / put(root, "new", "b = 2\n")).replace(root / "src/a.py"),
    "executable": lambda root: (root / "src/a.py").chmod(0o755),
    "a link in its place": lambda root: ((root / "src/a.py").unlink(), (root / "src/a.py").symlink_to("deep/b.py")),
    "two folders change places": lambda root: (
        (root / "src/deep").rename(root / "x"),
        (root / "src/wide").rename(root / "src/deep"),
        (root / "x").rename(root / "src/wide"),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_look_by_stamps_reads_what_changed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    monkeypatch.setattr(tree, "_SETTLED_NS", -(10**12))
    put(tmp_path, "src/a.py", "a = 1\n")
    put(tmp_path, "src/deep/b.py", "b")
    put(tmp_path, "src/wide/b.py", "c")
    before = tree_files(tmp_path, ["src/**"], contents=False)
    with monkeypatch.context() as patched:
        patched.setattr(tree, "_value", None)
        assert tree_files(tmp_path, ["src/**"], contents=False) == before
    time.sleep(0.02)  # the clock of a file system is coarser than ours
    change(tmp_path)
    assert tree_files(tmp_path, ["src/**"], contents=False) == tree_files(tmp_path, ["src/**"]) != before


def test_what_has_just_changed_is_read_whatever_its_stamp_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "src/a.py", "a")
    before = tree_files(tmp_path, ["src/**"], contents=False)

    def noted(_root: str, path: str) -> str:
        return f"read {path}"

    monkeypatch.setattr(tree, "_value", noted)
    assert tree_files(tmp_path, ["src/**"], contents=False) == {"src/a.py": "read src/a.py"} != before


def test_a_file_that_would_be_read_for_minutes_is_refused_although_it_takes_no_room(tmp_path: Path) -> None:
    put(tmp_path, "src/a.bin", "")
    os.truncate(tmp_path / "src/a.bin", tree.MAX_FILE_BYTES + 1)
    with raises_with(TreeError, code="TREE104", path="src/a.bin") as refused:
        tree_files(tmp_path, ["src/**"])
    assert "File too large" in refused.value.message
