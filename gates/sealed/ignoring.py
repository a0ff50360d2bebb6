"""What the `.gitignore` files of a base ignore: work that edits them does not make a build product a part of itself."""

import codecs
import re
from collections.abc import Callable
from functools import cache
from typing import Final

from pathspec import GitIgnoreSpec

from interlock.gates.sealed.base import LINK, Base

_SUBMODULE: Final = re.compile(r"^\s*path\s*=\s*(\S.*?)\s*$", re.MULTILINE)


def base_ignores(base: Base, free: Callable[[str], bool]) -> Callable[[str], bool]:
    """Return what says whether the base ignores a path relative to its top.

    Args:
        base: The base.
        free: Whether the work may change the rules of a `.gitignore` file, by its path relative to the top.
    """
    modules = (base.content(".gitmodules") or b"").decode("utf-8", "replace")
    inner = frozenset(_SUBMODULE.findall(modules))

    @cache
    def rules(folder: str) -> GitIgnoreSpec | None:
        path = f"{folder}.gitignore"
        entry = base.files.get(path)
        if entry is None or entry.mode == LINK or free(path):
            return None
        text = (base.content(path) or b"").removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
        return _spec(text.split("\n"))

    @cache
    def ignored(path: str) -> bool:
        above = path.rstrip("/").rpartition("/")[0]
        if above and ignored(f"{above}/"):
            return True
        if path.rstrip("/") in inner:
            return False
        folder = f"{above}/" if above else ""
        while True:
            spec = rules(folder)
            verdict = None if spec is None else spec.check_file(path[len(folder) :]).include
            if verdict is not None:
                return verdict
            if not folder or folder.rstrip("/") in inner:
                return False
            folder = folder.rstrip("/").rpartition("/")[0]
            folder += "/" if folder else ""

    return ignored


def _spec(lines: list[str]) -> GitIgnoreSpec:
    """Return the rules of some lines; one that is no pattern matches nothing, as with git."""
    try:
        return GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error):
        return GitIgnoreSpec.from_lines(line for line in lines if _is_pattern(line))


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True
