"""`interlock resolve`: the recorded example, its exit codes, its events, and what is wrong before anything begins."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.interlock.test_cli import interlock

EXAMPLE = Path(__file__).parents[2] / "examples" / "ticket-resolve"
TICKET = str(EXAMPLE / "ticket.md")
RECORDED = EXAMPLE / "recorded.jsonl"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of the example's project."""
    root = tmp_path / "project"
    shutil.copytree(EXAMPLE / "project", root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def rows(text: str) -> dict[str, str]:
    """Return the lines of a summary by their names; of several of one name the last."""
    return dict(line.split(maxsplit=1) for line in text.splitlines())


def test_the_recorded_example_ends_complete_and_is_not_worked_twice(project: Path) -> None:
    done = interlock(project, "resolve", TICKET, "--replay", str(RECORDED))
    assert done.returncode == 0, done.stderr
    shown = rows(done.stdout)
    assert (shown["state"], shown["outcome"]) == ("complete", "success")
    assert "refused (STG308)" in done.stderr
    assert "round(sum(prices), 2)" in (project / "shop" / "prices.py").read_text()
    again = interlock(project, "resolve", TICKET, "--replay", str(RECORDED))
    assert (again.returncode, rows(again.stdout)["run"]) == (0, shown["run"])
    assert "asking" not in again.stderr
    assert interlock(project, "verify").returncode == 0


def test_each_step_is_a_line_of_json_and_the_last_one_sums_up(project: Path) -> None:
    done = interlock(project, "resolve", TICKET, "--replay", str(RECORDED), "--json")
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [lines[0]["kind"], lines[-1]["kind"]] == ["run", "summary"]
    stages = [line["role"] for line in lines if line["kind"] == "answered" and line["run_id"] == lines[0]["run_id"]]
    assert stages[:2] == ["fetch_ticket", "extract_requirements"]
    assert {line["run_id"] for line in lines if line["kind"] == "status"} == {f"{lines[0]['run_id']}.s1"}
    assert (lines[-1]["ended"], lines[-1]["outcome"]) == ("over", "success")
    assert lines[-1]["usage"]["calls"] == 12


def test_an_outcome_that_is_no_success_exits_with_1(project: Path, tmp_path: Path) -> None:
    partial = tmp_path / "partial.jsonl"
    partial.write_text(RECORDED.read_text().replace('"outcome": "success"', '"outcome": "partial"'))
    done = interlock(project, "resolve", TICKET, "--replay", str(partial))
    assert (done.returncode, rows(done.stdout)["outcome"]) == (1, "partial")


def test_a_task_that_waits_for_a_person_exits_with_3_and_says_how_to_answer(project: Path) -> None:
    config = project / "interlock.toml"
    config.write_text(config.read_text().replace('"python:team:reviewer"', '"remote"'))
    done = interlock(project, "resolve", TICKET, "--replay", str(RECORDED))
    assert done.returncode == 3, done.stderr
    shown = rows(done.stdout)
    assert shown["answer"].startswith(f"interlock resume {shown['run']}.s1 --answer reviewer=FILE")
    assert shown["go"].startswith("on")
    assert interlock(project, "resolve", TICKET, "--replay", str(RECORDED)).returncode == 3


def test_a_recording_that_does_not_fit_stops_and_says_how_to_go_on(project: Path, tmp_path: Path) -> None:
    short = tmp_path / "short.jsonl"
    short.write_text("".join(RECORDED.read_text().splitlines(keepends=True)[:2]))
    done = interlock(project, "resolve", TICKET, "--replay", str(short))
    assert done.returncode == 2
    assert "gather_evidence, try 1" in done.stderr
    assert "go on with interlock resolve" in done.stderr
    assert interlock(project, "resolve", TICKET, "--replay", str(RECORDED)).returncode == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "--model"),
        (("--model", "command:claude"), "interlock init"),
        (("--model", "nonsense"), "PROVIDER:MODEL"),
        (("--model", "anthropic:claude", "--replay", str(RECORDED)), "--replay excludes"),
        (("--replay", TICKET), "line 1"),
    ],
)
def test_what_is_wrong_before_the_run_begins_none(project: Path, options: tuple[str, ...], says: str) -> None:
    done = interlock(project, "resolve", TICKET, *options)
    assert done.returncode == 2
    assert says in done.stderr
    assert not (project / ".interlock" / "tickets").exists()


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('model = "anthropic:claude-x"\nmodle = "x"', "modle"),
        ('model = "anthropic:claude-x"\n[tickets.agent.budget]\nusd = 1.0', "price"),
        ('runner = "python:team:builder"', "tickets.agent.runner"),
    ],
)
def test_the_table_of_the_model_is_read_strictly(project: Path, table: str, says: str) -> None:
    with (project / "interlock.toml").open("a") as file:
        file.write(f"\n[tickets.agent]\n{table}\n")
    done = interlock(project, "resolve", TICKET)
    assert done.returncode == 2
    assert says in done.stderr
