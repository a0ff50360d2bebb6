"""The main job on the real page: what it shows, what it leaves behind, and how it ends when the fault stays."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from interlock.graph import journal_path, parse_head, verify_journal
from interlock.journal import Entry, Journal
from tests import warm

REPO = Path(__file__).parents[2]

pytestmark = [pytest.mark.long, pytest.mark.browser, pytest.mark.timeout(180)]


@dataclass
class Demo:
    """One finished `make demo`."""

    folder: Path
    done: subprocess.CompletedProcess[str]

    def entries(self, kind: str) -> list[Entry]:
        """Return the journal lines of one type."""
        return [entry for entry in Journal(journal_path(self.folder)).entries() if entry.type == kind]


def make_demo(folder: Path, *variables: str) -> Demo:
    """Run the command that the README names."""
    command = ["make", "--no-print-directory", "demo", f"DIR={folder}", *variables]
    return Demo(folder, subprocess.run(command, cwd=REPO, capture_output=True, text=True, timeout=170, check=False))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Return the demo as shipped, run once."""
    return make_demo(tmp_path_factory.mktemp("demo") / "work")


def test_the_demo_ends_approved_with_exit_0_and_says_where_everything_is(demo: Demo) -> None:
    assert demo.done.returncode == 0, demo.done.stderr
    lines = dict(line.split(None, 1) for line in demo.done.stdout.splitlines())
    assert lines["status"] == "APPROVED"
    assert lines["path"].startswith("IN_PROGRESS → ")
    assert "BLOCKED → IN_PROGRESS" in lines["path"]
    for key in ("screenshots", "a11y", "console", "journal"):
        assert (demo.folder / lines[key]).is_file()
    assert verify_journal(demo.folder, [parse_head(lines["head"])]).problems == ()


def test_the_demo_shows_each_step_as_it_happens(demo: Demo) -> None:
    for each in ("refused (", "re-ask 1", "evidence for GATE-VISUAL-QA: 4 files, not met"):
        assert each in demo.done.stderr
    for each in ("BLOCKED", "PASS", "APPROVED"):
        assert each in demo.done.stderr


def test_the_screenshots_are_real_pictures_of_three_widths(demo: Demo) -> None:
    folder = demo.folder / "artifacts/screenshots/LANDING-UI-001/2"
    widths = set[int]()
    for path in folder.glob("*.png"):
        with Image.open(path) as image:
            widths.add(image.width)
            assert len(image.convert("RGB").getcolors(1 << 24) or []) > 100
    assert widths == {375, 768, 1280}


def test_the_axe_report_of_the_rework_is_clean_and_that_of_the_first_round_is_not(demo: Demo) -> None:
    def violations(attempt: int) -> list[dict[str, Any]]:
        (path,) = (demo.folder / f"artifacts/a11y/LANDING-UI-001/{attempt}").glob("*.axe.json")
        return json.loads(path.read_text(encoding="utf-8"))["violations"]

    assert {(item["engine"], item["id"]) for item in violations(1)} == {
        ("axe-core", "label"),
        ("axe-core", "color-contrast"),
        ("accesslint", "labels-and-names/form-label"),
        ("accesslint", "distinguishable/color-contrast"),
    }
    assert violations(2) == []


def test_the_journal_of_the_demo_tells_the_story_in_order(demo: Demo) -> None:
    statuses = [entry.data["to"] for entry in demo.entries("status")]
    assert statuses == [
        "IN_PROGRESS",
        "IN_PROGRESS",
        "READY_FOR_QA",
        "QA_IN_PROGRESS",
        "BLOCKED",
        "IN_PROGRESS",
        "READY_FOR_QA",
        "QA_IN_PROGRESS",
        "READY_FOR_REVIEW",
        "APPROVED",
    ]
    outcomes = [(entry.data["role"], entry.data["outcome"]) for entry in demo.entries("answer")]
    assert outcomes[:2] == [("web-design-lead", "progress"), ("frontend-implementer", "invalid")]
    assert {("visual-qa", "fail"), ("a11y-auditor", "fail"), ("code-reviewer", "pass")} <= set(outcomes)


def test_a_folder_that_no_demo_made_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    done = warm.interlock(REPO, "demo", "--dir", str(tmp_path))
    assert done.returncode != 0
    assert "--dir" in done.stderr
    assert (tmp_path / "mine.txt").read_text() == "precious"
