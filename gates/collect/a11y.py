"""axe-core in an isolated world of every frame, its results merged into one report without clock or host."""

import importlib.util
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from interlock.gates.collect.cdp import CdpError
from interlock.gates.collect.errors import collector_error
from interlock.gates.collect.page import Frame, Page, script
from interlock.gates.collect.site import Target

A11Y_SCHEMA: Final = "interlock.a11y/1"
TAGS: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa")
"""WCAG 2.2 level AA and everything below it."""

PAGE_RULES: Final = ("aria-hidden-body", "document-title", "html-has-lang", "meta-viewport")
"""Rules about a whole page, which axe applies to the outermost document alone."""

WIDTHS: Final = (375, 1280)
"""Contrast and target size depend on the layout: the narrow one and the wide one are both judged."""

LISTS: Final = ("violations", "incomplete", "passes", "inapplicable")

_IMPACTS: Final = ("minor", "moderate", "serious", "critical")

_RULE_KEYS: Final = ("id", "impact", "tags", "description", "help", "helpUrl")
_NODE_KEYS: Final = ("target", "html", "impact", "failureSummary")


def axe_source() -> str:
    """Return axe-core's own text.

    Raises:
        CollectorError: COL310 when the package that carries it is not installed.
    """
    spec = importlib.util.find_spec("axe_playwright_python")
    path = Path(spec.origin).parent / "axe.min.js" if spec is not None and spec.origin else None
    if path is None or not path.is_file():
        raise collector_error("COL310", "axe-core is not installed.")
    return path.read_text(encoding="utf-8")


def audit(page: Page, source: str) -> tuple[str, list[dict[str, Any]]]:
    """Run axe in every frame of a page.

    Args:
        page: A page at rest.
        source: The text of axe-core.

    Returns:
        The version of axe-core, and for each frame its address and the four lists as axe made them.

    Raises:
        CollectorError: COL308 when a frame was not analysed, COL309 when the page hides its document from checkers.
    """
    page.still()
    frames = page.frames()
    version = ""
    audited: list[dict[str, Any]] = []
    children = 0
    _open_closed_shadows(page, frames)
    visible = _visible(page, frames)
    for frame in frames:
        if not visible[frame.id]:
            audited.append({"url": frame.url, "hidden": True, **{name: [] for name in LISTS}})
            continue
        if frame.failed:
            raise collector_error("COL308", f"The frame {frame.failed} did not load, so it was not analysed.")
        _refuse_clobbering(page, frame)
        try:
            page.evaluate(frame, f"{script('prepare')}\n{source}\n;0")
            without = PAGE_RULES if frame.parent else ()
            result = page.evaluate(frame, f"({script('audit')})({json.dumps(TAGS)}, {json.dumps(without)})")
        except CdpError as error:
            raise collector_error("COL308", f"axe could not analyse the frame {frame.url}: {error}.") from error
        version = result["version"]
        children += result["children"]
        audited.append({"url": frame.url, "hidden": False, **{name: result[name] for name in LISTS}})
    # A frame that came or went while axe ran, or that the browser did not show, must not be skipped.
    if len(frames) - 1 < children or len(page.frames()) != len(frames):
        raise collector_error("COL308", f"{page.name} has {children} frames, and {len(frames) - 1} could be analysed.")
    page.check()
    return version, audited


def merge(target: Target, version: str, runs: Iterable[tuple[int, list[dict[str, Any]]]]) -> dict[str, Any]:
    """Merge the runs of all widths and frames into the report.

    A rule stands once for each list and frame; its nodes say at which widths they were found. Nodes are kept for
    violations and for what axe could not decide (`incomplete`); the other lists give their number.
    """
    rules: dict[str, dict[tuple[int, str], dict[str, Any]]] = {name: {} for name in LISTS}
    numbers: dict[tuple[str, int], int] = {}
    frames: dict[int, dict[str, Any]] = {}
    widths: list[int] = []
    for width, audited in runs:
        widths.append(width)
        seen: Counter[str] = Counter()
        for frame in audited:
            # A layout may have a frame at one width alone; the n-th one of an address is the same at every width.
            number = numbers.setdefault((frame["url"], seen[frame["url"]]), len(numbers))
            seen[frame["url"]] += 1
            row = frames.setdefault(number, {"id": number, "url": frame["url"], "hidden": True, "error": None})
            row["hidden"] = row["hidden"] and frame["hidden"]
            for name in LISTS:
                for found in frame[name]:
                    _add(rules[name], found, number, width, with_nodes=name in ("violations", "incomplete"))
    return {
        "schema": A11Y_SCHEMA,
        "target": target.text,
        "engine": {"name": "axe-core", "version": version},
        "tags": list(TAGS),
        "widths": widths,
        "frames": [frames[number] for number in sorted(frames)],
        **{name: [rules[name][key] for key in sorted(rules[name])] for name in LISTS},
    }


def _add(
    rules: dict[tuple[int, str], dict[str, Any]], found: dict[str, Any], frame: int, width: int, *, with_nodes: bool
) -> None:
    """Add one rule's result at one width to the merged list."""
    rule = rules.setdefault(
        (frame, found["id"]),
        {**{key: found.get(key) for key in _RULE_KEYS}, "frame": frame, "widths": [], "nodes": []},
    )
    rule["widths"].append(width)
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
        known[name]["widths"].append(width)


def _severity(impact: str | None) -> int:
    """Rank an impact; one that is not known is the worst, so that no merge can soften it."""
    return _IMPACTS.index(impact) if impact in _IMPACTS else len(_IMPACTS)


def _refuse_clobbering(page: Page, frame: Frame) -> None:
    """Refuse a document whose element names stand in for DOM properties."""
    names = page.evaluate(frame, script("guard"))
    if names:
        raise collector_error("COL309", f"In {frame.url} elements take the names {', '.join(names[:5])}.")


def _visible(page: Page, frames: list[Frame]) -> dict[str, bool]:
    """Say of each frame whether anybody can perceive it; axe leaves the others out, and so does this.

    The page itself is, and a frame in a hidden one is not.
    """
    by_id = {frame.id: frame for frame in frames}
    visible: dict[str, bool] = {}
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
    """Return how many frames hold this one."""
    return 0 if frame.parent not in by_id else 1 + _depth(by_id[frame.parent], by_id)


def _open_closed_shadows(page: Page, frames: list[Frame]) -> None:
    """Let each isolated world see into closed shadow roots; the page's own world still cannot."""
    by_id = {frame.id: frame for frame in frames}
    for session in dict.fromkeys(frame.session for frame in frames):
        document = page.call("DOM.getDocument", {"depth": -1, "pierce": True}, session)["root"]
        for frame_id, *nodes in _closed_shadows(document, page.root_frame(session)):
            frame = by_id[frame_id]
            wanted = [{"backendNodeId": node, "executionContextId": frame.context} for node in nodes]
            host, root = (page.call("DOM.resolveNode", node, session)["object"]["objectId"] for node in wanted)
            opening = {"functionDeclaration": script("open-shadow"), "arguments": [{"objectId": root}]}
            page.call("Runtime.callFunctionOn", {"objectId": host, **opening}, session)


def _closed_shadows(node: dict[str, Any], frame: str) -> Iterator[tuple[str, int, int]]:
    """Yield frame id, host and root (backend node ids) of every closed shadow root below a DevTools DOM node."""
    todo = [(node, frame)]
    while todo:
        node, frame = todo.pop()
        for root in node.get("shadowRoots", []):
            if root.get("shadowRootType") == "closed":
                yield frame, node["backendNodeId"], root["backendNodeId"]
            todo.append((root, frame))
        todo.extend((child, frame) for child in node.get("children", []))
        if "contentDocument" in node:
            todo.append((node["contentDocument"], node["frameId"]))
