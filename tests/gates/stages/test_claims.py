"""Evidence from different sources: one value for a subject."""

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
    assert (found.code, found.level, found.field) == ("STG401", "stop", "evidence_items[1].claim")
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
