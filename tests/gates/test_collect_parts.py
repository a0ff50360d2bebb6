"""The parts of the collector that need no browser: finding one, serving files, reading a target, keeping records."""

import json
import os
import threading
import time
from dataclasses import fields
from pathlib import Path

import pytest

from interlock.gates.collect import collect
from interlock.gates.collect.a11y import Audit, AuditedFrame, merge
from interlock.gates.collect.browser import NAMES, find_browser
from interlock.gates.collect.cdp import Connection
from interlock.gates.collect.engines import (
    ACCESSLINT_LEFT_OUT,
    AXE_LEFT_OUT,
    AXE_VERSION,
    FILES,
    LISTS,
    load_engines,
)
from interlock.gates.collect.look import Look
from interlock.gates.collect.page import Cookie
from interlock.gates.collect.record import MAX_RECORDS, Recorder, describe_value
from interlock.gates.collect.site import ORIGIN, Target, resolve_target
from interlock.gates.config_tables import EvidenceConfig
from interlock.gates.errors import CollectorError
from interlock.graph import Policy
from tests.child import git
from tests.gates.collecting import BINDING
from tests.gates.support import put
from tests.refusals import raises_code
from tests.table import each_row


def program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_a_browser_is_found_in_the_stated_order(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    installed = program(tmp_path / ".cache/ms-playwright/chromium_headless_shell-1200/chrome-linux/headless_shell")
    assert find_browser(environ=environ) == installed
    for name in reversed(NAMES):
        expected = program(tmp_path / "bin" / name)
        assert find_browser(environ=environ) == expected
    wished = program(tmp_path / "mine" / "chrome")
    assert find_browser(environ={**environ, "INTERLOCK_BROWSER": wished}) == wished


@pytest.mark.parametrize("wish", ["/nowhere/chrome", "plain-file"])
def test_a_wished_browser_that_is_not_there_is_an_error_and_never_a_fallback(wish: str, tmp_path: Path) -> None:
    program(tmp_path / "chromium")
    (tmp_path / "plain-file").write_text("not a program")
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path), "INTERLOCK_BROWSER": wish}
    with raises_code(CollectorError, "COL301", wish):
        find_browser(environ=environ)


def test_without_a_browser_the_error_names_where_it_looked(tmp_path: Path) -> None:
    with raises_code(CollectorError, "COL301") as caught:
        find_browser(environ={"PATH": str(tmp_path), "HOME": str(tmp_path)})
    for name in (*NAMES, "INTERLOCK_BROWSER", "ms-playwright"):
        assert name in caught.value.message
    assert "apt-get install chromium-headless-shell" in caught.value.fix


def site(tmp_path: Path) -> Target:
    put(tmp_path, "site/index.html", "<p>index")
    put(tmp_path, "site/deep/index.html", "<p>deep")
    put(tmp_path, "site/a b.css", "p {}")
    put(tmp_path, "site/strict.xhtml", "<p/>")
    put(tmp_path, "secret.txt", "secret")
    (tmp_path / "site/link.txt").symlink_to("../secret.txt")
    (tmp_path / "site/linked").symlink_to("..")
    return resolve_target("site/index.html", tmp_path)


SERVED = {
    "/index.html": (200, "text/html; charset=utf-8", b"<p>index"),
    "/": (200, "text/html; charset=utf-8", b"<p>index"),
    "/deep/": (200, "text/html; charset=utf-8", b"<p>deep"),
    "/a%20b.css?v=2#x": (200, "text/css; charset=utf-8", b"p {}"),
    "/strict.xhtml": (200, "application/xhtml+xml", b"<p/>"),
    "/favicon.ico": (204, "image/x-icon", b""),
}


OUTSIDE = (
    "/missing.js",
    "/link.txt",
    "/linked/secret.txt",
    "/../secret.txt",
    "/%2e%2e/secret.txt",
    "/a%00b",
)


def test_files_of_the_folder_are_served_with_their_type_and_nothing_outside_of_it(tmp_path: Path) -> None:
    target = site(tmp_path)
    assert {path: target.serve(ORIGIN + path) for path in SERVED} == SERVED
    assert {path: target.serve(ORIGIN + path)[0] for path in OUTSIDE} == dict.fromkeys(OUTSIDE, 404)


def checkout(root: Path) -> None:
    git(root, "init", "-q")
    put(root, ".gitignore", "dist/\n*.key\n:odd.html\n")
    for name in ("index.html", "site/index.html", "dist/index.html", "site/artifacts/a.js", ":odd.html", *PRIVATE):
        put(root, name, "x")


PRIVATE = (
    ".env",
    ".git/config",
    "site/.cache/x.js",
    "artifacts/console/T-1/1/page.jsonl",
    "Artifacts/x.js",
    "server.key",
    "dist/app.js",
)


@pytest.mark.parametrize("path", PRIVATE)
def test_what_belongs_to_no_page_is_neither_served_nor_taken_for_one(path: str, tmp_path: Path) -> None:
    checkout(tmp_path)
    target = resolve_target("index.html", tmp_path)
    assert target.serve(f"{ORIGIN}/{path}")[0] == 404
    with raises_code(CollectorError, "COL302"):
        resolve_target(path, tmp_path)


def test_what_belongs_to_a_page_is_served_and_so_is_a_built_one_with_what_was_built_beside_it(tmp_path: Path) -> None:
    checkout(tmp_path)
    target = resolve_target("index.html", tmp_path)
    for path in ("index.html", "site/artifacts/a.js"):
        assert target.serve(f"{ORIGIN}/{path}")[0] == 200
    (tmp_path / "dist" / "x.key").write_text("x")
    assert resolve_target("dist/index.html", tmp_path).serve(f"{ORIGIN}/app.js")[0] == 200
    assert resolve_target(":odd.html", tmp_path).serve(f"{ORIGIN}/%3Aodd.html")[0] == 200


@pytest.mark.parametrize("wish", ["0.05", "31", "nan", "soon"])
def test_a_look_of_no_known_length_is_refused(wish: str) -> None:
    with raises_code(CollectorError, "COL302"):
        Look().chosen({"INTERLOCK_LOOK_SECONDS": wish})


def test_a_look_is_as_long_as_the_environment_says_and_else_as_the_project_does() -> None:
    assert Look(5).chosen({}) == Look(5)
    assert Look(5).chosen({"INTERLOCK_LOOK_SECONDS": "0.5"}) == Look(0.5)
    frozen = next(field.default for field in fields(Policy) if field.name == "look_seconds")
    assert EvidenceConfig().look_seconds == Look().seconds == frozen


@pytest.mark.parametrize("changed", FILES)
def test_an_engine_is_the_file_that_was_published(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_engines()[0].source[:15] == f"/*! axe v{AXE_VERSION}"
    monkeypatch.setitem(FILES, changed, "0" * 64)
    with pytest.raises(CollectorError, match=changed) as refused:
        load_engines()
    assert refused.value.code == "COL310"


ROUTES = {
    "https://interlock.test/x": "serve",
    "https://interlock.test.example/x": "block",
    "http://interlock.test/x": "block",
    "file:///etc/passwd": "block",
    "wss://interlock.test/x": "block",
}


def test_only_the_target_is_answered(tmp_path: Path) -> None:
    target = site(tmp_path)
    assert {url: target.route(url) for url in ROUTES} == ROUTES


SLUGS = {
    "http://h/": "index",
    "http://h/shop/cart.html?x": "shop-cart-html",
    "http://h/%C3%BCber/../x": "ber-x",
    "http://h/" + "long/" * 30: ("long-" * 12),
}


def test_evidence_is_named_after_its_page() -> None:
    assert {url: resolve_target(url, Path("/")).slug for url in SLUGS} == SLUGS


def test_a_flood_of_records_is_cut_and_reported() -> None:
    recorder = Recorder(375)
    for number in range(MAX_RECORDS + 5):
        recorder.console("log", f"line {number}")
    last = recorder.records()[-1]
    assert len(recorder.records()) == MAX_RECORDS + 1
    assert (last["level"], "5" in last["text"]) == ("error", True)


def test_a_long_command_is_not_torn_by_one_that_an_event_brings() -> None:
    (commands, write), (read, events) = os.pipe(), os.pipe()
    os.set_blocking(write, False)
    connection = Connection(read, write, time.monotonic() + 10)
    got = bytearray()

    def drain() -> None:
        while got.count(0) < 2:
            got.extend(os.read(commands, 1 << 16))

    reader = threading.Thread(target=drain)

    def handle(*_event: object) -> None:
        got.extend(os.read(commands, 1 << 15))
        connection.post("Short")
        reader.start()

    connection.handler = handle
    os.write(events, b'{"method": "Event"}\0')
    connection.post("Long", {"text": "x" * (1 << 20)})
    reader.join()
    assert [json.loads(text)["method"] for text in got.split(b"\0")[:2]] == ["Long", "Short"]
    for end in (commands, write, read, events):
        os.close(end)


VALUES = [
    ({"type": "string", "value": "text"}, "text"),
    ({"type": "number", "unserializableValue": "NaN", "description": "NaN"}, "NaN"),
    ({"type": "boolean", "value": True}, "true"),
    ({"type": "object", "description": "HTMLBodyElement"}, "HTMLBodyElement"),
]


@each_row(("remote", "text"), VALUES)
def test_values_read_as_on_a_console(remote: dict[str, object], text: str) -> None:
    assert describe_value(remote) == text


def audited(url: str, impact: str | None, *targets: str) -> AuditedFrame:
    nodes = [{"target": [target], "html": "", "impact": impact} for target in targets]
    found = [{"id": "label", "impact": impact, "nodes": nodes}] if targets else []
    return AuditedFrame(url, hidden=False, lists={"axe-core": {name: [] for name in LISTS} | {"violations": found}})


def test_a_merge_keeps_the_worst_impact_and_says_in_which_views_each_element_fails() -> None:
    audits = [
        Audit(375, (audited("page", "minor", "#a"), audited("frame", None))),
        Audit(
            1280,
            (audited("page", "serious", "#a", "#b"), audited("extra", "minor", "#c"), audited("frame", None)),
        ),
    ]
    merged = merge(Target("page", "http://h/", None), load_engines(), audits)
    assert [(frame["id"], frame["url"]) for frame in merged["frames"]] == [(0, "page"), (1, "frame"), (2, "extra")]
    assert [engine["name"] for engine in merged["engines"]] == ["axe-core", "accesslint"]
    page, extra = merged["violations"]
    assert (page["frame"], page["engine"], page["impact"], page["widths"]) == (0, "axe-core", "serious", [375, 1280])
    assert [(node["target"], node["widths"]) for node in page["nodes"]] == [(["#a"], [375, 1280]), (["#b"], [1280])]
    assert (extra["frame"], extra["widths"]) == (2, [1280])


def test_every_rule_that_is_left_out_is_documented_with_its_reason(root: Path) -> None:
    page = (root / "docs" / "evidence.md").read_text()
    for engine, left_out in (("axe-core", AXE_LEFT_OUT), ("accesslint", ACCESSLINT_LEFT_OUT)):
        for rule, why in left_out.items():
            assert f"| {engine} | `{rule}` | {why} |" in page
    assert all(digest in page for digest in FILES.values())


def test_a_cookie_is_for_servers_alone_and_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>")
    wanted = Look(cookie=Cookie("session", "a-secret"))
    assert "a-secret" not in repr(wanted)
    with raises_code(CollectorError, "COL302"):
        collect("GATE-VISUAL-QA", target="page.html", root=tmp_path, binding=BINDING, look=wanted)
