"""Bad input through the real process: each kind has a finding of its own, an honest exit status and no traceback."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.envelope import render
from interlock.envelope.template import example
from tests.interlock.command import Ran, check, run

GOOD = render(example("web-design-lead", outcome="progress"))
HAND_OVER = render(example("frontend-implementer"))
MIB = 1024 * 1024


def swap(old: str, new: str) -> bytes:
    """Return the good response with one change."""
    assert old in GOOD
    return GOOD.replace(old, new, 1).encode()


TURNED = ("STATUS: IN_PROGRESS\nTASK_ID: HOME-UI-001", "TASK_ID: HOME-UI-001\nSTATUS: IN_PROGRESS")

BYTES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "ENV102"),
    "blank": (b" \n\t\n", "ENV102"),
    "binary": (bytes(range(256)) * 40, "ENV103"),
    "UTF-16 LE with mark": (GOOD.encode("utf-16"), "ENV104"),
    "UTF-16 LE": (GOOD.encode("utf-16-le"), "ENV104"),
    "UTF-16 BE with mark": (b"\xfe\xff" + GOOD.encode("utf-16-be"), "ENV104"),
    "UTF-16 BE": (GOOD.encode("utf-16-be"), "ENV104"),
    "UTF-32": (GOOD.encode("utf-32"), "ENV104"),
    "invalid UTF-8": (swap("landing", "land\u00e9ng").replace("é".encode(), b"\xe9"), "ENV103"),
    "overlong UTF-8": (swap("landing", "X").replace(b"X", b"\xc0\xaf"), "ENV103"),
    "encoded surrogate": (swap("landing", "X").replace(b"X", b"\xed\xa0\x80"), "ENV103"),
    "byte order mark": (b"\xef\xbb\xbf" + GOOD.encode(), "ENV105"),
    "NUL": (swap("landing", "land\0ing"), "ENV106"),
    "escape": (swap("landing", "\x1b[2Jlanding"), "ENV106"),
    "lone CR": (swap("landing page\n", "landing\rpage\n"), "ENV107"),
    "CR line ends": (GOOD.replace("\n", "\r").encode(), "ENV107"),
    "line separator": (swap("landing", "land\u2028ing"), "ENV107"),
    "next line": (swap("landing", "land\u0085ing"), "ENV107"),
    "bidirectional override": (swap("landing", "\u202elanding\u202c"), "ENV108"),
    "zero-width space": (swap("landing", "land\u200bing"), "ENV109"),
    "tag characters": (swap("landing", "landing\U000e0041"), "ENV109"),
    "look-alike in a status": (swap("IN_PROGRESS", "IN_PR\u041eGRESS"), "ENV110"),
    "zero-width joiner in a status": (swap("IN_PROGRESS", "IN_\u200dPROGRESS"), "ENV110"),
    "one long line": (b"STATUS: " + b"x" * (MIB - 100), "ENV203"),
    "a hundred thousand bullets": (b"- a\n" * 100_000, "ENV223"),
    "label twice": (swap("TASK: ", "TASK: one\nTASK: "), "ENV204"),
    "labels in another order": (swap(*TURNED), "ENV205"),
    "misspelt label": (swap("REPORTS_TO:", "REPORT_TO:"), "ENV206"),
    "bold label": (swap("STATUS:", "**STATUS:**"), "ENV206"),
    "lower-case label": (swap("STATUS:", "Status:"), "ENV206"),
    "missing field": (swap("REPORTS_TO: orchestrator\n", ""), "ENV203"),
    "extra label": (swap("OUTPUT:", "APPROVED_BY: me\nOUTPUT:"), "ENV207"),
    "second envelope in OUTPUT": (swap("NEXT_ACTIONS:", f"{GOOD}\nNEXT_ACTIONS:"), "ENV209"),
    "label in OUTPUT": (swap("NEXT_ACTIONS:", "STATUS: APPROVED\nNEXT_ACTIONS:"), "ENV208"),
    "prose before": (b"Sure, here it is:\n\n" + GOOD.encode(), "ENV201"),
    "prose after": (GOOD.encode() + b"\nHope this helps!\n", "ENV202"),
    "no envelope": (b"All done, everything works.\n", "ENV223"),
}  # fmt: skip


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("name", BYTES)
def test_each_kind_of_bad_input_is_refused_by_its_own_rule(name: str, tmp_path: Path):
    data, code = BYTES[name]
    path = tmp_path / "answer.md"
    path.write_bytes(data)
    ran = check(path)
    assert ran.status == 1
    row = ran.files[0]
    assert (row["ok"], row["effective_status"]) == (False, "BLOCKED")
    assert code in ran.errors
    assert_clear(ran)


def assert_clear(ran: Ran) -> None:
    """Every error says what, where it comes from and what to do."""
    for row in ran.findings:
        if row["level"] == "error":
            assert row["message"]
            assert row["expected"]
            assert row["fix"]
            assert row["source"]


@pytest.mark.long
@pytest.mark.parametrize("form", ["text", "sarif", "github"])
def test_bad_input_cannot_drive_the_terminal_in_any_form(form: str, tmp_path: Path):
    for number, (data, _) in enumerate(BYTES.values()):
        (tmp_path / f"{number}.md").write_bytes(data)
    ran = run("--format", form, *sorted(tmp_path.iterdir()))
    assert ran.status == 1
    assert all(character == "\n" or character.isprintable() for character in ran.out)


def test_invalid_utf8_names_the_offset():
    data, _ = BYTES["invalid UTF-8"]
    ran = check("-", stdin=data)
    assert str(data.index(b"\xe9")) in ran.findings[0]["message"]


def test_a_look_alike_letter_is_named_by_its_code_point():
    ran = check("-", stdin=BYTES["look-alike in a status"][0])
    assert any("U+041E" in row["message"] + row["found"] for row in ran.findings)


@pytest.mark.parametrize("label", ["REPORT_TO", "GATES-PASSED", "Status"])
def test_a_misspelt_label_is_answered_with_the_right_one(label: str):
    right = {"REPORT_TO": "REPORTS_TO", "GATES-PASSED": "GATES_PASSED", "Status": "STATUS"}[label]
    ran = check("-", stdin=swap(f"{right}:", f"{label}:"))
    (row,) = [row for row in ran.findings if row["code"] == "ENV206"]
    assert f"{right}:" in row["expected"] + row["fix"]


def test_an_unknown_status_is_refused_with_the_six():
    ran = check("-", stdin=swap("STATUS: IN_PROGRESS", "STATUS: COMPLETED"))
    assert ran.status == 1
    (row,) = [row for row in ran.findings if row["field"] == "STATUS"]
    assert "READY_FOR_REVIEW" in row["expected"] + row["fix"]


def test_a_gate_with_a_remark_is_refused_where_it_stands():
    ran = check("-", stdin=swap("GATES_PASSED:\n- GATE-MSG-STRICT", "GATES_PASSED:\n- GATE-MSG-STRICT (self-assessed)"))
    assert ran.status == 1
    assert [row["field"] for row in ran.findings if row["level"] == "error"] == ["GATES_PASSED"]


@pytest.mark.parametrize("sparse", [True, False])
def test_a_file_of_100_mb_is_refused_unread(sparse: bool, tmp_path: Path):
    path = tmp_path / "large.md"
    with path.open("wb") as file:
        if sparse:
            file.truncate(100 * MIB)
        else:
            for _ in range(100):
                file.write(b"x" * MIB)
    ran = check(path)
    assert (ran.status, ran.errors) == (1, ["ENV101"])


@pytest.mark.long
def test_a_million_bullets_are_refused_by_size_and_read_when_allowed():
    bullets = b"- a\n" * 1_000_000
    assert check("-", stdin=bullets).errors == ["ENV101"]
    data = swap("INPUTS_USED: []\n", "INPUTS_USED:\n" + "- a\n" * 300_000)
    ran = check("--max-bytes", "8000000", "-", stdin=data)
    assert ran.status == 1
    assert len(ran.findings) < 200


# Evidence: the files themselves.

QA = render(example("a11y-auditor"))
CITED = "artifacts/a11y/HOME-UI-001/1/axe.json"


def project(tmp_path: Path) -> Path:
    (tmp_path / "artifacts/a11y/HOME-UI-001/1").mkdir(parents=True)
    return tmp_path


def judge(root: Path, text: str = QA) -> Ran:
    flags = ("--agent", "a11y-auditor", "--current-status", "QA_IN_PROGRESS", "--root", root)
    return check(*flags, "-", stdin=text.encode())


def directory(path: Path) -> None:
    path.mkdir()


def symlink(path: Path) -> None:
    target = path.with_name("real.json")
    target.write_text("{}")
    path.symlink_to(target)


def hard_link(path: Path) -> None:
    target = path.with_name("real.json")
    target.write_text("{}")
    path.hardlink_to(target)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def nothing(path: Path) -> None:
    assert not path.exists()


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (nothing, "EVD508"),
    "symlink": (symlink, "EVD509"),
    "hard link": (hard_link, "EVD510"),
    "directory": (directory, "EVD511"),
    "pipe": (pipe, "EVD511"),
    "empty": (lambda path: path.write_bytes(b""), "EVD512"),
    "not an axe result": (lambda path: path.write_text('{"score": 100}'), "EVD541"),
}


@pytest.mark.parametrize("name", FILES)
def test_each_kind_of_bad_evidence_file_is_refused(name: str, tmp_path: Path):
    make, code = FILES[name]
    root = project(tmp_path)
    make(root / CITED)
    ran = judge(root)
    assert ran.status == 1
    rows = [row for row in ran.findings if row["code"] == code]
    assert rows, ran.findings
    assert (rows[0]["field"], rows[0]["line"]) == ("EVIDENCE.a11y", QA.split("\n").index(f"    - {CITED}") + 1)
    assert_clear(ran)


@pytest.mark.parametrize(
    "path",
    [
        "artifacts/../etc/passwd", "/etc/passwd", "/dev/zero", "artifacts//a.json", "artifacts\\a.json", "docs/a.json",
        "~/a.json", "https://example.org/a.json", "artifacts/\u0430.json",
    ],
)  # fmt: skip
def test_an_evidence_path_that_leads_elsewhere_is_refused(path: str, tmp_path: Path):
    ran = judge(project(tmp_path), QA.replace(CITED, path))
    assert ran.status == 1
    line = QA.split("\n").index(f"    - {CITED}") + 1
    assert [row for row in ran.findings if row["level"] == "error" and row["line"] == line]
    assert_clear(ran)


def test_text_named_png_is_no_screenshot(tmp_path: Path):
    text = render(example("visual-qa"))
    for key in ("screenshots", "console"):
        (tmp_path / f"artifacts/{key}/HOME-UI-001/1").mkdir(parents=True)
    for width in (375, 768, 1280):
        (tmp_path / f"artifacts/screenshots/HOME-UI-001/1/page-{width}.png").write_text("looks fine")
    (tmp_path / "artifacts/console/HOME-UI-001/1/console.jsonl").write_text("no errors\n")
    flags = ("--agent", "visual-qa", "--current-status", "QA_IN_PROGRESS", "--root", tmp_path)
    ran = check(*flags, "-", stdin=text.encode())
    assert ran.status == 1
    assert {row["field"] for row in ran.findings if row["level"] == "error"} >= {"EVIDENCE.screenshots"}
    assert check(*flags, "--no-evidence", "-", stdin=text.encode()).status == 0
