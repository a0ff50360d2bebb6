"""Trees of a checkout: what enters the store and what leaves it, and that nothing of the checkout runs meanwhile."""

import os
import shutil
import zlib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.store import FILE, LINK, PROGRAM, Base, Entry, Store, place_of
from tests.child import git
from tests.gates.sealed.sealing import write
from tests.refusals import raises_code


def repository(folder: Path, files: Mapping[str, str], *options: str) -> Path:
    """Make a checkout of which every file is tracked, ignored ones too."""
    git(write(folder, files), "init", "-q", *options)
    return committed(folder)


def committed(root: Path) -> Path:
    git(root, "add", "--all", "--force")
    git(root, "commit", "-q", "--allow-empty", "-m", "Start")
    return root


def texts(store: Store, tree: str) -> dict[str, str]:
    """Return the contents of a tree by path."""
    return {path: os.fsdecode(store.content(entry.oid)) for path, entry in store.files(tree).items()}


def exported(store: Store, tree: str, folder: Path) -> Path:
    folder.mkdir()
    store.export(tree, folder)
    return folder


# -- snapshots --------------------------------------------------------------------------------------------------------


def test_a_snapshot_has_what_is_tracked_or_not_ignored_and_nothing_that_is_kept(tmp_path: Path) -> None:
    files = {".gitignore": "out/\n*.log\n", "a.py": "1", "old.log": "x", "artifacts/a.md": "x", "gone.py": "1"}
    root = repository(tmp_path / "p", files)
    left_out = [
        "out/x",
        "b.log",
        "artifacts/run/log",
        ".interlock/x",
        ".venv/.gitignore",
        ".venv/x.py",
        "deps/x.py",
        "app/node_modules/m.js",
        "__pycache__/a.pyc",
    ]
    write(root, dict.fromkeys(left_out, "*"))
    write(root, {"a.py": "2", "gone.py": None, "new/b.py": "3", "app/deps/c.py": "4"})
    (root / "env").symlink_to("/usr")
    store, keep = Store(root), (".venv", "node_modules", "env", "./deps")
    tree = store.snapshot(keep=keep)
    wanted = {**files, "a.py": "2", "new/b.py": "3", "app/deps/c.py": "4"}
    assert texts(store, tree) == {path: text for path, text in wanted.items() if path != "gone.py"}
    assert {"out/", "b.log", ".venv/", "app/node_modules/", "deps/", "env"} <= {*store.ignored()}
    os.utime(root / "a.py", ns=(1, 1))
    assert store.snapshot(keep=keep) == tree
    (root / "a.py").chmod(0o755)
    assert store.differing(tree, store.snapshot(keep=keep)) == {"a.py": Entry(PROGRAM, store.files(tree)["a.py"].oid)}
    assert git(root, "status", "--porcelain", "gone.py") == " D gone.py\n", "the store has an index of its own"


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 5\n"
RULES = "*.txt text eol=lf\n*.bin filter=lfs\n*.id ident\n*.no export-ignore\n*.u working-tree-encoding=UTF-16\n"
CONTENTS = {
    ".gitattributes": RULES.encode(),
    "windows.txt": b"a\r\nb\r\n",
    "big.bin": POINTER.format("4d7a").encode(),
    "keyword.id": b"$Id$\n",
    "x.no": b"",
    "binary": bytes(range(256)),
    "utf.u": b"plain",
    "two\nlines": b"",
    os.fsdecode(b"caf\xe9"): b"latin",
    '"quoted"': b"",
}


def test_bytes_modes_links_and_odd_names_come_back_as_they_were(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {"run.sh": "true\n", "private": "x"})
    for name, data in CONTENTS.items():
        (root / name).write_bytes(data)
    (root / "run.sh").chmod(0o744)
    (root / "private").chmod(0o600)
    (root / "link").symlink_to("../out of/the tree")
    store = Store(root)  # where there is no git
    tree = store.snapshot()
    files = store.files(tree)
    assert (files["run.sh"].mode, files["private"].mode, files["link"].mode) == (PROGRAM, FILE, LINK)
    out = exported(store, tree, tmp_path / "out")
    assert {name: (out / name).read_bytes() for name in CONTENTS} == CONTENTS
    assert str((out / "link").readlink()) == "../out of/the tree"
    odd: dict[str, Entry | None] = {name: None for name in CONTENTS if not name.isidentifier()}
    assert store.differing(tree, store.compose(tree, odd)) == odd


def test_nothing_that_the_checkout_names_runs_or_hides_a_file(tmp_path: Path) -> None:
    root, ran = repository(tmp_path / "p", {"a.py": "1", "b": "1", "c": "1"}), tmp_path / "ran"
    git(root, "update-index", "--assume-unchanged", "b")
    git(root, "update-index", "--skip-worktree", "c")
    for key in (
        "filter.x.clean",
        "filter.x.smudge",
        "filter.x.process",
        "core.fsmonitor",
        "diff.x.textconv",
        "uploadpack.packObjectsHook",
        "core.sshCommand",
        "core.pager",
    ):
        git(root, "config", key, f"touch {ran}; cat")
    for key, value in {
        "core.autocrlf": "true",
        "core.hooksPath": f"{root}/hooks",
        "core.excludesFile": f"{root}/hide",
        "core.attributesFile": f"{root}/attributes",
        "core.worktree": "/",
        "core.ignoreCase": "true",
    }.items():
        git(root, "config", key, value)
    rules = dict.fromkeys((".gitattributes", "attributes", ".git/info/attributes"), "* filter=x diff=x text eol=crlf\n")
    hides = dict.fromkeys((".git/info/exclude", "hide"), "new.py\n")
    hooks = ("hooks/post-index-change", "hooks/reference-transaction", ".git/hooks/reference-transaction")
    write(root, {**rules, **hides, **dict.fromkeys(hooks, f"#!/bin/sh\ntouch {ran}\n"), "new.py": "1\n", "b": "2"})
    for hook in hooks:
        (root / hook).chmod(0o755)
    store = Store(root)
    tree = store.snapshot()
    exported(store, tree, tmp_path / "out")
    assert store.commit("HEAD").tree != tree
    assert [texts(store, tree).get(path) for path in ("new.py", "b", "c")] == ["1\n", "2", "1"]
    assert (tmp_path / "out/new.py").read_bytes() == b"1\n"
    assert not ran.exists()


def test_repositories_inside_are_part_of_the_tree_with_their_own_rules(tmp_path: Path) -> None:
    other = repository(tmp_path / "other", {"lib.py": "1", "deep/.gitignore": "*.tmp\n"})
    root = repository(tmp_path / "p", {"a.py": "1"})
    git(root, "submodule", "--quiet", "add", os.fspath(other), "lib")
    committed(root)
    repository(root / "nested/one", {"n.py": "1", ".gitignore": "*.tmp\n"})
    write(root, {"lib/lib.py": "2", "lib/new.py": "3", "lib/deep/x.tmp": "", "nested/one/x.tmp": "", "nested/b": "4"})
    store = Store(root)
    assert texts(store, store.snapshot()) == {
        ".gitmodules": (root / ".gitmodules").read_text(),
        "a.py": "1",
        "lib/lib.py": "2",
        "lib/new.py": "3",
        "lib/deep/.gitignore": "*.tmp\n",
        "nested/one/n.py": "1",
        "nested/one/.gitignore": "*.tmp\n",
        "nested/b": "4",
    }
    assert texts(store, store.commit("HEAD").tree)["lib/lib.py"] == "1"
    shutil.rmtree(root / "lib")
    (root / "lib").mkdir()
    for take in (store.snapshot, lambda: store.commit("HEAD")):
        with raises_code(SealError, "SEAL131"):
            take()


@pytest.mark.parametrize("kind", ["worktree", "--shared", "--depth=1", "sha256", "empty"])
def test_every_kind_of_checkout_has_trees(tmp_path: Path, kind: str) -> None:
    root = repository(tmp_path / "p", {"a": "1"}, f"--object-format={'sha256' if kind == 'sha256' else 'sha1'}")
    if kind == "worktree":
        git(root, "worktree", "add", "-q", "../w")
    elif "-" in kind:
        git(committed(root), "clone", "-q", kind, root.as_uri(), "../w")
    elif kind == "empty":
        shutil.rmtree(root / ".git")
        git(root, "init", "-q")
    store = Store(tmp_path / "w" if (tmp_path / "w").exists() else root)
    tree = store.snapshot()
    assert texts(store, tree) == {"a": "1"}
    exported(store, tree, tmp_path / "out")
    if kind == "empty":
        with raises_code(SealError, "SEAL130"):
            store.commit("HEAD")
    else:
        assert store.commit("HEAD").tree == tree


def test_a_pipe_is_left_out_and_refused_in_the_place_of_a_file(tmp_path: Path) -> None:
    store = Store(repository(tmp_path / "p", {"a": "1", "b": "1"}))
    os.mkfifo(store.top / "pipe")
    assert [*store.files(store.snapshot())] == ["a", "b"]
    (store.top / "a").unlink()
    os.mkfifo(store.top / "a")
    with raises_code(SealError, "SEAL101"):
        store.snapshot()


def test_a_project_below_the_top_knows_its_own_paths_and_an_ignored_one_is_a_tree_of_its_own(tmp_path: Path) -> None:
    root = repository(tmp_path / "p", {"app/a.py": "1", "b.py": "", ".gitignore": "/out\n"})
    write(root, {"out/q/c.py": "", "app/artifacts/x": "", "artifacts/y": ""})
    store = Store(root)
    base = Base(store, store.snapshot("app"), "app")
    assert (place_of(root / "app"), place_of(root / "out/q")) == ((root, "app"), (root / "out/q", ""))
    assert {*base.files} == {"app/a.py", "b.py", ".gitignore", "artifacts/y"}
    assert (base.content(base.inside("a.py")), base.outside("app/a.py"), base.outside("b.py")) == (b"1", "a.py", None)
    assert (base.is_there("app/a.py"), base.is_there("app/new.py")) == (True, True)
    write(root, {"app/a.py": "2", "app/new.py": ""})
    assert (base.is_there("app/a.py"), base.is_there("app/new.py")) == (False, False)


# -- commits ----------------------------------------------------------------------------------------------------------


def test_digits_are_a_commit_and_never_a_branch_or_a_tag(tmp_path: Path) -> None:
    root = repository(tmp_path / "p", {"a": "strict"})
    store, first = Store(root), git(root, "rev-parse", "HEAD").strip()
    weak, blob = git(committed(write(root, {"a": "weak"})), "rev-parse", "HEAD", "HEAD:a").split()
    git(root, "tag", "-a", "-m", "x", "v1", first)
    for name in ("v1", "HEAD~1", first, first[:9], first[:9].upper()):
        assert store.commit(name).name == first
    git(root, "branch", first[:8], weak)
    git(root, "tag", "beef", weak)
    assert (store.commit(first).name, store.commit("HEAD").name) == (first, weak)
    for name in (first[:8], "beef", "none", "-h", "HEAD:a", f"{first}^{{tree}}", blob):
        with raises_code(SealError, "SEAL130"):
            store.commit(name)


def test_neither_replaced_objects_nor_written_parents_are_followed(tmp_path: Path) -> None:
    root = repository(tmp_path / "p", {"a": "strict"})
    first, blob = git(root, "rev-parse", "HEAD", "HEAD:a").split()
    weak, other = git(committed(write(root, {"a": "weak"})), "rev-parse", "HEAD", "HEAD:a").split()
    git(root, "reset", "-q", "--hard", first)
    last = git(committed(root), "rev-parse", "HEAD").strip()
    git(root, "replace", blob, other)
    git(root, "replace", first, weak)
    write(root, {".git/info/grafts": f"{last} {weak}\n"})
    store = Store(root)
    for name in (first, "HEAD", "HEAD~1"):
        assert texts(store, store.commit(name).tree) == {"a": "strict"}


@pytest.mark.parametrize("kind", ["blob", "tree", "commit"])
def test_an_object_that_is_not_what_its_name_says_or_is_missing_is_no_base(tmp_path: Path, kind: str) -> None:
    root, ran = repository(tmp_path / "p", {"sub/run.sh": "true\n", "a": "1"}), tmp_path / "ran"
    name = git(root, "rev-parse", {"blob": "HEAD:sub/run.sh", "tree": "HEAD:sub", "commit": "HEAD"}[kind]).strip()
    content = "" if kind == "tree" else git(root, "cat-file", kind, name)
    forged = content.replace("Start", "Other").replace("true", "pass").encode()
    loose = root / ".git/objects" / name[:2] / name[2:]
    loose.chmod(0o644)
    loose.write_bytes(zlib.compress(b"%s %d\0%s" % (kind.encode(), len(forged), forged)))
    with raises_code(SealError, "SEAL130"):
        Store(root).commit("HEAD")
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": os.fspath(root),
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": f"touch {ran};",
        "protocol.file.allow": "always",
    }.items():
        git(root, "config", key, value)
    loose.unlink()
    with raises_code(SealError, "SEAL130"):
        Store(root).commit("HEAD")
    assert not ran.exists(), "the configuration says by what missing objects are fetched"


LINES = [
    ("* -text\n", False),
    ("", False),
    ("* text=auto\n", False),
    ("*.txt text eol=crlf\n", True),
    ("* text=auto eol=crlf\n", True),
    ("* eol=crlf\n*.txt -text\n", False),
    ("*.txt eol=lf\n", False),
]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(("attributes", "crlf"), LINES)
def test_the_lines_of_a_commit_end_as_its_own_attributes_say(tmp_path: Path, attributes: str, crlf: bool) -> None:
    root = repository(tmp_path / "p", {"golden.txt": "a\nb\n", ".gitattributes": attributes})
    write(root, {".git/info/attributes": "* text eol=crlf\n"})
    git(root, "config", "core.autocrlf", "true")
    store = Store(root)
    assert texts(store, store.commit("HEAD").tree)["golden.txt"] == ("a\r\nb\r\n" if crlf else "a\nb\n")


def test_content_of_git_lfs_comes_from_its_own_folder_and_must_be_there(tmp_path: Path) -> None:
    digest = sha256(b"large").hexdigest()
    files = {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "a.bin": POINTER.format(digest)}
    store = Store(repository(tmp_path / "p", files))
    for content in ("", "other"):
        write(store.top, {f".git/lfs/objects/{digest[:2]}/{digest[2:4]}/{digest}": content} if content else {})
        with raises_code(SealError, "SEAL133", "a.bin"):
            store.commit("HEAD")
    write(store.top, {f".git/lfs/objects/{digest[:2]}/{digest[2:4]}/{digest}": "large"})
    assert texts(store, store.commit("HEAD").tree) == {**files, "a.bin": "large"}


# -- trees ------------------------------------------------------------------------------------------------------------


def test_trees_are_composed_and_compared_file_by_file(tmp_path: Path) -> None:
    store = Store(repository(tmp_path / "p", {"a": "1", "b/c": "2", "d": "3"}))
    one = store.snapshot()
    entry = store.files(one)["a"]
    changes = {"a": None, "b/c": Entry(PROGRAM, entry.oid), "d": None, "d/e": entry, "f": entry}
    other = store.compose(one, changes)
    assert (store.differing(one, other), store.differing(one, one), store.compose(one, {})) == (changes, {}, one)
    assert texts(store, other) == {"b/c": "1", "d/e": "1", "f": "1"}
    for path in ("a/b", "b"):
        with raises_code(SealError, "SEAL120"):
            store.compose(one, {path: entry})


def test_a_store_that_something_else_changed_is_found_before_anything_runs(tmp_path: Path) -> None:
    store = Store(repository(tmp_path / "p", {"a": "1"}))
    store.snapshot()
    write(store.top, {"b": "strict"})
    tree = store.snapshot()
    oid = store.files(tree)["b"].oid
    loose = store.folder / "store.git/objects" / oid[:2] / oid[2:]
    loose.chmod(0o644)
    loose.write_bytes(zlib.compress(b"blob 4\0weak"))
    with raises_code(SealError, "SEAL110"):
        exported(store, tree, tmp_path / "one")
    loose.unlink()
    with raises_code(SealError, "SEAL110"):
        exported(store, tree, tmp_path / "two")


def test_what_a_run_wrote_into_an_export_is_known(tmp_path: Path) -> None:
    store = Store(repository(tmp_path / "p", {**dict.fromkeys("abcd", "1"), "sub/e": "1", ".gitignore": "*.o\n"}))
    out = exported(store, store.snapshot(), tmp_path / "out")
    assert (store.written(out), store.untracked(out)) == ([], [])
    before = (out / "a").stat()
    write(out, {"a": "2", "b": None, "sub/e": None, "new/x": "", "x.o": "", "d": None})
    os.utime(out / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(out / "c")
    (out / "d").symlink_to("c")
    assert (store.written(out), store.untracked(out)) == (["a", "b", "d", "sub/e"], ["new", "x.o"])


def test_files_are_ignored_by_the_rules_of_a_tree_and_not_by_those_of_the_work(tmp_path: Path) -> None:
    store = Store(repository(tmp_path / "p", {".gitignore": "*.gen\n!keep.gen\n", "sub/.gitignore": "/local\n"}))
    base = store.snapshot()
    write(store.top, {".gitignore": "", "sub/.gitignore": "*\n"})
    asked = ["a.gen", "keep.gen", "sub/b.gen", "sub/local", "sub/deep/local", "a.py", "\n.gen"]
    assert store.ignored_by(base, asked) == {"a.gen", "sub/b.gen", "sub/local", "\n.gen"}
    assert store.ignored_by(store.snapshot(), ["a.gen"]) == frozenset()


def test_files_are_put_back_as_they_were_and_never_through_a_link(tmp_path: Path) -> None:
    root = repository(tmp_path / "p", dict.fromkeys(("a", "gone", "run", "sub/b", "dir/c", "same", "full"), "1"))
    (root / "run").chmod(0o755)
    (root / "link").symlink_to("a")
    store = Store(root)
    tree = store.snapshot()
    beside = write(tmp_path / "beside", {"b": "mine", "new": "mine"})
    work = {"a": "2", "gone": None, "link": None, "sub/b": None, "new": "x", "full": None, "full/x": "mine"}
    write(root, work)
    (root / "run").chmod(0o644)
    (root / "link").symlink_to("run")
    (root / "sub").rmdir()
    (root / "sub").symlink_to(beside)
    paths = ["a", "gone", "run", "link", "sub/b", "sub/new", "dir/c", "same", "new", "full"]
    assert store.restore(tree, paths) == ["a", "gone", "run", "link", "new"]
    left = dict.fromkeys(("a", "gone", "run", "dir/c", "same"), "1")
    left |= {"link": "a", "sub": str(beside), "full/x": "mine"}
    assert (texts(store, store.snapshot()), os.access(root / "run", os.X_OK)) == (left, True)
    assert [(beside / name).read_text() for name in ("b", "new")] == ["mine", "mine"]


# -- what can go wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["add", "fetch", "init", "read-tree", ""])
def test_a_full_disk_or_no_folder_is_named_and_the_next_snapshot_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    root = repository(tmp_path / "p", {"a": "1"})
    words = "No space left on device" if step == "add" else "write error. Out of diskspace"
    full = f'[ "$word" = {step} ] && {{ echo "{words}" >&2; exit 128; }}'
    write(tmp_path, {"bin/git": f'#!/bin/sh\nfor word; do {full}; done\nexec {shutil.which("git")} "$@"\n'})
    (tmp_path / "bin/git").chmod(0o755)
    with monkeypatch.context() as patch:
        if step:
            patch.setenv("PATH", f"{tmp_path}/bin", prepend=os.pathsep)
        else:
            patch.setenv("INTERLOCK_STATE", str(root / "a" / "below a file"))
        with raises_code(SealError, "SEAL112"):
            Store(root).snapshot()
    store = Store(root)
    assert (texts(store, store.snapshot()), (root / "a").read_text()) == ({"a": "1"}, "1")


def test_what_a_killed_git_left_in_the_store_is_no_hindrance(tmp_path: Path) -> None:
    root = repository(tmp_path / "p", {".gitattributes": "* text eol=lf\n", "a": "1"})
    store = Store(root)
    first = store.snapshot()
    write(store.folder / "store.git", {"../index.lock": "", "shallow.lock": "", "user": None, "info/attributes": None})
    (root / "a").write_bytes(b"1\r\n")
    store = Store(root)
    assert texts(store, store.snapshot())["a"] == "1\r\n"
    assert store.commit("HEAD").tree == first
