"""Evidence against the files it cites: snippets stand where they claim to, and items do not contradict each other."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from interlock.gates.stages.case import Case, fit_text, items_at
from interlock.gates.stages.rules import issue, shown
from interlock.gates.stages.snippet import closest_line, find_snippet, first_stranger, snippet_lines
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
        yield issue(
            "STG307",
            f"evidence_items[{at}].locator",
            f"The file {shown(source.path)} has no line {last}.",
            found=f"line {last}",
            expected=f"lines 1 to {size}" if size else "a file with lines",
            fix=f"Write {shown(right)}." if right else f"Write lines from 1 to {size} that hold the snippet.",
        )
    elif right is not None:
        yield issue(
            "STG309",
            f"evidence_items[{at}].locator",
            f"The snippet stands elsewhere in {shown(source.path)}.",
            found=line_range(source.path, locator.start, last),
            expected=right,
            fix=f"Write {shown(right)}.",
        )
    if not claimed and somewhere is None:
        yield _stranger(locator, source, snippet, at, help_out)


def stands(locator: Locator, source: Source, snippet: list[str]) -> bool:
    """Say whether a snippet stands in the claimed lines; a single line is where it begins."""
    last = locator.end or locator.start + len(snippet) - 1
    return find_snippet(snippet, source, locator.start, last) is not None


def _stranger(locator: Locator, source: Source, snippet: list[str], at: int, help_out: bool) -> Issue:
    """Make the finding of a snippet that the file does not hold, with the line that comes closest."""
    strange = first_stranger(snippet, source)
    near = closest_line(strange, source, locator.start) if strange is not None and help_out else None
    fix = "Copy the text exactly from the file, without leaving anything out, or cite the file that it is from."
    if near is not None:
        fix = f"Write it exactly as line {near} does: {shown(source.lines[near - 1].strip(), 400)}."
    elif strange is None:
        fix = "Copy the lines as they follow each other in the file, with their indentation; leave none out."
    return issue(
        "STG308",
        f"evidence_items[{at}].snippet",
        f"The snippet does not stand in {shown(source.path)}.",
        found=shown(strange if strange is not None else "\n".join(snippet)),
        expected=f"text that {shown(source.path)} contains",
        fix=fix,
    )


def no_conflict(case: Case) -> Iterator[Issue]:
    """Yield items that claim one locator with different texts."""
    seen: dict[object, list[tuple[int, Mapping[str, Any]]]] = {}
    for at, item in items_at(case.payload, "evidence_items"):
        text = fit_text(item.get("snippet"))
        key = _claim(item)
        if key is None or not text.strip():
            continue
        before = seen.setdefault(key, [])
        other = next((entry for entry in before if _contradict(case, entry[1], item)), None)
        if other is not None:
            yield _conflict(other, at, item)
        before.append((at, item))


def _claim(item: Mapping[str, Any]) -> object:
    """Return what a locator means, the same for all its spellings; None where there is none."""
    text = fit_text(item.get("locator")).strip()
    if fit_text(item.get("source_type")).strip().casefold() == REPO and (found := parse_locator(text)) is not None:
        steps = (step for step in found.path.removeprefix("repo:").split("/") if step not in {"", "."})
        return ("/".join(steps), found.start, found.end or found.start)
    return text or None


def _contradict(case: Case, one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    """Say whether two items of one locator differ, and the file does not hold both."""
    first, second = (" ".join(fit_text(item.get("snippet")).split()) for item in (one, two))
    if first in second or second in first:
        return False
    return not (_in_place(case, one) and _in_place(case, two))


def _in_place(case: Case, item: Mapping[str, Any]) -> bool:
    """Say whether a repo item's snippet stands in the lines that it claims."""
    locator = parse_locator(fit_text(item.get("locator")))
    if fit_text(item.get("source_type")) != REPO or locator is None:
        return False
    source = case.sources.read(locator.path, "")
    return isinstance(source, Source) and stands(locator, source, snippet_lines(fit_text(item.get("snippet"))))


def _conflict(other: tuple[int, Mapping[str, Any]], at: int, item: Mapping[str, Any]) -> Issue:
    locator = shown(fit_text(item.get("locator")))
    return issue(
        "STG401",
        f"evidence_items[{at}].snippet",
        f"evidence_items[{other[0]}] and evidence_items[{at}] claim {locator} with different texts.",
        found=f"{shown(fit_text(other[1].get('snippet')))} and {shown(fit_text(item.get('snippet')))}",
        expected="one text for one locator",
        fix="Find out which of the two is right, then begin a new run; give each passage a locator of its own.",
    )
