"""The pages in a real browser where there is much of everything, or all of it is hostile."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from playwright.sync_api import expect

from interlock.graph import journal_path
from interlock.journal import Journal, canonical
from tests.graph.conftest import make_project
from tests.web.browsing import Visit, served
from tests.web.hostile import Texts, groups, write_run, write_ticket

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]


@pytest.mark.long
def test_ten_thousand_runs_are_walked_and_searched(tmp_path: Path, opened: Open) -> None:
    project = make_project(tmp_path / "hello")
    run = project.run().run_id
    lines = [entry for entry in project.entries() if entry.run == run]
    with journal_path(project.root).open("ab") as file:
        for number in range(10_000):
            prev = "0" * 64
            for entry in lines[:3]:
                line = {**asdict(entry), "run": f"COPY-{number:05}.1", "prev": prev}
                del line["hash"]
                prev = hashlib.sha256(canonical(line)).hexdigest()
                file.write(canonical({**line, "hash": prev}) + b"\n")
    with served(project.root) as server:
        window = opened(server)
        page = window.open("/board")
        window.sees("10001 runs")
        start = time.monotonic()
        page.get_by_role("link", name="Older").click()
        page.wait_for_url("**page=2")
        page.get_by_label("Search").fill("copy-04321")
        page.get_by_role("button", name="Filter").click()
        window.sees("COPY-04321.1")
        assert time.monotonic() - start < 10
        window.open("/")
        window.open("/hello/journal")


@pytest.mark.long
def test_hostile_texts_run_nothing_in_a_browser(tmp_path: Path, opened: Open) -> None:
    root = tmp_path / "hello"
    root.mkdir()
    texts = Texts(groups(12))
    write_run(root, "HOSTILE-1.1", texts)
    write_run(root, "ODD-1.1", texts, closed=False)
    write_ticket(root, "T-1", texts)
    entries = [entry for entry in Journal(journal_path(root)).entries() if entry.run == "HOSTILE-1.1"]
    runs = "/hello/runs/HOSTILE-1.1"
    digests = [row["sha256"] for entry in entries if entry.type == "evidence" for row in entry.data["files"]]
    answers = [entry.seq for entry in entries if entry.type == "answer"]
    with served(root) as server:
        window = opened(server)
        page = window.page
        paths = ["/", "/board", "/hello/journal", runs, f"{runs}?all=1", f"{runs}/evidence"]
        paths += [f"{runs}/answers/{seq}" for seq in answers]
        for path in paths:
            window.open(path)
            for summary in page.locator("summary").all()[:40]:
                summary.click()
            assert innocent(page.evaluate(ELEMENTS)) == [], path
        window.open(runs)
        writer = Texts(groups(12))
        for number in range(60):
            data = {"by": writer(), "path": writer(), "line": number, "text": writer()}
            Journal(journal_path(root)).append("HOSTILE-1.1", f"live {number}", "comment", data)
        expect(page.locator("#log li")).to_have_count(len(entries) + 60, timeout=20_000)
        assert innocent(page.evaluate(ELEMENTS)) == []
        for digest in digests:
            answer = window.page.request.get(f"{server.url}{runs}/files/{digest}")
            assert answer.headers["content-type"] in ("text/plain; charset=utf-8", "image/png")


ELEMENTS = """() => [...document.querySelectorAll("*")].map(
    e => [e.localName, ...[...e.attributes].map(a => a.name + "=" + a.value)])"""
NEVER = {"iframe", "object", "embed", "base", "style", "math", "template", "audio", "video", "frame", "animate", "set"}


def innocent(elements: list[list[str]]) -> list[str]:
    """Return what of a document's elements could run."""
    found = [name for name, *_ in elements if name in NEVER]
    found += ["script"] * (sum(name == "script" for name, *_ in elements) - 2)
    for name, *attributes in elements:
        for attribute in attributes:
            key, _, value = attribute.partition("=")
            if key.startswith(("on", "style", "srcdoc")) or (
                key in ("href", "src", "action", "formaction") and not value.startswith(("/", "?", "#"))
            ):
                found.append(f"{name} {attribute}")
    return found
