"""The validator against a second reading of the protocol.

The second reading is `seed_reading`, written from the source document alone. Both judge the same mutated envelopes.
What the validator accepts, the document must accept: there is no exception to that. What the validator alone refuses
breaks rules of `STRICTER` alone, each of which says why it goes beyond the words of the document.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import pytest

from interlock.envelope import validate
from tests.differential.seed_reading import AGENTS, KEYS, LABELS, OWNERS, broken_clauses
from tests.envelope.texts import APPROVAL, BUILD, FAIL, QA, change

STRICTER: Final = {
    "ENV106": "a text that hides characters or shows another order than it has cannot be audited (§1)",
    "ENV204": "a thirteenth label is none of the twelve (§2)",
    "ENV208": "a line of OUTPUT that begins with a label has two readings (§1)",
    "ENV212": "a list is written in one of two ways, so that a comma in an item is no second item (§1)",
    "ENV308": "a list of gates or inputs is a set (§3 GATES_PASSED: subset), and one file cannot prove two things",
    "ENV309": "a path under artifacts has plain letters, so that it is the same file everywhere (§3 EVIDENCE)",
    "ENV311": "a reason is no word for `none`, and its gate is required or known to the project (§3 FAIL_REASONS)",
    "ENV314": "a step is something to do, and `none` in other words is nothing (§3 NEXT_ACTIONS)",
}
"""Rules that refuse what the words of the document let pass, with the reason."""

_FOR_REVIEW: Final = change(QA, STATUS="STATUS: READY_FOR_REVIEW", ASSIGNED_AGENT="ASSIGNED_AGENT: orchestrator")
_SEEDS: Final = (BUILD, FAIL, _FOR_REVIEW, APPROVAL)
_GATES: Final = ("GATE-MSG-STRICT", "GATE-VISUAL-QA", "GATE-A11Y-BASELINE", "GATE-CODE-REVIEW", "GATE-TLS-HERO")
_ODD: Final = (
    "\u2011",
    "\u041e",
    "\u3000",
    "\u00a0",
    "\u200d",
    "\u0301",
    "\u202e",
    "\u2028",
    "\x0b",
    "\r",
    "\t",
    "\uff1a",
    "\ua4e2",
    "\U0001d412",
    "\u13da",
    "\ufeff",
    "\u00ad",
    "\u2014",
)
_LINES: Final = (
    *(f"{label}:" for label in LABELS),
    *(f"  {key}: []" for key in KEYS),
    *(f"STATUS: {status}" for status in (*OWNERS, "DONE", "PASS")),
    *(f"ASSIGNED_AGENT: {agent}" for agent in (*AGENTS, "gpt")),
    *(f"- {gate}" for gate in _GATES),
    *("GATES_PASSED: []", "GATES_REQUIRED: []", "GATES_PASSED: [GATE-MSG-STRICT, GATE-VISUAL-QA]"),
    *("INPUTS_USED: [a, b]", "FAIL_REASONS: NONE", "FAIL_REASONS:", "- NONE", "- GATE-VISUAL-QA: the menu"),
    *("- it fails", "NEXT_ACTIONS: NONE"),
    *("- artifacts/a.png", "- artifacts/../a.png", "- /artifacts/a.png", "- a.png", "  console: [artifacts/c.log]"),
    *("1. go on", "2. go on", "3. go on", "go on", "", "   ", "```", "APPROVED_BY: me", "REPORTS_TO: me", "TASK_ID: x"),
)


def mutated(random: random.Random) -> str:
    """Return an envelope with up to four changes; most keep its layout, so that the rules behind that are reached."""
    text = random.choice(_SEEDS)
    for _ in range(random.randrange(5)):
        text = random.choice(_CHANGES)(random, text)
    return text


def _line(random: random.Random, text: str) -> str:
    """Put one line in place of another."""
    lines = text.split("\n")
    lines[random.randrange(len(lines))] = random.choice(_LINES)
    return "\n".join(lines)


def _insert(random: random.Random, text: str) -> str:
    lines = text.split("\n")
    lines.insert(random.randrange(len(lines) + 1), random.choice((*_LINES, random.choice(lines))))
    return "\n".join(lines)


def _drop(random: random.Random, text: str) -> str:
    lines = text.split("\n")
    del lines[random.randrange(len(lines))]
    return "\n".join(lines) if lines else text


def _swap(random: random.Random, text: str) -> str:
    lines = text.split("\n")
    one, two = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[two] = lines[two], lines[one]
    return "\n".join(lines)


def _same_label(random: random.Random, text: str) -> str:
    """Put another value behind a label that stands there."""
    lines = text.split("\n")
    new = random.choice(_LINES)
    label = new.partition(":")[0] + ":"
    return "\n".join(new if line.startswith(label) else line for line in lines)


def _character(random: random.Random, text: str) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(_ODD) + text[at + random.randrange(2) :]


def _gate(random: random.Random, text: str) -> str:
    """Name another gate in one place."""
    one = random.choice(_GATES)
    places = [at for at in range(len(text)) if text.startswith(one, at)]
    if not places:
        return text
    at = random.choice(places)
    return text[:at] + random.choice(_GATES) + text[at + len(one) :]


def _cut(random: random.Random, text: str) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + text[at + random.randrange(6) :]


_CHANGES: Final[Sequence[Callable[[random.Random, str], str]]] = (
    _line,
    _insert,
    _drop,
    _swap,
    _same_label,
    _same_label,
    _same_label,
    _character,
    _gate,
    _gate,
    _cut,
)


def compare(seed: int, rounds: int) -> Counter[str]:
    """Hold the two readings against each other; fail with the first texts on which they differ.

    Returns:
        How many texts both accept, both refuse, and the validator alone refuses, the last by rule.
    """
    counts = Counter[str]()
    wrong = list[tuple[str, object, str]]()
    source = random.Random(seed)
    for _ in range(rounds):
        text = mutated(source)
        report, clauses = validate(text), broken_clauses(text)
        codes = {finding.code for finding in report.findings if finding.level == "error"}
        if report.ok and clauses:
            wrong.append(("the validator alone accepts", sorted(clauses), text))
        elif not report.ok and not clauses and codes - STRICTER.keys():
            wrong.append(("the document alone accepts", sorted(codes), text))
        counts["both accept" if report.ok else "both refuse" if clauses else "stricter " + " ".join(sorted(codes))] += 1
    shown = "\n\n".join(f"{what}: {why}\n{text!r}" for what, why, text in wrong[:5])
    assert not wrong, f"{len(wrong)} of {rounds} texts are read in two ways:\n\n{shown}"
    return counts


def test_two_readings_of_the_protocol_agree_on_mutated_envelopes() -> None:
    """A short run, with as many accepted texts as it takes to mean something."""
    counts = compare(seed=1, rounds=800)
    assert counts["both accept"] > 80
    assert counts["both refuse"] > 300


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(2, 12))
def test_two_readings_agree_on_a_hundred_thousand_envelopes(seed: int) -> None:
    """Ten runs of ten thousand."""
    counts = compare(seed, rounds=10_000)
    print(dict(counts))
    assert counts["both accept"] > 1000
