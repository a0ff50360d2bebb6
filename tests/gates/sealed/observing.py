"""Runners with an observer in them, as a mount would put it there, and what the gate makes of their reports."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from interlock.gates.sealed.observe import Observation, with_observer
from interlock.gates.sealed.outcomes import TestCase, TestRun
from tests.gates.sealed.sealing import write

PROBES = Path(__file__).resolve().parents[3] / "gates" / "sealed" / "probes"
PYTHON = os.environ.get("OBSERVED_PYTHON", sys.executable)
"""The interpreter whose runners are observed, with pytest, xdist and coverage."""
SECONDS = 120
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
        timeout=SECONDS,
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


@cache
def _place(package: str) -> Path:
    code = f"import {package}; print({package}.__path__[0])"
    run = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True)
    return Path(run.stdout.strip())


def mount(folder: Path) -> Path:
    """Make copies of the packages of the runners, of which one file has a line more."""
    for package, inner in (("_pytest", "config"), ("unittest", "")):
        copy, real = folder / "packages" / package, _place(package)
        (copy / inner).mkdir(parents=True)
        for place in {real, real / inner}:
            for each in place.iterdir():
                target = copy / each.relative_to(real)
                if not target.exists() and each.name != "__pycache__":
                    target.symlink_to(each)
        target = copy / inner / "__init__.py"
        target.unlink()
        target.write_bytes(with_observer(os.fspath(real / inner / "__init__.py"), os.fspath(folder)))
    return folder / "packages"


def observe(
    root: Path, files: dict[str, str], *argv: str, unmounted: bool = False, env: Mapping[str, str] | None = None,
    **spec: Any,
) -> Observed:  # fmt: skip
    """Run a command of Python on files with observers in the runners."""

    def variables(folder: Path) -> Mapping[str, str]:
        place = folder / "probes" / "unmounted" if unmounted else mount(folder)
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return kept | {"PYTHONPATH": os.fspath(place), "PYTHONDONTWRITEBYTECODE": "1"} | dict(env or {})

    return watch(write(root, files), [PYTHON, *argv], variables, **spec)
