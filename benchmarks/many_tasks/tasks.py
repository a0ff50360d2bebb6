"""Eight tasks from a clean project to landed; best of three; and agents that wait."""

import itertools
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from benchmarks.many_tasks.world import (
    CHECK,
    CONFIG,
    PROJECT,
    WORLD,
    WRITE,
    digests,
    end_of,
    first_parents,
    git,
    interlock,
    left,
    make,
    start,
    trees,
)
from interlock import graph
from interlock.graph.engine.folder import journal_path
from interlock.journal import Journal

OWN = (".interlock", "artifacts", ".git/objects", ".git/refs/interlock", ".git/interlock-landing.lock")
BOTH = "p = pathlib.Path('src/first.txt')\np.write_text(p.read_text() + 'good\\n# ' + task + '\\n')\n"
CHEAT = "pathlib.Path('tests/check.sh').write_text('true\\n')\npathlib.Path('notes.md').write_text('x')\n"
EIGHT = {
    "SAME-1": BOTH,
    "SAME-2": BOTH,
    "CHEAT-1": CHEAT + WRITE.replace("good", "bad"),
    "EXIT-1": WRITE + "sys.exit(3)\n",
    "KILL-1": WRITE + "os.kill(os.getpid(), 9)\n",
    **{f"GOOD-{number}": WRITE for number in (1, 2, 3)},
}


def eight(_count: int, _only: str) -> dict[str, Any]:
    """Run eight tasks at once, and land what is approved."""
    make(EIGHT)
    first, before, changed = first_parents()[0], digests(PROJECT, OWN), list[str]()
    started, pid = time.monotonic(), start("run", "tasks", "--jobs", "8", "--land")
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        now = digests(PROJECT, OWN)
        if now != before:
            time.sleep(1)  # git brings the files first, and the branch then
        if now != before and first_parents()[0] == first:
            changed += sorted({path for path, _ in now.items() ^ before.items()})
        time.sleep(0.2)
    seconds = time.monotonic() - started
    runs = {run: end_of(run) for run in graph.list_runs(PROJECT, "runs")}
    landed = landed_runs()
    kept = {graph.RunStore(PROJECT, run).load()[1].tree for run in runs if run not in landed}
    verified, text = interlock("verify")
    rows = [
        {"run": run, "end": end, "landed": landed.get(run, ("",))[0][:12], "judged": landed.get(run, ("", ""))[1]}
        for run, end in sorted(runs.items())
    ]
    checks = {
        "seconds": round(seconds, 1),
        "tasks that landed, of 5 that are right": len({run.rpartition(".")[0] for run in landed}),
        "files of the checkout that changed before the first landing": changed,
        "commits that were not judged": [commit for commit in first_parents() if commit not in judged_commits(first)],
        "commits whose tests fail": failing_commits(),
        "trees of runs that landed": [tree for tree in trees() if tree not in kept],
        "branches of ours": git(PROJECT, "branch", "--list", "interlock/*"),
        "processes that are left": left(),
        "checkout": git(PROJECT, "status", "--porcelain"),
        "verify": verified or text.splitlines()[-1:],
    }
    return {"rows": rows, "checks": checks}


def landed_runs() -> dict[str, tuple[str, str]]:
    """Return for each run that landed, as the journal says, the commit and how it was judged."""
    lines = [entry for entry in Journal(journal_path(PROJECT)).entries() if entry.type == "landed"]
    return {run: (line.data["commit"], line.data.get("judged", "")) for line in lines for run in line.data["runs"]}


def judged_commits(first: str) -> set[str]:
    """Return the commits of which the journal says that their trees were judged, and the first one."""
    return {first, *(commit for commit, how in landed_runs().values() if how)}


def failing_commits() -> list[str]:
    """Return the commits of the branch whose files do not pass the tests as they were at the beginning."""
    found = list[str]()
    for commit in first_parents():
        folder = Path(WORLD, "tmp", commit)
        folder.mkdir()
        subprocess.run(f"git archive {commit} | tar -x -C {folder}", shell=True, cwd=PROJECT, check=True)
        if subprocess.run(["sh", "-c", CHECK], cwd=folder, check=False, capture_output=True).returncode != 0:
            found.append(commit)
    return found


BUILDERS = {
    "cheat": "pathlib.Path('tests/check.sh').write_text('true\\n')\n" + WRITE.replace("good", "bad"),
    "wrong": WRITE.replace("good", "bad"),
    "right": WRITE.replace("good\\n", "good\\nbetter\\n"),
}


def best(count: int, _only: str) -> dict[str, Any]:
    """Run tasks with three candidates each, of which one is right, and land the best."""
    orders = list(itertools.islice(itertools.cycle(itertools.permutations(BUILDERS)), count or 30))
    acts = {f"BEST-{at}-C{place}": BUILDERS[kind] for at, order in enumerate(orders) for place, kind in enumerate(order, 1)}
    names = [f"BEST-{at}" for at in range(len(orders))]
    # Also where it is reported only, what a cheat does to the tests counts for nothing.
    config = CONFIG.replace('"build"', '"build"\ncandidates = 3').replace("[run]", '[run]\noutside = "report"')
    make(dict.fromkeys(names, "") | acts, {"interlock.toml": config})
    for path in (PROJECT / "tasks").glob("*-C?.toml"):
        path.unlink()
    git(PROJECT, "commit", "-qam", "Tasks")
    started = time.monotonic()
    interlock("run", "tasks", "--jobs", "2", "--land")
    landed, right = landed_runs(), [f"BEST-{at}-C{order.index('right') + 1}.1" for at, order in enumerate(orders)]
    row = {
        "tasks": len(names),
        "the right one landed": len([run for run in right if run in landed]),
        "another one landed": len(landed.keys() - {*right}),
        "commits whose tests fail": len(failing_commits()),
        "processes that are left": len(left()),
        "seconds": round(time.monotonic() - started),
    }
    return {"rows": [row]}


def waiting(count: int, _only: str) -> dict[str, Any]:
    """Run three agents that wait for some seconds, one after the other and at once."""
    seconds, took = count or 20, dict[str, float]()
    for jobs in ("1", "3"):
        make({f"WAIT-{number}": f"time.sleep({seconds})\n{WRITE}" for number in (1, 2, 3)})
        started = time.monotonic()
        interlock("run", "tasks", "--jobs", jobs)
        took[jobs] = time.monotonic() - started
        assert {end_of(run) for run in graph.list_runs(PROJECT, "runs")} == {"APPROVED"}
    row = {"agents wait": f"{seconds} s", "one after the other": round(took["1"], 1), "three at once": round(took["3"], 1)}
    return {"rows": [row | {"ratio": round(took["1"] / took["3"], 2)}]}
