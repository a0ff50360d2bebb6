"""Thirteen responses that real agents wrote: every one is found inside its message, and its faults are named."""

from pathlib import Path
from typing import Any

import pytest

from tests.interlock.command import Ran, check


@pytest.fixture(scope="module")
def answers(corpus: Path) -> list[Path]:
    """The responses of the corpus."""
    return sorted(path for path in corpus.glob("*.md") if path.name != "README.md")


@pytest.fixture(scope="module")
def extracted(answers: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """What the command says of all of them in one call."""
    (root := tmp_path_factory.mktemp("project")).joinpath("interlock.toml").write_text('[envelope]\ninputs = "warn"\n')
    return check("--extract", "--no-evidence", "--root", root, *answers)


def codes(row: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in row["findings"]}


def test_all_thirteen_extract(extracted: Ran):
    assert len(extracted.files) == 13
    for row in extracted.files:
        assert row["status"], row["path"]
        assert row["normalised"], row["path"]
        assert codes(row).isdisjoint({"ENV223", "ENV224", "ENV299"}), row["path"]


def test_one_lacks_a_field_and_the_others_have_all_twelve(extracted: Ran):
    assert sum("ENV203" in codes(row) for row in extracted.files) == 1


def test_all_but_one_break_the_protocol_and_every_error_says_what_to_do(extracted: Ran):
    assert (extracted.status, [row["ok"] for row in extracted.files].count(False)) == (1, 12)
    for row in extracted.files:
        errors = [finding for finding in row["findings"] if finding["level"] == "error"]
        assert all(finding["fix"] and finding["source"] and finding["line"] for finding in errors), row["path"]


def test_none_begins_as_the_protocol_says(answers: list[Path]):
    ran = check("--no-evidence", *answers)
    assert (ran.status, [row["path"] for row in ran.files if row["ok"]]) == (1, [])
