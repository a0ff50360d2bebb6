"""Evidence is held against the files that it cites."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlock.gates.stages import Surroundings
from interlock.gates.stages.conflicts import within
from interlock.gates.stages.snippet import Effort, find_snippet, snippet_lines
from interlock.gates.stages.sources import MAX_FILE_BYTES, MAX_TOTAL_BYTES, prepare
from interlock.gates.tree import tree_files
from tests.gates.stages.support import codes, gathered, item, project
from tests.gates.support import put
from tests.table import each_row


def one(tmp_path: Path, locator: str, snippet: str, kind: str = "repo") -> list[str]:
    return codes(gathered(project(tmp_path), item("e", locator, snippet, kind)))


STANDING = {
    "one line": ("src/login.py:12", "def logout(user):"),
    "a part of a line": ("src/login.py:13", "sessions.of(user)"),
    "indentation of one line left out": ("src/login.py:9", "return user.verify(password)"),
    "common indentation left out": ("src/login.py:7-8", "if not password:\n    return False"),
    "only the first line's left out": (
        "src/login.py:7-9",
        "if not password:\n        return False\n    return user.verify",
    ),
    "more indentation": ("src/login.py:7-8", "            if not password:\n                return False"),
    "trailing blanks": ("src/login.py:12", "  def logout(user):   \n\n"),
    "blank line within": ("src/login.py:3-6", "from app import sessions\n\n  \ndef check(user, password):"),
    "lines of Windows for lines of Windows": ("src/windows.txt:1-2", "first line\r\n\tindented"),
    "plain lines for lines of Windows": ("src/windows.txt:1-3", "first line\n\tindented\nlast line"),
    "tabs": ("src/tabs.mk:2-4", "\tcc -o a a.c\n\n\tstrip a"),
    "a byte order mark": ("src/bom.txt:1", "first"),
    "a single line is where it begins": ("src/login.py:12", "def logout(user):\n    for session in sessions.of(user):"),
    "a wide range": ("src/login.py:1-14", "return False"),
    "the second place": ("src/twice.py:3", "x = 1"),
    "a short line that is whole": ("src/tabs.mk:5-6", "clean:\n\trm a"),
    "a short line that is whole though it is also part of one": ("src/short.c:1-2", "}"),
    "eight characters of a line": ("src/login.py:12", "t(user):"),
}


@pytest.mark.parametrize(("locator", "snippet"), STANDING.values(), ids=STANDING.keys())
def test_a_snippet_is_found_whatever_its_line_ends_and_indentation(tmp_path: Path, locator: str, snippet: str) -> None:
    assert one(tmp_path, locator, snippet) == []


STRANGE = {
    "another indentation within": (
        "src/login.py:12-14",
        "def logout(user):\n    for session in sessions.of(user):\n    session.clear()",
    ),
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
    assert (issue.code, issue.level) == ("STG307", "retry")
    assert "src/twice.py:2" in issue.fix


def test_the_closest_line_is_named_also_in_a_long_file(tmp_path: Path, around: Surroundings) -> None:
    put(tmp_path, "src/long.txt", "".join(f"value_{n} = compute({n})\n" for n in range(30_000)))
    (issue,) = gathered(around, item("e", "src/long.txt:15001", "valu_15000 = compute(15000)"))
    assert issue.code == "STG308"
    assert "line 15001: " in issue.fix


def test_a_snippet_with_several_slips_is_fixed_by_the_lines_in_the_fix(tmp_path: Path, around: Surroundings) -> None:
    snippet = "def chek(user, password):\n    if not password:\n        return Flase\n    return user.verify(pasword)"
    (issue,) = gathered(around, item("e", "src/login.py:6-9", snippet))
    assert issue.code == "STG308"
    assert "lines 6 to 9 " in issue.fix
    right = "\n".join((tmp_path / "src/login.py").read_text().split("\n")[5:9])
    assert gathered(around, item("e", "src/login.py:6-9", right)) == ()


def test_locators_are_shown_in_bounded_length(tmp_path: Path, around: Surroundings) -> None:
    folders = "/".join(["d" * 200] * 9)
    put(tmp_path, f"{folders}/\u202ea.txt", "one\ntwo\n")
    (issue,) = gathered(around, item("e", f"{folders}/\u202ea.txt:1", "two"))
    assert issue.code == "STG309"


@pytest.mark.parametrize("kind", ["web", "ticket", "doc", "api", "user", "repository", "repo2", "design-doc", "x_1"])
def test_items_of_other_kinds_of_sources_are_free_text(tmp_path: Path, kind: str) -> None:
    assert one(tmp_path, "anywhere", "anything", kind) == []


def test_files_are_read_up_to_a_total(tmp_path: Path, around: Surroundings) -> None:
    count = MAX_TOTAL_BYTES // MAX_FILE_BYTES + 2
    for n in range(count):
        put(tmp_path, f"part{n}.txt", b"line\n" + b"x" * (MAX_FILE_BYTES - 5))
    items = (item(f"e{n}", f"part{n}.txt:1", "line") for n in range(count))
    assert codes(gathered(around, *items)) == ["STG306", "STG306"]


def test_one_file_is_refused_at_each_place_that_cites_it(tmp_path: Path) -> None:
    issues = gathered(project(tmp_path), item("a", "gone.py:1", "x"), item("b", "gone.py:2", "y"))
    assert [(issue.code, issue.field) for issue in issues] == [
        ("STG304", "evidence_items[0].locator"),
        ("STG304", "evidence_items[1].locator"),
    ]


def test_an_absolute_path_inside_the_root_is_given_back_relative(tmp_path: Path) -> None:
    (issue,) = gathered(project(tmp_path), item("e", f"{tmp_path}/src/login.py:12", "def logout(user):"))
    assert issue.code == "STG303"
    assert '"src/login.py"' in issue.fix


def test_a_pipe_is_refused_and_does_not_block_and_a_root_that_is_gone_is_a_finding(tmp_path: Path) -> None:
    around = project(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert codes(gathered(around, item("e", "pipe:1", "x"))) == ["STG305"]
    assert codes(gathered(Surroundings(tmp_path / "gone"), item("e", "a.py:1", "x"))) == ["STG305"]


def test_a_search_among_many_near_places_is_bounded() -> None:
    source = prepare("f", "a\n  b\n" * 100_000)
    assert find_snippet(snippet_lines("a\n" + "b\na\n" * 4000), source) is None


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
        ["STG401", "STG308"],
    ),
    "two spellings of one range": (
        [item("a", "src/login.py:8", "return False"), item("b", "./src/login.py:08", "raise Locked()")],
        ["STG401", "STG303"],
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
    assert codes(gathered(around, item("e", "out/secret.txt:1", "secret"))) == ["STG303"]


def edited(around: Surroundings, begin: dict[str, str] | None) -> list[str]:
    return codes(gathered(replace(around, begin=begin), item("e", "src/twice.py:1", "x = 1")))


def test_a_cited_file_is_the_one_that_was_there_when_the_run_began(tmp_path: Path, around: Surroundings) -> None:
    begin = tree_files(tmp_path, ["src/**"])
    assert edited(around, begin) == []
    assert edited(around, None) == []
    (tmp_path / "src/twice.py").chmod(0o755)
    assert edited(around, begin) == []
    put(tmp_path, "src/twice.py", "x = 1\n")
    assert edited(around, begin) == ["STG310"]


@pytest.mark.parametrize(
    "values",
    [
        {"src/twice.py": "100644 " + "0" * 64},
        {},
        {"src/twice.py": "ignored"},
        {"src/": "ignored"},
        {"src/twice.py": "other"},
        {"src/twice.py": ""},
    ],
    ids=["edited", "new", "ignored", "in an ignored folder", "a pipe before", "without a digest"],
)
def test_a_cited_file_that_may_be_the_agents_own_is_reported(tmp_path: Path, values: dict[str, str]) -> None:
    assert edited(project(tmp_path), values) == ["STG310"]


def test_a_file_that_may_be_the_agents_own_is_reported_once(tmp_path: Path) -> None:
    around = replace(project(tmp_path), begin={})
    (issue,) = gathered(around, *(item(f"e{at}", "src/login.py:12", "def logout(user):") for at in range(3)))
    assert (issue.code, issue.level) == ("STG310", "warn")


def test_many_snippets_on_repeated_lines_are_found_in_bounded_time() -> None:
    source, effort = prepare("f", "    a\n  b\n" * 10_000), Effort()
    wanted = snippet_lines("a\nb\n    a")
    for _ in range(150):
        assert find_snippet(wanted, source, effort=effort) is None
    assert -150 * len(wanted) <= effort.lines <= 0
    assert find_snippet(snippet_lines("a\n  b"), source, effort=effort) == 1


WITHIN: dict[str, tuple[str, str, bool]] = {
    "a phrase": ("empty passwords", "Refuse empty passwords.", True),
    "a part of a word": ("pass", "passwords", False),
    "a number of a longer one": ("at most 10", "at most 100", False),
    "a number of a fraction": ("at most 10", "at most 10.5", False),
    "a fraction of another": ("5 seconds", "1.5 seconds", False),
    "a number at the end of a sentence": ("at most 10", "It is at most 10. Not more.", True),
    "the second place": ("10 times", "110 times or 10 times", True),
    "signs at the edges": ("(a)", "f(a)b", True),
    "equal": ("a", "a", True),
}


@each_row(("part", "whole", "expected"), WITHIN.values(), ids=WITHIN.keys())
def test_one_text_holds_another_at_the_edges_of_words(part: str, whole: str, expected: bool) -> None:
    assert within(part, whole) is expected


def test_many_warnings_do_not_hide_a_snippet_that_is_nowhere(tmp_path: Path, around: Surroundings) -> None:
    """Findings are cut at a number; what is cut off must not be what decides."""
    put(tmp_path, "app.py", "".join(f"line {number}\n" for number in range(1, 101)))
    items = [item(f"ev_{number}", f"app.py:{number}", f"line {number + 1}") for number in range(1, 61)]
    found = gathered(around, *items, item("made_up", "app.py:90", "an invention"))
    assert [entry.code for entry in found if entry.level != "warn"] == ["STG308"]
