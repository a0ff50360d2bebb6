"""A throw-away project for a conflict that is real: a checkout and a store of its own, and somebody who holds a file.

The programs of the true project are started as they are configured there, with `INTERLOCK_PROJECT` naming the scratch
checkout. So nothing of the true project is touched, and nothing is left behind, whatever happens in between.
"""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interlock.core.project import PROJECT
from interlock.install.githooks import PROBE
from interlock.reservations import Caller, Reservations, Runtime, SqliteStore, identity, place, settings
from interlock.reservations.git import commands as git

SECONDS: Final = 60.0
"""How long one door may take to answer."""

CONFIGURATION: Final = ("interlock.toml", "pyproject.toml")
"""What the doors read in a project; a copy of it counts in the scratch checkout."""

_RELAY: Final = """
import subprocess, sys
try:
    sys.exit(subprocess.run(sys.argv[1:]).returncode)
except OSError as error:
    print(f"{error.filename}: {error.strerror}", file=sys.stderr)
    sys.exit(127)
"""
"""Stands between this program and a door, as a client does: the door works for this process and for no real client."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a program said. The status is 124 when it did not end in time, 127 when it could not be started."""

    status: int
    out: str
    err: str

    @property
    def first(self) -> str:
        """The first line that says something."""
        lines = (line.strip() for line in f"{self.err}\n{self.out}".splitlines())
        return next((line[:200] for line in lines if line), "no word")


@dataclass(frozen=True, slots=True)
class Scratch:
    """The throw-away project.

    Args:
        root: Its checkout.
        home: The true project.
        file: The path that is held, relative to the checkout; it exists there, unchanged.
        holder: Who holds it.
        env: The environment of the programs that are tried.
        named: What makes them those of somebody else in this checkout; no entry of a client may undo it.
    """

    root: Path
    home: Path
    file: str
    holder: str
    env: Mapping[str, str]
    named: Mapping[str, str]

    def run(self, words: Sequence[str], *, cwd: Path, stdin: str = "", env: Mapping[str, str] | None = None) -> Said:
        """Run a program of somebody else who meets the holder."""
        try:
            done = subprocess.run(
                [sys.executable, "-c", _RELAY, *words], cwd=cwd, input=stdin.encode(), capture_output=True,
                timeout=SECONDS, check=False, env={**self.env, **(env or {}), **self.named},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Said(124, "", f"no answer within {SECONDS:g} s")
        return Said(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))

    def git(self, *words: str) -> Said:
        """Run git in the scratch checkout, as somebody else."""
        return self.run(["git", *words], cwd=self.root)


@contextmanager
def planted(home: Path, env: Mapping[str, str]) -> Generator[Scratch]:
    """Make the project, and let somebody hold a file in it; all of it is gone afterwards.

    Raises:
        OSError: There is no room for it, or no git.
        GitError: Git cannot make it.
        ReservationError: The project's settings are wrong.
    """
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="interlock-probe-")))
    try:
        number = secrets.token_hex(4)
        named = {PROJECT: str(folder), identity.NAMES[0]: f"probe-{number}-asker", PROBE: "1"}
        file, holder = f".interlock-probe/{number}.txt", f"probe-{number}-holder"
        scratch = Scratch(folder, home, file, holder, {**_clean(env), "CLAUDE_PROJECT_DIR": str(home)}, named)
        _make(scratch)
        _hold(scratch)
        yield scratch
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _clean(env: Mapping[str, str]) -> dict[str, str]:
    """Leave out what names another agent, another repository, or git's habits of this user."""
    named = {*identity.NAMES, identity.EXPORTED, identity.SESSION, "CLAUDE_ENV_FILE"}
    kept = {name: value for name, value in git.environment(env).items() if name not in named}
    who = {f"GIT_{role}_{part}": "interlock-probe" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    return {**kept, **who}


def _make(scratch: Scratch) -> None:
    """Make a checkout with two branches: `topic` changes another file, and `main` the one that will be held."""
    root = scratch.root
    for name in CONFIGURATION:
        if (scratch.home / name).is_file():
            shutil.copy(scratch.home / name, root / name)
    git.ask(str(root), ["init", "-q", "--template=", "-b", "main"])
    hooks = root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for key, value in (("core.hooksPath", str(hooks)), ("commit.gpgsign", "false"), ("core.autocrlf", "false")):
        git.ask(str(root), ["config", key, value])
    path = root / scratch.file
    path.parent.mkdir()
    path.write_text("one\n")
    _step(scratch, "add", "-f", "-A")
    _step(scratch, "commit", "-q", "-m", "first")
    _step(scratch, "checkout", "-q", "-b", "topic")
    (root / "other.txt").write_text("other\n")
    _step(scratch, "add", "-f", "other.txt")
    _step(scratch, "commit", "-q", "-m", "topic")
    _step(scratch, "checkout", "-q", "main")
    path.write_text("two\n")
    _step(scratch, "commit", "-q", "-a", "-m", "second")


def _step(scratch: Scratch, *words: str) -> None:
    done = scratch.git(*words)
    if done.status:
        raise git.GitError(f"git {words[0]} failed in a new repository: {done.first}", "See `git help`.", done.status)


def _hold(scratch: Scratch) -> None:
    """Let the holder have the file; a person, who is never silent, without a process that could end."""
    common = str(scratch.root / ".git")
    store = SqliteStore(os.path.join(common, "interlock", place.STORE))  # noqa: PTH118 - the store has texts
    try:
        runtime = Runtime(store, settings.read(str(scratch.root)))
        holder = Caller(scratch.holder, "person", str(scratch.root), "cli")
        answer = Reservations(runtime, holder).reserve_files([scratch.file], reason="interlock doctor --prove")
    finally:
        store.close()
    if answer["errors"]:
        raise RuntimeError(answer["errors"][0]["message"])
