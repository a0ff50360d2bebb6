"""Measures what happens in a shared checkout to the work that one agent holds and others' commands reach.

    python -m benchmarks.shared_checkout lines                      # hostile.txt and honest.txt, each line for real
    python -m benchmarks.shared_checkout lines --no-guard           # no shell line is refused: effects alone count
    python -m benchmarks.shared_checkout lines --interlock OLD --interlock NEW --json > found.json
    python -m benchmarks.shared_checkout agents --seconds 600       # two agents and a person at once
    python -m benchmarks.shared_checkout hooks                      # the latency of the hooks

Everything runs inside bubblewrap: of the disk only the folder of the measurement can be written, and there is no
network, since the lines destroy what they reach. A path of `--interlock` is a checkout of Interlock, or its program. It
never fails by the clock, or by what it finds.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.shared_checkout import agents, hooks, lines
from benchmarks.shared_checkout.programs import COMPILED, ROOT

FOLDER: Final = "INTERLOCK_BENCH_FOLDER"
"""Set inside the sandbox: the folder that can be written."""
_MEMORY_DISK: Final = "/dev/shm"
_MEMORY_DISK_BYTES: Final = 2 * 1024**3


def inside(folder: Path, paths: list[Path]) -> list[str]:
    """Return the words that run a program with nothing to write but a folder."""
    (folder / "tmp").mkdir()
    words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--bind", str(folder / "tmp"), "/tmp"]
    for path in (ROOT, *paths):
        words += ["--ro-bind", str(path.resolve()), str(path.resolve())]
    return [*words, "--bind", str(folder), str(folder), "--unshare-net", "--chdir", str(ROOT)]


def parsed() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("lines", "agents", "hooks"))
    parser.add_argument("--interlock", type=Path, action="append", default=[], metavar="PATH")
    parser.add_argument("--no-guard", action="store_true", help="let the hook pass every shell line")
    parser.add_argument("--busy", action="store_true", help="lines: a command of ann's is running all the while")
    parser.add_argument("--list", choices=("hostile", "honest"), action="append", help="one list of lines")
    parser.add_argument("--only", default="", metavar="REGEX", help="the families or lines that it is found in")
    parser.add_argument("--limit", type=int, help="the first lines of each list")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the agents work")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shell", type=float, default=0.5, help="the share of ann's edits by shell commands")
    parser.add_argument("--rounds", type=int, default=15, help="how often each hook is called")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write everything as JSON there as well")
    return parser.parse_args()


def main() -> int:
    """Measure, and print what was found."""
    args = parsed()
    if FOLDER not in os.environ:
        if shutil.which("bwrap") is None:
            print("bwrap is not on PATH, and without it nothing is run: the lines destroy files", file=sys.stderr)
            return 2
        large = Path(_MEMORY_DISK).is_dir() and shutil.disk_usage(_MEMORY_DISK).free > _MEMORY_DISK_BYTES
        disk = _MEMORY_DISK if large and "TMPDIR" not in os.environ else None
        with tempfile.TemporaryDirectory(dir=disk, ignore_cleanup_errors=True) as made:
            folder = Path(made).resolve()
            command = [*inside(folder, args.interlock), sys.executable, "-m", "benchmarks.shared_checkout"]
            env = {**os.environ, FOLDER: str(folder), COMPILED: str(folder / "compiled")}
            done = subprocess.run([*command, *sys.argv[1:]], env=env, check=False)
            if args.keep and (folder / "found.json").exists():
                shutil.copyfile(folder / "found.json", args.keep)
        return done.returncode
    folder = Path(os.environ.pop(FOLDER))
    found, text = measured(folder, args)
    (folder / "found.json").write_text(json.dumps(found, indent=2))
    print(json.dumps(found, indent=2) if args.json else text)
    return 0


def measured(folder: Path, args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Return what was found, and the same as text."""
    if args.what == "agents":
        found = agents.measure(
            folder, args.interlock, no_guard=args.no_guard, seconds=args.seconds, seed=args.seed, shell=args.shell
        )
        return found, agents.table(found)
    if args.what == "hooks":
        found = hooks.measure(folder, args.interlock, no_guard=args.no_guard, rounds=args.rounds)
        return found, hooks.table(found)
    found = lines.measure(
        folder,
        args.interlock,
        no_guard=args.no_guard,
        is_busy=args.busy,
        which=args.list or ("hostile", "honest"),
        only=args.only,
        limit=args.limit,
    )
    return found, lines.table(found)


if __name__ == "__main__":
    sys.exit(main())
