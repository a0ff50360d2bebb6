"""Which files a tree has: the same as git says, read without asking git."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.git_index import tracked_names
from interlock.gates.sealed.listing import _patterns, list_tree, top_of  # pyright: ignore[reportPrivateUsage]
from tests.child import git
from tests.gates.sealed.sealing import write
from tests.refusals import raises_code


def checkout(root: Path, files: Mapping[str, str], *forced: str) -> Path:
    """Make a checkout of some files; those that are `forced` are tracked although they are ignored."""
    git(write(root, files), "init", "-q", "-b", "main", ".")
    if forced:
        git(root, "add", "-f", "--", *forced)
    return root


def by_git(root: Path) -> set[str]:
    """Return what git lists: tracked, or neither tracked nor ignored."""
    listed = git(root, "ls-files", "-co", "-z", "--exclude-standard").split("\0")
    return {path for path in listed if path and (root / path).is_symlink() | (root / path).is_file()}


TREES: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "anchored, folder only, and at any depth": (
        {
            ".gitignore": "/top.txt\nbuild/\n*.log\nsub/only.txt\n**/deep/x.txt\na/**/z.txt\nlast/**\n",
            "top.txt": "", "in/top.txt": "", "build/x": "", "in/build/x": "", "in/build.txt": "", "a.log": "",
            "in/a.log": "", "sub/only.txt": "", "in/sub/only.txt": "", "in/deep/x.txt": "", "deep/x.txt": "",
            "a/z.txt": "", "a/b/c/z.txt": "", "last/x": "", "last/y/z": "", "log": "",
        },
        (),
    ),
    "negated, and not below an ignored folder": (
        {
            ".gitignore": "*.txt\n!keep.txt\nout/\n!out/keep.txt\nsome/*\n!some/in/\nfoo/*\n!foo/bar\n",
            "a.txt": "", "keep.txt": "", "in/keep.txt": "", "out/keep.txt": "", "some/a": "", "some/in/b": "",
            "foo/bar": "", "foo/baz": "",
        },
        (),
    ),
    "spaces, escapes, comments and line endings": (
        {
            ".gitignore": "\ufeffbom.txt\n\n# no\n\\#yes\n\\!bang\ntrail.txt   \nkept\\ \nwin.txt\r\n"
            " a\nb[ac]d\n[!x]y\nq?x\nstar\\*\n",
            "bom.txt": "", "no": "", "#yes": "", "!bang": "", "trail.txt": "", "kept ": "", "kept": "", "win.txt": "",
            " a": "", "a": "", "bad": "", "bbd": "", "ay": "", "xy": "", "qax": "", "qx": "", "star*": "", "starx": "",
        },
        (),
    ),
    "nested files, the innermost decides": (
        {
            ".gitignore": "*.gen\n!important.gen\n/lib/tmp\n",
            "lib/.gitignore": "!*.gen\nimportant.gen\n/tmp2\ndata\n",
            "lib/sub/.gitignore": "*\n!.gitignore\n!x.gen\n",
            "a.gen": "", "important.gen": "", "lib/a.gen": "", "lib/important.gen": "", "lib/tmp": "", "lib/tmp2": "",
            "lib/sub/tmp2": "", "lib/sub/x.gen": "", "lib/data/x": "", "lib/in/data": "", "data": "",
        },
        (),
    ),
    "tracked although ignored": (
        {
            ".gitignore": "dist/\n*.pyc\nsecret.txt\nnode_modules\n",
            "dist/index.js": "", "dist/other.js": "", "x.pyc": "", "y.pyc": "", "secret.txt": "",
            "node_modules/a/b.js": "", "node_modules/a/c.js": "", "plain.txt": "",
        },
        ("dist/index.js", "x.pyc", "node_modules/a/b.js", "plain.txt"),
    ),
    "names of other scripts": ({"größe.txt": "", "in/日本.py": "", "-dash": "", "a\nb": "", ".hidden/x": ""}, ()),
    "nothing": ({}, ()),
}  # fmt: skip


@pytest.mark.parametrize("name", TREES)
def test_the_listing_is_that_of_git(tmp_path: Path, name: str) -> None:
    root = checkout(tmp_path, *(TREES[name][0],), *TREES[name][1])
    assert set(list_tree(root).files) == by_git(root)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_each_format_of_the_index_is_read(tmp_path: Path, version: int) -> None:
    names = {f"dist/some/long/folder/{'x' * (at % 9)}{at:03}.txt": "" for at in range(200)}
    root = checkout(tmp_path, {".gitignore": "dist/\n", **names}, *names)
    git(root, "update-index", "--index-version", str(max(version, 2)))
    if version == 3:
        git(root, "update-index", "--skip-worktree", next(iter(names)))
    header = (root / ".git/index").read_bytes()[:8]
    assert header == b"DIRC" + version.to_bytes(4, "big")
    assert tracked_names(root) == set(names)
    assert set(list_tree(root).files) == by_git(root)


def test_a_split_index_and_one_of_sha256_are_read(tmp_path: Path) -> None:
    split = checkout(tmp_path / "split", {".gitignore": "*.x\n", "a.x": "", "b.x": ""}, "a.x")
    other = write(tmp_path / "other", {"a.x": ""})
    git(split, "update-index", "--split-index")
    git(split, "add", "-f", "b.x")
    assert set(list_tree(split).files) == by_git(split) == {".gitignore", "a.x", "b.x"}
    git(other, "init", "-q", "--object-format=sha256", ".")
    git(other, "add", "a.x")
    assert tracked_names(other) == {"a.x"}


def test_submodules_are_listed_by_rules_of_their_own(tmp_path: Path) -> None:
    library = checkout(tmp_path / "library", {".gitignore": "*.o\n", "lib.c": "", "lib.txt": ""}, ".")
    git(library, "commit", "-qm", "x")
    root = checkout(tmp_path / "project", {".gitignore": "*.txt\n", "a.txt": "", "a.o": ""})
    git(root, "submodule", "--quiet", "add", str(library), "vendor/library")
    write(root, {"vendor/library/new.txt": "", "vendor/library/new.o": ""})
    inside = {f"vendor/library/{path}" for path in (".gitignore", "lib.c", "lib.txt", "new.txt")}
    assert set(list_tree(root).files) == {".gitignore", ".gitmodules", "a.o"} | inside


def test_what_only_git_knows_ignores_nothing(tmp_path: Path) -> None:
    root = checkout(tmp_path, {"a.py": "", "conftest.py": ""})
    write(root, {".git/info/exclude": "conftest.py\n", "excludes": "a.py\n"})
    git(root, "config", "core.excludesFile", str(root / "excludes"))
    assert by_git(root) == {"excludes"}
    assert set(list_tree(root).files) == {"a.py", "conftest.py", "excludes"}


def test_an_index_adds_only_files_that_exist_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    root = checkout(tmp_path, {".gitignore": "x/\n", "x/a": "", "x/b": "", "y": ""}, "x/a", "x/b", "y")
    (root / "x/a").unlink()
    assert set(list_tree(root).files) == {".gitignore", "x/b", "y"}
    (root / ".git/index").write_bytes(b"DIRC\0\0\0\2\0\0\0\x09")
    with raises_code(SealError, "SEAL101"):
        list_tree(root)


def test_state_bytecode_and_ignored_folders_are_left_out_and_the_last_are_named(tmp_path: Path) -> None:
    files = {".gitignore": ".venv\nhalf/\n", ".venv/x.py": "", "half/a": "", "half/b": "", "app/__pycache__/a.pyc": ""}
    own = {"app/artifacts/x": "", "app/.interlock/y": "", "artifacts/x": ""}
    root = checkout(tmp_path, {**files, **own}, "half/a")
    listing = list_tree(root, "app")
    assert (set(listing.files), listing.ignored) == ({".gitignore", "artifacts/x", "half/a"}, [".venv"])
    assert (top_of(root / "app"), top_of(root)) == (root, root)


def test_lines_that_git_ignores_are_ignored_and_no_line_takes_for_ever(tmp_path: Path) -> None:
    lines = "[z-a]x\n!\n\\\n" + "*a" * 30 + "*b\n*.o\n[a\n"
    root = checkout(tmp_path, {".gitignore": lines, "a" * 240: "", "x.o": "", "[z-a]x": ""})
    assert set(list_tree(root).files) == by_git(root)
    (root / ".gitignore").write_text("a/**/b/**/c/**/d/**/e\n")
    with pytest.raises(SealError, match="more than 3"):
        list_tree(root)


def test_repositories_in_one_another_are_listed_however_deep(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(300):
        deep /= "d"
        (deep / ".git").mkdir(parents=True)
    (deep / "a").write_text("")
    assert list(list_tree(tmp_path).files) == ["d/" * 300 + "a"]


@given(
    st.lists(st.sampled_from(["*", "a", "b", "/", "?", "[ab]", "**/", "!"]), min_size=1, max_size=9).map("".join),
    st.lists(st.sampled_from("ab"), min_size=1, max_size=6).map("".join),
    st.sampled_from(["", "a/", "ab/b/"]),
)
def test_a_line_means_what_pathspec_makes_of_it(line: str, name: str, folder: str) -> None:
    try:
        plain = GitIgnoreSpec.from_lines([line])
    except ValueError:
        plain = GitIgnoreSpec([])
    try:
        ours = GitIgnoreSpec(_patterns(".gitignore", line))
    except SealError:
        return
    for path in (folder + name, f"{folder}{name}/"):
        assert ours.check_file(path).include is plain.check_file(path).include


def test_of_the_folder_of_evidence_only_what_is_tracked_belongs_to_the_tree(tmp_path: Path) -> None:
    files = {"artifacts/golden.json": "", "artifacts/reports/x.log": "", "artifacts/new": "", ".interlock/a": ""}
    root = checkout(tmp_path, files, "artifacts/golden.json", ".interlock/a")
    assert list_tree(root).files.keys() == {"artifacts/golden.json"}
    assert not list_tree(root).ignored


def test_a_folder_that_is_passed_by_is_not_listed_whatever_it_holds(tmp_path: Path) -> None:
    root = checkout(tmp_path, {"a": "", "src/b": "", "src/deep/.git/HEAD": "", "src/deep/c": "", "srcs/d": ""})
    assert set(list_tree(root, but="src".__eq__).files) == {"a", "srcs/d"}


def test_a_folder_that_goes_while_the_tree_is_listed_is_no_error(tmp_path: Path) -> None:
    (checkout(tmp_path, {"a.py": ""}) / ".agents").mkdir()
    found = list_tree(tmp_path, but=lambda path: path == ".agents" and Path(tmp_path, path).rmdir() is not None)
    assert set(found.files) == {"a.py"}


def test_a_name_that_is_not_utf8_is_refused_and_a_pipe_is_no_file(tmp_path: Path) -> None:
    root = checkout(tmp_path, {"a": ""})
    subprocess.run(["mkfifo", str(root / "pipe")], check=True)
    (root / "link").symlink_to("nowhere")
    assert set(list_tree(root).files) == {"a", "link"}
    Path(f"{root}/\udcff").write_text("")
    with raises_code(SealError, "SEAL101"):
        list_tree(root)
