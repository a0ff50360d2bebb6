"""The JSON schema of an envelope as an object, made from the tables and the patterns of the printed grammars."""

from typing import Any, Final

from interlock.envelope.export.language import INVISIBLE, MAX_ACTIONS, TEXT, Bounds, Known, owned_or_echoed
from interlock.envelope.export.notation import Chars
from interlock.envelope.protocol import DEFAULT_PROTOCOL, EVIDENCE_KEYS, LABELS, Protocol

JsonObject = dict[str, Any]

END: Final = r"(?![\s\S])"
"""The end of the text, written so that ECMA 262 and Python agree: `$` also matches before a final newline in Python."""

LF: Final = "\n"
LAST: Final = 0x10FFFF
SURROGATES: Final = (0xD800, 0xDFFF)
TASK_ID: Final = r"[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+"
GATE: Final = r"GATE(?:-[A-Z0-9]+)+"
INPUT: Final = r"[A-Za-z0-9][A-Za-z0-9._/-]*"
SEGMENT: Final = r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.[A-Za-z0-9])*"


def to_json_schema(
    protocol: Protocol = DEFAULT_PROTOCOL,
    known: Known = Known(),  # noqa: B008 - it never changes
    bounds: Bounds | None = None,
) -> JsonObject:
    """Return the schema (draft 2020-12) of the object that `--format json` shows as `envelope`.

    What holds between two fields is in it where JSON Schema can say it: APPROVED has no fail reasons, BLOCKED has some,
    and only APPROVED may have no next actions. Subset, ownership and evidence stay with the rules. Arguments as for
    `envelope_language`; bounds count whole values here, so a value may have a few characters more or less than in the
    grammars.
    """
    agents = tuple(protocol.roles) if known.agent is None else (protocol.roles[known.agent].name,)
    items = {"maxItems": bounds.items} if bounds else {}
    text = {"maxLength": bounds.chars} if bounds else {}
    name = {"maxLength": bounds.parts * (bounds.part_chars + 1)} if bounds else {}
    output = {"maxLength": bounds.lines * (bounds.chars + 1)} if bounds else {}
    actions = {"maxItems": min(bounds.items, MAX_ACTIONS)} if bounds else {}
    gate = _string(GATE) | name
    passed = _list({"enum": list(known.gates)}) if known.gates else _list(gate) | items
    required = {"const": list(known.gates)} if known.gates else _list(gate) | {"minItems": 1} | items
    paths = _list(_string(f"artifacts(?:/{SEGMENT})+") | name) | items
    fields: dict[str, JsonObject] = {
        "STATUS": {"enum": list(owned_or_echoed(protocol, known.agent))},
        "TASK_ID": {"const": known.task_id} if known.task_id else _string(TASK_ID) | name,
        "TASK": {"const": known.task} if known.task else _string(_words()) | text,
        "ASSIGNED_AGENT": {"enum": list(agents)},
        "REPORTS_TO": {"const": "orchestrator"},
        "INPUTS_USED": _list(_string(f"{INPUT}(?: \\({_except('(', ')')}+\\))?") | text) | items,
        "GATES_REQUIRED": required,
        "GATES_PASSED": passed,
        "EVIDENCE": _object(dict.fromkeys(EVIDENCE_KEYS, paths)),
        "FAIL_REASONS": _list(_string(f"{GATE}: {_words()}") | text) | items,
        "OUTPUT": _string(f"{_except(*INVISIBLE)}{_except(allowed=LF)}*")
        | {"not": {"pattern": rf"(?:^|\n)(?:{'|'.join(LABELS)})[ \t]*:"}}
        | output,
        "NEXT_ACTIONS": {"type": "array", "items": _string(_words()) | text} | actions,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Interlock envelope",
        "description": "The twelve fields of a response, in the order of the text.",
        **_object({label.lower(): fields[label] for label in LABELS}),
        "if": {"properties": {"status": {"const": "APPROVED"}}},
        "then": {"properties": {"fail_reasons": {"maxItems": 0}}},
        "else": {
            "properties": {"next_actions": {"minItems": 1}},
            "if": {"properties": {"status": {"const": "BLOCKED"}}},
            "then": {"properties": {"fail_reasons": {"minItems": 1}}},
        },
    }


def _object(properties: dict[str, JsonObject]) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items, "uniqueItems": True}


def _string(pattern: str) -> JsonObject:
    return {"type": "string", "pattern": f"^{pattern}{END}"}


def _words() -> str:
    return f"{_except(*INVISIBLE, '[', ']')}{_except()}*"


def _except(*refused: str, allowed: str = "") -> str:
    """Return the class of the text characters, as what it leaves out: readers without the `u` flag agree on that."""
    low = 0
    gaps: list[tuple[int, int]] = []
    for start, end in (*TEXT.minus("".join(refused)).ranges, (LAST + 1, LAST + 1)):
        gaps += [(low, start - 1)] if low < start else []
        low = end + 1
    shown = (part for part in Chars(tuple(gaps)).minus(allowed).ranges if part != SURROGATES)
    return "[^" + "".join(_escaped(start) + ("-" + _escaped(end) if end > start else "") for start, end in shown) + "]"


def _escaped(code_point: int) -> str:
    return f"\\u{code_point:04X}" if code_point < 0x10000 else chr(code_point)
