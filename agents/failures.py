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
_MIN_MESSAGE: Final = 120


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
    """

    gate: str
    log: str = ""
    tests: tuple[FailedTest, ...] = ()
    output: str = ""


def failed_gates(rows: Sequence[FailedGate]) -> str:
    """Return Markdown about failed gates, of `MAX_FAILED_BYTES` and the few lines between; names come before messages.

    Args:
        rows: At least one gate.
    """
    share = MAX_FAILED_BYTES // min(len(rows), _MAX_GATES)
    parts = [_gate(row, share) for row in rows[:_MAX_GATES]]
    if len(rows) > _MAX_GATES:
        parts.append(f"[{len(rows) - _MAX_GATES} more gates left out]")
    return "\n\n".join(parts)


def _gate(row: FailedGate, share: int) -> str:
    name = bounded(visible(row.gate), 80)
    lines = [f"### {name}"]
    if row.log:
        lines.append(f"Its log, to be read whole: `{bounded(visible(row.log), 300)}`")
    if row.tests:
        lines.append(f"{len(row.tests)} {'test' if len(row.tests) == 1 else 'tests'} did not pass:")
        half = share // 2 if row.output else share
        each = max(_MIN_MESSAGE, half // len(row.tests))
        told = "\n".join(_test(test, each) for test in row.tests)
        lines.append(data_block(f"{MEASURED[0]} {name}", told, half))
        share -= half
    if row.output:
        # The end of a log says most, so that a long one is cut at its beginning.
        kept = visible(row.output).encode()[-share // 2 :].decode("utf-8", "ignore")
        lines.append(data_block(f"{MEASURED[1]} {name}", kept, share))
    return "\n\n".join(lines)


def _test(test: FailedTest, limit: int) -> str:
    name = bounded(" ".join(test.id.split()), 300)
    if not test.message.strip():
        return name
    return f"{name}\n" + "\n".join(f"    {line}" for line in bounded(test.message.strip("\n"), limit).split("\n"))
