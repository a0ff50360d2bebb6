"""Reports of other programs, held against the base: findings (SARIF), and which lines ran (Cobertura, coverage.py).

Theory of operation. Answers T1; what a command writes is believed, as JUnit is (docs/sealed-gates.md).

A finding is old where the base has one of the same rule, in the same file, on a line of the same content, blanks aside.
Its number says nothing: code moves. Each finding of the base excuses one, so that the same line written twice is new
once. Where several are alike, the lines around tell which of them is the new one.

A line of the work is new where neither the unchanged beginning and end of the file have it nor a line of the same
content was taken away between them: a line that moved within its file is not new.
"""

import json
import os
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

_REPORTED: Final = ("error", "warning")
"""The levels that count; a `note` is no fault."""

Lines: TypeAlias = Mapping[str, Mapping[int, bool]]
"""By path from the root: each line that can run, and whether it ran."""


@dataclass(frozen=True, slots=True)
class Result:
    """One finding of a checker.

    Args:
        rule: Its id.
        path: The file, relative to the root; as the report has it where it lies outside.
        line: 1-based; 0 for the whole file.
        column: 1-based; 0 where the report names none.
        message: What is wrong.
        text: The content of the line without its blanks; the message where there is no such line.
        around: The lines before and after it, likewise.
    """

    rule: str
    path: str
    line: int
    column: int
    message: str
    text: str
    around: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What an old result and the present one have in common."""
        return self.rule, self.path, self.text

    @property
    def said(self) -> str:
        """The place, the rule and the message, as the message of a failed test has them."""
        numbers = [str(number) for number in (self.line, self.column) if number]
        return f"{':'.join([self.path, *numbers])} {self.rule} {self.message}".strip()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a report was written: the root as its command saw it, the folder it ran in, and the export on the disk."""

    root: str
    cwd: str
    export: Path

    def inside(self, name: str, base: str = "") -> str:
        """Return the path of a file relative to the root; as it is where it lies outside."""
        path = os.path.normpath(os.path.join(self.root, self.cwd, base, name))
        return os.path.relpath(path, self.root) if path.startswith(f"{self.root}/") else path

    def lines(self, path: str) -> Sequence[str]:
        """Return the lines of a file of the export; none where there is no such file, or it lies outside."""
        if path.startswith("/"):
            return ()
        try:
            return (self.export / path).read_bytes().decode("utf-8", "replace").split("\n")
        except (OSError, ValueError):
            return ()


def read_sarif(data: bytes, place: Place) -> tuple[Result, ...]:
    """Return the errors and warnings of a report.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, RecursionError: It is no SARIF, or says that the tool failed.
    """
    found, lines_of = list[Result](), cache(place.lines)
    runs: Any = json.loads(data)["runs"]
    for run in runs:
        if any(each.get("executionSuccessful") is False for each in run.get("invocations", ())):
            raise ValueError("the tool says that it did not succeed")
        parts = (run["tool"]["driver"], *run["tool"].get("extensions", ()))
        rules = [rule for part in parts for rule in part.get("rules", ())]
        levels = {rule["id"]: rule.get("defaultConfiguration", {}).get("level", "warning") for rule in rules}
        rows = filter(_is_open, run.get("results") or ())
        rows = [row for row in rows if (row.get("level") or levels.get(row["ruleId"], "warning")) in _REPORTED]
        found += [_result(row, run, place, lines_of) for row in rows]
    return tuple(found)


def _is_open(row: Any) -> bool:
    """Return whether a result says that something is wrong with the present code, and nobody accepted that."""
    accepted = any(each.get("status", "accepted") == "accepted" for each in row.get("suppressions") or ())
    return row.get("kind", "fail") == "fail" and row.get("baselineState") != "absent" and not accepted


def _result(row: Any, run: Any, place: Place, lines_of: Callable[[str], Sequence[str]]) -> Result:
    message = " ".join(row["message"]["text"].split())
    locations: list[Any] = row.get("locations") or [{}]
    physical: Any = locations[0].get("physicalLocation", {})
    region, artifact = physical.get("region", {}), physical.get("artifactLocation", {})
    base: Any = run.get("originalUriBaseIds", {}).get(artifact.get("uriBaseId"), {})
    path = place.inside(_path(artifact["uri"]), _path(base.get("uri", ""))) if "uri" in artifact else ""
    line, lines = int(region.get("startLine", 0)), lines_of(path)
    near = [" ".join(text.split()) for text in lines[max(line - 2, 0) : line + 1]]
    here = near.pop(min(line - 1, 1)) if 0 < line <= len(lines) else message
    return Result(str(row["ruleId"]), path, line, int(region.get("startColumn", 0)), message, here, "\n".join(near))


def _path(uri: str) -> str:
    return unquote(urlsplit(uri).path if uri.startswith("file:") else uri)


def new_results(before: Sequence[Result], now: Sequence[Result]) -> list[Result]:
    """Return the results that the base does not have."""
    left: dict[tuple[str, str, str], list[str]] = {}
    for row in before:
        left.setdefault(row.key, []).append(row.around)
    changed, new = list[Result](), list[Result]()
    for row in now:
        if row.around in left.get(row.key, ()):
            left[row.key].remove(row.around)
        else:
            changed.append(row)
    for row in changed:
        if left.get(row.key):
            left[row.key].pop()
        else:
            new.append(row)
    return new


# -- coverage ----------------------------------------------------------------------------------------------------------


def read_coverage(data: bytes, place: Place) -> Lines:
    """Return which lines ran, by Cobertura XML or the JSON of coverage.py.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, ET.ParseError, RecursionError: It is neither.
    """
    found: dict[str, dict[int, bool]] = {}
    if data.lstrip()[:1] == b"{":
        files: Any = json.loads(data)["files"]
        for name, row in files.items():
            ran = dict.fromkeys(row["executed_lines"], True)
            found[place.inside(name)] = {**dict.fromkeys(row["missing_lines"], False), **ran}
        return found
    top = ET.fromstring(data)  # noqa: S314 - expat itself refuses entities that grow
    if top.tag != "coverage":
        raise ValueError(f"its element is <{top.tag}>")
    sources = [source.text or "" for source in top.iter("source")] or [""]
    for node in top.iter("class"):
        names = [place.inside(node.attrib["filename"], source) for source in sources]
        # A file is named relative to one of the sources; several classes may be of one file.
        name = next((name for name in names if (place.export / name).is_file()), names[0])
        lines = found.setdefault(name, {})
        for line in node.iterfind("lines/line"):
            number = int(line.attrib["number"])
            lines[number] = lines.get(number, False) or int(line.attrib["hits"]) > 0
    return found


class Covered(NamedTuple):
    """How many of the new lines that can run did run, and the places of those that did not."""

    covered: int
    lines: int
    missed: tuple[str, ...]

    @property
    def percent(self) -> float:
        """The part that ran; all of it where no new line can run."""
        return 100 * self.covered / self.lines if self.lines else 100.0


def covered_changes(report: Lines, changed: Mapping[str, tuple[bytes, bytes]]) -> Covered:
    """Return how much of some changed files ran: path to the content before and after.

    In a file that the report does not name, every new line that is not blank counts as one that did not run, if it
    names another file with such an ending: code that no test imports is in no report.
    """
    covered, missed = 0, list[str]()
    endings = {os.path.splitext(path)[1] for path in report}
    for path, (before, after) in changed.items():
        lines = report.get(path)
        if lines is None and os.path.splitext(path)[1] not in endings:
            continue
        for number, text in new_lines(before, after).items():
            if (lines is None and text) or (lines is not None and lines.get(number) is False):
                missed.append(f"{path}:{number}")
            elif lines is not None and lines.get(number):
                covered += 1
    return Covered(covered, covered + len(missed), tuple(missed))


def new_lines(before: bytes, after: bytes) -> dict[int, str]:
    """Return the lines that a file has and did not have before: number, from 1, to content without its blanks."""
    old, new = (
        [" ".join(line.split()) for line in text.decode("utf-8", "replace").split("\n")] for text in (before, after)
    )
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    left = Counter(old[start : len(old) - end])
    found: dict[int, str] = {}
    for number in range(start, len(new) - end):
        if left[new[number]]:
            left[new[number]] -= 1
        else:
            found[number + 1] = new[number]
    return found
