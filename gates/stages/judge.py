"""Judging a payload: its size, its shape, then the checks that its stage asks for."""

from collections.abc import Mapping
from typing import Any, Final, cast

from interlock.gates.stages.case import Case
from interlock.gates.stages.checks import CHECKS
from interlock.gates.stages.rules import issue, listed
from interlock.gates.stages.shape import describe, shape_issues
from interlock.gates.stages.sources import Sources
from interlock.gates.stages.stage import Issue, IssueLevel, Stage, Surroundings
from interlock.journal.line import canonical

MAX_PAYLOAD_BYTES: Final = 32 * 1024
"""How large a payload may be, as canonical JSON; a ticket with its history then fits into one journal line."""

MAX_ISSUES: Final = 50
"""So many findings are returned; what is left shows at the next attempt."""

_WEIGHT: Final[Mapping[IssueLevel, int]] = {"stop": 0, "retry": 1, "warn": 2}


def judge_stage(
    stage: Stage, payload: object, earlier: Mapping[str, Any], surroundings: Surroundings
) -> tuple[Issue, ...]:
    """Judge one payload.

    Args:
        stage: What it should hold.
        payload: What was submitted; anything that JSON can say.
        earlier: Field name to value over all passed stages.
        surroundings: The root, and what was observed.

    Returns:
        The findings: those that stop the run first, then those to mend, then warnings, each by place in the stage.
        None of another level than `warn` means that it holds. Nothing is raised for what a payload holds.
    """
    if not isinstance(payload, Mapping):
        return (_no_object(stage, payload),)
    fields = cast("Mapping[str, Any]", payload)
    if large := _too_large(fields):
        return (large,)
    shape = list(shape_issues(stage.fields, fields))
    misshapen = frozenset(entry.field for entry in shape)
    case = Case(fields, earlier, surroundings, Sources(surroundings.root), misshapen)
    found = [*shape, *(entry for name in stage.checks for entry in CHECKS[name](case))]
    # What is cut off must never be what decides.
    return tuple(sorted(found, key=lambda entry: _WEIGHT[entry.level])[:MAX_ISSUES])


def _no_object(stage: Stage, payload: object) -> Issue:
    names = listed([f"`{field.name}`" for field in stage.fields])
    return issue(
        "STG101",
        "",
        "The payload is not a JSON object.",
        found=describe(payload),
        expected=f"an object with the fields {names}",
        fix=f"Send an object with the fields {names}.",
    )


def _too_large(payload: Mapping[str, Any]) -> Issue | None:
    """Return the finding of a payload that is too large; what JSON cannot say has no size and a wrong shape."""
    size = _size(payload)
    if size is None or size <= MAX_PAYLOAD_BYTES:
        return None
    sizes = {name: _size(value) or 0 for name, value in payload.items()}
    longest = max(sizes, key=lambda name: sizes[name])
    name = f"`{longest}`" if len(longest) <= 60 and longest.isidentifier() else "the longest field"
    return issue(
        "STG102",
        "",
        f"The payload has {size} bytes.",
        found=f"{size} bytes of JSON, {sizes[longest]} of them in {name}",
        expected=f"at most {MAX_PAYLOAD_BYTES} bytes of JSON, in which other letters than ASCII count six or twelve",
        fix=f"Shorten {name} by {size - MAX_PAYLOAD_BYTES} bytes or more: keep what matters, say where the rest is.",
    )


def _size(value: object) -> int | None:
    """Return the bytes of a value's canonical JSON; None for what has none."""
    try:
        return len(canonical(value))
    except (ValueError, TypeError, RecursionError):
        return None
