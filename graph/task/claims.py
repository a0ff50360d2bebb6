"""The files that a hand-over names in OUTPUT, held against the tree: who approves sees those that are not there.

It warns and decides nothing: prose cannot be read for certain. Files of the run's beginning may have been deleted.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from interlock.envelope import input_path
from interlock.gates.errors import TreeError
from interlock.gates.response import input_exists, relative
from interlock.graph.task.changes import read_start
from interlock.graph.task.rules import absent_file
from interlock.graph.task.sealing import base_of
from interlock.graph.task.store import RunStore

if TYPE_CHECKING:
    from interlock.core.finding import Finding
    from interlock.envelope import Report
    from interlock.graph.task.context import TaskContext
    from interlock.graph.task.state import TaskState

_MAX_NAMED: Final = 10
_WORD: Final = re.compile(r"[^\s`\"'<>|,;(){}]+")
_ENDING: Final = re.compile(
    "cc?|cfg|[cm]js|cpp|cs|css|csv|dart|go|graphql|hp?p?|html|ini|ipynb|java|jpe?g|jsx?|json|kt|less|lock|lua|mdx?|php"
    "|png|proto|ps1|pyi?|rb|rs|rst|scala|scss|sh|sql|svelte|svg|swift|tf|toml|tsx?|txt|vue|webp|xml|ya?ml"
)
_PRODUCT: Final = re.compile(r"[A-Z]\w*\.js")
"""Node.js and the like, outside of backticks."""


def absent_files(report: "Report", root: str, known: Callable[[], Iterable[str]]) -> "Iterator[Finding]":
    """Yield a warning for each file that OUTPUT names and that neither is below the root nor `known`; at most a few."""
    seen: set[str] = set()
    found, listed, fenced = 0, "", False
    for item in report.reading.fields["OUTPUT"].items:
        fenced ^= item.text.lstrip().startswith(("```", "~~~"))
        for word in () if fenced else _WORD.finditer(item.text):
            path = _path(word[0], root, quoted=item.text[: word.start()].endswith("`"))
            if not path or path in seen or input_exists(root, path):
                continue
            if found >= _MAX_NAMED or len(seen) >= 100 * _MAX_NAMED:
                return
            seen.add(path)
            listed = listed or "".join(f"/{each}\n" for each in known()) or "\n"
            if f"/{path}\n" in listed or f"/{path}/" in listed:
                continue
            found += 1
            yield absent_file(path, item.line, item.column + word.start())


def known_files(context: "TaskContext", state: "TaskState") -> Iterator[str]:
    """Yield the files in scope, and those that were there when the run began, as far as that was kept."""
    with suppress(TreeError):
        yield from context.files()
    start, base = read_start(RunStore(context.root, state["run_id"])), base_of(context.root, state.get("sealing", {}))
    yield from start.files if start is not None else ()
    yield from filter(None, map(base.outside, base.files) if base is not None else ())


def _path(word: str, root: str, *, quoted: bool) -> str:
    """Return the path that a word names, as it is relative to the root; nothing for one that names no project file."""
    word = word.strip("*:").rstrip(".?!").partition("::")[0].partition("#")[0].rpartition("](")[2]
    path = input_path(word[1:-1] if word.startswith("[") and word.endswith("]") else word)
    if not path or path.startswith(("/", "~")) or set(path) & set(":@\\"):
        return ""
    path = relative(root, path)
    first, _, rest = path.partition("/")
    stem, dot, ending = path.rpartition("/")[2].rpartition(".")
    is_file = bool(stem and dot and _ENDING.fullmatch(ending))
    if not rest:
        return path if is_file and (quoted or not _PRODUCT.fullmatch(path)) else ""
    top = {first, *rest.split("/")}
    if os.path.isdir(f"{root}/{first}"):  # noqa: PTH112 - of many words
        return path if is_file or not all(os.path.isdir(f"{root}/{name}") for name in top) else ""  # noqa: PTH112
    return path if is_file and "." not in first[1:] else ""
