"""Reading what was submitted, and comparing it with what the server issued: it contributes its payload and no more."""

import json
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, Final, cast

from interlock.core.json import canonical, compact, each_once
from interlock.gates.stages import MAX_PAYLOAD_BYTES, Issue, Surroundings, judge_stage
from interlock.graph.ticket.contract import MinimalTicket, Ticket
from interlock.graph.ticket.rules import issue, no_object, shown
from interlock.graph.ticket.spec import POC, PipelineSpec
from interlock.graph.ticket.state import Attempt, RunState, earlier, required_fields
from interlock.journal import MAX_DEPTH, not_json

MAX_TEXT_BYTES: Final = 1024 * 1024
"""How long a submitted ticket may be; the server never issues one of more than a quarter of it."""

MAX_PAYLOAD_DEPTH: Final = 32
"""How deep a payload may be nested; it is part of the ticket, and the ticket of a journal line."""

_AS_RETURNED: Final = "Take the ticket that comes back with this answer, fill in its `payload` alone, and submit it."


def read_object(given: object, name: str) -> dict[str, Any] | Issue:
    """Return the JSON object that an argument holds, or what is wrong with it.

    It is a text with JSON, or the value that a client already parsed. What could not be written down and read back is
    refused here, once.
    """
    value = given
    if isinstance(given, str):
        # No text has more characters than bytes: one that is too long so is not parsed.
        if len(given) > MAX_TEXT_BYTES:
            return _large(name, len(given))
        try:
            value = json.loads(given, object_pairs_hook=each_once, parse_constant=_constant)
        except (ValueError, RecursionError) as error:
            return _unreadable(name, str(error))
    if not isinstance(value, dict):
        return _unreadable(name, _KINDS.get(type(cast("object", value)), "null"))
    read = cast("dict[str, Any]", value)
    # What a client parsed itself was never compared with JSON.
    if flaw := not_json(read):
        return _unreadable(name, flaw)
    try:
        size = len(compact(read).encode())
    except UnicodeEncodeError:
        return _unreadable(name, "half of a surrogate pair")
    return read if size <= MAX_TEXT_BYTES else _large(name, size)


def _constant(name: str) -> float:
    raise ValueError(f"the value {name}")


_KINDS: Final[Mapping[type, str]] = {
    list: "an array",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}
"""What JSON calls the values that are no object; one that is none of these is null."""


def _unreadable(name: str, found: str) -> Issue:
    fix = f"Send `{name}` as one JSON object, as the server returned it or as the stage asks for it."
    return issue("TKT101", name, f"`{name}` is no JSON object.", found=found, expected="one JSON object", fix=fix)


def _large(name: str, size: int) -> Issue:
    fix = "Shorten the texts of the payload; quote the lines that matter and point at the rest."
    expected = f"at most {MAX_TEXT_BYTES} bytes"
    return issue("TKT103", name, f"`{name}` is too large.", found=f"{size} bytes", expected=expected, fix=fix)


def same(given: object, issued: object) -> bool:
    """Return whether a field holds what was issued; `true` is not 1."""
    return type(given) is type(issued) and given == issued


def compared(given: Mapping[str, Any], issued: Ticket, *, past: bool) -> list[Issue]:
    """Return a finding for each field of a ticket that is missing or not as it was issued, and one for all others.

    A ticket of a `past` revision is held to having all its fields, and to no values.
    """
    found: list[Issue] = []
    for name, value in issued.items():
        if name not in given:
            message = f"The ticket has no field `{name}`."
            found.append(
                issue("TKT104", name, message, found="nothing", expected="every field as issued", fix=_AS_RETURNED)
            )
        elif name != "payload" and not past and not same(given[name], value):
            found.append(changed_field(name, given[name], value))
    return [*found, *added_fields(given, issued)]


def added_fields(given: Mapping[str, Any], known: Container[str]) -> list[Issue]:
    """Return the finding about the fields that no ticket has, if there are any."""
    # One finding for all: they have one fix, and a whole answer that was sent as a ticket has many.
    names = [name for name in given if name not in known]
    if not names:
        return []
    fix = "Remove them; what you want to say belongs into `payload`."
    if "payload" not in known:
        fix = "Remove them; in the first stage, the ticket itself holds the fields that are asked for."
    message = f"The ticket has fields that the server did not issue: {shown(', '.join(names))}."
    named = shown(names[0])
    return [issue("TKT122", named, message, found=", ".join(names), expected="the fields as issued", fix=fix)]


def payload_finding(payload: object, state: RunState, spec: PipelineSpec) -> Issue | None:
    """Return why a payload is not handed to its gate: it is none, of another ticket, or too large for the journal."""
    if not isinstance(payload, dict):
        return no_object(payload)
    given = cast("dict[str, Any]", payload)
    # The intake of a minimal ticket repeats the id of the ticket that the run is of.
    ticket_id = given.get("ticket_id")
    if ticket_id not in (None, state["ticket_id"]) and "ticket_id" in required_fields(spec, state):
        return changed_field("ticket_id", ticket_id, state["ticket_id"])
    size = len(canonical(given))
    # Begins to count where 32 levels are left: the payload stands inside of a ticket, and that in a journal line.
    flaw = not_json(given, MAX_DEPTH - MAX_PAYLOAD_DEPTH)
    if size <= MAX_PAYLOAD_BYTES and not flaw:
        return None
    return issue(
        "TKT103",
        "payload",
        "The payload is too large.",
        found=f"more than {MAX_PAYLOAD_DEPTH} levels" if flaw else f"{size} bytes as JSON",
        expected=f"at most {MAX_PAYLOAD_BYTES} bytes and {MAX_PAYLOAD_DEPTH} levels",
        fix="Shorten the texts; quote the lines that matter and point at the rest.",
    )


def stale(revision: object, state: RunState) -> Issue:
    """Return the finding about a revision that is not the present one."""
    present = state["revision"]
    # To Python, `True` is the number 1.
    if isinstance(revision, int) and not isinstance(revision, bool) and 0 < revision < present:
        message = f"The ticket is revision {revision}; the run is at revision {present}."
        return issue("TKT121", "revision", message, found=revision, expected=str(present), fix=_AS_RETURNED)
    return changed_field("revision", revision, present)


def past_attempt(revision: object, state: RunState) -> Attempt | None:
    """Return the attempt of the past whose revision a value names, or None."""
    if type(revision) is not int:
        return None
    return next((attempt for attempt in state["history"] if attempt["revision"] == revision), None)


def changed_field(name: str, found: object, expected: object) -> Issue:
    """Return the finding about a field of the server's that was changed."""
    return issue(
        "TKT122",
        name,
        f"The field `{name}` is the server's and was changed.",
        found=_text(found, beside=expected),
        expected=shown(_text(expected, beside=found)),
        fix=_AS_RETURNED,
    )


def _text(value: object, *, beside: object) -> str:
    """Show a value; a text beside a value of another kind is quoted, so that `2` is not "2"."""
    plain = isinstance(value, str) and isinstance(beside, str)
    return str(value) if plain else canonical(cast("Any", value)).decode("ascii")


# -- minimal tickets ---------------------------------------------------------------------------------------------------

FIRST: Final = POC.stages[0].name

FIELDS: Final = frozenset(
    {"ticket_id", "title", "description", "state", "run_id", "payload", "revision", "created_at", "updated_at"}
)
"""The fields that a minimal ticket may have beside those of its stage (Governance Design §Ticket Schema)."""

_INTAKE: Final = tuple(field.name for field in POC.stages[0].fields)
_WHOLE: Final = Ticket.__annotations__.keys() - FIELDS - {"agent_role"}


def is_minimal(given: Mapping[str, Any]) -> bool:
    """Return whether a ticket has the minimal form: of the fields that a whole one alone has, one may be a slip."""
    return len(_WHOLE & given.keys()) < 2


def minimal_payload(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the payload of a minimal ticket: that of the first stage is the ticket itself."""
    if given.get("state") == FIRST:
        # What is optional may be given as null.
        return {name: given[name] for name in _INTAKE if given.get(name) is not None}
    return given.get("payload", {})


def first_findings(root: Path, given: Mapping[str, Any]) -> list[Issue]:
    """Return what is wrong with the minimal ticket that is to begin a run; nothing is saved before it is right."""
    found = judge_stage(POC.stages[0], minimal_payload(given), {}, Surroundings(root))
    return [*_added_minimal(given), *(item for item in found if item.level != "warn")]


def _added_minimal(given: Mapping[str, Any]) -> list[Issue]:
    """Return the finding about fields that a minimal ticket has not; that of the first stage has no payload."""
    return added_fields(given, FIELDS - {"payload"} if given.get("state") == FIRST else FIELDS)


def changed_minimal(given: Mapping[str, Any], state: RunState) -> list[Issue]:
    """Return a finding for each field of a minimal ticket that differs from what the run began with or where it is.

    In the first stage title and description may still change.
    """
    intake = {name: value for name, value in earlier(state).items() if name in _INTAKE}
    issued: dict[str, object] = {"ticket_id": state["ticket_id"], **intake, "state": state["state"]}
    found = _added_minimal(given)
    for name, value in issued.items():
        if name not in given:
            fix = f"Add `{name}` as it was when the run began."
            message = f"The ticket has no field `{name}`."
            found.append(issue("TKT104", name, message, found="nothing", expected=shown(value), fix=fix))
        elif not same(given[name], value):
            found.append(changed_field(name, given[name], value))
    # The run began without a description, and only its first stage may add one.
    late = given.get("description") is not None and "description" not in issued
    if late and state["state"] != FIRST:
        found.append(changed_field("description", given["description"], None))
    return found


def issued_ticket(state: RunState) -> MinimalTicket:
    """Return the minimal ticket of a run."""
    texts = {name: value for name, value in earlier(state).items() if name in ("title", "description")}
    return MinimalTicket(
        ticket_id=state["ticket_id"], run_id=state["run_id"], state=state["state"], revision=state["revision"], **texts
    )
