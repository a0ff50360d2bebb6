"""The three agents of the delegated stage: scripted, but what they write is real and is really checked."""

import ast
import json
import re
from pathlib import Path

from interlock.agents import Ask
from interlock.envelope import Envelope, render

GATES = ("GATE-MSG-STRICT", "GATE-TESTS", "GATE-REVIEW")
CODE = Path("interlock/cli/context.py")
HELP = Path("interlock/cli/main.py")
PAGE = Path("docs/exit-codes.md")


def builder(ask: Ask) -> str:
    """Write the page for step 1, point to it from the code for step 2. The first page lacks a code on purpose."""
    root = Path(ask.root)
    if ask.task_id.endswith("-S1"):
        rows = table(root)
        text = "\n".join(rows if ask.attempt > 1 else rows[:-1])
        (root / PAGE).parent.mkdir(exist_ok=True)
        (root / PAGE).write_text(
            f"# Exit codes\n\n| code | name | meaning |\n|---|---|---|\n{text}\n", encoding="utf-8"
        )
        return answer(ask, "READY_FOR_QA", output=f"{PAGE} has {len(text.splitlines())} rows.")
    old = (root / CODE).read_text(encoding="utf-8")
    new = old.replace('"""Exit codes of every command."""', f'"""Exit codes of every command; see {PAGE}."""')
    (root / CODE).write_text(new, encoding="utf-8")
    return answer(ask, "READY_FOR_QA", output=f"The docstring of Exit names {PAGE}.")


def tester(ask: Ask) -> str:
    """Read the log that Interlock made by running the tests, and certify or say what is wrong."""
    logs = ask.evidence["reports"]
    heads = [json.loads(Path(ask.root, log).read_text(encoding="utf-8").splitlines()[0]) for log in logs]
    if all(head["exit_status"] == 0 for head in heads):
        return answer(ask, "QA_IN_PROGRESS", "GATE-TESTS", logs, output="The tests pass.")
    reason = f"GATE-TESTS: {PAGE} does not have a row for every code"
    return answer(ask, "BLOCKED", reports=logs, reason=reason, output="The tests fail.")


def reviewer(ask: Ask) -> str:
    """Write a report that names the tree that was read."""
    report = f"{ask.reports_dir}/review.md"
    path = Path(ask.root, report)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# {ask.task_id}\n\nTree: {ask.tree}\n\nThe rows agree with the help text.\n", encoding="utf-8")
    return answer(ask, "READY_FOR_REVIEW", "GATE-REVIEW", (report,), output="Keep it.")


def table(root: Path) -> list[str]:
    """Make a row for each code, with the meaning that the help text gives."""
    tree = ast.parse((root / CODE).read_text(encoding="utf-8"))
    names = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Exit")
    help_text = re.sub(r'"\n\s*"', "", (root / HELP).read_text(encoding="utf-8"))
    meanings = dict(re.findall(r"(\d+) ([a-z ]+)[,.]", help_text.partition("Exit codes: ")[2].partition('"')[0]))
    return [
        f"| {row.value.value} | `{row.targets[0].id}` | {meanings[str(row.value.value)]} |"
        for row in names.body
        if isinstance(row, ast.Assign) and isinstance(row.targets[0], ast.Name) and isinstance(row.value, ast.Constant)
    ]


def answer(
    ask: Ask, status: str, gate: str = "", reports: tuple[str, ...] = (), reason: str = "", output: str = ""
) -> str:
    """Return an envelope; a model would write this text itself."""
    return render(
        Envelope(
            status=status,
            task_id=ask.task_id,
            task="Document the exit codes",
            assigned_agent=ask.role,
            reports_to="orchestrator",
            inputs_used=(str(CODE), str(HELP)),
            gates_required=GATES,
            gates_passed=("GATE-MSG-STRICT", gate) if gate else ("GATE-MSG-STRICT",),
            evidence={"screenshots": (), "a11y": (), "console": (), "reports": reports},
            fail_reasons=(reason,) if reason else (),
            output=output,
            next_actions=("orchestrator to go on",),
        )
    )
