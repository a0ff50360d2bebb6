"""Reservations from the shell: exit codes, tables, JSON that is the tool's answer, and waiting."""

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from interlock.cli.reservation_calls import as_patterns, calls_of
from interlock.cli.reservation_output import fitted, show_inbox, show_reservations
from interlock.journal import Journal
from interlock.reservations import SqliteStore, place
from interlock.reservations.hooks.main import HOOKS
from tests import warm
from tests.child import Child
from tests.interlock.test_cli import data
from tests.server.reservation_team import masked

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


def test_a_morning_of_two_agents_reads_well(project: Path, snapshot: SnapshotAssertion) -> None:
    steps: list[tuple[str, int, tuple[str, ...]]] = [
        ("anna", 0, ("reserve", "src/**", "--reason", "new login", "--no-force")),
        ("ben", 5, ("reserve", "src/app.py", "README.md", "--reason", "fix")),
        ("ben", 5, ("reserve", "src/app.py", "README.md", "--partial")),
        ("ben", 5, ("conflicts", "src/app.py", "docs/a.md")),
        ("ben", 0, ("conflicts", "docs/a.md")),
        ("ben", 0, ("negotiate", "src/app.py", "--reason", "fix", "--urgency", "urgent")),
        ("anna", 0, ("inbox",)),
        ("anna", 0, ("inbox",)),
        ("anna", 0, ("agents",)),
        ("anna", 0, ("respond", "THREAD", "defer", "--eta", "5", "--reason", "tests")),
        ("ben", 5, ("negotiate", "src/app.py", "--reason", "fix")),
        ("anna", 0, ("status", "--reservations")),
        ("anna", 0, ("respond", "THREAD", "release")),
        ("anna", 1, ("respond", "neg_ffffffffffffffff", "release")),
        ("ben", 0, ("inbox",)),
        ("anna", 0, ("status", "--reservations")),
        ("ben", 0, ("release", "src/app.py")),
        ("ben", 1, ("release", "src/app.py")),
        ("ben", 0, ("release", "--all")),
        ("anna", 1, ("reserve", "../x")),
    ]
    thread = ""
    transcript: list[str] = []
    for agent, code, arguments in steps:
        done = run(project, agent, *(thread if word == "THREAD" else word for word in arguments))
        transcript.append(f"{agent}$ interlock {' '.join(arguments)}\n{done.stdout}{done.stderr}({done.returncode})\n")
        assert done.returncode == code, transcript[-1]
        if arguments[0] == "negotiate" and not thread:
            thread = done.stdout.partition("(thread ")[2].partition(")")[0]
    assert masked("\n".join(transcript)) == snapshot


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
        (".", "src/app.py", "src/app.py"), (".", "./src/*.py", "src/*.py"), ("src", "app.py", "src/app.py"),
        ("src", "*.py", "src/*.py"), ("src", "../README.md", "README.md"), ("src", "../*.md", "*.md"),
        ("src/[id]", "*.tsx", "src/[[]id[]]/*.tsx"), ("src/[id]", "page.tsx", "src/[[]id[]]/page.tsx"),
        (".", "src/[id]/page.tsx", "src/[[]id[]]/page.tsx"), (".", "src/", "src/"), (".", ".", "**"),
        ("src", ".", "src"), ("src", "..", "**"), ("src", "../../x", "../../x"), ("src", "../../*.x", "../../*.x"),
        (".", "/etc/passwd", "/etc/passwd"), (".", "{a,b}/**", "{a,b}/**"), (".", "", ""),
    ],
)  # fmt: skip
def test_what_is_typed_in_a_folder_means_what_is_there(
    project: Path, monkeypatch: pytest.MonkeyPatch, folder: str, typed: str, meant: str
) -> None:
    monkeypatch.chdir(project / folder)
    assert as_patterns([typed], str(project)) == [meant]


@pytest.mark.parametrize(
    ("typed", "near"),
    [("src/app.py", "Did you mean app.py?"), ("src/new.py", ""), ("app.py", ""), ("../README.md", "")],
)
def test_name_from_the_root_that_is_typed_in_a_folder_is_noticed(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, near: str
) -> None:
    monkeypatch.chdir(project / "src")
    as_patterns([typed], str(project))
    said = capsys.readouterr().err
    assert near in said
    assert bool(said) == bool(near)


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


def test_an_absolute_path_inside_is_taken_and_a_folder_is_all_below_it(project: Path) -> None:
    done = run(project / "src", "anna", "reserve", str(project / "README.md"), ".", "--json")
    assert [lease["pattern"] for lease in data(done)["reservations"]] == ["README.md", "src/**"]


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
        command, cwd=project, stdout=subprocess.PIPE, stderr=theirs if terminal else subprocess.PIPE,
        env=environment("ben"),
    )  # fmt: skip
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


def test_negotiate_waits_for_the_answer(project: Path) -> None:
    reserve(project, "anna", "src/app.py")
    with start(project, "ben", "negotiate", "src/app.py", "--reason", "fix", "--wait", "60", "--json") as waiting:
        messages: list[Any] = []
        while not messages:
            messages = data(run(project, "anna", "inbox", "--json"))["messages"]
        assert run(project, "anna", "respond", messages[0]["thread_id"], "release").returncode == 0
        out, _ = waiting.communicate(timeout=60)
    assert (waiting.returncode, json.loads(out)["status"]) == (0, "release")


def test_exit_codes_distinguish_usage_refusal_and_store(project: Path) -> None:
    usage = [
        ("reserve",), ("release",), ("release", "a", "--all"), ("negotiate", "a"), ("respond", "t", "keep"),
        ("respond", "t", "defer"), ("respond", "t", "defer", "--eta", "0"), ("status", "rsv_0123456789abcdef"),
        ("reserve", "a", "--wait", "nan"), ("reserve", "a", "--wait", "-1"), ("inbox", "--cursor", "-1"),
        ("status", "x", "--reservations"), ("status", "--since", "nan"),
    ]  # fmt: skip
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


def test_what_the_commands_did_is_in_the_journal(project: Path) -> None:
    (held,) = reserve(project, "anna", "src/app.py")
    assert run(project, "anna", "release", held).returncode == 0
    journal = Journal(project / "artifacts" / "interlock" / "events.jsonl")
    assert [entry.type for entry in journal.entries("reservations")] == [
        "agent_joined", "lease_granted", "lease_released",
    ]  # fmt: skip


def test_what_another_agent_wrote_does_nothing_to_a_terminal(project: Path) -> None:
    reserve(project, "anna", "src/app.py")
    assert run(project, "ben", "negotiate", "src/app.py", "--reason", "\x1b[2J\x1b]0;owned\x07[red]x").returncode == 0
    for arguments in (("inbox",), ("status", "--reservations"), ("agents",)):
        done = run(project, "anna", *arguments)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout
        assert "\x07" not in done.stdout


def test_a_release_says_who_gets_it_and_negotiating_says_that_one_waits_and_how_to_leave(project: Path) -> None:
    reserve(project, "anna", "src/app.py", "README.md")
    asked = run(project, "ben", "negotiate", "src/app.py", "--reason", "r")
    assert "place 1" in asked.stderr
    assert "`interlock release src/app.py`" in asked.stderr
    assert run(project, "ben", "release", "src/app.py").returncode == 0
    state = data(run(project, "ben", "status", "--reservations", "--json"))["reservations"]
    assert (state["waiters"], state["negotiations"][0]["state"]) == ([], "withdrawn")
    assert run(project, "ben", "negotiate", "src/app.py", "--reason", "r").returncode == 0
    freed = run(project, "anna", "release", "--all").stdout
    assert "released src/app.py  (ben waited" in freed
    assert "released README.md\n" in freed


def test_a_wider_reservation_says_what_it_covers_and_a_message_is_sent_from_the_shell(project: Path) -> None:
    reserve(project, "anna", "src/**")
    assert run(project, "anna", "reserve", "src/app.py").stdout.rstrip().endswith("(anna; covers src/app.py)")
    assert run(project, "ben", "send", "anna", "at noon", "--topic", "rename").returncode == 0
    (message,) = data(run(project, "anna", "inbox", "--json"))["messages"]
    assert (message["from"], message["topic"], message["body"]) == ("ben", "rename", "at noon")
    assert run(project, "ben", "send", "nobody", "x").returncode == 1


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("lock", "a"), "`reserve`"), (("unlock", "a"), "`release`"), (("wait", "a"), "--wait"),
        (("whoami",), "`agents`"), (("commit", "-am", "x"), "leave -a out"), (("nothing",), "--help"),
    ],
)  # fmt: skip
def test_a_word_of_another_tool_leads_to_ours(project: Path, typed: tuple[str, ...], meant: str) -> None:
    slip = run(project, "anna", *typed)
    assert slip.returncode == 2
    assert meant in slip.stderr


def test_where_nobody_holds_anything_the_status_says_so_and_what_is_held_goes_before_missing_runs(
    project: Path,
) -> None:
    assert "no reservations here" in run(project, "anna", "status").stderr
    reserve(project, "anna", "src/app.py")
    held = run(project, "anna", "status")
    assert "anna (you)" in held.stdout
    assert "no runs" not in held.stderr


def test_a_time_out_reads_as_a_sentence_with_the_command_that_helps_and_times_are_local(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    late = {"thread_id": "neg_0", "file": "it's.py", "holder": "anna", "urgency": "urgent", "state": "expired",
            "code": "RSV307", "suggestion": "Ask again with negotiate_release."}  # fmt: skip
    message = {"message_id": 1, "from": "anna", "thread_id": "thr_0", "topic": "", "importance": "normal",
               "ack_required": False, "body": "until 2026-11-22T06:14:18Z",
               "sent_at": "2026-11-22T06:12:18Z"}  # fmt: skip
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        show_inbox({"messages": [message], "next_cursor": None, "negotiation_timeouts": [late], "errors": []}, "ben")
    finally:
        monkeypatch.undo()
        time.tzset()
    out, err = capsys.readouterr()
    assert "    until 01:14:18\n" in out
    assert "timed out: it's.py: anna did not answer your urgent request neg_0\n" in err
    assert "interlock negotiate" in err
    (proposed,) = [row.removeprefix("  next: ") for row in err.splitlines() if row.startswith("  next: ")]
    assert shlex.split(proposed) == ["interlock", "send", "anna", "I need it's.py."]


@pytest.mark.long
def test_an_overdue_request_for_what_is_never_taken_says_what_is_left_to_do(project: Path) -> None:
    (project / "interlock.toml").write_text("[reservations]\ntimeout_minutes = { urgent = 0.02 }\n")
    assert run(project, "anna", "reserve", "README.md", "--no-force").returncode == 0
    ask = ("negotiate", "README.md", "--reason", "r", "--urgency", "urgent")
    while (asked := run(project, "ben", *ask)).returncode == 0:
        assert "send" not in asked.stderr
    assert asked.returncode == 5
    assert "interlock send anna" in asked.stderr


def test_a_narrow_table_cuts_the_reason_and_leaves_out_the_id_but_never_a_path() -> None:
    rows = [["holder", "pattern", "reason", "id"], ["ann", "src/a/long/path.py", "a reason of many words", "rsv_0123"]]
    assert fitted(rows, 200, "reason", ("id",)) == rows
    assert fitted(rows, 52, "reason", ("id",))[1] == ["ann", "src/a/long/path.py", "a reason of…", "rsv_0123"]
    assert fitted(rows, 45, "reason", ("id",))[1] == ["ann", "src/a/long/path.py", "a reason of ma…"]
    assert fitted(rows, 10, "reason", ("id", "reason")) == [["holder", "pattern"], ["ann", "src/a/long/path.py"]]


@pytest.mark.parametrize(
    "command", ["reserve", "release", "conflicts", "inbox", "negotiate", "respond", "send", "agents"]
)
def test_help_has_an_example_and_says_who_one_is(command: str, tmp_path: Path) -> None:
    done = run(tmp_path, "anna", command, "--help")
    assert done.returncode == 0
    assert f"Example: interlock {command}" in done.stdout
    assert "INTERLOCK_AGENT_ID" in done.stdout


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
            cwd=project, env=environment("anna"), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_ids_threads_and_agents_are_completed_and_nothing_is_made_by_it(project: Path) -> None:
    def complete(*words: str) -> list[str]:
        given = {**environment("anna"), "_INTERLOCK_COMPLETE": "bash_complete", "COMP_CWORD": str(len(words) - 1)}
        done = subprocess.run(
            [sys.executable, "-c", "from interlock.cli.main import interlock; interlock(prog_name='interlock')"],
            cwd=project, env={**given, "COMP_WORDS": " ".join(words)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        return [row.partition(",")[2] for row in done.stdout.split()]

    assert complete("interlock", "release", "rsv_") == []
    assert not Path(place.find(str(project)).store_path).exists()
    held = reserve(project, "anna", "src/app.py")
    assert run(project, "ben", "negotiate", "src/app.py", "--reason", "r").returncode == 0
    reserve(project, "ben", "README.md")
    assert complete("interlock", "release", "rsv_") == held, "one's own alone"
    assert complete("interlock", "release", "s") == ["src/app.py"]
    assert complete("interlock", "respond", "neg_")[0].startswith("neg_")
    assert complete("interlock", "negotiate", "x", "--agent", "an") == ["anna"]
    names = {row["name"] for row in data(run(project, "anna", "agents", "--json"))["agents"]}
    assert names == {"anna", "ben"}, "completing is no sign of life"


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
    assert "`pre-commit`" in slip.stderr
    assert run(tmp_path, "anna", "hook").returncode == 2
    code = "from interlock.cli import main; main(['hook', '--help'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True,
                          env=environment("anna"))  # fmt: skip
    assert done.stdout == listed.stdout


@pytest.mark.parametrize("state", ["alive", "silent", "gone"])
def test_the_list_says_what_an_absent_holder_means_and_what_to_do(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lease = {"holder": "ann", "pattern": "src/my file.py", "exclusive": True, "expires_in_seconds": 60.0}
    row = {**lease, "holder_state": state, "reason": "", "reservation_id": "rsv_1"}
    show_reservations({"leases": [row], "waiters": [], "negotiations": []}, "bob")
    shown = capsys.readouterr().out
    assert (f"{state}: " in shown, "fix: interlock reserve 'src/my file.py'" in shown) == (state != "alive",) * 2
