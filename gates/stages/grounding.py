"""Evidence against the files it cites: snippets stand where they claim to, and items do not contradict each other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interlock.gates.stages.case import Case, fit_text, items_at
from interlock.gates.stages.rules import copied, issue, shown
from interlock.gates.stages.snippet import closest_line, find_snippet, snippet_lines, strangers
from interlock.gates.stages.sources import Locator, Source, line_range, locator_issue, parse_locator
from interlock.gates.stages.stage import Issue

REPO: Final = "repo"

_MAX_HELPED: Final = 10
"""For so many snippets of a payload the closest line is looked for."""


def grounded(case: Case) -> Iterator[Issue]:
    """Yield the repo items whose locator leads nowhere, or whose snippet does not stand there."""
    helped = 0
    for at, item in items_at(case.payload, "evidence_items"):
        kind = fit_text(item.get("source_type"))
        if kind != REPO:
            if kind.strip().casefold() == REPO:
                yield _misspelt(at, kind)
            continue
        text, snippet = fit_text(item.get("locator")), snippet_lines(fit_text(item.get("snippet")))
        if not text.strip() or not snippet:
            continue
        place = f"evidence_items[{at}].locator"
        locator = parse_locator(text)
        if locator is None:
            yield locator_issue(text, place)
            continue
        source = case.sources.read(locator.path, place)
        if isinstance(source, Issue):
            yield source
            continue
        found = list(_placed(locator, source, snippet, at, helped < _MAX_HELPED))
        helped += any(entry.code == "STG308" for entry in found)
        yield from found


def _misspelt(at: int, kind: str) -> Issue:
    return issue(
        "STG301",
        f"evidence_items[{at}].source_type",
        "The repository is called `repo`, in small letters.",
        found=shown(kind),
        expected="`repo`",
    )


def _placed(locator: Locator, source: Source, snippet: list[str], at: int, help_out: bool) -> Iterator[Issue]:
    """Yield what is wrong with one snippet and its lines."""
    claimed = stands(locator, source, snippet)
    size = len(source.lines)
    last = locator.end or locator.start
    somewhere = None if claimed else find_snippet(snippet, source)
    right = None if somewhere is None else line_range(source.path, somewhere, somewhere + len(snippet) - 1)
    if last > size:
        begin = find_snippet(snippet, source) if claimed else somewhere
        right = None if begin is None else line_range(source.path, begin, begin + len(snippet) - 1)
        lines = f"Write lines from 1 to {size} that hold the snippet." if size else "Cite a file with lines."
        yield issue(
            "STG307",
            f"evidence_items[{at}].locator",
            f"The file {shown(source.path)} has no line {last}.",
            found=f"line {last}",
            expected=f"lines 1 to {size}" if size else "a file with lines",
            fix=f"Write {copied(right)}." if right else lines,
        )
    elif right is not None:
        yield issue(
            "STG309",
            f"evidence_items[{at}].locator",
            f"The snippet stands elsewhere in {shown(source.path)}.",
            found=copied(line_range(source.path, locator.start, last)),
            expected=copied(right),
            fix=f"Write {copied(right)}.",
        )
    if not claimed and somewhere is None:
        yield _stranger(locator, source, snippet, at, help_out)


def stands(locator: Locator, source: Source, snippet: list[str]) -> bool:
    """Say whether a snippet stands in the claimed lines; a single line is where it begins."""
    last = locator.end or locator.start + len(snippet) - 1
    return find_snippet(snippet, source, locator.start, last) is not None


def _stranger(locator: Locator, source: Source, snippet: list[str], at: int, help_out: bool) -> Issue:
    """Make the finding of a snippet that the file does not hold, with the line that comes closest."""
    strange = strangers(snippet, source)
    first = snippet[strange[0]].strip() if strange else None
    near = closest_line(first, source, locator.start) if first is not None and help_out else None
    fix = "Copy the text exactly from the file, without leaving anything out, or cite the file that it is from."
    if near is not None:
        line = f"line {near}: {copied(source.lines[near - 1].strip())}"
        fix = f"Write it exactly as {line}."
        if len(strange) > 1:
            begin = max(1, near - strange[0])
            end = min(len(source.lines), begin + len(snippet) - 1)
            fix = f"Copy lines {begin} to {end} of the file as they stand, such as {line}."
    elif first is None:
        fix = "Copy the lines as they follow each other in the file, with their indentation; leave none out."
    return issue(
        "STG308",
        f"evidence_items[{at}].snippet",
        f"The snippet does not stand in {shown(source.path)}.",
        found=shown("\n".join(snippet) if first is None else first),
        expected=f"text that {shown(source.path)} contains",
        fix=fix,
    )


@dataclass(frozen=True, slots=True)
class _Claim:
    """One item of several that name the same locator.

    Args:
        at: Its position.
        locator: The locator as written.
        text: Its snippet.
        in_place: The cited file holds it in the cited lines.
    """

    at: int
    locator: str
    text: str
    in_place: bool

    def contradicts(self, other: "_Claim") -> bool:
        """Say whether two texts differ, and the file does not hold both."""
        one, two = " ".join(self.text.split()), " ".join(other.text.split())
        return one not in two and two not in one and not (self.in_place and other.in_place)


def no_conflict(case: Case) -> Iterator[Issue]:
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
    in_place = isinstance(source, Source) and locator is not None and stands(locator, source, snippet_lines(snippet))
    return _Claim(at, text, snippet, in_place)


def _conflict(other: _Claim, claim: _Claim) -> Issue:
    return issue(
        "STG401",
        f"evidence_items[{claim.at}].snippet",
        f"evidence_items[{other.at}] and evidence_items[{claim.at}] claim {shown(claim.locator)} with different texts.",
        found=f"{shown(other.text)} and {shown(claim.text)}",
        expected="one text for one locator",
        fix="Find out which of the two is right, then begin a new run; give each passage a locator of its own.",
    )
