"""Measures what test gates let through.

    python -m benchmarks.false_accept                      # each cheat on a third of the programs of the repository
    python -m benchmarks.false_accept --full               # on all of them
    python -m benchmarks.false_accept --programs 4         # with the first four of each language
    python -m benchmarks.false_accept --quixbugs DIR --full --known
    python -m benchmarks.false_accept --json > found.json

A scripted worker does honest work, nothing, or one of many cheats, in a project of its own for each gate. A false
accept is a cheat that passes; a wrong refusal is honest work that does not. Progress goes to standard error. It never
fails by the clock, or by what it finds.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.false_accept.behaviours import BEHAVIOURS
from benchmarks.false_accept.judges import GATES
from benchmarks.false_accept.programs import Program, own_programs, quixbugs_programs
from benchmarks.false_accept.trials import Trials, pairs_of, results, table

MEMORY_DISK_BYTES: Final = 1024**3


def chosen(programs: Sequence[Program], number: int | None) -> list[Program]:
    """Return the first programs of each language that can run here."""
    found: list[Program] = []
    for language in ("python", "javascript"):
        mine = [program for program in programs if program.language == language]
        found += mine[:number]
    missing = {program.command[0] for program in found if shutil.which(program.command[0]) is None} - {"python"}
    for name in sorted(missing):
        print(f"{name} is not on PATH: its programs are left out", file=sys.stderr)
    return [program for program in found if program.command[0] not in missing]


def memory_disk() -> str | None:
    """Return a folder that is kept in memory, where there is one with space, unless TMPDIR names another."""
    disk = "/dev/shm"
    large = Path(disk).is_dir() and shutil.disk_usage(disk).free > MEMORY_DISK_BYTES
    return disk if large and "TMPDIR" not in os.environ and os.access(disk, os.W_OK) else None


def main() -> None:
    """Run the trials and print what they came to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quixbugs", type=Path, metavar="DIR", help="the folder of QuixBugs")
    parser.add_argument("--gates", default=",".join(GATES), help=f"some of {','.join(GATES)}")
    parser.add_argument("--behaviours", default="", help="some behaviours, with commas; all of them by default")
    parser.add_argument("--programs", type=int, metavar="N", help="the first N programs of each language")
    parser.add_argument("--full", action="store_true", help="each cheat on each program, not on a third of them")
    parser.add_argument("--known", action="store_true", help="of the cheats only the 15 that were measured first")
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    gates = args.gates.split(",")
    names = [name for name in args.behaviours.split(",") if name]
    for what, given, known in (("gate", gates, GATES), ("behaviour", names, BEHAVIOURS)):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"there is no {what} {', '.join(unknown)}; there are {', '.join(known)}")
    programs = chosen(quixbugs_programs(args.quixbugs) if args.quixbugs else own_programs(), args.programs)
    pairs = pairs_of(programs, names, known=args.known, full=args.full)

    def notice(done: int) -> None:
        if done % 20 == 0 or done == len(pairs):
            print(f"{done} of {len(pairs)} behaviours on programs", file=sys.stderr)

    with tempfile.TemporaryDirectory(dir=memory_disk(), ignore_cleanup_errors=True) as folder:
        found = results(Trials(Path(folder).resolve(), notice).run(pairs, gates, args.jobs), gates)
    print(json.dumps(found, indent=2) if args.json else table(found))


if __name__ == "__main__":
    main()
