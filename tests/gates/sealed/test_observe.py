"""What runners report to the gate: in one connection, and nothing taken back."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.gates.sealed.observe import Observation
from interlock.gates.sealed.outcomes import TestRun
from tests.table import each_row

CLIENT = """
import json, socket, subprocess, sys
program, path, plan = sys.argv[1:]
def talk(hello, steps):
    channel = socket.socket(socket.AF_UNIX)
    channel.connect(path)
    channel.sendall(json.dumps({"e": "hello", "runner": "pytest", **hello}).encode() + b"\\n")
    answer = json.loads(channel.makefile("rb").readline())
    print(json.dumps(answer), flush=True)
    for step in steps:
        if "again" in step:
            talk({}, step["again"])
        elif "child" in step:
            words = [sys.executable, "-I", "-S", "-c", program, program, path, json.dumps(step["child"])]
            subprocess.run(["sh", "-c", '"$@"; true', "sh", *words] if step.get("shell") else words)
        elif "line" in step:
            channel.sendall(step["line"].encode() + b"\\n")
        elif not answer["ignored"]:
            channel.sendall(answer["token"].encode() + b" " + json.dumps(step).encode() + b"\\n")
            if step.get("controller"):
                channel.recv(1)
talk(*json.loads(plan))
"""
CONTROLLER = {"e": "begin", "controller": True}
SESSION = {
    "e": "session",
    "status": 0,
    "loaded": [["calc", "/p/calc.py"]],
    "frozen": ["/p/test_a.py"],
    "early": [],
    "roots": ["/p"],
    "changed": [],
    "equals": [],
}


def case(name: str, outcome: str = "passed", **more: Any) -> dict[str, Any]:
    event = {"e": "case", "id": name, "outcome": outcome, "seconds": 0.5, "message": "m", "file": "test_a.py"}
    return event | {"ran": "ended", "when": ""} | more


def observed(
    folder: Path, *clients: Any, status: int | None = 0, **spec: Any
) -> tuple[TestRun | None, list[dict[str, Any]]]:
    """Let processes report, one after the other; each is `[hello, steps]`. Return the run and the gate's answers."""
    answers: list[dict[str, Any]] = []
    with Observation(folder, "/p", **spec) as seen:
        for client in clients:
            words = [sys.executable, "-I", "-S", "-c", CLIENT, CLIENT, f"{folder}/socket", json.dumps(client)]
            done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30)
            answers += map(json.loads, done.stdout.splitlines())
    return seen.result(status), answers


def ran(folder: Path, *steps: Any, status: int | None = 0) -> TestRun:
    """Return the run of one process that reports these steps."""
    run, _ = observed(folder, [{}, steps], status=status)
    assert run is not None
    return run


def outcomes(run: TestRun) -> dict[str, str]:
    return {case.id: case.outcome for case in run.cases}


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder whose path is short enough for a socket."""
    return tmp_path_factory.mktemp("s")


def test_what_a_runner_reports_is_the_run(folder: Path) -> None:
    events: list[Any] = [
        {"e": "begin", "argv": []},
        {"e": "collected", "ids": ["a", "b"]},
        {"e": "collected", "ids": ["c"]},
        {"e": "deselected", "ids": ["c"]},
        {"e": "broken", "file": "test_b.py", "message": "x"},
        {"e": "skipped_file", "file": "test_c.py", "message": "y"},
        {"e": "start", "id": "a"},
        case("a"),
        {"e": "start", "id": "b"},
        SESSION,
    ]
    run, answers = observed(folder, [{}, events], keep_going=True)
    assert run is not None
    assert (answers[0]["root"], answers[0]["keep_going"]) == ("/p", True)
    assert (run.runner, run.sessions, run.complete, run.judge) == ("pytest", 1, True, "")
    assert (run.collected, run.deselected, run.running) == (("a", "b", "c"), ("c",), ("b",))
    assert (run.broken, run.skipped_files) == ((("test_b.py", "x"),), (("test_c.py", "y"),))
    assert (run.loaded, run.frozen, run.roots) == ((("calc", "/p/calc.py"),), ("/p/test_a.py",), ("/p",))
    assert (run.cases[0].file, run.cases[0].ran, run.cases[0].seconds) == ("test_a.py", "ended", 0.5)
    assert run.cases[0].id == "a"


@each_row("line", ["{}", json.dumps(case("a")), "0" * 64 + " " + json.dumps(case("a")), "", "x", "\0"])
def test_a_line_that_the_observer_did_not_write_is_found_and_left_out(
    line: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = ran(tmp_path_factory.mktemp("s"), case("b"), {"line": line}, case("c"), SESSION)
    assert (outcomes(run), "1 lines" in run.judge) == ({"b": "passed", "c": "passed"}, True)


@each_row(
    "event",
    [
        {"e": "case"},
        {**case("a"), "outcome": "fine"},
        {**SESSION, "loaded": 7},
        {**SESSION, "loaded": [[1]]},
        {"e": "start"},
        {"e": "collected", "ids": 3},
        {**SESSION, "status": "x"},
    ],
)
def test_an_event_of_another_shape_is_one_that_tested_code_changed(
    event: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = ran(tmp_path_factory.mktemp("s"), event, SESSION)
    assert (run.complete, run.judge != "") == (False, True)


def test_no_later_report_takes_a_failure_back(folder: Path) -> None:
    run = ran(
        folder, case("a", "failed"), case("a"), case("b"), case("b", "error"), case("c", "skipped"), case("c"), SESSION
    )
    assert outcomes(run) == {"a": "failed", "b": "error", "c": "skipped"}


def test_only_the_first_connection_of_a_process_and_of_those_below_it_counts(folder: Path) -> None:
    lie = [case("a"), SESSION]
    steps: list[Any] = [
        case("a", "failed"),
        {"again": lie},
        {"child": [{}, lie]},
        {"child": [{}, lie], "shell": True},
        SESSION,
    ]
    run, answers = observed(folder, [{}, steps], status=1)
    assert run is not None
    assert [answer["ignored"] for answer in answers] == [False, True, True, True]
    assert (outcomes(run), run.sessions) == ({"a": "failed"}, 1)


def test_workers_of_a_controller_report_for_themselves_and_what_they_start_does_not(folder: Path) -> None:
    nested = {"child": [{"worker": "gw0"}, [case("a")]]}
    workers = [{"child": [{"worker": f"gw{at}"}, [case(f"t{at}"), nested, SESSION]]} for at in range(2)]
    run, answers = observed(folder, [{}, [CONTROLLER, *workers, SESSION]])
    assert run is not None
    assert [answer["ignored"] for answer in answers] == [False, False, True, False, True]
    assert (outcomes(run), run.sessions, run.complete) == ({"t0": "passed", "t1": "passed"}, 1, True)
    run, _ = observed(folder, [{}, [CONTROLLER, {"child": [{"worker": "gw0"}, [case("t0")]]}, SESSION]])
    assert run is not None
    assert not run.complete, "a worker was killed"


@each_row("begin", [{"e": "begin"}, {"e": "begin", "controller": False}, {"line": json.dumps(CONTROLLER)}])
def test_a_worker_below_a_session_that_distributes_nothing_is_of_a_runner_that_a_test_started(
    begin: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    inner = {"child": [{"worker": "gw0"}, [case("b", "failed")]]}
    run, answers = observed(tmp_path_factory.mktemp("s"), [{}, [begin, inner, case("a"), SESSION]])
    assert run is not None
    assert ([answer["ignored"] for answer in answers], outcomes(run)) == ([False, True], {"a": "passed"})


def test_a_worker_without_a_controller_is_a_session_of_its_own(folder: Path) -> None:
    run, _ = observed(folder, [{}, [case("a"), SESSION]], [{"worker": "gw0"}, [case("b"), SESSION]])
    assert run is not None
    assert run.sessions == 2


def test_a_session_that_was_cut_off_is_not_complete(folder: Path) -> None:
    assert not ran(folder, case("a")).complete
    assert not ran(folder, case("a"), SESSION, status=None).complete
    assert ran(folder, case("a"), {**SESSION, "status": 1}, status=1).judge == ""
    assert ran(folder, case("a"), {**SESSION, "status": 1}).judge != ""


def test_a_runner_that_began_nothing_was_none(folder: Path) -> None:
    assert observed(folder) == (None, [])
    assert observed(folder, [{}, []])[0] is None
    # What is left behind is not waited for, and cannot report any more.
    with socket.socket(socket.AF_UNIX) as silent:
        with Observation(folder, "/p") as seen:
            silent.connect(f"{folder}/socket")
        assert seen.result(0) is None
        with pytest.raises(BrokenPipeError):
            silent.sendall(b"{}\n")
