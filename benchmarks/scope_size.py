"""Measures what the size of a task's scope costs a run: 50,000 files against 10, with agents that answer at once.

    python -m benchmarks.scope_size             # a table
    python -m benchmarks.scope_size --json      # the same as JSON
    python -m benchmarks.scope_size --quick     # 5,000 files

The start of a run, which freezes the base of a sealed gate, is timed apart from its steps. The two sizes take turns. It
never fails by the clock.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from interlock.agents import Ask, reply
from interlock.graph import drive, start_run, task_from_mapping

FEW: Final = 10
MANY: Final = 50_000
QUICK: Final = 5_000
FILES_IN_A_FOLDER: Final = 100
GOAL_SECONDS: Final = 3.0

CONFIG: Final = f"""
roster = "replace"
[roles.orchestrator]
kind = "orchestrator"
[roles.builder]
kind = "build"
hands_over = true
[roles.reader]
kind = "qa"
certifies = "GATE-READ"
[roles.reviewer]
kind = "review"
certifies = "GATE-REVIEW"
[gates.GATE-TESTS]
title = "the tests pass"
command = [{json.dumps(sys.executable)}, "-c", "pass"]
product = ["src/**"]
[gates.GATE-READ]
title = "the reader has no objection"
certifier = "reader"
evidence = ["reports"]
check = "report"
[gates.GATE-REVIEW]
title = "the reviewer has no objection"
certifier = "reviewer"
evidence = ["reports"]
check = "report"
"""
GATES: Final = ("GATE-MSG-STRICT", "GATE-TESTS", "GATE-READ", "GATE-REVIEW")


@dataclass(slots=True)
class Run:
    """Seconds of one run.

    Args:
        start: Until the run existed.
        steps: By the kind of step that they led to; in all, the rest of the run.
    """

    start: float = 0.0
    steps: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def seconds(self) -> float:
        """Return the whole run."""
        return self.start + sum(self.steps.values())


def project(folder: Path, files: int) -> Path:
    """Make a git project with so many files in scope, so that its gates are sealed."""
    for number in range(files):
        path = folder / f"src/{number // FILES_IN_A_FOLDER}/file_{number}.txt"
        if number % FILES_IN_A_FOLDER == 0:
            path.parent.mkdir(parents=True)
        path.write_text(f"line of {number}\n" * 20)
    (folder / "interlock.toml").write_text(CONFIG)
    subprocess.run(("git", "init", "-q", "-b", "main"), cwd=folder, check=True)
    return folder


def building(ask: Ask) -> str:
    """Change a file and hand over."""
    Path(ask.root, "src/0/file_0.txt").write_text(f"changed in {ask.run_id}\n")
    return reply(ask, "READY_FOR_QA")


def passing(ask: Ask) -> str:
    """Write the report of a judge and pass its gate."""
    path = f"{ask.reports_dir}/{ask.role}.md"
    target = Path(ask.root, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"Read tree {ask.tree}. No objection.\n")
    if ask.role == "reviewer":
        return reply(ask, "READY_FOR_REVIEW", "GATE-REVIEW", evidence={"reports": (path,)})
    return reply(ask, "QA_IN_PROGRESS", "GATE-READ", evidence={"reports": (path,)})


def timed(root: Path, number: int) -> Run:
    """Make one run from its start to APPROVED."""
    run = Run()
    task = {"task_id": f"SIZE-{number:03}", "task": "Change a line", "gates_required": list(GATES), "scope": ["src/**"]}
    last = time.perf_counter()

    def passed() -> float:
        nonlocal last
        before, last = last, time.perf_counter()
        return last - before

    def notice(step: Mapping[str, Any]) -> None:
        run.steps[str(step["kind"])] += passed()

    name = start_run(root, task_from_mapping(task, base=str(root)), roles=("builder", "reader", "reviewer"))
    run.start = passed()
    view = drive(name, root=root, runners={"builder": building, "reader": passing, "reviewer": passing}, notice=notice)
    run.steps["end"] += passed()
    if view.status != "APPROVED":
        raise RuntimeError(f"the run ended {view.status}")
    return run


def measure(folder: Path, many: int, rounds: int) -> dict[str, Any]:
    """Make runs over few and many files in turn; the first pair, which pays for imports and cold files, is apart."""
    sizes = {count: project(folder / str(count), count) for count in (FEW, many)}
    runs: dict[int, list[Run]] = {count: [] for count in sizes}
    for number in range(rounds + 1):
        for count, root in sizes.items():
            runs[count].append(timed(root, number))

    def medians(some: list[Run]) -> dict[str, Any]:
        kinds = {kind for run in some for kind in run.steps}
        return {
            "seconds": round(statistics.median(run.seconds for run in some), 2),
            "start": round(statistics.median(run.start for run in some), 2),
            "steps": {kind: round(statistics.median(run.steps[kind] for run in some), 2) for kind in sorted(kinds)},
        }

    few, large = (medians(runs[count][1:]) for count in (FEW, many))
    return {
        "files": {str(FEW): few, str(many): large},
        "first": {str(count): medians(runs[count][:1]) for count in sizes},
        "difference_seconds": round(large["seconds"] - few["seconds"], 2),
        "of_which_start_seconds": round(large["start"] - few["start"], 2),
        "goal_seconds": GOAL_SECONDS,
    }


def table(found: Mapping[str, Any]) -> str:
    """Return the results as lines for a terminal."""
    lines = [f"{'files in scope':18}{'run':>9}{'start':>9}  slowest steps (seconds, medians)"]
    for label, rows in (("", found["files"]), (", first run", found["first"])):
        for count, row in rows.items():
            slowest = sorted(row["steps"].items(), key=lambda item: -item[1])[:4]
            steps = ", ".join(f"{kind} {seconds:.2f}" for kind, seconds in slowest)
            lines.append(f"{count + label:18}{row['seconds']:>9.2f}{row['start']:>9.2f}  {steps}")
    lines.append(
        f"more by {found['difference_seconds']:.2f} s, {found['of_which_start_seconds']:.2f} s of it at the start "
        f"(at most {found['goal_seconds']:.0f} s)"
    )
    return "\n".join(lines)


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} files, one round")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        found = measure(Path(name).resolve(), QUICK if args.quick else MANY, 1 if args.quick else 3)
    print(json.dumps(found, indent=2) if args.json else table(found))


if __name__ == "__main__":
    main()
