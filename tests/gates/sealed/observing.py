"""Runners with an observer in them, and what the gate makes of their reports."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.gates.sealed.observe import Observation
from interlock.gates.sealed.outcomes import TestCase, TestRun
from tests.gates.sealed.sealing import write

PROBES = Path(__file__).resolve().parents[3] / "gates" / "sealed" / "probes"
PYTHON = os.environ.get("OBSERVED_PYTHON", sys.executable)
"""The interpreter whose runners are observed, with pytest, xdist and coverage."""
KEPT = ("PATH", "HOME", "TMPDIR", "LANG")
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


def command(root: Path, argv: Sequence[str], env: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a command in a project."""
    return subprocess.run(
        argv,
        cwd=root,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def watch(
    root: Path, argv: Sequence[str], env: Callable[[Path], Mapping[str, str]], *, is_ignored: bool = False, **spec: Any
) -> Observed:
    """Run a command while a gate listens in a folder, which has the observers, too; `env` brings them in from there.

    One that is ignored runs below a process that is connected already.
    """
    with tempfile.TemporaryDirectory(prefix="gate") as name:
        shutil.copytree(PROBES, f"{name}/probes")
        outer = [sys.executable, "-c", OUTER, f"{name}/socket"] if is_ignored else []
        with Observation(Path(name), os.fspath(root), **spec) as seen:
            done = command(root, [*outer, *argv], env(Path(name)))
    return Observed(seen.result(done.returncode), done.returncode, done.stdout, done.stderr)


def observe(
    root: Path, files: dict[str, str], *argv: str, env: Mapping[str, str] | None = None, **spec: Any
) -> Observed:
    """Run a command of Python on files with observers in the runners; tests of a whole gate mount them."""

    def variables(folder: Path) -> Mapping[str, str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return kept | {"PYTHONPATH": f"{folder}/probes/unmounted", "PYTHONDONTWRITEBYTECODE": "1"} | dict(env or {})

    return watch(write(root, files), [PYTHON, *argv], variables, **spec)
