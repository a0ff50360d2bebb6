"""Accessibility results: what each engine found, in every frame (format: docs/evidence.md).

Outside of a run a plain result of axe is read too.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from interlock.core.finding import Finding
from interlock.gates import rules
from interlock.gates.checks.shapes import FILLED, TEXT, Leaf, MalformedError, Shape, conform, decode, loads, one_of
from interlock.gates.checks.subject import Subject, Subjects

SCHEMA: Final = "interlock.a11y/2"
LISTS: Final = ("violations", "passes", "incomplete", "inapplicable")
KNOWN_IMPACTS: Final = frozenset({"minor", "moderate", "serious", "critical"})
REFUSED_IMPACTS: Final = frozenset({"serious", "critical"})
MIN_RULES: Final = 20
"""So many rules each engine must have run, at least."""

MAX_WITHHELD: Final = 0.5
"""So much of what people see in a document may be `inert` or `aria-hidden`."""

AXE: Final = "axe-core"
ENGINES: Final = (AXE, "accesslint")
"""The engines of a report, each of which must have judged the page."""

_SHARE: Final = Leaf(
    lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1,
    "is no number from 0 to 1",
)
_OF_REPORT: Final[Shape] = {"engines": [{"name": TEXT, "version": FILLED}], "frames": [{"withheld": _SHARE}]}
SHOWN: Final = 5
"""So many violations are listed in full; the rest are counted."""


def check_a11y(gate: str, subjects: Subjects, *, in_run: bool) -> list[Finding]:
    """Judge every accessibility file of a gate, each by itself."""
    return [finding for subject in subjects for finding in _check(gate, subject, in_run=in_run)]


def _check(gate: str, subject: Subject, *, in_run: bool) -> list[Finding]:
    try:
        text = decode(subject.file.data)
    except MalformedError as error:
        return [_malformed(gate, subject, str(error))]
    if not in_run and not text.lstrip().startswith(("{", "[")):
        message = f"{subject.shown} is a report in prose; no machine judged it."
        return [subject.finding("EVD547", gate, message, found="text that is not JSON")]
    try:
        results = _results(loads(text), in_run=in_run)
    except MalformedError as error:
        return [_malformed(gate, subject, str(error))]
    return _judge(gate, subject, results)


def _results(value: object, *, in_run: bool) -> list[dict[str, Any]]:
    """Return every object that holds result lists: the merged one, then each frame's own."""
    if isinstance(value, list) and not in_run:
        pages = cast("list[object]", value)
        if not pages:
            raise MalformedError("the list of results is empty")
        return [result for page in pages for result in _results(page, in_run=in_run)]
    if not isinstance(value, dict):
        raise MalformedError("the value is no JSON object")
    top = cast("dict[str, Any]", value)
    schema = top.get("schema")
    if schema != SCHEMA and (in_run or schema is not None):
        raise MalformedError(f'"schema" is not "{SCHEMA}"')
    conform(top, _lists(LISTS, ENGINES if schema == SCHEMA else (AXE, None)), "the result", more=True)
    conform(top.get("withheld", 0), _SHARE, "`withheld` of the result")
    if schema != SCHEMA:
        return [top]
    conform(top, _OF_REPORT, "the report", more=True)
    if sorted(row["name"] for row in top["engines"]) != sorted(ENGINES):
        raise MalformedError(f'"engines" does not name {" and ".join(ENGINES)}, each once')
    frames: list[dict[str, Any]] = top["frames"]
    if not frames:
        raise MalformedError('"frames" is empty')
    for frame in frames:
        conform(frame, _lists((name for name in LISTS if name in frame), ENGINES), "a frame", more=True)
    return [top, *frames]


def _lists(names: Iterable[str], engines: Iterable[str | None]) -> Shape:
    """Return the shape of lists with rule results of some engines."""
    return {name: [{"id": FILLED, "engine": one_of(*engines)}] for name in names}


def _judge(gate: str, subject: Subject, results: list[dict[str, Any]]) -> list[Finding]:
    findings: list[Finding] = []
    failed = [result for result in results if result.get("error") is not None]
    if failed:
        message = f"{len(failed)} frame{'s'[: len(failed) != 1]} of the page could not be analysed."
        rows = ((str(result.get("url", "a frame")), str(result["error"])) for result in failed[:SHOWN])
        found = "; ".join(f"{rules.quote(url)}: {rules.quote(error)}" for url, error in rows)
        findings.append(subject.finding("EVD545", gate, message, found=found))
    withheld = [result for result in results if result.get("withheld", 0) > MAX_WITHHELD]
    if withheld:
        message = "most of what people see is kept from assistive technology, and from the engines."
        found = "; ".join(f"{rules.quote(str(row.get('url')))}: {row['withheld']:.0%}" for row in withheld[:SHOWN])
        expected = f"at most {MAX_WITHHELD:.0%} of a document, where no dialog is open"
        findings.append(subject.finding("EVD549", gate, message, found=found, expected=expected))
    for engine in ENGINES if results[0].get("schema") == SCHEMA else (AXE,):
        judged = [item for result in results for name in LISTS for item in result.get(name, [])]
        checked = {item["id"] for item in judged if _engine(item) == engine}
        if len(checked) < MIN_RULES:
            message = f"{subject.shown} lists {len(checked)} rules of {engine} over its four lists."
            findings.append(subject.finding("EVD542", gate, message, found=f"{len(checked)} distinct rules"))
    distinct: dict[tuple[str, ...], dict[str, Any]] = {}
    for item in [item for result in results for item in result.get("violations", [])]:
        distinct.setdefault((_engine(item), item["id"], str(item.get("impact")), " ".join(_selectors(item))), item)
    practice = [item for item in distinct.values() if _is_best_practice(item)]
    violations = [item for item in distinct.values() if item not in practice]
    serious = [item for item in violations if not REFUSED_IMPACTS.isdisjoint(_impacts(item))]
    unknown = [item for item in violations if item not in serious and not _impacts(item) <= KNOWN_IMPACTS]
    for code, items, what in (
        ("EVD543", serious, "serious or critical"),
        ("EVD544", unknown, "of unknown impact"),
        ("EVD548", practice, "of good practice alone"),
    ):
        if items:
            message = f"the engines found {len(items)} violation{'s'[: len(items) != 1]} {what}."
            findings.append(subject.finding(code, gate, message, found=_listing(items), expected="no such violation"))
    undecided = sorted({f"{_engine(item)} {item['id']}" for result in results for item in result.get("incomplete", [])})
    if undecided:
        message = f"the engines could not decide {len(undecided)} rule{'s'[: len(undecided) != 1]}."
        listed = ", ".join(rules.quote(rule, 60) for rule in undecided[:SHOWN])
        findings.append(subject.finding("EVD546", gate, message, found=listed))
    return findings


def _engine(item: dict[str, Any]) -> str:
    """Return the engine of a rule result; a plain result of axe does not name it."""
    return str(item.get("engine", AXE))


def _is_best_practice(item: dict[str, Any]) -> bool:
    """Return whether a rule is about good practice alone, and no part of WCAG."""
    tags: object = item.get("tags")
    names = [str(tag) for tag in cast("list[object]", tags)] if isinstance(tags, list) else []
    return "best-practice" in names and not any(name.startswith("wcag") for name in names)


def _listing(items: list[dict[str, Any]]) -> str:
    """List the first violations: engine, rule, impact, element, and what to do about it."""
    texts: list[str] = []
    for item in items[:SHOWN]:
        selectors = list(_selectors(item))
        where = rules.quote(selectors[0]) if selectors else "an unnamed element"
        more = f" and {len(selectors) - 1} more" if len(selectors) > 1 else ""
        help_text = item.get("help")
        about = f": {rules.quote(help_text).strip('`')}" if isinstance(help_text, str) and help_text else ""
        impact = rules.quote(str(item.get("impact")), 20).strip("`")
        name = f"{_engine(item)} {rules.quote(item['id'], 60).strip('`')}"
        texts.append(f"{name} ({impact}) at {where}{more}{about}")
    left = len(items) - SHOWN
    return "; ".join(texts) + (f"; and {left} more" if left > 0 else "")


def _impacts(item: dict[str, Any]) -> set[str]:
    """Return the impact of a violation and of each of its elements, since one rule can weigh differently by width."""
    nodes: object = item.get("nodes")
    listed = cast("list[object]", nodes) if isinstance(nodes, list) else []
    tables = [cast("dict[str, Any]", node) for node in listed if isinstance(node, dict)]
    return {str(item.get("impact")), *(str(node["impact"]) for node in tables if "impact" in node)}


def _selectors(item: dict[str, Any]) -> Iterator[str]:
    """Yield where a violation was found: its frame, if it is known, and the element's selector."""
    nodes: object = item.get("nodes")
    frame = item.get("frame")
    prefix = f"frame {frame}: " if isinstance(frame, int | str) and frame not in (0, "") else ""
    for node in cast("list[object]", nodes) if isinstance(nodes, list) else ():
        target: object = cast("dict[str, Any]", node).get("target") if isinstance(node, dict) else None
        if isinstance(target, list):
            steps = cast("list[object]", target)
            yield prefix + " ".join(
                " ".join(str(part) for part in cast("list[object]", step)) if isinstance(step, list) else str(step)
                for step in steps
            )
        elif isinstance(target, str):
            yield prefix + target


def _malformed(gate: str, subject: Subject, reason: str) -> Finding:
    expected = f"a report of {' and '.join(ENGINES)}, with the lists {', '.join(LISTS)}"
    message = f"{subject.shown} is no accessibility result that can be judged."
    return subject.finding("EVD541", gate, message, found=reason, expected=expected)
