"""What changed since a run began, for the agents that judge it: a list of files, and one diff of bounded size."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from interlock.agents.quoting import bounded, bullets, data_block

TITLE: Final = "What changed since the run began"
"""The heading of this part of an assignment."""
MAX_LISTED_BYTES: Final = 2 * 1024
MAX_DIFF_BYTES: Final = 14 * 1024
"""How much of all diffs an assignment quotes."""
MAX_COMPARED_BYTES: Final = 128 * 1024
"""A larger file is named, and not compared line by line."""
MAX_COMPARED_LINES: Final = 4000

_ABSENT: Final = "/dev/null"

ChangeKind: TypeAlias = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One file that is not as it was when the run began.

    Args:
        path: Relative to the root.
        kind: What became of it.
        in_scope: Whether the task's scope holds it.
        holder: The other agent that holds it; empty when nobody else does.
        diff: The difference as a unified diff, or one line in brackets that says why there is none.
    """

    path: str
    kind: ChangeKind
    in_scope: bool = True
    holder: str = ""
    diff: str = ""


def changed_files(files: Sequence[ChangedFile]) -> str:
    """Return Markdown about changed files: those outside the scope first, then one quotation of all diffs.

    Every file has its fair part of the diff: short ones are whole, and long ones are cut.
    """
    rows = sorted(files, key=lambda file: (file.in_scope, file.path))
    listed = bullets([f"{file.kind} {file.path} ({_whose(file)})" for file in rows], MAX_LISTED_BYTES)
    shown = [(file, f"{_title(file)}\n{file.diff.rstrip()}") for file in rows if file.diff.strip()]
    if not shown:
        return listed
    # Each line of the quotation begins with a bar and a blank, which count too.
    limits = _shares([len(text.encode()) + 2 * text.count("\n") + 4 for _, text in shown], MAX_DIFF_BYTES)
    cut = "\n".join(bounded(text, max(limit, 64)) for (_, text), limit in zip(shown, limits, strict=True))
    return f"{listed}\n\n{data_block('the files, each below its name', cut, MAX_DIFF_BYTES)}"


def unified(path: str, old: bytes | None, new: bytes | None) -> str:
    """Return the unified diff of a file, or one line in brackets where lines cannot be compared.

    `old` and `new` are what it held and holds; None where it did not or does not exist.
    """
    texts = [_text(data) for data in (old, new)]
    if None in texts:
        sizes = " → ".join("absent" if data is None else f"{len(data)} bytes" for data in (old, new))
        return f"[not compared line by line: {sizes}]"
    before, after = ((text or "").split("\n") for text in texts)
    if max(len(before), len(after)) > MAX_COMPARED_LINES:
        return f"[not compared line by line: {len(before)} → {len(after)} lines]"
    name = " ".join(path.split())
    names = (_ABSENT if old is None else f"a/{name}", _ABSENT if new is None else f"b/{name}")
    return "\n".join(difflib.unified_diff(before, after, *names, lineterm=""))


def _text(data: bytes | None) -> str | None:
    """Return the text of a file; None when it is none, or too long."""
    if data is None:
        return ""
    if len(data) > MAX_COMPARED_BYTES or b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _whose(file: ChangedFile) -> str:
    if file.in_scope:
        return "in scope"
    if file.holder:
        return f"outside the scope; {file.holder} holds it, so it is theirs"
    return "outside the scope; nobody claims it"


def _title(file: ChangedFile) -> str:
    return f"=== {' '.join(file.path.split())}: {file.kind}, {_whose(file)} ==="


def _shares(sizes: Sequence[int], total: int) -> list[int]:
    """Divide a total among sizes, so that what small ones do not need is left to large ones."""
    given = [0] * len(sizes)
    for done, index in enumerate(sorted(range(len(sizes)), key=lambda index: sizes[index])):
        given[index] = min(sizes[index], total // (len(sizes) - done))
        total -= given[index]
    return given
