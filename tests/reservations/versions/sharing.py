"""A checkout that two agents share: `ann` holds files with unsaved work, `bob` runs commands beside her.

The hooks of both are called in this process, as their clients would; what the commands do is done by the tests.
"""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from interlock.reservations import place
from interlock.reservations.git.commands import dirty
from interlock.reservations.leases import calls
from interlock.reservations.leases.runtime import Caller, Context, Runtime
from interlock.reservations.store.records import Message
from interlock.reservations.store.sqlite import SqliteStore
from interlock.reservations.versions import store, watch
from interlock.reservations.versions.store import Version
from tests.child import git

WORK = "ann's unsaved work\n"


@dataclass
class Sharing:
    """A checkout; `root` is its top."""

    root: Path

    @property
    def found(self) -> place.Place:
        """The project."""
        return place.find(str(self.root))

    def context(self, name: str, root: Path | None = None) -> Context:
        """Return the agent as its hook opens it."""
        found = place.find(str(root or self.root))
        runtime = Runtime(SqliteStore(found.store_path), dirty=dirty)
        return Context(runtime, Caller(name, "agent", found.root, "hook"))

    def hold(self, *paths: str, by: str = "ann", root: Path | None = None) -> None:
        """Let an agent reserve files by its hook, and save work in them."""
        for path in paths:
            assert calls.reserve(self.context(by, root), [path])["errors"] == []
            target = (root or self.root) / path
            if "*" not in path:
                self.edit(by, target, WORK, root=root)

    def edit(self, name: str, target: Path, text: str, *, root: Path | None = None) -> None:
        """Let an editing tool of an agent write a file."""
        self.before(name, tool="Write", paths=[str(target)], writes=text, root=root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        self.after(name, tool="Write", root=root)

    def before(
        self,
        name: str,
        use: str = "",
        tool: str = "Bash",
        paths: Sequence[str] = (),
        writes: str | None = None,
        root: Path | None = None,
    ) -> list[str]:
        """Let the hook before a tool look."""
        ctx = self.context(name, root)
        edit = None if writes is None else {"content": writes}
        event = watch.Began(f"session-{name}", use or name, tool, tuple(paths), edit=edit)
        return watch.look_now(ctx, place.find(str(root or self.root)), event)

    def after(
        self, name: str, use: str = "", tool: str = "Bash", *, failed: bool = False, root: Path | None = None
    ) -> list[str]:
        """Let the hook after a tool look."""
        event = watch.Ended(f"session-{name}", use or name, tool, failed=failed)
        return watch.look_now(self.context(name, root), place.find(str(root or self.root)), event)

    def run(self, act: Callable[[], object], by: str = "bob", root: Path | None = None) -> list[str]:
        """Let an agent run a command; return what its hook says afterwards."""
        self.before(by, root=root)
        act()
        return self.after(by, root=root)

    def shell(self, line: str, by: str = "bob") -> list[str]:
        """Let an agent run a line of the shell."""
        return self.run(
            lambda: subprocess.run(["bash", "-c", line], cwd=self.root, capture_output=True, check=False), by
        )

    def read(self, path: str) -> str:
        """Return what a file holds."""
        return (self.root / path).read_text()

    def told(self, name: str) -> list[Message]:
        """Return what an agent was told of its files."""
        with SqliteStore(self.found.store_path).transaction() as tx:
            rows = tx.inbox(name, after=0, unread_only=False, limit=100)
        return [row for row in rows if row.topic == watch.NOTICE]

    def versions(self, path: str = "") -> list[Version]:
        """Return what is kept of a file, the newest first."""
        with store.opened(self.found).transaction() as tx:
            return tx.versions(path)

    def kept(self, version: Version) -> str:
        """Return the content of a version."""
        with store.opened(self.found).transaction() as tx:
            return tx.content(version.seen.digest).decode()


def make(root: Path) -> Sharing:
    """Make a checkout with one commit: `ann.py`, `bob.py`, `src/ann.py`, an ignored `.env` and a program."""
    (root / "src").mkdir(parents=True)
    for path in ("ann.py", "bob.py", "src/ann.py", "src/bob.py"):
        (root / path).write_text(f"{path} one\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / ".gitignore").write_text(".env\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    return Sharing(root)
