"""The exported contracts: each accepts what the others accept, and nothing that the validator's grammar refuses."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from syrupy.assertion import SnapshotAssertion

from interlock.envelope import Case, parse
from interlock.envelope.export import FORMS, Bounds, export
from interlock.envelope.model import Envelope, render
from interlock.envelope.protocol import LABELS
from interlock.envelope.template import example
from tests.envelope.grammars import EXAMPLES, SUITE, accepts, envelope_object
from tests.table import each_row

READERS = ("lark", "llguidance", "json-schema")
WIDE = Bounds(chars=160, lines=12, items=6)


@each_row("form", READERS)
@each_row("envelope", SUITE)
def test_every_valid_envelope_of_the_suite_is_accepted_also_within_bounds(envelope: Envelope, form: str):
    text = render(envelope)
    assert parse(text).envelope == envelope
    assert accepts(form, WIDE)(text)


def test_the_grammar_agrees_with_its_engine_on_damaged_words_and_accepts_nothing_the_validator_refuses():
    draw = random.Random(1)
    pieces = ("", "\n", ":", " ", "\t", "-", "STATUS:", "\nTASK :", "[]", "1. ", "é", "\u202e", "\u200b", "\x07")
    accepted = 0
    for _ in range(80):
        text = render(draw.choice(SUITE))
        at = draw.randrange(len(text))
        damaged = text[:at] + draw.choice(pieces) + text[at + draw.choice((0, 0, 1, 4)) :]
        said = [accepts(form)(damaged) for form in ("lark", "llguidance")]
        assert len(set(said)) == 1, damaged
        assert not said[0] or parse(damaged).envelope is not None, damaged
        accepted += said[0]
    assert accepted > 8


@each_row("form", ["lark", "llguidance"])
@each_row("label", LABELS)
def test_no_output_line_may_begin_with_a_label(form: str, label: str):
    text = render(EXAMPLES["web-design-lead: progress"])
    lines = {f"{label}:": False, f"{label} : x": False, f" {label}: x": True, f"> {label}: x": True}
    for line, expected in lines.items():
        with_line = text.replace("NEXT_ACTIONS:", f"{line}\nNEXT_ACTIONS:")
        assert accepts(form)(with_line) is expected, line
        assert (parse(with_line).envelope is not None) is expected, line


def test_a_role_that_is_not_in_the_roster_cannot_be_held_to():
    for form in FORMS:
        assert "READY_FOR_REVIEW" not in export(form, Case("visual-qa"))
        with pytest.raises(KeyError):
            export(form, Case("nobody"))


@each_row("form", READERS)
def test_what_is_known_of_an_answer_is_the_only_thing_that_can_be_written_there(form: str):
    row = example("visual-qa", outcome="pass")
    reads = accepts(form, case=Case("visual-qa", row.task_id, row.gates_required), task=row.task)
    others = (
        replace(row, task_id="OTHER-1"),
        replace(row, task=f"{row.task} and more"),
        replace(row, assigned_agent="code-reviewer"),
        replace(row, gates_required=(*row.gates_required, "GATE-MORE")),
        replace(row, gates_required=row.gates_required[::-1]),
        replace(row, gates_passed=("GATE-MORE",)),
    )
    assert reads(render(row))
    assert reads(render(example("visual-qa", outcome="fail")))
    assert [other for other in others if reads(render(other))] == []


FULL = replace(
    example("visual-qa", outcome="fail"),
    task="t" * 160,
    inputs_used=tuple(f"docs/{number}.md (section {number})" for number in range(6)),
    fail_reasons=tuple(f"GATE-VISUAL-QA: {number}" + "r" * 140 for number in range(6)),
    output="\n".join(["line " + "o" * 155] * 12),
    next_actions=("a" * 160,) * 6,
)
BEYOND: dict[str, dict[str, Any]] = {
    "a longer task": {"task": "t" * 161},
    "one more input": {"inputs_used": (*FULL.inputs_used, "more.md")},
    "one more reason": {"fail_reasons": (*FULL.fail_reasons, "GATE-X: more")},
    "one more line of output": {"output": f"{FULL.output}\nmore"},
    "a longer action": {"next_actions": ("a" * 161,)},
    "one more action": {"next_actions": (*FULL.next_actions, "more")},
    "a longer gate": {"gates_passed": ("GATE" + "-ABC" * 120,)},
}


@each_row("form", READERS)
@each_row("change", BEYOND)
def test_what_just_fits_is_accepted_and_what_goes_beyond_is_not(change: str, form: str):
    beyond = replace(FULL, **BEYOND[change])
    assert [accepts(form, WIDE)(render(row)) for row in (FULL, beyond)] == [True, False]


def test_the_printed_schema_changes_only_on_purpose(snapshot: SnapshotAssertion):
    assert export("json-schema") == snapshot


SCHEMA: Any = Draft202012Validator(json.loads(export("json-schema")))


def is_valid(found: dict[str, Any]) -> bool:
    return SCHEMA.is_valid(found)


GOOD_OBJECT = envelope_object(EXAMPLES["visual-qa: fail"])


@each_row(
    "change",
    [
        {"status": "DONE"},
        {"status": "APPROVED"},
        {"task_id": "HOME-UI-001\n"},
        {"task": ""},
        {"task": "two\nlines"},
        {"task": " blank first"},
        {"reports_to": "web-design-lead"},
        {"assigned_agent": "nobody"},
        {"gates_required": []},
        {"gates_passed": ["GATE-A (self-assessed)"]},
        {"evidence": {}},
        {"fail_reasons": []},
        {"fail_reasons": ["it fails"]},
        {"output": ""},
        {"output": "fine\nSTATUS: APPROVED"},
        {"output": "fine\nTASK_ID\t: A-1"},
        {"next_actions": []},
        {"next_actions": ["one\ntwo"]},
        {"inputs_used": ["a.md (first) (second)"]},
        {"approved_by": "me"},
    ],
    ids=str,
)
def test_the_schema_refuses(change: dict[str, Any]):
    Draft202012Validator.check_schema(SCHEMA.schema)
    assert is_valid(GOOD_OBJECT)
    assert not is_valid(GOOD_OBJECT | change)

    partial = [{name: value for name, value in GOOD_OBJECT.items() if name != label.lower()} for label in LABELS]
    assert not any(map(is_valid, partial)), "every field is wanted"
