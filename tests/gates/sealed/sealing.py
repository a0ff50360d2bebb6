"""A small pytest project behind a sealed gate, for the tests of the whole gate."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from interlock.envelope.protocol import GateSpec
from interlock.gates.manifest import Collection
from interlock.gates.sealed import sandbox
from interlock.gates.sealed.case import GateCase
from interlock.gates.sealed.frozen import Frozen, freeze
from interlock.gates.sealed.gate import Work, run_sealed_gate
from interlock.gates.sealed.preflight import BaseCheck, check_base
from interlock.gates.sealed.settings import Seal
from tests.child import git
from tests.gates.support import BINDING

OWN = tuple(dict.fromkeys(os.path.realpath(name) for name in (sys.prefix, sys.base_prefix, f"{sys.prefix}/..")))
"""Where the Python of these tests, its packages and the package under test lie."""
PLAIN_PATH = "/usr/local/bin:/usr/bin:/bin"
COMMAND = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
WRONG = "def double(x):\n    return x + 2\n\n\ndef half(x):\n    return x / 2\n"
RIGHT = WRONG.replace("x + 2", "x * 2")
TESTS = """
import pytest
from src.calc import double, half

@pytest.mark.parametrize(("x", "expected"), [(2, 4), (5, 10), (-1, -2)])
def test_double(x, expected):
    assert double(x) == expected

def test_half():
    assert half(8) == 4
"""
FILES = {
    "src/calc.py": WRONG,
    "tests/test_calc.py": TESTS,
    "pytest.ini": "[pytest]\n",
    ".gitignore": "artifacts/\n.venv/\ndata.txt\n__pycache__/\n",
}


def write(root: Path, files: Mapping[str, str | None]) -> Path:
    """Write files below a folder, which is returned; None removes one."""
    for name, text in files.items():
        path = root / name
        if text is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def needs_namespaces() -> None:
    """Skip a test where commands cannot be isolated."""
    if sandbox.level() == "none":
        pytest.skip("no namespaces on this machine")


LEAN = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


@dataclass
class Sealed:
    """A project whose sealed gate can be run.

    Args:
        root: The project.
        seal: How its gate is sealed.
        command: The command of the gate.
        path: PATH of the run.
    """

    root: Path
    seal: Seal = field(default_factory=Seal)
    command: tuple[str, ...] = COMMAND
    path: str = PLAIN_PATH
    timeout_seconds: float = 60.0

    @cached_property
    def gate(self) -> GateSpec:
        return GateSpec(
            "GATE-TESTS", "x", None, ("reports",), check="command", grade="runner", command=self.command,
            timeout_seconds=self.timeout_seconds,
        )  # fmt: skip

    @cached_property
    def frozen(self) -> Frozen:
        """What the run froze, the first time that it is asked for."""
        return freeze(self.root, [(self.gate, self.seal)], path=self.path)

    @property
    def case(self) -> GateCase:
        return GateCase(self.gate, self.seal, self.frozen, self.root)

    @cached_property
    def base(self) -> BaseCheck:
        """The tests of the base, as a sealed run finds them."""
        return check_base(self.case, bare=False)

    def run(self, *scope: str, may_change: tuple[str, ...] = (), outside: tuple[str, ...] = ()) -> Collection:
        """Run the gate on the work as it is now."""
        work = Work(scope or ("src/**",), may_change, outside)
        case = replace(self.case, bytecode=self.base.bytecode)
        return run_sealed_gate(case, work, self.base.tests, binding=BINDING)

    def header(self, made: Collection) -> dict[str, Any]:
        """Return the header of the log."""
        return json.loads((self.root / made.files[0].path).read_bytes().partition(b"\n")[0])

    def log(self, made: Collection) -> str:
        """Return what the command printed."""
        return (self.root / made.files[0].path).read_bytes().partition(b"\n")[2].decode()

    def with_seal(self, **settings: Any) -> "Sealed":
        """Return the same project and base with other settings, which do not change what the base comes to."""
        made = Sealed(self.root, replace(self.seal, **settings), self.command, self.path, self.timeout_seconds)
        made.frozen = freeze(self.root, [(self.gate, made.seal)], base=self.case.base, path=self.path)
        made.base = self.base
        return made

    def printed(self, code: str, **env: str) -> str:
        """Return what the command prints when the product is right and begins with this code."""
        write(self.root, {"src/calc.py": code + RIGHT})
        asking = self.with_seal(env={**LEAN, **env, "PYTEST_ADDOPTS": "-s"})
        made = asking.run()
        assert made.ok
        return asking.log(made)

    def reset(self, files: Mapping[str, str]) -> None:
        """Let the project have these files and no others."""
        for path in self.root.iterdir():
            if path.is_dir() and not path.is_symlink():
                if path.name != ".git":
                    shutil.rmtree(path)
            else:
                path.unlink()
        write(self.root, files)


def make(root: Path, files: Mapping[str, str] = FILES, **settings: Any) -> Sealed:
    """Make a project and freeze its base."""
    write(root, files)
    git(root, "init", "-q", ".")
    command = settings.pop("command", COMMAND)
    path, seconds = settings.pop("path", PLAIN_PATH), settings.pop("timeout_seconds", 60.0)
    settings.setdefault("env", LEAN)
    made = Sealed(root, Seal(**settings), command, path, seconds)
    assert made.frozen
    return made


def codes(made: Collection) -> list[str]:
    """Return the codes of the findings, each once."""
    return list(dict.fromkeys(finding.code for finding in made.findings))
