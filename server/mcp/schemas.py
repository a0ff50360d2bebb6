"""JSON schemas of what the tools take and answer, as small as they can be: an agent's context pays for each byte."""

from types import NoneType, UnionType
from typing import Any, Final, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from typing_extensions import is_typeddict

_SCALARS: Final = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
_UNIONS: Final = (Union, UnionType)


def answer_schema(shape: Any) -> dict[str, Any]:
    """Return the JSON schema of what a tool answers: its keys and their types.

    Clients check answers against these schemas; the documentation says what an answer means, what its objects hold
    and which keys are always there.

    Raises:
        TypeError: The shape holds a type that has no JSON form.
    """
    if get_origin(shape) in _UNIONS:
        # The protocol wants an object at the root: the keys of all forms.
        forms = get_args(shape)
        return {"type": "object", "properties": {name: part for form in forms for name, part in _keys(form).items()}}
    return {"type": "object", "properties": _keys(shape)} if is_typeddict(shape) else _schema(shape)


def _keys(shape: Any) -> dict[str, Any]:
    return {name: _schema(hint) for name, hint in get_type_hints(shape).items()}


def _schema(shape: Any) -> dict[str, Any]:
    origin, arguments = get_origin(shape), get_args(shape)
    if is_typeddict(shape):
        return {"type": "object"}
    if shape is Any:
        return {}
    if shape in _SCALARS:
        return {"type": _SCALARS[shape]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (NotRequired, Required):
        return _schema(arguments[0])
    if origin is list:
        items = _schema(arguments[0])
        return {"type": "array", "items": items} if items else {"type": "array"}
    if origin is dict:
        return {"type": "object"}
    if origin in _UNIONS:
        return _union([_schema(each) for each in arguments])
    raise TypeError(f"{shape!r} has no JSON schema here")


def _union(members: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one schema for several; `X | None` adds `null` to the type of X."""
    rest = [each for each in members if each != {"type": "null"}]
    if len(rest) == 1 and len(members) == 2:
        kind = rest[0].get("type")
        if isinstance(kind, str):
            return {**rest[0], "type": [kind, "null"]}
        if "enum" in rest[0]:
            return {"enum": [*rest[0]["enum"], None]}
    return {"anyOf": members}


def trimmed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's arguments without what says nothing, and closed against unknown names."""
    return {**_trimmed(schema), "additionalProperties": False}


def _trimmed(schema: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        # Here the keys are names of arguments, one of which may be `title`.
        if key in ("properties", "$defs"):
            kept[key] = {name: _trimmed(part) for name, part in value.items()}
        elif key == "anyOf":
            # An argument that may be null may also be left out; to say both costs more than it is worth.
            forms = [_trimmed(part) for part in value if part != {"type": "null"}]
            kept |= forms[0] if len(forms) == 1 else {key: forms}
        elif key == "items":
            kept[key] = _trimmed(value)
        # A title repeats the name, and the two other pairs say what holds without them.
        elif key != "title" and (key, value) not in (("additionalProperties", True), ("default", None)):
            kept[key] = value
    return kept
