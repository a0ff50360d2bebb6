"""Five agents at full size: 56 repositories, each a git repository of its own or folders of one."""

from pathlib import Path

import pytest

from benchmarks.five.checkout import Checkout, Layout
from benchmarks.five.course import run
from benchmarks.five.figures import FIELD_STUDY, failures, figures


@pytest.mark.campaign
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("layout", ["repositories", "folders"])
def test_five_agents_settle_every_conflict_and_lose_no_edit(layout: Layout, tmp_path: Path) -> None:
    found = figures(run(Checkout(tmp_path / "workspace", layout, 56), agents=5, seed=1, folder=tmp_path))
    print(found)
    assert failures(found) == []
    assert found["negotiations"]["requests"] > FIELD_STUDY["requests"]
