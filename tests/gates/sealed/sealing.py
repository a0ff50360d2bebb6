"""A small project behind a sealed gate, and the environment that such projects share."""

import os
import shutil
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest

from interlock.envelope.protocol import GateSpec
from interlock.gates.sealed import sandbox
from interlock.gates.sealed.base import BaseCheck, bytecode_folder, check_base
from interlock.gates.sealed.case import Frozen, GateCase, freeze
from interlock.gates.sealed.gate import SealedRun, Work, judge
from interlock.gates.sealed.settings import Seal
from interlock.gates.sealed.store import Store
from tests.child import git

PATH = "/usr/local/bin:/usr/bin:/bin"
COMMAND = (".venv/bin/pytest", "-q")
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
    "pytest.ini": "[pytest]\npythonpath = .\n",
    ".gitignore": "artifacts/\n.venv\ndata.txt\n__pycache__/\n",
}
PACKAGES = ("pytest", "pluggy", "iniconfig", "packaging", "pygments", "pytest-xdist", "execnet", "coverage")
SCRIPTS = {"pytest": "from pytest import console_main as main", "coverage": "from coverage.cmdline import main"}


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


@cache
def environment() -> Path:
    """Make an environment with pytest, xdist and coverage, once for all tests; copied from the one of these tests."""
    folder = Path(os.environ["INTERLOCK_STATE"]).parent / "environment"
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    for name in PACKAGES:
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        for file in found.files or ():
            if not {"..", "__pycache__"} & {*file.parts}:
                (packages / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(found.locate_file(file)), packages / file)
    for name, text in SCRIPTS.items():
        script = folder / "bin" / name
        script.write_text(f"#!{folder}/bin/python\nimport sys\n{text}\nsys.exit(main())\n", "utf-8")
        script.chmod(0o755)
    return folder


_RECORDED: list[Path] = []
"""The store that recorded the environment first: hashing an interpreter for each project takes a second."""


def project(root: Path, files: Mapping[str, str] = FILES, *command: str, **settings: Any) -> "Sealed":
    """Make a git checkout with an environment, which is a link, and freeze it as the base of a gate."""
    write(root, {".gitignore": FILES[".gitignore"], **files})
    git(root, "init", "-q", ".")
    if not (root / ".venv").exists():
        (root / ".venv").symlink_to(environment())
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Base")
    kept = Store(root).folder / "kept"
    if _RECORDED:
        # What was accepted there is of another project.
        shutil.copytree(_RECORDED[0], kept, ignore=shutil.ignore_patterns("*.json"))
    made = Sealed(root, command or COMMAND, Seal(**settings))
    assert made.frozen
    _RECORDED[:] = _RECORDED or [kept]
    return made


@dataclass
class Sealed:
    """A project whose sealed gate can be run."""

    root: Path
    command: tuple[str, ...] = COMMAND
    seal: Seal = field(default_factory=Seal)
    timeout_seconds: float = 60.0
    trust: bool = False

    @cached_property
    def gate(self) -> GateSpec:
        return GateSpec(
            "GATE-TESTS",
            "x",
            None,
            ("reports",),
            check="command",
            grade="runner",
            command=self.command,
            timeout_seconds=self.timeout_seconds,
        )

    @cached_property
    def frozen(self) -> Frozen:
        """What the run froze, the first time that it is asked for."""
        return freeze(self.root, [(self.gate, self.seal)], path=PATH, trust=self.trust)

    @cached_property
    def case(self) -> GateCase:
        return GateCase(self.gate, self.seal, self.frozen, Path(os.path.realpath(self.root)))

    @cached_property
    def check(self) -> BaseCheck:
        """The tests of the base, as a sealed run finds them."""
        return check_base(self.case)

    def put(self, work: Mapping[str, str | None]) -> None:
        """Let the checkout be the base with some work over it."""
        git(self.root, "clean", "-fdxq", "-e", ".venv")
        git(self.root, "checkout", "-q", "-f", "HEAD", "--", ".")
        write(self.root, work)

    def judge(self, work: Mapping[str, str | None], *scope: str, **more: Any) -> SealedRun:
        """Judge the base with some work over it; by default all of it is in the scope."""
        assert [str(fault) for fault in self.check.faults] == []
        self.put(work)
        return judge(self.case, Work(scope or ("**",), **more), self.check)

    def with_seal(self, **settings: Any) -> "Sealed":
        """Return the same project and base with other settings, which do not change what the base comes to."""
        made = Sealed(self.root, self.command, replace(self.seal, **settings), self.timeout_seconds)
        made.frozen = freeze(self.root, [(made.gate, made.seal)], base=self.frozen.base, path=PATH)
        made.check = self.check
        if bytecode_folder(made.case) != bytecode_folder(self.case):
            shutil.copytree(bytecode_folder(self.case), bytecode_folder(made.case), dirs_exist_ok=True)
        return made


def kinds(run: SealedRun) -> list[str]:
    """Return the kinds of the faults, each once."""
    return list(dict.fromkeys(fault.code for fault in run.faults))


def needs_namespaces() -> None:
    """Skip a test where commands cannot be isolated."""
    if sandbox.level() == "none":
        pytest.skip("no namespaces on this machine")


def no_namespaces(patch: pytest.MonkeyPatch) -> None:
    """Let commands run without namespaces, as on a machine that has none."""
    patch.setattr(sandbox, "level", lambda: "none")


PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"
