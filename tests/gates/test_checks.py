"""Content checks: what the bytes of each kind of evidence must show."""

import io
import sys
from typing import Any

import pytest
from PIL import Image

from interlock.core.finding import Finding
from interlock.envelope.protocol import DEFAULT_PROTOCOL, OTHER_GATE
from interlock.gates.checks import Subject, check_gate
from interlock.gates.checks.a11y import check_a11y
from interlock.gates.checks.console import check_console
from interlock.gates.checks.images import check_visual, judge_image, not_an_image
from interlock.gates.checks.texts import check_command, check_report
from tests.gates.support import TREE, axe, codes, command_log, console, png, record, rule, subject
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


def word_on_a_page() -> bytes:
    page = Image.new("RGB", (1280, 720), "white")
    page.paste("black", (10, 10, 16, 16))
    return saved(page)


IMAGES = {
    "text named png": (b"not an image at all", "EVD521"),
    "cut short": (png()[:-60], "EVD521"),
    "signature alone": (b"\x89PNG\r\n\x1a\n", "EVD521"),
    "pixels that do not decode": (png().replace(b"IDAT", b"IDAX"), "EVD521"),
    "blank": (png(blank=True), "EVD524"),
}


@each_row(("data", "code"), IMAGES.values(), ids=IMAGES.keys())
def test_a_screenshot_that_shows_nothing_is_refused(data: bytes, code: str) -> None:
    (refused,) = check_visual(GATE, [image(data)])
    assert (refused.code, refused.field, refused.line, refused.column) == (code, "EVIDENCE.screenshots", 7, 5)
    assert GATE in refused.message
    assert refused.fix
    assert "object at" not in refused.found


FORMATS = {
    "PNG": png(),
    "PNG with a palette": encoded("PNG", mode="P"),
    "JPEG": encoded("JPEG"),
    "WebP with alpha": encoded("WEBP", mode="RGBA", exact=True),
    "a small word on a white page": word_on_a_page(),
}


@each_row("data", FORMATS.values(), ids=FORMATS.keys())
def test_a_real_screenshot_is_accepted_in_every_format(data: bytes) -> None:
    assert check_visual(GATE, [image(data)]) == []


def test_without_pillow_an_image_is_refused_with_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    refused = judge_image(image(png()), GATE)
    assert isinstance(refused, Finding)
    assert refused.code == "EVD528"
    assert "interlock[browser]" in refused.fix
    assert not_an_image(image(png())) is None
    assert not_an_image(image(b"RIFF\x24\0\0\0WAVEfmt ")) is not None


LOGS: dict[str, tuple[str | bytes, list[str]]] = {
    "clean": (console(), []),
    "warnings only": (console(record("console", "warning"), record("response", status=304)), []),
    "console error": (console(record("console", "error")), ["EVD533"]),
    "page error": (console(record("pageerror", "error")), ["EVD533"]),
    "failed request": (console(record("requestfailed")), ["EVD533"]),
    "HTTP 404": (console(record("response", status=404)), ["EVD533"]),
    "other origin": (console(record("blocked", "warning")), ["EVD535"]),
    "cut short": (console(record("console"), count=3), ["EVD531"]),
    "unknown kind": (console(record("gossip")), ["EVD531"]),
    "response without a status": (console(record("response")), ["EVD533"]),
    "blank line inside": (console() + "\n\n", ["EVD531"]),
    "not JSON": (console() + "{oops\n", ["EVD531"]),
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


UNJUDGED = [
    (check_console, "console", "no errors seen"),
    (check_a11y, "a11y", "# Audit"),
    (check_command, "reports", "12 passed"),
]


@each_row(("check", "key", "data"), UNJUDGED)
def test_what_no_collector_wrote_is_noted_outside_a_run_and_refused_inside(check: Any, key: str, data: str) -> None:
    assert codes(check(GATE, [subject(data, key)], in_run=False)) == ["EVD553"]
    assert codes(check(GATE, [subject(data, key)], in_run=True)) == ["EVD531"]


@each_row("data", ['[{"violations": [{"id": "label"}]}]', '\ufeff{"violations": []}', " \n[]"])
def test_what_looks_like_json_is_refused_and_is_no_prose(data: str) -> None:
    assert codes(check_a11y(GATE, [subject(data, "a11y")], in_run=False)) == ["EVD531"]


@each_row("in_run", [True, False])
def test_what_is_meant_for_a_machine_and_is_not_of_its_form_is_refused(*, in_run: bool) -> None:
    console_log = subject('{"schema": "interlock.console/2", "records": 0}', "console")
    assert codes(check_console(GATE, [console_log], in_run=in_run)) == ["EVD531"]
    assert codes(check_a11y(GATE, [subject({"score": 100}, "a11y")], in_run=in_run)) == ["EVD531"]
    assert codes(check_command(GATE, [subject(command_log("GATE-Y"))], in_run=in_run)) == ["EVD531"]


def test_a_plain_result_of_axe_is_read_outside_a_run_only() -> None:
    raw = [subject(axe(*rules, raw=True), "a11y") for rules in ((), (rule("label", "critical", "#a"),))]
    assert codes(check_a11y(GATE, raw, in_run=False)) == ["EVD543"]
    assert codes(check_a11y(GATE, raw, in_run=True)) == ["EVD531"] * 2


A11Y: dict[str, tuple[dict[str, Any], list[str]]] = {
    "clean": (axe(), []),
    "minor and moderate": (axe(rule("a", "minor", "#x"), rule("b", "moderate", "#y")), []),
    "serious": (axe(rule("label", "serious", "#mail")), ["EVD543"]),
    "no impact": (axe(rule("label", None, "#mail")), ["EVD543"]),
    "an element weighs more than its rule": (
        axe({"id": "label", "impact": "minor", "nodes": [{"target": ["#a"], "impact": "critical"}]}),
        ["EVD543"],
    ),
    "one engine": (axe() | {"engines": [{"name": "axe-core", "version": "4"}]}, ["EVD531"]),
    "serious by the second engine": (axe(rule("label", "serious", "#mail") | {"engine": "accesslint"}), ["EVD543"]),
    "good practice": (axe(rule("region", "serious", "#x") | {"tags": ["best-practice"]}), ["EVD548"]),
    "good practice that is a part of WCAG": (
        axe(rule("region", "serious", "#x") | {"tags": ["best-practice", "wcag2a"]}),
        ["EVD543"],
    ),
    "undecided": (axe(incomplete=[rule("color-contrast", "serious")]), ["EVD546"]),
    "no frames": (axe() | {"frames": []}, ["EVD531"]),
    "half of a frame withheld": (axe() | {"frames": [{"url": "x", "withheld": 0.5}]}, []),
    "most of a frame withheld": (axe() | {"frames": [{"url": "x", "withheld": 0.51}]}, ["EVD549"]),
}


@each_row(("result", "expected"), A11Y.values(), ids=A11Y.keys())
def test_an_accessibility_report_passes_only_when_whole_and_clean(result: dict[str, Any], expected: list[str]) -> None:
    assert codes(check_a11y(GATE, [subject(result, "a11y")], in_run=True)) == expected


def test_a_violation_is_reported_with_rule_impact_element_and_help() -> None:
    violations = [rule(f"rule-{i}", "critical", f"#el-{i}", "#more") for i in range(7)]
    nested = rule("nested", "serious") | {"nodes": [{"target": [["iframe", "#shadow"], "input"]}], "frame": 1}
    (finding,) = check_a11y(GATE, [subject(axe(nested, *violations), "a11y")], in_run=True)
    assert "axe-core rule-0 (critical) at `#el-0` and 1 more: Help for rule-0" in finding.found
    assert "frame 1: iframe #shadow input" in finding.found
    assert "3 more" in finding.found


REPORTS: dict[str, tuple[bytes, list[str]]] = {
    "names the tree": (f"Reviewed tree: {TREE}".encode(), []),
    "does not name it": (b'{"verdict": "Looks good."}', ["EVD552"]),
    "names another": (b"Reviewed tree: sha256:" + b"0" * 64, ["EVD552"]),
}


@pytest.mark.parametrize(("data", "inside"), REPORTS.values(), ids=REPORTS.keys())
def test_a_report_in_a_run_names_its_tree(data: bytes, inside: list[str]) -> None:
    assert codes(check_report(GATE, [subject(data)], in_run=True, tree=TREE)) == inside
    assert codes(check_report(GATE, [subject(data)], in_run=False, tree=None)) == ["EVD553"]


COMMANDS: dict[str, tuple[str, list[str]]] = {
    "passed": (command_log(GATE), []),
    "failed": (command_log(GATE, exit_status=2), ["EVD555"]),
    "killed": (command_log(GATE, exit_status=-9), ["EVD555"]),
    "no status": (command_log(GATE, exit_status=None), ["EVD555"]),
    "timed out": (command_log(GATE, exit_status=None, timed_out=True), ["EVD556"]),
    "timed_out is missing": (command_log(GATE, timed_out=None), ["EVD531"]),
}


@each_row(("log", "expected"), COMMANDS.values(), ids=COMMANDS.keys())
def test_a_command_log_is_judged_by_its_exit_status_alone(log: str, expected: list[str]) -> None:
    assert codes(check_command(GATE, [subject(log)], in_run=True)) == expected


def test_a_command_gate_leaves_other_reports_aside() -> None:
    assert check_command(GATE, [subject("# Review"), subject(command_log(GATE))], in_run=True) == []


def test_a_gate_without_a_usable_file_is_refused_for_each_key() -> None:
    visual = DEFAULT_PROTOCOL.gates["GATE-VISUAL-QA"]
    assert codes(check_gate(visual, [], in_run=True)) == ["EVD520", "EVD520"]
    assert codes(check_gate(visual, [image(png())], in_run=False)) == ["EVD520"]
    assert codes(check_gate(OTHER_GATE, [], in_run=False)) == ["EVD520"]
