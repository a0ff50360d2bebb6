"""What the evidence of two attempts says, beside one another: pictures, findings, console and tests.

Everything begins with journal lines: they name each file with its digest. A file is read by that digest alone, from
the kept copy or from where it lies, and what does not have it any more is said to be gone.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from interlock.core.text import whole
from interlock.gates import EvidenceFile, GateError, read_evidence, read_manifest
from interlock.graph import kept_bytes, present_path
from interlock.journal import Entry

Change: TypeAlias = Literal["new", "fixed", "same"]


@dataclass(frozen=True, slots=True)
class File:
    """An evidence file that a journal line names: `key` of EVIDENCE, path from the root, hex digest."""

    key: str
    path: str
    sha256: str

    @property
    def name(self) -> str:
        """Its name without the folders."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Collected:
    """The evidence for one gate in one attempt.

    `collector` and `isolation` are what the manifest and the log say of how it was made; empty where they do not.
    """

    gate: str
    attempt: int
    ok: bool
    tree: str
    at: str
    files: tuple[File, ...]
    findings: tuple[Mapping[str, Any], ...]
    collector: str = ""
    isolation: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """One finding, console record or test, and whether it is new, fixed or the same in the later attempt."""

    change: Change
    level: str
    title: str
    detail: str
    place: str = ""
    element: "Element | None" = None


class Box(NamedTuple):
    """Where an element lies, in pixels from the corner of the page."""

    left: int
    top: int
    width: int
    height: int


class Element(NamedTuple):
    """An element in the screenshot that has a digest."""

    sha256: str
    box: Box


def collected(root: Path, entries: Iterable[Entry]) -> list[Collected]:
    """Return what was collected in a run, in its order."""
    attempt, gathered = 1, list[Collected]()
    for entry in entries:
        # A line that names no attempt is of the one that was named last.
        attempt = entry.data.get("attempt", attempt)
        if entry.type != "evidence":
            continue
        data = entry.data
        files = tuple(File(row["key"], row["path"], row["sha256"]) for row in data.get("files", ()))
        gathered.append(
            Collected(
                str(data["gate"]),
                attempt,
                bool(data["ok"]),
                str(data.get("tree", "")),
                entry.at,
                files,
                tuple(data.get("findings", ())),
                _collector(root, str(data.get("manifest", ""))),
                _isolation(root, files),
            )
        )
    return gathered


def cited(entries: Iterable[Entry]) -> dict[str, File]:
    """Return every file that the lines of a run name, by its digest."""
    files: dict[str, File] = {}
    for entry in entries:
        rows = entry.data.get("files") if entry.type == "evidence" else entry.data.get("evidence")
        # Only these files can be asked for by digest, and nothing else of the project.
        if entry.type in ("evidence", "answer"):
            for row in cast("Sequence[Mapping[str, Any]]", rows or ()):
                files.setdefault(row["sha256"], File(row["key"], row["path"], row["sha256"]))
    return files


def read(root: Path, file: File) -> bytes | None:
    """Return the bytes of a file as they were judged; None when nothing has that digest any more."""
    return kept_bytes(root, file.path, file.sha256)


def is_in_place(root: Path, file: File) -> bool:
    """Return whether the file that the line names is still the one that was judged."""
    found = read_evidence(root, present_path(root, file.path, file.sha256))
    return isinstance(found, EvidenceFile) and found.sha256 == file.sha256


def _collector(root: Path, manifest: str) -> str:
    if not manifest:
        return ""
    try:
        made = read_manifest(root, manifest).collector
    except (GateError, OSError):
        return "its manifest is not there any more"
    return f"{made.name} {made.version}"


def _isolation(root: Path, files: Iterable[File]) -> str:
    for file in files:
        if file.name.endswith(".log"):
            # The first line of the log of a gate is its header.
            head = _json((read(root, file) or b"").partition(b"\n")[0])
            sealed: Mapping[str, Any] = head.get("sealed") or {}
            return str(sealed.get("level", "")) or "not isolated"
    return ""


def compare(root: Path, before: Collected | None, after: Collected, pictures: Iterable[Collected]) -> list[Compared]:
    """Return what both say: what is new first, then the same, then what was fixed.

    Elements are looked up in the screenshots among `pictures` that show the same tree in the same attempt.
    """
    pictures = list(pictures)
    was = {} if before is None else dict(_statements(root, before, pictures))
    now = dict(_statements(root, after, pictures))
    # What is said of the same element in the same words is the same, wherever it is in the report.
    rows = [Compared("same" if key in was else "new", *now[key]) for key in now] + [
        Compared("fixed", *was[key]) for key in was if key not in now
    ]
    order: Mapping[Change, int] = {"new": 0, "same": 1, "fixed": 2}
    return sorted(rows, key=lambda row: order[row.change])


_Statement: TypeAlias = tuple[str, str, str, str, Element | None]
"""Level, title, detail, place and element of a `Compared`."""


def _statements(root: Path, one: Collected, pictures: Iterable[Collected]) -> Iterator[tuple[str, _Statement]]:
    """Yield what the files of a collection state, each under a key by which it is found again."""
    shots = {
        file.name: file.sha256
        for each in pictures
        # Pictures of another tree would show another page under the outline.
        if (each.attempt, each.tree) == (one.attempt, one.tree)
        for file in each.files
        if file.key == "screenshots"
    }
    for file in one.files:
        data = read(root, file)
        if data is None:
            continue
        if file.name.endswith(".axe.json"):
            slug = file.name.removesuffix(".axe.json")
            # The collector names the files of a page alike: `home.axe.json`, `home-375.png`.
            yield from _accessibility(_json(data), lambda width, slug=slug: shots.get(f"{slug}-{width}.png"))
        elif file.key == "console":
            yield from _console(data)
        elif file.name.endswith(".tests.json"):
            yield from _tests(_json(data))


def _accessibility(result: Mapping[str, Any], shot: Callable[[str], str | None]) -> Iterator[tuple[str, _Statement]]:
    for rule in cast("Sequence[Mapping[str, Any]]", result.get("violations", ())):
        for node in cast("Sequence[Mapping[str, Any]]", rule.get("nodes", ())):
            target = " ".join(map(str, node.get("target", ())))
            detail = f"{target}\n{node.get('html', '')}\n{node.get('failureSummary', '')}"
            level = str(node.get("impact") or rule.get("impact") or "")
            title = f"{rule.get('id')}: {rule.get('help', '')}"
            element = _element(node.get("boxes"), shot)
            yield f"a11y {rule.get('id')} {target} {node.get('html', '')}", (level, title, detail, target, element)


def _element(boxes: object, shot: Callable[[str], str | None]) -> Element | None:
    """Return where a report says that an element lies in the widest view of which there is a screenshot."""
    by_width = list[tuple[int, Element]]()
    for width, box in cast("Mapping[str, Any]", boxes).items() if isinstance(boxes, dict) else ():
        sha256 = shot(width)
        parts = cast("list[object]", box) if isinstance(box, list) else []
        # Not `isinstance`: True is an `int` too, and the report is a file that anybody may have written.
        numbers = [each for each in parts if type(each) is int and each >= 0]
        if sha256 and len(parts) == len(numbers) == len(Box._fields):
            by_width.append((whole(width), Element(sha256, Box(*numbers))))
    return max(by_width)[1] if by_width else None


def _console(data: bytes) -> Iterator[tuple[str, _Statement]]:
    # The first line is the header; a page in a loop can log for ever.
    for line in data.splitlines()[1:2000]:
        row = _json(line)
        if row.get("kind"):
            place = f"{row.get('width')} px"
            text = str(row.get("text", ""))
            yield (
                f"console {row.get('kind')} {text} {place}",
                (
                    str(row.get("level", "")),
                    text.partition("\n")[0],
                    f"{text}\n{row.get('url', '')}",
                    place,
                    None,
                ),
            )


def _tests(result: Mapping[str, Any]) -> Iterator[tuple[str, _Statement]]:
    for test in cast("Sequence[Mapping[str, Any]]", result.get("tests", ())):
        # The passed ones are counted, and would fill the page.
        if test.get("outcome") != "passed":
            name, outcome = str(test.get("id")), str(test.get("outcome"))
            yield f"test {name} {outcome}", (outcome, name, str(test.get("message", "")), "", None)


def counts(root: Path, one: Collected) -> dict[str, int]:
    """Return how many tests had each outcome; empty where no report has them."""
    by_outcome: dict[str, int] = {}
    for file in one.files:
        if file.name.endswith(".tests.json"):
            for test in cast("Sequence[Mapping[str, Any]]", _json(read(root, file) or b"").get("tests", ())):
                outcome = str(test.get("outcome"))
                by_outcome[outcome] = by_outcome.get(outcome, 0) + 1
    return by_outcome


def failed_tests(root: Path, entries: Iterable[Entry], most: int = 20) -> list[tuple[str, str, str]]:
    """Return gate, name and message of the tests that failed in the last evidence of each gate, `most` of each."""
    last = {entry.data.get("gate"): entry.data for entry in entries if entry.type == "evidence"}
    found: list[tuple[str, str, str]] = []
    for gate, data in last.items():
        for row in () if data.get("ok") else data.get("files") or ():
            if row["path"].endswith(".tests.json"):
                bytes_ = read(root, File(row["key"], row["path"], row["sha256"])) or b""
                tests = cast("Sequence[Mapping[str, Any]]", _json(bytes_).get("tests", ()))
                bad = [test for test in tests if test.get("outcome") in ("failed", "error")]
                found += [(str(gate), str(test.get("id")), str(test.get("message", ""))) for test in bad[:most]]
    return found


def _json(data: bytes) -> dict[str, Any]:
    try:
        value: object = json.loads(data)
    # Brackets that are nested a thousand deep end the parser with a RecursionError.
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
