"""Evidence against the files it cites: snippets are where they claim to be, and items do not contradict each other."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from interlock.core.finding import Finding
from interlock.core.text import closest
from interlock.gates.git_files import ignored_in, ignored_paths
from interlock.gates.shared import is_shared
from interlock.gates.stages.acting import Allowed
from interlock.gates.stages.case import Case, blank, fit_text, items_at, texts_at
from interlock.gates.stages.rules import copied, issue, shown
from interlock.gates.stages.snippet import closest_line, find_snippet, snippet_lines, unmatched_lines
from interlock.gates.stages.sources import Locator, Source, line_range, locator_issue, parse_locator
from interlock.gates.stages.stage import Surroundings

_MAX_HELPED: Final = 10
"""For so many snippets of a payload the closest line is looked for."""

_LEAST_CHARS: Final = 8
"""A shorter snippet is in any file by chance, unless it is whole lines."""

REPO: Final = "repo"
_KIND: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_USUAL: Final = (REPO, "web", "ticket", "doc", "api", "user")


def grounded(case: Case) -> Iterator[Finding]:
    """Yield the repo items whose locator leads nowhere, or whose snippet is not there."""
    helped, wanted = 0, Allowed(_targets(case.earlier))
    any_file = "retrieval_targets" not in case.earlier  # a pipeline without that stage
    compared: set[str] = set()
    for at, item in items_at(case.payload, "evidence_items"):
        kind = fit_text(item.get("source_type"))
        if kind != REPO:
            if not blank(kind) and not _KIND.fullmatch(kind):
                yield _odd_kind(kind, f"evidence_items[{at}].source_type")
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
        if isinstance(source, Finding):
            yield source
            continue
        quotes = not case.surroundings.remote and (any_file or wanted.covers(source.path))
        found = list(_placed(case, locator, source, snippet, at, quotes and helped < _MAX_HELPED, quotes))
        helped += any(entry.code == "STG308" for entry in found)
        yield from found
        if case.surroundings.begin is not None and source.path not in compared:
            compared.add(source.path)
            yield from _edited(case.surroundings.begin, source, place)


def _odd_kind(kind: str, place: str) -> Finding:
    """Return the finding of a `source_type` that is no plain word: none may only look like `repo`."""
    word = _nearest(kind)
    expected = "`repo`, or a letter from a to z, then at most 31 small letters, digits, `_` or `-`"
    fix = f"Write `{word}`." if word else "Write `repo`, or a word such as `web`, `ticket` or `doc`."
    return issue("STG301", place, f"`{place}` is no plain word.", json.dumps(kind[:60]), expected, fix)


def _nearest(kind: str) -> str | None:
    """Return the word that was probably meant: a usual one where letters only look like those of ASCII."""
    text = unicodedata.normalize("NFKC", kind[:200]).strip().casefold()
    plain = re.sub(r"[^a-z0-9_-]", "", re.sub(r"[\s/.:]+", "-", text)).strip("-")
    if not text.isascii() and (near := closest(plain, _USUAL, 0.8)):
        return near
    return plain if _KIND.fullmatch(plain) else None


def _targets(earlier: Mapping[str, Any]) -> list[str]:
    """Return the scope patterns that the run named as what must be read."""
    rows = [text.strip() for _, text in texts_at(earlier, "retrieval_targets")]
    return [row.removeprefix("repo:").strip() for row in rows if row.startswith("repo:")]


def source_refusal(earlier: Mapping[str, Any], around: Surroundings) -> Callable[[str], bool]:
    """Return a function that says whether a path is no source: ignored by git, or hidden from a caller with a token."""
    covers = Allowed(_targets(earlier)).covers

    def refused(path: str) -> bool:
        if around.remote:
            ignored = ignored_in(around.begin or {}, path)
            return ignored or not covers(path) or not is_shared(around.root, path)
        return bool(ignored_paths(around.root, [path]))

    return refused


def _edited(begin: Mapping[str, str], source: Source, place: str) -> Iterator[Finding]:
    """Yield that a cited file is not known to be the one of the run's beginning."""
    value = begin.get(source.path)
    what, found = "was changed after the run began", "another content than at the beginning of the run"
    if ignored_in(begin, source.path):
        what, found = "is one that git ignored, so nobody knows when it was written", "a file that git ignored"
    elif value is None:
        what, found = "was not there when the run began", "a new file"
    elif value.endswith(f" {source.sha256}"):
        return
    yield issue("STG310", place, f"The file {shown(source.path)} {what}.", found)


def _placed(
    case: Case, locator: Locator, source: Source, snippet: list[str], at: int, help_out: bool, quotes: bool
) -> Iterator[Finding]:
    """Yield what is wrong with one snippet and its lines.

    `help_out`: the closest line is looked for; `quotes`: a finding may hold lines of the file.
    """
    claimed = claimed_line(case, locator, source, snippet)
    size = len(source.lines)
    last = locator.end or locator.start
    somewhere = None if claimed else find_snippet(snippet, source, effort=case.effort, whole=case.surroundings.remote)
    begin = claimed or somewhere
    right = None if somewhere is None else line_range(source.path, somewhere, somewhere + len(snippet) - 1)
    if last > size:
        right = None if begin is None else line_range(source.path, begin, begin + len(snippet) - 1)
        lines = f"Write lines from 1 to {size} that hold the snippet." if size else "Cite a file with lines."
        expected = f"lines 1 to {size}" if size else "a file with lines"
        fix = f"Write {copied(right)}." if right else lines
        message = f"The file {shown(source.path)} has no line {last}."
        yield issue("STG307", f"evidence_items[{at}].locator", message, f"line {last}", expected, fix)
    elif right is not None:
        found = copied(line_range(source.path, locator.start, last))
        place, message = f"evidence_items[{at}].locator", f"The snippet is elsewhere in {shown(source.path)}."
        yield issue("STG309", place, message, found, copied(right), f"Write {copied(right)}.")
    if begin is None and case.surroundings.remote:
        # Whoever asks may not learn what the file holds.
        message = f"The snippet is not made of whole lines of {shown(source.path)}."
        fix = "Copy whole lines exactly from the file, and leave nothing out; or cite the file that they are from."
        expected = f"whole lines that {shown(source.path)} contains"
        yield issue("STG308", f"evidence_items[{at}].snippet", message, shown("\n".join(snippet)), expected, fix)
    elif begin is None:
        yield _not_found(locator, source, snippet, at, help_out)
    elif short := _too_short(snippet, source, begin, at, quotes):
        yield short


def claimed_line(case: Case, locator: Locator, source: Source, snippet: list[str]) -> int | None:
    """Return the line on which a snippet begins within the claimed ones; a single line is where it begins."""
    last = locator.end or locator.start + len(snippet) - 1
    return find_snippet(snippet, source, locator.start, last, case.effort, whole=case.surroundings.remote)


def _too_short(snippet: list[str], source: Source, begin: int, at: int, quotes: bool) -> Finding | None:
    """Return the finding of a snippet that is a few characters of a line, or None."""
    text = "\n".join(line.strip() for line in snippet)
    if len("".join(text.split())) >= _LEAST_CHARS or f"\n{text}\n" in f"\n{source.flat}\n":
        return None
    lines = source.lines[begin - 1 : begin - 1 + len(snippet)]
    message = "The snippet is so short that it proves nothing."
    expected = f"whole lines, or at least {_LEAST_CHARS} characters that are no blanks"
    one = quotes and len(lines) == 1
    fix = f"Write the whole line: {copied(lines[0].strip())}." if one else "Write the whole lines."
    return issue("STG311", f"evidence_items[{at}].snippet", message, shown(text), expected, fix)


def _not_found(locator: Locator, source: Source, snippet: list[str], at: int, help_out: bool) -> Finding:
    """Make the finding of a snippet that the file does not hold, with the line that comes closest."""
    unmatched = unmatched_lines(snippet, source)
    first = snippet[unmatched[0]].strip() if unmatched else None
    near = closest_line(first, source, locator.start) if first is not None and help_out else None
    fix = "Copy the text exactly from the file, without leaving anything out, or cite the file that it is from."
    if near is not None:
        line = f"line {near}: {copied(source.lines[near - 1].strip())}"
        fix = f"Write it exactly as {line}."
        if len(unmatched) > 1:
            begin = max(1, near - unmatched[0])
            end = min(len(source.lines), begin + len(snippet) - 1)
            fix = f"Copy lines {begin} to {end} of the file as they are, such as {line}."
    elif first is None:
        fix = "Copy the lines as they follow each other in the file, with their indentation; leave none out."
    name = shown(source.path)
    found = shown("\n".join(snippet) if first is None else first)
    place, message = f"evidence_items[{at}].snippet", f"The snippet is not in {name}."
    return issue("STG308", place, message, found, f"text that {name} contains", fix)
