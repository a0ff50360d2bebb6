"""Makes tools: a name, a description, a closed schema of its arguments, and an answer that is JSON."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from interlock.agents.file_refusals import Answer, refusal_row
from interlock.core.text import closest

Block: TypeAlias = dict[str, Any]
"""A content block of LangChain, such as `{"type": "text", "text": …}`."""

_TYPES: Final = {"string": "a text", "integer": "a whole number"}


def _open(schema: dict[str, Any]) -> None:
    # Gemini's schemas have no such key, and its client complains about it on every call.
    schema.pop("additionalProperties", None)


class Arguments(BaseModel):
    """The base of every tool's arguments: closed, and nothing is taken for another type."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra=_open)


def make_tool(
    name: str, description: str, arguments: type[Arguments], call: Callable[..., Answer | list[Block]]
) -> BaseTool:
    """Return a tool whose call takes its arguments by name, each with a description and an example.

    What it returns becomes JSON text, or is content blocks.
    """
    properties = arguments.model_json_schema()["properties"]

    def run(**given: Any) -> str | list[Block]:
        answer = call(**given)
        return answer if isinstance(answer, list) else json_text(answer)

    def refused(error: Exception) -> str:
        assert isinstance(error, ValidationError), "LangChain names pydantic's first version too, which is not used"
        # The first slips show what the schema asks; a call may have any number of them.
        rows = [_row(details, properties) for details in error.errors(include_url=False)[:5]]
        return json_text({"errors": rows})

    return StructuredTool(
        name=name, description=description, args_schema=arguments, func=run, handle_validation_error=refused
    )


def json_text(answer: Answer) -> str:
    """Return an answer as JSON text."""
    return json.dumps(answer, ensure_ascii=False)


def _row(details: ErrorDetails, properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the refusal for one slip that pydantic found."""
    name = str(details["loc"][0]) if details["loc"] else "arguments"
    schema = cast("dict[str, Any] | None", properties.get(name))
    if schema is None:
        near = closest(name, properties)
        fix = f"Write `{near}`." if near else "Leave it out."
        return refusal_row("AGT917", name, "an argument that is not known", expected=", ".join(properties), fix=fix)
    expected = _expected(schema)
    given = "null" if details["input"] is None else details["input"]
    found = "nothing" if details["type"] == "missing" else given
    example = json.dumps({name: schema["examples"][0]})
    return refusal_row("AGT917", name, found, expected=expected, fix=f"Give {expected}, such as {example}.")


def _expected(schema: Mapping[str, Any]) -> str:
    if names := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return "one of " + ", ".join(names)
    bounds = [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    return " ".join([_TYPES[schema["type"]], *bounds])
