"""Whole files: the old content or the new, through no link, with no leftover."""

import errno
import os
import stat
from pathlib import Path

import pytest

from interlock.core.files import opened_beneath, read_beneath, write_atomically, write_in


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """So it is with evidence and the files of agents, which are written by the same function."""
    path = tmp_path / "file"
    write_atomically(path, b"one")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"two")
    assert path.read_bytes() == b"one"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_the_content_and_the_name_are_synced_only_where_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []

    def sync(fd: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(fd).st_mode))

    monkeypatch.setattr(os, "fsync", sync)
    write_atomically(tmp_path / "file", b"x", durable=False)
    assert synced == []
    write_atomically(tmp_path / "file", b"x")
    assert synced == [False, True]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (precious := tmp_path / "precious").write_text("kept")
    (tmp_path / "link").symlink_to(precious)
    write_atomically(tmp_path / "link", b"new")
    assert (precious.read_text(), (tmp_path / "link").is_symlink()) == ("kept", False)


def test_a_file_never_has_more_rights_than_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def sync(fd: int) -> None:
        seen.append(stat.S_IMODE(os.fstat(fd).st_mode))

    monkeypatch.setattr(os, "fsync", sync)
    write_atomically(tmp_path / "own", b"x", mode=0o600)
    write_atomically(tmp_path / "exact", b"x", chmod=0o755)
    assert seen[0] & 0o077 == 0
    assert stat.S_IMODE((tmp_path / "exact").stat().st_mode) == 0o755


def test_what_a_killed_writer_left_under_the_same_name_is_replaced(tmp_path: Path) -> None:
    (tmp_path / ".part").write_text("half")
    with opened_beneath(tmp_path, ()) as folder:
        write_in(folder, "file", b"whole", part=".part")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_no_link_below_the_root_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OSError, match="link"), opened_beneath(tmp_path, ("link",), make=True):
        pass
    with opened_beneath(tmp_path, ("real", "new"), make=True) as folder:
        assert os.path.samestat(os.fstat(folder), (tmp_path / "real" / "new").stat())


def test_only_a_regular_file_that_is_small_enough_and_behind_no_link_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_text("12345")
    (tmp_path / "linked").symlink_to("real")
    (tmp_path / "link").symlink_to("real/file")
    os.mkfifo(tmp_path / "pipe")
    opened = set(Path("/dev/fd").iterdir())
    assert read_beneath(tmp_path, "real/file", 5) == b"12345"
    refused = {"linked/file": "ELOOP", "link": "ELOOP", "real/file/x": "ENOTDIR", "pipe": "EINVAL", "real": "EINVAL"}
    for path, code in {**refused, "real/none": "ENOENT"}.items():
        with pytest.raises(OSError) as caught:  # noqa: PT011 - each by its own number
            read_beneath(tmp_path, path, 5)
        assert errno.errorcode[caught.value.errno or 0] == code
    with pytest.raises(OSError, match="5 bytes"):
        read_beneath(tmp_path, "real/file", 4)
    assert set(Path("/dev/fd").iterdir()) == opened
