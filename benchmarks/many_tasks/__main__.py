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
PARTS = {each.__name__: each for each in (tasks.eight, kills.kills, tasks.best, acts.acts, tasks.waiting)}


def main() -> None:
    """Measure one part, print its table, and write its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--count", type=int, default=0, help="how many rounds; by default all")
    parser.add_argument("--only", default="", metavar="TEXT", help="acts with this text; sandbox, here or honest")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    if os.environ.get(INSIDE):
        found = PARTS[options.part](options.count, options.only)
        (WORLD / "found.json").write_text(json.dumps(found, indent=1))
        return
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="many-tasks-", dir=memory if memory.is_dir() else None) as name:
        subprocess.run(_boxed(Path(name), sys.argv[1:]), check=True)
        found = json.loads(Path(name, "found.json").read_text())
        if options.json:
            shutil.copy(f"{name}/found.json", options.json)
    show(found["rows"])
    show([{"": name, " ": value} for name, value in found.get("checks", {}).items()])


def _boxed(folder: Path, words: Sequence[str]) -> list[str]:
    argv = ["bwrap", "--die-with-parent", "--unshare-pid", "--cap-add", "ALL", "--ro-bind", "/", "/", "--dev", "/dev"]
    argv += [] if os.getuid() == 0 else ["--unshare-user", "--uid", "0", "--gid", "0"]
    argv += ["--proc", "/proc", "--setenv", INSIDE, "1", "--setenv", "HOME", f"{WORLD}/home"]
    argv += ["--bind", f"{folder}", f"{WORLD}"]
    for name in ("tmp", "run"):
        (folder / name).mkdir()
        argv += ["--bind", f"{folder}/{name}", f"/{name}"]
    # The sandboxes within need a /proc of which nothing is covered.
    again = 'mount -t proc proc /proc && exec "$@"'
    return [*argv, "--", "sh", "-c", again, "sh", sys.executable, "-m", "benchmarks.many_tasks", *words]


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows with the same keys as a table."""
    cells = [[*rows[0]], *([str(value) for value in row.values()] for row in rows)] if rows else []
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
