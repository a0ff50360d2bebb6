"""The lines of what a run does at this moment: positions that stay true, a bounded file, and no run that it stops."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from interlock.graph import Drives, progress_since, start_run
from interlock.graph.task import progress
from interlock.graph.task.progress import Progress
from interlock.graph.task.store import RunStore
from interlock.redaction import Redactor
from tests.graph.conftest import Project

RUN = "A-1.1"
AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    found = RunStore(tmp_path, RUN)
    found.folder.mkdir(parents=True)
    return found


def writer(store: RunStore, clock: Callable[[], float] = lambda: 0.0) -> Progress:
    return Progress(store, Redactor(), clock=clock, now=lambda: AT)


def asking(number: int) -> dict[str, Any]:
    return {"kind": "asking", "role": "builder", "number": number}


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [row["number"] for row in rows]


def test_a_reader_goes_on_where_it_was_and_gets_every_line_once(store: RunStore) -> None:
    assert progress_since(store.root, RUN) == ([], 0)
    seen, position = list[int](), 0
    for number in range(5):
        writer(store).write(asking(number))
        rows, position = progress_since(store.root, RUN, position)
        seen += numbers(rows)
        assert progress_since(store.root, RUN, position) == ([], position)
    assert seen == [0, 1, 2, 3, 4]
    rows, again = progress_since(store.root, RUN)
    assert (numbers(rows), again) == (seen, position)
    assert rows[0] == {"kind": "asking", "at": "2026-01-01T12:00:00.000Z", "role": "builder", "number": 0}


def test_a_full_file_begins_anew_and_a_reader_gets_what_is_there(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "MAX_BYTES", 2000)
    notices, seen, position = writer(store), list[int](), 0
    for number in range(200):
        notices.write(asking(number))
        assert (store.folder / "progress.jsonl").stat().st_size <= 2000
        rows, position = progress_since(store.root, RUN, position)
        seen += numbers(rows)
    assert seen == list(range(200))


def test_of_working_only_some_are_written_for_each_role_and_all_are_passed_on(store: RunStore) -> None:
    at, passed = [0.0], list[Any]()
    notice = writer(store, lambda: at[0]).writing(passed.append)
    for tick in range(100):
        at[0] = tick / 50
        for role in ("builder", "tester"):
            notice({"kind": "working", "role": role, "tool": "", "calls": tick})
    rows, _ = progress_since(store.root, RUN)
    assert len(passed) == 200
    assert [row["role"] for row in rows].count("tester") == [row["role"] for row in rows].count("builder") <= 8


@pytest.mark.parametrize(
    "left", [b"", b"\n", b"{\n", b'{"before": -1}\n', b"[" * 10**5 + b"\n", b'{"kind": 1}\n\xff\n']
)
def test_a_fragment_or_what_another_wrote_is_passed_over(store: RunStore, left: bytes) -> None:
    (store.folder / "progress.jsonl").write_bytes(left)
    writer(store).write(asking(1))
    rows, position = progress_since(store.root, RUN)
    assert numbers(rows) == [1]
    with (store.folder / "progress.jsonl").open("ab") as file:
        file.write(b'{"kind": "asking", "at": "')
    assert progress_since(store.root, RUN, position) == ([], position)
    writer(store).write(asking(2))  # behind the fragment, and lost with it
    writer(store).write(asking(3))
    assert numbers(progress_since(store.root, RUN, position)[0]) == [3]
    for odd in (-1, position - 1, 10**9):
        assert numbers(progress_since(store.root, RUN, odd)[0]) == [1, 3]


def test_a_file_that_cannot_be_written_stops_nothing(store: RunStore) -> None:
    passed = list[Any]()
    notice = writer(store).writing(passed.append)
    notice(asking(0))
    notice({"kind": "asking", "number": object()})
    (store.folder / "progress.jsonl").rename(store.folder / "moved")
    (store.folder / "progress.jsonl").symlink_to("moved")
    notice(asking(2))
    assert len(passed) == 3
    assert progress_since(store.root, RUN) == ([], 0)
    (store.folder / "moved").rename(store.folder / "progress.jsonl")
    assert numbers(progress_since(store.root, RUN)[0]) == [0]


def failing(ask: Any) -> str:
    """Answer nothing that counts."""
    return "nothing"


def test_a_drive_in_the_background_writes_its_progress(project: Project) -> None:
    agents = (f'[agents.{role}]\nrunner = "python:{__name__}:failing"' for role in ("builder", "tester", "reviewer"))
    project.configure("\n".join(agents))
    run_id = start_run(project.root, project.task)
    Drives(project.root).advance(run_id)
    rows, _ = progress_since(project.root, run_id)
    assert {"status", "asking", "answered"} <= {row["kind"] for row in rows}
