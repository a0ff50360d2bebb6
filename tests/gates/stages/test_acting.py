"""Acting is held against the plan, the outcome against the tasks, and a plan against the requirements."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from interlock.core.finding import Finding
from interlock.gates.stages import Observed, Surroundings, requirement_ids
from interlock.reservations import Authors
from tests.gates.stages.support import GOOD, NOWHERE, codes, earlier, judged
from tests.table import each_row

WIDE = "\U0001f600"
BEFORE = {"src/a.py": "100644 1", "src/b.py": "100644 2", "[x]/!y.py": "100644 3"}


def by_the_agent(paths: Sequence[str]) -> Authors:
    return Authors(own=frozenset(paths))


def acting(now: dict[str, str], *allowed: str, root: Path = NOWHERE.root, **seen: Any) -> tuple[Finding, ...]:
    more: dict[str, Any] = {"authors": by_the_agent, **seen}
    return judged("act_via_tools", GOOD["act_via_tools"], Surroundings(root, Observed(BEFORE, now, allowed, **more)))


def acted(now: dict[str, str], *allowed: str, **more: Any) -> list[str]:
    return codes(acting(now, *allowed, **more))


OBSERVED: dict[str, tuple[dict[str, str], tuple[str, ...], list[str]]] = {
    "a plain path": ({"src/a.py": "100644 9"}, ("src/a.py",), []),
    "a pattern": ({"src/a.py": "100644 9", "src/b.py": "100755 2"}, ("src/**",), []),
    "a new file inside": ({"src/new/c.py": "100644 5"}, ("src/**",), []),
    "a plain path that looks like a pattern": ({"[x]/!y.py": "100644 9"}, ("[x]/!y.py",), []),
    "a path that is no pattern": ({"src/a.py": "100644 9"}, ("src/{a.py", "src/a.py"), []),
    "a changed file outside": ({"src/b.py": "100644 9"}, ("src/a.py",), ["STG601"]),
    "a new file outside": ({"notes.md": "100644 5"}, ("src/**",), ["STG601"]),
    "a new mode outside": ({"src/b.py": "100755 2"}, ("src/a.py",), ["STG601"]),
    "no scope at all": ({"src/b.py": "100644 9"}, (), ["STG601"]),
    "taken out again": ({"src/b.py": "100644 9"}, ("src/**", "!src/b.py"), ["STG601"]),
    "only taken out": ({"src/b.py": "100644 9"}, ("!src/a.py",), ["STG601"]),
    "inside and outside": ({"src/a.py": "1", "src/b.py": "2", "c": "3"}, ("src/a.py",), ["STG601", "STG601"]),
    "nothing": ({}, ("src/**",), ["STG602"]),
}


@each_row(("changes", "allowed", "expected"), OBSERVED.values(), ids=OBSERVED.keys())
def test_changes_outside_the_plan_fail(changes: dict[str, str], allowed: tuple[str, ...], expected: list[str]) -> None:
    assert acted(BEFORE | changes, *allowed) == expected


def test_a_removed_file_outside_the_plan_is_refused_until_it_is_restored() -> None:
    gone = {path: value for path, value in BEFORE.items() if path != "src/b.py"}
    assert acted(gone | {"src/a.py": "9"}, "src/a.py") == ["STG601"]
    assert acted(BEFORE | {"src/a.py": "9"}, "src/a.py") == []


def test_the_finding_names_the_file_and_both_ways_out() -> None:
    (issue,) = acting(BEFORE | {"src/b.py": "9"}, "src/a.py")
    assert '"src/b.py"' in issue.found
    assert "Restore" in issue.fix
    assert "[tickets] scope" in issue.fix


CHANGES = {"src/a.py": "9", "src/b.py": "9", "src/c.py": "9"}
OWN = Authors(own=frozenset({"src/b.py"}))
ANNS = Authors(others={"src/b.py": "held by ann", "src/c.py": "committed by ann"})
WHOSE: dict[str, tuple[Authors, str, list[str]]] = {
    "nobody known": (Authors(), "warn", ["STG605"]),
    "another agent's": (ANNS, "warn", ["STG605"]),
    "another agent's, in a checkout of one agent": (ANNS, "error", ["STG605"]),
    "one of them the agent's own": (OWN, "warn", ["STG601", "STG605"]),
    "nobody known, in a checkout of one agent": (Authors(), "error", ["STG605"]),
}


@each_row(("authors", "unattributed", "expected"), WHOSE.values(), ids=WHOSE.keys())
def test_a_change_outside_the_plan_is_refused_only_where_it_is_known_to_be_the_agents(
    authors: Authors, unattributed: Any, expected: list[str]
) -> None:
    seen = Observed(BEFORE, BEFORE | CHANGES, ("src/a.py",), "warn", unattributed, lambda _paths: authors)
    issues = judged("act_via_tools", GOOD["act_via_tools"], Surroundings(Path("/nowhere"), seen))
    assert codes(issues) == expected
    assert not [item for item in issues if item.code != "STG601" and re.search("[Rr]estore|[Rr]emove", item.fix)]


def test_changes_of_others_are_no_work_of_the_agent(tmp_path: Path) -> None:
    (tmp_path / ".interlock/tickets/T-1.ab").mkdir(parents=True)
    (tmp_path / ".interlock/tickets/T-1.ab/run.json").touch()
    now = BEFORE | {"src/b.py": "9", "tickets/ticket.json": "1", "tickets/T-1.ab.json": "1"}

    def codes_of(whose: Authors, now: dict[str, str]) -> list[str]:
        def authors(_paths: Sequence[str]) -> Authors:
            return whose

        return acted(now, "src/a.py", root=tmp_path, unchanged="error", authors=authors)

    assert codes_of(Authors(others={"src/b.py": "held by ann"}), now) == ["STG602"]
    # What the plan covers is work, whoever had the file for a moment.
    assert codes_of(Authors(others={"src/a.py": "held by ann"}), BEFORE | {"src/a.py": "9"}) == ["STG605"]
    assert codes_of(Authors(), BEFORE | {"src/a.py": "9", "tickets/ticket.json": "1", "tickets/T-1.ab.json": "1"}) == []
    assert codes_of(Authors(), BEFORE | {"src/a.py": "9", "tickets/T-2.json": "1"}) == ["STG605"]


def test_that_nothing_changed_is_as_grave_as_the_project_says() -> None:
    for unchanged, level in (("warn", "warn"), ("error", "retry")):
        (found,) = acting(BEFORE, "src/**", unchanged=unchanged)
        assert (found.code, found.level) == ("STG602", level)


def test_very_many_files_make_a_bounded_answer_and_a_stage_without_a_listing_is_not_observed() -> None:
    allowed = tuple(f"{at}{WIDE * 100}/**" for at in range(20))
    (found,) = acting(BEFORE | {f"new/{n}": "1" for n in range(200)}, *allowed)
    assert (found.code, len(found.found) < 1000, len(found.expected) < 1000) == ("STG601", True, True)
    assert judged("act_via_tools", GOOD["act_via_tools"], NOWHERE) == ()


def test_requirements_get_ids_in_their_order() -> None:
    assert requirement_ids(earlier()) == {
        "ac_001": "Empty passwords are refused",
        "ac_002": "Refusals are logged",
        "ac_003": "Nobody is locked out",
        "con_001": "No new dependency",
        "unk_001": "Nobody is locked out",
    }
    assert requirement_ids({}) == {}


COVERED: dict[str, tuple[list[str], list[str]]] = {
    "equal to its text": (["  Nobody is locked out "], []),
    "naming its id": (["How ac_003 is to be tested"], []),
    "a part of its text": (["Nobody is locked"], ["STG503"]),
    "an id that begins like it": (["See ac_0031"], ["STG503"]),
    "nothing": ([], ["STG503"]),
}


@pytest.mark.parametrize(("unknowns", "expected"), COVERED.values(), ids=COVERED.keys())
def test_a_criterion_is_served_or_marked_as_unknown(unknowns: list[str], expected: list[str]) -> None:
    known = earlier() | {"unknowns": unknowns}
    assert codes(judged("propose_plan", GOOD["propose_plan"], NOWHERE, known)) == expected
