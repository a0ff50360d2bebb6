"""`interlock verify --approved RANGE`: which commits have a tree that was APPROVED."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.child import git
from tests.graph.conftest import Project
from tests.graph.landing_project import FILES, approved_run, landing_project, run_apart
from tests.graph.sealed_project import write

KEPT = {**FILES, ".gitignore": "artifacts/*\n!artifacts/interlock\nartifacts/interlock/*\n!**/events.jsonl\n"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project whose journal is committed."""
    return landing_project(tmp_path / "project", KEPT)


def verify(root: Path, wanted: str = "main", *, code: int) -> list[str]:
    """Return by which run each commit is approved, the oldest first."""
    done = warm.interlock(root, "verify", "--approved", wanted, "--json")
    assert done.returncode == code, done.stderr + done.stdout
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["ok"] == (code == 0)
    return [row["approved_by"] or "" for row in said["commits"]]


def commit_all(root: Path, message: str) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", message)


def test_what_a_person_commits_of_an_approved_checkout_is_approved_with_its_journal(project: Project) -> None:
    root = project.root
    approved_run(project, "A-1", {"src/a.txt": "1\n", "src/new.txt": "n\n", "src/b.txt": None})
    commit_all(root, "Work and journal")
    assert verify(root, "HEAD^..HEAD", code=0) == ["A-1.1"]
    clone = root.parent / "clone"
    git(root.parent, "clone", "-q", str(root), str(clone))
    assert verify(clone, "HEAD^..HEAD", code=0) == ["A-1.1"]
    # A commit of the journal alone has the same tree otherwise.
    approved_run(project, "A-2", {"src/a.txt": "2\n"})
    git(root, "add", "src")
    git(root, "commit", "-qm", "Work")
    commit_all(root, "Journal")
    assert verify(root, "HEAD~2..HEAD", code=0) == ["A-2.1", "A-2.1"]


@pytest.mark.parametrize(
    "more",
    [
        {"src/a.txt": "2\n"},
        {"notes.txt": "changed\n"},
        {"tests/check.sh": "true\n"},
        {"src/more.txt": "m\n"},
        {"x": "\n"},
    ],
    ids=["the work", "outside", "a test", "a new file", "a new file outside"],
)
def test_one_byte_more_or_less_is_another_tree(project: Project, more: dict[str, str]) -> None:
    root = project.root
    approved_run(project, "A-1", {"src/a.txt": "1\n"})
    write(root, more)
    commit_all(root, "More")
    assert verify(root, "HEAD^..HEAD", code=1) == [""]
    said = warm.interlock(root, "verify", "--approved", "HEAD^..HEAD")
    assert ("RUN661" in said.stdout, "0 of 1 commit" in said.stdout) == (True, True)


def test_the_mode_of_a_file_counts(project: Project) -> None:
    approved_run(project, "A-1", {"src/a.txt": "1\n"})
    (project.root / "src/a.txt").chmod(0o755)
    commit_all(project.root, "Executable")
    assert verify(project.root, "HEAD^..HEAD", code=1) == [""]


def test_what_lands_is_approved_and_a_merge_by_hand_is_not(tmp_path: Path) -> None:
    project = landing_project(tmp_path / "project")
    root = project.root
    run_apart(project, "A-1", {"src/a.txt": "1\n"})
    run_apart(project, "B-1", {"src/c.txt": "c\n"})
    assert warm.interlock(root, "commit", "A-1").returncode == 0
    assert verify(root, "main..interlock/A-1.1", code=0) == ["A-1.1"]
    assert warm.interlock(root, "land", "A-1", "B-1").returncode == 0
    assert sorted(verify(root, "main~2..main", code=0)) == ["A-1.1", "B-1.1", "B-1.1"]
    git(root, "switch", "-qc", "other", "main~2")
    write(root, {"notes.txt": "other\n"})
    git(root, "commit", "-qam", "Of a person")
    git(root, "merge", "-q", "--no-edit", "main")
    assert verify(root, "main..HEAD", code=1) == ["", ""]


def test_a_commit_that_had_the_work_before_it_was_landed_is_not_approved(tmp_path: Path) -> None:
    project = landing_project(tmp_path / "project")
    root = project.root
    run_apart(project, "A-1", {"src/a.txt": "1\n"})
    # A person commits the same change, with one of their own; nothing is left to land, and nothing was judged.
    write(root, {"src/a.txt": "1\n", "src/b.txt": "of a person\n"})
    git(root, "commit", "-qam", "Both")
    landed = warm.interlock(root, "land", "A-1", "--json")
    assert (landed.returncode, "before" in landed.stdout) == (0, True), landed.stdout + landed.stderr
    assert verify(root, "main^..main", code=1) == [""]


def test_a_base_with_changes_that_are_not_committed_is_another_tree(project: Project) -> None:
    root = project.root
    write(root, {"notes.txt": "not committed\n"})
    approved_run(project, "A-1", {"src/a.txt": "1\n"})
    assert warm.interlock(root, "commit", "A-1").returncode == 0
    assert verify(root, "main..interlock/A-1.1", code=1) == [""]
    commit_all(root, "All of it")
    assert verify(root, "HEAD^..HEAD", code=0) == ["A-1.1"]


def test_line_ends_are_those_of_a_checkout(tmp_path: Path) -> None:
    ended = {name: text.replace("\n", "\r\n") if name.endswith(".txt") else text for name, text in KEPT.items()}
    project = landing_project(tmp_path / "p", {**ended, ".gitattributes": "*.txt text eol=crlf\n"})
    approved_run(project, "A-1", {"src/a.txt": "2\r\n"})
    commit_all(project.root, "Work")
    assert git(project.root, "cat-file", "blob", "HEAD:src/a.txt") == "2\n"
    assert verify(project.root, "HEAD^..HEAD", code=0) == ["A-1.1"]


def test_a_root_below_the_top_has_its_own_record(tmp_path: Path) -> None:
    root = tmp_path / "repository/project"
    project = landing_project(root, KEPT)
    (root / ".git").rename(root.parent / ".git")
    git(root.parent, "add", "-A")
    git(root.parent, "commit", "-qm", "Below")
    approved_run(project, "A-1", {"src/a.txt": "1\n"})
    commit_all(root, "Work")
    assert verify(root, "HEAD^..HEAD", code=0) == ["A-1.1"]


@pytest.mark.parametrize("wanted", ["nope..HEAD", "--all", "HEAD~9..HEAD", "HEAD..HEAD"])
def test_without_a_record_or_commits_there_is_nothing_to_compare_with(project: Project, wanted: str) -> None:
    done = warm.interlock(project.root, "verify", "--approved", wanted)
    assert (done.returncode, "RUN660" in done.stderr) == (2, True)
    assert warm.interlock(project.root, "verify", "--approved", wanted, "--evidence").returncode == 2


def test_a_shallow_clone_is_refused(project: Project) -> None:
    approved_run(project, "A-1", {"src/a.txt": "1\n"})
    commit_all(project.root, "Work")
    clone = project.root.parent / "clone"
    git(project.root.parent, "clone", "-q", "--depth=1", f"file://{project.root}", str(clone))
    done = warm.interlock(clone, "verify", "--approved", "HEAD")
    assert (done.returncode, "--unshallow" in done.stderr) == (2, True)
