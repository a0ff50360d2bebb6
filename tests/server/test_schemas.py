"""Schemas of answers: small, an object at the root, and true of what they describe."""

from typing import Any, Literal, NotRequired, TypedDict

import jsonschema
import pytest

from interlock.server.mcp.schemas import answer_schema, trimmed
from tests.table import each_row


class Inner(TypedDict):
    word: Literal["a", "b"]
    maybe: NotRequired[list[int]]


class Outer(TypedDict):
    name: str
    inner: Inner
    rows: list[Inner]
    note: str | None
    choice: Literal["x"] | None
    extra: NotRequired[dict[str, Any]]
    counts: dict[str, int]


class Other(TypedDict):
    name: str
    more: bool


GOOD: dict[str, Any] = {
    "name": "n",
    "inner": {"word": "a"},
    "rows": [{"word": "b", "maybe": [1]}],
    "note": None,
    "choice": None,
    "counts": {"a": 1},
}


def test_the_keys_of_a_shape_are_named_and_hold_what_it_describes() -> None:
    schema = answer_schema(Outer)
    jsonschema.validate(GOOD, schema)
    assert schema["properties"]["inner"] == {"type": "object"}


@each_row("wrong", [{"name": 1}, {"choice": "y"}, {"counts": []}, {"rows": {}}], ids=str)
def test_what_a_shape_does_not_allow_its_schema_refuses(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**GOOD, **wrong}, answer_schema(Outer))


def test_a_choice_of_shapes_is_an_object_with_the_keys_of_all() -> None:
    schema = answer_schema(Outer | Other)
    assert schema["type"] == "object"
    assert set(schema["properties"]) == {*Outer.__annotations__, *Other.__annotations__}
    jsonschema.validate(GOOD, schema)
    jsonschema.validate({"name": "n", "more": True}, schema)


def test_a_type_without_a_json_form_is_refused() -> None:
    with pytest.raises(TypeError):
        answer_schema(TypedDict("bad", {"raw": bytes}))  # type: ignore[misc]


def test_trimming_keeps_an_argument_that_is_called_title() -> None:
    schema = {
        "title": "Arguments",
        "type": "object",
        "properties": {
            "title": {"title": "Title", "type": "string"},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "Maybe"},
        },
    }
    assert trimmed(schema) == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "maybe": {"type": "integer"}},
        "additionalProperties": False,
    }
