"""Extraction: one envelope out of a message, what was left out reported, two candidates refused."""

from pathlib import Path
from typing import Final

import pytest

from interlock.envelope import parse
from tests.envelope.texts import APPROVAL, BUILD, IN_PROGRESS, IN_QA, QA, blocks, check, codes
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
    finding = check(message, extract=True, **IN_PROGRESS).findings[0]
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
    report = check(f"{BUILD}\nor rather\n\n{QA}", extract=True, **IN_PROGRESS)
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
        report = check(text, extract=True, **IN_QA)
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
        found = codes(check(f"```ts\n{code}\n```\n\n{envelope}", extract=True, **IN_PROGRESS))
        assert found <= {"ENV206"}, found


MARKED: Final = (
    *("  {}", "> {}", ">> {}", "- {}", "1. {}", "## {}", "\xa0{}", "| {} |", '"{}",', "<p>{}</p>", "b) {}", "<!-- {}"),
    *("**{}**", "`{}`", '<a title="x>y">{}</a>', "* [ ] {}", "\u2705 {}", "In all, {}", "I end ({})."),
)
SPELT: Final[tuple[tuple[str, str], ...]] = (
    *(("STATUS:", "**STATUS**:"), ("STATUS", "Status"), (":", "\uff1a"), (": ", " = "), (": ", ":\n\n"), (":", "")),
    *(("_", "\\_"), ("STATUS: ", "## Status\n\n"), ("STATUS: ", "STATUS\n======\n"), (":", " \u2014")),
    *((":", "&#58;"), ("STATUS: ", "<tr><td>STATUS</td><td>"), ("STATUS", "ST<b>AT</b>US")),
    *(("STATUS", "[STATUS](https://x.example)"), ("STATUS", "[STATUS](https://x.example/(a)b)")),
    *(("STATUS", "[STATUS][ref]"), ("STATUS", "![STATUS](a.png)"), ("STATUS", "[S](a)TAT[US](b)")),
    *(("STATUS", "STATUS[^1]"), ("STATUS", "STATUS (final)"), ("STATUS", "STATUS {#a}"), ("S", "**S**")),
    *(("STATUS", "S T A T U S"), ("STATUS", "S.T.A.T.U.S."), ("STATUS", "S-T-A-T-U-S"), ("CK", "C K")),
    *(("S", "&#83;"), ("STATUS", "STA&shy;TUS"), ("STATUS", "STA\u200dTUS"), ("ST", "\uff33\uff34"), ("S", "S\u0336")),
    *(("STA", "\U0001d412\U0001d413\U0001d400"), ("ST", "\u24c8\u24c9"), ("STATUS", "S\u2003T\u2003ATUS")),
)


@each_row("form, spelt", [*((form, ("", "")) for form in MARKED), *(("{}", spelt) for spelt in SPELT)])
@each_row("is_first", [True, False])
def test_another_status_is_refused_however_it_is_marked_up(
    form: str, spelt: tuple[str, str], *, is_first: bool
) -> None:
    """A FAIL beside a PASS, or an envelope beside another one: neither may be taken for the one answer."""
    marked = form.format("STATUS: BLOCKED".replace(*spelt))
    whole = "\n".join([marked, *(f"  {line}" for line in BUILD.split("\n")[1:])])
    for around in (marked, whole, f"```\n{marked}\n```"):
        text = f"{around}\n\n{QA}" if is_first else f"{QA}\n---\n\n{around}\n"
        report = check(text, extract=True, **IN_QA)
        assert (codes(report), report.envelope, report.verdict) == ({"ENV224"}, None, None), around


def test_three_labels_are_another_envelope() -> None:
    others = ("> TASK_ID: A-1", "**Gates Passed:** NONE", "**EVIDENCE**:", "Next_actions:")
    for count, expected in ((2, set[str]()), (3, {"ENV224"}), (4, {"ENV224"})):
        text = f"{BUILD}\n---\n\n" + "\n".join(others[:count])
        assert codes(check(text, extract=True, **IN_PROGRESS)) == expected


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
        assert check(text, extract=True, **IN_PROGRESS).ok, prose


@pytest.mark.long
@each_row(
    "line",
    [
        *("Task - x\n", "status:\n", "STATUS \n", "Task: x &amp; <b>y</b>\n", "](", "](()", '](""', "<a ", '<a "'),
        *("<!--", "][", "[^", "S T A T U ", "STATUS: [", "\n"),
    ],
)
def test_a_message_of_very_many_labels_is_read_in_the_time_that_its_length_takes(line: str) -> None:
    assert check(line * 20_000 + QA, extract=True, **IN_QA).findings is not None


def test_prose_without_an_envelope_is_not_extracted() -> None:
    report = check("All done, everything passes.", extract=True)
    assert [finding.code for finding in report.findings] == ["ENV223"]


def test_faults_inside_a_wrapped_envelope_are_all_reported() -> None:
    message = TWO_FENCES.replace("STATUS: READY_FOR_QA", "STATUS: COMPLETED").replace("  a11y: []\n", "")
    assert codes(check(message, extract=True, **IN_PROGRESS)) == {"ENV301", "ENV212"}


def test_every_real_response_is_extracted_with_all_its_fields(corpus: Path) -> None:
    files = sorted(path for path in corpus.glob("*.md") if path.name != "README.md")
    assert len(files) == 13
    errors: dict[str, set[str]] = {}
    for path in files:
        report = check(path.read_bytes(), extract=True)
        labels = {label for label in report.reading.fields if "." not in label}
        missing = {finding.field for finding in report.findings if finding.code == "ENV203"}
        assert len(labels | missing) == 12
        assert report.normalised
        assert not check(path.read_bytes()).ok
        found = [finding for finding in report.findings if finding.level == "error"]
        assert all(finding.fix and finding.source and finding.line for finding in found), path
        errors[path.stem] = {finding.code for finding in found}
    assert errors["SYSTEM-FRONTEND-SCAFFOLD-001"] == set()
    assert "ENV403" in errors["TOURS-UI-001"]
    assert {"ENV203", "ENV204", "ENV306", "ENV413"} <= errors["TOURS-UI-001"]
    assert {"ENV301", "ENV212", "ENV306"} <= errors["OPERATOR-PROFILE-UI-001-CODE-REVIEW"]
    assert {"ENV301", "ENV212"} <= errors["TOURS-UI-001-VISUAL-QA"]
    assert sum(1 for found in errors.values() if found) == 12
    assert sum("ENV203" in found for found in errors.values()) == 1
