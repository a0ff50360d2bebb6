"""The minimal ticket of the Governance Design: read, held against its run, and given back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from interlock.gates.stages import MAX_TEXT_CHARS, Issue, Stage, Surroundings, judge_stage
from interlock.graph.ticket.comparing import changed_field, unknown_fields
from interlock.graph.ticket.contract import MinimalTicket, SentTicket
from interlock.graph.ticket.refusals import no_object
from interlock.graph.ticket.rules import issue, shown
from interlock.graph.ticket.spec import POC
from interlock.graph.ticket.state import RunState, earlier
from interlock.journal import canonical

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
    """Return the payload of a minimal ticket, whose stage fields stand in `payload` or beside it, and what is wrong.

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
                    "TKT106", name, f"`{name}` stands in the ticket and in its `payload`, with different values.",
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


def changed(given: Mapping[str, Any], state: RunState) -> list[Issue]:
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
    told = {name: value for name, value in earlier(state).items() if name in ("title", "description")}
    return MinimalTicket(
        ticket_id=state["ticket_id"], run_id=state["run_id"], state=state["state"], revision=state["revision"], **told
    )


def first_ticket(given: Mapping[str, Any]) -> MinimalTicket | None:
    """Return the ticket with which a run could begin, from one that named no run here; None where it is no ticket."""
    texts = {
        name: value for name in ("ticket_id", "run_id", "title", "description")
        if isinstance(value := given.get(name), str) and 0 < len(value) <= MAX_TEXT_CHARS
    }  # fmt: skip
    return cast("MinimalTicket", {**texts, "state": FIRST, "revision": 1}) if texts else None
