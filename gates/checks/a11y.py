"""Accessibility results: what each engine found, in every frame (format in `gates.manifest`).

Outside of a run a plain result of axe is read too.
"""

from collections.abc import Collection, Iterator
from typing import Any, Final, cast

from interlock.core.finding import Finding
from interlock.gates import rules
from interlock.gates.checks.subject import MalformedError, Subject, Subjects, decode, loads

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

_BEST_PRACTICE: Final = "best-practice"
SHOWN: Final = 5
"""So many violations are told in full; the rest are counted."""

_FIX: Final = "Run `interlock evidence a11y PAGE` and cite the result that it writes."


def check_a11y(gate: str, subjects: Subjects, *, in_run: bool) -> list[Finding]:
    """Judge every accessibility file of a gate, each by itself."""
    return [finding for subject in subjects for finding in _check(gate, subject, in_run=in_run)]


def _check(gate: str, subject: Subject, *, in_run: bool) -> list[Finding]:
    """Judge one accessibility file."""
    try:
        text = decode(subject.file.data)
    except MalformedError as error:
        return [_malformed(gate, subject, str(error))]
    if not in_run and not text.lstrip().startswith(("{", "[")):
        return [
            subject.finding(
                "EVD547",
                gate,
                f"{subject.shown} is a report in prose; no machine judged it.",
                found="text that is not JSON",
                expected="an accessibility report, where a machine is to judge",
                fix=_FIX,
            )
        ]
    try:
        results = _results(loads(text), in_run=in_run)
    except MalformedError as error:
        return [_malformed(gate, subject, str(error))]
    return _judge(gate, subject, results)


def _results(value: object, *, in_run: bool) -> list[dict[str, Any]]:
    """Return every object that holds result lists: the merged one, then each frame's own.

    Raises:
        MalformedError: The value is no axe result.
    """
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
    missing = [name for name in LISTS if name not in top]
    if missing:
        raise MalformedError(f"the lists {', '.join(missing)} are missing")
    results = [top]
    if schema == SCHEMA:
        _check_engines(top.get("engines"))
        frames: object = top.get("frames")
        if not isinstance(frames, list) or not frames:
            raise MalformedError('"frames" is no list with at least one frame')
        for frame in cast("list[object]", frames):
            if not isinstance(frame, dict):
                raise MalformedError('an item of "frames" is no object')
            share: object = cast("dict[str, Any]", frame).get("withheld")
            if not isinstance(share, int | float) or isinstance(share, bool) or not 0 <= share <= 1:
                raise MalformedError('an item of "frames" has no "withheld" from 0 to 1')
            results.append(cast("dict[str, Any]", frame))
    for result in results:
        _check_lists(result, ENGINES if schema == SCHEMA else (AXE, None))
    return results


def _check_engines(value: object) -> None:
    """Make sure that a report names every engine, with its version.

    Raises:
        MalformedError: It does not.
    """
    rows = cast("list[object]", value) if isinstance(value, list) else []
    tables = [cast("dict[str, Any]", row) for row in rows if isinstance(row, dict)]
    named = [row.get("name") for row in tables if isinstance(row.get("version"), str) and row["version"]]
    if sorted(map(str, named)) != sorted(ENGINES) or len(rows) != len(ENGINES):
        raise MalformedError(f'"engines" does not name {" and ".join(ENGINES)}, each once and with its version')


def _check_lists(result: dict[str, Any], engines: Collection[str | None]) -> None:
    """Make sure that every result list that is there holds rule results of these engines.

    Raises:
        MalformedError: One does not.
    """
    for name in LISTS:
        items: object = result.get(name, [])
        if not isinstance(items, list):
            raise MalformedError(f'"{name}" is no list')
        for item in cast("list[object]", items):
            if not isinstance(item, dict):
                raise MalformedError(f'an item of "{name}" is no object')
            rule_id = cast("dict[str, Any]", item).get("id")
            if not isinstance(rule_id, str) or not rule_id:
                raise MalformedError(f'an item of "{name}" has no "id"')
            if cast("dict[str, Any]", item).get("engine") not in engines:
                raise MalformedError(f'an item of "{name}" has no "engine" of {" and ".join(ENGINES)}')


def _judge(gate: str, subject: Subject, results: list[dict[str, Any]]) -> list[Finding]:
    """Apply the rules to results whose shape is known."""
    findings: list[Finding] = []
    failed = [result for result in results if result.get("error") is not None]
    if failed:
        findings.append(
            subject.finding(
                "EVD545",
                gate,
                f"{len(failed)} frame{'s'[: len(failed) != 1]} of the page could not be analysed.",
                found="; ".join(_frame(result) for result in failed[:SHOWN]),
                expected="a result for every frame",
                fix="Make the frame load, or remove it, and have the page checked again.",
            )
        )
    withheld = [result for result in results if result.get("withheld", 0) > MAX_WITHHELD]
    if withheld:
        findings.append(
            subject.finding(
                "EVD549",
                gate,
                "most of what people see is kept from assistive technology, and from the engines.",
                found="; ".join(
                    f"{rules.quote(str(row.get('url')))}: {row['withheld']:.0%}" for row in withheld[:SHOWN]
                ),
                expected=f"at most {MAX_WITHHELD:.0%} of a document, where no dialog is open",
                fix="Take `inert` and `aria-hidden` off what people see and use, then have the page checked again.",
            )
        )
    for engine in ENGINES if results[0].get("schema") == SCHEMA else (AXE,):
        judged = [item for result in results for name in LISTS for item in result.get(name, [])]
        checked = {item["id"] for item in judged if _engine(item) == engine}
        if len(checked) < MIN_RULES:
            findings.append(
                subject.finding(
                    "EVD542",
                    gate,
                    f"{subject.shown} lists {len(checked)} rules of {engine} over its four lists.",
                    found=f"{len(checked)} distinct rules",
                    expected=f"at least {MIN_RULES}",
                    fix=f"Run {engine} with all rules of WCAG 2.2 AA and cite its whole result.",
                )
            )
    found = _distinct([item for result in results for item in result.get("violations", [])])
    practice = [item for item in found if _is_best_practice(item)]
    violations = [item for item in found if item not in practice]
    serious = [item for item in violations if not REFUSED_IMPACTS.isdisjoint(_impacts(item))]
    unknown = [item for item in violations if item not in serious and not _impacts(item) <= KNOWN_IMPACTS]
    for code, items, what, fix in (
        ("EVD543", serious, "serious or critical", "Fix each element named here, then have the page checked again."),
        ("EVD544", unknown, "of unknown impact", "Fix each element named here, or find out its impact."),
        ("EVD548", practice, "of good practice alone", "Fix these too where you can; the gate does not ask for it."),
    ):
        if items:
            findings.append(
                subject.finding(
                    code,
                    gate,
                    f"the engines found {len(items)} violation{'s'[: len(items) != 1]} {what}.",
                    found=_listing(items),
                    expected="no such violation",
                    fix=fix,
                )
            )
    undecided = sorted({f"{_engine(item)} {item['id']}" for result in results for item in result.get("incomplete", [])})
    if undecided:
        findings.append(
            subject.finding(
                "EVD546",
                gate,
                f"the engines could not decide {len(undecided)} rule{'s'[: len(undecided) != 1]}.",
                found=", ".join(rules.quote(rule, 60) for rule in undecided[:SHOWN]),
                expected="a person's look at these",
                fix="Look at the `incomplete` list of the result and judge it by eye.",
            )
        )
    return findings


def _engine(item: dict[str, Any]) -> str:
    """Return the engine of a rule result; a plain result of axe does not name it."""
    return str(item.get("engine", AXE))


def _is_best_practice(item: dict[str, Any]) -> bool:
    """Say whether a rule is about good practice alone, and no part of WCAG."""
    tags: object = item.get("tags")
    names = [str(tag) for tag in cast("list[object]", tags)] if isinstance(tags, list) else []
    return _BEST_PRACTICE in names and not any(name.startswith("wcag") for name in names)


def _distinct(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop repeats of one violation, which stand in the merged list and in a frame's own."""
    seen: dict[tuple[str, ...], dict[str, Any]] = {}
    for item in items:
        seen.setdefault((_engine(item), item["id"], str(item.get("impact")), " ".join(_selectors(item))), item)
    return list(seen.values())


def _listing(items: list[dict[str, Any]]) -> str:
    """Tell the first violations: engine, rule, impact, element, and what to do about it."""
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
    """Yield where a violation was found: its frame, if told, and the element's selector."""
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


def _frame(result: dict[str, Any]) -> str:
    """Name a frame that failed."""
    return f"{rules.quote(str(result.get('url', 'a frame')))}: {rules.quote(str(result['error']))}"


def _malformed(gate: str, subject: Subject, reason: str) -> Finding:
    """Refuse a file that is no result."""
    return subject.finding(
        "EVD541",
        gate,
        f"{subject.shown} is no accessibility result that can be judged.",
        found=reason,
        expected=f"a report of {' and '.join(ENGINES)}, with the lists {', '.join(LISTS)}",
        fix=_FIX,
    )
