"""A recorded ticket is replayed without a model, and ends where it ended."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.ask import AgentConfigError, RunnerError
from interlock.graph.ticket.by_model import newest_run
from interlock.graph.ticket.recording import RecordingRunner, ReplayRunner
from interlock.graph.ticket.tickets import Tickets
from interlock.redaction import Redactor
from tests.graph.ticket.scripted import BEFORE, EDIT, WHOLE, KilledError, calls, runner, says
from tests.graph.ticket.test_by_model import drive
from tests.graph.ticket.walk import PAYLOADS, SOURCE, make_project

SCRIPT = [says("extract_requirements", {"constraints": []}), *WHOLE]
"""A first try that is refused, and all that follows."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a project in which a ticket was worked, and its recording."""
    folder = tmp_path_factory.mktemp("recorded")
    root = make_project(folder / "project")
    recorder = RecordingRunner(runner(SCRIPT)[0], folder / "recorded.jsonl", root, run_id=None, redactor=Redactor())
    assert drive(Tickets(root), recorder).kind == "over"
    return folder


@pytest.fixture
def recording(recorded: Path, tmp_path: Path) -> Path:
    """Return a copy of the recording."""
    return Path(shutil.copy(recorded / "recorded.jsonl", tmp_path))


def test_each_turn_is_one_line_with_its_payload_its_cost_and_the_files_it_changed(recording: Path) -> None:
    rows = [json.loads(line) for line in recording.read_text().splitlines()]
    assert [(row["stage"], row["try"]) for row in rows[:3]] == [
        ("extract_requirements", 1), ("extract_requirements", 2), ("scope_context", 1),
    ]  # fmt: skip
    assert rows[1]["payload"] == PAYLOADS["extract_requirements"]
    assert all(row["usage"]["input_tokens"] for row in rows)
    assert [file["path"] for row in rows for file in row.get("files", [])] == ["app.py"]
    assert recording.stat().st_mode & 0o777 == 0o600


def test_a_replay_needs_no_model_and_ends_as_the_run_did(recorded: Path, recording: Path, tmp_path: Path) -> None:
    root, again = recorded / "project", make_project(tmp_path / "again")
    tickets = Tickets(again)
    replay = ReplayRunner(recording)
    end = drive(tickets, replay)
    assert (end.kind, tickets.state(end.run_id)["state"], replay.unused) == ("over", "complete", [])
    assert (again / "app.py").read_text() == (root / "app.py").read_text() != SOURCE
    first = Tickets(root)
    (run_id,) = first.runs()
    kept = ("state", "gate", "next_state", "payload_sha256", "issues")
    rows = [[{name: row[name] for name in kept} for row in state["history"]]
            for state in (first.state(run_id), tickets.state(end.run_id))]  # fmt: skip
    assert rows[0] == rows[1]


def test_a_replay_that_was_killed_goes_on(recording: Path, tmp_path: Path) -> None:
    tickets = Tickets(make_project(tmp_path / "again"))
    with pytest.raises(KilledError):
        drive(tickets, runner(SCRIPT[:2])[0])
    assert drive(tickets, ReplayRunner(recording)).kind == "over"


def test_half_a_line_at_the_end_of_a_recording_is_no_turn(recording: Path) -> None:
    recording.write_bytes(recording.read_bytes()[:-9])
    assert ReplayRunner(recording).unused[-1] == "act_via_tools, try 1"


def test_what_was_edited_before_a_kill_is_recorded_with_the_answer_after_it(
    tickets: Tickets, root: Path, tmp_path: Path
) -> None:
    path = tmp_path / "recorded.jsonl"
    recorder = RecordingRunner(runner([*BEFORE, calls(EDIT)])[0], path, root, run_id=None, redactor=Redactor())
    with pytest.raises(KilledError):
        drive(tickets, recorder)
    rest = runner([says("act_via_tools"), says("record_and_finalize")])[0]
    recorder = RecordingRunner(rest, path, root, run_id=newest_run(root, "SHOP-7"), redactor=Redactor())
    assert drive(tickets, recorder).kind == "over"
    again = make_project(tmp_path / "again")
    assert drive(Tickets(again), ReplayRunner(path)).kind == "over"
    assert (again / "app.py").read_text() == (root / "app.py").read_text() != SOURCE


def test_what_a_recording_cannot_hold_is_said_and_costs_no_answer(
    tickets: Tickets, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.agents.recording_file.MAX_FILE_BYTES", 20)
    path = tmp_path / "recorded.jsonl"
    recorder = RecordingRunner(runner(WHOLE)[0], path, root, run_id=None, redactor=Redactor())
    assert drive(tickets, recorder).kind == "over"
    again = make_project(tmp_path / "again")
    with pytest.raises(RunnerError, match=r"app\.py"):
        drive(Tickets(again), ReplayRunner(path))
    assert (again / "app.py").read_text() == SOURCE


def test_a_recorded_file_outside_of_the_plan_is_not_written(recording: Path, tmp_path: Path) -> None:
    recording.write_text(
        recording.read_text().replace('"path": "app.py", "value"', '"path": "interlock.toml", "value"')
    )
    root = make_project(tmp_path / "again")
    with pytest.raises(RunnerError, match=r"interlock\.toml"):
        drive(Tickets(root), ReplayRunner(recording))
    assert not (root / "interlock.toml").exists()


def test_a_turn_that_was_not_recorded_is_named(recording: Path, tmp_path: Path) -> None:
    lines = recording.read_text().splitlines(keepends=True)
    recording.write_text("".join(lines[:3] + lines[4:]))
    with pytest.raises(RunnerError, match="gather_evidence, try 1; the next in it is propose_plan, try 1"):
        drive(Tickets(make_project(tmp_path / "again")), ReplayRunner(recording))


TURN: dict[str, Any] = {"stage": "x", "try": 1, "payload": {}}
WRONG: tuple[dict[str, Any], ...] = (
    {"try": "one"}, {"payload": 3}, {"files": [{}]}, {"files": [3]}, {"usage": 3}, {"usage": {"calls": "x"}},
)  # fmt: skip


@pytest.mark.parametrize(
    "text", ["[]", '"text"', "{}", "not json", *(json.dumps({**TURN, **wrong}) for wrong in WRONG)]
)
def test_a_line_that_is_no_turn_is_refused_with_its_number(tmp_path: Path, text: str) -> None:
    path = tmp_path / "recorded.jsonl"
    path.write_text(f"\n{text}\n")
    with pytest.raises(AgentConfigError) as caught:
        ReplayRunner(path)
    assert caught.value.key == "line 2"


def test_a_recording_replaces_no_file_and_lies_outside_of_the_project(root: Path, tmp_path: Path) -> None:
    model = runner([])[0]
    (tmp_path / "there.jsonl").write_text("mine\n")
    for path in (tmp_path / "there.jsonl", root / "recorded.jsonl", tmp_path / "no" / "folder.jsonl"):
        with pytest.raises(AgentConfigError):
            RecordingRunner(model, path, root, run_id=None, redactor=Redactor())
    assert (tmp_path / "there.jsonl").read_text() == "mine\n"
    (tmp_path / "begun.jsonl").touch()
    RecordingRunner(model, tmp_path / "begun.jsonl", root, run_id="SHOP-7.1", redactor=Redactor())
    other = json.dumps({**TURN, "run": "SHOP-7.1"}) + "\n"
    (tmp_path / "other.jsonl").write_text(other)
    for run_id in ("SHOP-7.2", None):
        with pytest.raises(AgentConfigError):
            RecordingRunner(model, tmp_path / "other.jsonl", root, run_id=run_id, redactor=Redactor())
    assert (tmp_path / "other.jsonl").read_text() == other
    (root / "artifacts").mkdir()
    RecordingRunner(model, root / "artifacts" / "recorded.jsonl", root, run_id=None, redactor=Redactor())


def test_a_recording_of_a_killed_drive_goes_on_in_the_same_file(tickets: Tickets, root: Path, tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    with pytest.raises(KilledError):
        drive(tickets, RecordingRunner(runner(BEFORE[:2])[0], path, root, run_id=None, redactor=Redactor()))
    with path.open("ab") as file:
        file.write(b'{"run": "SHO')
    run_id = newest_run(root, "SHOP-7")
    drive(tickets, RecordingRunner(runner(WHOLE[2:])[0], path, root, run_id=run_id, redactor=Redactor()))
    shutil.rmtree(root)
    assert drive(Tickets(make_project(root)), ReplayRunner(path)).kind == "over"


def test_keys_of_the_environment_are_in_no_recording_and_in_no_journal(
    tickets: Tickets, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", 'sk-very"secret\\value-12345')
    leaks = {**PAYLOADS["extract_requirements"], "constraints": ['it is sk-very"secret\\value-12345']}
    path = tmp_path / "recorded.jsonl"
    end = drive(tickets, RecordingRunner(runner([says("extract_requirements", leaks), *WHOLE[1:]])[0], path, root,
                                         run_id=None, redactor=Redactor()))  # fmt: skip
    assert tickets.state(end.run_id)["state"] == "complete"
    kept = [path, *(file for folder in (root / ".interlock", root / "artifacts") for file in folder.rglob("*"))]
    for file in kept:
        assert file.is_dir() or b"value-12345" not in file.read_bytes(), file
    assert "[MY_SERVICE_TOKEN]" in path.read_text()
