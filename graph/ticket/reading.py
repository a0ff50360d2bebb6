"""Reading what was submitted: strict JSON, bounded, without duplicate keys, NaN, NUL or half characters."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from interlock.core.finding import FindingError
from interlock.gates.stages import MAX_PAYLOAD_BYTES, Issue, requirement_ids
from interlock.graph.ticket.rules import issue, shown
from interlock.journal import MAX_DEPTH, MAX_LINE_BYTES, canonical, not_json

MAX_TEXT_BYTES: Final = 1024 * 1024
"""How long a submitted ticket may be; the server never issues one of more than a quarter of it."""

MAX_PAYLOAD_DEPTH: Final = 32
"""How deep a payload may be nested; it stands inside the ticket, and the ticket inside a journal line."""

FINDINGS_BYTES: Final = 80 * 1024
"""What a ticket keeps free for the findings about its last submission, and for the history of retries to come."""

LATER_BYTES: Final = 8 * 1024
"""What each later stage may count on for its payload."""

TICKET_JSON: Final = "ticket_json"

_WRAPPERS: Final = ("updated_ticket", TICKET_JSON)
"""Fields of an answer that hold the ticket; no ticket has a field of such a name."""

_AGAIN: Final = (
    "Submit the ticket as the server returned it last, with `payload` filled in, as an object or as its JSON."
)


_HALF: Final = re.compile("[\ud800-\udfff]")
_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""NUL as JSON writes it; behind an escaped backslash the same letters are text that quotes code."""


def read_object(given: object, name: str) -> dict[str, Any] | Issue:
    """Return the JSON object that an argument holds, or what is wrong with it.

    It is a text with JSON, or the value that a client already parsed.
    """
    again = _AGAIN if name == TICKET_JSON else f"Send `{name}` as a JSON object with the fields of the stage."
    value = given
    if isinstance(given, str | bytes):
        if len(given) > MAX_TEXT_BYTES:
            return _large(name, f"{len(given)} characters")
        try:
            value = json.loads(given, object_pairs_hook=_pairs, parse_constant=_constant)
        except FindingError as error:
            return error.finding._replace(field=name, message=f"`{name}` holds {error.finding.message}.")
        except RecursionError:
            return _large(name, f"more than {MAX_DEPTH} levels")
        except ValueError as error:
            return issue(
                "TKT101",
                name,
                f"`{name}` is not JSON: {shown(str(error))}.",
                found=given if isinstance(given, str) else shown(given),
                expected="one JSON object",
                fix=again,
            )
    if not isinstance(value, dict):
        message = f"`{name}` is no JSON object."
        return issue("TKT102", name, message, found=_kind(value), expected="a JSON object", fix=again)
    wrapped = next((key for key in _WRAPPERS if key in value), None) if name == TICKET_JSON else None
    if wrapped is not None:
        message = f"`{name}` holds an answer of the server, and not the ticket in it."
        fix = f"Send the value of `{wrapped}` alone, with `payload` filled in."
        return issue("TKT102", name, message, found=f"an object with `{wrapped}`", expected="the ticket", fix=fix)
    return _whole(cast("dict[str, Any]", value), name)


def _whole(value: dict[str, Any], name: str) -> dict[str, Any] | Issue:
    """Refuse what could not be written down and read back."""
    flaw = not_json(value)
    if "nested deeper" in flaw:
        return _large(name, f"more than {MAX_DEPTH} levels")
    if flaw:
        return issue("TKT101", name, f"`{name}`: {flaw}.", found=flaw, expected="JSON values", fix=_AGAIN)
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > MAX_TEXT_BYTES:
        return _large(name, f"{len(text)} characters")
    half = None if text.isascii() else _HALF.search(text)
    # The plain search is a hundred times as fast, and nearly always enough.
    if half is not None or ("\\u0000" in text and _NUL.search(text)):
        what = "NUL" if half is None else f"half a character, {ascii(half.group())[1:-1]}"
        expected = "text of whole characters without NUL"
        return issue("TKT101", name, f"`{name}` holds {what}.", found=what, expected=expected, fix=_AGAIN)
    return value


def payload_room(ticket: Mapping[str, Any], later: int) -> int:
    """Return how many bytes of JSON the next payload may add to a ticket that must fit into one line of the snapshots.

    Each of the `later` stages that follow the present one keeps room of its own.
    """
    kept = len(canonical({**ticket, "payload": {}, "validation": {}, "invalidation_report": {}}))
    free = max(MAX_LINE_BYTES - FINDINGS_BYTES - kept, 0)
    return free - later * min(LATER_BYTES, free // (later + 1))


def check_payload(payload: Mapping[str, Any], room: int) -> Issue | None:
    """Refuse a payload that could not be kept whole in the ticket and the journal."""
    # The texts of requirements stand in the ticket once more, under the ids that they get.
    most = min(MAX_PAYLOAD_BYTES, room - len(canonical(requirement_ids(payload))))
    size = len(canonical(payload))
    flaw = not_json(payload, MAX_DEPTH - MAX_PAYLOAD_DEPTH)
    if size <= most and not flaw:
        return None
    return issue(
        "TKT103",
        "payload",
        "The payload is too large.",
        found=f"more than {MAX_PAYLOAD_DEPTH} levels" if flaw else f"{size} bytes as JSON",
        expected=f"at most {max(most, 0)} bytes and {MAX_PAYLOAD_DEPTH} levels",
        fix="Shorten the texts; quote the lines that matter and point at the rest.",
    )


def _large(name: str, found: str) -> Issue:
    expected = f"at most {MAX_TEXT_BYTES} bytes and {MAX_DEPTH} levels"
    return issue("TKT103", name, f"`{name}` is too large.", found=found, expected=expected, fix=_AGAIN)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _refused(f"the key `{shown(key)}` twice in one object", "every key once")
        found[key] = value
    return found


def _constant(name: str) -> float:
    raise _refused(f"the value {name}", "finite numbers")


def _refused(found: str, expected: str) -> FindingError:
    return FindingError(issue("TKT101", "", found, found=found, expected=expected, fix=_AGAIN))


def _kind(value: object) -> str:
    names: Mapping[type, str] = {
        list: "a list",
        str: "a text",
        bool: "a truth value",
        int: "a number",
        float: "a number",
    }
    return "null" if value is None else names.get(type(value), type(value).__name__)
