"""The rule tables of gates and of stages: complete, unique, and every row held by a test."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import interlock.gates
from interlock.core.rule import Rule
from interlock.gates import rules, stages
from interlock.gates.rules import listed, quote
from interlock.gates.stages import rules as stage_rules
from interlock.gates.stages.rules import shown
from tests.table import each_row

TESTS = Path(__file__).parent
TABLES: list[tuple[ModuleType, Mapping[str, Rule], str, Path]] = [
    (interlock.gates, rules.BY_CODE, r"(?:EVD5|EVD6|TSK7)\d\d", TESTS),
    (stages, stage_rules.BY_CODE, r"STG\d\d\d", TESTS / "stages"),
]
SOURCES = ("Strict Envelope §", "Ticket Protocol §", "Governance Design §", "Interlock: ")


@each_row(("package", "by_code", "form", "tests"), TABLES)
def test_every_row_is_complete_unique_used_and_asserted_by_a_test(
    package: ModuleType, by_code: Mapping[str, Rule], form: str, tests: Path
) -> None:
    for rule in by_code.values():
        assert re.fullmatch(form, rule.code)
        assert rule.title
        assert rule.remedy.endswith(".")
        assert rule.source.startswith(SOURCES)
    modules = Path(str(package.__file__)).parent.rglob("*.py")
    sources = "\n".join(path.read_text() for path in modules if path.name != "rules.py")
    assert set(re.findall(rf'"({form})"', sources)) == set(by_code)
    asserted = "\n".join(path.read_text() for path in tests.glob("test_*.py"))
    assert {code for code in by_code if f'"{code}"' not in asserted} == set()
    for name in package.__all__:
        assert getattr(package, name) is not None


def test_quoted_text_is_one_bounded_printable_line() -> None:
    marked = quote("a`b\n\x1b[0m\u202e" + "x" * 500)
    assert marked.startswith("`a\\u{0060}b\\n\\u{001B}[0m\\u{202E}")
    assert "\n" not in marked
    assert len(marked) < 200
    assert shown('a"b\n\x1b\u202e\ud800é') == '"a\\"b\\n\\u001b\\u202e\\ud800é"'
    assert shown("x" * 500, 10) == '"xxxxxxxxxx"…'


def test_a_list_is_bounded() -> None:
    assert listed([]) == "none"
    assert listed([str(n) for n in range(22)]).endswith("19 and 2 more")
