"""Rule rows: what is checked, why, and what right and wrong look like."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from interlock.envelope.case import Case
    from interlock.envelope.draft import Draft
    from interlock.envelope.finding import Level

Check: TypeAlias = "Callable[[Case], Iterator[Draft]]"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of a rule table.

    Args:
        code: Stable code: ENV1xx bytes and characters, ENV2xx layout, ENV3xx values, ENV4xx ownership and gates.
        level: The level of its findings; a rule whose strictness the caller chooses states the default.
        title: What must hold, in one sentence.
        source: The clause that it enforces (`Strict Envelope §3 STATUS`), or `Interlock:` and the reason.
        remedy: How an agent fixes a breach, in the imperative.
        good: A snippet that keeps the rule.
        bad: A snippet that breaks it.
        check: Yields a draft per breach. None where reading the text finds the breach by itself.
    """

    code: str
    level: "Level"
    title: str
    source: str
    remedy: str
    good: str
    bad: str
    check: "Check | None" = None
