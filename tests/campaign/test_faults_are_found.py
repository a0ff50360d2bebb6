"""The checker of the faults finds bugs that were planted for it."""

from pathlib import Path

import pytest

from benchmarks.many_machines import campaign
from benchmarks.many_machines.planted import PLANTED
from tests.postgres import Server

SAID = {
    "fence": ("forked", "was written anew", "steps of its checkpoints"),
    "journal": ("it had to end with abandoned",),
    "answer": ("was asked again, and no fault had cut it off",),
    "tree": ("lost",),
    "wakeup": ("lost",),
    "resumed": ("was asked again, and no fault had cut it off",),
}


@pytest.mark.long
@pytest.mark.alternate
@pytest.mark.timeout(300)
@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_bug_is_found(plant: str, postgres: Server, tmp_path: Path) -> None:
    postgres.start()
    found = campaign.planted(postgres, tmp_path, plant)
    print(*found.faults, sep="\n")
    assert any(text in fault for fault in found.faults for text in SAID[plant])
