"""Extraction: one envelope out of a message, what was left out reported, two candidates refused."""

import random
from pathlib import Path
from typing import Final

import pytest

from interlock.envelope import parse, validate
from tests.envelope.texts import APPROVAL, BUILD, IN_PROGRESS, IN_QA, QA, blocks, codes
from tests.table import each_row

HEAD = "".join(part for label, part in blocks(BUILD).items() if label not in {"OUTPUT", "NEXT_ACTIONS"})
STEPS = blocks(BUILD)["NEXT_ACTIONS"]
TEXT = "## Summary\n\n```tsx\nconst a = 1;\n```\n\n| a | b |\n"
TWO_FENCES = f"# Report\n\n```\n{HEAD}OUTPUT:\n```\n\n{TEXT}\n---\n\n```\n{STEPS}```\n"


@pytest.mark.parametrize("text", [BUILD, QA, APPROVAL, BUILD.replace("\n", "\r\n")])
def test_a_strict_response_is_extracted_as_itself(text: str) -> None:
    strict, loose = parse(text), parse(text, extract=True)
    assert (loose.normalised, loose.envelope, loose.fields) == ((), strict.envelope, strict.fields)


@each_row(
    ("text", "output"),
    [
        (TWO_FENCES, f"{TEXT}\n---"),
        (f"```text\n{BUILD}```\n", None),
        (f"~~~\n{BUILD}~~~\nbye", None),
        (f"````\n{BUILD}````", None),
        (f"# Title\n\nSome words.\n\n{BUILD}", None),
        (f"{BUILD}\nLet me know if you need more.\n", None),
        (f"```\n{HEAD}OUTPUT:\n```\n{TEXT}{STEPS}", TEXT.rstrip("\n")),
        (f"```\n{HEAD}OUTPUT:\n\n```\nOne line.\n```yaml\n{STEPS}```\n\nBye.", "One line."),
    ],
)
def test_what_wraps_an_envelope_is_left_out_and_reported(text: str, output: str | None) -> None:
    reading = parse(text, extract=True)
    plain = parse(BUILD).envelope
    assert reading.envelope is not None
    assert plain is not None
    assert reading.envelope.output == (plain.output if output is None else output)
    assert reading.envelope.next_actions == plain.next_actions
    assert reading.normalised
    assert parse(text).envelope is None


def test_lines_are_those_of_the_message_as_given() -> None:
    message = TWO_FENCES.replace("REPORTS_TO: orchestrator", "REPORTS_TO: me")
    finding = validate(message, extract=True, **IN_PROGRESS).findings[0]
    assert (finding.code, message.split("\n")[finding.line - 1]) == ("ENV304", "REPORTS_TO: me")
    steps = parse(message, extract=True).fields["NEXT_ACTIONS"]
    assert message.split("\n")[steps.line - 1] == "NEXT_ACTIONS:"


def test_what_was_left_out_is_reported_by_line() -> None:
    assert parse(TWO_FENCES, extract=True).normalised == (
        "lines 1-2: left out text before the envelope",
        "line 3: left out a code fence",
        "line 26: left out a code fence",
        "line 38: left out a code fence",
        "line 42: left out a code fence",
    )


def test_two_candidates_are_refused() -> None:
    report = validate(f"{BUILD}\nor rather\n\n{QA}", extract=True, **IN_PROGRESS)
    assert codes(report) == {"ENV224"}
    assert report.envelope is None
    assert report.status is None
    assert report.effective_status == "BLOCKED"


@each_row("between", ["\n\n\n", "\n" * 40, "\n\n```\n\nnote\n\n# Heading\n\n", "\n" + "some words\n" * 12])
@each_row("first", [QA.replace("QA_IN_PROGRESS", "BLOCKED"), QA])
def test_two_candidates_are_refused_whatever_follows_their_status(between: str, first: str) -> None:
    """A FAIL with blank lines after STATUS, then a PASS: neither may be taken for the one answer."""
    apart = first.replace("\nTASK_ID:", f"{between}TASK_ID:", 1)
    for text in (f"{apart}\n{QA}", f"{QA}\n{apart}", f"{apart}\n{apart}"):
        report = validate(text, extract=True, **IN_QA)
        assert codes(report) == {"ENV224"}
        assert report.verdict is None


def test_a_status_in_prose_is_no_candidate() -> None:
    """Only the status that a task id follows before the next status begins an envelope."""
    assert parse(f"STATUS: see below\n\n{BUILD}", extract=True).envelope == parse(BUILD).envelope


@each_row(
    "code", ["  status: 'draft' | 'open';", "status: TourStatus | BookingStatus;", "STATUS: Already fixed in 1a2b3c"]
)
def test_a_line_of_code_or_prose_is_not_where_an_envelope_begins(code: str) -> None:
    marked = BUILD.replace("STATUS:", "**Status:**").replace("TASK_ID:", "**TASK_ID:**")
    for envelope in (BUILD, marked) if code[0] != "S" else (BUILD,):
        found = codes(validate(f"```ts\n{code}\n```\n\n{envelope}", extract=True, **IN_PROGRESS))
        assert found <= {"ENV206"}, found


HEADS: Final = {
    "indented": "  {}", "quoted": "> {}", "quoted twice": ">> {}", "bullet": "- {}", "number": "1. {}", "head": "## {}",
    "no-break space": "\xa0{}", "no width": "\u200b{}", "table": "| {} |", "string": '"{}",', "element": "<p>{}</p>",
    "dot": "\u2022 {}", "letter": "b) {}", "roman number": "iv. {}", "comment": "<!-- {}",
}  # fmt: skip
LABELS: Final[dict[str, tuple[str, str]]] = {
    "bold": ("STATUS:", "**STATUS:**"), "bold name": ("STATUS:", "**STATUS**:"), "code": ("STATUS:", "`STATUS:`"),
    "lower": ("STATUS", "status"), "title": ("STATUS", "Status"), "wide colon": (":", "\uff1a"),
    "look-alike": ("STATUS", "\u0405TATUS"), "equals": (": ", " = "), "next line": (": ", ":\n\n"),
    "escaped": ("_", "\\_"), "words": ("_QA", " QA"), "heading": ("STATUS: ", "## Status\n\n"), "blank": (":", ""),
    "underlined": ("STATUS: ", "STATUS\n======\n"), "tab": (": ", "\t"), "arrow": (":", " ->"),
    "sign": (":", " \u2192"),    "dash": (":", " \u2014"), "entity": (":", "&#58;"), "named entity": (":", "&colon;"),
    "cells": ("STATUS: ", "<tr><td>STATUS</td><td>"), "emphasis": ("STATUS", "ST<b>AT</b>US"),
    "link": ("STATUS", "[STATUS](https://x.example)"), "titled link": ("STATUS", '[STATUS](<a)b> "b) c")'),
    "link with a mark in it": ("STATUS", "[STATUS](https://x.example/(a)b)"), "reference": ("STATUS", "[STATUS][ref]"),
    "image": ("STATUS", "![STATUS](a.png)"), "letters as links": ("STAT", "[S](a)[T](b)[A][][T][c]"),
    "footnote": ("STATUS", "STATUS[^1]"), "remark": ("STATUS", "STATUS (final)"), "id": ("STATUS", "STATUS {#a}"),
    "emoji by name": (": ", ": :red_circle: "), "attribute": ("STATUS", '<a title="x>y">STATUS</a>'),
    "comment": ("STATUS", "<!-- a > b -->STATUS"), "autolink": ("STATUS: ", "<STATUS:"), "bold letter": ("S", "**S**"),
    "spaced": ("STATUS", "S T A T U S"), "dotted": ("STATUS", "S.T.A.T.U.S."), "hyphens": ("STATUS", "S-T-A-T-U-S"),
    "points": ("STATUS", "S\u00b7T\u00b7A\u00b7T\u00b7U\u00b7S"), "spaced value": ("_QA", " Q A"),
    "escapes": ("STATUS:", "\\S\\T\\A\\T\\U\\S\\:"), "letter as an entity": ("S", "&#83;"),
    "soft hyphen": ("STATUS", "STA&shy;TUS"), "no width": ("STATUS", "STA\u200dTUS"), "wide": ("ST", "\uff33\uff34"),
    "mathematical": ("STA", "\U0001d412\U0001d413\U0001d400"), "circled": ("ST", "\u24c8\u24c9"),
    "struck out": ("S", "S\u0336"), "wide blanks": ("STATUS", "S\u2003T\u2003A\u2003TUS"),
}  # fmt: skip


@each_row("form, label", [*((form, ("", "")) for form in HEADS.values()), *(("{}", row) for row in LABELS.values())])
@each_row("is_first", [True, False])
def test_another_envelope_is_refused_however_it_is_marked(form: str, label: tuple[str, str], *, is_first: bool) -> None:
    head, _, rest = QA.partition("\n")
    other = "\n".join([form.format(head.replace(*label)), *(f"  {line}" for line in rest.splitlines())])
    alone = form.format("STATUS: READY_FOR_QA".replace(*label))
    for around in (other, alone, f"```\n{alone}\n```"):
        text = f"{around}\n\n{BUILD}" if is_first else f"{BUILD}\n---\n\n{around}\n"
        report = validate(text, extract=True, **IN_PROGRESS)
        assert "ENV224" in codes(report), around
        assert report.envelope is None


BETWEEN: Final = (
    *("", " ", ".", "-", "_", "*", "~~", "`", "\\", "/", "|", "+", "</i>", "<b></b>", "<!-- c -->", "&shy;", "&#8203;"),
    *("\u200d", "\u00ad", "\u00b7", "\u2003", "\u0336"),
)
AROUND: Final = ("{}", "[{}](x)", "[{}][r]", "![{}](a.png 'x')", "**{}**", "`{}`", "<i>{}</i>")
BEFORE: Final = (
    "",
    "> ",
    "- ",
    "1. ",
    "## ",
    "| ",
    '<p class="a>b">',
    "* [ ] ",
    "\u2705 ",
    "    ",
    "((",
    "[^1]",
    "<!-- x -->",
)
BEHIND: Final = (
    *(":", " : ", "::", "&colon;", "</b>: ", "**: ", " = ", " | ", " -> ", "\uff1a", "[^1]: ", " (x): ", "{#a}: "),
    *(" \u2014 ", "\\: ", ":\n", "\n\n"),
)
VALUES: Final = ("APPROVED", "**APPROVED**", "[APPROVED](u)", "READY FOR QA", "IN\\_PROGRESS", "B L O C K E D")


def test_a_second_status_is_refused_under_any_composition_of_mark_up() -> None:
    draw = random.Random(1)
    for _ in range(150):
        form = draw.choice(AROUND)
        letters = [form.format(draw.choice((char, f"&#{ord(char)};", chr(ord(char) + 0xFEE0)))) for char in "STATUS"]
        line = draw.choice(BEFORE) + draw.choice(BETWEEN).join(letters) + draw.choice(BEHIND) + draw.choice(VALUES)
        text = draw.choice((f"{line}\n\n{BUILD}", f"{BUILD}\n---\n\n{line}\n"))
        assert "ENV224" in codes(validate(text, extract=True, **IN_PROGRESS)), line


def test_three_labels_are_another_envelope() -> None:
    others = ("> TASK_ID: A-1", "- Gates Passed: NONE", "**EVIDENCE**:", "* Next actions:")
    for lead, between in (("", "\n"), ("As said: ", "; ")):
        for count, expected in ((2, set[str]()), (3, {"ENV224"}), (4, {"ENV224"})):
            text = f"{BUILD}\n---\n\n{lead}" + between.join(others[:count])
            assert codes(validate(text, extract=True, **IN_PROGRESS)) == expected


@each_row(
    "around",
    [
        *("In all, STATUS: BLOCKED", "| GATE-VISUAL-QA | Status: BLOCKED |", "I end (STATUS = `BLOCKED`)."),
        *("In all, [STATUS](https://x.example): BLOCKED", "In all, S T A T U S: B L O C K E D"),
    ],
)
def test_a_verdict_is_not_extracted_from_a_message_that_says_blocked_beside_it(around: str) -> None:
    for text in (f"{around}\n\n{QA}", f"{QA}\n---\n\n{around}\n"):
        report = validate(text, extract=True, **IN_QA)
        assert (codes(report), report.verdict) == ({"ENV224"}, None)


@each_row(
    "prose",
    [
        "The status: it works.",
        "Status: see below",
        "Status: blocked by nothing, all checks ran.",
        "I set STATUS: READY_FOR_QA as asked.",
        "Task: build the page\n\nOutput: below",
        "- status quo: unchanged",
        "| Gate | Status |\n|---|---|\n| lint | APPROVED |",
        "Statuses: READY_FOR_QA and BLOCKED",
        "## Task\n\nThe page.\n\n## Evidence\n\nNone yet.\n\n## Output\n\nBelow.\n\n## Status\n\nAll done.",
        "- GATES_REQUIRED comes from the task\n- GATES_PASSED is short\n- FAIL_REASONS says NONE\n- EVIDENCE is empty",
        "STATUS READY is not one of the six.",
        "I filled STATUS, TASK_ID, GATES_PASSED and FAIL_REASONS as asked.",
        "The status was not blocked; BLOCKED is for failures.",
        "Status quo: APPROVED by nobody",
        "HTTP status: 404",
        "[Status](docs/status.md): all checks ran",
        "The [STATUS](docs/status.md) field says READY_FOR_QA.",
        "STATUS is APPROVED only where the orchestrator says so.",
        "- Status: all is READY_FOR_QA now",
        "| Status | Count |\n|---|---|\n| 404 | 2 |",
        "  status: 'draft' | 'approved';",
        "Task: I'd build the page",
    ],
)
def test_prose_around_an_envelope_may_speak_of_a_status(prose: str) -> None:
    for text in (f"{prose}\n\n{BUILD}", f"{BUILD}\n---\n\n{prose}\n"):
        assert validate(text, extract=True, **IN_PROGRESS).ok, prose


@pytest.mark.long
@each_row(
    "line",
    [
        *("Task - x\n", "status:\n", "STATUS \n", "Task: x &amp; <b>y</b>\n", "](", "](()", '](""', "<a ", '<a "'),
        *("<!--", "][", "[^", "S T A T U ", "STATUS: [", "\n"),
    ],
)
def test_a_message_of_very_many_labels_is_read_in_the_time_that_its_length_takes(line: str) -> None:
    assert validate(line * 20_000 + QA, extract=True, **IN_QA).findings is not None


def test_prose_without_an_envelope_is_not_extracted() -> None:
    report = validate("All done, everything passes.", extract=True)
    assert [finding.code for finding in report.findings] == ["ENV223"]


def test_faults_inside_a_wrapped_envelope_are_all_reported() -> None:
    message = TWO_FENCES.replace("STATUS: READY_FOR_QA", "STATUS: COMPLETED").replace("  a11y: []\n", "")
    assert codes(validate(message, extract=True, **IN_PROGRESS)) == {"ENV301", "ENV216"}


def test_every_real_response_is_extracted_with_all_its_fields(corpus: Path) -> None:
    files = sorted(path for path in corpus.glob("*.md") if path.name != "README.md")
    assert len(files) == 13
    errors: dict[str, set[str]] = {}
    for path in files:
        report = validate(path.read_bytes(), extract=True)
        labels = {label for label in report.reading.fields if "." not in label}
        missing = {finding.field for finding in report.findings if finding.code == "ENV203"}
        assert len(labels | missing) == 12
        assert report.normalised
        assert not validate(path.read_bytes()).ok
        found = [finding for finding in report.findings if finding.level == "error"]
        assert all(finding.fix and finding.source and finding.line for finding in found), path
        errors[path.stem] = {finding.code for finding in found}
    assert errors["SYSTEM-FRONTEND-SCAFFOLD-001"] == set()
    assert "ENV403" in errors["TOURS-UI-001"]
    assert {"ENV203", "ENV207", "ENV217", "ENV307", "ENV413"} <= errors["TOURS-UI-001"]
    assert {"ENV301", "ENV216", "ENV217", "ENV307"} <= errors["OPERATOR-PROFILE-UI-001-CODE-REVIEW"]
    assert {"ENV301", "ENV216"} <= errors["TOURS-UI-001-VISUAL-QA"]
    assert sum(1 for found in errors.values() if found) == 12
    assert sum("ENV203" in found for found in errors.values()) == 1
