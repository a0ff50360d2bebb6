"""Judging a payload: its size, its shape, then the checks that its stage asks for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Final, cast

from interlock.core.finding import Finding
from interlock.core.json import canonical
from interlock.gates.rules import listed
from interlock.gates.stages.acting import observed
from interlock.gates.stages.artifacts import artifacts_exist, unchanged_said
from interlock.gates.stages.case import Case
from interlock.gates.stages.conflicts import no_conflict, one_value
from interlock.gates.stages.grounding import grounded, source_refusal
from interlock.gates.stages.references import covered, known_refs, unique_ids
from interlock.gates.stages.rules import issue, shown
from interlock.gates.stages.shape import describe, shape_issues
from interlock.gates.stages.sources import Sources
from interlock.gates.stages.stage import CheckName, Stage, Surroundings, issue_record
from interlock.gates.stages.targets import targets

CHECKS: Final[Mapping[CheckName, Callable[[Case], Iterator[Finding]]]] = MappingProxyType(
    {
        "targets": targets,
        "unique_ids": unique_ids,
        "grounded": grounded,
        "no_conflict": no_conflict,
        "one_value": one_value,
        "known_refs": known_refs,
        "covered": covered,
        "observed": observed,
        "artifacts_exist": artifacts_exist,
        "unchanged_said": unchanged_said,
    }
)
"""The checks that a stage can ask for; each reads whatever has its shape and never raises for what a payload holds."""

MAX_PAYLOAD_BYTES: Final = 32 * 1024
"""How large a payload may be, as canonical JSON; a ticket with its history then fits into one journal line."""

MAX_ISSUES: Final = 50
"""So many findings are returned; what is left shows at the next attempt."""

MAX_FINDINGS_BYTES: Final = 24 * 1024
"""How large all findings about one payload may be, as canonical JSON."""

_RESERVED_BYTES: Final = 400

_WEIGHT: Final[Mapping[str, int]] = {"stop": 0, "retry": 1, "warn": 2}


def judge_stage(
    stage: Stage, payload: object, earlier: Mapping[str, Any], surroundings: Surroundings
) -> tuple[Finding, ...]:
    """Judge one payload, which may be anything that JSON can say.

    Returns:
        The findings: those that stop the run first, then those to fix, then warnings, each by place in the stage.
        None of another level than `warn` means that it holds. There are at most `MAX_ISSUES` of them, of at most
        `MAX_FINDINGS_BYTES` together. Nothing is raised for what a payload holds.
    """
    if not isinstance(payload, Mapping):
        expected = f"an object with the fields {listed([f'`{field.name}`' for field in stage.fields])}"
        message, fix = "The payload is not a JSON object.", f"Send {expected}."
        return (issue("STG101", "", message, describe(payload), expected, fix),)
    fields = cast("Mapping[str, Any]", payload)
    if large := _too_large(fields):
        return (large,)
    shape = list(shape_issues(stage.fields, fields))
    sources = Sources(surroundings.root, source_refusal(earlier, surroundings), hides=surroundings.remote)
    case = Case(fields, earlier, surroundings, sources)
    found = [*shape, *(entry for name in stage.checks for entry in CHECKS[name](case))]
    # What is cut off must never be what decides.
    return bounded(sorted(found, key=lambda entry: _WEIGHT[entry.level]))


def bounded(found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings, those that matter most first, as far as they fit; the last one counts what was left out."""
    if len(found) <= MAX_ISSUES and _bytes(found) <= MAX_FINDINGS_BYTES:
        return tuple(found)
    sizes = accumulate(_bytes([entry]) for entry in found[: MAX_ISSUES - 1])
    kept = found[: sum(size <= MAX_FINDINGS_BYTES - _RESERVED_BYTES for size in sizes)]
    most = f"at most {MAX_ISSUES} findings of at most {MAX_FINDINGS_BYTES} bytes together"
    message = f"{len(found) - len(kept)} more findings are left out."
    return *kept, issue("STG112", "", message, f"{len(found)} findings", most)


def _bytes(entries: Sequence[Finding]) -> int:
    return len(canonical([issue_record(entry) for entry in entries]))


def _too_large(payload: Mapping[str, Any]) -> Finding | None:
    """Return the finding of a payload that is too large; what JSON cannot say has no size and a wrong shape."""
    size = _size(payload)
    if size is None or size <= MAX_PAYLOAD_BYTES:
        return None
    sizes = {name: _size(value) or 0 for name, value in payload.items()}
    longest = max(sizes, key=sizes.__getitem__)
    name = shown(longest, 60)
    expected = f"at most {MAX_PAYLOAD_BYTES} bytes of JSON, in which other letters than ASCII count six or twelve"
    fix = f"Shorten {name} by {size - MAX_PAYLOAD_BYTES} bytes or more: keep what matters, say where the rest is."
    found = f"{size} bytes of JSON, {sizes[longest]} of them in {name}"
    return issue("STG102", "", f"The payload has {size} bytes.", found, expected, fix)


def _size(value: object) -> int | None:
    """Return the bytes of a value's canonical JSON; None for what has none."""
    try:
        return len(canonical(value))
    except (ValueError, TypeError, RecursionError):
        return None
