"""Processes: which one is the client, and whether one still runs."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.reservations import process

SHOW = "from interlock.reservations import process; print(process.client()[0])"


def printed(*command: str) -> int:
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_the_client_is_behind_shells_and_wrappers() -> None:
    own = os.getpid()
    assert printed(sys.executable, "-c", SHOW) == own
    assert printed("sh", "-c", f'"{sys.executable}" -c "{SHOW}"; true') == own
    assert printed("env", "A=1", "nice", "bash", "-c", f'"{sys.executable}" -c "{SHOW}"; true') == own


def test_our_own_programs_are_no_client(tmp_path: Path) -> None:
    program = tmp_path / "interlock"
    program.write_text(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SHOW!r}], check=True)")
    assert printed(sys.executable, str(program)) == os.getpid()


def test_a_program_that_init_has_adopted_has_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    named = [(7, 1, "bash", "x"), (1, 0, "systemd", "y"), (2, 0, "far", "z")]
    rows = [process.Process(*row) for row in named]
    monkeypatch.setattr(process, "ancestors", lambda: iter(rows))
    assert process.client() == (7, "x")
    monkeypatch.setattr(process, "ancestors", lambda: iter(rows[1:]))
    assert process.client() == (None, "")


def test_a_process_runs_until_it_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        on_linux, pid = sys.platform == "linux", child.pid
        started = process.from_proc(pid) if on_linux else process.from_ps("-p", str(pid))[pid]
        assert started is not None
        mark = (process.host(), child.pid, started.started)
        assert process.is_running(*mark) is True
        assert process.is_running(process.host(), child.pid, "") is True
        child.send_signal(signal.SIGSTOP)
        assert process.is_running(*mark) is True
        child.kill()
        # Its parent has not taken note yet: a process that has ended all the same.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert process.is_running(*mark) is False
    assert process.is_running(*mark) is False


def test_a_later_process_of_the_same_number_is_another() -> None:
    assert process.is_running(process.host(), os.getpid(), "another time") is False


def test_what_cannot_be_known_is_not_claimed() -> None:
    assert process.is_running("another machine", os.getpid(), "") is None
    assert process.is_running(process.host(), 0, "") is None
    assert process.is_running(process.host(), 2**40, "") is False


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", ["a b", "a) R 1 (b", "((", "é"])
def test_a_name_may_hold_anything(tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([str(program), "60"]) as child:
        try:
            found = process.from_proc(child.pid)
            assert found is not None
            assert (found.name, found.parent) == (name, os.getpid())
        finally:
            child.kill()


@pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps")
def test_ps_reports_the_same_as_proc() -> None:
    table = process.from_ps("-ax")
    own, parent = table[os.getpid()], os.getppid()
    assert (own.parent, own.ended) == (parent, False)
    assert process.from_ps("-p", str(os.getpid()))[os.getpid()].started == own.started
    assert len(own.started.split("-")) == 5


def test_a_space_of_processes_of_its_own_is_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["pid:[4026531836]", "pid:[4026532999]"])

    def readlink(path: str) -> str:
        assert path == "/proc/self/ns/pid"
        return next(names)

    monkeypatch.setattr(os, "readlink", readlink)
    plain = process.host()
    assert process.host() == f"{plain}/4026532999"


def test_without_proc_one_ps_a_second_serves_every_question(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    own = process.Process(os.getpid(), os.getppid(), "python", "now")

    def from_ps(*which: str) -> dict[int, process.Process]:
        asked.append(which)
        return {own.pid: own}

    now = [1000.0]
    monkeypatch.setattr(process, "_ON_LINUX", False)
    monkeypatch.setattr(process, "_tables", [])
    monkeypatch.setattr(process, "from_ps", from_ps)
    monkeypatch.setattr(process.time, "monotonic", lambda: now[0])
    assert list(process.ancestors()) == []
    assert process.is_running(process.host(), own.pid, "now") is True
    assert process.is_running(process.host(), own.pid, "before") is False
    assert process.is_running(process.host(), os.getppid(), "x") is None
    assert asked == [("-ax",)]
    now[0] += 1.5
    assert process.is_running(process.host(), own.pid, "now") is True
    assert asked == [("-ax",)] * 2


def test_where_ps_is_missing_or_hangs_nobody_counts_as_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_ON_LINUX", False)
    monkeypatch.setattr(process, "_tables", [])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert process.from_ps("-ax") == {}
    assert process.is_running(process.host(), os.getpid(), "x") is None
    assert process.client() == (None, "")
    slow = tmp_path / "ps"
    slow.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(process, "_PS_SECONDS", 0.05)
    assert process.from_ps("-ax") == {}
