"""The arguments of a call, compared with the tool's own schema before anything runs."""

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final

from pydantic import ValidationError

from interlock.core.finding import Finding
from interlock.core.text import closest
from interlock.redaction import KeyRefused
from interlock.server.rules import cut, problem, shown

MAX_PROBLEMS: Final = 20
"""How many problems of one call are reported."""


def check_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return what is wrong with the arguments of a call, by the tool's own schema: everything, up to `MAX_PROBLEMS`."""
    known: Mapping[str, Any] = schema.get("properties", {})
    required: Sequence[str] = schema.get("required", ())
    given = [name for name in arguments if name in known and not (arguments[name] is None and name not in required)]
    found = chain(
        (_unknown(name, known) for name in arguments if name not in known),
        (_missing(name, known[name]) for name in required if name not in arguments),
        (fault for name in given if (fault := _mistyped(name, arguments[name], known[name])) is not None),
    )
    return tuple(islice(found, MAX_PROBLEMS))


def key_problem(refused: KeyRefused) -> Finding:
    """Return the finding for an argument that names something and holds a key."""
    return problem("MCP205", f"{refused.message}.", place=cut(refused.place), found="a key", fix=refused.fix)


def refined(error: ValidationError) -> tuple[Finding, ...]:
    """Return the findings for arguments that have their types and break a tool's own limits."""
    return tuple(
        problem(
            "MCP204", f"An argument is out of its limits: {cut(row['msg'])}.",
            place=cut(".".join(map(str, row["loc"]))),
            found=shown(row["input"]) if isinstance(row["input"], str | int | float) else "a value",
            expected=row["msg"], fix="Send a value within the limits of the tool's schema.",
        )
        for row in error.errors()[:MAX_PROBLEMS]
    )  # fmt: skip


def unknown_tool(name: str, known: Sequence[str]) -> Finding:
    """Return the finding for a tool that is not offered."""
    near = closest(name, known)
    fix = f"Call `{near}`." if near else f"Call one of {', '.join(known)}."
    return problem("MCP201", f"There is no tool `{cut(name)}` here.", place="name", found=name, fix=fix)


def _unknown(name: str, known: Mapping[str, Any]) -> Finding:
    near = closest(name, known)
    fix = f"Write `{near}`." if near else f"Leave it out. The tool takes {', '.join(known) or 'nothing'}."
    return problem("MCP202", f"The tool has no argument `{cut(name)}`.", place=cut(name), found=name,
                   expected=", ".join(known) or "no argument", fix=fix)  # fmt: skip


def _missing(name: str, schema: Mapping[str, Any]) -> Finding:
    return problem("MCP203", f"The argument `{name}` is missing.", place=name, found="nothing",
                   expected=_wanted(schema), fix=f"Add `{name}`.")  # fmt: skip


def _mistyped(name: str, value: Any, schema: Mapping[str, Any]) -> Finding | None:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - a server that is not called does not load it

    compared: Any = Draft202012Validator(schema)
    if compared.is_valid(value):
        return None
    wanted = _wanted(schema)
    return problem("MCP204", f"The argument `{name}` is not {wanted}.", place=name, found=shown(value),
                   expected=wanted, fix=f"Send `{name}` as {wanted}.")  # fmt: skip


_NAMES: Final = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "an array",
    "object": "an object",
}


def _wanted(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_wanted(each) for each in schema["anyOf"] if each.get("type") != "null"))
    if "enum" in schema:
        return "one of " + ", ".join(str(each) for each in schema["enum"])
    if schema.get("type") == "array" and "items" in schema:
        return f"an array, each item {_wanted(schema['items'])}"
    return _NAMES.get(str(schema.get("type")), "a value")
