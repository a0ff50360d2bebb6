"""Eight tasks from a clean project to landed; best of three; and agents that wait."""

import itertools
import os
import subprocess
import time
from typing import Any

from benchmarks.many_tasks import world
from benchmarks.many_tasks.world import CONFIG, PROJECT, WORLD, WRITE, WRONG, git
from interlock import graph
from interlock.graph.engine.folder import journal_path
from interlock.journal import Journal

OWN = (".interlock", "artifacts", ".git/objects", ".git/refs/interlock", ".git/interlock-landing.lock")
BOTH = "p = pathlib.Path('src/first.txt')\np.write_text(p.read_text() + 'good\\n# ' + task + '\\n')\n"
CHEAT = "pathlib.Path('tests/check.sh').write_text('true\\n')\npathlib.Path('notes.md').write_text('x')\n"
EIGHT = {"SAME-1": BOTH, "SAME-2": BOTH, "CHEAT-1": CHEAT + WRONG, "GOOD-1": WRITE, "GOOD-2": WRITE, "GOOD-3": WRITE}
CRASHES = {"EXIT-1": WRITE + "sys.exit(3)\n", "KILL-1": WRITE + "os.kill(os.getpid(), 9)\n"}
BUILDERS = {"cheat": CHEAT + WRONG, "wrong": WRONG, "right": WRITE.replace("good", "good\\nbetter")}


def eight(_count: int, _only: str) -> dict[str, Any]:
    """Run eight tasks at once, and land what is approved."""
    world.make(EIGHT | CRASHES)
    first, before, changed = git(PROJECT, "rev-parse", "HEAD"), world.digests(PROJECT, OWN), set[str]()
    started, pid = time.monotonic(), world.start("run", "tasks", "--jobs", "8", "--land")
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        now = world.digests(PROJECT, OWN)
        time.sleep(1 if now != before else 0.2)  # git brings the files first, and the branch then
        if git(PROJECT, "rev-parse", "HEAD") == first:
            changed |= {path for path, _ in now.items() ^ before.items()}
    seconds, landed = round(time.monotonic() - started), landed_runs()
    runs = {run: world.end_of(run) for run in graph.list_runs(PROJECT, "runs")}
    tree_of = {run: graph.RunStore(PROJECT, run).load()[1].tree for run in runs}
    judged = {first, *(commit for commit, how in landed.values() if how)}
    checks = {
        "seconds": seconds,
        "right tasks that landed, of 5": len({run.partition(".")[0] for run in landed}),
        "files of the checkout that changed before the first landing": [*changed],
        "commits that were not judged": [commit for commit in first_parents() if commit not in judged],
        "commits whose tests fail": failing_commits(),
        "trees of runs that landed": [run for run in landed if tree_of[run] in world.trees()],
        "branches of ours, changes": git(PROJECT, "branch", "--list", "interlock/*") + git(PROJECT, "status", "-s"),
        "processes that are left": world.left(),
        "exit of verify and prune": [world.interlock("verify")[0], world.interlock("prune", "--yes")[0]],
        "trees that are left then": [run for run in runs if tree_of[run] in world.trees()],
    }
    rows = [{"run": run, "end": end, "landed": " ".join(landed.get(run, ()))} for run, end in sorted(runs.items())]
    return {"rows": rows, "checks": checks}


def first_parents() -> list[str]:
    """Return the commits that the branch came to, the newest first."""
    return git(PROJECT, "rev-list", "--first-parent", "main").split()


def landed_runs() -> dict[str, tuple[str, str]]:
    """Return for each run that landed, as the journal says, the commit and how it was judged."""
    lines = [entry for entry in Journal(journal_path(PROJECT)).entries() if entry.type == "landed"]
    return {run: (line.data["commit"], line.data.get("judged", "")) for line in lines for run in line.data["runs"]}


def failing_commits() -> list[str]:
    """Return the commits of the branch whose files do not pass the tests as they were at the beginning."""
    test = "mkdir $0; git archive $1 | tar -x -C $0; cd $0; " + world.CHECK
    tried = {commit: ["sh", "-c", test, f"{WORLD}/tmp/{commit}", commit] for commit in first_parents()}
    return [name for name, words in tried.items() if subprocess.run(words, cwd=PROJECT, check=False).returncode]


def best(count: int, _only: str) -> dict[str, Any]:
    """Run tasks with three candidates each, of which one is right, and land the best."""
    orders = dict(enumerate(itertools.islice(itertools.cycle(itertools.permutations(BUILDERS)), count or 30)))
    acts = {f"BEST-{at}-C{place}": BUILDERS[kind] for at in orders for place, kind in enumerate(orders[at], 1)}
    # Also where it is reported only, what a cheat does to the tests counts for nothing.
    config = CONFIG.replace('"build"', '"build"\ncandidates = 3').replace("[run]", '[run]\noutside = "report"')
    world.make(acts, {"interlock.toml": config, **{f"best/{at}.toml": task(f"BEST-{at}") for at in orders}})
    started = time.monotonic()
    world.interlock("run", "best", "--jobs", "2", "--land")
    landed, right = landed_runs(), [f"BEST-{at}-C{order.index('right') + 1}.1" for at, order in orders.items()]
    row = {"tasks": len(orders), "the right one landed": len(landed.keys() & {*right})}
    row |= {"another one landed": len(landed.keys() - {*right}), "commits whose tests fail": len(failing_commits())}
    return {"rows": [row | {"left": len(world.left()), "seconds": round(time.monotonic() - started)}]}


def task(name: str) -> str:
    """Return the text of a task whose scope is `src`."""
    return world.test_trees.Checkout.task(name)


def waiting(count: int, _only: str) -> dict[str, Any]:
    """Run three agents that wait for some seconds, one after the other and at once."""
    seconds, took = count or 20, dict[str, float]()
    for jobs in ("1", "3"):
        world.make({f"WAIT-{number}": f"time.sleep({seconds})\n{WRITE}" for number in (1, 2, 3)})
        started = time.monotonic()
        world.interlock("run", "tasks", "--jobs", jobs)
        took[jobs] = round(time.monotonic() - started, 1)
        assert {world.end_of(run) for run in graph.list_runs(PROJECT, "runs")} == {"APPROVED"}
    row: dict[str, Any] = {"agents wait": f"{seconds} s", "one after the other": took["1"], "three at once": took["3"]}
    return {"rows": [row | {"ratio": round(took["1"] / took["3"], 2)}]}
