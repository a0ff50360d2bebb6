"""Tries many machines for real: PostgreSQL, a bare repository, and workers with clones of their own.

    python -m benchmarks.many_machines faults --rounds 50 --only freeze    # what is lost, forked, paid twice
    python -m benchmarks.many_machines planted                             # the checker finds bugs that were planted
    python -m benchmarks.many_machines engines --rounds 10                 # other engines under the same faults
    python -m benchmarks.many_machines speed                               # two workers, connections, taking over

Nothing here fails by the clock. PostgreSQL is Debian's; root starts it as the user `postgres`.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from benchmarks.many_machines import campaign, engines, project, speed
from benchmarks.many_machines.faults import FAULTS, why_not
from benchmarks.many_machines.planted import PLANTED
from benchmarks.many_tasks.__main__ import show
from tests.postgres import Server, running_server


def main() -> None:
    """Measure one part, print its table, and write its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--rounds", type=int, default=0, help="of each fault; how many runs, of what is measured")
    parser.add_argument("--only", default="", metavar="TEXT", help="faults, engines or measurements with this text")
    parser.add_argument("--kind", default="plain", choices=project.ROLES, help="what the project is")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    memory, rows = Path("/dev/shm"), list[dict[str, Any]]()
    folder = Path(tempfile.mkdtemp(prefix="many-machines-", dir=memory if memory.is_dir() else None))
    try:
        with running_server() as server:
            for row in PARTS[options.part](server, folder, options):
                print(json.dumps(row), flush=True)
                rows.append(row)
    finally:
        if any(row.get("faults") for row in rows):
            print(f"{folder} has what the machines of rounds with faults kept", flush=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    show(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


def faults(server: Server, folder: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Do rounds of each fault."""
    for name in (name for name in FAULTS if options.only in name and not why_not(name)):
        server.start()
        began, count = time.monotonic(), options.rounds or 5
        kind = cast("project.Kind", options.kind)
        found = campaign.rounds(server, folder / name, name, count, options.seed, kind)
        row = found._asdict() | {"faults": len(found.faults), "first": "".join(found.faults[:1])}
        yield {"done": name, "kind": kind} | row | {"seconds": round(time.monotonic() - began)}


def planted(server: Server, folder: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Plant each bug."""
    for name in (name for name in PLANTED if options.only in name):
        found = campaign.planted(server, folder / name, name)
        yield {"planted": name, "found": len(found.faults), "first": found.faults[0] if found.faults else ""}


def compared(server: Server, folder: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Do the same faults to the graph of six nodes under each engine."""
    for engine in (name for name in engines.ENGINES if options.only in name):
        server.start()
        with campaign.world(server, folder / engine, timeout=engines.TIMEOUT_SECONDS) as made:
            trial = engines.Trial(engine, server, made.address, made.home.root)
            for fault in engines.FAULTS:
                yield trial.row(fault, options.rounds or 5)


def measured(server: Server, folder: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure how fast workers are and what they take."""
    for name, (part, count) in speed.MEASURED.items():
        if options.only in name:
            for at, value in part(server, folder / name, options.rounds or count).items():
                yield {"measured": name, "what": at, "figure": value}


PARTS = {"faults": faults, "planted": planted, "engines": compared, "speed": measured}

if __name__ == "__main__":
    main()
