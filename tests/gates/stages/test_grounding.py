"""Evidence is held against the files that it cites."""

from pathlib import Path
from typing import Any

import pytest

from interlock.gates.stages import Surroundings, sources
from interlock.gates.stages.snippet import find_snippet, snippet_lines
from interlock.gates.stages.sources import prepare
from tests.child import git
from tests.gates.stages.support import codes, gathered, item, project
from tests.gates.support import put


def one(tmp_path: Path, locator: str, snippet: str, kind: str = "repo") -> list[str]:
    return codes(gathered(project(tmp_path), item("e", locator, snippet, kind)))


STANDING = {
    "one line": ("src/login.py:12", "def logout(user):"),
    "a part of a line": ("src/login.py:13", "sessions.of(user)"),
    "indentation of one line left out": ("src/login.py:9", "return user.verify(password)"),
    "common indentation left out": ("src/login.py:7-8", "if not password:\n    return False"),
    "trailing blanks": ("src/login.py:12", "  def logout(user):   \n\n"),
    "blank line within": ("src/login.py:3-6", "from app import sessions\n\n  \ndef check(user, password):"),
    "plain lines for lines of Windows": ("src/windows.txt:1-3", "first line\n\tindented\nlast line"),
    "tabs": ("src/tabs.mk:2-4", "\tcc -o a a.c\n\n\tstrip a"),
    "a single line is where it begins": ("src/login.py:12", "def logout(user):\n    for session in sessions.of(user):"),
    "the second place": ("src/twice.py:3", "x = 1"),
    "a short line that is whole": ("src/tabs.mk:5-6", "clean:\n\trm a"),
}


@pytest.mark.parametrize(("locator", "snippet"), STANDING.values(), ids=STANDING.keys())
def test_a_snippet_is_found_whatever_its_line_ends_and_indentation(tmp_path: Path, locator: str, snippet: str) -> None:
    assert one(tmp_path, locator, snippet) == []


STRANGE = {
    "case": ("src/login.py:12", "Def logout(user):"),
    "blanks within": ("src/login.py:12", "def  logout(user):"),
    "order": ("src/twice.py:1-2", "y = 2\nx = 1\ny = 2"),
    "an ellipsis": ("src/login.py:6-9", "def check(user, password):\n    ...\n    return user.verify(password)"),
}


@pytest.mark.parametrize(("locator", "snippet"), STRANGE.values(), ids=STRANGE.keys())
def test_a_snippet_that_was_changed_is_not_found(tmp_path: Path, locator: str, snippet: str) -> None:
    assert one(tmp_path, locator, snippet) == ["STG308"]


def test_a_snippet_elsewhere_in_the_file_passes_with_the_right_lines(tmp_path: Path) -> None:
    (issue,) = gathered(project(tmp_path), item("e", "src/login.py:1-2", "if not password:\n    return False"))
    assert (issue.code, issue.level, issue.field) == ("STG309", "warn", "evidence_items[0].locator")
    assert "src/login.py:7-8" in issue.fix


def test_a_line_beyond_the_file_is_fixed_by_the_locator_in_the_fix(tmp_path: Path) -> None:
    (issue,) = gathered(project(tmp_path), item("e", "src/twice.py:30", "y = 2"))
    assert (issue.code, issue.level) == ("STG302", "retry")
    assert "src/twice.py:2" in issue.fix


def test_the_closest_line_is_named_also_in_a_long_file(tmp_path: Path, around: Surroundings) -> None:
    put(tmp_path, "src/long.txt", "".join(f"value_{n} = compute({n})\n" for n in range(30_000)))
    (issue,) = gathered(around, item("e", "src/long.txt:15001", "valu_15000 = compute(15000)"))
    assert issue.code == "STG308"
    assert "line 15001: " in issue.fix


@pytest.mark.parametrize("kind", ["web", "ticket", "design doc"])
def test_items_of_other_kinds_of_sources_are_free_text(tmp_path: Path, kind: str) -> None:
    assert one(tmp_path, "anywhere", "anything", kind) == []


def test_the_repository_is_the_repository_however_it_is_spelled(tmp_path: Path) -> None:
    assert one(tmp_path, "src/login.py:12", "invented by nobody", " Repo") == ["STG308"]


def test_files_are_read_up_to_a_total(tmp_path: Path, around: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_SOURCE_BYTES", 1000)
    for n in range(2):
        put(tmp_path, f"part{n}.txt", b"line\n" + b"x" * 500)
    items = (item(f"e{n}", f"part{n}.txt:1", "line") for n in range(2))
    assert codes(gathered(around, *items)) == ["STG304"]


CONFLICTS: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "one address, two texts": (
        [item("a", "https://e.org/x", "Refuse.", "web"), item("b", " https://e.org/x ", "Allow.", "web")],
        ["STG401"],
    ),
    "a number of a longer one": (
        [item("a", "p", "at most 10", "web"), item("b", "p", "at most 100", "web")],
        ["STG401"],
    ),
    "one text holds the other": (
        [item("a", "page", "Refuse  empty\npasswords.", "web"), item("b", "page", "empty passwords", "web")],
        [],
    ),
    "two addresses": ([item("a", "page#1", "Refuse.", "web"), item("b", "page#2", "Allow.", "web")], []),
    "both are in the lines": (
        [item("a", "src/login.py:6-9", "return False"), item("b", "src/login.py:6-9", "if not password:")],
        [],
    ),
    "one was invented": (
        [item("a", "src/login.py:8", "return False"), item("b", "src/login.py:8-8", "raise Locked()")],
        ["STG308"],
    ),
    "three texts": (
        [item("a", "p", "one", "web"), item("b", "p", "two", "web"), item("c", "p", "six", "web")],
        ["STG401", "STG401"],
    ),
}


@pytest.mark.parametrize(("items", "expected"), CONFLICTS.values(), ids=CONFLICTS.keys())
def test_two_texts_for_one_locator_stop_a_run(tmp_path: Path, items: list[dict[str, Any]], expected: list[str]) -> None:
    issues = gathered(project(tmp_path), *items)
    assert codes(issues) == expected
    assert all((issue.level == "stop") == (issue.code == "STG401") for issue in issues)


def test_a_conflict_shows_both_texts(tmp_path: Path) -> None:
    items = (item("a", "page", "Refuse.", "web"), item("b", "page", "Allow.", "web"))
    (issue,) = gathered(project(tmp_path), *items)
    assert "Refuse." in issue.found
    assert "Allow." in issue.found


def test_a_link_that_takes_the_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    around = project(tmp_path / "root")
    put(tmp_path, "outside/secret.txt", "secret\n")
    (tmp_path / "root/out").symlink_to(tmp_path / "outside")
    git(tmp_path / "root", "init", "-q")
    (issue,) = gathered(around, item("e", "out/secret.txt:1", "secret"))
    assert (issue.code, "symbolic link" in issue.message) == ("STG304", True)


def test_many_snippets_on_repeated_lines_are_found() -> None:
    source = prepare("f", "    a\n  b\n" * 10_000)
    assert find_snippet(snippet_lines("a\nb\n    a"), source) == 1
    assert find_snippet(snippet_lines("a\n  b"), source, 3) == 3
    assert find_snippet(snippet_lines("a\na"), source) is None


def test_many_warnings_do_not_hide_a_snippet_that_is_nowhere(tmp_path: Path, around: Surroundings) -> None:
    """Findings are cut at a number; what is cut off must not be what decides."""
    put(tmp_path, "app.py", "".join(f"line {number}\n" for number in range(1, 101)))
    items = [item(f"ev_{number}", f"app.py:{number}", f"line {number + 1}") for number in range(1, 61)]
    found = gathered(around, *items, item("made_up", "app.py:90", "an invention"))
    assert [entry.code for entry in found if entry.level != "warn"] == ["STG308"]
