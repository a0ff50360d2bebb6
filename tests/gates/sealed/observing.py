"""Runners with an observer in them, and what the gate makes of their reports."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.gates.sealed.observe import Observation
from interlock.gates.sealed.outcomes import TestCase, TestRun

PROBES = Path(__file__).resolve().parents[3] / "gates" / "sealed" / "probes"
PYTHON = os.environ.get("OBSERVED_PYTHON", sys.executable)
"""The interpreter whose runners are observed, with pytest, xdist and coverage."""
KEPT = ("PATH", "HOME", "TMPDIR", "LANG")
NONE = dict[str, str]()
QUIET = {"NO_COLOR": "1", "npm_config_update_notifier": "false", "PYTHONDONTWRITEBYTECODE": "1"}
OUTER = """
import socket, subprocess, sys
channel = socket.socket(socket.AF_UNIX)
channel.connect(sys.argv[1])
channel.sendall(b'{"e": "hello", "runner": "outer"}\\n')
channel.recv(65536)
sys.exit(subprocess.run(sys.argv[2:]).returncode)
"""


@dataclass
class Observed:
    """A run, as the gate saw it, and as its user did."""

    found: TestRun | None
    status: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr

    @property
    def run(self) -> TestRun:
        assert self.found is not None, self.output
        assert self.found.judge == "", self.output
        return self.found

    @property
    def cases(self) -> dict[str, TestCase]:
        """The tests, by the last part of their ids."""
        separator = "::" if self.run.runner == "pytest" else "." if self.run.runner == "unittest" else " > "
        return {case.id.rpartition(separator)[2]: case for case in self.run.cases}

    @property
    def ids(self) -> dict[str, str]:
        return {case.id: case.outcome for case in self.run.cases}

    @property
    def outcomes(self) -> dict[str, str]:
        return {name: case.outcome for name, case in self.cases.items()}

    @property
    def ran(self) -> dict[str, str]:
        return {name: case.ran for name, case in self.cases.items()}


def environment(options: str = "", **more: str) -> dict[str, str]:
    """Return the variables of a command; `options` are those of Node."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return kept | QUIET | ({"NODE_OPTIONS": options} if options else {}) | more


def command(root: Path, argv: Sequence[str], env: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a command in a project."""
    return subprocess.run(
        argv, cwd=root, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )


def observe(
    root: Path,
    argv: Sequence[str],
    env: Mapping[str, str] = NONE,
    *,
    options: str = "",
    is_ignored: bool = False,
    **spec: Any,
) -> Observed:
    """Run a command with observers in its runners while a gate listens; in tests of a whole gate they are mounted.

    One that is ignored runs below a process that is connected already.
    """
    with tempfile.TemporaryDirectory(prefix="gate") as name:
        shutil.copytree(PROBES, f"{name}/probes")
        outer = [sys.executable, "-I", "-c", OUTER, f"{name}/socket"] if is_ignored else []
        options = f"{options} --require {name}/probes/node_observer.cjs".strip()
        variables = environment(options, PYTHONPATH=f"{name}/probes/unmounted") | dict(env)
        with Observation(Path(name), os.fspath(root), **spec) as seen:
            done = command(root, [*outer, *argv], variables)
    return Observed(seen.result(done.returncode), done.returncode, done.stdout, done.stderr)
