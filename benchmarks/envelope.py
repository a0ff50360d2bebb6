"""Measures the envelope side by side, in one run, on one machine: ratios count, seconds do not.

    python -m benchmarks.envelope            # a table
    python -m benchmarks.envelope --json     # the same as JSON
    python -m benchmarks.envelope --quick    # fewer rounds

It never fails by the clock.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from interlock.envelope import Envelope, parse, render, validate
from interlock.envelope.parser import read_tree
from interlock.envelope.template import example

MIB = 1024 * 1024
ROOT = Path(__file__).resolve().parent.parent
SIZES = (MIB // 16, MIB // 8, MIB // 4, MIB // 2, MIB - 4096)
MAIN = "from interlock.__main__ import validate_envelope; validate_envelope()"

OVERSIZE = """
import json, os, resource, sys, time, tracemalloc
from interlock.validate_envelope import main
small, large = sys.argv[1:]
sys.stdout = open(os.devnull, "w")
main([small]); main([large])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
times = []
for _ in range(5):
    start = time.perf_counter(); status = main([large]); times.append(time.perf_counter() - start)
tracemalloc.start(); main([large]); peak = tracemalloc.get_traced_memory()[1]; tracemalloc.stop()
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
found = {"status": status, "seconds": sorted(times)[2], "traced_mib": peak / 2**20, "rss_mib": grown / 1024}
json.dump(found, sys.__stdout__)
"""


def typical() -> Envelope:
    """Return an envelope whose text has about 2 KB."""
    output = "\n".join(
        f"- src/components/Section{number}.tsx: renders part {number} of the page, with its heading and its landmark"
        for number in range(1, 11)
    )
    return replace(
        example("frontend-implementer"),
        inputs_used=tuple(f"docs/wireframes/section-{number}.md" for number in range(1, 9)),
        evidence={
            "screenshots": tuple(f"artifacts/screenshots/HOME-UI-001/1/page-{width}.png" for width in (375, 768, 1280)),
            "a11y": ("artifacts/a11y/HOME-UI-001/1/axe.json",),
            "console": ("artifacts/console/HOME-UI-001/1/console.jsonl",),
            "reports": (),
        },
        output=f"The page is built as the wireframes show it.\n\n{output}\n\nNothing else was changed.",
    )


def yaml_twin(envelope: Envelope) -> str:
    """Return the same twelve fields as a YAML document in block style."""
    plain = json.loads(json.dumps(asdict(envelope)))
    text = yaml.dump(plain, Dumper=_Blocks, sort_keys=False, width=10_000)
    assert yaml.safe_load(text) == plain, "the twin holds the same content"
    return text


class _Blocks(yaml.SafeDumper):
    """Writes text of several lines as a literal block, as a person would."""


def _block(_dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Blocks.add_representer(str, _block)


def side_by_side(
    contenders: dict[str, Callable[[], object]],
    rounds: int,
    calls: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Return the median seconds of one call; the contenders take turns, in both directions.

    The clock is this process's own time, so that a busy machine disturbs it little; whole processes need another.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        order = list(contenders.items())
        for name, call in order if number % 2 else reversed(order):
            start = clock()
            for _ in range(calls):
                call()
            times[name].append((clock() - start) / calls)
    return {name: statistics.median(taken) for name, taken in times.items()}


def speed(rounds: int) -> dict[str, Any]:
    """Compare reading one typical response with reading its YAML twin."""
    envelope = typical()
    text, twin = render(envelope), yaml_twin(envelope)
    assert parse(text).envelope == envelope
    seconds = side_by_side(
        {
            "parse": lambda: parse(text),
            "the grammar's tree alone": lambda: read_tree(text),
            "validate": lambda: validate(text),
            "CSafeLoader": lambda: yaml.load(twin, Loader=yaml.CSafeLoader),
        },
        rounds,
        calls=20,
    )
    return {
        "bytes": len(text),
        "yaml_bytes": len(twin),
        "microseconds": {name: round(each * 1e6, 1) for name, each in seconds.items()},
        "parse_over_c_loader": round(seconds["parse"] / seconds["CSafeLoader"], 2),
        "validate_over_c_loader": round(seconds["validate"] / seconds["CSafeLoader"], 2),
    }


def shapes(size: int) -> dict[str, str]:
    """Return texts of about one size that could tempt a parser to look twice."""
    base = example("web-design-lead", outcome="progress")
    line = "All sections follow the wireframes and keep their order.\n"
    valid = {
        "bullets": replace(base, inputs_used=tuple(f"docs/{number:07}.md" for number in range(size // 18))),
        "output lines": replace(base, output=(line * (size // len(line))).rstrip()),
        "one long line": replace(base, output="x" * (size - 600)),
        "actions": replace(base, next_actions=("go on",) * (size // 14)),
    }
    text = render(base)
    broken = {
        "refused: bullets alone": "- a\n" * (size // 4),
        "refused: one line alone": "x" * size,
        "refused: labels again and again": "STATUS: BLOCKED\n" * (size // 16),
        "refused: blanks before a label": text.replace("OUTPUT:", " " * (size - len(text)) + "OUTPUT:"),
    }
    return {name: render(envelope) for name, envelope in valid.items()} | broken


def linearity(rounds: int) -> dict[str, Any]:
    """Measure each shape at growing sizes; `growth` is the cost of a byte at the largest over that at the smallest."""
    rows: dict[str, Any] = {}
    for name in shapes(SIZES[0]):
        per_byte: list[float] = []
        for size in SIZES:
            text = shapes(size)[name]
            taken = side_by_side({"validate": lambda text=text: validate(text)}, rounds, calls=1)["validate"]
            per_byte.append(taken * 1e9 / len(text))
        rows[name] = {
            "ns_per_byte": [round(each, 1) for each in per_byte],
            "growth": round(per_byte[-1] / per_byte[0], 2),
        }
    return rows


def oversize(folder: Path) -> dict[str, Any]:
    """Measure the refusal of a 100 MB file in a process of its own, after the imports."""
    small, large = folder / "small.md", folder / "large.md"
    small.write_text(render(example("web-design-lead", outcome="progress")))
    with large.open("wb") as file:
        file.truncate(100 * MIB)
    done = subprocess.run(
        [sys.executable, "-c", OVERSIZE, small, large], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    return {
        "exit_status": found["status"],
        "milliseconds": round(found["seconds"] * 1000, 2),
        "traced_mib": round(found["traced_mib"], 2),
        "rss_growth_mib": round(found["rss_mib"], 2),
    }


def cold_start(folder: Path, rounds: int) -> dict[str, Any]:
    """Compare whole processes, from start to exit, with compiled modules at hand as an installed package has them."""
    good, bad = folder / "good.md", folder / "bad.md"
    good.write_text(render(example("web-design-lead", outcome="progress")))
    bad.write_text(render(replace(example("web-design-lead"), status="DONE")))
    commands: dict[str, list[str]] = {
        "python -c pass": ["-c", "pass"],
        "python -c 'import lark'": ["-c", "import lark"],
        "validate-envelope, valid": ["-c", MAIN, str(good)],
        "validate-envelope, refused": ["-c", MAIN, str(bad)],
        "validate-envelope --format json": ["-c", MAIN, "--format", "json", str(good)],
        "validate-envelope --version": ["-c", MAIN, "--version"],
    }
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    compiled["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")

    def runner(arguments: list[str]) -> Callable[[], object]:
        command = [sys.executable, *arguments]
        return lambda: subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, env=compiled, check=False)

    runners = {name: runner(arguments) for name, arguments in commands.items()}
    for run in runners.values():
        run()
    seconds = side_by_side(runners, rounds, calls=1, clock=time.perf_counter)
    base = seconds["python -c pass"]
    return {
        name: {"milliseconds": round(taken * 1000, 1), "ratio": round(taken / base, 2)}
        for name, taken in seconds.items()
    }


def table(results: dict[str, Any]) -> str:
    """Return the results as lines for a terminal."""
    first, lines = results["speed"], ["Reading one typical response (medians)"]
    lines += [f"  {name:34}{value:10.1f} µs" for name, value in first["microseconds"].items()]
    lines += [f"  {'parse / CSafeLoader (at most 1)':34}{first['parse_over_c_loader']:10.2f}"]
    lines += [f"  {'validate / CSafeLoader (at most 3)':34}{first['validate_over_c_loader']:10.2f}"]
    lines += ["", f"Cost of a byte, {SIZES[0]} to {SIZES[-1]} bytes (ns; growth near or below 1 is linear)"]
    for name, row in results["linearity"].items():
        lines.append(
            f"  {name:34}{'  '.join(f'{each:8.1f}' for each in row['ns_per_byte'])}   growth {row['growth']:.2f}"
        )
    refused = results["oversize"]
    lines += ["", "Refusing a 100 MB file, after the imports (at most 50 ms, 16 MiB)"]
    lines += [
        f"  {refused['milliseconds']} ms, {refused['traced_mib']} MiB traced, {refused['rss_growth_mib']} MiB more RSS"
    ]
    lines += ["", "Cold start (at most 12, goal 8)"]
    for name, row in results["cold start"].items():
        lines.append(f"  {name:34}{row['milliseconds']:10.1f} ms  {row['ratio']:6.2f}")
    return "\n".join(lines)


def main() -> None:
    """Run every measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    args = parser.parse_args()
    rounds = 5 if args.quick else 31
    with tempfile.TemporaryDirectory() as name:
        results = {
            "speed": speed(rounds),
            "linearity": linearity(3 if args.quick else 7),
            "oversize": oversize(Path(name)),
            "cold start": cold_start(Path(name), rounds),
        }
    print(json.dumps(results, indent=2) if args.json else table(results))


if __name__ == "__main__":
    main()
