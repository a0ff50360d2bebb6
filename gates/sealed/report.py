"""The report of a test command in an export, which tested code may have turned into anything."""

import os
from contextlib import suppress
from pathlib import Path

from interlock.gates.sealed.base import LINK, read_entry
from interlock.gates.sealed.errors import SealError


def report_place(export: Path, path: str) -> str:
    """Return where a report lies, as Interlock sees it; nothing where links lead out of the export on the way.

    Args:
        export: The folder of the export.
        path: The report, relative to its top.
    """
    place, top = os.path.normpath(export / path), os.path.realpath(export)
    return place if f"{os.path.realpath(os.path.dirname(place))}/".startswith(f"{top}/") else ""


def read_report(place: str, export: Path, most: int) -> bytes:
    """Read a report; nothing where there is none, it is a link or larger than it may be, or links lead out to it."""
    inside = not place.startswith(f"{export}/") or report_place(export, os.path.relpath(place, export))
    with suppress(SealError, OSError):
        if place and inside and os.lstat(place).st_size <= most:
            entry, data = read_entry(Path(place).parent, os.path.basename(place))
            return data if entry.mode != LINK else b""
    return b""
