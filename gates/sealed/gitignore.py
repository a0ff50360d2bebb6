"""What the `.gitignore` files of a base ignore: work that edits them does not make a build product a part of itself."""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

from pathspec import GitIgnoreSpec

from interlock.gates.sealed.base import LINK, Base
from interlock.gates.sealed.listing import ignore_rules

_SUBMODULE: Final = re.compile(r"^\s*path\s*=\s*(\S.*?)\s*$", re.MULTILINE)


def base_ignores(base: Base, free: Callable[[str], bool]) -> Callable[[str], bool]:
    """Return a function that says whether the base ignores a path relative to its top.

    `free` returns whether the work may change the rules of a `.gitignore` file.
    """
    modules = (base.content(".gitmodules") or b"").decode("utf-8", "replace")
    inner = frozenset(_SUBMODULE.findall(modules))

    @cache
    def rules(folder: str) -> GitIgnoreSpec | None:
        path = f"{folder}.gitignore"
        entry = base.files.get(path)
        if entry is None or entry.mode == LINK or free(path):
            return None
        return ignore_rules(path, base.content(path) or b"")

    @cache
    def matched(path: str) -> bool:
        """Return what the rules nearest to a path, of its own repository, say of it."""
        folder = path.rstrip("/")
        if folder in inner:
            return False
        while folder and (folder := folder.rpartition("/")[0]) not in inner:
            spec = rules(f"{folder}/" if folder else "")
            verdict = None if spec is None else spec.check_file(path[len(folder) + bool(folder) :]).include
            if verdict is not None:
                return verdict
        return False

    def ignored(path: str) -> bool:
        ends = [at + 1 for at, character in enumerate(path) if character == "/"]
        return any(matched(path[:end]) for end in (*ends, len(path)))

    return ignored
