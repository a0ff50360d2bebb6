"""Files that appear while tests run, where a program that a test starts would load them by itself.

A process of the tested code can put a module beside a helper of the tests that is run as a program: it is imported in
place of the library's. What only holds data is left alone, for tests write such files.
"""

import re
import sys
from collections.abc import Collection, Iterable
from typing import Final

from interlock.gates.sealed.protect import CODE, kind_of

_LOADED: Final = CODE | {"pth", "dll", "dylib", "class", "jar"}
_BY_STEM: Final = frozenset({"js", "cjs", "mjs", "jsx", "ts", "cts", "mts", "tsx", "json", "node"})
"""Endings that node leaves out: it loads `check` before `check.js`, and `check.json` before the folder `check`."""
_INDEX: Final = re.compile(r"index\.\w+|package\.json")
_TEMPORARY: Final = re.compile(r"tmp[a-z0-9_]{8}")
"""What Python's `tempfile` calls files and folders; nobody imports such a name."""


def loadable(made: Iterable[str], files: Collection[str]) -> set[str]:
    """Return what of new files and folders may be loaded unasked.

    Args:
        made: Their paths; that of a folder ends in `/`.
        files: The files that were there before.
    """
    indexed = {path.rpartition("/")[0] for path in files if _INDEX.fullmatch(path.rpartition("/")[2])}
    stems = {path.rpartition(".")[0] for path in files if _ending(path) in CODE}
    scripts = {path.rpartition(".")[0] for path in files if _ending(path) in _BY_STEM}
    found = set[str]()
    for path in made:
        *above, name = path.rstrip("/").split("/")
        plain = "/".join((*above, name.partition(".")[0]))
        if any(_TEMPORARY.fullmatch(part.partition(".")[0]) for part in (*above, name)):
            continue
        if path.endswith("/"):
            unasked = path[:-1] in stems or name in sys.stdlib_module_names
        elif "node_modules" in above:
            unasked = not [*above, name][above.index("node_modules") + 1].startswith(".")  # `.cache`, `.vite`
        else:
            unasked = _ending(name) in _LOADED or kind_of(path) == "decides"
            unasked = unasked or path in scripts or (plain in indexed and _ending(name) in ("json", "node"))
        if unasked:
            found.add(path)
    return found


def _ending(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""
