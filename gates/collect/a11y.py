"""Two engines in an isolated world of every frame, their results merged into one report without clock or host."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from interlock.gates.checks.a11y import SCHEMA
from interlock.gates.collect.cdp import CdpError
from interlock.gates.collect.engines import LISTS, Engine
from interlock.gates.collect.errors import collector_error
from interlock.gates.collect.page import Frame, Page, script
from interlock.gates.collect.site import Target

_IMPACTS: Final = ("minor", "moderate", "serious", "critical")

_RULE_KEYS: Final = ("id", "impact", "tags", "description", "help", "helpUrl")
_NODE_KEYS: Final = ("target", "html", "impact", "failureSummary")
_MAX_BOXES: Final = 500
"""So many elements of a view are located in it."""


@dataclass(frozen=True, slots=True)
class AuditedFrame:
    """What the engines found in one document, by the name of each: its four lists of rule results.

    No engine looked at one that is `hidden`, which nobody can perceive; `withheld` is the share of what people see that
    is kept from assistive technology, 0 to 1.
    """

    url: str
    hidden: bool
    lists: dict[str, dict[str, list[dict[str, Any]]]]
    withheld: float = 0.0


@dataclass(frozen=True, slots=True)
class Audit:
    """What the engines found in a page at one width."""

    width: int
    frames: tuple[AuditedFrame, ...]


_Started: TypeAlias = list[tuple[Frame, dict[str, tuple[int, int]]]]
"""The frames of a page that are being analysed, each with what the answers of its engines are waited for by."""


def audit(pages: Sequence[Page], engines: Sequence[Engine]) -> list[Audit]:
    """Run every engine in every frame of some pages at rest, in all at the same time; COL308 where one cannot."""
    started = [(page, _start(page, engines)) for page in pages]
    return [_finish(page, frames) for page, frames in started]


def _start(page: Page, engines: Sequence[Engine]) -> _Started:
    frames = page.frames()
    # Before the engines run: contrast in the middle of a fade would differ from run to run.
    page.still(frames)
    visible = _visible(page, frames)
    started: _Started = []
    for frame in frames:
        asked: dict[str, tuple[int, int]] = {}
        started.append((frame, asked))
        if not visible[frame.id]:
            continue
        if frame.failed:
            raise collector_error("COL308", f"The frame {frame.failed} did not load, so it was not analysed.")
        for engine in engines:
            run = f"({script(engine.script)})({engine.options(in_frame=bool(frame.parent))})"
            source = f"{script('prepare')}\n{engine.source}\n;0"
            asked[engine.name] = (page.begin(frame, source), page.begin(frame, run))
    return started


def _finish(page: Page, frames: _Started) -> Audit:
    audited = [
        AuditedFrame(
            frame.url,
            not asked,
            {name: _result(page, frame, name, asked[name]) for name in asked},
            page.evaluate(frame, script("withheld")) if asked else 0.0,
        )
        for frame, asked in frames
    ]
    _locate(page, frames[0][0], audited[0])
    children = sum(page.evaluate(frame, "window.length") for frame, asked in frames if asked)
    # A frame that came or went while the engines ran, or that the browser did not show, must not be skipped.
    if len(audited) - 1 < children or len(page.frames()) != len(audited):
        raise collector_error("COL308", f"{page.name} has {children} frames, and {len(audited) - 1} could be analysed.")
    page.check()
    return Audit(page.width, tuple(audited))


def _locate(page: Page, frame: Frame, audited: AuditedFrame) -> None:
    """Add to each violation in the page's own document where its element lies, for pictures of it; frames have none."""
    nodes = [node for lists in audited.lists.values() for rule in lists["violations"] for node in rule["nodes"]][
        :_MAX_BOXES
    ]
    if nodes:
        targets = json.dumps([node["target"] for node in nodes])
        for node, box in zip(nodes, page.evaluate(frame, f"({script('boxes')})({targets})"), strict=True):
            node["box"] = box


def _result(page: Page, frame: Frame, engine: str, asked: tuple[int, int]) -> dict[str, list[dict[str, Any]]]:
    """Return the lists of one engine for one frame; a rule of it that failed itself has judged nothing."""
    try:
        result = [page.finish(number) for number in asked][-1]
    except CdpError as error:
        raise collector_error("COL308", f"{engine} could not analyse the frame {frame.url}: {error}.") from error
    if result["broken"]:
        raise collector_error(
            "COL308",
            f"In the frame {frame.url} a rule of {engine} failed itself and judged nothing: {result['broken'][0]}.",
            "Take out what the rule trips over, such as a value in CSS or markup that is out of all proportion.",
        )
    return result["lists"]


def merge(target: Target, engines: Sequence[Engine], audits: Sequence[Audit]) -> dict[str, Any]:
    """Merge the runs of all views, frames and engines into the report.

    A rule is listed once for each list, frame and engine; its nodes say at which widths they were found, and in `boxes`
    where they lie at each. Nodes are kept for violations and for what an engine could not decide (`incomplete`); the
    other lists give their number.
    """
    rules: dict[str, dict[tuple[int, str, str], dict[str, Any]]] = {name: {} for name in LISTS}
    numbers: dict[tuple[str, int], int] = {}
    frames: dict[int, dict[str, Any]] = {}
    for view in audits:
        seen: Counter[str] = Counter()
        for frame in view.frames:
            # A layout may have a frame at one width alone; the n-th one of an address is the same at every width.
            number = numbers.setdefault((frame.url, seen[frame.url]), len(numbers))
            seen[frame.url] += 1
            row = frames.setdefault(number, {"id": number, "url": frame.url, "hidden": True, "withheld": 0})
            # Hidden is what nobody sees at any width; withheld, what is so at the worst.
            row["hidden"] = row["hidden"] and frame.hidden
            row["withheld"] = max(row["withheld"], frame.withheld)
            for engine, lists in frame.lists.items():
                for name in LISTS:
                    for found in lists[name]:
                        place = (number, engine, found["id"])
                        _add(rules[name], place, found, view.width, with_nodes=name in ("violations", "incomplete"))
    return {
        "schema": SCHEMA,
        "target": target.text,
        "engines": [{"name": engine.name, "version": engine.version} for engine in engines],
        "widths": sorted({view.width for view in audits}),
        "frames": [frames[number] for number in sorted(frames)],
        **{name: [rules[name][key] for key in sorted(rules[name])] for name in LISTS},
    }


def _add(
    rules: dict[tuple[int, str, str], dict[str, Any]],
    place: tuple[int, str, str],
    found: dict[str, Any],
    width: int,
    *,
    with_nodes: bool,
) -> None:
    """Add one rule's result in one view to the merged list."""
    frame, engine, _ = place
    named = {key: found.get(key) for key in _RULE_KEYS}
    rule = rules.setdefault(place, {**named, "engine": engine, "frame": frame, "widths": [], "nodes": []})
    _seen_at(rule, width)
    rule["impact"] = max(rule["impact"], found.get("impact"), key=_severity)
    if not with_nodes:
        rule["node_count"] = max(rule.get("node_count", 0), len(found["nodes"]))
        return
    known: dict[str, dict[str, Any]] = {json.dumps(node["target"]): node for node in rule["nodes"]}
    for node in found["nodes"]:
        name = json.dumps(node["target"])
        if name not in known:
            known[name] = {**{key: node.get(key) for key in _NODE_KEYS}, "widths": []}
            rule["nodes"].append(known[name])
        _seen_at(known[name], width)
        if node.get("box"):
            known[name].setdefault("boxes", {}).setdefault(str(width), node["box"])


def _seen_at(row: dict[str, Any], width: int) -> None:
    """Note the width of a view with a rule or a node, once."""
    if width not in row["widths"]:
        row["widths"].append(width)


def _severity(impact: str | None) -> int:
    """Rank an impact; one that is not known is the worst, so that no merge can soften it."""
    return _IMPACTS.index(impact) if impact in _IMPACTS else len(_IMPACTS)


def _visible(page: Page, frames: list[Frame]) -> dict[str, bool]:
    """Return for each frame whether anybody can perceive it; axe leaves the others out, and so does this.

    The page itself is, and a frame in a hidden one is not.
    """
    by_id = {frame.id: frame for frame in frames}
    visible: dict[str, bool] = {}
    # Parents first, since a frame in a hidden one is hidden.
    for frame in sorted(frames, key=lambda frame: _depth(frame, by_id)):
        parent = by_id.get(frame.parent)
        if parent is None or not visible[parent.id]:
            visible[frame.id] = parent is None
            continue
        node = page.call("DOM.getFrameOwner", {"frameId": frame.id}, parent.session)["backendNodeId"]
        owner = {"backendNodeId": node, "executionContextId": parent.context}
        held = page.call("DOM.resolveNode", owner, parent.session)["object"]["objectId"]
        asking = {"objectId": held, "functionDeclaration": script("owner"), "returnByValue": True}
        visible[frame.id] = page.call("Runtime.callFunctionOn", asking, parent.session)["result"]["value"]
    return visible


def _depth(frame: Frame, by_id: dict[str, Frame]) -> int:
    return 0 if frame.parent not in by_id else 1 + _depth(by_id[frame.parent], by_id)
