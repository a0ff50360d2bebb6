"""The agents of the kill test, as plain functions: a builder that needs a re-ask and a rework, a tester, a reviewer."""

from pathlib import Path

from interlock.agents import Ask
from tests.graph.conftest import envelope, judge_log, reviewing

tester = judge_log


def builder(ask: Ask) -> str:
    """Hand over: first a malformed answer, then work that fails a gate, then work that passes."""
    if ask.attempt == 1 and ask.reask == 0:
        return "I am done, all gates passed."
    text = "hallo\n" if ask.attempt == 1 else "hello\n"
    (Path(ask.root) / "src" / "greeting.txt").write_text(text, encoding="utf-8")
    return envelope(ask, "READY_FOR_QA")


def objector(ask: Ask) -> str:
    """Object to a gate in the first turn; where that is accepted do all but that gate, else the whole work."""
    accepted = "objection is accepted" in ask.prompt or (ask.attempt, ask.turn) == (1, 1)
    (Path(ask.root) / "src/greeting.txt").write_text("good day\n" if accepted else "hello\n", encoding="utf-8")
    if (ask.attempt, ask.turn) == (1, 1):
        return envelope(ask, "BLOCKED", fail_reasons=("GATE-TESTS: OBJECTION: the brief forbids the word",))
    return envelope(ask, "READY_FOR_QA")


def reviewer(ask: Ask) -> str:
    """Write a report on the present tree and pass; the first answer of all is refused."""
    return reviewing(ask) if ask.reask else "Looks good to me!"
