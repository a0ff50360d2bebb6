"""kill -9 at points that are spread over a run and its landing, and what the next commands make of it.

Two kinds of points: a call of git, before it or after it, counted over all processes of a command; and a while after
the setup, the tests or the agent have begun to wait. A `git` of ours, first on PATH, stops at the call that is meant.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.many_tasks.world import (
    CHECK,
    CONFIG,
    PROJECT,
    WORLD,
    WRITE,
    descendants,
    end_of,
    git,
    interlock,
    left,
    make,
    processes,
    start,
    trees,
    wait,
    write,
)
from interlock import graph

GIT: Final = f"""#!/bin/sh
[ -e {WORLD}/marks/at ] && echo "$*" 2>/dev/null >>{WORLD}/marks/calls || exec /usr/bin/git "$@"
read -r at side <{WORLD}/marks/at
hold() {{ : >{WORLD}/marks/here; while [ -e {WORLD}/marks/here ]; do sleep 0.02; done; }}
[ "$(wc -l <{WORLD}/marks/calls)" = "$at" ] || exec /usr/bin/git "$@"
[ "$side" = before ] && hold
/usr/bin/git "$@"
code=$?
[ "$side" = after ] && hold
exit $code
"""
WAITS: Final = {"setup": "0.61", "tests": "0.62", "agent": "0.63"}
ACT: Final = f"subprocess.run(['sleep', '{WAITS['agent']}'])\n{WRITE}"
SETUP: Final = f'[trees]\nsetup = [["sleep", "{WAITS["setup"]}"]]\n'


class Point(NamedTuple):
    """Where a command is killed: `what` is `run` or `land`; `at` the number of a call of git, or what waits."""

    what: str
    at: int | str
    side: str
    victims: str


def points(calls: dict[str, int], count: int) -> list[Point]:
    """Return points that are spread over a run, which lands, and over landing alone."""
    found = [
        Point("run", name, f"{delay:.2f}", victims)
        for name, number in (("setup", 2), ("tests", 4), ("agent", 5), ("gate", 4))
        for delay, victims in [(0.6 * each / number, "one" if each % 2 else "all") for each in range(number)]
    ]
    for what, share in (("run", 0.6), ("land", 0.4)):
        number = max(1, round((count - len(found)) * share)) if what == "run" else count - len(found)
        for each in range(number):
            at = 1 + each * calls[what] // number
            found.append(Point(what, at, "after" if each % 2 else "before", "all" if each % 4 > 1 else "one"))
    return found[:count]


def kills(count: int, only: str) -> dict[str, Any]:
    """Kill at each point, go on as a person would, and say what was lost, landed twice, or left."""
    calls = dict[str, int]()
    for what in ("run", "land"):
        begin(what)
        wait(start(*command(what)))
        calls[what] = len(Path(WORLD, "marks/calls").read_text().splitlines())
    rows = [killed(point) for point in points(calls, count or 50) if only in point.what]
    bad = [row for row in rows if row["landed"] != 1 or row["left"] or row["trees"] or row["verify"] or row["checkout"]]
    return {"rows": rows, "checks": {"calls of git": calls, "points": len(rows), "points with a fault": len(bad)}}


def command(what: str) -> tuple[str, ...]:
    return ("run", "--apart", "--land", "tasks/ONE-1.toml") if what == "run" else ("land", "--queue")


def begin(what: str, at: int | str = 0, side: str = "before") -> None:
    """Make a project; before landing alone, with an approved run and a branch that has moved since."""
    check = f"sleep {WAITS['tests']}\n{CHECK}"
    make({"ONE-1": ACT}, {"interlock.toml": SETUP + CONFIG, "tests/check.sh": check})
    write(Path(WORLD), {"bin/git": GIT})
    Path(WORLD, "bin/git").chmod(0o755)
    if what == "land":
        interlock("run", "--apart", "tasks/ONE-1.toml")
        write(PROJECT, {"src/second.txt": "good\n"})
        git(PROJECT, "add", "-A")
        git(PROJECT, "commit", "-qm", "Second")
    os.environ["PATH"] = f"{WORLD}/bin:" + os.environ["PATH"].removeprefix(f"{WORLD}/bin:")
    write(Path(WORLD, "marks"), {"at": f"{at if isinstance(at, int) else 0} {side}\n"})


def killed(point: Point) -> dict[str, Any]:
    """Kill a command at a point, and go on."""
    begin(point.what, point.at, point.side)
    pid = start(*command(point.what))
    end, handed_over = time.monotonic() + 120, False
    while time.monotonic() < end and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        there = processes().values() if isinstance(point.at, str) else ()
        handed_over = handed_over or f"sleep {WAITS['agent']} " in there
        awaited = WAITS["tests" if point.at == "gate" else point.at] if isinstance(point.at, str) else ""
        if awaited and f"sleep {awaited} " in there and handed_over == (point.at in ("gate", "agent")):
            time.sleep(float(point.side))
            break
        if Path(WORLD, "marks/here").exists():
            break
        time.sleep(0.005)
    victims = descendants(pid) if point.victims == "all" else [pid]
    for each in victims:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    status = wait(pid)
    for name in ("at", "here"):
        Path(WORLD, "marks", name).unlink(missing_ok=True)
    found: dict[str, Any] = {**point._asdict(), "ended": status, "left": left()}
    found |= after(found)
    return found


def after(found: dict[str, Any]) -> dict[str, Any]:
    """Go on as a person would, and look at what there is."""
    steps, runs = list[str](), graph.list_runs(PROJECT, "runs")
    for run in runs:
        if end_of(run) not in ("APPROVED", "BLOCKED"):
            steps.append(f"resume {interlock('resume', run)[0]}")
    if not runs:
        steps.append(f"run {interlock('run', '--apart', 'tasks/ONE-1.toml')[0]}")
    steps += [f"{words[0]} {interlock(*words)[0]}" for words in (("land", "--queue"), ("prune", "--yes"))]
    subjects = git(PROJECT, "log", "--first-parent", "--format=%(trailers:key=Interlock-Run,valueonly,separator=%x20)")
    return {
        "then": ", ".join(steps),
        "landed": len([line for line in subjects.splitlines() if line]),
        "left": found["left"] + left(),
        "trees": trees(),
        "verify": interlock("verify")[0],
        "checkout": git(PROJECT, "status", "--porcelain") + git(PROJECT, "for-each-ref", "refs/interlock", "refs/heads/interlock"),
    }
