"""The generic gate: every field is there, nothing else is, and each holds its kind of value; as JSON schema too."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never, cast

from interlock.core.finding import Finding
from interlock.core.text import closest
from interlock.gates.rules import MAX_NAMED, listed
from interlock.gates.stages.case import MAX_ENTRIES, MAX_TEXT_CHARS, UNFIT, blank
from interlock.gates.stages.rules import issue, shown
from interlock.gates.stages.stage import Field, Stage


def shape_issues(fields: Sequence[Field], holder: Mapping[str, Any], at: str = "") -> Iterator[Finding]:
    """Yield what is wrong with the fields of an object; `at` is its place, ending in `.`, or empty for the payload."""
    names = [field.name for field in fields]
    unknown = [key for key in holder if key not in names][:MAX_NAMED]
    absent = [name for name in names if name not in holder]
    meant = {key: closest(key.replace("-", "_"), absent, 0.7) for key in unknown}
    for field in fields:
        if field.name in holder:
            yield from _value_issues(field, holder[field.name], at + field.name)
        elif not field.optional:
            fix = f"Add `{field.name}`, {_wanted(field)}."
            message = f"The field `{at}{field.name}` is missing."
            yield issue("STG103", at + field.name, message, "no such field", _wanted(field), fix)
    for key in unknown:
        yield _unknown(key, holder[key], names, meant[key], at)


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
    schema: dict[str, Any] = {"description": field.meaning} if field.meaning else {}
    text: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT_CHARS, "pattern": "\\S"}
    match field.kind:
        case "text":
            return schema | text
        case "choice":
            return schema | {"type": "string", "enum": list(field.choices)}
        case "item":
            return schema | _object(field.fields)
        case "texts" | "items":
            entry = text if field.kind == "texts" else _object(field.fields)
            least = 0 if field.may_be_empty else 1
            return schema | {"type": "array", "items": entry, "minItems": least, "maxItems": MAX_ENTRIES}
        case _:
            assert_never(field.kind)


def _kind(field: Field) -> str:
    """Say what a field holds, such as `a list of texts`."""
    match field.kind:
        case "text":
            return "a text"
        case "texts":
            return "a list of texts"
        case "choice":
            return f"one of {', '.join(field.choices)}"
        case "item" | "items":
            holder = "an object" if field.kind == "item" else "a list of objects"
            return f"{holder} with the fields {', '.join(f'`{part.name}`' for part in field.fields)}"
        case _:
            assert_never(field.kind)


def _wanted(field: Field, what: str = "") -> str:
    """Say what a field holds, and what that means."""
    what = what or _kind(field) + (", also an empty one" if field.may_be_empty else "")
    return f"{what}: {field.meaning}" if field.meaning else what


def _unknown(key: str, value: object, names: Sequence[str], meant: str, at: str) -> Finding:
    fix = f"Remove {shown(key, 60)}; the fields here are {listed([f'`{name}`' for name in names])}."
    if meant:
        fix = f"Rename {shown(key, 60)} to `{meant}`."
    place = key if re.fullmatch(r"[A-Za-z0-9_]{1,60}", key) else shown(key, 60)
    message = f"The field {shown(key, 60)} is not one of this {'item' if at else 'stage'}."
    return issue("STG104", at + place, message, describe(value), "no such field", fix)


def _value_issues(field: Field, value: object, at: str) -> Iterator[Finding]:
    """Yield what is wrong with a value; an entry of a list is a field of its own."""
    if isinstance(value, str) and field.kind == "text":
        yield from _text_issues(field, value, at)
    elif isinstance(value, Mapping) and field.kind == "item":
        yield from shape_issues(field.fields, cast("Mapping[str, Any]", value), f"{at}.")
    elif isinstance(value, list) and field.kind in {"texts", "items"}:
        entries = cast("list[object]", value)
        if not entries and not field.may_be_empty:
            fix = f"Add {_wanted(field, 'at least one entry')}."
            yield issue("STG103", at, f"`{at}` has no entry.", "an empty list", _wanted(field), fix)
        if len(entries) > MAX_ENTRIES:
            expected, fix = f"at most {MAX_ENTRIES} entries", f"Keep the {MAX_ENTRIES} entries that matter most."
            yield issue("STG102", at, f"`{at}` has too many entries.", f"{len(entries)} entries", expected, fix)
        part = replace(field, kind="text" if field.kind == "texts" else "item", may_be_empty=False)
        for position, entry in enumerate(entries[:MAX_ENTRIES]):
            yield from _value_issues(part, entry, f"{at}[{position}]")
    elif not isinstance(value, str) or value not in field.choices:
        found, fix = describe(cast("object", value)), f"Write {_wanted(field)}."
        if isinstance(value, str) and (near := closest(value.strip().casefold(), field.choices)):
            fix = f"Write `{near}`."
        yield issue("STG105", at, f"`{at}` is not {_kind(field)}.", found, _wanted(field), fix)


def _text_issues(field: Field, text: str, at: str) -> Iterator[Finding]:
    if odd := UNFIT.search(text):
        name, place = f"U+{ord(odd[0]):04X}", odd.start() + 1
        message = f"Character {place} of `{at}` is {name}, which no text may hold."
        expected = "characters that can be shown, line ends (\\n) and tabs"
        yield issue("STG105", at, message, name, expected, f"Remove {name}, character {place}, and others of its kind.")
    elif blank(text):
        fix = "Remove the entry, or write the text." if at.endswith("]") else f"Write {_wanted(field, 'the text')}."
        yield issue("STG103", at, f"`{at}` is blank.", shown(text), _wanted(field), fix)
    if len(text) > MAX_TEXT_CHARS:
        fix = f"Cut {len(text) - MAX_TEXT_CHARS} characters or more, or say where the whole text is."
        found, expected = f"{len(text)} characters", f"at most {MAX_TEXT_CHARS} characters"
        yield issue("STG102", at, f"`{at}` is too long.", found, expected, fix)


def describe(value: object) -> str:
    """Describe a JSON value, in bounded length and without walking through it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return shown(value)
        case int() | float():
            is_short = not isinstance(value, int) or abs(value) < 10**60
            return f"the number {value}" if is_short else "a very large number"
        case Mapping():
            return f"an object with {len(cast('Mapping[str, object]', value))} fields"
        case list():
            return f"a list of {len(cast('list[object]', value))} entries"
        case _:
            return f"a value of type {type(value).__name__}"
