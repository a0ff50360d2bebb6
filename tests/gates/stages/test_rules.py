"""The rule table of payloads: complete, unique, and every row held by a test."""

import re
from pathlib import Path
from typing import get_args

import interlock.gates.stages
from interlock.gates.stages.checks import CHECKS
from interlock.gates.stages.rules import BY_CODE, RULES, listed, shown
from interlock.gates.stages.stage import CheckName

STAGES = Path(interlock.gates.stages.__file__).parent


def test_every_row_is_complete_and_unique() -> None:
    assert (len(BY_CODE), list(BY_CODE)) == (len(RULES), sorted(BY_CODE))
    for rule in RULES:
        assert re.fullmatch(r"STG\d\d\d", rule.code)
        assert rule.title
        assert rule.remedy.endswith(".")
        assert rule.source.startswith(("Ticket Protocol §", "Governance Design §", "Interlock: "))


def test_every_row_is_used_and_every_used_code_has_a_row() -> None:
    sources = [path.read_text() for path in STAGES.glob("*.py") if path.name != "rules.py"]
    assert set(re.findall(r'"(STG\d\d\d)"', "\n".join(sources))) == set(BY_CODE)


def test_every_row_is_asserted_by_a_test() -> None:
    tests = "\n".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert {code for code in BY_CODE if f'"{code}"' not in tests} == set()


def test_every_name_of_a_check_has_a_function() -> None:
    assert set(CHECKS) == set(get_args(CheckName))


def test_untrusted_text_is_shown_as_one_bounded_json_string() -> None:
    assert shown('a"b\n\x1b\u202e\ud800é') == '"a\\"b\\n\\u001b\\u202e\\ud800é"'
    assert shown("x" * 500, 10) == '"xxxxxxxxxx"…'


def test_a_list_in_a_finding_is_bounded() -> None:
    assert listed([]) == "none"
    assert listed([str(n) for n in range(22)]).endswith("19 and 2 more")


def test_the_public_names_are_there() -> None:
    for name in interlock.gates.stages.__all__:
        assert getattr(interlock.gates.stages, name) is not None
