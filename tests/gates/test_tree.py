"""Scope patterns and tree digests."""

import fnmatch
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.gates.errors import TreeError
from interlock.gates.evidence import PARTS
from interlock.gates.patterns import compile_scope, expand
from interlock.gates.tree import MAX_FILE_BYTES, digest_of, every_file, in_scope, tree_diff, tree_digest, tree_files
from tests.gates.support import put
from tests.refusals import raises_code, raises_with
from tests.table import each_row

MATCHES = {
    "plain name": ("site/index.html", "site/index.html", True),
    "star stays in one name": ("site/*", "site/css/a.css", False),
    "star in a name": ("site/*.html", "site/index.html", True),
    "question mark": ("a?c", "abc", True),
    "question mark is one character": ("a?c", "ac", False),
    "class": ("v[0-9].md", "v7.md", True),
    "class of others": ("v[!0-9].md", "v7.md", False),
    "two stars reach everything below": ("site/**", "site/css/deep/a.css", True),
    "two stars are not the folder itself": ("site/**", "site", False),
    "two stars inside may be nothing": ("a/**/b", "a/b", True),
    "two stars inside may be much": ("a/**/b", "a/x/y/b", True),
    "two stars in front": ("**/a.py", "a.py", True),
    "two stars twice": ("**/x/**/y", "a/x/b/y", True),
    "final slash means below": ("site/", "site/a/b", True),
    "class of a bracket": ("v[[]x", "v[x", True),
    "inverted class": ("src/[!a]x", "src/^x", True),
    "inverted class as in regular expressions": ("src/[^a]x", "src/bx", True),
    "what an inverted class leaves out": ("src/[^a]x", "src/ax", False),
    "two classes": ("[ab][!]]c", "b-c", True),
    "either": ("docs/{a,b}.md", "docs/b.md", True),
    "either with folders": ("{src/*,docs/**}", "docs/x/y", True),
    "either in either": ("{a,b{c,d}}", "bd", True),
    "neither": ("docs/{a,b}.md", "docs/c.md", False),
    "dot files count": ("site/*", "site/.htaccess", True),
    "case counts": ("Site/*", "site/a", False),
    "whole path": ("b", "a/b", False),
}


@each_row(("pattern", "path", "expected"), MATCHES.values(), ids=MATCHES.keys())
def test_a_pattern_matches_whole_paths(pattern: str, path: str, *, expected: bool) -> None:
    assert compile_scope([pattern]).matches(path) is expected


REFUSED = [
    "", "/site/**", "~/x", "C:/x", "../x", "a/../b", "./a", "a//b", "a\\b", "a\nb", "a[b", "a[]", "a[!]", "[a]b[",
    "{a", "a}", "a}{b", "{a,/b}", ".git/config", "artifacts/**", ".interlock/x", "{src,artifacts}/*", "/",
]  # fmt: skip


@each_row("pattern", REFUSED)
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
    st.lists(st.lists(steps, min_size=1, max_size=3), min_size=1, max_size=2),
    st.lists(steps, max_size=3),
    st.lists(names, min_size=1, max_size=3),
    st.lists(names, min_size=1, max_size=3),
)
def test_a_folder_that_a_scope_covers_holds_nothing_that_it_leaves_out(
    patterns: list[list[str]], taken_out: list[str], folder: list[str], below: list[str]
) -> None:
    scope = compile_scope(["/".join(p) for p in patterns] + ["!" + "/".join(taken_out)] * bool(taken_out))
    path = "/".join(folder + below)
    assert scope.matches(path) or not scope.covers("/".join(folder))


def test_a_folder_is_covered_when_everything_below_it_is_in_scope() -> None:
    scope = compile_scope(["src/**", "doc/*", "web/**/*.ts", "!src/gen/**"])
    assert [f for f in ("src/app", "src/gen", "src", "doc", "web", "srcs") if scope.covers(f)] == ["src/app"]


@given(
    st.lists(st.lists(steps, min_size=1, max_size=4), min_size=2, max_size=3), st.lists(names, min_size=1, max_size=4)
)
def test_braces_match_what_any_of_their_choices_matches(patterns: list[list[str]], path: list[str]) -> None:
    choices = ["/".join(pattern) for pattern in patterns]
    whole = compile_scope(["{" + ",".join(choices) + "}"])
    assert whole.matches("/".join(path)) is any(compile_scope([c]).matches("/".join(path)) for c in choices)


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


def test_what_is_passed_by_is_not_even_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "reports/review.md", "read")
    put(tmp_path, "reports/.0123456789abcdef.24589.part", "half of a log")
    opened: list[str] = []
    real = os.open

    def noted(path: str, *given: int) -> int:
        opened.append(path)
        return real(path, *given)

    monkeypatch.setattr(os, "open", noted)
    assert list(every_file(tmp_path, "reports", but=(PARTS,))) == ["reports/review.md"]
    assert [path for path in opened if path.endswith(".part")] == []


def test_a_file_that_would_be_read_for_minutes_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "huge.bin").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with raises_with(TreeError, code="TREE106", path="huge.bin"):
        tree_files(tmp_path, ["**"])
