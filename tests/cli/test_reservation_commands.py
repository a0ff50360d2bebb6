"""Reservations from the shell: exit codes, tables, JSON that is the tool's answer, and waiting."""

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from interlock.cli.lease_calls import as_patterns, calls_of
from interlock.cli.lease_text import command_of, show_inbox
from interlock.cli.main import interlock
from interlock.reservations import SqliteStore, place
from interlock.reservations.hooks.main import HOOKS
from tests import warm
from tests.child import Child
from tests.interlock.test_cli import data

PROJECT = str(Path(__file__).parents[2])


def environment(agent: str) -> dict[str, str]:
    """Return the environment of an agent's shell."""
    return {**os.environ, "INTERLOCK_AGENT_ID": agent, "PYTHONPATH": PROJECT, "NO_COLOR": "1", "COLUMNS": "160"}


def run(folder: Path, agent: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as an agent, in a folder."""
    return warm.interlock(folder, *arguments, env=environment(agent))


def start(folder: Path, agent: str, *arguments: str) -> Child:
    """Start the command as an agent."""
    command = (sys.executable, "-m", "interlock", *arguments)
    return Child(*command, cwd=folder, stderr=subprocess.PIPE, env=environment(agent))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project with some files."""
    root = tmp_path / "project"
    (root / "src" / "[id]").mkdir(parents=True)
    (root / "interlock.toml").touch()
    for name in ("src/app.py", "src/[id]/page.tsx", "README.md"):
        (root / name).touch()
    return root


def reserve(root: Path, agent: str, *patterns: str) -> list[str]:
    """Reserve for an agent; returns the ids."""
    done = run(root, agent, "reserve", *patterns, "--json")
    assert done.returncode == 0, done.stderr
    return [lease["reservation_id"] for lease in data(done)["reservations"]]


def test_a_morning_of_two_agents_reads_well(project: Path) -> None:
    held = "error RSV201 src/app.py: anna holds src/**, until "
    steps: list[tuple[str, int, str, str]] = [
        ("anna", 0, "reserve src/** --reason login --no-force", "  src/**  until "),
        ("ben", 5, "reserve src/app.py README.md --reason fix", held),
        ("ben", 5, "reserve src/app.py", "next: interlock negotiate src/app.py --reason 'I need"),
        ("ben", 0, "reserve README.md", "  README.md  until "),
        ("ben", 5, "conflicts src/app.py docs/a.md", "src/app.py: anna holds src/**"),
        ("ben", 0, "conflicts docs/a.md", "docs/a.md: clear"),
        ("ben", 0, "negotiate src/app.py --reason fix --urgency urgent", "you wait in the queue, place 1: "),
        ("anna", 0, "inbox", "    answer: interlock respond THREAD release   (or: defer --eta MINUTES)"),
        ("anna", 0, "agents", "  anna (you)  agent  alive  0 s ago    1"),
        ("anna", 0, "respond THREAD defer --eta 5 --reason tests", "THREAD: deferred, ETA 5 min"),
        ("ben", 5, "negotiate src/app.py --reason fix", 'src/app.py: not yet, ETA 5 min: "tests"  (thread THREAD)'),
        ("anna", 0, "status --reservations", "src/app.py of src/**  urgent   0          deferred, ETA 5 min  THREAD"),
        ("anna", 0, "respond THREAD release", "THREAD: released"),
        ("anna", 1, "respond neg_ffffffffffffffff release", "  next: interlock inbox --all"),
        ("ben", 0, "inbox", "    src/app.py: yours until "),
        ("anna", 0, "status --reservations", "resolved: released"),
        ("ben", 0, "release src/app.py", "released src/app.py"),
        ("ben", 1, "release src/app.py", "error RSV202 src/app.py: You hold nothing"),
        ("ben", 0, "release --all", "released README.md"),
        ("anna", 1, "reserve ../x", "  fix: Name it as seen from the repository root"),
    ]
    thread = "THREAD"
    for agent, code, command, expected in steps:
        done = run(project, agent, *shlex.split(command.replace("THREAD", thread)))
        if thread == "THREAD" and "(thread " in done.stdout:
            thread = done.stdout.partition("(thread ")[2].partition(")")[0]
        said = (done.stdout + done.stderr).replace(thread, "THREAD")
        assert (done.returncode, expected in said) == (code, True), f"{command}\n{said}"


PROPOSED: dict[str, list[dict[str, Any]]] = {
    "reserve_files": [
        {"patterns": ["-a.py", "it's [1]/**"], "reason": "-f", "wait_seconds": 50.0},
        {"patterns": ["**"]},
    ],
    "release_files": [{"reservation_ids": ["rsv_1", "rsv_2"]}],
    "my_reservations": [{}],
    "negotiate_release": [
        {"file": "-a.py", "reason": "fix", "urgency": "low", "agent_name": "-bob"},
    ],
    "list_agents": [{}],
    "fetch_inbox": [{}, {"unread_only": False}],
}
"""Every tool that a refusal or a report of unsaved work proposes, with every argument that one of them gives it."""


def _names(call: Mapping[str, Any]) -> list[str]:
    given = call.get("patterns") or call.get("reservation_ids") or call.get("names") or [call.get("file", "")]
    return [Path(each).name for each in given]


@pytest.mark.parametrize("up", ["", "../"])
def test_every_next_line_is_a_command_line_that_the_shell_knows(up: str, tmp_path: Path) -> None:
    sources = (Path(PROJECT) / "reservations").rglob("*.py")
    named = {tool for source in sources for tool in re.findall(r'"tool": "(\w+)"', source.read_text())}
    assert named == set(PROPOSED)
    for tool, calls in PROPOSED.items():
        for arguments in calls:
            line = command_of({"tool": tool, "arguments": arguments}, up, f" --root {tmp_path}")
            _, name, *words = shlex.split(line)
            command = interlock.get_command(click.Context(interlock), name)
            assert command is not None, line
            read = command.make_context(name, words).params
            assert _names(read) == _names(arguments), line


def test_json_is_exactly_what_the_tool_answers(project: Path) -> None:
    keys = {
        ("reserve", "a"): {"reservations", "errors"},
        ("conflicts", "a"): {"conflicts", "clear", "errors"},
        ("inbox",): {"messages", "next_cursor", "negotiation_timeouts", "errors"},
        ("negotiate", "b", "--reason", "r"): {"thread_id", "status", "errors"},
        ("respond", "neg_ffffffffffffffff", "release"): {"thread_id", "status", "released", "errors"},
        ("agents",): {"agents"},
        ("release", "a"): {"released", "errors"},
        ("release", "--all"): {"released_count"},
    }
    for arguments, expected in keys.items():
        assert expected <= set(data(run(project, "anna", *arguments, "--json"))), arguments


@pytest.mark.parametrize(
    ("folder", "typed", "meant"),
    [
        (".", "src/app.py", "src/app.py"),
        (".", "./src/*.py", "src/*.py"),
        ("src", "app.py", "src/app.py"),
        ("src", "*.py", "src/*.py"),
        ("src", "../README.md", "README.md"),
        ("src", "../*.md", "*.md"),
        ("src/[id]", "*.tsx", "src/[[]id[]]/*.tsx"),
        ("src/[id]", "page.tsx", "src/[[]id[]]/page.tsx"),
        (".", "src/[id]/page.tsx", "src/[[]id[]]/page.tsx"),
        (".", "src/", "src/"),
        (".", ".", "**"),
        ("src", ".", "src"),
        ("src", "..", "**"),
        ("src", "../../x", "../../x"),
        ("src", "../../*.x", "../../*.x"),
        (".", "/etc/passwd", "/etc/passwd"),
        (".", "{a,b}/**", "{a,b}/**"),
        (".", "", ""),
    ],
)
def test_what_is_typed_in_a_folder_means_what_is_there(
    project: Path, monkeypatch: pytest.MonkeyPatch, folder: str, typed: str, meant: str
) -> None:
    monkeypatch.chdir(project / folder)
    assert as_patterns([typed], str(project)) == [meant]


def test_a_folder_that_becomes_a_project_of_its_own_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    reported: list[bool] = []
    for _ in range(2):
        with calls_of(None) as mine:
            mine.reserve_files(["a"])
        reported.append(f"upwards of {tmp_path}" in capsys.readouterr().err)
    assert reported == [True, False]


def test_a_command_that_is_proposed_does_the_same_from_where_it_is_read(project: Path) -> None:
    reserve(project, "anna", "src/[[]id[]]/page.tsx")
    outside = (project.parent, ("--root", str(project)))
    for agent, (folder, options) in {"ben": (project / "src" / "[id]", ()), "cleo": outside}.items():
        name = "page.tsx" if not options else "src/[[]id[]]/page.tsx"
        refused = run(folder, agent, "reserve", name, *options)
        assert refused.returncode == 5
        (proposed,) = [row for row in refused.stderr.splitlines() if row.startswith("  next: interlock negotiate")]
        done = run(folder, agent, *shlex.split(proposed.removeprefix("  next: interlock ")), "--json")
        assert data(done)["status"] == "pending", proposed


def test_a_waiting_reserve_says_who_holds_it_and_is_granted_on_release(project: Path) -> None:
    (held,) = reserve(project, "anna", "src/app.py")
    with start(project, "ben", "reserve", "src/app.py", "--wait", "60", "--json") as waiting:
        assert waiting.stderr is not None
        first = waiting.stderr.readline()
        assert "anna" in first
        assert "src/app.py" in first
        await_queue(project, 1)
        assert run(project, "anna", "release", held).returncode == 0
        out, _ = waiting.communicate(timeout=60)
    assert (waiting.returncode, json.loads(out)["reservations"][0]["holder"]) == (0, "ben")


def await_queue(root: Path, count: int) -> None:
    """Wait until that many agents are in the wait queue."""
    store = SqliteStore(place.find(str(root)).store_path)
    while True:
        with store.transaction() as rows:
            if len(rows.waiters()) == count:
                return


@pytest.mark.sample("True")
@pytest.mark.parametrize("terminal", [False, True])
def test_ctrl_c_gives_the_place_in_the_line_up_and_the_cursor_back(project: Path, terminal: bool) -> None:
    reserve(project, "anna", "src/app.py")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "interlock", "reserve", "src/app.py", "--wait", "60"]
    process = subprocess.Popen(
        command,
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=theirs if terminal else subprocess.PIPE,
        env=environment("ben"),
    )
    os.close(theirs)
    try:
        await_queue(project, 1)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        await_queue(project, 0)
        err = os.read(ours, 65536) if terminal else process.communicate()[1]
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
    assert b"Traceback" not in err
    if terminal:
        assert err.count(b"\x1b[?25h") == err.count(b"\x1b[?25l"), "the cursor is shown again"


def test_who_leaves_the_queue_for_a_folder_keeps_the_file_in_it(project: Path) -> None:
    reserve(project, "anna", "src/app.py")
    (held,) = reserve(project, "ben", "src/cart.py")
    message = run(project, "ben", "negotiate", "src/**", "--reason", "r").stderr
    assert "`interlock release 'src/**'` leaves the queue" in message
    left = run(project, "ben", "release", "src/**")
    assert (left.returncode, left.stdout) == (0, "left the queue for src/**\n")
    state = data(run(project, "ben", "status", "--reservations", "--json"))
    assert held in json.dumps(state)
    assert run(project, "ben", "release", "src/**").stdout.startswith("released")


def test_exit_codes_distinguish_usage_refusal_and_store(project: Path) -> None:
    usage = [
        ("reserve",),
        ("release",),
        ("release", "a", "--all"),
        ("negotiate", "a"),
        ("respond", "t", "keep"),
        ("respond", "t", "defer"),
        ("respond", "t", "defer", "--eta", "0"),
        ("reserve", "a", "--wait", "nan"),
        ("reserve", "a", "--wait", "-1"),
        ("inbox", "--cursor", "-1"),
        ("status", "x", "--reservations"),
    ]
    for arguments in usage:
        assert run(project, "anna", *arguments).returncode == 2, arguments
    assert not Path(place.find(str(project)).store_path).exists(), "nothing was made"
    assert run(project, "anna", "reserve", "a", "--ttl", "1e9").returncode == 2
    assert run(project, "anna", "reserve", "../a").returncode == 1
    (project / "interlock.toml").write_text("[reservations]\nttl_minuts = 1\n")
    assert run(project, "anna", "reserve", "a", "--json").returncode == 0
    for arguments in (("status", "--reservations"), ("status",)):
        done = run(project, "anna", *arguments)
        assert (done.returncode, "error CFG103 reservations.ttl_minuts" in done.stderr) == (0, True)
        assert "fix: Write `ttl_minutes`." in done.stderr
    (row,) = data(run(project, "anna", "status", "--reservations", "--json"))["reservations"]["settings"]
    assert (row["code"], row["field"]) == ("CFG103", "reservations.ttl_minuts")
    (project / "interlock.toml").write_text("")
    Path(place.find(str(project)).store_path).write_bytes(b"garbage" * 1000)
    done = run(project, "anna", "reserve", "a", "--json")
    assert (done.returncode, data(done)["error"]["code"]) == (74, "RSV902")


def test_status_shows_reservations_below_the_runs_and_a_broken_store_hides_no_run(project: Path) -> None:
    store = Path(place.find(str(project)).store_path)
    none = data(run(project, "anna", "status", "--json"))
    assert none["reservations"] == {"leases": [], "waiters": [], "negotiations": []}
    assert not store.exists(), "looking makes no store"
    reserve(project, "anna", "src/app.py")
    assert run(project, "ben", "negotiate", "src/app.py", "--reason", "r").returncode == 0
    shown = data(run(project, "anna", "status", "--json"))["reservations"]
    assert [lease["pattern"] for lease in shown["leases"]] == ["src/app.py"]
    assert [row["requester"] for row in shown["negotiations"]] == ["ben"]
    assert "Pending Negotiations" in run(project, "anna", "status").stdout
    alone = data(run(project, "anna", "status", "--reservations", "--json"))
    assert alone["reservations"]["leases"][0]["reservation_id"] == shown["leases"][0]["reservation_id"]
    store.write_bytes(b"garbage" * 1000)
    broken = run(project, "anna", "status", "--json")
    assert broken.returncode == 1
    assert [row["run_id"] for row in data(broken)["damaged"]] == ["reservations"]
    assert data(broken)["runs"] == []


def test_what_another_agent_wrote_does_nothing_to_a_terminal(project: Path) -> None:
    reserve(project, "anna", "src/app.py")
    assert run(project, "ben", "negotiate", "src/app.py", "--reason", "\x1b[2J\x1b]0;owned\x07[red]x").returncode == 0
    for arguments in (("inbox",), ("status", "--reservations"), ("agents",)):
        done = run(project, "anna", *arguments)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout
        assert "\x07" not in done.stdout


def test_where_nobody_holds_anything_the_status_says_so_and_what_is_held_goes_before_missing_runs(
    project: Path,
) -> None:
    assert "no reservations here" in run(project, "anna", "status").stderr
    reserve(project, "anna", "src/app.py")
    held = run(project, "anna", "status")
    assert "anna (you)" in held.stdout
    assert "no runs" not in held.stderr


def test_a_time_out_reads_as_a_sentence_in_the_words_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    late = {
        "thread_id": "neg_0",
        "file": "it's.py",
        "holder": "anna",
        "urgency": "urgent",
        "suggestion": "Ask again with negotiate_release.",
    }
    show_inbox({"messages": [], "next_cursor": None, "negotiation_timeouts": [late], "errors": []}, "ben")
    err = capsys.readouterr().err
    assert "timed out: it's.py: anna did not answer your urgent request neg_0\n" in err
    assert "interlock negotiate" in err


def test_no_command_about_reservations_imports_the_graph(project: Path) -> None:
    reserve(project, "anna", "src/app.py")
    code = (
        "import sys\n"
        "from interlock.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = [name for name in ('langgraph', 'mcp', 'pydantic') if name in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    for arguments in (("status", "--reservations"), ("agents",), ("reserve", "src/app.py")):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=project,
            env=environment("anna"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_looking_at_the_status_registers_nobody(project: Path) -> None:
    reserve(project, "anna", "src/app.py")
    assert "src/app.py" in run(project, "ben", "status", "--reservations").stdout
    names = data(run(project, "anna", "agents", "--json"))["agents"]
    assert [row["name"] for row in names] == ["anna"]


def test_the_help_has_the_hooks_and_a_slip_is_answered_with_the_names_that_are_near(tmp_path: Path) -> None:
    assert " hook " in run(tmp_path, "anna", "--help").stdout
    listed = run(tmp_path, "anna", "hook", "--help")
    assert listed.returncode == 0
    for name in HOOKS:
        assert f"\n  {name} " in listed.stdout
    slip = run(tmp_path, "anna", "hook", "pre-comit")
    assert (slip.returncode, slip.stdout) == (2, "")
    assert "pre-commit" in slip.stderr
    assert run(tmp_path, "anna", "hook").returncode == 2
    code = "from interlock.cli import main; main(['hook', '--help'])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, env=environment("anna")
    )
    assert done.stdout == listed.stdout
