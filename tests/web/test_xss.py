"""Hostile texts in every field of every page: each stays the text that it is."""

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from interlock.agents import Ask, Remote
from interlock.core.text import one_line
from interlock.graph import journal_path
from interlock.journal import Journal
from interlock.reservations import open_reservations
from interlock.web.pages import readable
from tests.graph.conftest import Project, Scripted, build, make_project
from tests.graph.test_objections import objecting
from tests.web.conftest import Browser, World
from tests.web.hostile import LONG, STRINGS, Texts, groups, harmless, keep, write_run, write_ticket
from tests.web.markup import Markup

RUN = "HOSTILE-1.1"


def folder(base: Path, text: Texts) -> Path:
    """Make a project's folder whose name is hostile."""
    name = re.sub(r"[\x00/]", "|", text()).encode("utf-8", "ignore")[:120].decode("utf-8", "ignore").strip(" .")
    path = base / (name or "x")
    path.mkdir(parents=True)
    return path


def reserve(root: Path, text: Texts) -> None:
    """Let somebody hold, ask for and wait for files, all with hostile names and reasons."""
    ann, bob = (open_reservations(str(root), "cli", name=name) for name in ("ann", "bob"))
    for number in range(3):
        pattern = f"src/{number} " + re.sub(r"[*?\[\]{}!\\/]", "_", one_line(text()))[:100].strip()
        ann.reserve_files([pattern], one_line(text())[:200])
        bob.negotiate_release(pattern, one_line(text())[:200], "normal")
    ann.runtime.store.close()
    bob.runtime.store.close()


def real_runs(root: Path, text: Texts) -> tuple[str, str]:
    """Make a run that waits for its builder, whose last answer was refused, and one with an objection; all hostile."""
    project = make_project(root)
    path = project.root / "interlock.toml"
    title = json.dumps(one_line(text())[:200], ensure_ascii=False)
    path.write_text(path.read_text().replace('title = "no tabs"', f"title = {title}") + "\n[run]\nreserve = false\n")
    project.task = replace(project.task, task=re.sub(r"[^ -~]", "?", text())[:400])
    project.runners["builder"] = Remote.REMOTE
    run_id = project.start()
    project.drive(run_id)
    project.drive(run_id, builder=text())
    reason = re.sub(r"[^ -~]", "?", text())[:300]
    project.runners["builder"] = Scripted([objecting(f"GATE-TESTS: OBJECTION: {reason}")])
    project.task = replace(project.task, task_id="OBJECT-1")
    objected = project.run()
    assert objected.question is not None
    return run_id, objected.run_id


def pages_of(
    browser: Browser, root: Path, key: str, text: Texts, real: str, objected: str
) -> Iterator[tuple[str, str]]:
    """Yield every page with texts of others, by a name that is the same for other texts."""
    runs = f"/{key}/runs/{RUN}"
    journal = Journal(journal_path(root))
    entries = list(journal.entries(RUN))
    refused = next(entry.seq for entry in journal.entries(real) if entry.type == "answer")
    answers = [entry.seq for entry in entries if entry.type == "answer"]
    paths: Mapping[str, str] = {
        "inbox": "/",
        "board": "/board",
        "run": runs,
        "run, whole": f"{runs}?all=1",
        **{f"answer {n}": f"{runs}/answers/{seq}" for n, seq in enumerate(answers)},
        "evidence": f"{runs}/evidence",
        "evidence of one": f"{runs}/evidence?before=0&after=1",
        "journal": f"/{key}/journal",
        "leases": f"/{key}/leases",
        "real changes": f"/{key}/runs/{real}/changes",
        "real run": f"/{key}/runs/{real}",
        "real answer": f"/{key}/runs/{real}/answers/{refused}",
        "form": f"/{key}/runs/{real}/answer/builder",
        "objection": f"/{key}/runs/{objected}/decide",
        "start": f"/{key}/start",
        "start like": f"/{key}/start?like={real}",
    }
    for name, path in paths.items():
        answer = browser.get(path)
        assert answer.status_code == 200, (name, answer.text[-3000:])
        yield name, answer.text
    asked = quote(text()[-3000:].encode("utf-8", "ignore"), safe="")
    for name, path in {
        "board asked": f"/board?q={asked}&status={asked}&role={asked}&gate={asked}&page={asked}&project={asked}",
        "journal asked": f"/{key}/journal?run={asked}&type={asked}&page={asked}",
        "evidence asked": f"{runs}/evidence?before={asked}&after={asked}",
        "form asked": f"/{key}/runs/{real}/answer/builder?output={asked}&reasons={asked}&inputs={asked}",
        "no run": f"/{key}/runs/{asked}",
        "no project": f"/{asked}/journal",
        "no answer": f"{runs}/answers/{asked}",
        "no file": f"{runs}/files/{asked}",
        "no role": f"/{key}/runs/{real}/answer/{asked}",
        "no page": f"/{asked}",
        "no candidates": f"/{key}/candidates/{asked}",
    }.items():
        yield name, browser.get(path).text
    said = text().encode("utf-8", "ignore").decode()
    names = "output reasons inputs outcome ask_id file reason lease thread task task_id scope models mark run"
    fields = dict.fromkeys(names.split(), said)
    for name, path in {
        "preview": f"/{key}/runs/{real}/answer/builder/preview",
        "preview of a text": f"/{key}/runs/{real}/answer/builder/preview",
        "ask": f"/{key}/leases/ask",
        "release": f"/{key}/leases/release",
        "respond": f"/{key}/leases/respond",
        "start": f"/{key}/start",
        "restore": f"/{key}/runs/{real}/restore",
        "dismiss": f"/{key}/dismiss",
        "queue": f"/{key}/runs/{real}/queue",
    }.items():
        more = {"text": said} if name == "preview of a text" else {}
        yield name, browser.post(path, **{**fields, **more}).text


def made(over: Callable[..., World], base: Path, text: Texts) -> dict[str, str]:
    """Make a world of hostile texts and return its pages."""
    root = folder(base, text)
    real, objected = real_runs(root, text)
    write_run(root, RUN, text)
    write_run(root, "ODD-1.1", text, closed=False)
    write_run(root, text.name(), text)
    write_ticket(root, text.name(), text)
    reserve(root, text)
    world = over(root, name=text.name())
    browser = world.browser("decide")
    key = re.findall(r'<a href="/[^/"]+/([^/"]+)/leases"', browser.get("/").text)[0]
    # The random path of the pages differs from world to world.
    pages = pages_of(browser, root, key, text, real, objected)
    return {name: page.replace(world.sessions.base, "/path") for name, page in pages}


JUDGED: Final = ("real ", "form", "preview", "ask", "release", "respond")
"""Pages with what the rules find in a text: other findings in another text, of the same elements."""


def compared(over: Callable[..., World], base: Path, texts: tuple[str, ...]) -> dict[str, list[str]]:
    """Return what is wrong with pages that hold these texts, beside pages that hold harmless ones of the same form."""
    pages = made(over, base / "hostile", Texts(texts))
    hostile = {name: Markup(page) for name, page in pages.items()}
    plain = {name: Markup(page) for name, page in made(over, base / "plain", Texts(texts, harmless)).items()}
    assert set(hostile) == set(plain)
    known = set[tuple[str, ...]]().union(*(page.kinds for page in plain.values()))
    wrong: dict[str, list[str]] = {}
    for name, page in hostile.items():
        faults = [*page.faults, *map(str, page.kinds - known)]
        if not faults and not name.startswith(JUDGED) and page.parts != plain[name].parts:
            pairs = zip(page.parts, plain[name].parts, strict=False)
            first = next((n for n, pair in enumerate(pairs) if pair[0] != pair[1]), -1)
            faults.append(f"{page.parts[first - 2 : first + 3]} is {plain[name].parts[first - 2 : first + 3]}")
        if faults:
            wrong[name] = faults
    seen = html.unescape("".join(pages.values()))
    for text in texts:
        missing = [part for part in parts_of(text) if str(readable(part)) not in seen]
        if missing:
            wrong[f"not shown as it is: {missing}"] = [text]
    return wrong


def parts_of(text: str) -> list[str]:
    """Return the texts of a group that a parser leaves as they are."""
    return [part for part in STRINGS if part in text and "\r" not in part]


def test_no_text_of_anybody_becomes_part_of_a_page(over: Callable[..., World], tmp_path: Path) -> None:
    assert len(STRINGS) >= 600
    assert compared(over, tmp_path, groups(12)) == {}


@pytest.mark.long
@pytest.mark.alternate
@pytest.mark.parametrize("text", groups(30), ids=lambda text: text[:0] or None)
def test_no_text_becomes_part_of_any_field(text: str, over: Callable[..., World], tmp_path: Path) -> None:
    assert compared(over, tmp_path, (text,)) == {}


@pytest.mark.long
def test_a_long_text_stays_in_its_field(over: Callable[..., World], tmp_path: Path) -> None:
    texts = tuple(text for long in LONG for text in (long, *["short"] * 5))
    assert compared(over, tmp_path, texts) == {}


_TEXT: Final = "text/plain; charset=utf-8"
PNG: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100"
    "c9fe92ef0000000049454e44ae426082"
)
_SCRIPT: Final = b"<html><script>alert(1)</script></html>"
FILES: Final = {
    "html.png": (_SCRIPT, _TEXT),
    "picture.svg": (b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script>', _TEXT),
    "paper.pdf": (b"%PDF-1.7\n1 0 obj<</OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj", _TEXT),
    "behind.png": (PNG + _SCRIPT, "image/png"),
    "within.png": (PNG[:33] + b"\0\0\0\x20tEXt<script>alert(1)</script>" + PNG[33:], "image/png"),
    "script.jpg": (b"\xff\xd8\xff\xe0\x2f\x2a*/=alert(1);/*", "image/jpeg"),
    "x.webp": (b"RIFF/*\0\0WEBP*/=alert(1)" + _SCRIPT, "image/webp"),
    "gif.gif": (b"GIF89a/*" + _SCRIPT + b"*/=alert(1)", _TEXT),
    "utf7.log": (b"+ADw-script+AD4-alert(1)+ADw-/script+AD4-", _TEXT),
    "utf16.log": ("\ufeff<script>alert(1)</script>".encode("utf-16"), _TEXT),
    "xml.log": (b"<?xml version='1.0'?><x:script xmlns:x='http://www.w3.org/1999/xhtml'>alert(1)</x:script>", _TEXT),
    "x\"; filename*=UTF-8''a.html\r\nx: y": (b"\0<!doctype html><script>", _TEXT),
    "javascript.js": (b"alert(1)", _TEXT),
    "mhtml.log": (b"Content-Type: multipart/related; boundary=x\n\n--x\nContent-Type: text/html\n\n" + _SCRIPT, _TEXT),
}
"""Files that are more than one thing, with the type that each is served as."""


def cite(root: Path, named: Mapping[str, tuple[bytes, str]] = FILES) -> dict[str, str]:
    """Write a run that names evidence files, and return their digests."""
    digests = {name: keep(root, data) for name, (data, _) in named.items()}
    rows = [
        {"key": "reports", "path": f"artifacts/reports/{name}", "sha256": sha256} for name, sha256 in digests.items()
    ]
    shots = [{**row, "key": "screenshots"} for row in rows]
    line = {"attempt": 1, "role": "qa", "gate": "GATE-X", "ok": True, "tree": "", "files": shots, "findings": []}
    task = {"task": {"task_id": "FILES-1", "task": "t", "gates_required": ["GATE-X"]}}
    Journal(journal_path(root)).extend("FILES-1.1", [("1", "run_started", task), ("2", "evidence", line)])
    return digests


def test_a_file_of_the_evidence_is_served_as_a_picture_or_as_plain_text_that_runs_nothing(
    over: Callable[..., World], tmp_path: Path
) -> None:
    root = tmp_path / "files"
    digests = cite(root)
    browser = over(root).browser("read")
    for name, sha256 in digests.items():
        answer = browser.get(f"/files/runs/FILES-1.1/files/{sha256}")
        assert answer.headers["content-type"] == FILES[name][1], name
        assert answer.content == FILES[name][0]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox; frame-ancestors 'none'"
        assert re.fullmatch(r'|inline; filename="[\w.-]*\.txt"', answer.headers.get("content-disposition", "")), name
    assert not Markup(browser.get("/files/runs/FILES-1.1/evidence").text).faults


def test_names_and_lines_of_changed_files_stay_text(over: Callable[..., World], project: Project) -> None:
    names = [re.sub(r"[\x00-\x1f/*?\[\]{}!\\]", "_", text)[:80].strip() for text in STRINGS[::60] if text.isascii()]

    def hostile(ask: Ask) -> str:
        lines = "\n".join(STRINGS).replace("\0", "").encode("utf-8", "ignore")
        for name in names:
            (project.root / "src" / name).write_bytes(lines + b"\n%d\n" % ask.attempt)
        return build("hi\n")(ask)

    project.runners["builder"] = Scripted([hostile] * 3)
    run = project.run().run_id
    browser = over(project.root).browser()
    browser.post(f"/hello/runs/{run}/comment", attempt="1", path=f"src/{names[0]}", line="1", text=STRINGS[0])
    for query in ("?from=base", "?from=1&to=2", f"?from={quote(STRINGS[3])}"):
        page = browser.get(f"/hello/runs/{run}/changes{query}").text
        assert not Markup(page).faults, query
    assert STRINGS[5] in html.unescape(browser.get(f"/hello/runs/{run}/changes?from=base").text)
