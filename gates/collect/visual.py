"""Screenshots at the three widths, and what the page said on its console at each."""

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

from interlock.gates.checks.console import SCHEMA
from interlock.gates.collect.page import HEIGHTS, MAX_HEIGHT, Page
from interlock.gates.collect.site import Target

WIDTHS: Final = tuple(HEIGHTS)


def take_screenshot(page: Page) -> bytes:
    """Return the whole page as PNG bytes, one pixel for one CSS pixel, nothing moving, at most MAX_HEIGHT high."""
    page.still()
    content = page.call("Page.getLayoutMetrics")["cssContentSize"]
    if content["width"] > page.width:
        page.recorder.console(
            "warning", f"interlock: the page is {content['width']:.0f} px wide in a window of {page.width} px"
        )
    height = max(1, min(int(content["height"]), MAX_HEIGHT))
    clip = {"x": 0, "y": 0, "width": page.width, "height": height, "scale": 1}
    answer = page.call("Page.captureScreenshot", {"format": "png", "clip": clip, "captureBeyondViewport": True})
    page.check()
    return base64.b64decode(answer["data"])


def console_log(target: Target, logs: list[list[dict[str, Any]]]) -> bytes:
    """Return the console evidence: a header, then one record a line, in canonical JSON.

    Of the views of one width, a record that the first has too is left out of the second.
    """
    records: list[dict[str, Any]] = []
    known: Counter[str] = Counter()
    for log in logs:
        seen: Counter[str] = Counter()
        for record in log:
            name = json.dumps({**record, "motion": ""})
            seen[name] += 1
            if seen[name] > known[name]:
                records.append(record)
        known |= seen
    header = {"schema": SCHEMA, "target": target.text, "widths": list(WIDTHS), "records": len(records)}
    return b"".join(json.dumps(row, ensure_ascii=True).encode() + b"\n" for row in (header, *records))


def write(folder: Path, name: str, data: bytes) -> str:
    """Put a file into the worker's folder and return its name."""
    (folder / name).write_bytes(data)
    return name
