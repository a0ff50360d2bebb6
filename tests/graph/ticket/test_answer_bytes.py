"""What a ticket costs the context of an agent stays within its bounds."""

from pathlib import Path

from benchmarks.answer_bytes import UNTIL_PLAN, walk
from benchmarks.tickets import make_project


def test_the_answers_of_a_ticket_stay_small(tmp_path: Path) -> None:
    assert sum(walk(make_project(tmp_path / "passing"), refused=False)[: UNTIL_PLAN + 1]) <= 12_000
    refused = walk(make_project(tmp_path / "refused"), refused=True)
    assert len(refused) == 1 + 7 + 4
    assert sum(refused) <= 25_000
