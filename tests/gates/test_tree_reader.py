"""Looking at the same files again: only what changed is read, and nothing that changed is missed."""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.gates import tree
from interlock.gates.errors import TreeError
from interlock.gates.tree import TreeReader, tree_digest, tree_files
from tests.gates.support import put

SCOPE = ("src/**", "!src/out/**", "*.md")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note which files are read, and let every file be settled at once."""
    found: list[str] = []
    value = tree._value  # pyright: ignore[reportPrivateUsage]

    def noted(root: str, path: str) -> str:
        found.append(path)
        return value(root, path)

    monkeypatch.setattr(tree, "_value", noted)
    monkeypatch.setattr(tree, "_SETTLED_NS", -(10**12))
    return found


def rewrite(path: Path, text: str) -> None:
    """Write a file in place, as long as before and with the times that it had."""
    times = path.stat()
    path.write_text(text)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def replaced(path: Path, text: str) -> None:
    """Put another file in the place of one."""
    other = path.with_name("other")
    other.write_text(text)
    other.replace(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "same size and times": lambda root: rewrite(root / "src/a.py", "b = 2\n"),
    "another file by the same name": lambda root: replaced(root / "src/a.py", "a = 1\n#"),
    "new": lambda root: put(root, "src/new/c.py", "c"),
    "new at the root": lambda root: put(root, "new.md", "c"),
    "another name": lambda root: (root / "src/a.py").rename(root / "src/b.py"),
    "removed": lambda root: (root / "src/deep/b.py").unlink(),
    "moved": lambda root: (root / "src/deep").rename(root / "src/deeper"),
    "executable": lambda root: (root / "src/a.py").chmod(0o755),
    "a link in its place": lambda root: ((root / "src/a.py").unlink(), (root / "src/a.py").symlink_to("deep/b.py")),
    "a link in a folder's place": lambda root: (
        (root / "src/deep").rename(root / ".git"),
        (root / "src/deep").symlink_to("../.git"),
    ),
    "a folder in its place": lambda root: ((root / "src/a.py").unlink(), put(root, "src/a.py/x", "x")),
    "a file in a folder's place": lambda root: ((root / "src/deep").rename(root / "gone"), put(root, "src/deep", "x")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_every_change_changes_the_digest_and_is_seen_by_the_next_look(
    tmp_path: Path, reads: list[str], change: Callable[[Path], object]
) -> None:
    put(tmp_path, "src/a.py", "a = 1\n")
    put(tmp_path, "src/deep/b.py", "b")
    put(tmp_path, "read.md", "r")
    reader = TreeReader(tmp_path, SCOPE)
    before = reader.look().digest
    time.sleep(0.02)  # the clock of a file system is coarser than ours
    change(tmp_path)
    reads.clear()
    assert reader.look().digest == tree_digest(tmp_path, SCOPE) != before
    assert reader.look().files == tree_files(tmp_path, SCOPE)


def test_only_what_changed_is_read_again(tmp_path: Path, reads: list[str]) -> None:
    for number in range(5):
        put(tmp_path, f"src/{number}/x.py", str(number))
    put(tmp_path, "src/out/big", "generated")
    reader = TreeReader(tmp_path, SCOPE)
    first = reader.look().files
    assert sorted(reads) == [f"src/{number}/x.py" for number in range(5)]
    reads.clear()
    put(tmp_path, "src/out/more", "generated")
    assert reader.look().files is first
    assert reads == []
    put(tmp_path, "src/3/y.py", "y")
    reader.look()
    assert reads == ["src/3/y.py"]
    reads.clear()
    assert len(reader.look(contents=True).files) == len(reads) == 6


def test_a_change_that_no_stamp_shows_is_found_where_contents_are_asked_for(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "src/a.py", "a = 1\n")

    def alike(entries: list[os.DirEntry[str]]) -> list[tuple[str, int, int, int]]:
        return [(entry.name, 1, 1, 1) for entry in entries]

    monkeypatch.setattr(tree, "_rows", alike)
    reader = TreeReader(tmp_path, SCOPE)
    before = reader.look().digest
    put(tmp_path, "src/a.py", "a = 2\n")
    assert reader.look().digest == before
    assert reader.look(contents=True).digest == tree_digest(tmp_path, SCOPE) != before
    assert reader.look().digest == tree_digest(tmp_path, SCOPE)


def test_what_just_changed_is_read_each_time(tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_SETTLED_NS", 10**12)
    put(tmp_path, "src/a.py", "a = 1\n")
    reader = TreeReader(tmp_path, SCOPE)
    reader.look()
    reader.look()
    assert reads == ["src/a.py", "src/a.py"]


def test_what_cannot_be_read_is_an_error_of_each_look_and_no_other_tree(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "src/a.py", "a = 1\n")
    reader = TreeReader(tmp_path, SCOPE)
    before = reader.look().files
    (tmp_path / "src").rename(tmp_path / "kept")
    (tmp_path / "src").symlink_to("kept")
    assert reader.look().files == tree_files(tmp_path, SCOPE) != before
    (tmp_path / "src").unlink()
    (tmp_path / "kept").rename(tmp_path / "src")
    assert reader.look().files == before
    put(tmp_path, os.fsdecode(b"src/\xff.py"), "x")
    for _ in range(2):
        with pytest.raises(TreeError):
            reader.look()


def test_after_any_changes_a_look_finds_what_reading_everything_finds(tmp_path: Path) -> None:
    chance = random.Random(7)
    names = [
        f"{folder}/{name}" for folder in ("src", "src/x", "src/x/y", "src/out", "other") for name in ("a", "b", "c")
    ]
    reader = TreeReader(tmp_path, SCOPE)
    for _ in range(150):
        path = tmp_path / chance.choice(names)
        if path.is_file() and chance.random() < 0.4:
            path.unlink()
        else:
            put(tmp_path, path.relative_to(tmp_path).as_posix(), str(chance.random()))
        if chance.random() < 0.5:
            assert reader.look().files == tree_files(tmp_path, SCOPE)


def test_a_look_of_the_same_moment_serves_until_it_is_said_something_ended(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "src/a.py", "a = 1\n")
    reader = TreeReader(tmp_path, SCOPE)
    before = reader.look()
    put(tmp_path, "src/b.py", "b")
    assert reader.look(within_seconds=60) is before
    assert reader.look(contents=True, within_seconds=60) is not before
    put(tmp_path, "src/c.py", "c")
    reader.expire()
    assert sorted(reader.look(within_seconds=60).files) == ["src/a.py", "src/b.py", "src/c.py"]
