"""`interlock resolve`: the recorded example, its exit codes, its events, and what is wrong before anything begins."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from interlock.cli.main import main
from interlock.graph import list_runs
from tests.graph.ticket.walk import PAYLOADS, SOURCE, make_project
from tests.interlock.test_cli import interlock as process

EXAMPLE = Path(__file__).parents[2] / "examples" / "ticket-resolve"
TICKET = str(EXAMPLE / "ticket.md")
RECORDED = EXAMPLE / "recorded.jsonl"


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> dict[str, str]:
        """The lines of a summary by their names; of several of one name the last."""
        return dict(line.split(maxsplit=1) for line in self.out.splitlines())

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of JSON."""
        return [json.loads(line) for line in self.out.splitlines()]


Command: TypeAlias = Callable[..., Done]


@pytest.fixture
def interlock(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs the command in a folder, in this process."""

    def run(folder: Path, *words: object) -> Done:
        monkeypatch.chdir(folder)
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        assert isinstance(ended.value.code, int)
        streams = capsys.readouterr()
        return Done(ended.value.code, streams.out, streams.err)

    return run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of the example's project, in which others act."""
    root = tmp_path / "project"
    shutil.copytree(EXAMPLE / "project", root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return a small project, in which the model acts, with its ticket `SHOP-7.md` and a recording `recorded.jsonl`."""
    fetched = PAYLOADS["fetch_ticket"]
    (tmp_path / "SHOP-7.md").write_text(f"# SHOP-7: {fetched['title']}\n\n{fetched['description']}\n")
    play(tmp_path / "recorded.jsonl", PAYLOADS)
    return make_project(tmp_path / "shop")


def play(path: Path, payloads: Mapping[str, Any]) -> Path:
    """Write a recording with one answer for each stage, and the edit that the plan asks for."""
    edit = {"path": "app.py", "value": "100644 x", "text": SOURCE.replace("+ name", "+ name + '!'")}
    rows = [
        {"stage": stage, "try": 1, "payload": payloads[stage], "usage": {"calls": 1, "input_tokens": 40, "usd": None},
         "files": [edit] if stage == "act_via_tools" else []}
        for stage in payloads if stage != "fetch_ticket"
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


WORDS = ("resolve", "../SHOP-7.md", "--replay", "../recorded.jsonl")


@pytest.mark.long
def test_the_recorded_example_ends_complete_and_is_not_worked_twice(project: Path, interlock: Command) -> None:
    first = process(project, "resolve", TICKET, "--replay", str(RECORDED), "--json")
    done = Done(first.returncode, first.stdout, first.stderr)
    assert done.code == 0, done.err
    begins, ends = done.lines[0], done.lines[-1]
    assert [begins["kind"], ends["kind"]] == ["run", "summary"]
    stages = [line["role"] for line in done.lines if line["kind"] == "answered" and line["run_id"] == begins["run_id"]]
    assert stages[:2] == ["fetch_ticket", "extract_requirements"]
    assert {line["run_id"] for line in done.lines if line["kind"] == "status"} == {f"{begins['run_id']}.s1"}
    assert (ends["ended"], ends["outcome"], ends["usage"]["all"]["calls"]) == ("over", "success", 12)
    assert "refused (STG308)" in done.err
    assert "round(sum(prices), 2)" in (project / "shop" / "prices.py").read_text()
    again = interlock(project, "resolve", TICKET, "--replay", RECORDED)
    assert (again.code, again.rows["run"]) == (0, begins["run_id"])
    assert (again.rows["state"], again.rows["outcome"]) == ("complete", "success")
    assert "asking" not in again.err
    assert "anew" not in again.rows
    assert interlock(project, "verify").code == 0


def test_what_the_stages_cost_is_shown_at_the_end_and_by_status(shop: Path, interlock: Command) -> None:
    done = interlock(shop, *WORDS)
    assert done.code == 0, done.err
    usage = [line for line in done.out.splitlines() if line.startswith("usage")]
    assert usage[0].split(maxsplit=2)[1] == "extract_requirements:"
    assert "in all: 6 calls, 240 tokens in" in usage[-1]
    shown = interlock(shop, "status", "SHOP-7")
    assert [line for line in shown.out.splitlines() if line.startswith("usage")] == usage
    usage = json.loads(interlock(shop, "status", "SHOP-7", "--json").out)["usage"]
    assert (list(usage["roles"]), usage["all"]["calls"]) == (list(PAYLOADS)[1:], 6)
    assert (usage["all"]["usd"], usage["all"]["left"]) == (None, {})


def test_an_outcome_that_is_no_success_exits_with_1_and_says_how_to_begin_anew(shop: Path, interlock: Command) -> None:
    partial = {**PAYLOADS, "record_and_finalize": {**PAYLOADS["record_and_finalize"], "outcome": "partial"}}
    play(shop.parent / "recorded.jsonl", partial)
    done = interlock(shop, *WORDS)
    assert (done.code, done.rows["outcome"]) == (1, "partial")
    assert done.rows["anew"] == f"interlock {' '.join(WORDS)} --new"


def test_a_run_that_failed_closed_says_why_and_how_to_begin_anew(shop: Path, interlock: Command) -> None:
    row: dict[str, Any] = {"stage": "extract_requirements", "payload": {}}
    lines = [json.dumps({**row, "try": number}) for number in (1, 2, 3)]
    (shop.parent / "recorded.jsonl").write_text("\n".join(lines) + "\n")
    done = interlock(shop, *WORDS)
    assert (done.code, done.rows["state"], done.rows["ended"]) == (1, "fail_closed", "repeated_failure")
    assert done.rows["anew"].endswith(" --new")
    assert "extract_requirements: FAIL (STG103)" in done.err


def test_a_task_that_waits_for_a_person_exits_with_3_and_says_how_to_answer(project: Path, interlock: Command) -> None:
    config = project / "interlock.toml"
    config.write_text(config.read_text().replace('"python:team:reviewer"', '"remote"'))
    done = interlock(project, "resolve", TICKET, "--replay", RECORDED)
    assert done.code == 3, done.err
    assert done.rows["answer"].startswith(f"interlock resume {done.rows['run']}.s1 --answer reviewer=FILE")
    assert done.rows["go"].startswith("on")
    assert interlock(project, "resolve", TICKET, "--replay", RECORDED).code == 3


def test_a_recording_that_does_not_fit_stops_and_says_how_to_go_on(shop: Path, interlock: Command) -> None:
    recording = shop.parent / "recorded.jsonl"
    short = shop.parent / "short.jsonl"
    short.write_text("".join(recording.read_text().splitlines(keepends=True)[:2]))
    done = interlock(shop, "resolve", "../SHOP-7.md", "--replay", "../short.jsonl")
    assert done.code == 2
    assert "gather_evidence, try 1" in done.err
    assert "go on with interlock resolve ../SHOP-7.md --replay ../short.jsonl" in done.err
    assert interlock(shop, *WORDS).code == 0


def test_an_unwritable_recording_begins_no_run(shop: Path, interlock: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody-asks")
    (shop.parent / "notes.txt").write_text("mine\n")
    for new in ((), ("--new",)):
        done = interlock(shop, "resolve", "../SHOP-7.md", "--model", "openai:m", "--record", "../notes.txt", *new)
        assert done.code == 2
        assert "notes.txt" in done.err
    assert list_runs(shop, "tickets") == []
    assert (shop.parent / "notes.txt").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("table", "options", "says"),
    [
        ("", (), "--model"),
        ("", ("--model", "command:claude"), "interlock init"),
        ("", ("--model", "nonsense"), "PROVIDER:MODEL"),
        ("", ("--model", "claude-x"), "`anthropic:claude-x`"),
        ("", ("--model", "anthropic:claude", "--replay", RECORDED), "--replay excludes"),
        ("", ("--replay", TICKET), "line 1"),
        ('model = "anthropic:claude-x"\nmodle = "x"', (), "modle"),
        ('model = "anthropic:claude-x"\n[tickets.agent.budget]\nusd = 1.0', (), "price"),
        ('runner = "python:team:builder"', (), "tickets.agent.runner"),
    ],
)
def test_what_is_wrong_before_the_run_begins_none(
    shop: Path, interlock: Command, table: str, options: tuple[object, ...], says: str
) -> None:
    if table:
        (shop / "interlock.toml").write_text(f"[tickets.agent]\n{table}\n")
    done = interlock(shop, "resolve", TICKET, *options)
    assert done.code == 2
    assert says in done.err
    assert not (shop / ".interlock" / "tickets").exists()
