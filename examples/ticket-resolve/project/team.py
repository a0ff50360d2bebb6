"""The three agents of the delegated stage: scripted, but what they write is real and is really checked."""

import json
from pathlib import Path

from interlock.agents import Ask
from interlock.envelope import Envelope, render

GATES = ("GATE-MSG-STRICT", "GATE-TESTS", "GATE-REVIEW")
CODE = Path("shop/prices.py")


def builder(ask: Ask) -> str:
    """Round the sum. The first time to the wrong digit, on purpose: the tests find that out."""
    path = Path(ask.root, CODE)
    digits = 2 if ask.attempt > 1 else 1
    old = "round(sum(prices), 1)" if ask.attempt > 1 else "sum(prices)"
    path.write_text(path.read_text(encoding="utf-8").replace(old, f"round(sum(prices), {digits})"), encoding="utf-8")
    return answer(ask, "READY_FOR_QA", output=f"The sum is rounded to {digits} digits.")


def tester(ask: Ask) -> str:
    """Read the log that Interlock made by running the tests, and certify or say what is wrong."""
    logs = ask.evidence["reports"]
    heads = [json.loads(Path(ask.root, log).read_text(encoding="utf-8").splitlines()[0]) for log in logs]
    if all(head["exit_status"] == 0 for head in heads):
        return answer(ask, "QA_IN_PROGRESS", "GATE-TESTS", logs, output="The tests pass.")
    reason = "GATE-TESTS: a total is not a number of whole cents"
    return answer(ask, "BLOCKED", reports=logs, reason=reason, output="The tests fail.")


def reviewer(ask: Ask) -> str:
    """Write a report that names the tree that was read."""
    report = f"{ask.reports_dir}/review.md"
    path = Path(ask.root, report)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# {ask.task_id}\n\nTree: {ask.tree}\n\nOne line changed; the tests cover it.\n", encoding="utf-8")
    return answer(ask, "READY_FOR_REVIEW", "GATE-REVIEW", (report,), output="Keep it.")


def answer(
    ask: Ask, status: str, gate: str = "", reports: tuple[str, ...] = (), reason: str = "", output: str = ""
) -> str:
    """Return an envelope; a model would write this text itself."""
    return render(
        Envelope(
            status=status,
            task_id=ask.task_id,
            task=ask.task,
            assigned_agent=ask.role,
            reports_to="orchestrator",
            inputs_used=(str(CODE),),
            gates_required=GATES,
            gates_passed=("GATE-MSG-STRICT", gate) if gate else ("GATE-MSG-STRICT",),
            evidence={"screenshots": (), "a11y": (), "console": (), "reports": reports},
            fail_reasons=(reason,) if reason else (),
            output=output,
            next_actions=("orchestrator to go on",),
        )
    )
