"""The rule table of this room: complete, unique, and every row held by a test."""

import re
from pathlib import Path

import interlock.gates
from interlock.gates.rules import BY_CODE, RULES, name_character, quote

GATES = Path(interlock.gates.__file__).parent


def test_every_row_is_complete_and_unique() -> None:
    assert (len(BY_CODE), [rule.code for rule in RULES]) == (len(RULES), sorted(rule.code for rule in RULES))
    for rule in RULES:
        assert re.fullmatch(r"(EVD5|TSK7)\d\d", rule.code)
        assert rule.title
        assert rule.remedy.endswith(".")
        assert rule.source.startswith(("Strict Envelope §", "Interlock: "))
        assert rule.good
        assert rule.bad


def test_every_row_is_used_and_every_used_code_has_a_row() -> None:
    sources = [path.read_text() for path in GATES.rglob("*.py") if path.name != "rules.py"]
    used = set(re.findall(r'"((?:EVD5|TSK7)\d\d)"', "\n".join(sources)))
    assert used == set(BY_CODE)


def test_every_row_is_asserted_by_a_test() -> None:
    tests = "\n".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert {code for code in BY_CODE if f'"{code}"' not in tests} == set()


def test_quoted_text_is_one_bounded_printable_line() -> None:
    shown = quote("a`b\n\x1b[0m\u202e" + "x" * 500)
    assert shown.startswith("`a\\u{0060}b\\n\\u{001B}[0m\\u{202E}")
    assert "\n" not in shown
    assert len(shown) < 200


def test_a_character_is_named_by_code_point() -> None:
    assert name_character("\u041e") == "U+041E (CYRILLIC CAPITAL LETTER O)"
    assert name_character("\0").startswith("U+0000")


def test_the_public_names_are_there() -> None:
    for name in interlock.gates.__all__:
        assert getattr(interlock.gates, name) is not None
