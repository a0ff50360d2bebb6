"""Which files of a project a caller with a token, who may not read its files, may know of.

These are what everybody who works in the project has: what git tracks, what it neither tracks nor ignores, and
evidence. Hidden, whether it is there or not: what git ignores, names that begin with a dot and are not tracked,
what Interlock and git keep, and everything that is reached by a link or lies outside of the root.
"""

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from interlock.envelope.protocol import EVIDENCE_KEYS
from interlock.gates.evidence import FOLDER
from interlock.gates.git_files import ignored_paths, tracked_paths
from interlock.gates.patterns import compile_scope
from interlock.gates.tree import left_out, paths_in_scope

EVIDENCE: Final = tuple(f"{FOLDER}/{key}/" for key in EVIDENCE_KEYS)
"""Where evidence lies; git ignores it in most projects, and those who judge it must know of it."""


def is_shared(root: str | Path, path: str) -> bool:
    """Return whether a path below the root is shared, whether something is there or not."""
    return bool(shared(root, (path,)))


def shared(root: str | Path, paths: Iterable[str]) -> frozenset[str]:
    """Return those of some paths, as they were given, relative to the root, that are shared."""
    base = os.path.realpath(root)
    # No symbolic link is on the way to one, or at it.
    places = {path: os.path.join(base, path) for path in paths if _is_plain(path)}  # noqa: PTH118
    # Whatever is asked after this lies where its name says.
    plain = [path for path, place in places.items() if os.path.realpath(place) == place]
    ignored = ignored_paths(base, [path for path in plain if not path.startswith(EVIDENCE)])
    seen = [path for path in plain if path not in ignored]
    dotted = [path for path in seen if "/." in f"/{path}"]
    # `.env` and its like are often neither tracked nor ignored, and hold keys.
    hidden = {*dotted} - {*tracked_paths(base, dotted)}
    return frozenset(path for path in seen if path not in hidden)


def hidden_count(paths: Collection[str]) -> str:
    """Return in words how many files there are that a caller may not know by name."""
    return f"{len(paths)} file{'s' * (len(paths) != 1)} that are not shown to you"


def reaches_more(root: str | Path, patterns: Iterable[str]) -> bool:
    """Return whether scope patterns name, or match, a file that is not shared."""
    rows = list(patterns)
    compile_scope(rows)
    named = {row.rstrip("/") for row in rows if not row.startswith("!") and not set("*?[{").intersection(row)}
    found = {*named, *paths_in_scope(root, rows)}
    return bool(found - shared(root, found))


def _is_plain(path: str) -> bool:
    """Return whether a path is written in the one way in which files of a project are: relative, without odd steps."""
    steps = path.split("/")
    if "\\" in path or ":" in steps[0] or path.startswith("~") or not path.isprintable():
        return False
    if {"", ".", ".."}.intersection(steps):
        return False
    # A file system may fold the case of names.
    folded = [step.casefold() for step in steps]
    is_kept = ".git" in folded or folded[0] in {".interlock", "artifacts"}
    return path.startswith(EVIDENCE) or not (left_out(path) or is_kept)
