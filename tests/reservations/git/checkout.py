"""A real repository with two agents in it: `ann` holds files, `bob` is the one who might hurt her."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.reservations import place, settings
from interlock.reservations.answers import ReserveAnswer
from interlock.reservations.git.checkouts import unsaved
from interlock.reservations.git.hook_scripts import GIT_HOOKS, git_hook
from interlock.reservations.guard.check import check_command
from interlock.reservations.leases import calls
from interlock.reservations.leases.runtime import Caller, Context, Runtime
from interlock.reservations.store.sqlite import SqliteStore
from interlock.reservations.versions import watch
from tests.child import Ran

COMMAND = [sys.executable, "-m", "interlock"]


@dataclass
class Checkout:
    """A checkout with two agents in it."""

    root: Path

    @property
    def runtime(self) -> Runtime:
        found = place.find(str(self.root))
        store = SqliteStore(found.store_path)
        return Runtime(store, settings.read(found.root), is_running=lambda _host, _pid, _started: None, dirty=unsaved)

    def caller(self, name: str) -> Caller:
        return Caller(name, "agent", str(self.root), "cli")

    def agent(self, name: str) -> Context:
        return Context(self.runtime, self.caller(name))

    def reserve(self, name: str, *patterns: str, exclusive: bool = True, reason: str = "rewriting it") -> ReserveAnswer:
        answer = calls.reserve(self.agent(name), list(patterns), reason=reason, exclusive=exclusive)
        assert answer["errors"] == []
        watch.look_now(self.agent(name), place.find(str(self.root)))
        return answer

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the data of the queued events of a kind."""
        with self.runtime.store.transaction() as tx:
            return [json.loads(row.data) for row in tx.events(str(self.root), 500) if row.type == kind]

    def release(self, name: str) -> None:
        calls.release_all(self.agent(name))

    def env(self, name: str) -> dict[str, str]:
        """The environment of an agent; nothing of the developer's git or agent gets in."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "INTER", "CLAUDE"))}
        home = str(self.root.parent)
        who = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", name), ("EMAIL", f"{name}@example.org"))
        }
        own = {
            "INTERLOCK_STATE": os.environ["INTERLOCK_STATE"],
            "HOME": home,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_EDITOR": "true",
            "GIT_SEQUENCE_EDITOR": "true",
        }
        return kept | who | own | {"INTERLOCK_AGENT_ID": name}

    def git(self, name: str, *arguments: str, cwd: Path | None = None, data: bytes = b"") -> Ran:
        """Run git as an agent."""
        return self.run(name, "git", *arguments, cwd=cwd, data=data)

    def run(
        self, name: str, *command: str, cwd: Path | None = None, data: bytes = b"", env: Mapping[str, str] | None = None
    ) -> Ran:
        """Run any program as an agent."""
        done = subprocess.run(
            command,
            cwd=cwd or self.root,
            env=self.env(name) | dict(env or {}),
            input=data,
            capture_output=True,
            check=False,
            timeout=60,
        )
        return Ran(done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr))

    def must(self, name: str, *arguments: str, cwd: Path | None = None) -> str:
        """Run git as an agent; it has to work. Returns its output without the last newline."""
        done = self.git(name, *arguments, cwd=cwd)
        assert done.status == 0, (arguments, done)
        return done.out.removesuffix("\n")

    def guard(self, name: str, command: str, cwd: Path | None = None) -> str | None:
        """Ask the guard about a shell command, as the hook of the agent's client does."""
        return check_command(command, str(cwd or self.root), self.env(name))

    def write(self, path: str, text: str) -> None:
        """Write a file of the working tree."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def read(self, path: str) -> str:
        """Read a file of the working tree."""
        return (self.root / path).read_text()

    def branch(self) -> None:
        """Make the branches `theirs`, which changes ann.py, and `ours`, which changes bob.py."""
        for name, path in (("theirs", "ann.py"), ("ours", "bob.py")):
            self.must("bob", "switch", "-q", "-c", name, "main")
            self.write(path, f"{name}\n")
            self.must("bob", "commit", "-q", "-a", "-m", name)
        self.must("bob", "switch", "-q", "main")

    def install(self, command: Sequence[str] = COMMAND) -> None:
        """Install git's hooks, as they are installed for users."""
        for name in GIT_HOOKS:
            path = self.root / ".git" / "hooks" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(git_hook(name, command))
            path.chmod(0o755)

    def head(self, name: str = "HEAD") -> str:
        """Return a commit's id."""
        return self.must("bob", "rev-parse", name)

    def files_of(self, commit: str = "HEAD") -> set[str]:
        """Return the paths that a commit changes."""
        output = self.must("bob", "show", "--format=", "--name-only", "-z", "--no-renames", commit)
        return {path for path in output.split("\0") if path}

    def index(self) -> dict[str, str]:
        """Return the entries of the index: path to mode, object and stage."""
        rows = self.must("bob", "ls-files", "-s", "-z").split("\0")
        return {path: entry for row in rows if row for entry, _, path in (row.partition("\t"),)}


def copied(made: Checkout, folder: Path) -> Checkout:
    """Copy a repository that is not used itself: a tenth of the time that making it takes."""
    for source in made.root.parent.iterdir():
        if source.is_dir():
            shutil.copytree(source, folder / source.name, symlinks=True)
        else:
            shutil.copy(source, folder)
    return Checkout(folder / "project")


def make(folder: Path) -> Checkout:
    """Make a repository with one commit on `main`: `ann.py`, `bob.py`, `src/ann.py`, `src/bob.py`."""
    root = folder / "project"
    root.mkdir(parents=True)
    checkout = Checkout(root)
    checkout.must("bob", "init", "-q", "-b", "main")
    for path in ("ann.py", "bob.py", "src/ann.py", "src/bob.py"):
        checkout.write(path, f"{path} one\n")
    checkout.must("bob", "add", "-A")
    checkout.must("bob", "commit", "-q", "-m", "one")
    return checkout
