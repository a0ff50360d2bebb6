"""What changed and what failed since a run began, for the agents that judge or fix it: of bounded size."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from interlock.agents.quoting import bounded, data_block, listing, visible

TITLE: Final = "What changed since the run began"
"""The heading of this part of an assignment."""
MAX_LISTED_BYTES: Final = 3 * 1024
MAX_DIFF_BYTES: Final = 14 * 1024
"""How much of all diffs an assignment quotes."""
MAX_COMPARED_BYTES: Final = 128 * 1024
"""A larger file is named, and not compared line by line."""
MAX_COMPARED_LINES: Final = 4000

_ABSENT: Final = "/dev/null"

ChangeKind: TypeAlias = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One file that is not as it was when the run began, and the other agent that holds it, if any.

    `diff` is unified, or one line in brackets that says why there is none.
    """

    path: str
    kind: ChangeKind
    in_scope: bool = True
    holder: str = ""
    diff: str = ""


def changed_files(files: Sequence[ChangedFile]) -> str:
    """Return quotations about changed files: their names, those outside the scope first, then all diffs.

    Every file has its fair part of the diff: short ones are whole, and long ones are cut.
    """
    if not files:
        return "- none"
    rows = sorted(files, key=lambda file: (file.in_scope, file.path))
    names = [f"{file.kind}, {_whose(file)}: {file.path}" for file in rows]
    listed = listing("the names of the files, each behind what Interlock found", names, MAX_LISTED_BYTES)
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
        return f"outside the scope, held by {' '.join(file.holder.split())}, so it is theirs"
    return "outside the scope, claimed by nobody"


def _title(file: ChangedFile) -> str:
    return f"=== {file.kind}, {_whose(file)}: {' '.join(file.path.split())} ==="


def _shares(sizes: Sequence[int], total: int) -> list[int]:
    """Divide a total among sizes, so that what small ones do not need is left to large ones."""
    given = [0] * len(sizes)
    for done, index in enumerate(sorted(range(len(sizes)), key=lambda index: sizes[index])):
        given[index] = min(sizes[index], total // (len(sizes) - done))
        total -= given[index]
    return given


MAX_FAILED_BYTES: Final = 5 * 1024
"""How much all failed gates take of an assignment."""

MEASURED: Final = ("the tests of", "the end of the log of")
"""How the origin begins of what is quoted from a command's results."""

_MAX_GATES: Final = 4
_MIN_MESSAGE: Final = 80
_MORE: Final = "\n    […]"


@dataclass(frozen=True, slots=True)
class FailedTest:
    """One test that did not pass: its id as the runner writes it, and what was said of it."""

    id: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class FailedGate:
    """One gate that Interlock measured to fail in the round before: its log, and the end of what its command printed.

    Besides `tests`, `more` did not pass; there are none where tests are not read.
    """

    gate: str
    log: str = ""
    tests: tuple[FailedTest, ...] = ()
    output: str = ""
    more: int = 0


def failed_gates(rows: Sequence[FailedGate]) -> str:
    """Return Markdown about at least one failed gate, of about `MAX_FAILED_BYTES`; names come before messages."""
    share = MAX_FAILED_BYTES // min(len(rows), _MAX_GATES)
    parts = [_gate(row, share) for row in rows[:_MAX_GATES]]
    if len(rows) > _MAX_GATES:
        parts.append(f"[{len(rows) - _MAX_GATES} more gates left out]")
    return "\n\n".join(parts)


def _gate(row: FailedGate, share: int) -> str:
    name = _line(row.gate, 80)
    lines = [f"### {name}"]
    if row.log:
        lines.append(f"Its log, to be read whole: `{_line(row.log, 300)}`")
    if row.tests:
        whole = len(row.tests) + row.more
        some = f"; these are {len(row.tests)} of them" if row.more else ""
        lines.append(f"{whole} {'test' if whole == 1 else 'tests'} did not pass{some}:")
        part = share // 2 if row.output else share
        lines.append(data_block(f"{MEASURED[0]} {name}", _tests(row.tests, part), part))
        share -= part
    if row.output:
        # The end of a log says most, so that a long one is cut at its beginning.
        kept = visible(row.output).encode()[-share // 2 :].decode("utf-8", "ignore")
        lines.append(data_block(f"{MEASURED[1]} {name}", kept, share))
    return "\n\n".join(lines)


def _line(text: str, limit: int) -> str:
    return bounded(" ".join(visible(text).split()), limit)


def _tests(tests: Sequence[FailedTest], limit: int) -> str:
    """Return each test's name on a line, and below it as much of its message as the names leave space for."""
    names = [_line(test.id, 300) for test in tests]
    each = (limit - sum(len(name.encode()) + 3 for name in names)) // len(names)
    return "\n".join(name + _message(test.message, each) for name, test in zip(names, tests, strict=True))


def _message(text: str, limit: int) -> str:
    if limit < _MIN_MESSAGE or not text.strip():
        return ""
    shown, size = "", 0
    for line in visible(text.strip("\n")).split("\n"):
        size += len(line.encode()) + 7  # a bar, a blank, four of indentation, the end of the line
        if size > limit - len(_MORE):
            return shown + (_MORE if shown else f"\n    {bounded(line, limit - 16)}")
        shown += f"\n    {line}"
    return shown
