"""Reservations of callers with a token: what such a caller is not told of is held by its name alone."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from interlock.gates.git_files import is_tracked
from interlock.gates.shared import is_shared, shared
from interlock.reservations import Runtime, replace

_COMMONS = (".git", ".interlock")


def without_sight(runtime: Runtime) -> Runtime:
    """Return a runtime for one call of a caller with a token: nothing is looked up that such a caller is not told of.

    Whether a path is hidden is known by its name and the rules of git alone, whether or not anything is there. Such a
    path is neither file nor folder: its lease holds it as both.
    """

    @cache
    def is_told(root: str, path: str) -> bool:
        # A rule such as `build/` speaks of folders alone; whether there is one is not to be told.
        asked = (path, f"{path}/_")
        return len(shared(root, asked)) == len(asked) or is_led_to(root, path)

    def is_led_to(root: str, path: str) -> bool:
        """Return whether a link that git tracks leads to what the caller is told of."""
        steps = path.split("/")
        ways = (Path(root, *steps[:count]) for count in range(1, len(steps) + 1))
        link = next((way for way in ways if way.is_symlink()), None)
        if link is None or not is_tracked(root, link.relative_to(root).as_posix()):
            return False
        name = runtime.real(root, path)[-1]
        return name != path and is_told(root, name)

    def is_folder(root: str, path: str) -> bool | None:
        if path.split("/", 1)[0] in _COMMONS:
            return False  # refused as it stands
        return runtime.is_folder(root, path) if is_told(root, path) else None

    def exists(root: str, path: str) -> bool:
        return is_told(root, path) and runtime.exists(root, path)

    def real(root: str, path: str) -> Sequence[str]:
        return runtime.real(root, path) if is_told(root, path) else (path,)

    def nested(root: str, path: str) -> str:
        folder = runtime.nested(root, path)
        return folder if folder and is_shared(root, folder) else ""

    return replace(runtime, is_folder=is_folder, exists=exists, real=real, nested=nested)
