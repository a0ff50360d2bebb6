"""Pages that try to look better than they are: each must fail its gate, or be refused with a reason."""

from pathlib import Path
from typing import Any

import pytest

from interlock.envelope.protocol import EvidenceKey
from interlock.gates.errors import CollectorError
from interlock.gates.manifest import Collection
from tests.gates.collecting import errors, look, records, report
from tests.refusals import raises_code

pytestmark = pytest.mark.browser

HIDDEN_FAULTS = [
    "inner.html",
    "overrides-axe.html",
    "frame-srcdoc.html",
    "frame-sandboxed.html",
    "frame-nested.html",
    "frame-data.html",
    "shadow-open.html",
    "writes-over.html",
]


@pytest.mark.alternate
@pytest.mark.long
@pytest.mark.parametrize("page", HIDDEN_FAULTS)
def test_an_unlabelled_input_is_found_wherever_the_page_hides_it(page: str, tmp_path: Path) -> None:
    collection = look(tmp_path, page, "a11y")
    assert not collection.ok
    assert errors(collection) == ["EVD543"]
    found = {rule["id"]: rule for rule in report(tmp_path, collection)["violations"] if rule["engine"] == "axe-core"}
    assert (list(found), found["label"]["widths"]) == (["label"], [375, 768, 1280])
    assert page.startswith("frame-") == ("boxes" not in found["label"]["nodes"][0])


def page_of(body: str, script: str = "", head: str = "") -> str:
    return (
        f'<!doctype html><html lang="en"><head><title>Fixture</title>{head}</head>'
        f"<body><main><h1>Fixture</h1>{body}</main><script>{script}</script></body></html>"
    )


def written(tmp_path: Path, page: str, *keys: EvidenceKey, **more: Any) -> Collection:
    """Write a page and collect the named categories of it."""
    (tmp_path / "index.html").write_text(page)
    return look(tmp_path, "index.html", *keys, root=tmp_path, **more)


FAINT = '<p class="faint">faint<input type="text"></p>'
STYLE = (
    "<style>.faint {{ color: #eee; background: #fff; {} }} @keyframes hide {{ to {{ visibility: hidden }} }}{}</style>"
)
FAULTS_BEHIND: dict[str, str] = {
    "a real modal dialog": page_of(
        '<dialog id="d" aria-label="d"><button>ok</button></dialog><input type="text">', "d.showModal()"
    ),
    "an animation of eleven days later": page_of(FAINT, head=STYLE.format("animation: hide 1s 999999s forwards", "")),
    "an endless animation": page_of(
        FAINT,
        head=STYLE.format(
            "visibility: hidden; animation: show 1s infinite", " @keyframes show { from, to { visibility: visible } }"
        ),
    ),
    "a transition of eleven days later": page_of(
        FAINT,
        "const p = document.querySelector('.faint'); p.offsetTop; p.style.visibility = 'hidden'",
        head=STYLE.format("transition: visibility 1s 999999s", ""),
    ),
    **{
        name: page_of(
            '<input type="text" class="mid">',
            head=f"<style>.mid {{ display: none }} @media {query} {{ .mid {{ display: block }} }}</style>",
        )
        for name, query in {
            "one width": "(width: 768px)",
            "a mouse": "(hover: hover)",
            "a finger": "(pointer: coarse)",
        }.items()
    },
}
FOUND_AT = {
    "one width": [768],
    "a mouse": [768, 1280],
    "a finger": [375],
}


@pytest.mark.alternate
@pytest.mark.long
@pytest.mark.parametrize("place", FAULTS_BEHIND)
def test_an_unlabelled_input_is_found_behind_what_looks_over_it(place: str, tmp_path: Path) -> None:
    collection = written(tmp_path, FAULTS_BEHIND[place], "a11y")
    assert errors(collection) == ["EVD543"]
    found = [rule for rule in report(tmp_path, collection)["violations"] if rule["id"] == "label"]
    assert [node["widths"] for rule in found for node in rule["nodes"]] == [FOUND_AT.get(place, [375, 768, 1280])]


OVER = '<div role="dialog" aria-label="d" style="position: fixed; width: {0}px; height: {0}px">ok</div>'
WITHHELD: dict[str, tuple[str, list[str]]] = {
    "inert": (page_of("", head="").replace("<main>", "<main inert><p>some text</p>"), ["EVD549"]),
    "aria-hidden": (page_of("").replace("<main>", '<main aria-hidden="true"><input tabindex="-1">'), ["EVD549"]),
    "beside a dialog": (page_of("").replace("<main>", f"{OVER.format(300)}<main inert><p>some text</p>"), []),
}


@pytest.mark.long
@pytest.mark.parametrize("how", WITHHELD)
def test_a_page_that_is_kept_from_assistive_technology_fails(how: str, tmp_path: Path) -> None:
    page, expected = WITHHELD[how]
    assert errors(written(tmp_path, page, "a11y")) == expected


def logged(tmp_path: Path, collection: Collection, width: int = 375) -> list[str]:
    """Return the texts of the errors in the console log of one width."""
    return [row["text"] for row in records(tmp_path, collection, width) if row["level"] == "error"]


BLOB = "const blob = (text) => URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));"
NEW = "<!doctype html><html lang=en><title>New</title><p>new"
SWALLOWED = {
    "clears every timer": (
        "const clear = () => { for (let i = 0; i < 1e4; i++) clearTimeout(i); return true; }; onerror = clear;"
        "onunhandledrejection = (event) => { clear(); event.preventDefault() };"
        "Promise.reject(new Error('rejected')); throw new Error('thrown')"
    ),
    "opens its document anew": (
        f"onload = () => {{ document.open(); document.write('{NEW}<script>onerror=()=>true; fails()<\\/script>');"
        "document.close() }"
    ),
    "removes the frame at once": (
        "const f = document.createElement('iframe');"
        "f.srcdoc = '<script>onerror = () => { frameElement.remove(); return true }; fails()<\\/script>';"
        "document.body.append(f)"
    ),
    "in a worker": (
        f"{BLOB} new Worker(blob(`onerror = () => true; onunhandledrejection = (e) => e.preventDefault();"
        "Promise.reject(new Error(1)); setTimeout(() => {{ throw new Error(2) }}, 9)`))"
    ),
    "in a worker of a worker": (
        f"{BLOB} new Worker(blob(`new Worker(URL.createObjectURL(new Blob(['throw new Error(1)']))).onerror ="
        "(event) => event.preventDefault()`))"
    ),
}
SAID = {
    "clears every timer": ["an unhandled rejection: Error: rejected", "Uncaught Error: thrown"],
    "in a worker": ["an unhandled rejection: Error: 1", "Uncaught Error: 2"],
    "in a worker of a worker": ["Uncaught Error: 1"],
}
"""Of what is not this error of a name: what the page swallowed."""


@pytest.mark.alternate
@pytest.mark.sample("in a worker of a worker")
@pytest.mark.parametrize("way", SWALLOWED)
def test_a_swallowed_error_is_reported(way: str, tmp_path: Path) -> None:
    collection = written(tmp_path, page_of("", SWALLOWED[way]), "console")
    assert errors(collection) == ["EVD533"]
    expected = SAID.get(way, ["Uncaught ReferenceError: fails is not defined"])
    assert logged(tmp_path, collection) == [f"interlock: the page swallowed {text}" for text in expected]


WORKER_ERRORS = {
    "worker": f"{BLOB} new Worker(blob('throw new Error(1)'))",
    "shared worker": f"{BLOB} new SharedWorker(blob('throw new Error(1)'))",
}


@pytest.mark.long
@pytest.mark.parametrize("kind", WORKER_ERRORS)
def test_an_error_of_a_worker_is_reported_once(kind: str, tmp_path: Path) -> None:
    collection = written(tmp_path, page_of("", WORKER_ERRORS[kind]), "console")
    assert errors(collection) == ["EVD533"]
    assert [text.startswith("Uncaught Error: 1") for text in {*logged(tmp_path, collection)}] == [True]


def test_a_worker_of_a_worker_that_cannot_be_served_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "outer.js").write_text("new Worker('inner.js')")
    (tmp_path / "inner.js").write_text("throw new Error(1)")
    collection = written(tmp_path, page_of("", "new Worker('outer.js')"), "console")
    assert errors(collection) == ["EVD533"]
    assert {text.partition(":")[0] for text in logged(tmp_path, collection)} == {"Worker of a worker"}


@pytest.mark.long
def test_errors_of_code_that_waits_for_use_or_time_are_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_LOOK_SECONDS", "1")
    script = "addEventListener('scroll', () => console.error('scroll'), { capture: true, once: true });"
    late = "onload = () => setTimeout(() => console.error('late'), 900);"
    honest = "new ResizeObserver(() => { m.style.height = `${m.offsetHeight + 1}px` }).observe(m)"
    collection = written(tmp_path, page_of('<p id="m" style="height: 3000px">x', script + late + honest), "console")
    assert sorted(logged(tmp_path, collection)) == ["late", "scroll"]


CONSOLE_FAULTS = {
    "silences-console.html": ["hidden error"],
    "silences-from-frame.html": ["hidden error of the frame", "hidden error of the page"],
    "swallows-errors.html": [
        "interlock: the page swallowed Uncaught ReferenceError: nothingOfThisName is not defined",
        "interlock: the page swallowed an unhandled rejection: Error: swallowed rejection",
    ],
    "writes-over.html": ["after"],
}


@pytest.mark.alternate
@pytest.mark.sample("swallows-errors.html")
@pytest.mark.parametrize("page", CONSOLE_FAULTS)
def test_an_error_reaches_the_log_whatever_the_page_does_to_its_console(page: str, tmp_path: Path) -> None:
    collection = look(tmp_path, page, "console")
    assert errors(collection) == ["EVD533"]
    for width in (375, 768, 1280):
        assert sorted(logged(tmp_path, collection, width)) == CONSOLE_FAULTS[page]


def test_errors_of_every_kind_are_logged(tmp_path: Path) -> None:
    collection = look(tmp_path, "errors.html", "console")
    assert errors(collection) == ["EVD533"]
    rows = [(row["kind"], row["text"].split("\n")[0], row["status"]) for row in records(tmp_path, collection)]
    assert [row for row in rows if "replace" not in row[1]] == [
        ("console", "said Object 2", None),
        ("console", "asserted", None),
        ("console", "from a worker", None),
        ("pageerror", "Uncaught (in promise) Error: rejected", None),
        ("pageerror", "Uncaught ReferenceError: nothingOfThisName is not defined", None),
        ("response", "Fetch answered with status 404 (no such file, or a private one)", 404),
    ]


REFUSED: list[tuple[str, EvidenceKey, str]] = [
    ("third-party-frame.html", "a11y", "COL308"),
    ("leaves.html", "console", "COL305"),
    ("leaves-late.html", "screenshots", "COL305"),
    ("refreshes.html", "a11y", "COL305"),
    ("reloads.html", "console", "COL305"),
]


@pytest.mark.alternate
@pytest.mark.sample("third-party-frame.html-a11y-COL308")
@pytest.mark.parametrize(("page", "key", "code"), REFUSED)
def test_a_page_that_keeps_moving_leaves_no_evidence(page: str, key: EvidenceKey, code: str, tmp_path: Path) -> None:
    with raises_code(CollectorError, code):
        look(tmp_path, page, key)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.parametrize("page", ["endless-loop.html", "stops.html"])
def test_a_page_that_never_ends_is_a_timeout_and_no_evidence(page: str, tmp_path: Path) -> None:
    with raises_code(CollectorError, "COL303"):
        look(tmp_path, page, "console", timeout_seconds=2)
    assert not list(tmp_path.iterdir())


@pytest.mark.sample("frames-in-vain.html")
@pytest.mark.parametrize("page", ["clean.html", "hash.html", "frames-in-vain.html"])
def test_an_honest_page_passes(page: str, tmp_path: Path) -> None:
    collection = look(tmp_path, page, "screenshots", "console", "a11y")
    assert collection.ok
    assert not errors(collection)
    assert [file.key for file in collection.files] == ["screenshots"] * 3 + ["console", "a11y"]


@pytest.mark.long
def test_other_origins_are_named_and_not_asked(tmp_path: Path) -> None:
    collection = look(tmp_path, "third-party.html", "console")
    assert collection.ok
    assert [finding.code for finding in collection.findings] == ["EVD535"]
    blocked = [row["url"] for row in records(tmp_path, collection) if row["kind"] == "blocked"]
    assert blocked == ["https://cdn.example/far.png", "wss://socket.example/"]


TOLD = {
    "dialogs.html": [
        "interlock: dialog (alert): first",
        "interlock: dialog (confirm): second",
        "interlock: dialog (prompt): third",
        "interlock: the page opened a window, which was closed",
    ],
    "workers.html": ["interlock: the page registered a service worker, which was not started", "from a shared worker"],
}


@pytest.mark.long
@pytest.mark.parametrize("page", TOLD)
def test_dialogs_windows_and_workers_are_answered_listened_to_or_reported(page: str, tmp_path: Path) -> None:
    collection = look(tmp_path, page, "console")
    assert errors(collection) == (["EVD533"] if page == "workers.html" else [])
    assert [row["text"] for row in records(tmp_path, collection)] == TOLD[page]
