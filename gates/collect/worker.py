"""The child process that drives the browser: one JSON job on stdin, files into a folder, one JSON answer on stdout.

It lives in a process group of its own with its browser. When the parent goes away stdin ends, and the group goes too.
"""

import json
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from interlock.core.process import signal_group
from interlock.gates.collect import a11y, visual
from interlock.gates.collect.browser import Browser
from interlock.gates.collect.cdp import CdpError, Connection
from interlock.gates.collect.engines import load_engines
from interlock.gates.collect.errors import collector_error
from interlock.gates.collect.look import Look, between, watch
from interlock.gates.collect.page import Cookie, Page
from interlock.gates.collect.site import Target
from interlock.gates.errors import CollectorError


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Do one job.

    Args:
        job: `target` (text, url, folder), `categories`, `browser`, `folder` for the files, `timeout_seconds`,
            `look`.

    Returns:
        `files`: pairs of EVIDENCE key and file name; `made_with`: browser and engines with their versions.

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
    """Visit the page at every width, with and without reduced motion, and write the files of the wanted categories."""
    used = load_engines() if "a11y" in wanted else ()
    views = [
        Page(connection, target, width, motion, look.scheme, look.cookie)
        for width in visual.WIDTHS
        for motion in look.motions
    ]
    watch(connection, views, look.seconds)
    files: list[list[str]] = []
    logs: list[list[dict[str, Any]]] = []
    audits: list[a11y.Audit] = []
    if used:
        connection.waiting_for = f"the analysis of {target.text}"
        audits = a11y.audit(views, used)
    for page in views:
        if "screenshots" in wanted and page.motion == look.motions[0]:
            connection.waiting_for = f"a screenshot of {target.text} at {page.width} px"
            name = visual.write(folder, f"{target.slug}-{page.width}.png", visual.take_screenshot(page))
            files.append(["screenshots", name])
    if used:
        connection.waiting_for = f"the analysis of {target.text} between the usual widths"
        for _ in between(connection, views[-1]):
            audits += a11y.audit(views[-1:], used)
    for page in views:
        page.check()
        logs.append(page.recorder.records())
    for page in views:
        page.close()
    if "console" in wanted:
        log = visual.console_log(target, logs)
        files.append(["console", visual.write(folder, f"{target.slug}.jsonl", log)])
    if used:
        report = json.dumps(a11y.merge(target, used, audits), indent=1, ensure_ascii=True).encode() + b"\n"
        files.append(["a11y", visual.write(folder, f"{target.slug}.axe.json", report)])
    return files, [f"{engine.name}/{engine.version}" for engine in used]


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
