"""The agents of the kill test, as plain functions: a builder that needs a re-ask and a rework, a tester, a reviewer."""

from pathlib import Path

from interlock.agents import Ask
from interlock.envelope import Envelope, render

GATES = ("GATE-MSG-STRICT", "GATE-TESTS", "GATE-LINT", "GATE-REVIEW")
NO_EVIDENCE: dict[str, tuple[str, ...]] = {"screenshots": (), "a11y": (), "console": (), "reports": ()}


def _answer(ask: Ask, status: str, gate: str = "", reports: tuple[str, ...] = (), reason: str = "") -> str:
    return render(
        Envelope(
            status=status,
            task_id=ask.task_id,
            task="Write the greeting",
            assigned_agent=ask.role,
            reports_to="orchestrator",
            inputs_used=(),
            gates_required=GATES,
            gates_passed=("GATE-MSG-STRICT", gate) if gate else ("GATE-MSG-STRICT",),
            evidence={**NO_EVIDENCE, "reports": reports},
            fail_reasons=(reason,) if reason else (),
            output="as asked",
            next_actions=("orchestrator to go on",),
        )
    )


def builder(ask: Ask) -> str:
    """Hand over: first a malformed answer, then work that fails a gate, then work that passes."""
    if ask.attempt == 1 and ask.reask == 0:
        return "I am done, all gates passed."
    text = "hallo\n" if ask.attempt == 1 else "hello\n"
    (Path(ask.root) / "src" / "greeting.txt").write_text(text, encoding="utf-8")
    return _answer(ask, "READY_FOR_QA")


def tester(ask: Ask) -> str:
    """Judge by the exit status in the collected log."""
    logs = ask.evidence["reports"]
    passed = '"exit_status": 0' in (Path(ask.root) / logs[0]).read_text(encoding="utf-8").replace('":0', '": 0')
    if passed:
        return _answer(ask, "QA_IN_PROGRESS", "GATE-TESTS", logs)
    return _answer(ask, "BLOCKED", reports=logs, reason="GATE-TESTS: the tests fail")


def reviewer(ask: Ask) -> str:
    """Write a report on the present tree and pass; the first answer of all is refused."""
    if ask.reask == 0:
        return "Looks good to me!"
    path = f"{ask.reports_dir}/review.md"
    target = Path(ask.root) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"# Review\n\nRead tree {ask.tree}. No objection.\n", encoding="utf-8")
    return _answer(ask, "READY_FOR_REVIEW", "GATE-REVIEW", (path,))
