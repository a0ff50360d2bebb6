"""A run that was recorded is replayed without any agent and ends with the same journal; keys are kept nowhere."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import Ask
from interlock.agents.recording_file import read_recording
from interlock.cli.main import main
from interlock.gates.config import load_config
from interlock.graph import AgentSetting, key_variables, load_task, make_policy
from interlock.journal import Journal
from tests.graph.conftest import CONFIG, envelope, qa_role

KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-0123456789/+==",
    "OPENAI_API_KEY": "sk-proj-abcdefghij",
    "MY_SERVICE_TOKEN": 'tok "quoted" value',
}

ROLES = ("builder", "tester", "second", "reviewer")
SECOND = qa_role("second", "GATE-SECOND", 'evidence = ["reports"]\ncheck = "report"')
GATES = ("GATE-MSG-STRICT", "GATE-TESTS", "GATE-LINT", "GATE-REVIEW", "GATE-SECOND")

AGENTS = """
import os
from pathlib import Path

from interlock.agents import Answer, Ask, RunnerError
from interlock.agents.usage import Usage
from tests.graph.conftest import envelope, judge_log

GATES = {gates!r}


def _say(ask, status, **fields):
    return envelope(ask, status, gates_required=GATES, **fields)


def _report(ask, gate, status, name):
    path = Path(ask.root) / ask.reports_dir / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# Report of {{ask.role}}\\n\\nRead tree {{ask.tree}}. No objection.\\n")
    evidence = {{"screenshots": (), "a11y": (), "console": (), "reports": (f"{{ask.reports_dir}}/{{name}}",)}}
    return _say(ask, status, gates_passed=("GATE-MSG-STRICT", gate), evidence=evidence)


def builder(ask):
    target = Path(ask.root) / "src"
    if ask.reask == 0:
        return "I am done, everything works!"
    text = "hallo\\n" if ask.attempt == 1 else "hello\\n"
    (target / "greeting.txt").write_text(text)
    (target / "run.sh").write_text("#!/bin/sh\\n")
    (target / "run.sh").chmod(0o755)
    (target / "old.txt").unlink(missing_ok=True)
    return Answer(_say(ask, "READY_FOR_QA"), Usage(3, 1000, 200, 4.25, None), "test-model", 5)


def tester(ask):
    text = judge_log(ask)
    return text.replace("GATE-REVIEW\\n", "GATE-REVIEW\\n- GATE-SECOND\\n", 1)


def second(ask):
    return _report(ask, "GATE-SECOND", "QA_IN_PROGRESS", "notes.md")


def reviewer(ask):
    return _report(ask, "GATE-REVIEW", "READY_FOR_REVIEW", "review.md")


def leaking_builder(ask):
    keys = " ".join(os.environ[name] for name in {keys!r})
    ask.notice({{"kind": "working", "role": ask.role, "tool": f"run {{keys}}", "calls": 1, "tokens": 2}})
    if ask.reask == 0:
        return Answer(f"STATUS: {{keys}}", model=f"model {{keys}}")
    (Path(ask.root) / "src" / "greeting.txt").write_text("hello\\n")
    (Path(ask.root) / "src" / "key.txt").write_text(keys)
    return _say(ask, "READY_FOR_QA", output=f"I used {{keys}}", next_actions=(f"go on with {{keys}}",))


def failing_reviewer(ask):
    keys = " ".join(os.environ[name] for name in {keys!r})
    raise RunnerError(f"no answer from https://host/?key={{keys}}", f"Set {{keys}}.")


def meddling_second(ask):
    (Path(ask.root) / "src" / f"{{os.environ['OPENAI_API_KEY']}}-{{ask.attempt}}").touch()
    return second(ask)
"""


def make_project(folder: Path, *more: str, **functions: str) -> Path:
    """Make a project with four Python agents, and more functions of theirs; return its task file."""
    (folder / "src").mkdir(parents=True)
    (folder / "src/old.txt").write_text("old\n", encoding="utf-8")
    (folder / "check.sh").write_text("grep -qx hello src/greeting.txt\n", encoding="utf-8")
    (folder / "lint.sh").write_text("! grep -q '\t' src/greeting.txt\n", encoding="utf-8")
    # One module for each project: a name is imported once in a process.
    module = "agents_" + "".join(char if char.isalnum() else "_" for char in str(folder))
    text = "".join((AGENTS.format(gates=GATES, keys=tuple(KEYS)), *more))
    (folder / f"{module}.py").write_text(text, encoding="utf-8")
    tables = "".join(
        f'[agents.{role}]\nrunner = "remote"\n'
        if functions.get(role) == "remote"
        else f'[agents.{role}]\nrunner = "python:{module}:{functions.get(role, role)}"\n'
        for role in ROLES
    )
    (folder / "interlock.toml").write_text(CONFIG + SECOND, encoding="utf-8")
    task = folder / "task.toml"
    facts = f'task_id = "HELLO-001"\ntask = "Write the greeting"\ngates_required = {list(GATES)}\nscope = ["src/**"]\n'
    task.write_text(facts + tables, encoding="utf-8")
    return task


def play_copy(folder: Path, task: Path) -> Path:
    """Make a project with the same task whose agents must not be asked, and return its task file."""
    made = make_project(folder)
    next(folder.glob("agents_*.py")).unlink()
    shutil.copy(task, made)
    return made


def replayed(folder: Path, task: Path, file: Path) -> int:
    """Play a recording in such a project, and return the exit code."""
    return call("run", play_copy(folder, task), "--root", folder, "--replay", file)


def call(*words: str | Path) -> int:
    """Run the command in this process and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def journal_of(root: Path, run: str = "HELLO-001.1") -> list[dict[str, Any]]:
    """Return the journal of a run without what differs each time: clocks, hashes over them, the run, the root."""
    rows: list[dict[str, Any]] = []
    for entry in Journal(root / "artifacts/interlock/events.jsonl").entries(run):
        text = json.dumps({"seq": entry.seq, "key": entry.key, "type": entry.type, "data": entry.data}, sort_keys=True)
        rows.append(json.loads(text.replace(run, "RUN").replace(str(root), "ROOT")))
    return rows


def files_of(root: Path) -> Mapping[str, tuple[bytes, int]]:
    """Return content and mode of the files in scope and of the agents' reports."""
    paths = [*(root / "src").rglob("*"), *(root / "artifacts/reports").rglob("*.md")]
    return {path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_mode & 0o777) for path in paths}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project whose run, with re-asks and a rework, was recorded beside it; nobody may change either."""
    folder = tmp_path_factory.mktemp("recorded")
    task = make_project(folder / "a")
    assert call("run", task, "--root", folder / "a", "--record", folder / "rec.jsonl") == 0
    return folder / "a"


@pytest.fixture
def recorded(original: Path) -> Path:
    """Return the recording of that run."""
    return original.parent / "rec.jsonl"


def test_a_run_with_reasks_and_rework_is_replayed_to_the_same_journal_and_files(
    recorded: Path, original: Path, tmp_path: Path
) -> None:
    assert replayed(tmp_path / "b", original / "task.toml", recorded) == 0
    rows = journal_of(original)
    assert journal_of(tmp_path / "b") == rows
    assert files_of(tmp_path / "b") == files_of(original)
    assert [row["data"]["to"] for row in rows if row["type"] == "status"].count("BLOCKED") == 1
    outcomes = {row["data"]["outcome"] for row in rows if row["type"] == "answer"}
    assert outcomes >= {"invalid", "handover", "pass", "fail"}


def test_two_runs_differ_when_they_differ(original: Path, tmp_path: Path) -> None:
    task = make_project(tmp_path / "b", reviewer="second")
    call("run", task, "--root", tmp_path / "b")
    assert journal_of(tmp_path / "b") != journal_of(original)


def test_a_recording_is_for_its_user_alone_and_names_no_file_of_interlock(recorded: Path) -> None:
    assert recorded.stat().st_mode & 0o777 == 0o600
    rows = read_recording(recorded).rows
    paths = {change.path for row in rows for change in row.changes}
    assert paths == {
        "src/greeting.txt", "src/run.sh", "src/old.txt", "artifacts/reports/HELLO-001/1/notes.md",
        "artifacts/reports/HELLO-001/2/notes.md", "artifacts/reports/HELLO-001/2/review.md",
    }  # fmt: skip


def test_a_run_is_not_recorded_over_a_file_and_does_not_begin(recorded: Path, original: Path, tmp_path: Path) -> None:
    before = recorded.read_bytes()
    task = original / "task.toml"
    assert call("run", task, "--root", original, "--record", recorded) == 2
    assert recorded.read_bytes() == before
    assert not (original / ".interlock/runs/HELLO-001.2").exists()
    assert call("run", task, "--record", tmp_path / "new", "--replay", recorded) == 2, "recorded and replayed at once"


@pytest.mark.parametrize("name", ["src/rec.jsonl", "artifacts/rec.jsonl", "nowhere/rec.jsonl"])
def test_a_recording_that_cannot_stand_where_named_stops_the_run_before_it_begins(name: str, tmp_path: Path) -> None:
    task = make_project(tmp_path / "a")
    assert call("run", task, "--root", tmp_path / "a", "--record", tmp_path / "a" / name) == 2
    assert not (tmp_path / "a/.interlock").exists()


def test_other_files_stop_the_replay_at_the_first_assignment_and_it_goes_on_when_they_are_gone(
    recorded: Path, original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = play_copy(tmp_path / "b", original / "task.toml")
    (tmp_path / "b/src/extra.txt").write_text("new", encoding="utf-8")
    assert call("run", task, "--root", tmp_path / "b", "--replay", recorded) == 2
    said = capsys.readouterr().err
    assert "AGT902" in said
    assert "builder, attempt 1, turn 1, re-ask 0" in said
    assert "src/extra.txt" in said
    assert f"--replay {recorded}" in said
    (tmp_path / "b/src/extra.txt").unlink()
    # The run saw the other tree when it dispatched, and journals that; from the ask on it is the same.
    assert call("resume", "HELLO-001", "--root", tmp_path / "b", "--replay", recorded) == 0
    assert journal_of(tmp_path / "b")[2:] == journal_of(original)[2:]


def test_answers_that_nobody_asked_for_are_named_at_the_end(
    recorded: Path, original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = recorded.read_text(encoding="ascii").splitlines()
    surplus = json.loads(lines[-1]) | {"ask": "reviewer/9.1/0"}
    longer = tmp_path / "longer.jsonl"
    longer.write_text("\n".join([*lines, json.dumps(surplus)]) + "\n", encoding="ascii")
    assert replayed(tmp_path / "b", original / "task.toml", longer) == 0
    assert "reviewer/9.1/0" in capsys.readouterr().err


def test_a_recording_of_another_task_is_refused_before_the_run(recorded: Path, tmp_path: Path) -> None:
    task = make_project(tmp_path / "b")
    task.write_text(task.read_text(encoding="utf-8").replace("HELLO-001", "OTHER-001"), encoding="utf-8")
    assert call("run", task, "--root", tmp_path / "b", "--replay", recorded) == 2
    assert not (tmp_path / "b/.interlock").exists()


def test_answers_from_outside_are_recorded_when_they_are_handed_in_and_replayed_like_others(tmp_path: Path) -> None:
    root, file = tmp_path / "a", tmp_path / "rec.jsonl"
    task = make_project(root, builder="remote")
    assert call("run", task, "--root", root, "--record", file) == 3
    given = tmp_path / "answer.txt"
    given.write_text("no envelope", encoding="utf-8")
    assert call("resume", "HELLO-001", "--root", root, "--record", file, "--answer", f"builder={given}") == 3
    (root / "src/greeting.txt").write_text("hello\n", encoding="utf-8")
    given.write_text(handed_over(root), encoding="utf-8")
    assert call("resume", "HELLO-001", "--root", root, "--record", file, "--answer", f"builder={given}") == 0
    assert replayed(tmp_path / "b", task, file) == 0
    assert journal_of(tmp_path / "b") == journal_of(root)


def handed_over(root: Path) -> str:
    """Return the hand-over of a person who did the builder's work."""
    ask = Ask("", "HELLO-001", "builder", 1, 1, "build", "", str(root), "", {}, "", "")
    return envelope(ask, "READY_FOR_QA", gates_required=GATES)


FLAKY = """

def flaky(ask):
    mark = Path(ask.root) / ".interlock" / "failed-once"
    if not mark.exists():
        mark.touch()
        (Path(ask.root) / "src" / "half.txt").write_text("half")
        raise RunnerError("cut off", "Go on.")
    return builder(ask)
"""


def test_a_run_whose_agent_was_cut_off_in_the_middle_is_recorded_on_and_replayed(tmp_path: Path) -> None:
    root, file = tmp_path / "a", tmp_path / "rec.jsonl"
    task = make_project(root, FLAKY, builder="flaky")
    assert call("run", task, "--root", root, "--record", file) == 2
    assert call("resume", "HELLO-001", "--root", root, "--record", file) == 0
    assert replayed(tmp_path / "b", task, file) == 0
    assert journal_of(tmp_path / "b") == journal_of(root)
    assert (tmp_path / "b/src/half.txt").exists()


def assert_kept_nowhere(root: Path, file: Path, said: Mapping[str, str], but: Path) -> None:
    """Look for every key in everything that was kept and shown, but for the file that the agent wrote it into."""
    kept = {path: path.read_bytes() for path in [file, *root.rglob("*")] if path.is_file() and path != but}
    assert len(kept) > 10
    everything = {**kept, **{name: text.encode() for name, text in said.items()}}
    spellings = {value.encode() for key in KEYS.values() for value in (key, json.dumps(key)[1:-1])}
    assert [(str(place), key) for place, data in everything.items() for key in spellings if key in data] == []


def set_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def test_keys_of_the_environment_are_in_nothing_that_is_kept_or_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    set_keys(monkeypatch)
    root, file = tmp_path / "a", tmp_path / "rec.jsonl"
    task = make_project(root, builder="leaking_builder", reviewer="failing_reviewer")
    assert call("run", task, "--root", root, "--record", file, "--json") == 2
    call("resume", "HELLO-001", "--root", root, "--record", file)
    call("explain", "HELLO-001", "--root", root)
    call("status", "--root", root, "--json")
    said = capsys.readouterr()
    assert_kept_nowhere(root, file, {"stdout": said.out, "stderr": said.err}, root / "src/key.txt")
    for name in KEYS:
        assert f"[{name}]" in said.out
        assert f"[{name}]" in said.err
        assert f"[{name}]".encode() in file.read_bytes()
    answers = "".join(path.read_text(encoding="utf-8") for path in (root / ".interlock/runs").rglob("answers/*"))
    stopped = json.loads((root / ".interlock/runs/HELLO-001.1/stopped.json").read_text(encoding="utf-8"))
    for text in (answers, stopped["message"], stopped["fix"]):
        assert "[MY_SERVICE_TOKEN]" in text


def test_a_file_that_is_named_like_a_key_is_reported_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    set_keys(monkeypatch)
    root, file = tmp_path / "a", tmp_path / "rec.jsonl"
    task = make_project(root, second="meddling_second")
    assert call("run", task, "--root", root, "--record", file) == 1
    said = capsys.readouterr()
    assert_kept_nowhere(root, file, {"stdout": said.out, "stderr": said.err}, root / "nothing")
    assert "src/[OPENAI_API_KEY]" in said.err


def test_no_error_that_the_command_line_prints_shows_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    set_keys(monkeypatch)
    key = KEYS["OPENAI_API_KEY"]
    task = make_project(tmp_path / "a")
    module = next((tmp_path / "a").glob("agents_*.py"))
    module.write_text(f"raise ValueError({key!r})", encoding="utf-8")
    assert call("run", task, "--root", tmp_path / "a") == 2

    def defect(_folder: Path) -> None:
        raise ValueError("no such thing") from ConnectionError(f"Illegal header value b'Bearer {key}'")

    monkeypatch.setattr("interlock.cli.run.load_config", defect)
    assert call("run", task, "--root", tmp_path / "a") == 70
    said = capsys.readouterr().err
    assert said.count("[OPENAI_API_KEY]") > 1, "in the refusal of each role of that module, and in the defect"
    assert key not in said


LATE = """

def late(ask):
    os.environ["A_LATE_API_KEY"] = "late-0123456789"
    if ask.reask == 0:
        return os.environ["A_LATE_API_KEY"]
    (Path(ask.root) / "src" / "key.txt").write_text(os.environ["A_LATE_API_KEY"])
    return builder(ask)
"""


def test_a_key_that_an_agent_loads_in_the_run_is_kept_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_LATE_API_KEY", "")
    task = make_project(tmp_path / "a", LATE, builder="late")
    assert call("run", task, "--root", tmp_path / "a", "--record", tmp_path / "rec.jsonl") == 0
    written = {*(tmp_path / "a").glob("agents_*.py"), tmp_path / "a/src/key.txt"}
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and b"late-0123456789" in path.read_bytes()]
    assert {path for path in kept if "__pycache__" not in path.parts} == written


def test_a_variable_that_an_agent_names_for_its_key_is_one(tmp_path: Path) -> None:
    make_project(tmp_path / "a")
    policy = make_policy(load_task(tmp_path / "a/task.toml"), load_config(tmp_path / "a"), tmp_path / "a")
    setting = AgentSetting({"api_key_env": "MY_LLM"}, "")
    assert key_variables(policy) == ()
    assert key_variables(replace(policy, agents={**policy.agents, "builder": setting})) == ("MY_LLM",)
