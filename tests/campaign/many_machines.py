"""What the tests of faults share: rounds of a fault on a server of their own, and what is said of them."""

from pathlib import Path

import pytest

from benchmarks.many_machines import campaign, faults, project
from tests.postgres import Server

SHORT, FULL = 5, 50
HALVES = ("plain", "pair")
"""Half of the rounds are of each kind of project."""


def do(server: Server, folder: Path, fault: str, rounds: int, kind: project.Kind, seed: int = 1) -> None:
    """Do rounds of a fault, and want nothing lost, forked, asked again or left."""
    if why := faults.why_not(fault):
        pytest.skip(why)
    server.start()
    found = campaign.rounds(server, folder, fault, rounds, seed, kind)
    print(f"{fault}, {kind}: {found.rounds} rounds, {found.calls} paid calls, {found.again} of them made again")
    assert not found.faults, "\n".join(map(str, found.faults))
