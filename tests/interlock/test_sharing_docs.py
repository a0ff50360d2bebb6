"""The sessions that the pages show are what the commands really print."""

from pathlib import Path

import pytest

from tests.interlock.replay import BLOCK, Shop, alike, steps

REPO = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.parametrize("page", ["README.md", "docs/sharing-a-checkout.md"])
def test_every_session_on_a_page_goes_as_it_is_written(page: str, tmp_path: Path) -> None:
    """To renew it: `python -m tests.interlock.replay PAGE`."""
    written = BLOCK.findall((REPO / page).read_text(encoding="utf-8"))
    assert written
    shop = Shop(tmp_path)
    shop.begin()
    for step in [step for block in written for step in steps(block)]:
        seen = shop.run(step.name, step.command)
        assert alike(seen) == alike(step.output), step.command
        shop.learn(step.output, seen)
