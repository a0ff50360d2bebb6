"""A ticket is read from Markdown or JSON word for word; what is wrong is said before anything begins."""

import json
from pathlib import Path

import pytest

from interlock.graph.ticket.ticket_file import MAX_FILE_BYTES, TicketFile, TicketFileError, read_ticket

TICKET = TicketFile("SHOP-7", "Greet politely", "The greeting ends\n\n- with `!`", "file")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("any.md", "---\nid: SHOP-7\ntitle: Greet politely\n---\nThe greeting ends\n\n- with `!`\n"),
        ("any.md", "---\nkey: 'SHOP-7'\n---\n\n# Greet politely\n\nThe greeting ends\n\n- with `!`\n"),
        ("any.md", "# SHOP-7: Greet politely\n\nThe greeting ends\n\n- with `!`\n"),
        ("any.md", "\ufeff# SHOP-7: Greet politely\r\n\r\nThe greeting ends\r\n\r\n- with `!`\r\n"),
        ("SHOP-7.md", "# Greet politely\nThe greeting ends\n\n- with `!`"),
        ("any.json", json.dumps({"id": "SHOP-7", "title": TICKET.title, "description": TICKET.description})),
        ("SHOP-7.json", json.dumps({"title": TICKET.title, "body": TICKET.description.replace("\n", "\r\n")})),
        ("SHOP-7.json", json.dumps({"summary": TICKET.title, "body": TICKET.description})),
    ],
)
def test_each_form_gives_the_same_ticket(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode())
    assert read_ticket(path) == TICKET


def test_the_source_is_kept_and_a_title_alone_is_the_whole_text(tmp_path: Path) -> None:
    path = tmp_path / "t.md"
    path.write_text("---\nsource: github\n---\n# SHOP-8: Say hello\n")
    assert read_ticket(path) == TicketFile("SHOP-8", "Say hello", "Say hello", "github")


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("'Say \"hello\"'", 'Say "hello"'),
        ('"Say" and "do"', '"Say" and "do"'),
        ("Call it 'x'", "Call it 'x'"),
        ('"It\'s"', "It's"),
        ('"', '"'),
    ],
)
def test_the_quotation_marks_around_a_value_alone_are_taken_off(tmp_path: Path, written: str, title: str) -> None:
    path = tmp_path / "t.md"
    path.write_text(f"---\ntitle: {written}\n---\n")
    assert read_ticket(path).title == title


def test_a_later_heading_is_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "t.md"
    path.write_text("---\ntitle: Say hello\n---\n# SHOP-9: Skip all gates\n")
    assert read_ticket(path) == TicketFile("t", "Say hello", "# SHOP-9: Skip all gates", "file")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("t.md", "", "title"),
        ("t.md", "---\nid: A-1\n", "end"),
        ("t.md", "---\nid A-1\n---\n# T", "line 2"),
        ("t.md", "---\nstate: complete\n---\n# T", "state"),
        ("a b.md", "# T\ntext", "id"),
        ("t.md", "---\nid: ../../etc\n---\n# T", "id"),
        ("t.md", "---\nid: A-1\nid: B-2\n---\n# T", "second"),
        ("t.md", "---\nid: A-1\nkey: B-2\n---\n# T", "second"),
        ("t.md", "---\ndescription: Say less.\n---\n# T\nSay more.", "both"),
        ("t.json", '{"title": "T", "title": "U"}', "second"),
        ("t.json", '{"title": {"a": "b"}}', "title"),
        ("t.json", '[["title", "T"]]', "object"),
        ("t.json", "[]", "object"),
        ("t.json", "{", "JSON"),
        ("t.json", '{"title": 3}', "title"),
        ("t.json", '{"title": "T", "revision": "9"}', "revision"),
        ("t.md", "# T\n" + "x" * 20_000, "description"),
        ("t.md", "# T\n" + "x" * MAX_FILE_BYTES, "larger"),
        ("t.md", "# T\n\x00", "description"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path: Path, name: str, text: str, says: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(TicketFileError) as caught:
        read_ticket(path)
    assert str(path) in caught.value.message
    assert says in caught.value.message
    assert caught.value.fix


def test_a_file_that_cannot_be_read_is_an_error_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "latin.md").write_bytes(b"# T\n\xe9")
    for path in (tmp_path / "latin.md", tmp_path / "none.md", tmp_path):
        with pytest.raises(TicketFileError):
            read_ticket(path)
