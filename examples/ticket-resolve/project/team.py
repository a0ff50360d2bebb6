"""The three agents of the delegated stage: scripted, but what they write is real and is really checked."""

import json
from pathlib import Path

from interlock.agents import Ask, reply

CODE = Path("shop/prices.py")
INPUTS = (str(CODE),)


def builder(ask: Ask) -> str:
    """Round the sum. The first time to the wrong digit, on purpose: the tests find that out."""
    path = Path(ask.root, CODE)
    digits = 2 if ask.attempt > 1 else 1
    old = "round(sum(prices), 1)" if ask.attempt > 1 else "sum(prices)"
    path.write_text(path.read_text(encoding="utf-8").replace(old, f"round(sum(prices), {digits})"), encoding="utf-8")
    return reply(ask, "READY_FOR_QA", inputs_used=INPUTS, output=f"The sum is rounded to {digits} digits.")


def tester(ask: Ask) -> str:
    """Read the log that Interlock made by running the tests, and certify or say what is wrong."""
    logs = ask.evidence["reports"]
    heads = [json.loads(Path(ask.root, log).read_text(encoding="utf-8").splitlines()[0]) for log in logs]
    if all(head["exit_status"] == 0 for head in heads):
        return reply(
            ask,
            "QA_IN_PROGRESS",
            "GATE-TESTS",
            evidence={"reports": logs},
            inputs_used=INPUTS,
            output="The tests pass.",
        )
    reason = "GATE-TESTS: a total is not a number of whole cents"
    return reply(
        ask, "BLOCKED", evidence={"reports": logs}, fail_reasons=(reason,), inputs_used=INPUTS, output="The tests fail."
    )


def reviewer(ask: Ask) -> str:
    """Write a report that names the tree that was read."""
    report = f"{ask.reports_dir}/review.md"
    path = Path(ask.root, report)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# {ask.task_id}\n\nTree: {ask.tree}\n\nOne line changed; the tests cover it.\n", encoding="utf-8")
    return reply(
        ask, "READY_FOR_REVIEW", "GATE-REVIEW", evidence={"reports": (report,)}, inputs_used=INPUTS, output="Keep it."
    )
