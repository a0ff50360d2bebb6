"""Command gates: real processes, their logs, and what is left of them."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.envelope.protocol import DEFAULT_PROTOCOL, GateSpec, Protocol
from interlock.gates import command
from interlock.gates.command import run_command_gate
from interlock.gates.errors import CollectorError
from interlock.gates.judge import judge_collection
from interlock.gates.manifest import Collection, read_manifest
from tests.gates.collecting import wait_for_end
from tests.gates.support import BINDING, codes
from tests.refusals import raises_code


def gate(program: str, *arguments: str, timeout_seconds: float = 60.0) -> GateSpec:
    return GateSpec(
        "GATE-UNIT",
        "x",
        None,
        ("reports",),
        check="command",
        grade="runner",
        command=(sys.executable, "-c", program, *arguments),
        timeout_seconds=timeout_seconds,
    )


def run(root: Path, spec: GateSpec, **more: Any) -> Collection:
    return run_command_gate(spec, root=root, binding=BINDING, **more)


def log(root: Path, collection: Collection) -> tuple[dict[str, Any], bytes]:
    head, _, output = (root / collection.files[0].path).read_bytes().partition(b"\n")
    return json.loads(head), output


def test_a_command_that_ends_with_nought_passes_and_leaves_log_and_manifest(tmp_path: Path) -> None:
    spec = gate("import sys; print('fine'); print('warned', file=sys.stderr)")
    made = run(tmp_path, spec)
    assert made.ok
    assert (made.findings, made.files[0].path) == ((), "artifacts/reports/HOME-UI-001/1/GATE-UNIT.log")
    assert read_manifest(tmp_path, made.manifest) == made
    head, output = log(tmp_path, made)
    assert sorted(output.split()) == [b"fine", b"warned"]
    assert (head["exit_status"], head["timed_out"], head["output_bytes"]) == (0, False, len(output))
    protocol = Protocol(gates={**DEFAULT_PROTOCOL.gates, spec.id: spec})
    assert judge_collection(made, root=tmp_path, protocol=protocol, binding=BINDING).verified == ("GATE-UNIT",)


@pytest.mark.parametrize(
    ("program", "status", "words"),
    [
        ("import sys; print('2 failed'); sys.exit(3)", 3, "2 failed"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -15, ""),
    ],
    ids=["fails", "is ended by a signal"],
)
def test_a_command_that_fails_does_not_pass_and_its_last_lines_are_reported(
    tmp_path: Path, program: str, status: int, words: str
) -> None:
    made = run(tmp_path, gate(program))
    assert (made.ok, codes(made.findings)) == (False, ["EVD555"])
    assert words in made.findings[0].found
    assert log(tmp_path, made)[0]["exit_status"] == status


HANG = """
import os, sys, time
child = os.fork()
print(os.getpid() if child else "child", flush=True)
while True:
    time.sleep(60)
"""


def test_a_command_that_hangs_is_stopped_with_its_children(tmp_path: Path) -> None:
    made = run(tmp_path, gate(HANG, timeout_seconds=0.5))
    assert codes(made.findings) == ["EVD556"]
    head, output = log(tmp_path, made)
    assert (head["exit_status"], head["timed_out"]) == (None, True)
    (pid,) = (int(word) for word in output.split() if word.isdigit())
    assert wait_for_end([pid])


LEAVES_A_CHILD = """
import os, time
child = os.fork()
if child == 0:
    time.sleep(600)
print(child, flush=True)
os._exit(0)
"""


def test_a_child_that_holds_the_pipe_neither_delays_nor_outlives_the_gate(tmp_path: Path) -> None:
    made = run(tmp_path, gate(LEAVES_A_CHILD))
    assert made.ok
    assert wait_for_end([int(log(tmp_path, made)[1])])


def test_long_output_keeps_its_beginning_and_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "KEPT_BYTES", 1000)
    made = run(tmp_path, gate("import sys; sys.stdout.write('first' + 'x' * 300000 + 'last')"))
    head, output = log(tmp_path, made)
    assert output.startswith(b"firstx")
    assert output.endswith(b"xlast")
    assert (head["output_bytes"], head["left_out_bytes"]) == (300_009, 300_009 - 2000)
    assert len(output) < 2100


def test_a_command_sees_no_secret_of_this_process_and_no_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    program = (
        "import os, sys; print('SOME_API_KEY' in os.environ, 'PATH' in os.environ, repr(sys.stdin.read()), os.getcwd())"
    )
    output = log(tmp_path, run(tmp_path, gate(program)))[1]
    assert output.decode().split() == ["False", "True", "''", str(tmp_path)]


def test_a_command_that_is_not_there_is_an_error_with_a_fix(tmp_path: Path) -> None:
    spec = GateSpec("GATE-UNIT", "x", None, ("reports",), check="command", command=("no-such-program",))
    with raises_code(CollectorError, "COL202") as refused:
        run(tmp_path, spec)
    assert refused.value.fix
    assert not (tmp_path / "artifacts").exists()


def test_a_log_that_cannot_be_stored_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("in the way")
    with raises_code(CollectorError, "COL203"):
        run(tmp_path, gate("pass"))


def test_compiled_code_that_lies_in_the_tree_is_not_run(tmp_path: Path) -> None:
    """An unchecked hash-based file of the cache is believed whatever the source says; no digest covers it."""
    (tmp_path / "calc.py").write_text("def half(n): return n / 2\n")
    compile_to = "from py_compile import *; compile('calc.py', invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)"
    subprocess.run([sys.executable, "-c", compile_to], cwd=tmp_path, check=True)
    (tmp_path / "calc.py").write_text("def half(n): return n\n")
    test = "import sys; sys.path.insert(0, ''); import calc; sys.exit(calc.half(4) != 2)"
    bare = subprocess.run([sys.executable, "-c", test], cwd=tmp_path, check=False)
    assert bare.returncode == 0
    spec = dataclasses.replace(gate(""), command=(sys.executable, "-c", test))
    assert codes(run(tmp_path, spec).findings) == ["EVD555"]
    given = run(tmp_path, spec, environment={"PYTHONPYCACHEPREFIX": "", "PATH": os.environ["PATH"]})
    assert codes(given.findings) == ["EVD555"]
