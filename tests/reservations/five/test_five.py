"""Agents in one checkout settle every conflict and lose no edit; and the figures would show it if they did."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.five.checkout import Checkout
from benchmarks.five.course import run
from benchmarks.five.figures import FIELD_STUDY, edits, failures, figures
from tests.table import each_row


@pytest.mark.long
def test_three_agents_settle_every_conflict_and_lose_no_edit_though_one_dies_and_one_is_stopped(tmp_path: Path) -> None:
    found = figures(run(Checkout(tmp_path / "workspace", "folders", 4), agents=3, seed=1, folder=tmp_path))
    assert failures(found) == []
    assert found["negotiations"]["resolved"] == found["negotiations"]["requests"]
    # The first agent dies at the first file of its third repository; its three leases there are taken over.
    assert (found["edits"], found["commits"]) == (3 * 4 + 3 * 4 + 2 * 3 + 1, 4 + 4 + 2)
    assert found["negotiations"]["takeovers"] >= 3
    # The hook, the guard in and outside of the transaction, and `interlock commit`.
    assert found["stale_writes"] == {"tried": 4, "accepted": 0}


def wrote(line: str, path: str = "a") -> dict[str, Any]:
    return {"kind": "wrote", "path": path, "line": line}


TWO = [wrote("x 1"), wrote("x 2")]
COMMITTED = [wrote("x 1"), {"kind": "committed", "paths": ["a"]}]


@each_row(
    ("logs", "files", "committed", "expected"),
    [
        (TWO, ["x 1", "x 2"], None, {}),
        (TWO, ["x 2"], None, {"lost": 1}),
        (TWO[:1], ["x 1", "x 1"], None, {"lost": 1}),
        (TWO[:1], ["x 1", "y stale"], None, {"unknown": 1}),
        (TWO[::-1], ["x 2", "x 1"], None, {"out_of_order": 1}),
        (COMMITTED, ["x 1"], [], {"lost_from_commits": 1}),
    ],
)
def test_every_edit_that_does_not_add_up_is_counted(
    logs: list[dict[str, Any]], files: list[str], committed: list[str] | None, expected: dict[str, int]
) -> None:
    """An edit that was written over is lost, and one that is there twice; a line has one writer and a rising token."""
    found = edits({"x": logs}, {"a": files}, {"a": files if committed is None else committed})
    assert {name: count for name, count in found.items() if count} == expected


def test_a_goal_that_was_missed_is_named() -> None:
    names = ("lost", "lost_from_commits", "out_of_order", "foreign_paths_committed", "unknown")
    reached = dict.fromkeys(names, 0) | {
        "conflicts": {"unresolved": 0},
        "stale_writes": {"accepted": 0},
        "negotiations": {"requests": 2, "resolved": 2},
    }
    assert failures(reached) == []
    assert len(failures(reached | {"lost": 1, "negotiations": FIELD_STUDY})) == 2
