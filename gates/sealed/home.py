"""HOME of the commands of a gate: of what `prepare` leaves there only caches of packages are left to the tests."""

import os
from typing import Final

from interlock.gates.sealed.export import remove_tree

_KEPT: Final = (
    ".cache", ".npm", ".cargo/registry", ".cargo/git", ".rustup", ".m2/repository", ".gradle/caches", "go/pkg/mod",
    ".local/share/uv", ".local/share/pnpm",
)  # fmt: skip
_DROPPED: Final = (".cache/go-build",)
"""What was compiled from the work, and would be believed."""

ENVIRONMENT: Final = {"PYTHONNOUSERSITE": "1", "GOENV": "off"}
"""Variables by which programs do not look for packages and settings in HOME."""


def empty(home: str) -> None:
    """Empty a HOME but for packages that were downloaded: settings and start-up files there would steer later commands.

    Args:
        home: Its path outside; links in it are not followed.
    """
    real, old = os.path.realpath(home), f"{home}.old"
    for name in _DROPPED:
        if _is_folder(real, name):
            remove_tree(f"{real}/{name}")
    os.rename(home, old)
    os.mkdir(home)
    for name in _KEPT:
        if _is_folder(f"{real}.old", name):
            os.makedirs(os.path.dirname(f"{home}/{name}"), exist_ok=True)
            os.rename(f"{old}/{name}", f"{home}/{name}")
    remove_tree(old)


def _is_folder(home: str, name: str) -> bool:
    path = f"{home}/{name}"
    return os.path.isdir(path) and os.path.realpath(path) == path
