"""Evidence items against each other: one locator has one text, and one subject one value, whatever the sources are."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from interlock.core.finding import Finding
from interlock.gates.stages.case import Case, fit_text, items_at
from interlock.gates.stages.grounding import is_repo
from interlock.gates.stages.rules import issue, shown


def no_conflict(case: Case) -> Iterator[Finding]:
    """Yield items that claim one locator with different texts; a part of a text does not contradict the whole.

    What is from the repository is compared with its file, and needs no second opinion.
    """
    first: dict[str, tuple[int, str]] = {}
    for at, item in items_at(case.payload, "evidence_items"):
        locator, text = (" ".join(fit_text(item.get(name)).split()) for name in ("locator", "snippet"))
        if is_repo(item) or not locator or not text:
            continue
        before, other = first.setdefault(locator, (at, text))
        if not (_within(text, other) or _within(other, text)):
            message = f"evidence_items[{before}] and evidence_items[{at}] claim {shown(locator)} with different texts."
            fix = "Find out which of the two is right, then begin a new run; give each passage a locator of its own."
            found = f"{shown(other)} and {shown(text)}"
            yield issue("STG401", f"evidence_items[{at}].snippet", message, found, "one text for one locator", fix)


def one_value(case: Case) -> Iterator[Finding]:
    """Yield a claim whose subject has another value in an item before it."""
    first: dict[str, tuple[int, str]] = {}
    for at, item in items_at(case.payload, "evidence_items"):
        given: object = item.get("claim")
        claim: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
        subject, value = (" ".join(fit_text(claim.get(name)).split()) for name in ("subject", "value"))
        if not subject or not value:
            continue
        before, other = first.setdefault(subject.casefold(), (at, value))
        if other.casefold() != value.casefold():
            message = f"evidence_items[{before}] and evidence_items[{at}] claim different values for {shown(subject)}."
            fix = "Ask the user which of the two holds, then begin a new run; give each subject a name of its own."
            found = f"{shown(other)} and {shown(value)}"
            yield issue("STG401", f"evidence_items[{at}].claim", message, found, "one value for one subject", fix)


def _within(part: str, whole: str) -> bool:
    """Return whether a text holds another one as words of its own: `at most 10` is not in `at most 100`."""
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", whole) is not None
