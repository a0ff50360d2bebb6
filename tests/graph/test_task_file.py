"""A task file: a regular file of a bounded size, answered key by key where it cannot be used."""

import datetime as dt
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.graph.errors import TaskError
from interlock.graph.task.task import MAX_FILE_BYTES, load_task, task_from_mapping
from tests.table import each_row

GOOD = {"task_id": "HELLO-001", "task": "x", "gates_required": ["GATE-A"], "scope": ["src/**"]}

LINE = "one line of text that is not empty"


def problem(**change: object) -> str:
    """Return the one problem of a task file with a changed key."""
    with pytest.raises(TaskError) as caught:
        task_from_mapping({**GOOD, **change})
    (text,) = caught.value.problems
    return text


@each_row(
    ("change", "place", "found", "expected"),
    [
        ({"task_id": "lower"}, "task_id", "the text `lower`", "capital letters, digits and `-`, such as HOME-UI-001"),
        ({"task_id": 1}, "task_id", "the number `1`", "capital letters, digits and `-`, such as HOME-UI-001"),
        ({"task": ""}, "task", "the text of no characters", LINE),
        ({"task": "two\nlines"}, "task", "the text `two\\nlines`", LINE),
        ({"task": ["x"]}, "task", 'the list `["x"]`', LINE),
        ({"gates_required": "GATE-A"}, "gates_required", "the text `GATE-A`", "a list of texts"),
        ({"gates_required": [True]}, "gates_required.0", "the truth value `true`", "a text"),
        ({"inputs": {"a": 1}}, "inputs", 'the table `{"a": 1}`', "a list of texts"),
        ({"inputs": ["a", " "]}, "inputs.1", "the text ` `", LINE),
        ({"scope": []}, "scope", "the list `[]`", "a list of at least one pattern"),
        ({"scope": "src/**"}, "scope", "the text `src/**`", "a list of at least one pattern"),
        ({"scope": [2.5]}, "scope.0", "the number `2.5`", LINE),
        ({"page": dt.date(2026, 1, 2)}, "page", 'the date `"2026-01-02"`', LINE),
        ({"run": 3}, "run", "the number `3`", "a table"),
        ({"run": {"max_reasks": 21}}, "run.max_reasks", "the number `21`", "a whole number from 0 to 20"),
        ({"run": {"max_rework": -1}}, "run.max_rework", "the number `-1`", "a whole number from 0 to 100"),
        ({"run": {"max_progress": "3"}}, "run.max_progress", "the text `3`", "a whole number from 0 to 100"),
        ({"run": {"max_reasks": True}}, "run.max_reasks", "the truth value `true`", "a whole number from 0 to 20"),
        ({"agents": []}, "agents", "the list `[]`", "a table"),
        ({"agents": {"builder": "remote"}}, "agents.builder", "the text `remote`", "a table"),
    ],
)
def test_a_wrong_value_is_reported_with_place_found_expected_and_a_fix(
    change: dict[str, object], place: str, found: str, expected: str
) -> None:
    said, _, fix = problem(**change).partition(f"; expected {expected}. ")
    assert said == f"`{place}`: found {found}"
    assert fix.endswith(".")


@pytest.mark.parametrize("key", sorted(GOOD))
def test_a_missing_key_is_reported_with_what_it_should_hold(key: str) -> None:
    with pytest.raises(TaskError) as caught:
        task_from_mapping({name: value for name, value in GOOD.items() if name != key})
    (text,) = caught.value.problems
    assert text.startswith(f"missing key `{key}`; expected ")


def test_an_unknown_key_is_reported_with_the_nearest() -> None:
    assert "did you mean `page`" in problem(pge="x")
    assert "did you mean `max_reasks`" in problem(run={"max_reask": 1})


def test_a_long_value_is_shown_in_one_bounded_line() -> None:
    text = problem(task="a\n" + "b" * 5000)
    assert len(text) < 250
    assert "\n" not in text


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


NO_FILES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "pipe": ("task.toml", os.mkfifo),
    "folder": ("task.toml", Path.mkdir),
    "device": ("/dev/zero", str),
    "circle": ("task.toml", lambda path: path.symlink_to(path)),
    "nothing": ("task.toml", str),
    "zero byte": ("a\0b.toml", str),
    "half a pair": ("a\ud800b.toml", str),
}


@pytest.mark.parametrize(("name", "make"), NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_regular_file_is_refused_without_waiting(
    tmp_path: Path, name: str, make: Callable[[Path], object]
) -> None:
    path = tmp_path / name
    make(path)
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
