"""Whatever JSON can say is judged without an error, and the schema agrees with the judge on every shape."""

import copy
import json
from pathlib import Path
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from interlock.core.finding import Finding
from interlock.gates.stages import MAX_PAYLOAD_BYTES, Surroundings, judge_stage, payload_schema
from interlock.gates.stages.shape import shape_issues
from tests.gates.stages.support import GOOD, STAGES, codes, holds, judged

AROUND = Surroundings(Path(__file__).parent)
SCHEMAS = {name: Draft202012Validator(payload_schema(stage)) for name, stage in STAGES.items()}


def valid(stage: str, payload: Any) -> bool:
    return not list(SCHEMAS[stage].iter_errors(payload))  # pyright: ignore[reportUnknownMemberType]


def beyond_schema(issue: Finding) -> bool:
    """Return whether a schema may miss it: control characters, and characters that show nothing and are no blanks."""
    unseen = issue.code == "STG103" and issue.found.endswith('"') and bool(json.loads(issue.found).strip())
    return "which no text may hold" in issue.message or unseen


texts = st.text(max_size=20) | st.text(alphabet=" \t\n\0\ud800\u200baé", max_size=6)
numbers = st.integers() | st.floats() | st.just(10**400)
anything = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
KEYS = sorted({field.name for stage in STAGES.values() for field in stage.fields} | {"locator", "snippet", "step_id"})
objects = st.dictionaries(st.sampled_from(KEYS) | texts, anything, max_size=6)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the ways to every value within a value."""
    if isinstance(value, dict):
        inner: list[tuple[Any, Any]] = list(cast("dict[str, Any]", value).items())
    else:
        inner = list(enumerate(cast("list[Any]", value))) if isinstance(value, list) else []
    return [at, *(place for key, entry in inner for place in places(entry, (*at, key)))]


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, Any]:
    """Draw a good payload with some values replaced, added or removed."""
    name = draw(st.sampled_from(sorted(GOOD)))
    payload: Any = copy.deepcopy(GOOD[name])
    for _ in range(draw(st.integers(0, 3))):
        found = places(payload)[1:]
        if not found:
            break
        where = draw(st.sampled_from(found))
        inside = payload
        for step in where[:-1]:
            inside = inside[step]
        how = draw(st.sampled_from(["replace", "remove", "add"]))
        if how == "remove":
            del inside[where[-1]]
        elif how == "add" and isinstance(inside, dict):
            inside[draw(texts)] = draw(anything)
        else:
            inside[where[-1]] = draw(anything | texts)
    return name, payload


@settings(max_examples=40)
@given(st.sampled_from(sorted(STAGES)), anything | objects)
def test_nothing_that_json_can_say_raises(stage: str, payload: Any) -> None:
    judged(stage, payload, AROUND)


@given(edited())
def test_judge_and_schema_agree_on_the_shape(case: tuple[str, Any]) -> None:
    name, payload = case
    issues = list(shape_issues(STAGES[name].fields, payload))
    if not issues:
        assert valid(name, payload)
    if not all(beyond_schema(issue) for issue in issues):
        assert not valid(name, payload)


@given(anything | objects, anything)
def test_what_earlier_stages_hold_is_not_trusted_to_have_a_shape(known: Any, entry: Any) -> None:
    earlier_values = {"acceptance_criteria": known, "unknowns": entry, "evidence_items": known, "constraints": [entry]}
    judge_stage(STAGES["propose_plan"], GOOD["propose_plan"], earlier_values, AROUND)


def test_the_schema_is_one_and_takes_the_good_payloads() -> None:
    for name, payload in GOOD.items():
        Draft202012Validator.check_schema(payload_schema(STAGES[name]))
        assert valid(name, payload)
        assert json.loads(json.dumps(payload_schema(STAGES[name]))) == payload_schema(STAGES[name])


def test_a_payload_of_exactly_the_largest_size_passes_and_one_byte_more_does_not() -> None:
    payload = copy.deepcopy(GOOD["extract_requirements"])
    payload["constraints"] = ["x" * 15_000, "x" * 15_000, ""]
    rest = MAX_PAYLOAD_BYTES - len(json.dumps(payload, sort_keys=True, separators=(",", ":")))
    payload["constraints"][2] = "x" * rest
    assert holds(judged("extract_requirements", payload, AROUND))
    payload["constraints"][2] += "x"
    assert codes(judged("extract_requirements", payload, AROUND)) == ["STG102"]
