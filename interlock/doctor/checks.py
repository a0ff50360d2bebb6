"""The table of checks."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from interlock.doctor import entry_points, here, stored
from interlock.doctor.report import Check, Report, Scene, fail
from interlock.install import InstallError
from interlock.reservations import place

CHECKS: Final[tuple[Check, ...]] = (
    Check("python", "Python is recent enough", "asks the interpreter", here.python),
    Check("packages", "everything that Interlock needs is installed", "reads the package's metadata", here.packages),
    Check("parser", "the guard can read shell commands", "loads the parser", here.parser),
    Check("command", "`interlock` starts this installation", "looks on PATH", here.command),
    Check("project", "the project is found, and git can read it", "looks upwards, asks git", here.project),
    Check("around", "what is held further up can be read", "looks upwards, asks SQLite", stored.around),
    Check("worktree", "which checkouts share the reservations", "asks git", here.worktree),
    Check("settings", "the configuration is valid", "reads it", here.configured),
    Check("switch", "the hooks are not switched off", "reads the environment", here.switched),
    Check("isolation", "sealed gates are isolated", "makes namespaces once", here.isolation),
    Check("agent", "every entry point is the same agent", "finds out the name as each of them does", here.agent),
    Check("client", "the client's process is found", "looks through the ancestors of this process", here.client),
    Check("sqlite", "which SQLite, and which journal", "asks the library", here.sqlite),
    Check("store", "the store can be read and written", "looks at the file", stored.store),
    Check("schema", "the store is whole, its tables are known", "asks SQLite, without writing", stored.schema),
    Check("journaling", "the store's journal is safe here", "asks SQLite, without writing", stored.journaling),
    Check("clock", "the clock is sane", "compares it with the stored times", stored.clock),
    Check("leases", "nobody dead holds anything", "looks for the holders' processes", stored.leases),
    Check("outbox", "what happened reaches the journal", "counts what is queued", stored.outbox),
    Check("journal", "the journal is what was written", "verifies it", stored.journal),
    Check("notify", "people can be told what happens", "looks at [notify] and what was sent", stored.notify),
    Check("ignored", "git leaves alone what runs write", "asks git", stored.ignored),
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
