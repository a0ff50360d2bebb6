"""Evidence files are compared with the journal: what was swapped, cut or removed later is found."""

from pathlib import Path

import pytest

from interlock.gates import write_evidence
from interlock.graph.engine.folder import journal_path
from interlock.graph.task.kept_evidence import check_evidence, present_path
from interlock.journal import Journal

REPORT = "artifacts/reports/CALC-1/1/GATE-TESTS.log"
REVIEW = "artifacts/reports/CALC-1/1/review.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a project whose journal names a collected report and a review that an agent wrote."""
    journal = Journal(journal_path(tmp_path))
    report = write_evidence(tmp_path, REPORT, b"12 passed")
    review = write_evidence(tmp_path, REVIEW, b"Reviewed.")
    rows = [{"key": "reports", "path": report.path, "sha256": report.sha256}]
    journal.append("CALC-1.1", "1/command-gates/evidence/GATE-TESTS", "evidence", {"files": rows})
    rows = [{"key": "reports", "path": review.path, "sha256": review.sha256, "size_bytes": 9}]
    journal.append("CALC-1.1", "1.1/code-reviewer/answer/0", "answer", {"evidence": rows})
    return tmp_path


def test_untouched_evidence_is_as_the_journal_says(root: Path) -> None:
    check = check_evidence(root)
    assert (check.problems, check.files) == ((), 2)


@pytest.mark.parametrize("harm", ["rewritten", "removed", "linked"])
@pytest.mark.parametrize("found", [REPORT, REVIEW])
def test_a_file_that_was_rewritten_removed_or_linked_is_found(root: Path, found: str, harm: str) -> None:
    (path,) = root.glob(found)
    text = path.read_text()
    path.unlink()
    if harm == "rewritten":
        path.write_text("13 passed")
    elif harm == "linked":
        (root / "elsewhere").write_text(text)
        path.symlink_to(root / "elsewhere")
    (problem,) = check_evidence(root).problems
    assert (problem.path, problem.code) == (path.relative_to(root).as_posix(), "RUN640")


def test_a_folder_that_a_later_run_put_aside_is_looked_at_there(root: Path) -> None:
    folder = (root / REPORT).parent
    folder.rename(folder.with_name("1.before-CALC-1.2"))
    assert check_evidence(root).problems == ()
    (folder.with_name("1.before-CALC-1.2") / "review.md").write_text("Other.")
    assert [row.path for row in check_evidence(root).problems] == [REVIEW]


def test_a_file_is_named_where_it_lies_now(root: Path) -> None:
    digest = write_evidence(root, "artifacts/reports/X-1/1/same.log", b"12 passed").sha256
    assert present_path(root, REPORT, digest) == REPORT
    folder = (root / REPORT).parent
    folder.rename(folder.with_name("1.before-CALC-1.2"))
    assert present_path(root, REPORT, digest) == REPORT.replace("/1/", "/1.before-CALC-1.2/")
    write_evidence(root, REPORT, b"13 passed")
    assert present_path(root, REPORT, digest) == REPORT.replace("/1/", "/1.before-CALC-1.2/")
    assert present_path(root, REPORT, "0" * 64) == REPORT
