"""The table of checks: what should be so, and what to do when it is not."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from interlock.doctor import hooks, project
from interlock.doctor.installed import TITLES
from interlock.doctor.report import Check, Report, Scene, fail
from interlock.install import InstallError
from interlock.install.clients import EVENTS
from interlock.reservations import place

_BUBBLEWRAP: Final = "Install bubblewrap (`apt-get install bubblewrap`), or allow it to make user namespaces."
_GIT_INIT: Final = "Run `git init`, or continue without: git's own commands are then unguarded."
_EMPTY: Final = "Move the file away to begin with an empty store; the leases and messages in it are lost."
_IGNORE: Final = (
    "Write `artifacts/` and `tickets/` into .gitignore: `git clean` and `git stash` take what is left lying."
)

CHECKS: Final[tuple[Check, ...]] = (
    Check("command", "`interlock` starts this installation", "Remove one of them from PATH.", project.command),
    Check("isolation", "sealed gates are isolated", _BUBBLEWRAP, project.isolation),
    Check("project", "the project is found, and git can read it", _GIT_INIT, project.project),
    Check("settings", "the configuration is valid", "Fix it.", project.configured),
    Check("switch", "the hooks are not switched off", "Unset INTERLOCK_HOOKS.", project.switched),
    Check("store", "the reservations can be read", _EMPTY, project.store),
    Check("ignored", "git leaves alone what runs write", _IGNORE, project.ignored),
    Check("server", "a client starts the server", hooks.RENEW, hooks.server),
    *(
        Check(
            f"hooks-{client}",
            f"{TITLES[client]} asks before each edit",
            hooks.RENEW,
            partial(hooks.client_hooks, client),
        )
        for client in EVENTS
    ),
    Check("git-hooks", "git asks before it commits and moves a branch", hooks.RENEW, hooks.git_hooks),
)
"""What `interlock doctor` looks at, in this order."""


def scene(root: Path, env: Mapping[str, str] | None = None) -> Scene:
    """Return what is looked at.

    Raises:
        NoProject: `INTERLOCK_PROJECT` names no folder.
    """
    return Scene(root, place.find(str(root)), dict(os.environ if env is None else env))


def diagnose(where: Scene) -> list[tuple[Check, Report]]:
    """Run every check; none of them changes anything, and one that cannot do its work has failed."""
    found: list[tuple[Check, Report]] = []
    for check in CHECKS:
        try:
            report = check.run(where)
        except InstallError as error:
            report = fail(error.message, error.fix)
        # A check that cannot look is a failure of its own, and the others are still worth reading.
        except OSError as error:
            place_of_error = error.filename or where.root
            report = fail(f"{place_of_error}: {error.strerror}", "Check that you may read there.")
        found.append((check, report))
    return found
