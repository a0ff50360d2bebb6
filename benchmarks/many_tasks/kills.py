"""kill -9 at points that are spread over a run and its landing, and what the next commands make of it.

Two kinds of points: a call of git, before it or after it, counted over all processes of a command; and a while after
the setup, the tests of the base, the agent or the gate have begun to wait. A `git` of ours, first on PATH, stops at the
call that is meant.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.many_tasks import world
from benchmarks.many_tasks.world import CONFIG, PROJECT, WORLD, WRITE, git, interlock, processes
from interlock import graph

MARKS: Final = WORLD / "marks"
GIT: Final = f"""#!/bin/sh
[ -e {MARKS}/at ] && echo "$*" 2>/dev/null >>{MARKS}/calls || exec /usr/bin/git "$@"
read -r at side <{MARKS}/at
hold() {{ : >{MARKS}/here; while [ -e {MARKS}/here ]; do sleep 0.02; done; }}
[ "$(wc -l <{MARKS}/calls)" = "$at" ] || exec /usr/bin/git "$@"
[ "$side" = before ] && hold
/usr/bin/git "$@"
code=$?
[ "$side" = after ] && hold
exit $code
"""
SECONDS: Final = {"setup": "0.61", "base": "0.62", "agent": "0.63", "gate": "0.62"}
ACT: Final = f"subprocess.run(['sleep', '{SECONDS['agent']}'])\n{WRITE}"
SETUP: Final = f'[trees]\nsetup = [["sleep", "{SECONDS["setup"]}"]]\n'
COMMANDS: Final = {"run": ("run", "--apart", "--land", "tasks/ONE-1.toml"), "land": ("land", "--queue")}


class Point(NamedTuple):
    """Where a command is killed: `at` is the number of a call of git, or what waits, `side` the side or the seconds."""

    command: str
    at: int | str
    side: str
    victims: str


def points(calls: dict[str, int], count: int) -> list[Point]:
    """Return points that are spread over a run, which lands, and over landing alone."""
    found = [
        Point("run", name, f"{0.6 * each / number:.2f}", "all" if each % 2 else "one")
        for name, number in (("setup", 2), ("base", 4), ("agent", 5), ("gate", 4))
        for each in range(number)
    ]
    number = {"run": max(1, (count - len(found)) * 3 // 5)}
    number["land"] = max(1, count - len(found) - number["run"])
    for name, size in number.items():
        for each in range(size):
            at, victims = 1 + each * calls[name] // size, "all" if each % 4 > 1 else "one"
            found.append(Point(name, at, "after" if each % 2 else "before", victims))
    return found


def kills(count: int, only: str) -> dict[str, Any]:
    """Kill at each point, go on as a person would, and say what was lost, landed twice, or left."""
    calls = dict[str, int]()
    for name, words in COMMANDS.items():
        begin(Point(name, 0, "", ""))
        interlock(*words)
        calls[name] = len((MARKS / "calls").read_text().splitlines())
    rows = [killed(point) for point in points(calls, count or 50) if only in point.command]
    bad = [row for row in rows if row["landed"] != 1 or row["left"] or row["trees"] or row["verify"] or row["other"]]
    return {"rows": rows, "checks": {"calls of git": calls, "points": len(rows), "points with a fault": len(bad)}}


def begin(point: Point) -> None:
    """Make a project; before landing alone, with an approved run and a branch that has moved since."""
    check = f"sleep {SECONDS['gate']}\n{world.CHECK}"
    world.make({"ONE-1": ACT}, {"interlock.toml": SETUP + CONFIG, "tests/check.sh": check})
    if point.command == "land":
        interlock("run", "--apart", "tasks/ONE-1.toml")
        git(PROJECT, "commit", "-q", "--allow-empty", "-m", "Empty")
        world.write(PROJECT, {"src/second.txt": "good\n"})
        git(PROJECT, "add", "-A")
        git(PROJECT, "commit", "-qm", "Second")
    world.write(WORLD, {"bin/git": GIT, "marks/at": f"{point.at} {point.side}\n"})
    (WORLD / "bin/git").chmod(0o755)
    os.environ["PATH"] = f"{WORLD}/bin:" + os.environ["PATH"].removeprefix(f"{WORLD}/bin:")


def killed(point: Point) -> dict[str, Any]:
    """Kill a command at a point, and go on."""
    begin(point)
    pid, handed_over, waits = world.start(*COMMANDS[point.command]), False, f"sleep {SECONDS.get(str(point.at))} "
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None and not (MARKS / "here").exists():
        there = processes().values()
        handed_over = handed_over or f"sleep {SECONDS['agent']} " in there
        if waits in there and handed_over == (point.at in ("gate", "agent")):
            time.sleep(float(point.side))
            break
    # Whoever started a process goes before it, and makes nothing of its end.
    for each in sorted(processes()) if point.victims == "all" else [pid]:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    for name in ("at", "here"):
        (MARKS / name).unlink(missing_ok=True)
    left, steps, runs = world.left(), list[tuple[str, ...]](), graph.list_runs(PROJECT, "runs")
    steps += [("resume", run) for run in runs if world.end_of(run) not in ("APPROVED", "BLOCKED")]
    steps += [] if runs else [COMMANDS["run"]]
    steps += [COMMANDS["land"], ("prune", "--yes")]
    then = [f"{words[0]} {interlock(*words)[0]}" for words in steps]
    trailers = git(PROJECT, "log", "--first-parent", "--format=%(trailers:key=Interlock-Run,valueonly,separator=%x20)")
    return {
        **point._asdict(),
        "ended": status,
        "then": ", ".join(then),
        "landed": len([line for line in trailers.splitlines() if line]),
        "left": left + world.left(),
        "trees": [*world.trees(), *map(str, Path("/dev/shm").glob("interlock-*"))],
        "in /tmp": len([*Path("/tmp").glob("interlock-*")]),
        "verify": interlock("verify")[0],
        "other": git(PROJECT, "status", "-s") + git(PROJECT, "for-each-ref", "refs/interlock", "refs/heads/interlock"),
    }
