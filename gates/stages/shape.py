"""The generic gate: every field is there, nothing else is, and each holds its kind of value; as JSON schema too."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, assert_never, cast

from interlock.core.finding import Finding
from interlock.core.text import closest
from interlock.gates.stages.case import MAX_ENTRIES, MAX_TEXT_CHARS, UNFIT, blank, fit_text
from interlock.gates.stages.rules import MAX_NAMED, copied, issue, listed, shown
from interlock.gates.stages.stage import Field, Stage

_KINDS: Final = {
    "text": "a text", "texts": "a list of texts", "item": "an object",
    "items": "a list of objects",
}  # fmt: skip
_MAX_INT_BITS: Final = 256
_PATH_KEYS: Final = ("path", "file", "file_path", "file_name", "filename", "source", "location")
_LINE_KEYS: Final = ("lines", "line", "line_range", "range", "line_number", "start_line")


def shape_issues(fields: Sequence[Field], holder: Mapping[str, Any], at: str = "") -> Iterator[Finding]:
    """Yield what is wrong with the fields of an object; `at` is its place, ending in `.`, or empty for the payload."""
    absent = [field.name for field in fields if field.name not in holder]
    unknown = [key for key in holder if key not in {field.name for field in fields}][:MAX_NAMED]
    meant = _meant(unknown, absent)
    for field in fields:
        if field.name in holder:
            yield from _value_issues(field, holder[field.name], at + field.name)
        elif not field.optional:
            key = next((key for key, name in meant.items() if name == field.name), None)
            yield _missing(field, at, key, _locator_of(holder) if field.name == "locator" else "")
    for key in unknown:
        yield _unknown(key, holder[key], fields, meant.get(key), at)


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


def _meant(unknown: Sequence[str], absent: Sequence[str]) -> dict[str, str]:
    """Match unknown keys with the missing fields that were probably meant, each field once.

    A key that is the last word of one field alone, as `id` is of `source_id`, comes before one that is spelled like it.
    """
    left = list(absent)
    found: dict[str, str] = {}
    for by_ending in (True, False):
        for key in unknown:
            ending = [name for name in left if name.endswith(f"_{_snake(key)}")]
            name = (ending[0] if len(ending) == 1 else "") if by_ending else closest(_snake(key), left, 0.7)
            if name and key not in found:
                found[key] = name
                left.remove(name)
    return found


def _snake(key: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key[:100].strip())
    return words.lower().replace("-", "_").replace(" ", "_")


def _locator_of(holder: Mapping[str, Any]) -> str:
    """Return the locator that other keys of an item spell out, such as `path` and `lines`; or nothing."""
    named = {_snake(key): value for key, value in holder.items()}
    path = next((fit_text(named[key]) for key in _PATH_KEYS if key in named), "")
    given: object = next((named[key] for key in _LINE_KEYS if key in named), "")
    lines = str(given) if isinstance(given, int) and 0 < given < 10**9 else fit_text(given).strip()
    return f"{path.strip()}:{lines}" if path.strip() and re.fullmatch(r"[0-9]{1,9}(-[0-9]{1,9})?", lines) else ""


def _missing(field: Field, at: str, key: str | None, value: str = "") -> Finding:
    meaning = f": {field.meaning}" if field.meaning else ""
    found, fix = "no such field", f"Add `{field.name}`{meaning}."
    if key is not None:
        found, fix = f"a field {shown(key, 60)}", f"Rename {shown(key, 60)} to `{field.name}`."
    if value:
        fix = f"Add `{field.name}` with the value {copied(value)}."
    message = f"The field `{at}{field.name}` is missing."
    expected = f"one of {listed(field.choices)}" if field.kind == "choice" else _KINDS[field.kind]
    return issue("STG103", at + field.name, message, found, f"{expected}{meaning}", fix)


def _unknown(key: str, value: object, fields: Sequence[Field], meant: str | None, at: str) -> Finding:
    names = [field.name for field in fields]
    found = describe(value)
    fix = f"Remove {shown(key, 60)}; the fields here are {listed([f'`{name}`' for name in names])}."
    if meant is not None:
        fix = f"Rename {shown(key, 60)} to `{meant}`."
    elif isinstance(value, dict) and any(name in value for name in names):
        fix = f"Put the fields that {shown(key, 60)} holds in its place."
    place = key if re.fullmatch(r"[A-Za-z0-9_]{1,60}", key) else shown(key, 60)
    message = f"The field {shown(key, 60)} is not one of this {'item' if at else 'stage'}."
    expected = "no such field" if meant is None else f"the field `{meant}`"
    return issue("STG104", at + place, message, found, expected, fix)


def _value_issues(field: Field, value: object, at: str) -> Iterator[Finding]:
    match field.kind:
        case "text":
            yield from _text_issues(field, value, at)
        case "choice":
            yield from _choice_issues(field, value, at)
        case "item":
            yield from _item_issues(field, value, at)
        case "texts" | "items":
            yield from _list_issues(field, value, at)
        case _:
            assert_never(field.kind)


def _text_issues(field: Field, value: object, at: str) -> Iterator[Finding]:
    meaning = f": {field.meaning}" if field.meaning else ""
    if not isinstance(value, str):
        simple = isinstance(value, int | float) and not isinstance(value, bool) and _short(value)
        fix = f'Write it in quotes: "{value}".' if simple else f"Write one text{meaning}."
        if value is None and field.optional:
            fix = "Remove the field."
        yield _wrong_kind(at, value, "a text", fix)
        return
    if odd := UNFIT.search(value):
        name, place = f"U+{ord(odd[0]):04X}", odd.start() + 1
        message = f"Character {place} of `{at}` is {name}, which no text may hold."
        expected = "characters that can be shown, line ends (\\n) and tabs"
        yield issue("STG110", at, message, name, expected, f"Remove {name}, character {place}, and others of its kind.")
    elif blank(value):
        fix = f"Remove the entry, or write the text{meaning}." if at.endswith("]") else f"Write the text{meaning}."
        yield issue("STG106", at, f"`{at}` is {'blank' if value else 'empty'}.", shown(value), f"a text{meaning}", fix)
    if len(value) > MAX_TEXT_CHARS:
        fix = f"Cut {len(value) - MAX_TEXT_CHARS} characters or more, or say where the whole text is."
        found, expected = f"{len(value)} characters", f"at most {MAX_TEXT_CHARS} characters"
        yield issue("STG108", at, f"`{at}` is too long.", found, expected, fix)


def _choice_issues(field: Field, value: object, at: str) -> Iterator[Finding]:
    if isinstance(value, str) and value in field.choices:
        return
    words = listed([f"`{word}`" for word in field.choices])
    plain = value.strip().casefold() if isinstance(value, str) else ""
    near = closest(plain, field.choices)
    fix = f"Write `{near}`." if near else f"Write one of {words}."
    yield issue("STG111", at, f"`{at}` is not one of its words.", describe(value), f"one of {words}", fix)


def _list_issues(field: Field, value: object, at: str) -> Iterator[Finding]:
    entry_meaning = f": {field.meaning}" if field.meaning else ""
    if not isinstance(value, list):
        yield _wrong_kind(at, value, _KINDS[field.kind], _as_list(field, value))
        return
    entries = cast("list[object]", value)
    if not entries and not field.may_be_empty:
        expected = f"at least one entry{entry_meaning}"
        yield issue("STG107", at, f"`{at}` has no entry.", "an empty list", expected, f"Add {expected}.")
    if len(entries) > MAX_ENTRIES:
        expected, fix = f"at most {MAX_ENTRIES} entries", f"Keep the {MAX_ENTRIES} entries that matter most."
        yield issue("STG109", at, f"`{at}` has too many entries.", f"{len(entries)} entries", expected, fix)
    for position, entry in enumerate(entries[:MAX_ENTRIES]):
        place = f"{at}[{position}]"
        if field.kind == "texts":
            yield from _text_issues(field, entry, place)
        else:
            yield from _item_issues(field, entry, place)


def _item_issues(field: Field, value: object, at: str) -> Iterator[Finding]:
    if isinstance(value, Mapping):
        yield from shape_issues(field.fields, cast("Mapping[str, Any]", value), f"{at}.")
    else:
        names = listed([f"`{inner.name}`" for inner in field.fields])
        yield _wrong_kind(at, value, "an object", f"Write an object with the fields {names}.")


def _as_list(field: Field, value: object) -> str:
    """Return how a value becomes a list."""
    if value is None and field.may_be_empty:
        return "Write []."
    if field.kind == "texts" and isinstance(value, str) and not blank(value):
        return f"Put it in brackets: [{shown(value)}]." if len(value) <= 100 else "Put the text in brackets."
    if field.kind == "items" and isinstance(value, Mapping):
        return "Put the object in brackets."
    return f"Write a list in brackets{f': {field.meaning}' if field.meaning else ''}."


def _wrong_kind(at: str, value: object, expected: str, fix: str) -> Finding:
    return issue("STG105", at, f"`{at}` is not {expected}.", describe(value), expected, fix)


def _short(number: float) -> bool:
    return not isinstance(number, int) or number.bit_length() <= _MAX_INT_BITS


def describe(value: object) -> str:
    """Describe a JSON value, in bounded length and without walking through it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return shown(value)
        case int() | float():
            return f"the number {value}" if _short(value) else "a very large number"
        case Mapping():
            return f"an object with {len(cast('Mapping[str, object]', value))} fields"
        case list():
            return f"a list of {len(cast('list[object]', value))} entries"
        case _:
            return f"a value of type {type(value).__name__}"
