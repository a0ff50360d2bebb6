"""Reservations from the shell: exit codes, tables, JSON that is the tool's answer, and waiting."""

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from interlock.cli.calls import as_patterns
from interlock.journal import Journal
from interlock.reservations import place
from interlock.reservations.hooks.main import HOOKS
from interlock.reservations.sqlite import SqliteStore
from tests import warm
from tests.interlock.test_cli import data
from tests.server.reservation_team import masked

HOUSE = str(Path(__file__).parents[2])


def environment(agent: str) -> dict[str, str]:
    """Return the environment of an agent's shell."""
    return {**os.environ, "INTERLOCK_AGENT_ID": agent, "PYTHONPATH": HOUSE, "NO_COLOR": "1", "COLUMNS": "160"}


def run(folder: Path, agent: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as an agent, in a folder."""
    return warm.interlock(folder, *arguments, env=environment(agent))


def start(folder: Path, agent: str, *arguments: str) -> subprocess.Popen[str]:
    """Start the command as an agent."""
    return subprocess.Popen(
        [sys.executable, "-m", "interlock", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(agent),
    )  # fmt: skip


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
    told: list[str] = []
    for agent, code, arguments in steps:
        done = run(project, agent, *(thread if word == "THREAD" else word for word in arguments))
        told.append(f"{agent}$ interlock {' '.join(arguments)}\n{done.stdout}{done.stderr}({done.returncode})\n")
        assert done.returncode == code, told[-1]
        if arguments[0] == "negotiate" and not thread:
            thread = done.stdout.split()[-1] if "neg_" in done.stdout.split()[-1] else next(
                word for word in done.stdout.split() if word.startswith("neg_")
            )  # fmt: skip
    assert masked("\n".join(told)) == snapshot


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


def test_an_absolute_path_inside_is_taken_and_a_folder_is_all_below_it(project: Path) -> None:
    done = run(project / "src", "anna", "reserve", str(project / "README.md"), ".", "--json")
    assert [lease["pattern"] for lease in data(done)["reservations"]] == ["README.md", "src/**"]


def test_a_command_that_is_proposed_does_the_same_from_where_it_is_read(project: Path) -> None:
    reserve(project, "anna", "src/[[]id[]]/page.tsx")
    for folder, options in ((project / "src" / "[id]", ()), (project.parent, ("--root", str(project)))):
        name = "page.tsx" if not options else "src/[[]id[]]/page.tsx"
        refused = run(folder, "ben", "reserve", name, *options)
        assert refused.returncode == 5
        (proposed,) = [row for row in refused.stderr.splitlines() if row.startswith("  next: interlock negotiate")]
        done = run(folder, "ben", *shlex.split(proposed.removeprefix("  next: interlock ")), "--json")
        assert data(done)["status"] == "pending", proposed


def test_a_waiting_reserve_says_who_holds_it_and_is_granted_on_release(project: Path) -> None:
    (held,) = reserve(project, "anna", "src/app.py")
    with start(project, "ben", "reserve", "src/app.py", "--wait", "60", "--json") as waiting:
        assert waiting.stderr is not None
        first = waiting.stderr.readline()
        assert "anna" in first
        assert "src/app.py" in first
        line_of(project, 1)
        assert run(project, "anna", "release", held).returncode == 0
        out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    assert json.loads(out)["reservations"][0]["holder"] == "ben"


def line_of(root: Path, count: int) -> None:
    """Wait until so many stand in the line."""
    store = SqliteStore(place.find(str(root)).store_path)
    while True:
        with store.transaction() as rows:
            if len(rows.waiters()) == count:
                return


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
        line_of(project, 1)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        line_of(project, 0)
        err = os.read(ours, 65536) if terminal else process.communicate()[1]
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
    assert b"Traceback" not in err
    if terminal:
        assert err.count(b"\x1b[?25h") == err.count(b"\x1b[?25l"), "the cursor is shown again"


def test_negotiate_waits_for_the_answer(project: Path) -> None:
    reserve(project, "anna", "src/app.py")
    with start(project, "ben", "negotiate", "src/app.py", "--reason", "fix", "--wait", "60", "--json") as waiting:
        messages: list[Any] = []
        while not messages:
            messages = data(run(project, "anna", "inbox", "--json"))["messages"]
        assert run(project, "anna", "respond", messages[0]["thread_id"], "release").returncode == 0
        out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    assert json.loads(out)["status"] == "release"


def test_an_exit_code_tells_usage_refusal_and_store_apart(project: Path) -> None:
    usage = [
        ("reserve",), ("release",), ("release", "a", "--all"), ("negotiate", "a"), ("respond", "t", "keep"),
        ("reserve", "a", "--wait", "nan"), ("reserve", "a", "--wait", "-1"), ("inbox", "--cursor", "-1"),
        ("status", "x", "--reservations"), ("status", "--since", "nan"),
    ]  # fmt: skip
    for arguments in usage:
        assert run(project, "anna", *arguments).returncode == 2, arguments
    assert not Path(place.find(str(project)).store_path).exists(), "nothing was made"
    assert run(project, "anna", "reserve", "a", "--ttl", "1e9").returncode == 1
    (project / "interlock.toml").write_text("[reservations]\nttl_minuts = 1\n")
    done = run(project, "anna", "reserve", "a", "--json")
    assert (done.returncode, data(done)["error"]["code"]) == (2, "RSV904")
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


@pytest.mark.parametrize("command", ["reserve", "release", "conflicts", "inbox", "negotiate", "respond", "agents"])
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


def test_ids_threads_and_agents_are_completed_and_nothing_is_made_by_it(project: Path) -> None:
    def complete(*words: str) -> list[str]:
        given = {**environment("cleo"), "_INTERLOCK_COMPLETE": "bash_complete", "COMP_CWORD": str(len(words) - 1)}
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
    assert complete("interlock", "release", "rsv_") == held
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
