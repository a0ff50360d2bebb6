"""Evidence against the files it cites: snippets are where they claim to be."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from interlock.core.finding import Finding
from interlock.gates.git_files import ignored_paths
from interlock.gates.shared import is_shared
from interlock.gates.stages.acting import Allowed
from interlock.gates.stages.case import Case, fit_text, items_at, texts_at
from interlock.gates.stages.rules import copied, issue, shown
from interlock.gates.stages.snippet import closest_line, find_snippet, snippet_lines
from interlock.gates.stages.sources import Locator, Source, line_range, parse_locator
from interlock.gates.stages.stage import Surroundings

_REPO: Final = "repo"
_HELPED: Final = 10
"""For so many snippets of a payload the closest line is looked for, which takes a while."""


def is_repo(item: Mapping[str, Any]) -> bool:
    """Return whether an item is from the repository."""
    return fit_text(item.get("source_type")).strip().casefold() == _REPO


def grounded(case: Case) -> Iterator[Finding]:
    """Yield the repo items whose locator leads nowhere, or whose snippet is not there."""
    lost = 0
    for at, item in items_at(case.payload, "evidence_items"):
        text, snippet = fit_text(item.get("locator")), snippet_lines(fit_text(item.get("snippet")))
        if not is_repo(item) or not text.strip() or not snippet:
            continue
        place, locator = f"evidence_items[{at}].locator", parse_locator(text)
        if locator is None:
            expected = 'path:line or path:start-end, counted from 1, such as "src/login.py:12-18"'
            yield issue("STG302", place, f"`{place}` names no lines of a file.", shown(text), expected)
            continue
        source = case.sources.read(locator.path, place)
        if isinstance(source, Finding):
            yield source
            continue
        begin, findings = _placed(locator, source, snippet, place, whole=case.surroundings.remote)
        yield from findings
        if begin is None:
            lost += 1
            place = f"evidence_items[{at}].snippet"
            yield _not_found(locator, source, snippet, place, helps=lost <= _HELPED, remote=case.surroundings.remote)


def source_refusal(earlier: Mapping[str, Any], around: Surroundings) -> Callable[[str], bool]:
    """Return a function that says whether a path is no source: ignored by git, or hidden from a caller with a token."""
    named = [text.strip() for _, text in texts_at(earlier, "retrieval_targets")]
    covers = Allowed([row.removeprefix("repo:").strip() for row in named if row.startswith("repo:")]).covers

    def refused(path: str) -> bool:
        if around.remote:
            return not covers(path) or not is_shared(around.root, path)
        return bool(ignored_paths(around.root, [path]))

    return refused


def _placed(
    locator: Locator, source: Source, snippet: list[str], place: str, *, whole: bool
) -> tuple[int | None, list[Finding]]:
    """Return the line on which a snippet begins, wherever in the file, and what is wrong with the lines it claims."""
    name, size, last = shown(source.path), len(source.lines), locator.end or locator.start
    claimed_end = locator.end or locator.start + len(snippet) - 1
    claimed = find_snippet(snippet, source, locator.start, claimed_end, whole=whole)
    begin = claimed or find_snippet(snippet, source, whole=whole)
    right = "" if begin is None else copied(line_range(source.path, begin, begin + len(snippet) - 1))
    if last > size:
        fix = f"Write {right}." if right else "Write lines that the file has and that hold the snippet."
        message = f"The file {name} has no line {last}."
        return begin, [issue("STG302", place, message, f"line {last}", f"{size} lines", fix)]
    if begin is not None and claimed is None:
        found = copied(line_range(source.path, locator.start, last))
        return begin, [issue("STG309", place, f"The snippet is elsewhere in {name}.", found, right, f"Write {right}.")]
    return begin, []


def _not_found(
    locator: Locator, source: Source, snippet: list[str], place: str, *, helps: bool, remote: bool
) -> Finding:
    """Make the finding of a snippet that the file does not hold, with the line that comes closest to a single one.

    A caller with a token may not learn what the file holds.
    """
    name, found = shown(source.path), shown("\n".join(snippet))
    if remote:
        message, expected = f"The snippet is not made of whole lines of {name}.", f"whole lines that {name} contains"
        fix = "Copy whole lines exactly from the file, and leave nothing out; or cite the file that they are from."
        return issue("STG308", place, message, found, expected, fix)
    fix = "Copy the lines exactly as they follow each other in the file, or cite the file that they are from."
    near = closest_line(snippet[0], source, locator.start) if helps and len(snippet) == 1 else None
    if near is not None:
        fix = f"Write it exactly as line {near}: {copied(source.lines[near - 1].strip())}."
    return issue("STG308", place, f"The snippet is not in {name}.", found, f"text that {name} contains", fix)
