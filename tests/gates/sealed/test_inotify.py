"""What happens to files and leaves no trace on them is seen all the same."""

import mmap
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.inotify import (
    Seen,
    _take,  # pyright: ignore[reportPrivateUsage]
    mmap_sets_ctime,
    watched,
)  # fmt: skip

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a folder with a file in it."""
    (tmp_path / "tests/deep").mkdir(parents=True)
    (tmp_path / "tests/deep/a").write_text("aaaa")
    return tmp_path


def test_what_happens_to_watched_folders_is_seen_and_to_others_is_not(tree: Path) -> None:
    with watched(str(tree), ("", "tests", "tests/deep", "gone"), ()) as seen:
        (tree / "tests/deep").rename(tree / "aside")
        (tree / "aside").rename(tree / "tests/deep")
        (tree / "tests/new").mkdir()
        (tree / "tests/new/unseen").touch()
        (tree / "tests/new").chmod(0o700)
        (tree / "tests").chmod(0o700)
        (tree / "tests/deep/b").touch()
        (tree / "tests/deep/b").unlink()
    assert seen.moved == {"tests", "tests/deep"}
    assert seen.made == {"aside/", "tests/deep/", "tests/new/", "tests/deep/b"}


def _through_a_map(file: Path) -> None:
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 4) as mapped:
        mapped[1] = mapped[0] + 1


def test_a_file_that_was_open_for_writing_is_seen(tree: Path) -> None:
    with watched(str(tree), ("tests/deep",), ("tests/deep/a", "tests/gone")) as seen:
        _through_a_map(tree / "tests/deep/a")
        (tree / "tests/deep/a").read_text()
    assert seen.written == {"tests/deep/a"}


def test_a_file_that_is_still_open_for_writing_is_seen_and_one_that_is_read_is_not(tree: Path) -> None:
    (tree / "tests/deep/b").touch()
    with (tree / "tests/deep/b").open(), watched(str(tree), ("tests",), ("tests/deep/a", "tests/deep/b")) as seen:
        opened = (tree / "tests/deep/a").open("r+b")
    opened.close()
    assert seen.written == {"tests/deep/a"}


def test_whether_a_write_through_a_map_has_a_time_is_tried(tree: Path) -> None:
    file = tree / "tests/deep/a"
    before = file.stat().st_ctime_ns
    time.sleep(0.02)
    _through_a_map(file)
    assert mmap_sets_ctime(str(tree)) == (file.stat().st_ctime_ns != before)


def test_events_that_overflow_the_queue_count_for_every_folder(tree: Path) -> None:
    seen = Seen()
    _take(seen, {1: "tests", 2: "tests/deep"}, -1, 0x4000, "")
    assert seen.moved == {"tests", "tests/deep"}


def test_many_events_are_taken_while_they_come(tree: Path) -> None:
    with watched(str(tree), ("tests",), ()) as seen:
        for number in range(6000):
            (tree / f"tests/{number}").touch()
            (tree / f"tests/{number}").unlink()
    assert (len(seen.made), seen.moved) == (6000, set())


def test_a_limit_of_the_machine_is_named(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = SimpleNamespace(inotify_init1=Mock(return_value=-1))
    monkeypatch.setattr("ctypes.CDLL", Mock(return_value=full))
    with pytest.raises(SealError, match=r"max_user_instances") as caught, watched(str(tree), ("tests",), ()):
        pass
    assert caught.value.code == "SEAL123"
