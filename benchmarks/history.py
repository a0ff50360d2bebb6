"""Measure what history costs: a first ticket call and `interlock status` with many finished runs beside few.

Projects of both sizes take turns, each call is a new process, and the medians are compared: the ratios count.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.tickets import prepare
from tests.clients.scripted import CONFIG

FEW = 10

BEGIN = """
import sys, time
from pathlib import Path
from interlock.graph import Tickets
start = time.perf_counter()
answer = Tickets(Path(sys.argv[1])).begin("FIRST-1")
assert answer["gate_result"]["status"] == "pass", answer
print(time.perf_counter() - start)
"""

TASKS = """
import sys
from pathlib import Path
from interlock.agents.ask import REMOTE
from interlock.graph import drive, start_run, task_from_mapping
from tests.clients.scripted import TASK, make_project
root = make_project(Path(sys.argv[1]), sys.argv[3])
roles = dict.fromkeys(("builder", "tester", "reviewer"), REMOTE)
for number in range(int(sys.argv[2])):
    task = task_from_mapping({**TASK, "task_id": f"STORED-{number:05}"}, base=str(root))
    drive(start_run(root, task, roles=tuple(roles)), root=root, runners=roles)
"""


def took(command: Sequence[str]) -> float:
    """Return the seconds of a command from its start to its end."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def compare(calls: Mapping[str, Sequence[str]], rounds: int) -> dict[str, Any]:
    """Let two commands take turns; return the median milliseconds of each, and the ratio of the second to the first."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name in calls if number % 2 else reversed(list(calls)):
            taken = took(calls[name])
            if number:
                times[name].append(taken)
    few, many = (statistics.median(taken) * 1000 for taken in times.values())
    return {"few_ms": round(few), "many_ms": round(many), "ratio": round(many / few, 2)}


def tasks(folder: Path, runs: int) -> Path:
    """Make a project with so many runs of as many tasks, each of which waits for its first answer."""
    config = f"{CONFIG}\n[run]\nreserve = false\n"
    subprocess.run([sys.executable, "-c", TASKS, str(folder), str(runs), config], check=True)
    return folder


def main() -> None:
    """Run every measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, 1,000 finished runs, 100 listed")
    args = parser.parse_args()
    finished, listed, rounds = (1000, 100, 3) if args.quick else (10_000, 1000, 9)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few, many = (prepare(folder / str(runs), runs)[0] for runs in (FEW, finished))
        status = [sys.executable, "-m", "interlock", "status", "--root"]
        results = {
            f"first ticket call of a process, {finished} runs beside {FEW} (at most 1.5)": compare(
                {str(root): [sys.executable, "-c", BEGIN, str(root)] for root in (few, many)}, rounds
            )
        }
        roots = [prepare(folder / f"list-{runs}", runs)[0] for runs in (FEW, listed)]
        results[f"interlock status, {listed} ticket runs beside {FEW} (at most 3)"] = compare(
            {str(root): [*status, str(root)] for root in roots}, rounds
        )
        roots = [tasks(folder / f"tasks-{runs}", runs) for runs in (FEW, listed)]
        results[f"interlock status, {listed} task runs beside {FEW} (at most 3)"] = compare(
            {str(root): [*status, str(root)] for root in roots}, rounds
        )
    if args.json:
        print(json.dumps(results, indent=2))
        return
    for name, row in results.items():
        print(f"{name:70}{row['few_ms']:7} ms{row['many_ms']:8} ms  {row['ratio']:6.2f}")


if __name__ == "__main__":
    main()
