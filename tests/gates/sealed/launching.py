"""Starts what a runner asks for, without a sandbox, and reads what came of it."""

import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.gates.sealed.compare import Comparison, compare, make_base_list
from interlock.gates.sealed.outcomes import TestRun
from interlock.gates.sealed.runners import Plan, Runner
from interlock.gates.sealed.runners.python import PythonRunner

PYTEST = PythonRunner("pytest", (sys.executable,), ("-q", "-p", "no:cacheprovider"), True, {})
UNITTEST = PythonRunner("unittest", (sys.executable,), (), True, {})


@dataclass(frozen=True)
class Ran:
    """A run, what the command printed, and what the probe wrote."""

    run: TestRun
    output: str
    stream: bytes

    @property
    def outcomes(self) -> dict[str, str]:
        return {case.id: case.outcome for case in self.run.cases}


def judged(base: TestRun, now: TestRun) -> Comparison:
    """Compare the tests of a base with the present ones, where no file may change."""
    return compare(make_base_list(base), now, may_change=lambda _: False, changed=lambda _: False)


def start(runner: Runner, root: Path, *, stop_at: bytes = b"", **plan: Any) -> Ran:
    """Run the tests; `stop_at` kills the command once the stream has these bytes."""
    spec_out, spec_in = os.pipe()
    stream_out, stream_in = os.pipe()
    home = root.parent / "home"
    home.mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | plan.pop("env", {})
    report = home / "report"
    launch = runner.launch(Plan(str(root), env, spec_out, stream_in, str(report), **plan))
    process = subprocess.Popen(
        launch.argv, cwd=root, env=dict(launch.env), pass_fds=(spec_out, stream_in), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    os.close(spec_out)
    os.close(stream_in)
    stream, stopped = bytearray(), False

    def drain() -> None:
        nonlocal stopped
        while data := os.read(stream_out, 65536):
            stream.extend(data)
            if stop_at and stop_at in stream and not stopped:
                stopped = True
                process.kill()

    reader = threading.Thread(target=drain)
    reader.start()
    with os.fdopen(spec_in, "wb") as pipe:
        pipe.write(launch.spec)
    try:
        output, _ = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        # As a gate does at its time limit.
        stopped = True
        process.kill()
        output, _ = process.communicate()
    reader.join(10)
    os.close(stream_out)
    found = output if launch.report == "stdout" else report.read_bytes() if report.exists() else b""
    status = None if stopped else process.returncode
    return Ran(
        runner.read(launch, bytes(stream), found, exit_status=status), output.decode(errors="replace"), bytes(stream)
    )
