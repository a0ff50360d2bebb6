"""What is handed over: files that exist, addresses that nobody looked at, and a success without a change."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlock.core.finding import Finding
from interlock.gates.stages import Surroundings, artifact_records
from tests.gates.stages.support import LOGIN, codes, judged, project
from tests.gates.support import put


def handed_over(root: Path, *artifacts: str, unchanged: bool = False, **more: Any) -> tuple[Finding, ...]:
    payload = {"artifacts": list(artifacts), "final_summary": "Done.", "outcome": "success", **more}
    around = Surroundings(root) if (root / "src").exists() else project(root)
    return judged("record_and_finalize", payload, replace(around, unchanged=unchanged))


@pytest.mark.parametrize(
    "text",
    [
        "src/gone.py",
        "gone.py",
        "gone/",
        "../outside.py",
        "/etc/passwd",
        "repo:src/gone.py",
        "`gone.py`",
        "See src/gone.py",
        "src/login.py and src/gone.py",
        ".interlock/state",
    ],
)
def test_an_artifact_that_names_no_file_below_the_root_is_refused(tmp_path: Path, text: str) -> None:
    (found,) = handed_over(tmp_path, "src/login.py", text)
    assert (found.code, found.level, found.field) == ("STG702", "retry", "artifacts[1]")


def test_a_link_out_of_the_project_is_no_artifact(tmp_path: Path) -> None:
    (tmp_path / "shown.py").symlink_to("/etc/passwd")
    assert codes(handed_over(tmp_path, "shown.py")) == ["STG702"]


@pytest.mark.parametrize(
    "text",
    [
        "src/login.py",
        "repo:src/login.py",
        "`src/login.py`",
        "src/login.py:3",
        "src",
        "my report.txt",
        "The page in src/login.py (new).",
        "A pull request, and/or a branch.",
        "artifacts/interlock/tickets/run-1/ticket.json",
        "linked/login.py",
        "Version 1.2 of the login",
    ],
)
def test_files_that_exist_and_prose_pass(tmp_path: Path, text: str) -> None:
    put(tmp_path, "my report.txt", "whole")
    assert handed_over(tmp_path, text) == ()


def test_records_have_digest_and_size(around: Surroundings) -> None:
    texts = ["src/login.py", "linked/login.py", "src", "See https://example.org/x", "src/gone.py", "prose"]
    raw = LOGIN.encode()
    login = {"path": "src/login.py", "sha256": hashlib.sha256(raw).hexdigest(), "size_bytes": len(raw)}
    address = {"url": "https://example.org/x", "verified": False}
    expected = [login, login, {"path": "src", "kind": "folder"}, address]
    assert artifact_records(around, {"artifacts": texts}) == expected
    assert artifact_records(around, {"artifacts": 7}) == []


def test_a_success_that_changed_nothing_says_so(tmp_path: Path) -> None:
    (found,) = handed_over(tmp_path, "src/login.py", unchanged=True)
    assert (found.code, found.level, found.field) == ("STG704", "retry", "final_summary")
    for more in ({"final_summary": "It held already: no  file\nchanged."}, {"outcome": "blocked"}):
        assert handed_over(tmp_path, "src/login.py", unchanged=True, **more) == ()
    assert handed_over(tmp_path, "src/login.py") == ()
