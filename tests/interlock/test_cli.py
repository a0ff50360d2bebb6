"""The `interlock` command as a person meets it: exit codes, streams, errors with fixes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.campaign.test_kills import greeting_project
from tests.gates.support import put
from tests.refusals import raises_with


def interlock(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command in a folder."""
    return warm.interlock(folder, *arguments, stdin=stdin, env={**os.environ, "NO_COLOR": "1", "COLUMNS": "120"})


def data(done: subprocess.CompletedProcess[str]) -> Any:
    """Return the JSON that a command printed."""
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def approved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project in which one run ended APPROVED."""
    root = tmp_path_factory.mktemp("approved") / "project"
    greeting_project(root)
    done = interlock(root, "run", "task.toml")
    assert done.returncode == 0, done.stderr
    return root


def test_run_ends_with_status_path_and_head_on_stdout_and_progress_on_stderr(tmp_path: Path) -> None:
    root = tmp_path / "project"
    greeting_project(root)
    done = interlock(root, "run", "task.toml", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["kind"], summary["status"], summary["path"][-1]) == ("summary", "APPROVED", "APPROVED")
    assert summary["head"]["seq"] > 5
    assert "IN_PROGRESS" in done.stderr
    assert "refused (" in done.stderr


def test_a_waiting_run_exits_with_3_and_says_how_to_answer(waiting: Path) -> None:
    again = interlock(waiting, "resume", "HELLO-001", "--answer", "reviewer=-", stdin="no envelope")
    assert (again.returncode, "reviewer: refused" in again.stderr) == (3, True)
    status = data(interlock(waiting, "status", "HELLO-001", "--json"))
    assert (status["phase"], status["waiting"][0]["request"]["reask"]) == ("waiting", 1)
    assert interlock(waiting, "resume", "HELLO-001", "--answer", "tester=-").returncode == 2
    explained = interlock(waiting, "explain", "HELLO-001")
    assert "missing  GATE-REVIEW: certified by reviewer" in explained.stdout


def test_explain_says_why_and_what_next(approved: Path) -> None:
    done = interlock(approved / "src", "status")
    assert (done.returncode, done.stdout.split()[0], "APPROVED" in done.stdout) == (0, "HELLO-001.1", True)
    explained = data(interlock(approved, "explain", "HELLO-001", "--json"))
    assert explained["status"] == "APPROVED"
    assert all(row["passed"] for row in explained["gates"])
    assert "orchestrator moved it" in explained["why"]


def test_verify_passes_on_a_whole_journal_and_names_the_line_of_a_changed_one(approved: Path, tmp_path: Path) -> None:
    good = interlock(approved, "verify", "--json")
    assert (good.returncode, data(good)["ok"]) == (0, True)
    head = data(interlock(approved, "status", "HELLO-001", "--json"))["head"]
    assert interlock(approved, "verify", "--head", f"HELLO-001.1:{head['seq']}:{head['hash']}").returncode == 0
    assert interlock(approved, "verify", "--head", "nonsense").returncode == 2
    path = approved / "artifacts/interlock/events.jsonl"
    before = path.read_bytes()
    try:
        path.write_bytes(before.replace(b"as asked", b"as it is", 1))
        notes = interlock(approved, "verify", "--format", "github").stdout.splitlines()
        assert {note.partition(" ")[0] for note in notes} == {"::error"}
        bad = interlock(approved, "verify")
        assert bad.returncode == 1
        assert "fix: " in bad.stdout
        held = data(good)["runs"]
        assert held
        assert data(interlock(approved, "verify", "--json"))["runs"] == held
    finally:
        path.write_bytes(before)


def test_verify_of_an_untouched_project_has_nothing_to_compare_with_and_writes_nothing(tmp_path: Path) -> None:
    done = interlock(tmp_path, "verify", "--json")
    assert (done.returncode, data(done)["verdict"], data(done)["problems"]) == (2, "empty", [])
    assert interlock(tmp_path, "verify").stdout.endswith(": nothing written yet, and so nothing to verify\n")
    head = f"HELLO-001.1:1:{'0' * 64}"
    assert interlock(tmp_path, "verify", "--head", head).returncode == 1
    assert not any(tmp_path.iterdir())


def test_a_journal_that_is_gone_is_damage_where_anything_speaks_of_a_run(approved: Path, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    shutil.copytree(approved, root)
    (root / "artifacts/interlock/events.jsonl").unlink()
    gone = interlock(root, "verify", "--json")
    assert (gone.returncode, data(gone)["verdict"]) == (1, "damaged")
    shutil.rmtree(root / ".interlock")
    (root / "artifacts/interlock/tickets.jsonl").touch()
    assert interlock(root, "verify").returncode == 1


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("stauts",), "interlock --help"),
        (("run", "missing.toml"), "missing.toml"),
        (("resume", "NOPE-001"), "interlock status"),
        (("explain", "NOPE-001"), "interlock status"),
        (("run",), "TASK_FILE"),
        (("verify", "--head", "x"), "RUN:SEQ:HASH"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_what_to_do(tmp_path: Path, arguments: tuple[str, ...], word: str) -> None:
    done = interlock(tmp_path, *arguments)
    assert done.returncode == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    if arguments[0] == "resume":
        error = data(interlock(tmp_path, *arguments, "--json"))["error"]
        assert (error["code"], bool(error["fix"])) == ("RUN602", True)


def test_diagram_table_and_completion_script_are_printed(tmp_path: Path) -> None:
    assert interlock(tmp_path, "graph").stdout.startswith("stateDiagram-v2\n")
    assert "| READY_FOR_REVIEW | APPROVED |" in interlock(tmp_path, "graph", "--table").stdout
    done = warm.interlock(tmp_path, env={**os.environ, "_INTERLOCK_COMPLETE": "bash_source"})
    assert "complete -o nosort -F" in done.stdout


def test_an_agent_file_holds_front_matter_and_the_contract_of_this_project(tmp_path: Path) -> None:
    done = interlock(tmp_path, "agent", "visual-qa")
    assert done.returncode == 0
    assert done.stdout.startswith("---\nname: visual-qa\n")
    assert "GATE-VISUAL-QA" in done.stdout
    for role in ("orchestrator", "nobody"):
        refused = interlock(tmp_path, "agent", role)
        assert (refused.returncode, refused.stdout) == (2, "")


def test_an_agent_file_for_a_task_has_the_text_that_its_runs_have(tmp_path: Path) -> None:
    facts = 'task_id = "A-1"\ntask = "Sort"\ngates_required = ["GATE-MSG-STRICT"]\nscope = ["src/**"]\n'
    (tmp_path / "own.md").write_text("---\nname: code-reviewer\ndescription: d\n---\nLook twice.\n")
    own = '[agents.code-reviewer]\nrunner = "remote"\nprompt = "own.md"\n'
    for name, more in (("page", 'page = "index.html"\n'), ("software", own)):
        (tmp_path / f"{name}.toml").write_text(facts + more)
    printed = {
        name: interlock(tmp_path, "agent", "frontend-implementer", "--task", f"{name}.toml").stdout
        for name in ("page", "software")
    }
    assert "# Frontend implementer" in printed["page"]
    assert "# Build agent" in printed["software"]
    assert "Look twice." in interlock(tmp_path, "agent", "code-reviewer", "--task", "software.toml").stdout


def test_the_one_build_role_of_a_task_hands_over_in_its_agent_file_too(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text('[roles.builder]\nkind = "build"\n[gates.GATE-T]\ncommand = ["true"]\n')
    (tmp_path / "task.toml").write_text(
        'task_id = "A-1"\ntask = "Sort"\ngates_required = ["GATE-T"]\nscope = ["src/**"]\n'
    )
    text = interlock(tmp_path, "agent", "builder", "--task", "task.toml").stdout
    assert "`READY_FOR_QA` is yours to set" in text
    assert "# Build agent" in text


def test_a_task_is_found_whose_runs_bear_other_names(approved: Path, tmp_path: Path) -> None:
    frozen = (approved / ".interlock/runs/HELLO-001.1/run.json").read_text()
    other = frozen.replace('"task_id": "HELLO-001"', '"task_id": "HELLO-002"')
    assert other != frozen
    rows = [("older", frozen), ("newer", frozen), ("of another task", other), ("damaged", frozen[:-9])]

    for at, (name, text) in enumerate(rows, 2):
        folder = f".interlock/runs/{name.replace(' ', '-')}"
        put(tmp_path, f"{folder}/run.json", text)
        put(tmp_path, f"{folder}/made", str(at))
    assert data(interlock(tmp_path, "explain", "HELLO-001", "--json"))["run_id"] == "newer"
    assert interlock(tmp_path, "explain", "HELLO").returncode == 2


def test_help_and_version_do_not_import_the_graph() -> None:
    code = """
import sys
from interlock.cli import main
try:
    main(["--help"])
except SystemExit:
    print("langgraph" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.endswith("False\n")


def test_a_defect_of_our_own_ends_with_70_and_shows_where(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from interlock.cli import main as entry

    def broken() -> str:
        raise ZeroDivisionError

    monkeypatch.setattr("interlock.graph.diagram.status_mermaid", broken)
    with raises_with(SystemExit, code=70):
        entry(["graph"])
    assert "ZeroDivisionError" in capsys.readouterr().err
