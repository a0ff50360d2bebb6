"""Judges a table of held-out cases: the checked code gets arguments, and what it answers is compared here.

Each case is a process of its own, so nothing is left of one call when the next begins: no memory, no thread, no count.
It gets the arguments of its call and nothing else; expected values never leave this process. An answer is one line of
JSON behind a random word. Code that writes such a line itself gains nothing by it: it does not know what to write, and
two answers to a call are none.

How a result becomes JSON is documented in the probes, `probes/heldout_call.py` and `probes/heldout_call.mjs`.
"""

import json
import math
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from interlock.gates.sealed.heldout import Case, HeldOutTable, Language, long_integers
from interlock.gates.sealed.runners.base import PROBES

MAX_TIMED_OUT: Final = 3
"""After so many calls without an answer in time, the others are not made."""

INTERPRETERS: Final[Mapping[Language, tuple[str, ...]]] = {"python": ("python",), "javascript": ("node",)}
_PROBE: Final[Mapping[Language, str]] = {"python": "heldout_call.py", "javascript": "heldout_call.mjs"}

Ending: TypeAlias = Literal["passed", "failed", "error", "timed_out", "not_run"]


class Execute(Protocol):
    """Runs a program in the export, its root the working directory, and ends all that it started."""

    def __call__(self, argv: Sequence[str], *, stdin: bytes, timeout_seconds: float) -> tuple[int | None, bool, bytes]:
        """Return the exit status (None: it has none), whether it was stopped at the limit, and its standard output."""
        ...


@dataclass(frozen=True, slots=True)
class HeldOutResult:
    """What the cases came to; the last five add up to the first.

    Args:
        total: Cases of the table.
        passed: As expected.
        failed: Another value or another error than expected.
        errors: No answer: the program cannot be loaded, it raised, ended early, or returned what is no JSON.
        timed_out: No answer in time.
        not_run: Left out after too many calls that timed out.
    """

    total: int
    passed: int
    failed: int
    errors: int
    timed_out: int
    not_run: int = 0

    @property
    def ok(self) -> bool:
        """Return whether every case passed, and there was one."""
        return self.passed == self.total > 0


def judge_cases(
    table: HeldOutTable,
    execute: Execute,
    *,
    interpreters: Mapping[Language, tuple[str, ...]] = INTERPRETERS,
    jobs: int = 1,
) -> HeldOutResult:
    """Call the function once for each case and count the answers that are right.

    `execute` runs the probe, which must be readable there under its own path; `interpreters` begin its argv.
    """
    late: list[Case] = []

    def judge(case: Case) -> Ending:
        if len(late) >= MAX_TIMED_OUT:
            return "not_run"
        ending = _judge(table, case, execute, interpreters[table.language])
        if ending == "timed_out":
            late.append(case)
        return ending

    with ThreadPoolExecutor(jobs) as pool:
        endings = list(pool.map(judge, table.cases))
    return HeldOutResult(len(endings), *map(endings.count, ("passed", "failed", "error", "timed_out", "not_run")))


def _judge(table: HeldOutTable, case: Case, execute: Execute, interpreter: tuple[str, ...]) -> Ending:
    frame = secrets.token_hex(16)
    call = {"program": table.program, "function": table.function, "args": case.args, "frame": frame}
    with long_integers():
        asked = json.dumps(call).encode("ascii") + b"\n"
    argv = (*interpreter, str(PROBES / _PROBE[table.language]))
    status, timed_out, output = execute(argv, stdin=asked, timeout_seconds=table.timeout_seconds)
    if timed_out:
        return "timed_out"
    answer = _answer(output, frame.encode("ascii")) if status == 0 else None
    if answer is None:
        return "error"
    if case.raises:
        return "passed" if answer.get("raised") == case.raises else "failed"
    if "value" not in answer:
        return "error"
    try:
        return "passed" if same(answer["value"], case.expected, case.tolerance, case.absolute) else "failed"
    except RecursionError:
        return "error"


def _answer(output: bytes, frame: bytes) -> dict[str, Any] | None:
    """Return the one answer in an output, or None when there is none, or more than one."""
    if output.count(frame) != 1:
        return None
    line, ended, _ = output[output.index(frame) + len(frame) :].partition(b"\n")
    try:
        with long_integers():
            answer: object = json.loads(line) if ended else None
    except (ValueError, RecursionError):
        return None
    found = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    return found if len(found) == 1 else None


def same(found: object, expected: object, tolerance: float | None = None, absolute: float | None = None) -> bool:
    """Return whether two JSON values are equal.

    Types count: `true` is not 1, `"1"` is not 1, null is not an empty list. JSON has one kind of number, so 1 is 1.0.
    NaN is NaN. The tolerances, one relative or absolute and one absolute alone, are for pairs of numbers of which one
    is a float.
    """
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    if isinstance(found, int | float) and isinstance(expected, int | float):
        return _near(found, expected, tolerance, absolute)
    if isinstance(found, list) and isinstance(expected, list):
        left, right = cast("list[object]", found), cast("list[object]", expected)
        return len(left) == len(right) and all(
            same(a, b, tolerance, absolute) for a, b in zip(left, right, strict=True)
        )
    if isinstance(found, dict) and isinstance(expected, dict):
        mine, other = cast("dict[str, object]", found), cast("dict[str, object]", expected)
        return mine.keys() == other.keys() and all(same(mine[key], other[key], tolerance, absolute) for key in other)
    return (found is None and expected is None) or (isinstance(found, str) and found == expected)


def _near(found: float, expected: float, tolerance: float | None, absolute: float | None) -> bool:
    if found == expected or (found != found and expected != expected):  # noqa: PLR0124 - NaN alone differs from itself
        return True
    if (tolerance is None and absolute is None) or not (isinstance(found, float) or isinstance(expected, float)):
        return False
    try:
        relative = tolerance or 0.0
        return math.isclose(found, expected, rel_tol=relative, abs_tol=max(relative, absolute or 0.0))
    except OverflowError:
        return False
