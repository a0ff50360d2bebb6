"""The ticket demo as a person starts it: what it shows, what it leaves behind, and how it ends when the work fails."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interlock.graph import TICKET, journal_path, verify_journal
from interlock.journal import Entry, Journal

REPO = Path(__file__).parents[2]
EXAMPLE = REPO / "examples" / "ticket-run"
CODE = Path("interlock/core/errors.py")

pytestmark = [pytest.mark.long, pytest.mark.timeout(120)]


@dataclass
class Demo:
    """One demo that ran to its end."""

    folder: Path
    done: subprocess.CompletedProcess[str]

    @property
    def ticket(self) -> dict[str, Any]:
        """The agent's own copy of the ticket."""
        return json.loads((self.folder / "tickets" / "ticket.json").read_text())

    def entries(self, *kinds: str) -> list[Entry]:
        """Return the journal lines of some types."""
        return [entry for entry in Journal(journal_path(self.folder)).entries() if entry.type in kinds]


def run(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the checkout."""
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=REPO, capture_output=True, text=True, timeout=110, check=False, env=environment)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Return `make demo-ticket`, run once."""
    folder = tmp_path_factory.mktemp("demo") / "work"
    return Demo(folder, run(["make", "--no-print-directory", "demo-ticket", f"DIR={folder}"]))


def test_the_demo_ends_complete_with_exit_0_and_says_where_the_records_are(demo: Demo) -> None:
    assert demo.done.returncode == 0, demo.done.stderr + demo.done.stdout
    lines = dict(line.split(None, 1) for line in demo.done.stdout.splitlines() if re.match(r"\w+ +\S", line))
    assert lines["state"] == "complete"
    assert lines["submitted"] == (
        "fetch_ticket → extract_requirements → scope_context → scope_context (again) → gather_evidence (STG308) → "
        "gather_evidence → propose_plan (TKT122) → propose_plan → act_via_tools → record_and_finalize"
    )
    for key in ("ticket", "snapshots", "journal", "payloads"):
        assert (demo.folder / lines[key]).exists()
    assert demo.ticket["state"] == "complete"


def test_the_journal_holds_one_retry_one_tampering_and_each_stage_once(demo: Demo) -> None:
    assert verify_journal(demo.folder).problems == ()
    retries = [entry.data["state"] for entry in demo.entries("gate_retry")]
    assert retries == ["gather_evidence"]
    assert len(demo.entries("tamper_refused")) == 1
    assert [entry.data["state"] for entry in demo.entries("gate_passed")] == [stage.name for stage in TICKET.stages]


def test_the_tampered_state_is_shown_refused_in_full_and_the_file_holds_the_servers_again(demo: Demo) -> None:
    _, _, rest = demo.done.stdout.partition("TKT122 (retry) state:")
    lines = [line.strip() for line in rest.splitlines()[1:5]]
    assert lines[:2] == ["found:    record_and_finalize", "expected: propose_plan"]
    assert lines[2].startswith("fix:")
    assert lines[3].endswith("state propose_plan")


def test_the_repeated_submission_changes_nothing(demo: Demo) -> None:
    assert "the same answer as before" in demo.done.stdout
    states = [entry["state"] for entry in demo.ticket["history"] if entry["gate"] == "pass"]
    assert len(states) == len(set(states))


def test_the_steps_were_tasks_that_ended_approved_after_a_rework(demo: Demo) -> None:
    copy = demo.folder / "artifacts/interlock/tickets" / demo.ticket["run_id"] / "act_via_tools.json"
    acted = json.loads(copy.read_text())
    assert [bool(re.search(r"ended APPROVED$", line)) for line in acted["actions_taken"]] == [True, True]
    ends = [entry.data["to"] for entry in demo.entries("status")]
    assert (ends.count("APPROVED"), ends.count("BLOCKED")) == (2, 1)
    assert "docs/exit-codes.md" in (demo.folder / CODE).read_text()


def test_the_gate_refuses_the_project_as_it_ships_and_passes_it_at_the_end(demo: Demo, tmp_path: Path) -> None:
    shutil.copytree(demo.folder, tmp_path / "before")
    (tmp_path / "before" / "docs" / "exit-codes.md").unlink()
    command = tomllib.loads((EXAMPLE / "project" / "interlock.toml").read_text())["gates"]["GATE-TESTS"]["command"]
    for folder, status in ((tmp_path / "before", 1), (demo.folder, 0)):
        assert subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == status


def test_the_files_of_the_checkout_itself_are_left_alone(demo: Demo) -> None:
    assert (REPO / CODE).read_text() != (demo.folder / CODE).read_text()
    assert "docs/exit-codes.md" not in (REPO / CODE).read_text()


def test_a_folder_that_no_demo_made_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    done = run([sys.executable, str(EXAMPLE / "run.py"), "--dir", str(tmp_path)])
    assert done.returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.campaign
def test_a_builder_that_never_mends_its_page_ends_the_run_without_success(tmp_path: Path) -> None:
    example = tmp_path / "ticket-run"
    shutil.copytree(EXAMPLE, example)
    team = example / "project" / "team.py"
    text = team.read_text()
    assert "rows if ask.attempt > 1 else rows[:-1]" in text
    team.write_text(text.replace("rows if ask.attempt > 1 else rows[:-1]", "rows[:-1]"))
    folder = tmp_path / "work"
    done = run([sys.executable, str(example / "run.py"), "--dir", str(folder)])
    assert done.returncode == 1, done.stdout
    assert Demo(folder, done).ticket["state"] != "complete"
    assert "step_1 failed: GATE-" in done.stdout
    more = next(line for line in done.stdout.splitlines() if "more: interlock explain" in line)
    told = run([sys.executable, "-m", *shlex.split(more.partition("more: ")[2])])
    assert told.returncode == 0, told.stderr
    assert "BLOCKED" in told.stdout


@pytest.mark.campaign
def test_it_runs_in_an_activated_environment_whose_python_finds_the_tests_of_the_checkout(tmp_path: Path) -> None:
    """An editable install puts the checkout's own package `tests` in the way of one that the gate might import."""
    activated = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    found = run(["python3", "-c", "import tests; print(tests.__file__)"], PATH=activated, PYTHONSAFEPATH="1")
    assert found.stdout.strip() == str(REPO / "tests" / "__init__.py"), found.stderr
    done = run([sys.executable, str(EXAMPLE / "run.py"), "--dir", str(tmp_path / "work")], PATH=activated)
    assert done.returncode == 0, done.stdout


@pytest.mark.campaign
def test_it_runs_with_the_interpreter_alone_on_path(tmp_path: Path) -> None:
    """The server is started by interpreter: `interlock` need not be found by name."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8", **_coverage()}
    command = [sys.executable, str(EXAMPLE / "run.py"), "--dir", str(tmp_path / "work")]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr


def _coverage() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
