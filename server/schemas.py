"""JSON schemas of what the tools take and answer, as small as they can be: an agent's context pays for each byte."""

from types import NoneType, UnionType
from typing import Any, Final, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints, is_typeddict

_SCALARS: Final = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
_UNIONS: Final = (Union, UnionType)
_MAX_REPEATED_KEYS: Final = 6
"""A shape with more keys is spelled out by the first tool that answers it, and by no other one."""


def answer_schema(shape: Any, spelled: set[type] | None = None) -> dict[str, Any]:
    """Return the JSON schema of what a tool answers: its keys, and those of the objects right below.

    What is required is said at the root alone. Clients check answers against these schemas; what an answer means
    stands in the documentation.

    Args:
        shape: A `TypedDict`, a dictionary with any keys, or a union of such.
        spelled: Large shapes whose keys another tool of the same list gives already; those met here are added.

    Raises:
        TypeError: The shape holds a type that has no JSON form.
    """
    spelled = set() if spelled is None else spelled
    if get_origin(shape) in _UNIONS:
        # The protocol wants an object at the root: the keys of all forms, those required that every form has.
        forms = get_args(shape)
        properties = {name: part for form in forms for name, part in _keys(form, 0, spelled).items()}
        required = [name for name in properties if all(name in _required(form) for form in forms)]
        return {"type": "object", "properties": properties, **({"required": required} if required else {})}
    if is_typeddict(shape):
        return {"type": "object", "properties": _keys(shape, 1, spelled), "required": _required(shape)}
    return _schema(shape, 1, spelled)


def _required(shape: Any) -> list[str]:
    return [name for name in get_type_hints(shape) if name in shape.__required_keys__]


def _keys(shape: Any, depth: int, spelled: set[type]) -> dict[str, Any]:
    return {name: _schema(hint, depth, spelled) for name, hint in get_type_hints(shape).items()}


def _schema(shape: Any, depth: int, spelled: set[type]) -> dict[str, Any]:
    origin, arguments = get_origin(shape), get_args(shape)
    if is_typeddict(shape):
        if not depth or shape in spelled:
            return {"type": "object"}
        if len(shape.__annotations__) > _MAX_REPEATED_KEYS:
            spelled.add(shape)
        return {"type": "object", "properties": _keys(shape, depth - 1, spelled)}
    if shape is Any:
        return {}
    if shape in _SCALARS:
        return {"type": _SCALARS[shape]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (NotRequired, Required):
        return _schema(arguments[0], depth, spelled)
    if origin is list:
        items = _schema(arguments[0], depth, spelled)
        return {"type": "array", "items": items} if items else {"type": "array"}
    if origin is dict:
        values = _schema(arguments[1], depth, spelled)
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    if origin in _UNIONS:
        return _union([_schema(each, depth, spelled) for each in arguments])
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
        if key in ("properties", "$defs"):
            kept[key] = {name: _trimmed(part) for name, part in value.items()}
        elif key == "anyOf":
            # An argument that may be null may also be left out; to say both costs more than it tells.
            forms = [_trimmed(part) for part in value if part != {"type": "null"}]
            kept |= forms[0] if len(forms) == 1 else {key: forms}
        elif key == "items":
            kept[key] = _trimmed(value)
        elif key != "title" and (key, value) not in (("additionalProperties", True), ("default", None)):
            kept[key] = value
    return kept
