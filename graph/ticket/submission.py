"""Reading what was submitted, and comparing it with what the server issued: it contributes its payload and no more."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from interlock.core.finding import FindingError
from interlock.core.json import canonical
from interlock.core.text import closest
from interlock.gates.stages import (
    MAX_PAYLOAD_BYTES,
    MAX_TEXT_CHARS,
    Issue,
    Stage,
    Surroundings,
    judge_stage,
    requirement_ids,
)
from interlock.graph.ticket.contract import HistoryEntry, MinimalTicket, SentTicket, Ticket
from interlock.graph.ticket.rules import issue, no_object, shown
from interlock.graph.ticket.spec import POC, PipelineSpec
from interlock.graph.ticket.state import RunState, earlier, terminal
from interlock.journal import MAX_DEPTH, MAX_LINE_BYTES, not_json

MAX_TEXT_BYTES: Final = 1024 * 1024
"""How long a submitted ticket may be; the server never issues one of more than a quarter of it."""

MAX_PAYLOAD_DEPTH: Final = 32
"""How deep a payload may be nested; it is part of the ticket, and the ticket of a journal line."""

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
        message = f"`{name}` is not a JSON object."
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


def payload_space(ticket: Mapping[str, Any], later: int) -> int:
    """Return how many bytes of JSON the next payload may add to a ticket that must fit into one line of the snapshots.

    Each of the `later` stages that follow the present one keeps space of its own.
    """
    kept = len(canonical({**ticket, "payload": {}, "validation": {}, "invalidation_report": {}}))
    free = max(MAX_LINE_BYTES - FINDINGS_BYTES - kept, 0)
    return free - later * min(LATER_BYTES, free // (later + 1))


def check_payload(payload: Mapping[str, Any], space_left: int) -> Issue | None:
    """Refuse a payload that could not be kept whole in the ticket and the journal."""
    # The ticket repeats the texts of requirements, under the ids that they get.
    most = min(MAX_PAYLOAD_BYTES, space_left - len(canonical(requirement_ids(payload))))
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


_MAX_UNKNOWN: Final = 20
"""So many unknown fields get a finding each."""

_AS_RETURNED: Final = "Take the ticket that comes back with this answer, fill in its `payload` alone, and submit it."


def missing_and_unknown(given: Mapping[str, Any]) -> list[Issue]:
    """Return a finding for each field that a whole ticket must have and this one has not, or has too much."""
    names = list(SentTicket.__annotations__)
    found = [
        issue(
            "TKT104", name, f"The ticket has no field `{name}`.", found="nothing", expected="every field as issued",
            fix=_AS_RETURNED,
        )
        for name in names
        if name not in given
    ]  # fmt: skip
    return [*found, *unknown_fields(given, names)]


def changed(given: Mapping[str, Any], issued: SentTicket, whole: Ticket) -> list[Issue]:
    """Return a finding for each server-controlled field that differs from the ticket as issued.

    Each field may be that of the ticket as it was sent, or of the whole one that its resource shows.
    """
    return [
        changed_field(name, given[name], value)
        for name, value in issued.items()
        if name != "payload" and name in given
        and canonical(given[name]) not in (canonical(cast("Any", value)), canonical(cast("Any", whole)[name]))
    ]  # fmt: skip


def other_ticket(payload: Mapping[str, Any], state: RunState, spec: PipelineSpec) -> list[Issue]:
    """Return a finding when a stage that records the ticket's id is given another one than the run's."""
    asks = not terminal(state) and any(field.name == "ticket_id" for field in spec.stage(state["state"]).fields)
    given = payload.get("ticket_id")
    return (
        [changed_field("ticket_id", given, state["ticket_id"])]
        if asks and given not in (None, state["ticket_id"])
        else []
    )


def other_key(payload: Mapping[str, Any], ticket_id: str) -> list[Issue]:
    """Return a warning when the ticket that was fetched has an id in its tracker that does not look like the run's.

    Trackers have keys of their own, and the server asks none: so it is reported, and never refused.
    """
    key = payload.get("external_ticket_id")
    if not isinstance(key, str) or _is_end(key, ticket_id) or _is_end(ticket_id, key):
        return []
    return [
        issue(
            "TKT132", "external_ticket_id", f"The ticket that was fetched is {shown(key)}; the run is of {ticket_id}.",
            found=key, expected=f"{ticket_id}, or the key that its tracker has for it",
            fix=f"If it is another ticket than {ticket_id}, stop, tell the user, and begin a run of the one that is "
            "meant. Otherwise go on.",
        )
    ]  # fmt: skip


def _is_end(short: str, whole: str) -> bool:
    """Return whether an id is another one, or its end after a separator: `7` in `SHOP-7`, `SHOP-7` in a URL."""
    end, text = short.strip().lstrip("#").casefold(), whole.strip().casefold()
    return end != "" and text.endswith(end) and not text[: -len(end)][-1:].isalnum()


def stale(revision: object, state: RunState) -> Issue:
    """Return the finding about a revision that is not the present one."""
    present = state["revision"]
    if isinstance(revision, int) and not isinstance(revision, bool) and 0 < revision < present:
        return issue(
            "TKT121", "revision", f"The ticket is revision {revision}; the run is at revision {present}.",
            found=revision, expected=str(present), fix=_AS_RETURNED,
        )  # fmt: skip
    return changed_field("revision", revision, present)


def past_attempt(revision: object, state: RunState) -> HistoryEntry | None:
    """Return the attempt of the past whose revision a value names, or None."""
    known = {} if isinstance(revision, bool) else {entry["revision"]: entry for entry in state["history"]}
    return known.get(revision) if isinstance(revision, int) else None


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


def unknown_fields(given: Mapping[str, Any], known: Sequence[str]) -> list[Issue]:
    """Return a finding for each unknown field, as far as they are worth reading."""
    names = [name for name in given if name not in known]
    found = [_unknown_field(name, known) for name in names[:_MAX_UNKNOWN]]
    more = names[_MAX_UNKNOWN:]
    if more:
        message = f"{len(more)} more fields are not among those of a ticket."
        fix = "Remove these fields too."
        found.append(
            issue("TKT105", "", message, found=", ".join(more[:_MAX_UNKNOWN]), expected="the fields as issued", fix=fix)
        )
    return found


def _unknown_field(name: str, known: Sequence[str]) -> Issue:
    near = closest(name, known)
    hint = f" Did you mean `{near}`?" if near else ""
    return issue(
        "TKT105",
        shown(name),
        f"`{shown(name)}` is not a field of a ticket.{hint}",
        found=name,
        expected="the fields as issued",
        fix=f"Remove `{shown(name)}`; what you want to say belongs into `payload`.",
    )


def _text(value: object, *, beside: object) -> str:
    """Show a value; a text beside a value of another kind is quoted, so that `2` is not "2"."""
    plain = isinstance(value, str) and isinstance(beside, str)
    return str(value) if plain else canonical(cast("Any", value)).decode("ascii")


FIRST: Final = POC.stages[0].name

FIELDS: Final = frozenset(
    {"ticket_id", "title", "description", "state", "run_id", "payload", "revision", "created_at", "updated_at"}
)
"""The fields that a minimal ticket may have beside those of its stage (Governance Design §Ticket Schema)."""

_INTAKE: Final = tuple(field.name for field in POC.stages[0].fields)
_WHOLE: Final = SentTicket.__annotations__.keys() - FIELDS - {"agent_role"}
_STAGES: Final[Mapping[str, Stage]] = {
    stage.name: stage for stage in (*POC.stages, *([POC.closing] if POC.closing else []))
}


def is_minimal(given: Mapping[str, Any]) -> bool:
    """Return whether a ticket has the minimal form: of the fields that a whole one alone has, one may be a slip."""
    return len(_WHOLE & given.keys()) < 2


def payload_of(given: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[dict[str, Any], list[Issue]]:
    """Return the payload of a minimal ticket, whose stage fields are in `payload` or beside it, and what is wrong.

    `known` are the fields of the stages that passed; the ticket may hold them as they were handed in.
    """
    payload: object = given.get("payload") or {}
    if not isinstance(payload, dict):
        return {}, [no_object(payload)]
    fields = dict(cast("dict[str, Any]", payload))
    stage = _STAGES.get(str(given.get("state")))
    names = [field.name for field in stage.fields] if stage else []
    wrong: list[Issue] = []
    for name in names:
        # What is optional may be given as null.
        if given.get(name) is None and (name not in given or name in _INTAKE):
            continue
        if name in fields and canonical(fields[name]) != canonical(given[name]):
            wrong.append(
                issue(
                    "TKT106", name, f"`{name}` is in the ticket and in its `payload`, with different values.",
                    found=shown(given[name]), expected="one value", fix=f"Remove `{name}` from one of the two.",
                )
            )  # fmt: skip
        fields[name] = given[name]
    beside = sorted((given.keys() & known.keys()) - FIELDS - set(names))
    wrong += [
        changed_field(name, given[name], known[name])
        for name in beside
        if canonical(given[name]) != canonical(known[name])
    ]
    strangers = {name: value for name, value in given.items() if name not in known}
    return fields, [*wrong, *unknown_fields(strangers, [*sorted(FIELDS), *names])]


def first_findings(root: Path, given: Mapping[str, Any]) -> list[Issue]:
    """Return what is wrong with the minimal ticket that is to begin a run; nothing is saved before it is right."""
    payload, wrong = payload_of(given, {})
    return [
        *wrong,
        *(item for item in judge_stage(POC.stages[0], payload, {}, Surroundings(root)) if item.level != "warn"),
    ]


def changed_minimal(given: Mapping[str, Any], state: RunState) -> list[Issue]:
    """Return a finding for each field of a minimal ticket that differs from what the run began with or where it is.

    In the first stage title and description may still change.
    """
    issued: dict[str, object] = {
        "ticket_id": state["ticket_id"],
        **{name: value for name, value in earlier(state).items() if name in _INTAKE},
        "state": state["state"],
    }
    found: list[Issue] = []
    for name, value in issued.items():
        if name not in given:
            fix = f"Add `{name}` as it was when the run began."
            message = f"The ticket has no field `{name}`."
            found.append(issue("TKT104", name, message, found="nothing", expected=shown(value), fix=fix))
        elif canonical(given[name]) != canonical(value):
            found.append(changed_field(name, given[name], value))
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


def first_ticket(given: Mapping[str, Any]) -> MinimalTicket | None:
    """Return the ticket with which a run could begin, from one that named no run here; None for anything else."""
    texts = {
        name: value for name in ("ticket_id", "run_id", "title", "description")
        if isinstance(value := given.get(name), str) and 0 < len(value) <= MAX_TEXT_CHARS
    }  # fmt: skip
    return cast("MinimalTicket", {**texts, "state": FIRST, "revision": 1}) if texts else None
