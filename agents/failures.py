"""What failed before, for the agent that is to fix it: the tests by name, their messages, and where the log is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from interlock.agents.quoting import bounded, data_block, visible

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
    """One gate that Interlock measured to fail in the round before.

    Args:
        gate: Its id.
        log: The path of its log, relative to the root; empty when there is none.
        tests: The tests that did not pass; empty where tests are not read.
        output: The end of what the command printed.
        more: How many tests beside `tests` did not pass.
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
    """Return each test's name on a line, and below it as much of its message as all names leave room for."""
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
