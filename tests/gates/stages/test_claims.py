"""Evidence from different sources: one value for a subject, and a note where numbers differ beside the same words."""

from typing import Any

import pytest

from interlock.gates.stages import Surroundings
from tests.gates.stages.support import codes, gathered, holds, item


def web(number: int, snippet: str = "Text.", **more: Any) -> dict[str, Any]:
    return {**item(f"ev_{number}", f"https://example.org/{number}", snippet, "web"), **more}


def claim(subject: str, value: str) -> dict[str, Any]:
    return {"claim": {"subject": subject, "value": value}}


def test_one_subject_with_two_values_stops_the_run_whatever_the_sources(around: Surroundings) -> None:
    ticket = item("ev_2", "SHOP-7", "The text of it.", "ticket") | claim("Login  timeout", "60 seconds")
    (found,) = gathered(around, web(1, **claim("login timeout", "30 seconds")), ticket)
    assert (found.code, found.level, found.field) == ("STG402", "stop", "evidence_items[1].claim")
    assert "30 seconds" in found.found
    assert "60 seconds" in found.found


@pytest.mark.parametrize("other", [claim("login timeout", "30  Seconds"), claim("lock timeout", "60 seconds"), {}])
def test_the_same_value_and_another_subject_contradict_nothing(around: Surroundings, other: dict[str, Any]) -> None:
    assert gathered(around, web(1, **claim("login timeout", "30 seconds")), web(2, **other)) == ()


@pytest.mark.parametrize("wrong", ["30", {"subject": "x"}, {"subject": "x", "value": 3}, ["x"], None])
def test_a_claim_has_a_subject_and_a_value(around: Surroundings, wrong: object) -> None:
    found = gathered(around, web(1, claim=wrong), web(2, claim=wrong))
    assert not holds(found)
    assert set(codes(found)) <= {"STG103", "STG105"}


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("The timeout is 30 seconds.", "60 seconds"),
        ("The timeout is 30 seconds.", "A session has a timeout of 45 seconds."),
        ("timeout: 30", "The timeout is 60."),
        ("wait 30s for the lock", "lock wait 60s"),
    ],
)
def test_two_numbers_beside_the_same_words_are_noted_and_pass(around: Surroundings, one: str, two: str) -> None:
    found = gathered(around, web(1, one), item("ev_2", "SHOP-7", two, "ticket"))
    assert [(row.code, row.level, row.field) for row in found] == [("STG403", "warn", "evidence_items[1].snippet")]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("The timeout is 30 seconds.", "The timeout is 30 seconds, always."),
        ("The timeout is 30 seconds.", "Retry after 5 minutes."),
        ("The timeout is 30 seconds.", "The backup takes 90 seconds."),
        ("See step_1 of v2.", "See step_3 of v4."),
        ("30", "60"),
    ],
)
def test_numbers_about_different_things_are_not_noted(around: Surroundings, one: str, two: str) -> None:
    assert gathered(around, web(1, one), web(2, two)) == ()


def test_lines_of_files_hold_different_numbers_for_good_reason(around: Surroundings) -> None:
    assert gathered(around, item("a", "src/twice.py:1", "x = 1"), item("b", "src/twice.py:2", "y = 2")) == ()


def test_many_numbers_are_one_bounded_note(around: Surroundings) -> None:
    items = [web(at, " ".join(f"timeout {at}{number}" for number in range(8))) for at in range(100)]
    (found,) = gathered(around, *items)
    assert found.code == "STG403"
    assert len(found.found) < 600
