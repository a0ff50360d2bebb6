"""What a clone says of runs by the committed journal alone, and findings at the places where tests failed."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from interlock.core.render import Case, render_cases
from interlock.graph.task.task import task_from_mapping
from interlock.journal import Journal
from tests import warm
from tests.child import git
from tests.gates.sealed.sealing import environment
from tests.graph.conftest import Project
from tests.graph.sealed_project import CONFIG, GATES, working, write

COMMAND = [".venv/bin/python", "-m", "unittest", "discover", "-s", "tests", "-t", "."]
SOURCE = "def half(x):\n    return x / 0\n\n\ndef double(x):\n    return x + 2\n"
TESTS = """import unittest
from src.calc import double, half


class TestCalc(unittest.TestCase):
    def test_half(self):
        self.assertEqual(half(4), 2)

    def test_double(self):
        x = 3
        self.assertEqual(double(x), 6)
"""
FILES = {
    "interlock.toml": CONFIG.replace('["sh", "tests/check.sh"]', json.dumps(COMMAND)),
    ".gitignore": "artifacts/*\n!artifacts/interlock\nartifacts/interlock/*\n!**/events.jsonl\n.venv\n",
    "src/__init__.py": "",
    "src/calc.py": SOURCE,
    "tests/__init__.py": "",
    "tests/test_calc.py": TESTS,
}
WRONG = {"src/calc.py": f"# Of the work\n{SOURCE}"}
RIGHT = {"src/calc.py": SOURCE.replace("/ 0", "/ 2").replace("+ 2", "* 2")}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a project with a blocked and an approved run, and a clone of it with the journal alone."""
    root = tmp_path_factory.mktemp("made") / "project"
    write(root, FILES)
    (root / ".venv").symlink_to(environment())
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Start")
    for task_id, files in (("CALC-1", WRONG), ("CALC-2", RIGHT)):
        fields = {"task_id": task_id, "task": "Calculate", "gates_required": list(GATES), "scope": ["src/**"]}
        task = task_from_mapping({**fields, "run": {"max_rework": 0}}, base=str(root))
        project = Project(root, {}, task)
        project.use("builder", working(files))
        project.run()
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Work")
    clone = root.parent / "clone"
    git(root.parent, "clone", "-q", str(root), str(clone))
    return root, clone


def call(root: Path, *words: str) -> CompletedProcess[str]:
    done = warm.interlock(root, *words)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_a_clone_lists_shows_explains_and_reports_runs_by_the_journal_alone(made: tuple[Path, Path]) -> None:
    root, clone = made
    assert not (clone / ".interlock").exists()
    listed = call(clone, "status")
    assert (listed.returncode, "by the journal alone" in listed.stderr) == (0, True)
    assert [line.split()[:2] for line in listed.stdout.splitlines()] == [
        ["CALC-2.1", "APPROVED"],
        ["CALC-1.1", "BLOCKED"],
    ]
    shown = {place: json.loads(call(place, "status", "CALC-2", "--json").stdout) for place in made}
    same = (
        "run_id",
        "task_id",
        "task",
        "status",
        "attempt",
        "path",
        "fail_reasons",
        "head",
        "evidence",
        "journal",
        "put_back",
    )
    assert [{key: row[key] for key in same} for row in shown.values()] == [{key: shown[root][key] for key in same}] * 2
    assert call(clone, "status", "CALC-1.1").stdout.startswith("run         CALC-1.1\n")
    for run in ("CALC-1", "CALC-2.1"):
        here, there = (json.loads(call(place, "explain", run, "--json").stdout) for place in made)
        keys = ("run_id", "task_id", "status", "meaning", "why", "fail_reasons", "put_back")
        assert {key: there[key] for key in keys} == {key: here[key] for key in keys}
        assert [(row["gate"], row["passed"]) for row in there["gates"]] == [
            (row["gate"], row["passed"]) for row in here["gates"]
        ]
    blocked = json.loads(call(clone, "explain", "CALC-1", "--json").stdout)["next"][0]
    assert ("start a new run" in blocked, "state is not in this checkout" in blocked) == (True, True)
    report = call(clone, "report", "CALC-2", "-o", "-")
    assert (report.returncode, "<!doctype html>" in report.stdout.lower(), "APPROVED" in report.stdout) == (
        0,
        True,
        True,
    )
    assert not (clone / ".interlock").exists()


@pytest.mark.parametrize("words", [("status", "NOPE-1"), ("explain", "NOPE-1"), ("report", "NOPE-1")])
def test_a_name_that_nothing_knows_is_an_unknown_run(made: tuple[Path, Path], words: tuple[str, ...]) -> None:
    done = call(made[1], *words)
    assert (done.returncode, "NOPE-1" in done.stderr) == (2, True)


@pytest.mark.parametrize("name", ["CALC-2.1", "CALC-2"])
@pytest.mark.parametrize("command", ["resume", "land", "pr", "restore", "abandon", "commit", "watch"])
def test_what_needs_the_state_of_a_run_says_that_a_clone_has_none(
    made: tuple[Path, Path], command: str, name: str
) -> None:
    done = call(made[1], command, name)
    assert done.returncode == 2
    assert "RUN602: the state of run CALC-2.1 is not in this checkout" in done.stderr


def test_findings_are_at_the_line_and_column_where_a_test_failed(made: tuple[Path, Path]) -> None:
    _, clone = made
    places = {("src/calc.py", 3, 12), ("tests/test_calc.py", 11, 9)}
    for place in made:
        found = json.loads(call(place, "explain", "CALC-1", "--all", "--json").stdout)["findings"]
        assert {(row["path"], row["line"], row["column"]) for row in found if row["code"] == "EVD574"} == places
    notes = call(clone, "explain", "CALC-1", "--format", "github").stdout
    assert "::error file=src/calc.py,line=3,col=12,title=EVD574 tests.test_calc.TestCalc.test_half::" in notes
    sarif = json.loads(call(clone, "explain", "CALC-1", "--format", "sarif").stdout)["runs"][0]["results"]
    regions = [row["locations"][0]["physicalLocation"]["region"] for row in sarif if row["ruleId"] == "EVD574"]
    assert {"startLine": 11, "startColumn": 9} in regions
    assert "\nfindings: none\n" in call(clone, "explain", "CALC-2", "--all").stdout
    text = call(clone, "explain", "--all").stdout
    assert "src/calc.py:3:12: error EVD574 tests.test_calc.TestCalc.test_half" in text
    assert text.index("CALC-1.1: BLOCKED") < text.index("CALC-2.1: APPROVED")
    every = json.loads(call(clone, "explain", "--all", "--json").stdout)
    assert [row["run_id"] for row in every["runs"]] == ["CALC-1.1", "CALC-2.1"]
    assert call(clone, "explain").returncode == 2


def test_the_gate_command_is_at_the_same_places(made: tuple[Path, Path], tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(made[0]), str(clone))
    fields = 'task_id = "CALC-3"\ntask = "x"\ngates_required = ["GATE-TESTS"]\nscope = ["src/**"]\n'
    (clone / ".venv").symlink_to(environment())
    write(clone, {"task.toml": fields})
    git(clone, "add", "task.toml")
    git(clone, "commit", "-qm", "Task")
    write(clone, WRONG)
    done = call(clone, "gate", "GATE-TESTS", "--format", "github")
    assert (done.returncode, "file=src/calc.py,line=3,col=12," in done.stdout) == (1, True)


def test_the_summary_of_ci_counts_what_failed_and_what_is_new(made: tuple[Path, Path], tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(made[0]), str(clone))
    (clone / ".venv").symlink_to(environment())
    run = {"tool": {"driver": {"name": "t"}}, "results": [{"ruleId": "R1", "message": {"text": "old"}}]}
    report = json.dumps({"version": "2.1.0", "runs": [run]})
    more = "from src.calc import double\n\ndef test_list():\n    assert [double(1)] == [2]\n"
    lint = '[gates.GATE-LINT]\ncommand = ["cp", "lint.json", "out.sarif"]\nsarif = "out.sarif"\nnew_only = true\n'
    text = (clone / "interlock.toml").read_text().replace(json.dumps(COMMAND), '[".venv/bin/pytest", "-q"]')
    write(
        clone,
        {"lint.json": report, "tests/test_list.py": more, "interlock.toml": f'{text}{lint}product = ["src/**"]\n'},
    )
    git(clone, "add", "-A")
    git(clone, "commit", "-qm", "Lint")
    write(clone, {"src/calc.py": RIGHT["src/calc.py"].replace("* 2", "+ 2")})
    git(clone, "commit", "-qam", "Work")
    summary = call(clone, "ci", "--base", "HEAD^").stdout
    assert "| `GATE-TESTS` | refused | 2 of 3 tests failed" in summary, summary
    assert "| `GATE-LINT` | passed | 1 finding, none new" in summary, summary
    assert "AssertionError: assert [3] == [2]`\\\n  `" in summary, summary


def test_junit_holds_any_text_and_counts_what_it_holds() -> None:
    cases = [Case("GATE\x00", "a\n<b>", "passed"), Case("GATE\x00", "c", "failed", "a.py", "one\x1b\ntwo", 1.5)]
    top = ET.fromstring(
        render_cases([*cases, Case("OTHER", "d", "skipped", message="later"), Case("OTHER", "e", "error")])
    )
    assert [top.get(key) for key in ("tests", "failures", "errors", "skipped", "time")] == ["4", "1", "1", "1", "1.500"]
    first, second = top
    assert [suite.get("tests") for suite in (first, second)] == ["2", "2"]
    assert [node.tag for case in top.iter("testcase") for node in case] == ["failure", "skipped", "error"]
    assert next(iter(first.iter("failure"))).text == "one\\u{001B}\ntwo"
    assert 'tests="0"' in render_cases([])


def test_lines_of_another_form_are_no_defect(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "artifacts/interlock/events.jsonl")
    (tmp_path / "interlock.toml").write_text("")
    journal.append("X-1.1", "a", "run_started", {"task": {"task_id": "X-1", "gates_required": ["G"]}})
    journal.append("X-1.1", "b", "status", {"to": "BLOCKED"})
    journal.append("X-1.1", "c", "evidence", {"findings": [3]})
    for words in (("status",), ("explain", "X-1"), ("explain", "--all"), ("status", "X-1")):
        done = call(tmp_path, *words)
        assert done.returncode in (0, 1, 2), done.stderr
