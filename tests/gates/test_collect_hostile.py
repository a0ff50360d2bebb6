"""Pages that try to look better than they are: each must fail its gate, or be refused with a reason."""

from pathlib import Path
from typing import Any

import pytest

from interlock.envelope.protocol import EvidenceKey
from interlock.gates.collect.page import MOTIONS
from interlock.gates.errors import CollectorError
from interlock.gates.manifest import Collection
from tests.gates.collecting import errors, look, records, report
from tests.refusals import raises_code

pytestmark = pytest.mark.browser

HIDDEN_FAULTS = [
    "inner.html", "overrides-axe.html", "frame-srcdoc.html", "frame-file.html", "frame-sandboxed.html",
    "frame-nested.html", "frame-in-shadow.html", "frame-data.html", "shadow-open.html", "shadow-closed.html",
    "shadow-declared.html", "clobbers-document.html", "writes-over.html",
]  # fmt: skip


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
SHADOW = (
    "<style>@keyframes hide { to { visibility: hidden } } input { animation: hide 1s 999999s forwards }</style>"
    '<input type="text">'
)

FAULTS_BEHIND: dict[str, str] = {
    "a dialog with a ring outside of its corner": page_of(
        '<dialog open aria-label="d">d</dialog><input type="text">',
        head="<style>dialog { margin: 20px; border: 0 } dialog::before { content: ''; position: absolute; left: -12px;"
        " top: -12px; width: 4px; height: 4px }</style>",
    ),
    "a real modal dialog": page_of(
        '<dialog id="d" aria-label="d"><button>ok</button></dialog><input type="text">', "d.showModal()"
    ),
    "a popover": page_of('<div popover id="p">over</div><input type="text">', "p.showPopover()"),
    "an animation of eleven days later": page_of(FAINT, head=STYLE.format("animation: hide 1s 999999s forwards", "")),
    "an endless animation": page_of(FAINT, head=STYLE.format("visibility: hidden; animation: show 1s infinite",
        " @keyframes show { from, to { visibility: visible } }")),
    "a paused animation": page_of(FAINT, head=STYLE.format("animation: hide 1s forwards paused", "")),
    "a slow animation": page_of(FAINT, head=STYLE.format("animation: hide 90s forwards steps(1)", "")),
    "an animation that does not move": page_of(
        FAINT,
        "const p = document.querySelector('.faint'); p.style.visibility = 'hidden';"
        "p.animate({ visibility: ['visible', 'visible'] }, { duration: 1e3, iterations: 1 / 0 }).playbackRate = 0",
        head=STYLE.format("", ""),
    ),
    "an animation by scrolling": page_of(
        f'{FAINT}<div style="height: 4000px"></div>',
        head=STYLE.format("animation: hide linear forwards; animation-timeline: scroll()", ""),
    ),
    "a transition of eleven days later": page_of(
        FAINT, "const p = document.querySelector('.faint'); p.offsetTop; p.style.visibility = 'hidden'",
        head=STYLE.format("transition: visibility 1s 999999s", ""),
    ),
    "an animation in a shadow root": page_of(
        '<div id="host"></div>', f"host.attachShadow({{ mode: 'closed' }}).innerHTML = `{SHADOW}`"
    ),
    "400 levels": page_of(f"{'<div>' * 400}<input type='text'>"),
    "1000 levels by script": page_of(
        "", "let e = document.querySelector('main'); for (let i = 0; i < 1000; i++) e = e.appendChild("
        "document.createElement('div')); e.innerHTML = '<input type=text>'"
    ),
    **{
        name: page_of(
            '<input type="text" class="mid">',
            head=f"<style>.mid {{ display: none }} @media {query} {{ .mid {{ display: block }} }}</style>",
        )
        for name, query in {
            "one width": "(width: 768px)", "between two widths": "(min-width: 30em) and (max-width: 600px)",
            "beyond all widths": "(1600px <= width)", "a mouse": "(hover: hover)", "a finger": "(pointer: coarse)",
        }.items()
    },
}  # fmt: skip
FOUND_AT = {
    "one width": [768], "between two widths": [540], "beyond all widths": [1760], "a mouse": [768, 1280],
    "a finger": [375],
}  # fmt: skip


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
    "in a shadow root": (
        page_of('<div id="host">', "host.attachShadow({ mode: 'closed' }).innerHTML = `<p inert>${'word '.repeat(9)}`"),
        ["EVD549"],
    ),
    "beside a dialog of no size": (
        page_of("").replace("<main>", f"{OVER.format(9)}<main inert><p>some text</p>"),
        ["EVD549"],
    ),
    "beside a dialog": (page_of("").replace("<main>", f"{OVER.format(300)}<main inert><p>some text</p>"), []),
    "decoration": (page_of('<p>some text</p><span aria-hidden="true">*</span>'), []),
}


@pytest.mark.long
@pytest.mark.parametrize("how", WITHHELD)
def test_a_page_that_is_kept_from_assistive_technology_fails(how: str, tmp_path: Path) -> None:
    page, expected = WITHHELD[how]
    assert errors(written(tmp_path, page, "a11y")) == expected


@pytest.mark.long
def test_a_rule_that_fails_itself_has_judged_nothing(tmp_path: Path) -> None:
    with raises_code(CollectorError, "COL308", "axe-core"):
        written(tmp_path, page_of('<p style="text-shadow: 1e-7px 1e-7px 1e-7px #000">faint</p>'), "a11y")


@pytest.mark.long
def test_what_an_engine_cannot_judge_in_a_picture_is_left_to_people(tmp_path: Path) -> None:
    (tmp_path / "a.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><text y="20">hi</text></svg>')
    page = page_of('<object data="a.svg" type="image/svg+xml" aria-label="a"></object>')
    collection = written(tmp_path, page, "a11y")
    assert collection.ok
    assert [rule["id"] for rule in report(tmp_path, collection)["incomplete"]] == ["color-contrast"]


@pytest.mark.long
def test_what_only_those_see_who_want_motion_is_judged(tmp_path: Path) -> None:
    page = page_of(
        '<p class="x">faint</p>',
        "if (!matchMedia('(prefers-reduced-motion: reduce)').matches) fails()",
        head="<style>.x { display: none } @media (prefers-reduced-motion: no-preference)"
        " { .x { display: block; color: #eee; background: #fff } }</style>",
    )
    collection = written(tmp_path, page, "console", "a11y", motions=MOTIONS)
    assert errors(collection) == ["EVD533", "EVD543"]
    rows = records(tmp_path, collection)
    assert [(row["kind"], row["motion"]) for row in rows] == [("pageerror", "no-preference")]
    assert {tuple(rule["motion"]) for rule in report(tmp_path, collection)["violations"]} == {("no-preference",)}


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
    "writes over itself": (f"onload = () => document.write('{NEW}<script>onerror = () => true; fails()<\\/script>')"),
    "opens by the hand of a frame": (
        "const f = document.createElement('iframe'); document.body.append(f);"
        "onload = () => { f.contentWindow.Document.prototype.open.call(document); onerror = () => true; fails() }"
    ),
    "writes a frame": (
        "const f = document.createElement('iframe'); document.body.append(f); const it = f.contentDocument;"
        "it.open(); it.write('<script>onerror = () => true; fails()<\\/script>'); it.close()"
    ),
    "removes the frame at once": (
        "const f = document.createElement('iframe');"
        "f.srcdoc = '<script>onerror = () => { frameElement.remove(); return true }; fails()<\\/script>';"
        "document.body.append(f)"
    ),
    "stops the event at once": (
        "for (const capture of [true, false]) addEventListener('error', (event) => { event.preventDefault();"
        "event.stopImmediatePropagation() }, capture); Object.defineProperty(Event.prototype, 'defaultPrevented',"
        "{ get: () => false }); globalThis.reportError = globalThis.setTimeout = () => {}; fails()"
    ),
    "puts another listener in its place": (
        "EventTarget.prototype.addEventListener = String.prototype.valueOf = Reflect.apply = () => {};"
        "delete globalThis.__interlock; try { __interlock = 1 } catch {} onerror = () => true; fails()"
    ),
    "in the parent of a worker": (
        f"{BLOB} new Worker(blob('throw new Error(1)')).onerror = (event) => event.preventDefault()"
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
    "in the parent of a worker": ["Uncaught Error: 1"],
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
    "shared worker that swallows": f"{BLOB} new SharedWorker(blob('onerror = () => true; throw new Error(1)'))",
    "worklet": (
        f"{BLOB} new OfflineAudioContext(1, 1, 8e3).audioWorklet.addModule(blob('throw new Error(1)')).catch(() => 0)"
    ),
    "worker of a worker on disk": "new Worker('outer.js')",
}


@pytest.mark.alternate
@pytest.mark.sample("shared worker")
@pytest.mark.parametrize("kind", WORKER_ERRORS)
def test_an_error_of_a_worker_is_reported_once(kind: str, tmp_path: Path) -> None:
    (tmp_path / "outer.js").write_text("new Worker('inner.js')")
    (tmp_path / "inner.js").write_text("throw new Error(1)")
    collection = written(tmp_path, page_of("", WORKER_ERRORS[kind]), "console")
    assert errors(collection) == ["EVD533"]
    on_disk = "Worker of a worker: it cannot be served from disk"
    expected = on_disk if "outer.js" in WORKER_ERRORS[kind] else "Uncaught Error: 1"
    assert [text.startswith(expected) for text in {*logged(tmp_path, collection)}] == [True]


@pytest.mark.long
def test_errors_of_code_that_waits_for_use_or_time_are_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_LOOK_SECONDS", "1")
    script = "".join(
        f"addEventListener('{name}', () => console.error('{name}'), {{ capture: true, once: true }});"
        for name in ("scroll", "resize", "visibilitychange")
    )
    late = "onload = () => setTimeout(() => console.error('late'), 900);"
    honest = "new ResizeObserver(() => { m.style.height = `${m.offsetHeight + 1}px` }).observe(m)"
    collection = written(tmp_path, page_of('<p id="m" style="height: 3000px">x', script + late + honest), "console")
    assert sorted(logged(tmp_path, collection)) == ["late", "resize", "scroll", "visibilitychange"]


@pytest.mark.long
def test_a_blocked_address_hides_no_other_error(tmp_path: Path) -> None:
    (tmp_path / "app.js").write_text("")
    script = f'<script src="app.js" integrity="sha256-{"A" * 43}="></script>'
    collection = written(tmp_path, page_of('<img alt="" src="s:">', head=script), "console")
    assert errors(collection) == ["EVD533"]
    assert ["integrity" in text for text in logged(tmp_path, collection)] == [True]


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
        ("response", "Fetch answered with status 404", 404),
    ]


REFUSED: list[tuple[str, EvidenceKey, str]] = [
    ("clobbers-form.html", "a11y", "COL309"),
    ("third-party-frame.html", "a11y", "COL308"),
    ("leaves.html", "console", "COL306"),
    ("leaves-blank.html", "console", "COL306"),
    ("leaves-late.html", "screenshots", "COL306"),
    ("refreshes.html", "a11y", "COL306"),
    ("reloads.html", "console", "COL306"),
    ("stops.html", "a11y", "COL305"),
]


@pytest.mark.alternate
@pytest.mark.sample("third-party-frame.html-a11y-COL308", "leaves-late.html-screenshots-COL306")
@pytest.mark.parametrize(("page", "key", "code"), REFUSED)
def test_a_page_that_keeps_moving_leaves_no_evidence(page: str, key: EvidenceKey, code: str, tmp_path: Path) -> None:
    with raises_code(CollectorError, code):
        look(tmp_path, page, key)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.parametrize("page", ["endless-loop.html", "late-loop.html"])
def test_a_page_that_never_ends_is_a_timeout_and_no_evidence(page: str, tmp_path: Path) -> None:
    with raises_code(CollectorError, "COL303"):
        look(tmp_path, page, "console", timeout_seconds=2)
    assert not list(tmp_path.iterdir())


@pytest.mark.sample("frames-in-vain.html")
@pytest.mark.parametrize("page", ["clean.html", "form-names.html", "hash.html", "frames-in-vain.html"])
def test_an_honest_page_passes(page: str, tmp_path: Path) -> None:
    collection = look(tmp_path, page, "screenshots", "console", "a11y")
    assert collection.ok
    assert not errors(collection)
    assert [file.key for file in collection.files] == ["screenshots"] * 3 + ["console", "a11y"]


def test_other_origins_are_named_and_not_asked(tmp_path: Path) -> None:
    collection = look(tmp_path, "third-party.html", "console")
    assert collection.ok
    assert [finding.code for finding in collection.findings] == ["EVD535"]
    blocked = [row["url"] for row in records(tmp_path, collection) if row["kind"] == "blocked"]
    assert blocked == ["https://cdn.example/far.png", "wss://socket.example/"]


@pytest.mark.long
def test_a_frame_of_another_origin_hinders_only_the_check_that_must_look_into_it(tmp_path: Path) -> None:
    collection = look(tmp_path, "third-party-frame.html", "screenshots", "console")
    assert (collection.ok, [finding.code for finding in collection.findings]) == (True, ["EVD535"])


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


@pytest.mark.long
def test_a_page_wider_than_its_window_is_reported(tmp_path: Path) -> None:
    collection = look(tmp_path, "wide.html", "screenshots", "console")
    assert collection.ok
    texts = {width: [row["text"] for row in records(tmp_path, collection, width)] for width in (375, 768, 1280)}
    assert texts == {
        375: ["interlock: the page is 908 px wide in a window of 375 px"],
        768: ["interlock: the page is 908 px wide in a window of 768 px"],
        1280: [],
    }


@pytest.mark.long
def test_what_axe_could_not_decide_is_kept(tmp_path: Path) -> None:
    collection = look(tmp_path, "undecided.html", "a11y")
    assert collection.ok
    undecided = report(tmp_path, collection)["incomplete"]
    assert [(rule["id"], [node["target"] for node in rule["nodes"]]) for rule in undecided] == [
        ("color-contrast", [["#over"]])
    ]
