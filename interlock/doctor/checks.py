"""The table of checks."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from interlock.doctor import entry_points, environment, storage
from interlock.doctor.report import Check, Report, Scene, fail
from interlock.install import InstallError
from interlock.reservations import place

CHECKS: Final[tuple[Check, ...]] = (
    Check("python", "Python is recent enough", "asks the interpreter", environment.python),
    Check("packages", "what Interlock needs is installed", "reads the package's metadata", environment.packages),
    Check("parser", "the guard can read shell commands", "loads the parser", environment.parser),
    Check("command", "`interlock` starts this installation", "looks on PATH", environment.command),
    Check("project", "the project is found, and git can read it", "looks upwards, asks git", environment.project),
    Check("around", "reservations of enclosing projects can be read", "looks upwards, asks SQLite", storage.around),
    Check("worktree", "which checkouts share the reservations", "asks git", environment.worktree),
    Check("settings", "the configuration is valid", "reads it", environment.configured),
    Check("switch", "the hooks are not switched off", "reads the environment", environment.switched),
    Check("isolation", "sealed gates are isolated", "makes namespaces once", environment.isolation),
    Check("agent", "every entry point is the same agent", "finds out the name as each of them does", environment.agent),
    Check("client", "the client's process is found", "looks through the ancestors of this process", environment.client),
    Check("sqlite", "which SQLite, and which journal", "asks the library", environment.sqlite),
    Check("store", "the store can be read and written", "looks at the file", storage.store),
    Check("schema", "the store is whole, its tables are known", "asks SQLite, without writing", storage.schema),
    Check("journaling", "the store's journal is safe here", "asks SQLite, without writing", storage.journaling),
    Check("clock", "the clock is sane", "compares it with the stored times", storage.clock),
    Check("leases", "no dead agent holds anything", "looks for the holders' processes", storage.leases),
    Check("outbox", "what happened reaches the journal", "counts what is queued", storage.outbox),
    Check("journal", "the journal is what was written", "verifies it", storage.journal),
    Check("notify", "people can be notified", "looks at [notify] and what was sent", storage.notify),
    Check("ignored", "git leaves alone what runs write", "asks git", storage.ignored),
    Check("server", "a client starts the server", "reads the clients' files", entry_points.server),
    *entry_points.HOOK_CHECKS,
    Check("on-failure", "an edit is refused when its hook cannot run", "reads the settings", entry_points.failing),
    Check(
        "git-hooks", "git asks before it commits and moves a branch", "looks where git looks", entry_points.git_hooks
    ),
    Check("chained", "earlier hooks of git still run", "looks at each file", entry_points.chained),
    Check("set-aside", "a commit leaves unstaged work on the disk", "looks for known programs", entry_points.set_aside),
    Check("latency", "the hook before an edit is quick", f"runs it {entry_points.TRIES} times", entry_points.latency),
)
"""What `interlock doctor` looks at, in this order."""


def scene(root: Path, env: Mapping[str, str] | None = None) -> Scene:
    """Return what is looked at.

    Raises:
        NoProject: `INTERLOCK_PROJECT` names no folder.
    """
    return Scene(root, place.find(str(root)), dict(os.environ if env is None else env), time.time())


def diagnose(where: Scene) -> list[tuple[Check, Report]]:
    """Run every check; none of them changes anything, and one that cannot do its work has failed."""
    found: list[tuple[Check, Report]] = []
    for check in CHECKS:
        try:
            found.append((check, check.run(where)))
        except InstallError as error:
            found.append((check, fail(error.message, error.fix)))
        except OSError as error:
            found.append(
                (check, fail(f"{error.filename or where.root}: {error.strerror}", "Check that you may read there."))
            )
    return found
