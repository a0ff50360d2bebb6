"""The agents of delegated steps, as functions that a configuration names."""

from pathlib import Path

from interlock.agents import Ask
from tests.graph.conftest import NO_EVIDENCE, envelope

GATES = ("GATE-MSG-STRICT", "GATE-TESTS", "GATE-REVIEW")


def builder(ask: Ask) -> str:
    """Write what the project's file `wanted` holds as the greeting, and hand over; `objection` is objected to first."""
    root = Path(ask.root)
    if (root / "wanted").read_text() == "objection" and ask.turn == 1:
        return _answer(ask, "BLOCKED", reasons=("GATE-TESTS: OBJECTION: the word is not wanted",))
    greeting = root / "src" / "greeting.txt"
    done = greeting.read_text() if greeting.exists() else ""
    greeting.write_text(f"{(root / 'wanted').read_text()}\n" + "more\n" * (done.count("\n")))
    return _answer(ask, "READY_FOR_QA")


def tester(ask: Ask) -> str:
    """Believe the log."""
    logs = ask.evidence["reports"]
    if '"exit_status":0' in Path(ask.root, logs[0]).read_text().replace(" ", ""):
        return _answer(ask, "QA_IN_PROGRESS", "GATE-TESTS", logs)
    return _answer(ask, "BLOCKED", reports=logs, reasons=("GATE-TESTS: the tests fail",))


def reviewer(ask: Ask) -> str:
    """Report on the present tree."""
    report = Path(ask.root, ask.reports_dir, "review.md")
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(f"# Review\n\nRead tree {ask.tree}. No objection.\n")
    return _answer(ask, "READY_FOR_REVIEW", "GATE-REVIEW", (f"{ask.reports_dir}/review.md",))


def _answer(ask: Ask, status: str, gate: str = "", reports: tuple[str, ...] = (), reasons: tuple[str, ...] = ()) -> str:
    task = next(line for line in ask.prompt.splitlines() if line.startswith("- Task: ")).removeprefix("- Task: ")
    passed = ("GATE-MSG-STRICT", gate) if gate else ("GATE-MSG-STRICT",)
    evidence = {**NO_EVIDENCE, "reports": reports}
    fields = {"gates_required": GATES, "gates_passed": passed, "evidence": evidence, "fail_reasons": reasons}
    return envelope(ask, status, task=task, **fields)
