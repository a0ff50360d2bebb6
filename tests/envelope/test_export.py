"""The exported grammars: each accepts what the others accept, and nothing that the validator's grammar refuses."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from lark import Lark
from lark.exceptions import UnexpectedInput
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
from syrupy.assertion import SnapshotAssertion

from interlock.envelope.characters import read_text
from interlock.envelope.export import FORMS, Form, export
from interlock.envelope.export.language import TEXT, Known, envelope_language
from interlock.envelope.export.notation import Alt, Chars, Expr, Literal, Ref, Repeat, Rules, Seq
from interlock.envelope.export.schema import to_json_schema
from interlock.envelope.model import Envelope
from interlock.envelope.outcomes import outcomes
from interlock.envelope.parser import read_envelope
from interlock.envelope.protocol import DEFAULT_PROTOCOL, LABELS
from interlock.envelope.render import render
from interlock.envelope.renderers.json import envelope_object
from interlock.envelope.template import example

GRAMMARS = ("lark", "llguidance", "gbnf")
EXAMPLES = {
    f"{role.name}: {outcome.name}": example(role.name, outcome=outcome.name)
    for role in DEFAULT_PROTOCOL.roles.values()
    for outcome in outcomes(role)
}


class ByteTokens:
    """A vocabulary of the 256 bytes and an end mark."""

    eos_token_id = 256
    bos_token_id = None
    tokens = (*(bytes([byte]) for byte in range(256)), b"<end>")
    special_token_ids = (256,)

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


@cache
def accepts(form: str, known: Known = Known()) -> Callable[[str], bool]:  # noqa: B008 - it never changes
    """Return the real reader of one exported grammar; for GBNF, its translation into one regular expression."""
    fixed = {"agent": known.agent, "task_id": known.task_id, "task": known.task, "gates": known.gates}
    grammar = export(cast("Form", form), **cast("dict[str, Any]", fixed))
    if form == "lark":
        parser: Any = Lark(grammar, parser="lalr")

        def by_lark(text: str) -> bool:
            try:
                parser.parse(text)
            except UnexpectedInput:
                return False
            return True

        return by_lark
    if form == "llguidance":
        tokenizer = LLTokenizer(TokenizerWrapper(ByteTokens()))
        compiled = LLMatcher.grammar_from_lark(grammar)
        assert LLMatcher.validate_grammar_with_warnings(compiled, tokenizer) == (False, [])

        def by_llguidance(text: str) -> bool:
            matcher = LLMatcher(tokenizer, compiled, log_level=0)
            tokens = list(text.encode())
            return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()

        return by_llguidance
    pattern = re.compile(gbnf_as_regex(grammar))
    return lambda text: pattern.fullmatch(text) is not None


TOKEN = re.compile(r'\s*("(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|[a-z0-9-]+|[()|*+?])')


def gbnf_as_regex(grammar: str) -> str:
    """Translate GBNF without recursion: strings, classes, groups, choices, repetition and references."""
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines() if "::=" in line)

    @cache
    def rule(name: str) -> str:
        body = rules[name]
        tokens = TOKEN.findall(body)
        assert re.sub(r"\s", "", "".join(tokens)) == re.sub(r"\s", "", body), "every character is understood"
        return "(?:" + "".join(map(piece, tokens)) + ")"

    def piece(token: str) -> str:
        if token[0] == '"':
            return "(?:" + re.escape(json.loads(token)) + ")"
        if token[0].islower():
            return rule(token)
        return "(?:" if token == "(" else token

    return rule("root")


def texts_of(expr: Expr, rules: Rules) -> st.SearchStrategy[str]:
    """Return a strategy for the words of an expression."""
    match expr:
        case Chars():
            near = [st.characters(min_codepoint=low, max_codepoint=min(high, low + 90)) for low, high in expr.ranges]
            far = [st.characters(min_codepoint=max(low, high - 2), max_codepoint=high) for low, high in expr.ranges]
            return st.one_of(*near[:2], *near, *far)
        case Literal():
            return st.just(expr.text)
        case Seq():
            return st.tuples(*(texts_of(part, rules) for part in expr.parts)).map("".join)
        case Alt():
            return st.one_of(*(texts_of(choice, rules) for choice in expr.choices))
        case Repeat():
            least, most = {"?": (0, 1), "*": (0, 4), "+": (1, 3)}[expr.times]
            return st.lists(texts_of(expr.part, rules), min_size=least, max_size=most).map("".join)
        case Ref():
            return texts_of(rules[expr.name], rules)


SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example)
RULES = envelope_language()
WORDS = texts_of(RULES["envelope"], RULES)
MANY = settings(max_examples=150, deadline=None, suppress_health_check=SLOW)


@pytest.mark.parametrize("form", GRAMMARS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_accepted_by_every_grammar(name: str, form: str):
    text = render(EXAMPLES[name])
    assert read_envelope(text) == EXAMPLES[name]
    assert accepts(form)(text)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_accepted_by_the_schema(name: str):
    assert is_valid(envelope_object(EXAMPLES[name]))


@given(text=WORDS)
@MANY
def test_every_word_of_the_exported_language_is_a_well_formed_envelope(text: str):
    assert read_text(text).clean
    assert read_envelope(text) is not None
    assert [form for form in GRAMMARS if not accepts(form)(text)] == []


@given(text=WORDS, data=st.data())
@MANY
def test_the_grammars_agree_on_damaged_words_and_accept_nothing_that_the_validator_refuses(
    text: str, data: st.DataObject
):
    at = data.draw(st.integers(0, len(text)))
    gone = data.draw(st.integers(0, 12))
    put = data.draw(st.sampled_from(("", "\n", ":", " ", "\t", "-", "STATUS:", "\nTASK :", "[]", "1. ", "é", "\u202e")))
    damaged = text[:at] + put + text[at + gone :]
    said = {form: accepts(form)(damaged) for form in GRAMMARS}
    assert len(set(said.values())) == 1, said
    if said["gbnf"]:
        assert read_text(damaged).clean
        assert read_envelope(damaged) is not None


@pytest.mark.parametrize("form", GRAMMARS)
@pytest.mark.parametrize("label", LABELS)
def test_no_output_line_may_begin_with_a_label_and_a_colon(form: str, label: str):
    text = render(EXAMPLES["web-design-lead: progress"])

    def with_line(line: str) -> str:
        return text.replace("NEXT_ACTIONS:", f"{line}\nNEXT_ACTIONS:")

    for line in (f"{label}:", f"{label}: x", f"{label} :", f"{label}\t: x"):
        assert not accepts(form)(with_line(line)), line
        assert read_envelope(with_line(line)) is None, line
    for line in (label, f"{label} x:", f"{label}S: x", f" {label}: x", f"> {label}: x", label[:-1], f"{label} "):
        assert accepts(form)(with_line(line)), line
        assert read_envelope(with_line(line)) is not None, line


def test_every_character_of_free_text_is_one_that_the_validator_reads():
    for low, high in TEXT.ranges:
        assert read_text("x" + "".join(map(chr, range(low, high + 1))), max_bytes=8 * 1024 * 1024).clean


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(SCHEMA.schema)


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


@pytest.mark.parametrize("form", ["lark", "llguidance", "gbnf", "json-schema"])
def test_what_is_known_of_an_answer_is_the_only_thing_that_can_be_written_there(form: str):
    row = example("visual-qa", outcome="pass")
    known = Known("visual-qa", row.task_id, row.task, row.gates_required)
    others = {
        "task_id": "OTHER-1",
        "task": f"{row.task} and more",
        "assigned_agent": "code-reviewer",
        "gates_required": (*row.gates_required, "GATE-MORE"),
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
        "inputs_used": st.lists(st.sampled_from(("a.md", "docs/x.md", "", "[x]", "- a", "a\n")), max_size=3),
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
@settings(max_examples=1500, deadline=None, suppress_health_check=SLOW)
def test_an_object_that_the_schema_accepts_renders_to_a_well_formed_envelope(found: dict[str, Any]):
    if is_valid(found):
        assert read_envelope(render(as_envelope(found))) is not None


SCHEMA: Any = Draft202012Validator(json.loads(export("json-schema")))


def is_valid(found: dict[str, Any]) -> bool:
    return SCHEMA.is_valid(found)


def as_envelope(found: dict[str, Any]) -> Envelope:
    lists = ("inputs_used", "gates_required", "gates_passed", "fail_reasons", "next_actions")
    plain: dict[str, Any] = {**found, **{key: tuple(found[key]) for key in lists}}
    return Envelope(**plain)


GOOD_OBJECT = envelope_object(EXAMPLES["visual-qa: fail"])


@pytest.mark.parametrize(
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
        {"approved_by": "me"},
    ],
    ids=str,
)
def test_the_schema_refuses(change: dict[str, Any]):
    assert is_valid(GOOD_OBJECT)
    assert not is_valid(GOOD_OBJECT | change)


@pytest.mark.parametrize("label", LABELS)
def test_the_schema_wants_every_field(label: str):
    partial = {key: value for key, value in GOOD_OBJECT.items() if key != label.lower()}
    assert not is_valid(partial)
