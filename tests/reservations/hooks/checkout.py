"""A git checkout, and agents in it whose clients call the hooks as processes."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.reservations import place
from interlock.reservations.git.commands import dirty
from interlock.reservations.leases.runtime import Caller, Runtime
from interlock.reservations.service import Reservations
from interlock.reservations.settings import Settings
from interlock.reservations.store.records import Event, Lease, Message
from interlock.reservations.store.sqlite import SqliteStore
from tests import child
from tests.child import environment, git

HOOK = (str(Path(sys.executable).with_name("interlock")), "hook")
"""The console script, as a client's settings name it."""


class Ran(child.Ran):
    """What one hook did."""

    @property
    def context(self) -> str:
        """The message to the agent; empty for silence."""
        return json.loads(self.out)["hookSpecificOutput"]["additionalContext"] if self.out else ""


@dataclass(frozen=True)
class Checkout:
    """A project with a store.

    Args:
        root: Its folder.
    """

    root: Path

    def hook(self, name: str, data: dict[str, Any] | bytes, *argv: str, cwd: Path | None = None, **env: str) -> Ran:
        """Run one hook as a client does."""
        text = data if isinstance(data, bytes) else json.dumps(data).encode()
        command = (*HOOK, name, *argv)
        done = subprocess.run(
            command, input=text, cwd=cwd or self.root, env=environment(**env), capture_output=True, check=False
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def edit(self, session: str, path: str | Path, *, cwd: Path | None = None, **env: str) -> Ran:
        """Let a session's client ask before it edits."""
        return self.hook("pre-edit", self.call(session, "Edit", {"file_path": str(path)}, cwd), cwd=cwd, **env)

    def call(
        self, session: str, tool: str, arguments: object, cwd: Path | None = None, **more: object
    ) -> dict[str, Any]:
        """Return what a client says before a tool."""
        said = self.event(session, "PreToolUse", tool_name=tool, tool_input=arguments, tool_use_id="toolu_1")
        return {**said, "cwd": str(cwd or self.root), **more}

    def event(self, session: str, name: str, **more: object) -> dict[str, Any]:
        """Return what a client says about its session."""
        return {"session_id": session, "cwd": str(self.root), "hook_event_name": name, **more}

    @property
    def runtime(self) -> Runtime:
        return Runtime(SqliteStore(place.find(str(self.root)).store_path), Settings(), dirty=dirty)

    def agent(self, name: str) -> Reservations:
        """Return the calls of an agent, as its server makes them; its process is this one."""
        return Reservations(self.runtime, Caller(name, "agent", str(self.root), "mcp"))

    @property
    def leases(self) -> dict[str, str]:
        """Pattern to holder."""
        return {lease.pattern: lease.agent for lease in self.rows()}

    def rows(self) -> list[Lease]:
        with self.runtime.store.transaction() as tx:
            return tx.leases()

    def messages(self, agent: str, topic: str) -> list[Message]:
        with self.runtime.store.transaction() as tx:
            return [row for row in tx.inbox(agent, after=0, unread_only=False, limit=100) if row.topic == topic]

    def events(self, kind: str) -> list[Event]:
        with self.runtime.store.transaction() as tx:
            return [row for row in tx.events(str(self.root), 1000) if row.type == kind]


def make(root: Path) -> Checkout:
    """Make a git checkout with one commit."""
    (root / "src").mkdir(parents=True)
    (root / "src" / "c.py").write_text("first\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return Checkout(root)


def with_library(checkout: Checkout) -> Checkout:
    """Make a submodule `lib` of a checkout, and return it."""
    origin = make(checkout.root.parent / "origin")
    git(checkout.root, "submodule", "add", "-q", str(origin.root), "lib")
    git(checkout.root, "commit", "-qm", "lib")
    return Checkout(checkout.root / "lib")
