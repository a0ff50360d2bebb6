"""Measures runs in trees of their own, with scripted agents in real processes. Nothing here fails by the clock.

    python -m benchmarks.many_tasks eight              # 8 tasks at once: two on one line, a cheat, two that crash
    python -m benchmarks.many_tasks kills --count 50   # kill -9 anywhere, and what the next commands make of it
    python -m benchmarks.many_tasks best --count 30    # best of three, with the right builder in changing places
    python -m benchmarks.many_tasks acts               # what agents do outside of their scope, and honest work
    python -m benchmarks.many_tasks waiting            # three agents that wait, at once and one after the other

All of it runs inside bubblewrap, where a folder on the memory disk is /srv and nothing else can be written.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.many_tasks import acts, kills, tasks
from benchmarks.many_tasks.world import WORLD

INSIDE = "MANY_TASKS_INSIDE"
PARTS = {
    "eight": tasks.eight,
    "best": tasks.best,
    "waiting": tasks.waiting,
    "kills": kills.kills,
    "acts": acts.acts,
}


def main() -> None:
    """Measure one part, print its table, and write its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--count", type=int, default=0, help="how many rounds; by default all")
    parser.add_argument("--only", default="", metavar="TEXT", help="of the acts those with this text, or one mode")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    if os.environ.get(INSIDE):
        found = PARTS[options.part](options.count, options.only)
        Path(WORLD, "found.json").write_text(json.dumps(found, indent=1))
        return
    memory = "/dev/shm"  # noqa: S108
    with tempfile.TemporaryDirectory(prefix="many-tasks-", dir=memory if os.path.isdir(memory) else None) as name:
        done = subprocess.run(_boxed(Path(name), sys.argv[1:]), check=False)
        found = Path(name, "found.json")
        if done.returncode == 0 and options.json:
            shutil.copy(found, options.json)
        if done.returncode == 0:
            figures = json.loads(found.read_text())
            show(figures["rows"])
            show([{"": name, "figure": value} for name, value in figures.get("checks", {"": ""}).items()])
    sys.exit(done.returncode)


def _boxed(folder: Path, words: Sequence[str]) -> list[str]:
    for name in ("tmp", "run"):
        (folder / name).mkdir()
    argv = ["bwrap", "--die-with-parent", "--unshare-pid", "--cap-add", "ALL", "--ro-bind", "/", "/", "--dev", "/dev"]
    argv += [] if os.getuid() == 0 else ["--unshare-user", "--uid", "0", "--gid", "0"]
    argv += ["--proc", "/proc", "--bind", str(folder), WORLD, "--setenv", INSIDE, "1", "--setenv", "HOME", f"{WORLD}/home"]
    for name in ("tmp", "run"):
        argv += ["--bind", str(folder / name), f"/{name}"]
    # The sandboxes within need a /proc of which nothing is covered.
    again = 'mount -t proc proc /proc && exec "$@"'
    return [*argv, "--", "sh", "-c", again, "sh", sys.executable, "-m", "benchmarks.many_tasks", *words]


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows with the same keys as a table."""
    cells = [[*rows[0]], *([str(value) for value in row.values()] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
