"""Judges a table of held-out cases: the checked code gets arguments, and what it answers is compared here.

Against T2, an agent that games the check during its turn. Each case is a process of its own, so nothing is left of one
call when the next begins. It gets the arguments and nothing else; expected values never leave this process. An answer
is one line of JSON behind a random word. Code that writes such a line itself gains nothing: it does not know what to
write, and two answers are none. How a result becomes JSON is documented in the probes, `call.py` and `call.mjs`.
"""

import json
import math
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias, get_args

from pydantic import JsonValue

from interlock.gates.heldout.table import Case, HeldOutTable

PROBES: Final = Path(__file__).parent
MAX_TIMED_OUT: Final = 3
_Ending: TypeAlias = Literal["passed", "failed", "errors", "timed_out", "not_run"]


class Execute(Protocol):
    """Runs a program in the export, its root the working directory, and ends all that it started."""

    def __call__(self, argv: Sequence[str], *, stdin: bytes, timeout_seconds: float) -> tuple[int | None, bool, bytes]:
        """Return the exit status (None: it has none), whether it was stopped at the limit, and its standard output."""
        ...


def judge_cases(
    table: HeldOutTable, execute: Execute, *, interpreter: Sequence[str], probes: str, jobs: int = 1
) -> dict[str, int]:
    """Call the function once for each case and count how the calls ended.

    `execute` makes the calls, `jobs` of them at a time, in threads; `interpreter` is for `table.language` and begins
    the argv; `probes` is the absolute path under which `execute` shows `call.py` and `call.mjs` of the folder `PROBES`.

    Returns:
        `total`, the number of cases, and what it is made of: `passed` (as expected), `failed` (another value or error),
        `errors` (no answer: the program cannot be loaded, it ended early, raised, or returned what is no JSON),
        `timed_out`, and `not_run` (left out after `MAX_TIMED_OUT` calls that timed out).
    """
    argv = (*interpreter, f"{probes}/{'call.py' if table.language == 'python' else 'call.mjs'}")
    late: list[Case] = []

    def judge(case: Case) -> _Ending:
        # A table of a hundred cases would else wait for a hundred time limits.
        if len(late) >= MAX_TIMED_OUT:
            return "not_run"
        ending = _judge(table, case, execute, argv)
        if ending == "timed_out":
            late.append(case)
        return ending

    with ThreadPoolExecutor(jobs) as pool:
        endings = list(pool.map(judge, table.cases))
    return {"total": len(endings)} | {ending: endings.count(ending) for ending in get_args(_Ending)}


def _judge(table: HeldOutTable, case: Case, execute: Execute, argv: Sequence[str]) -> _Ending:
    word = secrets.token_hex(16)
    # The word goes in on standard input, which the probe reads before it imports anything of the project.
    call = json.dumps([word, table.function, case.args]).encode("ascii")
    exit_status, timed_out, output = execute(argv, stdin=call + b"\n", timeout_seconds=table.timeout_seconds)
    if timed_out:
        return "timed_out"
    answer = _answer(output, word.encode("ascii")) if exit_status == 0 else {}
    if case.raises and answer:
        return "passed" if answer.get("raised") == case.raises else "failed"
    if "value" not in answer:
        return "errors"
    return "passed" if same(answer["value"], case.expected, table.tolerance) else "failed"


def _answer(output: bytes, word: bytes) -> dict[str, JsonValue]:
    """Return the one answer in an output, a key and its value; empty where there is none, or more than one."""
    rest = output.partition(word)[2]
    try:
        answer: JsonValue = json.loads(rest.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return {}
    # Only code that found the word in memory can write a second answer; then neither counts.
    return answer if isinstance(answer, dict) and len(answer) == 1 and word not in rest else {}


def same(found: JsonValue, expected: JsonValue, tolerance: float = 0.0) -> bool:
    """Return whether two JSON values are equal.

    Types count: `true` is not 1, `"1"` is not 1, null is not an empty list. JSON has one kind of number, so 1 is 1.0.
    NaN is NaN. The tolerance, relative or absolute, is for pairs of numbers of which one is a float.
    """
    if isinstance(found, list) and isinstance(expected, list):
        pairs = zip(found, expected, strict=False)
        return len(found) == len(expected) and all(same(a, b, tolerance) for a, b in pairs)
    if isinstance(found, dict) and isinstance(expected, dict):
        keys = expected.keys()
        return found.keys() == keys and all(same(found[key], expected[key], tolerance) for key in keys)
    # Before the numbers, since Python takes `True` for 1.
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    if isinstance(found, int | float) and isinstance(expected, int | float):
        return _near(found, expected, tolerance)
    return found == expected


def _near(found: float, expected: float, tolerance: float) -> bool:
    if found == expected or (found != found and expected != expected):  # noqa: PLR0124 - NaN alone differs from itself
        return True
    if not tolerance or (isinstance(found, int) and isinstance(expected, int)):
        return False
    try:
        return math.isclose(found, expected, rel_tol=tolerance, abs_tol=tolerance)
    except OverflowError:
        return False
