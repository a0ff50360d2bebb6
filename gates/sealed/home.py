"""HOME of the commands of a gate: of what `prepare` leaves there only caches of packages are left to the tests."""

import os
from collections.abc import Iterable
from typing import Final

from interlock.gates.sealed.export import remove_tree

_KEPT: Final = (
    ".cache", ".npm", ".cargo/registry", ".cargo/git", ".rustup", ".m2/repository", ".gradle/caches", "go/pkg/mod",
    ".local/share/uv", ".local/share/pnpm",
)  # fmt: skip
_DROPPED: Final = ".cache/go-build"
"""What was compiled from the work, and would be believed."""

ENVIRONMENT: Final = {"PYTHONNOUSERSITE": "1", "GOENV": "off"}
"""Variables by which programs do not look for packages and settings in HOME."""


def empty(home: str) -> None:
    """Empty a HOME, by its path outside, but for packages that were downloaded; links in it are not followed.

    Settings and start-up files there would steer later commands.
    """
    real = os.path.realpath(home)
    _strip(real, _KEPT)
    if os.path.isdir(path := f"{real}/{_DROPPED}") and os.path.realpath(path) == path:
        remove_tree(path)


def _strip(folder: str, kept: Iterable[str]) -> None:
    """Remove what lies in a folder, but for the folders at these paths below it."""
    os.chmod(folder, 0o700)
    for entry in [*os.scandir(folder)]:
        below = [rest for name, _, rest in (path.partition("/") for path in kept) if name == entry.name]
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)
        elif not below:
            remove_tree(entry.path)
        elif "" not in below:
            _strip(entry.path, below)
