"""One damaged run is named with its fix; it hides neither the other runs nor the journal."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlock.cli.main import interlock
from interlock.graph.errors import RunDamagedError
from interlock.graph.task.runs import kept_views, view_run
from interlock.graph.verify import verify_journal
from tests.graph.conftest import Project


def change(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "checkpoints.sqlite")) as connection, connection:
        connection.execute(statement)


def no_database(folder: Path) -> None:
    (folder / "checkpoints.sqlite").write_bytes(b"no database" * 100)


def put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no database": no_database,
    "a folder for the database": lambda folder: put_folder(folder / "checkpoints.sqlite"),
    "no state": lambda folder: change(folder, "UPDATE checkpoints SET checkpoint = x'c1ffffff'"),
    "no JSON": lambda folder: (folder / "run.json").write_text("{"),
    "JSON without a task": lambda folder: (folder / "run.json").write_text('{"task": {}, "policy": {}}'),
}


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_is_one_problem_and_the_whole_journal_is_still_checked(project: Project, damage: str) -> None:
    first, second = project.run().run_id, project.run().run_id
    head = view_run(first, root=project.root).head
    folder = project.root / ".interlock/runs" / second
    DAMAGES[damage](folder)

    for read in (lambda: view_run(second, root=project.root), lambda: project.drive(second)):
        with pytest.raises(RunDamagedError) as caught:
            read()
        assert f".interlock/runs/{second}" in caught.value.fix
        assert "\n" not in caught.value.message

    damaged: dict[str, RunDamagedError] = {}
    views = kept_views(project.root, damaged.__setitem__)
    assert {run: view.head for run, view in views.items()} == {first: head}
    assert list(damaged) == [second]

    found = verify_journal(project.root)  # the lines of the reservations are no run
    assert [(item.code, item.field) for item in found.problems] == [("RUN604", second)]
    assert (found.verdict, found.lines, found.runs, found.heads) == ("unproven", len(project.entries()), 2, 1)

    journal = project.root / "artifacts/interlock/events.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[1:]))
    codes = [item.code for item in verify_journal(project.root).problems]
    assert codes[-1] == "RUN604"
    assert any(code.startswith("JRN") for code in codes)


def test_verify_and_status_name_the_damaged_run_and_exit_with_1(project: Project) -> None:
    run_id = project.run().run_id
    no_database(project.root / ".interlock/runs" / run_id)
    root = ("--root", str(project.root))
    text = CliRunner().invoke(interlock, ["verify", *root])
    assert text.exit_code == 1
    assert f".interlock/runs/{run_id}: error RUN604" in text.stdout
    assert "fix: Restore" in text.stdout
    done = CliRunner().invoke(interlock, ["verify", *root, "--json"])
    (problem,) = json.loads(done.stdout)["problems"]
    assert (done.exit_code, problem["code"], problem["run"]) == (1, "RUN604", run_id)
    assert problem["fix"].startswith("Restore")
    listed = CliRunner().invoke(interlock, ["status", *root, "--json"])
    assert [item["run_id"] for item in json.loads(listed.stdout)["damaged"]] == [run_id]


def test_a_head_given_by_hand_is_checked_though_its_run_is_damaged(project: Project) -> None:
    view = project.run()
    assert view.head is not None
    no_database(project.root / ".interlock/runs" / view.run_id)
    project.drop_last_line(view.run_id)
    found = verify_journal(project.root, [(view.run_id, view.head)])
    assert [item.code for item in found.problems] == ["JRN712", "RUN604"]


def test_a_busy_database_is_not_called_damaged(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = project.run().run_id
    path = project.root / ".interlock/runs" / run_id / "checkpoints.sqlite"
    real = sqlite3.connect

    def impatient(name: Path, *, timeout: float, check_same_thread: bool) -> sqlite3.Connection:
        return real(name, timeout=0, check_same_thread=check_same_thread)

    with closing(real(path)) as holder:
        holder.execute("PRAGMA locking_mode=EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(sqlite3, "connect", impatient)
        with pytest.raises(sqlite3.OperationalError):
            view_run(run_id, root=project.root)
