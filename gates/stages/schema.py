"""A stage's payload as JSON schema, for tools and structured output."""

from collections.abc import Sequence
from typing import Any, assert_never

from interlock.gates.stages.case import MAX_ENTRIES, MAX_TEXT_CHARS
from interlock.gates.stages.stage import Field, Stage


def payload_schema(stage: Stage) -> dict[str, Any]:
    """Return the JSON schema (2020-12) of a stage's payload.

    It says what a schema can say of the shape; the judge also looks at single characters, at the size of the whole,
    and at what the stage's checks read.
    """
    return {"title": stage.name, "description": stage.role, **_object(stage.fields)}


def _object(fields: Sequence[Field]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {field.name: _property(field) for field in fields},
        "required": [field.name for field in fields if not field.optional],
        "additionalProperties": False,
    }


def _property(field: Field) -> dict[str, Any]:
    said: dict[str, Any] = {"description": field.meaning} if field.meaning else {}
    text: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT_CHARS, "pattern": "\\S"}
    match field.kind:
        case "text":
            return said | text
        case "choice":
            return said | {"type": "string", "enum": list(field.choices)}
        case "item":
            return said | _object(field.fields)
        case "texts" | "items":
            entry = text if field.kind == "texts" else _object(field.fields)
            least = 0 if field.may_be_empty else 1
            return said | {"type": "array", "items": entry, "minItems": least, "maxItems": MAX_ENTRIES}
        case _:
            assert_never(field.kind)
