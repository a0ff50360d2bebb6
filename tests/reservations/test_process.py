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
        mark = (process.host(), child.pid, process.started(child.pid))
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
    assert process.is_running(process.host(), os.getpid(), f"{process.own()[1]}0") is False


def test_a_mark_that_was_made_by_other_means_says_nothing() -> None:
    other = "f06449dc-123" if process.own()[1].startswith("psutil-") else "psutil-123"
    assert process.is_running(process.host(), os.getpid(), other) is None


def test_what_cannot_be_known_is_not_claimed() -> None:
    assert process.is_running("another machine", os.getpid(), "") is None
    assert process.is_running(process.host(), 0, "") is None
    assert process.is_running(process.host(), 2**40, "") is False


@pytest.mark.parametrize("name", ["a b", "a) R 1 (b", "((", "é"])
def test_a_name_may_hold_anything(tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([str(program), "60"]) as child:
        try:
            found = process.read(child.pid)
            assert found is not None
            assert (found.name, found.parent) == (name, os.getpid())
        finally:
            child.kill()


@pytest.mark.linux("spaces of processes are told by /proc")
def test_a_space_of_processes_of_its_own_is_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["pid:[4026531836]", "pid:[4026532999]"])

    def readlink(path: str) -> str:
        assert path == "/proc/self/ns/pid"
        return next(names)

    monkeypatch.setattr(os, "readlink", readlink)
    plain = process.host()
    assert process.host() == f"{plain}/4026532999"


def test_a_process_that_has_ended_and_waits_for_its_parent_is_not_running() -> None:
    argv, pipe = [sys.executable, "-c", "print(flush=True); input()"], subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, start_new_session=True) as child:
        assert child.stdout is not None and child.stdout.read(1)  # noqa: PT018 - its environment is there once it runs
        known = process.read(child.pid)
        assert known is not None
        mark = (process.host(), child.pid, known.started)
        assert process.is_running(*mark) is True
        assert process.is_running(process.host(), child.pid, f"{known.started}0") is False
        (environment,) = process.group(child.pid).values()
        assert "PATH" in environment
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert process.is_running(*mark) is False
        assert process.group(child.pid) == {}
    assert process.read(child.pid) is None
    assert process.words_of(child.pid) == []


ASK = """
import os
from interlock.reservations import process
parent, child = process.read(os.getppid()), process.read(os.getpid())
began, variables = process.beginning(parent.pid)
folders = dict(process.folders())
print(began)
print([parent.parent, parent.name, parent.ended, child.parent, process.words_of(parent.pid)[:2], folders[parent.pid]])
print([b"/bin" in variables, process.client()[0], process.read(2**22 + 1)])
print(process.beginning(2**22 + 1), process.words_of(2**22 + 1), process.is_running(process.host(), *process.own()))
"""


@pytest.mark.linux("without /proc there is one way alone")
def test_without_proc_the_answers_are_the_same() -> None:
    told: list[list[str]] = []
    for way in ("", "off"):
        env = {**os.environ, "INTERLOCK_PROC": way}
        done = subprocess.run([sys.executable, "-c", ASK], env=env, capture_output=True, text=True, check=True)
        told.append(done.stdout.splitlines())
    assert told[0][1:] == told[1][1:]
    assert abs(float(told[0][0]) - float(told[1][0])) < 1.5


@pytest.mark.linux("without /proc psutil is needed")
def test_no_hook_imports_psutil_on_linux() -> None:
    script = "import sys, interlock.reservations.hooks.main as main; from interlock.reservations import process\n"
    script += "process.client(); print('psutil' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
