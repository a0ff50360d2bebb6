"""A checkout of a project with its dependencies, in which one piece of work after the other is laid out."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.real_repositories.projects import Project

SECONDS: Final = 900
"""The most that one command may take."""
IGNORED: Final = "__pycache__/\n*.egg-info/\n*.so\nbuild/\ncoverage/\nnode_modules/\n"
"""The `.gitignore` of a source archive that has none."""
WHO: Final = ("-c", "user.name=benchmark", "-c", "user.email=benchmark@example.com", "-c", "commit.gpgsign=false")


class UnavailableError(Exception):
    """A project cannot be tried here; the text says why."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended, what it printed, and the seconds that it took."""

    status: int
    output: str
    seconds: float


def run(argv: Sequence[str], root: Path, environment: Mapping[str, str] | None = None) -> Ended:
    """Run a program to its end; a status of -1 means that it did not end in time."""
    start = time.perf_counter()
    none, out, both = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
    try:
        it = subprocess.Popen(argv, cwd=root, env=environment, stdin=none, stdout=out, stderr=both, process_group=0)
    except FileNotFoundError:
        return Ended(127, f"there is no program {argv[0]}", 0.0)
    with it:
        try:
            output, _ = it.communicate(timeout=SECONDS)
            return Ended(it.returncode, output.decode(errors="replace"), time.perf_counter() - start)
        except subprocess.TimeoutExpired:
            os.killpg(it.pid, signal.SIGKILL)
            return Ended(-1, f"not ended after {SECONDS} seconds", time.perf_counter() - start)


def needed(argv: Sequence[str], root: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program that a project cannot be tried without, and return what it prints."""
    ended = run(argv, root, environment)
    if ended.status != 0:
        raise UnavailableError(f"`{' '.join(argv)}`: {ended.output.strip()[-400:]}")
    return ended.output


class Checkout:
    """A project with its dependencies; the branch `start` is what the fix was made on, `tests` has the fix's tests.

    Args:
        project: The project.
        root: Where it lies.
    """

    def __init__(self, project: Project, root: Path) -> None:
        self.project = project
        self.root = root
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        path = f"{root / '.venv/bin'}{os.pathsep}{os.environ['PATH']}" if project.python else os.environ["PATH"]
        self.environment = {**plain, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

    def git(self, *args: str) -> str:
        """Run git in it."""
        return needed(["git", *WHO, *args], self.root).strip()

    def command(self) -> Ended:
        """Run the project's command as a person would, with its environment active."""
        return run(self.project.argv, self.root, self.environment)

    def commit(self, branch: str) -> str:
        """Commit what is staged, name the commit, and return its hash."""
        self.git("commit", "-q", "--allow-empty", "-m", branch)
        self.git("branch", "-q", "-f", branch)
        return self.git("rev-parse", branch)

    def switch(self, commit: str) -> None:
        """Have the content of a commit, without anything that an earlier piece of work left."""
        self.git("checkout", "-q", "--force", "--detach", commit)
        self.git("clean", "-fdq", "-e", "*.egg-info")

    def read(self, path: str) -> str:
        """Read a file, which is empty if it is not there."""
        place = self.root / path
        return place.read_text(encoding="utf-8") if place.exists() else ""

    def write(self, path: str, text: str, *, append: bool = False) -> None:
        """Write a file, or add to it."""
        text = self.read(path) + text if append else text
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def replace(self, path: str, old: str, new: str) -> None:
        """Replace what stands in a file once."""
        if (times := self.read(path).count(old)) != 1:
            raise UnavailableError(f"{path} has `{old}` {times} times")
        self.write(path, self.read(path).replace(old, new))

    def take(self, commit: str, *, tests: bool) -> None:
        """Have the tests of the fix, or its other files, as they are in a commit."""
        folder = str(Path(self.project.test).parent)
        fix, there = self.project.fix, self.git("ls-tree", "-r", "--name-only", commit).splitlines()
        for path in self.git("diff", "--name-only", "--no-renames", f"{fix}^", fix).splitlines():
            if tests == (path == self.project.test or (folder != "." and path.startswith(f"{folder}/"))):
                take = ["checkout", "-q", commit] if path in there else ["rm", "-q", "--ignore-unmatch"]
                self.git(*take, "--", path)

    def fix(self) -> None:
        """Do the work, without its tests."""
        if self.project.wrong:
            self.replace(self.project.product, *reversed(self.project.wrong))
        else:
            self.take(self.project.fix, tests=False)
            self.git("reset", "-q")


def _unpack(project: Project, root: Path, downloads: Path) -> None:
    kind, _, release = project.source.partition(":")
    downloads.mkdir()
    name = release.partition("==")[0]
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", name, release]
    needed(pip if kind == "pypi" else ["npm", "pack", "--silent", release], downloads)
    archive = next(each for each in downloads.iterdir() if each.name.endswith((".tar.gz", ".tgz")))
    root.mkdir()
    needed(["tar", "-xf", str(archive), "--strip-components=1", "-C", str(root)], downloads)


def _base(checkout: Checkout, folder: Path, snapshots: Path | None) -> None:
    project, root = checkout.project, checkout.root
    if project.source.startswith("github:"):
        _, owner, name, *rest = re.split("[:/@]", project.source)
        places = [snapshots / each for each in (f"{owner}+{name}/repo", f"{owner}/{name}", name)] if snapshots else []
        snapshot = next((place for place in places if (place / "HEAD").exists() or (place / ".git").exists()), None)
        if snapshot is None:
            raise UnavailableError(f"there is no snapshot of {owner}/{name}")
        needed(["git", "clone", "-q", "--no-checkout", str(snapshot), str(root)], folder)
        checkout.switch(f"{project.fix}^" if project.fix else rest[0])
        checkout.commit("start")
        if project.fix:
            checkout.take(project.fix, tests=True)
    else:
        _unpack(project, root, folder / "download")
        checkout.git("init", "-q")
        if not checkout.read(".gitignore"):
            checkout.write(".gitignore", IGNORED)
    if project.wrong:
        checkout.replace(project.product, *project.wrong)
    checkout.git("add", "-A")
    checkout.commit("tests")
    if not project.source.startswith("github:"):
        checkout.git("branch", "-q", "start")


def _install(checkout: Checkout, folder: Path, python: str) -> None:
    project, root = checkout.project, checkout.root
    if project.python:
        needed([python, "-m", "venv", ".venv"], root)
        # As `venv` of Python 3.13, virtualenv and uv do.
        checkout.write(".venv/.gitignore", "*\n")
        pip = [".venv/bin/python", "-m", "pip", "install", "-q", "-e", ".", *project.install.split()]
        needed(pip, root, {**checkout.environment, "SETUPTOOLS_SCM_PRETEND_VERSION": "99.0"})
    elif project.template == "npm":
        # In a folder of its own, so that of what the project needs for development only these packages are installed.
        packages = folder / "packages"
        packages.mkdir()
        uses = json.loads(checkout.read("package.json")).get("dependencies", {})
        (packages / "package.json").write_text(json.dumps({"dependencies": uses}), encoding="utf-8")
        needed(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *project.install.split()], packages)
        if (packages / "node_modules").exists():
            (packages / "node_modules").rename(root / "node_modules")
    if project.setup:
        needed(shlex.split(project.setup), root, checkout.environment)


def bring(project: Project, folder: Path, snapshots: Path | None, python: str) -> Checkout:
    """Make a checkout in a folder of its own, with its dependencies; one that is there is used again."""
    checkout, done = Checkout(project, folder / "checkout"), folder / "installed"
    if not done.is_file() or done.read_text(encoding="utf-8") != repr(project):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _base(checkout, folder, snapshots)
        _install(checkout, folder, python)
        done.write_text(repr(project), encoding="utf-8")
    return checkout
