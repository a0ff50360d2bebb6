"""The three agents of the delegated stage: scripted, but what they write is real and is really checked."""

import ast
import json
import re
from pathlib import Path

from interlock.agents import Ask, reply

CODE = Path("interlock/core/errors.py")
HELP = Path("interlock/cli/main.py")
PAGE = Path("docs/exit-codes.md")
INPUTS = (str(CODE), str(HELP))


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
        return reply(ask, "READY_FOR_QA", inputs_used=INPUTS, output=f"{PAGE} has {len(text.splitlines())} rows.")
    old = (root / CODE).read_text(encoding="utf-8")
    new = old.replace('"""Exit codes of every command."""', f'"""Exit codes of every command; see {PAGE}."""')
    (root / CODE).write_text(new, encoding="utf-8")
    return reply(ask, "READY_FOR_QA", inputs_used=INPUTS, output=f"The docstring of Exit names {PAGE}.")


def tester(ask: Ask) -> str:
    """Read the log that Interlock made by running the tests, and certify or say what is wrong."""
    logs = ask.evidence["reports"]
    texts = [Path(ask.root, log).read_text(encoding="utf-8") for log in logs if log.endswith(".log")]
    heads = [json.loads(text.partition("\n")[0]) for text in texts]
    if heads and all(head["exit_status"] == 0 for head in heads):
        return reply(
            ask,
            "QA_IN_PROGRESS",
            "GATE-TESTS",
            evidence={"reports": logs},
            inputs_used=INPUTS,
            output="The tests pass.",
        )
    reason = f"GATE-TESTS: {PAGE} does not have a row for every code"
    return reply(
        ask, "BLOCKED", evidence={"reports": logs}, fail_reasons=(reason,), inputs_used=INPUTS, output="The tests fail."
    )


def reviewer(ask: Ask) -> str:
    """Write a report that names the tree that was read."""
    report = f"{ask.reports_dir}/review.md"
    path = Path(ask.root, report)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# {ask.task_id}\n\nTree: {ask.tree}\n\nThe rows agree with the help text.\n", encoding="utf-8")
    return reply(
        ask, "READY_FOR_REVIEW", "GATE-REVIEW", evidence={"reports": (report,)}, inputs_used=INPUTS, output="Keep it."
    )


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
