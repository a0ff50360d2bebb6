"""Files of runs: every machine gets each, in the order in which they were committed, and the first `run.json` stays."""

import threading
from pathlib import Path

import psycopg
import pytest

from interlock.core.database import Database
from interlock.graph.engine import mirror


@pytest.fixture
def machines(tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Give the folders of the record of two machines."""
    assert address
    monkeypatch.setattr(mirror, "_FRESH_SECONDS", 0.0)
    found = tmp_path / "one/.interlock", tmp_path / "two/.interlock"
    for folder in found:
        folder.mkdir(parents=True)
    return found


def test_what_one_machine_writes_the_other_has(machines: tuple[Path, Path]) -> None:
    """Written, changed, removed; and a run that is removed goes with its folder."""
    one, two = machines
    mirror.keep(one / "runs/T.1", "run.json", b"begun")
    mirror.keep(one / "runs/T.1", "answers/1.json", b"first")
    mirror.copy_runs(two)
    assert (two / "runs/T.1/answers/1.json").read_bytes() == b"first"
    mirror.keep(two / "runs/T.1", "stopped.json", b"why")
    mirror.copy_runs(one)
    assert (one / "runs/T.1/stopped.json").read_bytes() == b"why"
    mirror.keep(one / "runs/T.1", "stopped.json", None)
    mirror.copy_runs(two)
    assert not (two / "runs/T.1/stopped.json").exists()
    mirror.keep(one / "runs/T.1", "run.json", None)
    mirror.copy_runs(two)
    assert not (two / "runs/T.1").exists()


def test_a_run_is_begun_once(machines: tuple[Path, Path]) -> None:
    """Who comes second is told, and has changed nothing; the same again is no second."""
    one, two = machines
    assert mirror.keep(one / "runs/T.1", "run.json", b"mine", first=True)
    assert mirror.keep(one / "runs/T.1", "run.json", b"mine", first=True)
    assert not mirror.keep(two / "runs/T.1", "run.json", b"yours", first=True)
    mirror.copy_runs(two)
    assert (two / "runs/T.1/run.json").read_bytes() == b"mine"


def test_nothing_is_missed_while_many_write(machines: tuple[Path, Path], database: Database) -> None:
    """A file with a lower number is never committed after one with a higher number was copied."""
    one, two = machines
    done = threading.Event()

    def write(writer: int) -> None:
        for number in range(20):
            mirror.keep(one / f"runs/W{writer}.1", f"answers/{number}.json", b"%d" % number)

    def copy() -> None:
        while not done.is_set():
            mirror.copy_runs(two)

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    reader = threading.Thread(target=copy)
    for each in (reader, *writers):
        each.start()
    for each in writers:
        each.join()
    done.set()
    reader.join()
    mirror.copy_runs(two)
    assert len([*two.glob("runs/*/answers/*.json")]) == 80
    numbers = "SELECT count(*) AS files, max(version) AS highest FROM interlock.run_file"
    assert database.read(lambda link: link.execute(numbers).fetchone()) == {"files": 80, "highest": 80}


@pytest.mark.parametrize(
    ("run", "name"),
    [("..", "x"), ("a/b", "x"), ("T.1", "../x"), ("T.1", "/x"), ("T.1", "a/.."), ("", "x"), ("T.1", "")],
)
def test_no_file_is_written_outside_of_the_folder_of_a_run(database: Database, run: str, name: str) -> None:
    """An agent that reaches the database cannot have other machines write files elsewhere."""
    with pytest.raises(psycopg.errors.CheckViolation):
        database.transact(lambda link: mirror.put(link, run, name, b"x"))


def test_tickets_stay_on_their_machine(machines: tuple[Path, Path]) -> None:
    """Their agent works there."""
    one, two = machines
    mirror.keep(one / "tickets/K.1", "run.json", b"begun")
    mirror.copy_runs(two)
    assert (one / "tickets/K.1/run.json").exists()
    assert not (two / "tickets/K.1").exists()
