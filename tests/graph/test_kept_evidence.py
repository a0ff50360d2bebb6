"""Evidence files are compared with the journal: what was swapped, cut or removed later is found."""

from pathlib import Path

import pytest

from interlock.gates import EvidenceFile, write_evidence
from interlock.graph.engine.folder import journal_path
from interlock.graph.task.kept_evidence import EvidenceCheck, check_evidence, present_path
from interlock.journal import Journal

REPORT = "artifacts/reports/CALC-1/1/GATE-TESTS.log"
REVIEW = "artifacts/reports/CALC-1/1/review.md"


def kept(root: Path, path: str, text: str) -> EvidenceFile:
    file = write_evidence(root, path, text.encode())
    write_evidence(root, f"artifacts/interlock/objects/{file.sha256[:2]}/{file.sha256}", file.data)
    return file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a project whose journal names a collected report and a review that an agent wrote."""
    journal = Journal(journal_path(tmp_path))
    report = kept(tmp_path, REPORT, "12 passed")
    review = write_evidence(tmp_path, REVIEW, b"Reviewed.")
    rows = [{"key": "reports", "path": report.path, "sha256": report.sha256}]
    journal.append("CALC-1.1", "1/command-gates/evidence/GATE-TESTS", "evidence", {"files": rows})
    rows = [{"key": "reports", "path": review.path, "sha256": review.sha256, "size_bytes": 9}]
    journal.append("CALC-1.1", "1.1/code-reviewer/answer/0", "answer", {"evidence": rows})
    return tmp_path


def places(check: EvidenceCheck) -> list[str]:
    return [row.path for row in check.problems]


def test_untouched_evidence_is_as_the_journal_says(root: Path) -> None:
    check = check_evidence(root)
    assert (check.problems, check.files, check.objects) == ((), 2, 1)


@pytest.mark.parametrize("path", [REPORT, REVIEW])
def test_a_report_that_was_rewritten_or_removed_is_found(root: Path, path: str) -> None:
    (root / path).write_text("13 passed")
    assert places(check_evidence(root)) == [path]
    (root / path).unlink()
    assert places(check_evidence(root)) == [path]
    assert {row.code for row in check_evidence(root).problems} == {"RUN640"}


def test_a_copy_that_was_changed_is_found(root: Path) -> None:
    (copy,) = (root / "artifacts/interlock/objects").rglob("??/*")
    copy.chmod(0o644)
    copy.write_text("X")
    assert places(check_evidence(root)) == [copy.relative_to(root).as_posix()]


def test_a_folder_that_a_later_run_put_aside_is_looked_at_there(root: Path) -> None:
    folder = (root / REPORT).parent
    folder.rename(folder.with_name("1.before-CALC-1.2"))
    assert check_evidence(root).problems == ()
    (folder.with_name("1.before-CALC-1.2") / "review.md").write_text("Other.")
    assert places(check_evidence(root)) == [REVIEW]


def test_a_link_in_place_of_a_file_is_not_followed(root: Path) -> None:
    (root / "elsewhere").write_text("12 passed")
    (root / REPORT).unlink()
    (root / REPORT).symlink_to(root / "elsewhere")
    assert places(check_evidence(root)) == [REPORT]


def test_a_file_is_named_where_it_lies_now(root: Path) -> None:
    digest = write_evidence(root, "artifacts/reports/X-1/1/same.log", b"12 passed").sha256
    assert present_path(root, REPORT, digest) == REPORT
    folder = (root / REPORT).parent
    folder.rename(folder.with_name("1.before-CALC-1.2"))
    assert present_path(root, REPORT, digest) == REPORT.replace("/1/", "/1.before-CALC-1.2/")
    write_evidence(root, REPORT, b"13 passed")
    assert present_path(root, REPORT, digest) == REPORT.replace("/1/", "/1.before-CALC-1.2/")
    assert present_path(root, REPORT, "0" * 64) == REPORT
