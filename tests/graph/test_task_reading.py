"""A task file is a regular file of a bounded size; anything else is refused at once."""

import os
from pathlib import Path

import pytest

from interlock.graph.errors import TaskError
from interlock.graph.task.task import MAX_FILE_BYTES, load_task

TEXT = 'task_id = "A-1"\ntask = "x"\ngates_required = []\nscope = ["**"]\n'


def test_a_file_of_the_largest_size_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    path.write_text(TEXT + "#" * (MAX_FILE_BYTES - len(TEXT)))
    assert load_task(path).task_id == "A-1"
    path.write_text(TEXT + "#" * (MAX_FILE_BYTES - len(TEXT) + 1))
    with pytest.raises(TaskError):
        load_task(path)


def test_a_link_to_a_task_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.toml").write_text(TEXT)
    (tmp_path / "task.toml").symlink_to("real.toml")
    assert load_task(tmp_path / "task.toml").task_id == "A-1"


def open_files() -> int:
    """Return how many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "circle", "nothing", "zero byte", "half a pair"])
def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "task.toml"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path = Path("/dev/zero")
        case "circle":
            path.symlink_to(path)
        case "zero byte":
            path = tmp_path / "a\0b.toml"
        case "half a pair":
            path = tmp_path / "a\ud800b.toml"
        case _:
            pass
    before = open_files()
    with pytest.raises(TaskError) as refused:
        load_task(path)
    assert refused.value.fix
    assert open_files() == before


def test_a_file_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    path.write_text(TEXT + "x = " + "[" * 5000)
    with pytest.raises(TaskError):
        load_task(path)
