"""Measures what a sealed gate costs, through the command line, of one build or of several side by side.

    python -m benchmarks.gate_cost                                  # the build of this environment
    python -m benchmarks.gate_cost --interlock OLD --interlock NEW  # two programs, in turn
    python -m benchmarks.gate_cost --only gate,environment --json

* `gate`: `interlock gate` in a pytest project of 5,000 files, beside its bare command. The work differs each time.
* `environment`: `interlock check` and `gate` with 200 MB more in the `.venv`, beside the same without them.
* `run`: `interlock run` with the gate `true` and a scripted agent, over 10 and over 50,000 files.


Memory is the largest resident set of the `interlock` process. Every folder is new, every state folder too. It never
fails by the clock.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FEW: Final = 10
MANY: Final = 50_000
GATE_FILES: Final = 5_000
FILES_IN_A_FOLDER: Final = 100
ROUNDS: Final = 5
LARGE_FILES: Final = 8_000
LARGE_BYTES: Final = 25_000

CONFIG: Final = """
[roles.builder]
kind = "build"
[gates.GATE-TESTS]
title = "the tests pass"
command = {command}
{keys}
"""
KEYS: Final = 'product = ["src/**"]\ntests = ["tests/**"]\n'
TASK: Final = """
task_id = "COST-001"
task = "Say good morning"
gates_required = ["GATE-MSG-STRICT", "GATE-TESTS"]
scope = ["src/**", "data/**"]
[agents.builder]
runner = "python:agent:builder"
"""
AGENT: Final = """
from pathlib import Path
from interlock.agents import Ask, reply

def builder(ask: Ask) -> str:
    Path(ask.root, "src/greeting/__init__.py").write_text("TEXT = 'good morning'  # as it should be")
    return reply(ask, "READY_FOR_QA", output="It says so now.")
"""
TEST: Final = """
import greeting

def test_it_is_a_greeting():
    assert greeting.TEXT.startswith("good")
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """One command: how long it took, the largest resident set of its process, and what it said."""

    seconds: float
    megabytes: float
    status: int
    output: str


def measured(argv: Sequence[str], folder: Path) -> Ran:
    """Run a command, and wait for it alone."""
    with tempfile.TemporaryFile() as output:
        environment = {**os.environ, "INTERLOCK_STATE": f"{folder}-state"}
        start = time.perf_counter()
        child = subprocess.Popen(
            argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    return Ran(seconds, usage.ru_maxrss / 1024, child.returncode, text)


def needed(argv: Sequence[str], folder: Path) -> Ran:
    """Run a command that has to succeed."""
    ran = measured(argv, folder)
    if ran.status != 0:
        raise RuntimeError(f"{' '.join(argv)} ended with {ran.status}: {ran.output}")
    return ran


def project(folder: Path, files: int, command: Sequence[str], keys: str = "") -> Path:
    """Make a project in git with so many files beside its product."""
    for path, text in {
        "src/greeting/__init__.py": "TEXT = 'good day'\n",
        "tests/test_greeting.py": TEST,
        "pytest.ini": "[pytest]\npythonpath = src\n",
        "interlock.toml": CONFIG.format(command=json.dumps(list(command)), keys=keys),
        "task.toml": TASK,
        "agent.py": AGENT,
        ".gitignore": ".venv/\n.interlock/\nartifacts/\n__pycache__/\n",
    }.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    for number in range(files):
        place = folder / "data" / str(number // FILES_IN_A_FOLDER) / f"{number}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"line of {number}\n" * 20, encoding="utf-8")
    commit = ("commit", "-q", "-m", "start")
    person = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*person, *commit)):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def with_environment(folder: Path) -> Path:
    """Give a project an environment with pytest."""
    subprocess.run([sys.executable, "-m", "venv", ".venv"], cwd=folder, check=True)
    subprocess.run([".venv/bin/pip", "install", "-q", "pytest"], cwd=folder, check=True)
    return folder


def gates(interlock: Path, folder: Path) -> dict[str, float]:
    """Run the gate and the bare command in turn, each time on other work."""
    work, bare, sealed = folder / "src/greeting/__init__.py", list[float](), list[Ran]()
    for number in range(ROUNDS):
        work.write_text(f"TEXT = 'good morning {number}'\n", encoding="utf-8")
        bare.append(needed([".venv/bin/pytest", "-q", "-p", "no:cacheprovider"], folder).seconds)
        sealed.append(needed([str(interlock), "gate", "GATE-TESTS"], folder))
    usual = statistics.median(bare)
    return {
        "bare": usual,
        "gate": statistics.median(each.seconds for each in sealed),
        "more": statistics.median(each.seconds for each in sealed) - usual,
        "goal, more": 0.5 + 0.1 * usual,
        "megabytes": max(each.megabytes for each in sealed),
    }


def measure_gate(interlock: Path, folder: Path) -> dict[str, float]:
    """Measure `interlock gate` beside its command in a tree of 5,000 files."""
    made = with_environment(project(folder, GATE_FILES, [".venv/bin/pytest", "-q"]))
    first = needed([str(interlock), "check", "task.toml"], made)
    checks = [needed([str(interlock), "check", "task.toml"], made) for _ in range(ROUNDS)]
    found = gates(interlock, made)
    return {
        "check, first": first.seconds,
        "check, known": statistics.median(each.seconds for each in checks),
        **found,
    }


def measure_environment(interlock: Path, folder: Path) -> dict[str, float]:
    """Measure what 200 MB in the environment cost, at first and later."""
    found = dict[str, float]()
    for kind, files in (("small", 0), ("large", LARGE_FILES)):
        made = with_environment(project(folder / kind, FEW, [".venv/bin/pytest", "-q"]))
        site = next((made / ".venv/lib").glob("python3*")) / "site-packages/large"
        for number in range(files):
            place = site / str(number // FILES_IN_A_FOLDER) / f"{number}.bin"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(os.urandom(LARGE_BYTES))
        found[f"check, first, {kind}"] = needed([str(interlock), "check", "task.toml"], made).seconds
        found[f"gate, {kind}"] = gates(interlock, made)["gate"]
    found["more at first"] = found["check, first, large"] - found["check, first, small"]
    found["more later"] = found["gate, large"] - found["gate, small"]
    return found


def measure_run(interlock: Path, folder: Path) -> dict[str, float]:
    """Measure a run whose gate is `true`, over few and over many files."""
    found = dict[str, float]()
    for files in (FEW, MANY):
        made = project(folder / str(files), files, ["true"], KEYS)
        if needed_keys(interlock, made):
            made = project(fresh(folder / str(files)), files, ["true"])
        ran = needed([str(interlock), "run", "task.toml"], made)
        if "APPROVED" not in ran.output:
            raise RuntimeError(ran.output)
        found |= {f"run, {files} files": ran.seconds, f"megabytes, {files} files": ran.megabytes}
    return found | {"more for many files": found[f"run, {MANY} files"] - found[f"run, {FEW} files"]}


def needed_keys(interlock: Path, folder: Path) -> bool:
    """Return whether a build does not know the keys `product` and `tests`."""
    ran = measured([str(interlock), "check", "task.toml"], folder)
    shutil.rmtree(f"{folder}-state", ignore_errors=True)
    shutil.rmtree(folder / ".interlock", ignore_errors=True)
    return ran.status != 0 and "gates.GATE-TESTS.product" in ran.output


def fresh(folder: Path) -> Path:
    """Empty a folder."""
    shutil.rmtree(folder)
    return folder


MEASURES: Final[dict[str, Callable[[Path, Path], dict[str, float]]]] = {
    "gate": measure_gate,
    "environment": measure_environment,
    "run": measure_run,
}


def table(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """Lay out the figures, a column for each program."""
    programs = list(found)
    lines = [f"{'':28}" + "".join(f"{name:>14}" for name in programs)]
    for name in found[programs[0]]:
        lines.append(name)
        lines += [
            f"  {key:26}" + "".join(f"{found[program][name][key]:14.2f}" for program in programs)
            for key in found[programs[0]][name]
        ]
    return "\n".join(lines)


def main() -> None:
    """Run the measurements and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = Path(sys.executable).with_name("interlock")
    parser.add_argument("--interlock", type=Path, action="append", metavar="PATH", help="a program; repeatable")
    parser.add_argument("--only", default=",".join(MEASURES), help=f"some of {','.join(MEASURES)}")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    programs = [path.absolute() for path in args.interlock or [beside]]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="gate-cost-") as name:
        for only in args.only.split(","):
            for number, program in enumerate(programs, 1):
                label = f"{number}-{program.parent.parent.name.strip('.')}"
                folder = Path(name, label, only)
                found.setdefault(label, {})[only] = MEASURES[only](program, folder)
                shutil.rmtree(folder, ignore_errors=True)
                shutil.rmtree(f"{folder}-state", ignore_errors=True)
    print(json.dumps(found, indent=1) if args.json else table(found))


if __name__ == "__main__":
    main()
