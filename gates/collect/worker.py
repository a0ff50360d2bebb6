"""The child process that drives the browser: one JSON job on stdin, files into a folder, one JSON answer on stdout.

It lives in a process group of its own with its browser. When the parent goes away stdin ends, and the group goes too.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

from interlock.gates.collect import a11y, visual
from interlock.gates.collect.browser import Browser
from interlock.gates.collect.cdp import CdpError, Connection
from interlock.gates.collect.errors import collector_error
from interlock.gates.collect.page import Page
from interlock.gates.collect.site import Target
from interlock.gates.errors import CollectorError


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Do one job.

    Args:
        job: `target` (text, url, folder), `categories`, `browser`, `folder` for the files, `timeout_seconds`.

    Returns:
        `files`: pairs of EVIDENCE key and file name; `made_with`: browser and axe with their versions.

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
        files, tools = _collect(connection, target, set(job["categories"]), folder)
    except CdpError as error:
        raise collector_error("COL310", f"The browser refused a command: {error}.") from error
    finally:
        browser.close()
    return {"files": files, "made_with": ", ".join((product, *tools))}


def _collect(
    connection: Connection, target: Target, wanted: set[str], folder: Path
) -> tuple[list[list[str]], list[str]]:
    """Visit the page at every width that the wanted categories need, and write their files."""
    axe = a11y.axe_source() if "a11y" in wanted else ""
    widths = sorted({*(visual.WIDTHS if wanted & {"screenshots", "console"} else ()), *(a11y.WIDTHS if axe else ())})
    files: list[list[str]] = []
    records: list[dict[str, Any]] = []
    audits: list[tuple[int, list[dict[str, Any]]]] = []
    version = ""
    for width in widths:
        page = Page(connection, target, width)
        connection.handler = page.handle
        page.open()
        if axe and width in a11y.WIDTHS:
            connection.waiting_for = f"axe to analyse {target.text} at {width} px"
            version, audited = a11y.audit(page, axe)
            audits.append((width, audited))
        if "screenshots" in wanted:
            connection.waiting_for = f"a screenshot of {target.text} at {width} px"
            name = visual.write(folder, f"{target.slug}-{width}.png", visual.take_screenshot(page))
            files.append(["screenshots", name])
        page.check()
        records += page.recorder.records()
        page.close()
    if "console" in wanted:
        log = visual.console_log(target, widths, records)
        files.append(["console", visual.write(folder, f"{target.slug}.jsonl", log)])
    if axe:
        report = json.dumps(a11y.merge(target, version, audits), indent=1, ensure_ascii=True).encode() + b"\n"
        files.append(["a11y", visual.write(folder, f"{target.slug}.axe.json", report)])
    return files, [f"axe-core/{version}"] if axe else []


def _end_with_parent() -> None:
    """Wait for the end of stdin, which the parent holds open, then end the whole process group."""
    while os.read(0, 1):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)


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
