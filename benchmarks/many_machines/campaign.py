"""Rounds of one fault in a world of their own, and what the checker found."""

import json
import random
import shutil
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.many_machines import project
from benchmarks.many_machines.checker import Checked, check
from benchmarks.many_machines.faults import FAULTS
from benchmarks.many_machines.planted import CALL_SECONDS, PLANTED
from benchmarks.many_machines.world import TIMEOUT_SECONDS, World
from interlock.graph.team.schema import set_up
from tests.postgres import Server

TEMPLATE: Final = "of_worlds"
SETTLE_SECONDS: Final = 180.0
_DISK: Final = "100m"


@contextmanager
def world(
    server: Server,
    folder: Path,
    kind: project.Kind = "plain",
    *,
    small_disk: bool = False,
    call_seconds: float = project.CALL_SECONDS,
    timeout: float = TIMEOUT_SECONDS,
    more: Mapping[str, str] | None = None,
) -> Generator[World]:
    """Make a world with a database of its own, on a small disk of its own or not."""
    if not server.run("SELECT 1 FROM pg_database WHERE datname = %s", TEMPLATE):
        server.run(f"CREATE DATABASE {TEMPLATE}")
        set_up(server.address(TEMPLATE), roles=False)
    folder.mkdir(parents=True, exist_ok=True)
    with (
        _disk(server) if small_disk else server.database(template=TEMPLATE) as address,
        World(folder, server, address, kind, call_seconds, timeout, more) as made,
    ):
        yield made


@contextmanager
def _disk(server: Server) -> Generator[str]:
    """Make a database on a small disk of its own; yield its address."""
    disk = server.folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK},mode=777", "tmpfs", disk], check=True)
    try:
        (disk / "space").mkdir()
        shutil.chown(disk / "space", "postgres", "postgres")
        server.run(f"CREATE TABLESPACE small LOCATION '{disk}/space'")
        server.run(f"CREATE DATABASE on_disk TEMPLATE {TEMPLATE} TABLESPACE small")
        try:
            yield server.address("on_disk")
        finally:
            (disk / "filled").unlink(missing_ok=True)
            server.start()
            server.run("DROP DATABASE on_disk WITH (FORCE)")
            server.run("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", disk], check=True)
        disk.rmdir()


def rounds(
    server: Server, folder: Path, fault: str, count: int, seed: int, kind: project.Kind = "plain", every: int = 5
) -> Checked:
    """Do so many rounds of a fault with two workers; after `every` few wait until all runs are over, and look."""
    rng = random.Random(f"{fault} {seed}")
    found = Checked([], 0, 0, 0, 0, 0)
    with world(server, folder, kind, small_disk=fault == "full-disk") as made:
        made.start(2)
        for number in range(count):
            FAULTS[fault](made, rng, f"T-{number}")
            if (number + 1) % every == 0 or number + 1 == count:
                made.settle(SETTLE_SECONDS)
                found = check(made)._replace(rounds=number + 1)
                if found.faults:
                    _keep(made, found)
                    break
        for machine in made.machines.values():
            machine.end()
        made.until(lambda: not made.processes(), 10)
        left = [f"left when all workers had ended: {each.cmdline()[:6]}" for each in made.processes()]
        return found._replace(faults=found.faults + left)


def _keep(made: World, found: Checked) -> None:
    """Keep what happened, and what was done when, for whoever looks for the cause."""
    lines = [
        f"{line['at']} {line['run']} {line['seq']} {line['key']} {json.dumps(line['data'])}" for line in made.lines()
    ]
    lines += [f"{time.strftime('%T', time.gmtime(fault.began))} {fault}" for fault in made.faults]
    lines += [str(call) for call in made.provider.calls]
    lines += found.faults
    (made.folder / "story.log").write_text("\n".join(lines))


def planted(server: Server, folder: Path, plant: str) -> Checked:
    """Plant a bug into two workers, do to a run what makes it matter, and look."""
    with world(server, folder, call_seconds=CALL_SECONDS) as made:
        made.start(2, plant=plant)
        (run,) = made.submit("T-0")
        PLANTED[plant](made, run)
        made.settle(SETTLE_SECONDS)
        return check(made)
