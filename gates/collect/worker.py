"""The child process that drives the browser: one JSON job on stdin, files into a folder, one JSON answer on stdout.

It lives in a process group of its own with its browser. When the parent goes away stdin ends, and the group goes too.
"""

import base64
import json
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from interlock.core.process import signal_group
from interlock.gates.checks.console import SCHEMA
from interlock.gates.collect import a11y
from interlock.gates.collect.browser import Browser
from interlock.gates.collect.cdp import CdpError, Connection
from interlock.gates.collect.engines import load_engines
from interlock.gates.collect.errors import collector_error
from interlock.gates.collect.look import Look, watch
from interlock.gates.collect.page import HEIGHTS, MAX_HEIGHT, Cookie, Page
from interlock.gates.collect.site import Target
from interlock.gates.errors import CollectorError


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Do one job, and return pairs of EVIDENCE key and name as `files`, browser and engines as `made_with`.

    The job: `target` (text, url, folder), `categories`, `browser`, `folder` for the files, `timeout_seconds`, `look`.

    Raises:
        CollectorError: Any of the table in `errors`.
    """
    target = Target(**job["target"])
    folder = Path(job["folder"])
    profile = folder / "profile"
    profile.mkdir()
    browser = Browser(job["browser"], profile, target.proxy_bypass, sys.stderr.buffer)
    try:
        deadline = time.monotonic() + job["timeout_seconds"]
        connection = Connection(browser.read_fd, browser.write_fd, deadline)
        product = connection.call("Browser.getVersion")["product"]
        connection.call("Browser.setDownloadBehavior", {"behavior": "deny"})
        wait = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
        connection.call("Target.setAutoAttach", wait)
        files, tools = _collect(connection, target, set(job["categories"]), folder, _look(job["look"]))
    except CdpError as error:
        raise collector_error("COL310", f"The browser refused a command: {error}.") from error
    finally:
        browser.close()
    return {"files": files, "made_with": ", ".join((product, *tools))}


def _look(given: dict[str, Any]) -> Look:
    look = Look(**given)
    return look if given["cookie"] is None else replace(look, cookie=Cookie(**given["cookie"]))


def _collect(
    connection: Connection, target: Target, wanted: set[str], folder: Path, look: Look
) -> tuple[list[list[str]], list[str]]:
    """Visit the page at every width, and write the files of the wanted categories."""
    used = load_engines() if "a11y" in wanted else ()
    views = [Page(connection, target, width, look.scheme, look.cookie) for width in HEIGHTS]
    watch(connection, views, look.seconds)
    files: list[list[str]] = []

    def put(category: str, name: str, data: bytes) -> None:
        (folder / name).write_bytes(data)
        files.append([category, name])

    records: list[dict[str, Any]] = []
    audits: list[a11y.Audit] = []
    if used:
        connection.waiting_for = f"the analysis of {target.text}"
        audits = a11y.audit(views, used)
    for page in views:
        if "screenshots" in wanted:
            connection.waiting_for = f"a screenshot of {target.text} at {page.width} px"
            put("screenshots", f"{target.slug}-{page.width}.png", take_screenshot(page))
    for page in views:
        page.check()
        records += page.recorder.records()
    for page in views:
        page.close()
    if "console" in wanted:
        put("console", f"{target.slug}.jsonl", console_log(target, records))
    if used:
        report = json.dumps(a11y.merge(target, used, audits), indent=1, ensure_ascii=True).encode() + b"\n"
        put("a11y", f"{target.slug}.axe.json", report)
    return files, [f"{engine.name}/{engine.version}" for engine in used]


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


def console_log(target: Target, records: list[dict[str, Any]]) -> bytes:
    """Return the console evidence: a header, then one record a line, in canonical JSON."""
    header = {"schema": SCHEMA, "target": target.text, "widths": list(HEIGHTS), "records": len(records)}
    return b"".join(json.dumps(row, ensure_ascii=True).encode() + b"\n" for row in (header, *records))


def _end_with_parent() -> None:
    """Wait for the end of stdin, which the parent holds open, then end the whole process group."""
    while os.read(0, 1):
        pass
    signal_group(os.getpgrp())


def main() -> int:
    """Read the job, do it, print the answer; exit 1 with `error` in the answer when there is no evidence."""
    job = cast("dict[str, Any]", json.loads(sys.stdin.buffer.readline()))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        answer: dict[str, Any] = work(job)
    except CollectorError as error:
        answer = {"error": {"code": error.code, "message": error.message, "fix": error.fix}}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main())
