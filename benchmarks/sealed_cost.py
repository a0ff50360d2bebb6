"""Measures what the seal of a gate costs: the command of a small pytest project bare and sealed, in turn.

    python -m benchmarks.sealed_cost             # a tree of 5,000 files
    python -m benchmarks.sealed_cost --files N
    python -m benchmarks.sealed_cost --json

The first freeze with the run of the base, and the first gate with its export, are timed apart. It never fails by the
clock.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.false_accept.judges import Sealed
from benchmarks.false_accept.programs import own_programs
from benchmarks.false_accept.project import Project, Workshop

FILES: Final = 5_000
FILES_IN_A_FOLDER: Final = 100
ROUNDS: Final = 7
PROGRAM: Final = "roman"


def project(folder: Path, files: int) -> Project:
    """Make a project with so many files beside its program, and a venv of its own."""
    program = next(each for each in own_programs() if each.name == PROGRAM)
    made = Workshop(folder).project(program, "one")
    for number in range(files):
        made.write(f"data/{number // FILES_IN_A_FOLDER}/{number}.txt", f"line of {number}\n" * 20)
    return made


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def accepted(judge: Sealed, made: Project) -> None:
    """Judge the work, which is right."""
    verdict = judge.verdict(made)
    if not verdict.accepted:
        raise RuntimeError(f"honest work was refused: {verdict.reason}")


def measure(folder: Path, files: int) -> dict[str, Any]:
    """Run the command bare and sealed in turn; the work changes a little each time, as that of an agent does."""
    os.environ["INTERLOCK_STATE"] = str(folder / "state")
    made, judge = project(folder, files), Sealed(folder / "state")
    freeze = seconds(lambda: judge.begin(made))
    bare, sealed = list[float](), list[float]()
    for number in range(ROUNDS + 1):
        made.write(made.program.source, f"{made.program.good}\n# {number}\n")
        bare.append(seconds(lambda: made.run(made.program.command)))
        sealed.append(seconds(lambda: accepted(judge, made)))
    usual, under_seal = statistics.median(bare[1:]), statistics.median(sealed[1:])
    return {
        "files": files,
        "freeze_and_base_seconds": round(freeze, 2),
        "first_gate_seconds": round(sealed[0], 2),
        "bare_seconds": round(usual, 3),
        "sealed_seconds": round(under_seal, 3),
        "more_seconds": round(under_seal - usual, 3),
        "goal_seconds": round(0.5 + 0.1 * usual, 3),
    }


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=FILES, help=f"files in the tree, {FILES} by default")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        found = measure(Path(name).resolve(), args.files)
    print(json.dumps(found) if args.json else "\n".join(f"{key:26}{value}" for key, value in found.items()))


if __name__ == "__main__":
    main()
