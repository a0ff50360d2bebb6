"""Pages that try to look better than they are: each must fail its gate, or be refused with a reason."""

from pathlib import Path

import pytest

from interlock.envelope.protocol import EvidenceKey
from interlock.gates.errors import CollectorError
from tests.gates.collecting import errors, look, records, report

pytestmark = pytest.mark.browser

HIDDEN_FAULTS = [
    "inner.html",
    "overrides-axe.html",
    "frame-srcdoc.html",
    "frame-file.html",
    "frame-sandboxed.html",
    "frame-nested.html",
    "frame-in-shadow.html",
    "frame-data.html",
    "shadow-open.html",
    "shadow-closed.html",
    "shadow-declared.html",
    "clobbers-document.html",
    "writes-over.html",
]


@pytest.mark.sample("frame-nested.html")
@pytest.mark.parametrize("page", HIDDEN_FAULTS)
def test_an_unlabelled_input_is_found_wherever_the_page_hides_it(page: str, tmp_path: Path) -> None:
    collection = look(tmp_path, page, "a11y")
    assert not collection.ok
    assert errors(collection) == ["EVD543"]
    found = {rule["id"]: rule for rule in report(tmp_path, collection)["violations"]}
    assert list(found) == ["label"]
    assert found["label"]["widths"] == [375, 1280]


CONSOLE_FAULTS = {
    "silences-console.html": ["hidden error"],
    "silences-from-frame.html": ["hidden error of the frame", "hidden error of the page"],
    "swallows-errors.html": [
        "interlock: the page swallowed Uncaught ReferenceError: nothingOfThisName is not defined",
        "interlock: the page swallowed an unhandled rejection: Error: swallowed rejection",
    ],
    "writes-over.html": ["after"],
}


@pytest.mark.sample("swallows-errors.html")
@pytest.mark.parametrize("page", CONSOLE_FAULTS)
def test_an_error_reaches_the_log_whatever_the_page_does_to_its_console(page: str, tmp_path: Path) -> None:
    collection = look(tmp_path, page, "console")
    assert errors(collection) == ["EVD533"]
    for width in (375, 768, 1280):
        said = [row["text"] for row in records(tmp_path, collection, width) if row["level"] == "error"]
        assert sorted(said) == CONSOLE_FAULTS[page]


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


@pytest.mark.sample("third-party-frame.html-a11y-COL308", "leaves-late.html-screenshots-COL306")
@pytest.mark.parametrize(("page", "key", "code"), REFUSED)
def test_a_page_that_does_not_hold_still_leaves_no_evidence(
    page: str, key: EvidenceKey, code: str, tmp_path: Path
) -> None:
    with pytest.raises(CollectorError) as caught:
        look(tmp_path, page, key)
    assert caught.value.code == code
    assert not list(tmp_path.iterdir())


@pytest.mark.sample("endless-loop.html")
@pytest.mark.parametrize("page", ["endless-loop.html", "late-loop.html"])
def test_a_page_that_never_ends_is_a_timeout_and_no_evidence(page: str, tmp_path: Path) -> None:
    with pytest.raises(CollectorError) as caught:
        look(tmp_path, page, "console", timeout_seconds=2)
    assert caught.value.code == "COL303"
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
    assert collection.ok
    assert [finding.code for finding in collection.findings] == ["EVD535"]


@pytest.mark.long
def test_dialogs_and_windows_are_answered_and_told(tmp_path: Path) -> None:
    collection = look(tmp_path, "dialogs.html", "console")
    assert collection.ok
    assert [row["text"] for row in records(tmp_path, collection)] == [
        "interlock: dialog (alert): first",
        "interlock: dialog (confirm): second",
        "interlock: dialog (prompt): third",
        "interlock: the page opened a window, which was closed",
    ]


@pytest.mark.long
def test_workers_of_every_kind_are_listened_to_or_told(tmp_path: Path) -> None:
    collection = look(tmp_path, "workers.html", "console")
    assert errors(collection) == ["EVD533"]
    assert [row["text"] for row in records(tmp_path, collection)] == [
        "interlock: the page registered a service worker, which was not started",
        "from a shared worker",
    ]


@pytest.mark.long
def test_a_page_wider_than_its_window_is_told(tmp_path: Path) -> None:
    collection = look(tmp_path, "wide.html", "screenshots", "console")
    assert collection.ok
    told = {width: [row["text"] for row in records(tmp_path, collection, width)] for width in (375, 768, 1280)}
    assert told == {
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
