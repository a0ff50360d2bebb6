"""What changed and what failed since a run began, for the agents that judge or fix it: of bounded size."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from interlock.agents.quoting import bounded, data_block, listing, visible

TITLE: Final = "What changed since the run began"
"""The heading of this part of an assignment."""
MAX_DIFF_BYTES: Final = 10 * 1024
"""How much of all diffs an assignment quotes; a quarter of it for the names of the files."""
MAX_COMPARED_LINES: Final = 4000
"""A longer file is named, and not compared: that may take for ever."""

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
    """Return quotations about changed files: their names, those outside the scope first, then a part of each diff."""
    if not files:
        return "- none"
    # False sorts first: a reviewer must see what lies outside the scope, whatever is cut.
    rows = sorted(files, key=lambda file: (file.in_scope, file.path))
    names = [f"{file.kind}, {_whose(file)}: {file.path}" for file in rows]
    listed = listing("the names of the files, each behind what Interlock found", names, MAX_DIFF_BYTES // 4)
    shown = [(file, f"{_title(file)}\n{file.diff.rstrip()}") for file in rows if file.diff.strip()]
    if not shown:
        return listed
    # Each line of the quotation begins with a bar and a blank, which count too.
    share = max(64, MAX_DIFF_BYTES // len(shown) * 3 // 4)
    cut = "\n".join(bounded(text, share) for _, text in shown)
    return f"{listed}\n\n{data_block('the files, each below its name', cut, MAX_DIFF_BYTES)}"


def unified(path: str, old: bytes | None, new: bytes | None) -> str:
    """Return the unified diff of a file, or one line in brackets where lines cannot be compared.

    `old` and `new` are what it held and holds; None where it did not or does not exist.
    """
    texts = [_text(data) for data in (old, new)]
    if None in texts:
        sizes = " → ".join("absent" if data is None else f"{len(data)} bytes" for data in (old, new))
        return f"[not compared line by line: {sizes}]"
    # Lines end at newlines alone; `splitlines` takes form feeds and the like for ends too.
    before, after = ((text or "").split("\n") for text in texts)
    if max(len(before), len(after)) > MAX_COMPARED_LINES:
        return f"[not compared line by line: {len(before)} → {len(after)} lines]"
    # A newline in the name would make lines of the diff.
    name = " ".join(path.split())
    names = (_ABSENT if old is None else f"a/{name}", _ABSENT if new is None else f"b/{name}")
    return "\n".join(difflib.unified_diff(before, after, *names, lineterm=""))


def _text(data: bytes | None) -> str | None:
    """Return the text of a file; None when it is none."""
    if data is None:
        return ""
    if b"\0" in data:
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


MAX_FAILED_BYTES: Final = 5 * 1024
"""How much all failed gates take of an assignment."""

MEASURED: Final = ("the tests of", "the end of the log of")
"""How the origin begins of what is quoted from a command's results."""

# So many failed gates are quoted, so that each has space for its tests; the others are counted.
_GATES: Final = 4


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
    share = MAX_FAILED_BYTES // min(len(rows), _GATES)
    parts = [_gate(row, share) for row in rows[:_GATES]]
    if len(rows) > _GATES:
        parts.append(f"[{len(rows) - _GATES} more gates left out]")
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
    rows: list[str] = []
    for name, test in zip(names, tests, strict=True):
        rows.append(name)
        # Where less than a line is left for each message, the names of the tests say more.
        if each >= 80 and test.message.strip():
            # Each line of a message takes a bar, a blank and its indentation besides.
            message = bounded(visible(test.message.strip("\n")), each * 3 // 4)
            rows += [f"    {line}" for line in message.split("\n")]
    return "\n".join(rows)
