"""What judges a response outside a run finds what the run itself finds, where the project has one of its task open."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import Ask
from interlock.envelope import Report
from interlock.envelope.protocol import DEFAULT_PROTOCOL
from interlock.gates import build_protocol
from interlock.gates.config import load_config
from interlock.gates.response import Expected
from interlock.graph.task.open_run import judge_by_run
from tests.graph.conftest import Project, asks_of, build, envelope, judge_log
from tests.interlock.command import check


def by_run(root: Path, text: str, **given: Any) -> Report | None:
    protocol = build_protocol(load_config(root))
    return judge_by_run(text, Expected(**given), root=root, protocol=protocol, extract=False)


def seen(report: Report | None) -> list[tuple[str, str, int, str]]:
    assert report is not None
    return [(item.code, item.level, item.line, item.fix) for item in report.findings]


def waiting(project: Project) -> tuple[str, Ask]:
    """Take a run to the tester, who answers from outside, and return the run and what the tester is asked."""
    view = project.waiting("tester")
    return view.run_id, asks_of(view, project.root)["tester"]


@pytest.mark.long
def test_a_pass_needs_no_option_while_the_run_waits_for_it(project: Project) -> None:
    _, ask = waiting(project)
    text = judge_log(ask)
    report = by_run(project.root, text)
    assert seen(report) == []
    assert report is not None
    assert report.verdict == "PASS"
    (project.root / "answer.md").write_text(text)
    assert check(project.root / "answer.md", "--root", project.root).status == 0


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    "change",
    [
        {"gates_required": ("GATE-MSG-STRICT",)},
        {"status": "READY_FOR_REVIEW"},
        {"evidence": {"screenshots": (), "a11y": (), "console": (), "reports": ("artifacts/reports/other.md",)}},
        {"gates_passed": ("GATE-TESTS", "GATE-REVIEW")},
        {"inputs_used": ("docs/no-such-file.md",)},
        {"fail_reasons": ("GATE\u2011TESTS: they fail",), "status": "BLOCKED"},
    ],
)
def test_a_refused_answer_has_the_findings_that_the_run_gives(project: Project, change: dict[str, Any]) -> None:
    run_id, ask = waiting(project)
    text = envelope(ask, **{"status": "QA_IN_PROGRESS", **change})
    report = by_run(project.root, text)
    assert report is not None
    view = project.drive(run_id, tester=text)
    assert report.as_reask()
    assert view.values["answers"]["tester"]["findings_text"] == report.as_reask()
    assert view.waiting


@pytest.mark.long
def test_without_an_open_run_of_the_task_nothing_is_known(project: Project) -> None:
    text = judge_log(replace(waiting(project)[1], task_id="HELLO-002"))
    assert by_run(project.root, text) is None
    (project.root / "answer.md").write_text(text)
    ran = check(project.root / "answer.md", "--root", project.root)
    (finding,) = [row for row in ran.findings if row["code"] == "ENV404"]
    assert "--current-status QA_IN_PROGRESS" in finding["fix"]


def test_an_ended_run_says_nothing(project: Project) -> None:
    assert project.run().status == "APPROVED"
    answer = project.entries("answer")[0].data["envelope"]
    assert answer["task_id"] == "HELLO-001"
    text = build()(project.asks("builder")[0])
    assert by_run(project.root, text) is None


def test_an_agent_that_the_run_does_not_have_is_judged_by_the_tables(project: Project) -> None:
    text = judge_log(waiting(project)[1]).replace("ASSIGNED_AGENT: tester", "ASSIGNED_AGENT: visual-qa")
    found = judge_by_run(text, Expected(), root=project.root, protocol=DEFAULT_PROTOCOL, extract=False)
    assert found is None
