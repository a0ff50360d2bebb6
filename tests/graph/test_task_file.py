"""A task file that cannot be read as one is answered key by key: what was found, what is expected, how to mend it."""

import datetime as dt

import pytest

from interlock.graph.errors import TaskError
from interlock.graph.task.task import task_from_mapping
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
def test_a_wrong_value_is_told_with_place_found_expected_and_a_fix(
    change: dict[str, object], place: str, found: str, expected: str
) -> None:
    said, _, fix = problem(**change).partition(f"; expected {expected}. ")
    assert said == f"`{place}`: found {found}"
    assert fix.endswith(".")


@pytest.mark.parametrize("key", sorted(GOOD))
def test_a_missing_key_is_told_with_what_it_should_hold(key: str) -> None:
    with pytest.raises(TaskError) as caught:
        task_from_mapping({name: value for name, value in GOOD.items() if name != key})
    (text,) = caught.value.problems
    assert text.startswith(f"missing key `{key}`; expected ")


def test_a_long_value_is_shown_in_one_bounded_line() -> None:
    text = problem(task="a\n" + "b" * 5000)
    assert len(text) < 250
    assert "\n" not in text
