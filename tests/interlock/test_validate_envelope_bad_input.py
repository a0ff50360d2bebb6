"""Bad input and real answers through the command: findings of their own, an honest exit status, no traceback."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.envelope import render
from interlock.envelope.template import example
from tests.interlock.command import Ran, check, run

GOOD = render(example("web-design-lead", outcome="progress"))
MIB = 1024 * 1024


def swap(old: str, new: str) -> bytes:
    """Return the good response with one change."""
    assert old in GOOD
    return GOOD.replace(old, new, 1).encode()


BYTES: dict[str, tuple[bytes, str]] = {
    "binary": (bytes(range(256)) * 40, "ENV103"),
    "escape": (swap("landing", "\x1b[2Jlanding"), "ENV106"),
    "look-alike in a status": (swap("IN_PROGRESS", "IN_PR\u041eGRESS"), "ENV301"),
    "a hundred thousand bullets": (b"- a\n" * 100_000, "ENV223"),
    "second envelope in OUTPUT": (swap("NEXT_ACTIONS:", f"{GOOD}\nNEXT_ACTIONS:"), "ENV208"),
}
"""What passes through the bytes, the characters and the layout; `tests/envelope` has each rule."""


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
        assert row["level"] != "error" or all(row[key] for key in ("message", "expected", "fix", "source")), row


@pytest.mark.long
@pytest.mark.parametrize("form", ["text", "sarif", "github"])
def test_bad_input_cannot_drive_the_terminal_in_any_form(form: str, tmp_path: Path):
    for number, (data, _) in enumerate(BYTES.values()):
        (tmp_path / f"{number}.md").write_bytes(data)
    ran = run("--format", form, *sorted(tmp_path.iterdir()))
    assert ran.status == 1
    assert all(character == "\n" or character.isprintable() for character in ran.out)


def test_a_file_of_100_mb_and_an_endless_device_are_refused_unread(tmp_path: Path):
    with (tmp_path / "large.md").open("wb") as file:
        file.truncate(100 * MIB)
    for words in ([tmp_path / "large.md"], ["--max-bytes", "4096", "/dev/zero"]):
        ran = check(*words)
        assert (ran.status, ran.errors) == (1, ["ENV101"])
        assert ran.findings[0]["found"].startswith("more than ")


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


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "EVD508"),
    "pipe": (os.mkfifo, "EVD509"),
    "not an axe result": (lambda path: path.write_text('{"score": 100}'), "EVD531"),
}


@pytest.mark.parametrize("name", FILES)
def test_each_kind_of_bad_evidence_file_is_refused(name: str, tmp_path: Path):
    make, code = FILES[name]
    (tmp_path / CITED).parent.mkdir(parents=True)
    make(tmp_path / CITED)
    flags = ("--agent", "a11y-auditor", "--current-status", "QA_IN_PROGRESS", "--root", tmp_path)
    ran = check(*flags, "-", stdin=QA.encode())
    assert ran.status == 1
    rows = [row for row in ran.findings if row["code"] == code]
    assert rows, ran.findings
    assert (rows[0]["field"], rows[0]["line"]) == ("EVIDENCE.a11y", QA.split("\n").index(f"    - {CITED}") + 1)
    assert_clear(ran)


def test_all_thirteen_extract(corpus: Path, tmp_path: Path):
    (tmp_path / "interlock.toml").write_text('[envelope]\ninputs = "warn"\n')
    answers = sorted(path for path in corpus.glob("*.md") if path.name != "README.md")
    ran = check("--extract", "--no-evidence", "--root", tmp_path, *answers)
    assert (ran.status, len(ran.files), [row["ok"] for row in ran.files].count(False)) == (1, 13, 12)
    for row in ran.files:
        assert row["status"], row["path"]
        assert row["normalised"], row["path"]
        assert {finding["code"] for finding in row["findings"]}.isdisjoint({"ENV223", "ENV224", "ENV299"}), row["path"]
