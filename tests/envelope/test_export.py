"""The exported grammars: each accepts what the others accept, and nothing that the validator's grammar refuses."""

import json
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from syrupy.assertion import SnapshotAssertion

from interlock.envelope import parse
from interlock.envelope.characters import read_text
from interlock.envelope.export import FORMS, Form, export
from interlock.envelope.export.language import TEXT, Known, envelope_language
from interlock.envelope.export.notation import Chars
from interlock.envelope.export.schema import to_json_schema
from interlock.envelope.model import Envelope, render
from interlock.envelope.protocol import LABELS
from interlock.envelope.renderers import envelope_object
from interlock.envelope.template import example
from tests.effort import examples
from tests.envelope.grammars import EXAMPLES, GRAMMARS, SLOW, SUITE, accepts, texts_of
from tests.table import each_row

RULES = envelope_language()
WORDS = texts_of(RULES["envelope"], RULES)
MANY = settings(max_examples=examples(30), deadline=None, suppress_health_check=SLOW)


@pytest.mark.long
@each_row("form", GRAMMARS)
@each_row("envelope", SUITE)
def test_every_valid_envelope_of_the_suite_is_accepted_in_its_canonical_spelling(envelope: Envelope, form: str):
    text = render(envelope)
    assert parse(text).envelope == envelope
    assert accepts(form)(text)


@each_row("envelope", SUITE)
def test_every_valid_envelope_of_the_suite_is_accepted_by_the_schema(envelope: Envelope):
    assert is_valid(envelope_object(envelope))


@pytest.mark.long
@given(text=WORDS)
@MANY
def test_every_word_of_the_exported_language_is_a_well_formed_envelope(text: str):
    assert read_text(text).clean
    assert parse(text).envelope is not None
    assert [form for form in GRAMMARS if not accepts(form)(text)] == []


@pytest.mark.long
@given(text=WORDS, data=st.data())
@MANY
def test_the_grammars_agree_on_damaged_words_and_accept_nothing_the_validator_refuses(text: str, data: st.DataObject):
    at = data.draw(st.integers(0, len(text)))
    gone = data.draw(st.integers(0, 12))
    put = data.draw(st.sampled_from(("", "\n", ":", " ", "\t", "-", "STATUS:", "\nTASK :", "[]", "1. ", "é", "\u202e")))
    damaged = text[:at] + put + text[at + gone :]
    said = {form: accepts(form)(damaged) for form in GRAMMARS}
    assert len(set(said.values())) == 1, said
    if said["gbnf"]:
        assert read_text(damaged).clean
        assert parse(damaged).envelope is not None


@pytest.mark.long
@pytest.mark.parametrize("form", GRAMMARS)
@pytest.mark.parametrize("label", LABELS)
def test_no_output_line_may_begin_with_a_label_and_a_colon(form: str, label: str):
    text = render(EXAMPLES["web-design-lead: progress"])

    def with_line(line: str) -> str:
        return text.replace("NEXT_ACTIONS:", f"{line}\nNEXT_ACTIONS:")

    for line in (f"{label}:", f"{label}: x", f"{label} :", f"{label}\t: x"):
        assert not accepts(form)(with_line(line)), line
        assert parse(with_line(line)).envelope is None, line
    for line in (label, f"{label} x:", f"{label}S: x", f" {label}: x", f"> {label}: x", label[:-1], f"{label} "):
        assert accepts(form)(with_line(line)), line
        assert parse(with_line(line)).envelope is not None, line


def test_every_character_of_free_text_is_one_that_the_validator_reads():
    for low, high in TEXT.ranges:
        assert read_text("x" + "".join(map(chr, range(low, high + 1))), max_bytes=8 * 1024 * 1024).clean


def test_the_sets_of_characters_can_be_taken_apart():
    digits = Chars(((0x30, 0x39),))
    assert digits.minus("059").ranges == ((0x31, 0x34), (0x36, 0x38))
    assert "5" in digits
    assert "5" not in digits.minus("5")
    assert Chars(((0x30, 0x30),)).minus("0").ranges == ()


def test_a_role_and_a_task_narrow_every_form():
    for form in FORMS:
        narrowed = export(form, agent="visual-qa", task_id="HOME-UI-001")
        assert "HOME-UI-001" in narrowed
        assert "QA_IN_PROGRESS" in narrowed
        assert "READY_FOR_REVIEW" not in narrowed
        assert "code-reviewer" not in narrowed
        with pytest.raises(KeyError):
            export(form, agent="nobody")


@pytest.mark.sample("llguidance")
@pytest.mark.parametrize("form", ["lark", "llguidance", "gbnf", "json-schema"])
def test_what_is_known_of_an_answer_is_the_only_thing_that_can_be_written_there(form: str):
    row = example("visual-qa", outcome="pass")
    known = Known("visual-qa", row.task_id, row.task, row.gates_required)
    others = {
        "task_id": "OTHER-1",
        "task": f"{row.task} and more",
        "assigned_agent": "code-reviewer",
        "gates_required": (*row.gates_required, "GATE-MORE"),
        "gates_passed": ("GATE-MORE",),
    }

    def accepted(envelope: Envelope) -> bool:
        if form != "json-schema":
            return accepts(form, known)(render(envelope))
        schema: Any = Draft202012Validator(to_json_schema(known=known))
        return schema.is_valid(json.loads(json.dumps(envelope_object(envelope))))

    assert accepted(row)
    assert accepted(example("visual-qa", outcome="fail"))
    for name, value in others.items():
        assert not accepted(replace(row, **cast("dict[str, Any]", {name: value}))), name
    assert not accepted(replace(row, gates_required=row.gates_required[::-1]))


@pytest.mark.parametrize("form", FORMS)
def test_the_printed_contract_changes_only_on_purpose(form: Form, snapshot: SnapshotAssertion):
    assert export(form) == snapshot


def texts(alphabet: str = "ab :-[]#é\t \n\u200d.") -> st.SearchStrategy[str]:
    return st.text(alphabet, max_size=12)


OBJECTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "status": st.sampled_from(("APPROVED", "BLOCKED", "IN_PROGRESS", "READY_FOR_QA", "DONE", "approved")),
        "task_id": st.sampled_from(("HOME-UI-001", "A-1", "HOME", "home-1", "A-1\n", "A--1")),
        "task": texts(),
        "assigned_agent": st.sampled_from(("orchestrator", "visual-qa", "nobody")),
        "reports_to": st.sampled_from(("orchestrator", "me")),
        "inputs_used": st.lists(st.sampled_from(("a.md", "b/x.md", "a.md (all)", "", "[x]", "- a", "a\n")), max_size=3),
        "gates_required": st.lists(st.sampled_from(("GATE-A", "GATE-B-2", "GATE", "GATE-a", "GATE-A\n")), max_size=3),
        "gates_passed": st.lists(st.sampled_from(("GATE-A", "GATE-")), max_size=2),
        "evidence": st.fixed_dictionaries(
            {
                key: st.lists(
                    st.sampled_from(("artifacts/a.png", "artifacts/../b", "/artifacts/a", "artifacts/a,b")), max_size=2
                )
                for key in ("screenshots", "a11y", "console", "reports")
            }
        ),
        "fail_reasons": st.lists(st.sampled_from(("GATE-A: it fails", "NONE", "GATE-A", "it fails")), max_size=2),
        "output": st.one_of(texts(), texts("STAUSK_ID: \nx")),
        "next_actions": st.lists(texts(), max_size=3),
    }
)


@given(found=OBJECTS)
@settings(max_examples=examples(500), deadline=None, suppress_health_check=SLOW)
def test_an_object_that_the_schema_accepts_renders_to_a_well_formed_envelope(found: dict[str, Any]):
    if is_valid(found):
        assert parse(render(as_envelope(found))).envelope is not None


SCHEMA: Any = Draft202012Validator(json.loads(export("json-schema")))


def is_valid(found: dict[str, Any]) -> bool:
    return SCHEMA.is_valid(found)


def as_envelope(found: dict[str, Any]) -> Envelope:
    lists = ("inputs_used", "gates_required", "gates_passed", "fail_reasons", "next_actions")
    plain: dict[str, Any] = {**found, **{key: tuple(found[key]) for key in lists}}
    return Envelope(**plain)


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
