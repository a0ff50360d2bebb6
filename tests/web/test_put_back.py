"""Files that were put back at a hand-over, as people see them in the pages."""

from collections.abc import Callable
from pathlib import Path

from tests.graph.sealed_project import RIGHT, WEAK, sealed_project, working
from tests.web.conftest import World


def test_what_was_put_back_is_named_in_the_log_and_with_the_changes(tmp_path: Path, over: Callable[..., World]) -> None:
    shop = sealed_project(tmp_path / "shop")
    shop.runners = {"builder": working({**RIGHT, "tests/check.sh": WEAK})}
    run_id = shop.run().run_id
    browser = over(shop.root).browser()
    said = "the base at the hand-over of attempt 1: tests/check.sh . interlock restore HELLO-001.1 --show"
    assert said in browser.text(f"/shop/runs/{run_id}/changes")
    assert "put back as in the base: tests/check.sh" in browser.text(f"/shop/runs/{run_id}")
