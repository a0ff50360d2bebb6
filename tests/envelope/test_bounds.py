"""Bounds of the exported grammars: every answer has an end, and none that fits is lost."""

import json
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from interlock.envelope import parse
from interlock.envelope.export import export
from interlock.envelope.export.language import Bounds, Known, envelope_language
from interlock.envelope.export.notation import Chars, Literal, Ref, Repeat, Rules, longest_bytes, seq
from interlock.envelope.model import Envelope, render
from interlock.envelope.renderers import envelope_object
from interlock.envelope.template import example
from tests.effort import examples
from tests.envelope.grammars import GRAMMARS, SLOW, SUITE, accepts, texts_of

WIDE = Bounds(chars=160, lines=12, items=6)
TIGHT = Bounds(chars=9, lines=3, items=2, parts=2, part_chars=4)


def accepted(form: str, envelope: Envelope) -> bool:
    if form != "json-schema":
        return accepts(form, bounds=WIDE)(render(envelope))
    schema: Any = Draft202012Validator(json.loads(export("json-schema", bounds=WIDE)))
    return schema.is_valid(json.loads(json.dumps(envelope_object(envelope))))


@pytest.mark.sample("llguidance", "json-schema")
@pytest.mark.parametrize("form", [*GRAMMARS, "json-schema"])
def test_every_valid_envelope_of_the_suite_that_fits_is_accepted(form: str):
    assert [row for row in SUITE if not accepted(form, row)] == []


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
    "a longer line of output": {"output": "o" * 161 + "\n" * 11 + "o" * 1800},
    "one more line of output": {"output": f"{FULL.output}\nmore"},
    "a longer action": {"next_actions": ("a" * 161,)},
    "one more action": {"next_actions": (*FULL.next_actions, "more")},
    "a longer gate": {"gates_passed": ("GATE" + "-ABC" * 120,)},
}


@pytest.mark.sample("a longer task-llguidance", "a longer gate-json-schema")
@pytest.mark.parametrize("form", [*GRAMMARS, "json-schema"])
@pytest.mark.parametrize("change", BEYOND)
def test_what_just_fits_is_accepted_and_what_goes_beyond_is_not(change: str, form: str):
    beyond = replace(FULL, **BEYOND[change])
    assert parse(render(FULL)).envelope == FULL
    assert [accepted(form, row) for row in (FULL, beyond)] == [True, False]


RULES = envelope_language(bounds=TIGHT)


@pytest.mark.long
@given(text=texts_of(RULES["envelope"], RULES))
@settings(max_examples=examples(40), deadline=None, suppress_health_check=SLOW)
def test_every_word_within_bounds_is_an_envelope_no_longer_than_the_longest(text: str):
    assert parse(text).envelope is not None
    assert len(text.encode()) <= longest_bytes(RULES)
    assert [form for form in GRAMMARS if not accepts(form, bounds=TIGHT)(text)] == []


def test_only_bounds_give_the_language_a_longest_word():
    known = Known("visual-qa", "HOME-UI-001", "Build it", ("GATE-MSG-STRICT",))
    assert longest_bytes(envelope_language(known=known)) == inf
    assert longest_bytes(envelope_language(known=known, bounds=TIGHT)) < longest_bytes(RULES) < inf


def test_the_longest_word_is_counted_in_bytes():
    letters = Chars(((0x61, 0x7A), (0x20AC, 0x20AC)))
    rules: Rules = {
        "whole": seq(Literal("é:"), Repeat(Ref("letter"), (1, 4)), Repeat(Ref("letter"), "?")),
        "letter": letters,
    }
    assert longest_bytes(rules) == 3 + 5 * 3
    rules["whole"] = Repeat(Ref("letter"), "+")
    assert longest_bytes(rules) == inf
