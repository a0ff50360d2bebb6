"""Evidence against the files it cites: snippets stand where they claim to, and items do not contradict each other."""

from collections.abc import Iterator, Mapping
from typing import Final

from interlock.gates.stages.case import Case, blank, fit_text, items_at
from interlock.gates.stages.kinds import REPO, kind_issue
from interlock.gates.stages.rules import copied, issue, shown
from interlock.gates.stages.snippet import Effort, closest_line, find_snippet, snippet_lines, strangers
from interlock.gates.stages.sources import Locator, Source, line_range, locator_issue, parse_locator
from interlock.gates.stages.stage import Issue
from interlock.gates.stages.tree import ignored_in

_MAX_HELPED: Final = 10
"""For so many snippets of a payload the closest line is looked for."""

_LEAST_CHARS: Final = 8
"""A shorter snippet stands in any file by chance, unless it is whole lines."""


def grounded(case: Case) -> Iterator[Issue]:
    """Yield the repo items whose locator leads nowhere, or whose snippet does not stand there."""
    helped = 0
    compared: set[str] = set()
    for at, item in items_at(case.payload, "evidence_items"):
        kind = fit_text(item.get("source_type"))
        if kind != REPO:
            if not blank(kind) and (odd := kind_issue(kind, f"evidence_items[{at}].source_type")):
                yield odd
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
        found = list(_placed(case, locator, source, snippet, at, helped < _MAX_HELPED))
        helped += any(entry.code == "STG308" for entry in found)
        yield from found
        if case.surroundings.begin is not None and source.path not in compared:
            compared.add(source.path)
            yield from _edited(case.surroundings.begin, source, place)


def _edited(begin: Mapping[str, str], source: Source, place: str) -> Iterator[Issue]:
    """Yield that a cited file is not known to be the one that stood there when the run began."""
    value = begin.get(source.path)
    what, found = "was changed after the run began", "another content than at the beginning of the run"
    if ignored_in(begin, source.path):
        what, found = "is one that git ignores, so nobody can tell when it was written", "a file that git ignores"
    elif value is None:
        what, found = "was not there when the run began", "a new file"
    elif value.endswith(f" {source.sha256}"):
        return
    yield issue(
        "STG310",
        place,
        f"The file {shown(source.path)} {what}.",
        found=found,
        expected="a file as it stood when the run began",
    )


def _placed(
    case: Case, locator: Locator, source: Source, snippet: list[str], at: int, help_out: bool
) -> Iterator[Issue]:
    """Yield what is wrong with one snippet and its lines."""
    effort = case.effort
    claimed = stands(locator, source, snippet, effort)
    size = len(source.lines)
    last = locator.end or locator.start
    somewhere = None if claimed else find_snippet(snippet, source, effort=effort)
    begin = claimed or somewhere
    right = None if somewhere is None else line_range(source.path, somewhere, somewhere + len(snippet) - 1)
    if last > size:
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
    if begin is None:
        yield _stranger(locator, source, snippet, at, help_out)
    elif slight := _slight(snippet, source, begin, at):
        yield slight


def stands(locator: Locator, source: Source, snippet: list[str], effort: Effort) -> int | None:
    """Return the line on which a snippet begins within the claimed ones; a single line is where it begins."""
    last = locator.end or locator.start + len(snippet) - 1
    return find_snippet(snippet, source, locator.start, last, effort)


def _slight(snippet: list[str], source: Source, begin: int, at: int) -> Issue | None:
    """Return the finding of a snippet that is a few characters of a line, or None."""
    text = "\n".join(line.strip() for line in snippet)
    if len("".join(text.split())) >= _LEAST_CHARS or f"\n{text}\n" in f"\n{source.flat}\n":
        return None
    lines = source.lines[begin - 1 : begin - 1 + len(snippet)]
    return issue(
        "STG311",
        f"evidence_items[{at}].snippet",
        "The snippet is so short that it proves nothing.",
        found=shown(text),
        expected=f"whole lines, or at least {_LEAST_CHARS} characters that are no blanks",
        fix=f"Write the whole line: {copied(lines[0].strip())}." if len(lines) == 1 else "Write the whole lines.",
    )


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
