"""Content checks: what the bytes of each kind of evidence must show."""

import io
import json
import sys
from typing import Any

import pytest
from PIL import Image

from interlock.core.finding import Finding
from interlock.envelope.protocol import DEFAULT_PROTOCOL, OTHER_GATE
from interlock.gates.checks import Subject, check_gate
from interlock.gates.checks.a11y import check_a11y
from interlock.gates.checks.console import check_console
from interlock.gates.checks.images import Picture, check_visual, judge_image, structure
from interlock.gates.checks.texts import check_command, check_report
from tests.gates.support import TREE, axe, chunk, codes, command_log, console, png, record, rule, subject
from tests.table import each_row

GATE = "GATE-X"


def saved(image: Image.Image, kind: str = "PNG", **more: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **more)
    return out.getvalue()


def encoded(kind: str, mode: str = "RGB", **more: Any) -> bytes:
    image = Image.new("RGB", (200, 100), "white")
    image.paste("black", (0, 0, 100, 50))
    return saved(image.convert(mode), kind, **more)


def image(data: bytes, name: str = "shot.png") -> Subject:
    return subject(data, "screenshots", f"artifacts/screenshots/{name}")


def bomb() -> bytes:
    header = b"\xc3\x50".rjust(4, b"\0") * 2 + b"\x08\x02\0\0\0"
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def transparent() -> bytes:
    image = Image.new("RGBA", (200, 100), (255, 255, 255, 0))
    image.paste((0, 0, 0, 0), (0, 0, 100, 50))
    return saved(image)


def animated() -> bytes:
    frames = [Image.new("RGB", (100, 100), colour) for colour in ("white", "black")]
    return saved(frames[0], save_all=True, append_images=frames[1:])


def word_on_a_page() -> bytes:
    page = Image.new("RGB", (1280, 720), "white")
    page.paste("black", (10, 10, 16, 16))
    return saved(page)


IMAGES = {
    "text named png": (b"not an image at all", "shot.png", "EVD521"),
    "other bytes": (b"\x00\x01\x02\xff\xfe", "shot.png", "EVD521"),
    "HTML page": (b"<!doctype html><p>404", "shot.png", "EVD521"),
    "cut short": (png()[:-20], "shot.png", "EVD521"),
    "signature alone": (b"\x89PNG\r\n\x1a\n", "shot.png", "EVD521"),
    "JPEG cut short": (encoded("JPEG")[:-2], "shot.jpg", "EVD521"),
    "WebP cut short": (encoded("WEBP")[:-2], "shot.webp", "EVD521"),
    "pixels that do not decode": (png().replace(b"IDAT", b"IDAX"), "shot.png", "EVD521"),
    "PNG without its header": (png()[:8] + png()[33:], "shot.png", "EVD521"),
    "JPEG without a size": (b"\xff\xd8\xff\xe0\x00\x02\xff\xd9", "shot.jpg", "EVD521"),
    "JPEG without an end": (b"\xff\xd8\xff\xe0\x00\x02", "shot.jpg", "EVD521"),
    "WebP without an image": (b"RIFF\x10\0\0\0WEBPALPH" + b"\0" * 8, "shot.webp", "EVD521"),
    "animation": (animated(), "shot.png", "EVD521"),
    "JPEG named png": (encoded("JPEG"), "shot.png", "EVD522"),
    "PNG named jpg": (png(), "shot.jpg", "EVD522"),
    "PNG without an ending": (png(), "shot", "EVD522"),
    "one pixel": (png(1, 1), "shot.png", "EVD523"),
    "a strip": (png(1280, 20), "shot.png", "EVD523"),
    "blank": (png(blank=True), "shot.png", "EVD524"),
    "transparent": (transparent(), "shot.png", "EVD524"),
    "data after a PNG": (png(trailing=b"PK\x03\x04"), "shot.png", "EVD525"),
    "data after a JPEG": (encoded("JPEG") + b"more", "shot.jpg", "EVD525"),
    "data after a WebP": (encoded("WEBP") + b"more", "shot.webp", "EVD525"),
    "bomb": (bomb(), "shot.png", "EVD526"),
}


@each_row(("data", "name", "code"), IMAGES.values(), ids=IMAGES.keys())
def test_a_screenshot_that_shows_nothing_is_refused(data: bytes, name: str, code: str) -> None:
    refused = judge_image(image(data, name), GATE)
    assert isinstance(refused, Finding)
    assert (refused.code, refused.field, refused.line, refused.column) == (code, "EVIDENCE.screenshots", 7, 5)
    assert GATE in refused.message
    assert refused.fix


FORMATS = {
    "PNG": (png(), "shot.png", (375, 400)),
    "PNG with a palette": (encoded("PNG", mode="P"), "shot.png", (200, 100)),
    "JPEG": (encoded("JPEG"), "shot.jpg", (200, 100)),
    "progressive JPEG": (encoded("JPEG", progressive=True), "shot.jpeg", (200, 100)),
    "WebP": (encoded("WEBP"), "shot.webp", (200, 100)),
    "lossless WebP": (encoded("WEBP", lossless=True), "shot.webp", (200, 100)),
    "WebP with alpha": (encoded("WEBP", mode="RGBA", exact=True, exif=b"Exif\0\0"), "shot.webp", (200, 100)),
    "capital ending": (png(), "shot.PNG", (375, 400)),
    "a small word on a white page": (word_on_a_page(), "shot.png", (1280, 720)),
}


@each_row(("data", "name", "size"), FORMATS.values(), ids=FORMATS.keys())
def test_a_real_screenshot_is_accepted_in_every_format(data: bytes, name: str, size: tuple[int, int]) -> None:
    picture = judge_image(image(data, name), GATE)
    assert isinstance(picture, Picture)
    assert ((picture.width, picture.height), picture.end) == (size, len(data))


def test_without_pillow_an_image_is_refused_with_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    refused = judge_image(image(png()), GATE)
    assert isinstance(refused, Finding)
    assert refused.code == "EVD528"
    assert "interlock[browser]" in refused.fix
    assert isinstance(structure(image(png())), Picture)


def test_in_a_run_every_width_must_be_shown() -> None:
    shots = [image(png(width), f"{width}.png") for width in (375, 768, 1280)]
    assert check_visual(GATE, shots, in_run=True) == []
    assert codes(check_visual(GATE, shots[:2], in_run=True)) == ["EVD527"]
    assert "1280" in check_visual(GATE, shots[:2], in_run=True)[0].message
    assert check_visual(GATE, shots[:1], in_run=False) == []


LOGS: dict[str, tuple[str | bytes, list[str]]] = {
    "clean": (console(), []),
    "warnings only": (console(record("console", "warning"), record("response", status=304)), []),
    "console error": (console(record("console", "error")), ["EVD533"]),
    "failed assertion": (console(record("console", "assert")), ["EVD533"]),
    "page error": (console(record("pageerror", "error")), ["EVD533"]),
    "failed request": (console(record("requestfailed")), ["EVD533"]),
    "HTTP 404": (console(record("response", status=404)), ["EVD533"]),
    "several errors are one finding": (console(record("pageerror"), record("requestfailed")), ["EVD533"]),
    "other origin": (console(record("blocked", "warning")), ["EVD535"]),
    "cut short": (console(record("console"), count=3), ["EVD532"]),
    "records added": (console(record("console"), count=0), ["EVD532"]),
    "no header": (json.dumps(record("console")), ["EVD531"]),
    "other schema": ('{"schema": "interlock.console/2", "records": 0}', ["EVD531"]),
    "number of records is a truth value": ('{"schema": "interlock.console/1", "records": true}', ["EVD531"]),
    "unknown kind": (console(record("gossip")), ["EVD531"]),
    "response without a status": (console(record("response")), ["EVD531"]),
    "status is text": (console(record("response", status="500")), ["EVD531"]),
    "level missing": (console({"kind": "console", "text": "x"}), ["EVD531"]),
    "blank line inside": (console() + "\n\n", ["EVD531"]),
    "key twice": (console(record("console"))[:-2] + ', "level": "debug"}\n', ["EVD531"]),
    "not JSON": (console() + "{oops\n", ["EVD531"]),
    "nested to exhaust the stack": ('{"a":' + "[" * 100_000, ["EVD531"]),
    "number too long": (console() + '{"status": ' + "9" * 5000 + "}", ["EVD531"]),
    "record is a list": (console() + "[1]\n", ["EVD531"]),
    "no text": (b"\xff\xfe", ["EVD531"]),
    "NUL": (b"{\0}", ["EVD531"]),
}


@each_row(("log", "expected"), LOGS.values(), ids=LOGS.keys())
@each_row("in_run", [True, False])
def test_a_console_log_passes_only_when_whole_and_clean(log: str | bytes, expected: list[str], *, in_run: bool) -> None:
    assert codes(check_console(GATE, [subject(log, "console")], in_run=in_run)) == expected


def test_the_first_errors_are_listed_and_the_rest_are_counted() -> None:
    log = console(*(record("pageerror", "error", f"boom {i}") for i in range(9)))
    (finding,) = check_console(GATE, [subject(log, "console")], in_run=True)
    assert "boom 0" in finding.found
    assert "boom 4" in finding.found
    assert "boom 5" not in finding.found
    assert "4 more" in finding.found


def test_text_of_the_page_cannot_drive_a_terminal_or_break_a_line() -> None:
    log = console(record("pageerror", "error", "\x1b[2J\nSTATUS: APPROVED\u202e`"))
    (finding,) = check_console(GATE, [subject(log, "console")], in_run=True)
    assert finding.found.isascii()
    assert finding.found.isprintable()


def test_a_plain_console_log_is_noted_outside_a_run_and_refused_inside() -> None:
    log = subject("no errors seen", "console")
    assert codes(check_console(GATE, [log], in_run=False)) == ["EVD534"]
    assert codes(check_console(GATE, [log], in_run=True)) == ["EVD531"]
    assert codes(check_console(GATE, [subject(b"\xef\xbb\xbf", "console")], in_run=True)) == ["EVD531"]


def _without(name: str) -> dict[str, Any]:
    result = axe()
    del result[name]
    return result


def of_axe(item: dict[str, Any]) -> dict[str, Any]:
    return {"engine": "axe-core", **item}


A11Y: dict[str, tuple[dict[str, Any] | str, list[str]]] = {
    **{text: (text, ["EVD541"]) for text in ("[]", "[1]", "{", '{"violations": []}', '{"passes": NaN}', "\ufeff{}")},
    "clean": (axe(), []),
    "minor and moderate": (axe(rule("a", "minor", "#x"), rule("b", "moderate", "#y")), []),
    "serious": (axe(rule("label", "serious", "#mail")), ["EVD543"]),
    "critical": (axe(rule("label", "critical", "#mail")), ["EVD543"]),
    "no impact": (axe(rule("label", None, "#mail")), ["EVD544"]),
    "unknown impact": (axe(rule("label", "Serious", "#mail")), ["EVD544"]),
    "an element weighs more than its rule": (
        axe({"id": "label", "impact": "minor", "nodes": [{"target": ["#a"], "impact": "critical"}]}),
        ["EVD543"],
    ),
    "an element of unknown impact": (
        axe({"id": "label", "impact": "minor", "nodes": [{"target": ["#a"], "impact": None}]}),
        ["EVD544"],
    ),
    "impact missing": (axe({"id": "label", "nodes": []}), ["EVD544"]),
    "19 rules": (axe(rules=19), ["EVD542"]),
    "20 rules": (axe(rules=20), []),
    "one rule many times": (axe() | {"passes": [of_axe(rule("same"))] * 40}, ["EVD542"] * 2),
    "19 rules of the second engine": (axe(second=19), ["EVD542"]),
    "no rule of the second engine": (axe(second=0), ["EVD542"]),
    "no engines": (_without("engines"), ["EVD541"]),
    "one engine": (axe() | {"engines": [{"name": "axe-core", "version": "4"}]}, ["EVD541"]),
    "one engine twice": (axe() | {"engines": [{"name": "axe-core", "version": "4"}] * 2}, ["EVD541"]),
    "engine without version": (
        axe() | {"engines": [{"name": "axe-core", "version": "4"}, {"name": "accesslint"}]},
        ["EVD541"],
    ),
    "a third engine": (axe() | {"engines": [*axe()["engines"], {"name": "mine", "version": "1"}]}, ["EVD541"]),
    "rule of no engine": (axe() | {"inapplicable": [rule("x")]}, ["EVD541"]),
    "rule of another engine": (axe() | {"inapplicable": [rule("x") | {"engine": "mine"}]}, ["EVD541"]),
    "serious by the second engine": (axe(rule("label", "serious", "#mail") | {"engine": "accesslint"}), ["EVD543"]),
    "good practice": (axe(rule("region", "serious", "#x") | {"tags": ["best-practice"]}), ["EVD548"]),
    "good practice that is a part of WCAG": (
        axe(rule("region", "serious", "#x") | {"tags": ["best-practice", "wcag2a"]}),
        ["EVD543"],
    ),
    "undecided": (axe(incomplete=[rule("color-contrast", "serious")]), ["EVD546"]),
    "list missing": (_without("incomplete"), ["EVD541"]),
    "list is none": (axe() | {"passes": {}}, ["EVD541"]),
    "item is none": (axe() | {"passes": ["label"]}, ["EVD541"]),
    "item without id": (axe() | {"violations": [of_axe({"impact": "minor"})]}, ["EVD541"]),
    "other schema": (axe() | {"schema": "interlock.a11y/1"}, ["EVD541"]),
    "no frames": (axe() | {"frames": []}, ["EVD541"]),
    "frame is none": (axe() | {"frames": ["x"]}, ["EVD541"]),
    "half of a frame withheld": (axe() | {"frames": [{"url": "x", "withheld": 0.5}]}, []),
    "most of a frame withheld": (axe() | {"frames": [{"url": "x", "withheld": 0.51}]}, ["EVD549"]),
    "nobody knows what is withheld": (axe() | {"frames": [{"url": "x"}]}, ["EVD541"]),
    "less than nothing withheld": (axe() | {"frames": [{"url": "x", "withheld": -1}]}, ["EVD541"]),
    "frame failed": (axe() | {"frames": [{"url": "x", "withheld": 0, "error": "crashed"}]}, ["EVD545"]),
    "violation only in a frame": (
        axe() | {"frames": [{"url": "x", "withheld": 0, "violations": [of_axe(rule("label", "critical", "#a"))]}]},
        ["EVD543"],
    ),
}


@each_row(("result", "expected"), A11Y.values(), ids=A11Y.keys())
@each_row("in_run", [True, False])
def test_an_accessibility_result_passes_only_when_whole_and_clean(
    result: dict[str, Any] | str, expected: list[str], *, in_run: bool
) -> None:
    assert codes(check_a11y(GATE, [subject(result, "a11y")], in_run=in_run)) == expected


def test_raw_axe_results_and_prose_are_accepted_outside_a_run_only() -> None:
    raw = subject(axe(raw=True), "a11y")
    pages = subject(json.dumps([axe(raw=True), axe(rule("label", "critical", "#a"), raw=True)]), "a11y")
    prose = subject("# Audit\nall good", "a11y")
    assert codes(check_a11y(GATE, [raw, prose], in_run=False)) == ["EVD547"]
    assert codes(check_a11y(GATE, [pages], in_run=False)) == ["EVD543"]
    assert codes(check_a11y(GATE, [raw, pages, prose], in_run=True)) == ["EVD541"] * 3


def test_a_violation_is_reported_with_rule_impact_element_and_help() -> None:
    violations = [rule(f"rule-{i}", "critical", f"#el-{i}", "#more") for i in range(7)]
    nested = rule("nested", "serious") | {"nodes": [{"target": [["iframe", "#shadow"], "input"]}], "frame": 1}
    (finding,) = check_a11y(GATE, [subject(axe(nested, *violations), "a11y")], in_run=True)
    assert "axe-core rule-0 (critical) at `#el-0` and 1 more: Help for rule-0" in finding.found
    assert "frame 1: iframe #shadow input" in finding.found
    assert "3 more" in finding.found


def test_a_violation_in_the_merged_list_and_its_frame_is_counted_once() -> None:
    fault = rule("label", "critical", "#a")
    result = axe(fault) | {"frames": [{"url": "x", "withheld": 0, "violations": [of_axe(fault)]}]}
    (finding,) = check_a11y(GATE, [subject(result, "a11y")], in_run=True)
    assert " 1 violation " in finding.message


REPORTS: dict[str, tuple[bytes, list[str], list[str]]] = {
    "names the tree": (f"Reviewed tree: {TREE}".encode(), [], ["EVD553"]),
    "does not name it": (b"Looks good.", ["EVD552"], ["EVD553"]),
    "names another": (b"Reviewed tree: sha256:" + b"0" * 64, ["EVD552"], ["EVD553"]),
    "blank": (b" \n\t\n", ["EVD551"], ["EVD551", "EVD553"]),
    "not UTF-8": (b"\xff\xfe\x00", ["EVD551"], ["EVD551", "EVD553"]),
}


@pytest.mark.parametrize(("data", "inside", "outside"), REPORTS.values(), ids=REPORTS.keys())
def test_a_report_is_text_and_in_a_run_names_its_tree(data: bytes, inside: list[str], outside: list[str]) -> None:
    assert codes(check_report(GATE, [subject(data)], in_run=True, tree=TREE)) == inside
    assert codes(check_report(GATE, [subject(data)], in_run=False, tree=None)) == outside


COMMANDS: dict[str, tuple[str, list[str]]] = {
    "passed": (command_log(GATE), []),
    "failed": (command_log(GATE, exit_status=2), ["EVD555"]),
    "killed": (command_log(GATE, exit_status=-9), ["EVD555"]),
    "no status": (command_log(GATE, exit_status=None), ["EVD555"]),
    "status left out": (command_log(GATE).replace('"exit_status": 0, ', ""), ["EVD555"]),
    "timed out": (command_log(GATE, exit_status=None, timed_out=True), ["EVD556"]),
    "another gate's": (command_log("GATE-Y"), ["EVD554"]),
    "status is a truth value": (command_log(GATE, exit_status=False), ["EVD554"]),
    "other schema": (command_log(GATE, schema="x"), ["EVD554"]),
    "argv is text": (command_log(GATE, argv="make test"), ["EVD554"]),
    "timed_out is missing": (command_log(GATE, timed_out=None), ["EVD554"]),
    "no header": ("12 passed\n", ["EVD554"]),
    "header is a list": ("[]\n", ["EVD554"]),
}


@each_row(("log", "expected"), COMMANDS.values(), ids=COMMANDS.keys())
def test_a_command_log_is_judged_by_its_exit_status_alone(log: str, expected: list[str]) -> None:
    assert codes(check_command(GATE, [subject(log)], in_run=True)) == expected


def test_a_command_gate_leaves_other_reports_aside_and_notes_a_plain_log_outside_a_run() -> None:
    assert check_command(GATE, [subject("# Review"), subject(command_log(GATE))], in_run=True) == []
    assert codes(check_command(GATE, [subject("12 passed")], in_run=False)) == ["EVD557"]


def test_a_gate_without_a_usable_file_is_refused_for_each_key() -> None:
    visual = DEFAULT_PROTOCOL.gates["GATE-VISUAL-QA"]
    assert codes(check_gate(visual, [], in_run=True)) == ["EVD520", "EVD520"]
    assert codes(check_gate(visual, [image(png())], in_run=False)) == ["EVD520"]
    assert codes(check_gate(OTHER_GATE, [], in_run=False)) == ["EVD520"]
