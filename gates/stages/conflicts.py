"""Evidence items against each other: one locator has one text."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from interlock.core.finding import Finding
from interlock.gates.stages.case import Case, fit_text, items_at
from interlock.gates.stages.grounding import REPO, claimed_line
from interlock.gates.stages.rules import issue, shown
from interlock.gates.stages.snippet import snippet_lines
from interlock.gates.stages.sources import Source, parse_locator


@dataclass(frozen=True, slots=True)
class _Claim:
    """One item of several that name the same locator; `in_place`: the cited file holds its text in the cited lines."""

    at: int
    locator: str
    text: str
    in_place: bool

    def contradicts(self, other: "_Claim") -> bool:
        one, two = " ".join(self.text.split()), " ".join(other.text.split())
        return not (within(one, two) or within(two, one) or (self.in_place and other.in_place))


def within(part: str, whole: str) -> bool:
    """Return whether a text holds another whole: neither a word nor a number of it goes on beside the other."""
    at = whole.find(part)
    while at >= 0:
        before, after = whole[max(0, at - 2) : at], whole[at + len(part) : at + len(part) + 2]
        if not (_goes_on(before[::-1], part[0]) or _goes_on(after, part[-1])):
            return True
        at = whole.find(part, at + 1)
    return False


def _goes_on(outside: str, edge: str) -> bool:
    """Return whether the characters beside an edge, the nearest first, belong to the word or number at it."""
    if not outside or not _is_word(edge):
        return False
    if edge.isdigit() and outside[0] in ".,":
        return outside[1:].isdigit()
    return _is_word(outside[0])


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def no_conflict(case: Case) -> Iterator[Finding]:
    """Yield items that claim one locator with different texts."""
    groups: dict[object, list[tuple[int, Mapping[str, Any]]]] = {}
    for at, item in items_at(case.payload, "evidence_items"):
        key = _meaning(item)
        if key is not None and fit_text(item.get("snippet")).strip():
            groups.setdefault(key, []).append((at, item))
    for group in groups.values():
        if len(group) > 1:
            claims = [_claim(case, at, item) for at, item in group]
            for place, claim in enumerate(claims):
                other = next((before for before in claims[:place] if claim.contradicts(before)), None)
                if other is not None:
                    yield _conflict(other, claim)


def _meaning(item: Mapping[str, Any]) -> object:
    """Return what a locator means, the same for all its spellings; None where there is none."""
    text = fit_text(item.get("locator")).strip()
    if fit_text(item.get("source_type")).strip().casefold() == REPO and (found := parse_locator(text)) is not None:
        steps = (step for step in found.path.removeprefix("repo:").split("/") if step not in {"", "."})
        return ("/".join(steps), found.start, found.end or found.start)
    return text or None


def _claim(case: Case, at: int, item: Mapping[str, Any]) -> _Claim:
    text, snippet = fit_text(item.get("locator")), fit_text(item.get("snippet"))
    locator = parse_locator(text) if fit_text(item.get("source_type")) == REPO else None
    source = None if locator is None else case.sources.read(locator.path, "")
    in_place = (
        isinstance(source, Source)
        and locator is not None
        and claimed_line(case, locator, source, snippet_lines(snippet)) is not None
    )
    return _Claim(at, text, snippet, in_place)


def _conflict(other: _Claim, claim: _Claim) -> Finding:
    items = f"evidence_items[{other.at}] and evidence_items[{claim.at}]"
    message = f"{items} claim {shown(claim.locator)} with different texts."
    fix = "Find out which of the two is right, then begin a new run; give each passage a locator of its own."
    found = f"{shown(other.text)} and {shown(claim.text)}"
    return issue("STG401", f"evidence_items[{claim.at}].snippet", message, found, "one text for one locator", fix)
