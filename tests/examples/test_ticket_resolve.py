"""The loop that has a model work a ticket, with the answers that ship."""

import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

from interlock.graph import Tickets, verify_journal

EXAMPLE = Path(__file__).parents[2] / "examples" / "ticket-resolve"


@pytest.mark.long
def test_the_recorded_answers_take_the_ticket_to_its_end(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    shutil.copytree(EXAMPLE / "project", root)
    example: dict[str, Any] = runpy.run_path(str(EXAMPLE / "resolve.py"))
    end = example["resolve"](root, EXAMPLE / "ticket.md", example["recorded"](EXAMPLE / "recorded.jsonl"))
    assert end["next_state"] == "complete"
    state = Tickets(root).state("SHOP-12.resolve")
    assert [row["gate"] for row in state["history"]].count("retry") == 1
    assert "APPROVED" in state["history"][-2].get("payload", {})["actions_taken"][0]
    assert verify_journal(root).problems == ()
