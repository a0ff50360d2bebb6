"""A task file: a regular file of a bounded size, answered key by key where it cannot be used."""

from pathlib import Path

import pytest

from interlock.graph.errors import TaskError
from interlock.graph.task.task import load_task, task_from_mapping
from tests.table import each_row

GOOD = {"task_id": "HELLO-001", "task": "x", "gates_required": ["GATE-A"], "scope": ["src/**"]}


def problem(**change: object) -> str:
    """Return the one problem of a task file with a changed key."""
    with pytest.raises(TaskError) as caught:
        task_from_mapping({**GOOD, **change})
    (text,) = caught.value.problems
    return text


@each_row(
    ("change", "place", "found"),
    [
        ({"task_id": "lower"}, "task_id", '`"lower"`'),
        ({"task": "two\nlines"}, "task", '`"two\\nlines"`'),
        ({"gates_required": "GATE-A"}, "gates_required", '`"GATE-A"`'),
        ({"inputs": ["a", " "]}, "inputs.1", '`" "`'),
        ({"scope": []}, "scope", "`[]`"),
        ({"run": {"max_reasks": 21}}, "run.max_reasks", "`21`"),
        ({"run": {"max_reasks": True}}, "run.max_reasks", "`true`"),
        ({"agents": {"builder": "remote"}}, "agents.builder", '`"remote"`'),
    ],
)
def test_a_wrong_value_is_reported_with_place_found_expected_and_a_fix(
    change: dict[str, object], place: str, found: str
) -> None:
    said = problem(**change)
    assert said.startswith(f"`{place}`: found {found}: ")
    assert said.endswith("Correct it; docs/configuration.md has an example of each key.")


def test_missing_and_unknown_keys_are_reported() -> None:
    with pytest.raises(TaskError) as caught:
        task_from_mapping({name: value for name, value in GOOD.items() if name != "scope"})
    assert caught.value.problems[0].startswith("missing key `scope`. ")
    assert problem(run={"max_reask": 1}).startswith("unknown key `run.max_reask`. The keys here are max_reasks, ")


TEXT = 'task_id = "A-1"\ntask = "x"\ngates_required = []\nscope = ["**"]\n'


@pytest.mark.parametrize("name", ["folder", "nothing", "circle", "a\0b.toml"])
def test_what_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(TaskError) as refused:
        load_task(tmp_path / name)
    assert refused.value.fix
