"""Calls in flight, with real processes: the background, failing clients, and what outlives them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from interlock.reservations import process
from interlock.reservations.leases.runtime import Caller, Context
from interlock.reservations.store.records import replace
from interlock.reservations.versions import flight, store, watch
from interlock.reservations.versions.store import Call
from tests.reservations.versions.sharing import WORK, Sharing

LATER = "import os, sys, time; time.sleep(float(sys.argv[1])); os.path.exists('ann.py') and os.unlink('ann.py')"


def start(sharing: Sharing, session: str, seconds: float = 0.6) -> subprocess.Popen[bytes]:
    """Start a process of a session that removes a held file some time later, with a parent that has ended."""
    line = f"'{sys.executable}' -c \"{LATER}\" {seconds} & "
    env = {**os.environ, "CLAUDE_CODE_SESSION_ID": session}
    return subprocess.Popen(["sh", "-c", line], cwd=sharing.root, env=env, start_new_session=True)


def in_flight(sharing: Sharing) -> list[Call]:
    with store.opened(sharing.found).transaction() as tx:
        return tx.calls()


def until_gone(path: Path) -> None:
    end = time.monotonic() + 20
    while path.exists() and time.monotonic() < end:
        time.sleep(0.02)


def test_harm_of_work_in_the_background_is_undone_by_the_next_hook_of_anybody(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.before("bob")
    started = start(sharing, "session-bob")
    started.wait()
    sharing.after("bob")
    assert [call.background for call in in_flight(sharing)] == [True]
    until_gone(sharing.root / "ann.py")
    sharing.before("carl")
    assert sharing.read("ann.py") == WORK
    assert "bob (Bash)" in sharing.told("ann")[0].body
    time.sleep(0.3)
    sharing.after("carl")
    assert in_flight(sharing) == []


def test_processes_of_other_sessions_and_elsewhere_keep_no_call_in_flight(sharing: Sharing, tmp_path: Path) -> None:
    sharing.hold("ann.py")
    sharing.before("bob")
    with (
        start(sharing, "another", 5) as other,
        subprocess.Popen(
            ["sleep", "5"], cwd=tmp_path, env={**os.environ, "CLAUDE_CODE_SESSION_ID": "session-bob"}
        ) as elsewhere,
    ):
        other.wait()
        sharing.after("bob")
        assert in_flight(sharing) == []
        elsewhere.kill()
    os.killpg(other.pid, signal.SIGKILL)


def test_a_killed_clients_command_stays_in_flight_for_as_long_as_it_lives(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    with subprocess.Popen(["sleep", "60"]) as client:
        found = process.read(client.pid)
        assert found is not None
        ctx = sharing.context("bob")
        caller = Caller("bob", "agent", str(sharing.root), "hook", process.host(), client.pid, found.started)
        watch.look_now(Context(ctx.runtime, caller), sharing.found, watch.Began("session-bob", "1", "Bash"))
        started = start(sharing, "session-bob")
        started.wait()
        client.kill()
    until_gone(sharing.root / "ann.py")
    sharing.before("carl")
    assert sharing.read("ann.py") == WORK
    time.sleep(0.3)
    sharing.after("carl")
    assert in_flight(sharing) == []


def test_what_a_users_own_hook_makes_of_an_edit_is_the_holders(sharing: Sharing) -> None:
    target = sharing.root / "ann.py"
    sharing.hold("ann.py")
    sharing.before("bob")
    sharing.before("ann", tool="Write", paths=[str(target)], writes="x=1\n")
    target.write_text("x=1\n")
    env = {**os.environ, "CLAUDE_CODE_SESSION_ID": "session-ann"}
    with subprocess.Popen(["sh", "-c", "sleep 0.5; echo 'x = 1' > ann.py"], cwd=sharing.root, env=env) as formatter:
        sharing.after("ann", tool="Write")
        formatter.wait()
    sharing.after("bob")
    assert sharing.read("ann.py") == "x = 1\n"


def test_the_event_finds_its_call_by_id_else_by_session_and_tool(sharing: Sharing) -> None:
    sharing.before("bob", use="1")
    sharing.before("bob", use="2")
    sharing.after("bob", use="2")
    assert [call.use_id for call in in_flight(sharing)] == ["1"]
    with store.opened(sharing.found).transaction() as tx:
        rows = [replace(call, use_id="") for call in tx.calls()]
    found = flight.matching(rows, "bob", "session-bob", "Bash", "")
    assert found == rows[0]
    assert flight.matching(rows, "bob", "session-bob", "Other", "") is None
    assert flight.matching(rows, "ann", "session-bob", "Bash", "") is None


def test_a_session_that_stops_has_no_call_left(sharing: Sharing) -> None:
    sharing.before("bob", use="denied")
    sharing.before("bob", use="an edit", tool="Write", paths=[str(sharing.root / "bob.py")])
    watch.stopped(sharing.context("bob"), sharing.found, "session-bob")
    assert in_flight(sharing) == []


def test_a_call_without_an_event_ends_after_a_time(sharing: Sharing) -> None:
    sharing.before("bob")
    later = time.time() + flight.MAX_SECONDS + 1
    assert [row.agent for row in flight.ended(in_flight(sharing), later, process.is_running)] == ["bob"]
    assert flight.ended(in_flight(sharing), time.time(), process.is_running) == []
