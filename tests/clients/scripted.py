"""The agents of the client tests: a small project, and what each role answers. The standard library alone.

A client runs in an environment where Interlock is not installed, so that nothing here may import it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

CONFIG = """
roster = "replace"
[roles.orchestrator]
kind = "orchestrator"
[roles.builder]
kind = "build"
hands_over = true
[roles.tester]
kind = "qa"
certifies = "GATE-TESTS"
[roles.reviewer]
kind = "review"
certifies = "GATE-REVIEW"
[gates.GATE-TESTS]
title = "the tests pass"
certifier = "tester"
command = ["sh", "check.sh"]
product = ["src/**"]
[gates.GATE-REVIEW]
title = "a reviewer read the present tree"
certifier = "reviewer"
evidence = ["reports"]
check = "report"
"""

GATES = ("GATE-MSG-STRICT", "GATE-TESTS", "GATE-REVIEW")
TASK: dict[str, Any] = {
    "task_id": "HELLO-001",
    "task": "Write the greeting",
    "gates_required": list(GATES),
    "scope": ["src/**"],
}

README = "# Greetings\n\nThe greeting is still to be written.\n"
PAYLOADS: dict[str, dict[str, Any]] = {
    "fetch_ticket": {
        "external_source": "jira",
        "external_ticket_id": "SHOP-7",
        "title": "Say what the greeting is",
        "description": "The readme does not say which greeting is written.",
    },
    "extract_requirements": {
        "acceptance_criteria": ["The readme names the greeting."],
        "constraints": ["No other file changes."],
        "unknowns": [],
    },
    "scope_context": {"retrieval_targets": ["repo:README.md"], "retrieval_justification": "It is the page to change."},
    "gather_evidence": {
        "evidence_items": [
            {
                "source_id": "ev_1",
                "source_type": "repo",
                "locator": "README.md:3",
                "snippet": "The greeting is still to be written.",
            }
        ]
    },
    "propose_plan": {
        "plan_steps": [
            {
                "step_id": "step_1",
                "intent": "Name the greeting",
                "requirement_refs": ["ac_001", "con_001"],
                "evidence_refs": ["ev_1"],
            }
        ]
    },
    "act_via_tools": {
        "actions_taken": ["rewrote line 3 of README.md"],
        "outputs": ["README.md"],
        "checkpoints": ["README.md names the greeting"],
    },
    "record_and_finalize": {
        "artifacts": ["README.md"],
        "final_summary": "The readme names the greeting.",
        "outcome": "success",
    },
}
"""What passes each stage of a ticket in this project."""

EVIDENCE_KEYS = ("screenshots", "a11y", "console", "reports")


def make_project(root: Path, config: str = CONFIG) -> Path:
    """Make a project whose greeting is to be written: a command gate reads it, no page is looked at."""
    (root / "src").mkdir(parents=True)
    (root / "interlock.toml").write_text(config, encoding="utf-8")
    (root / "README.md").write_text(README, encoding="utf-8")
    (root / "check.sh").write_text("grep -qx hello src/greeting.txt\n", encoding="utf-8")
    return root


def envelope(
    ask: Mapping[str, Any],
    status: str,
    *,
    passed: tuple[str, ...] = (),
    reports: tuple[str, ...] = (),
    fail_reason: str = "NONE",
) -> str:
    """Return an envelope of the asked role."""
    listed = {**dict.fromkeys(EVIDENCE_KEYS, "[]"), "reports": f"[{', '.join(reports)}]"}
    return "\n".join(
        (
            f"STATUS: {status}",
            f"TASK_ID: {ask['ask_id'].split('/')[1]}",
            "TASK: Write the greeting",
            f"ASSIGNED_AGENT: {ask['role']}",
            "REPORTS_TO: orchestrator",
            "INPUTS_USED: []",
            "GATES_REQUIRED:",
            *(f"- {gate}" for gate in GATES),
            "GATES_PASSED:",
            *(f"- {gate}" for gate in ("GATE-MSG-STRICT", *passed)),
            "EVIDENCE:",
            *(f"  {key}: {value}" for key, value in listed.items()),
            "FAIL_REASONS: NONE" if fail_reason == "NONE" else f"FAIL_REASONS:\n- {fail_reason}",
            "OUTPUT:",
            "as asked",
            "NEXT_ACTIONS:",
            "1. orchestrator to go on",
            "",
        )
    )


def rewrite(root: Path) -> None:
    """Do the work of the ticket."""
    (root / "README.md").write_text(README.replace("still to be written", "hello"), encoding="utf-8")


def answer(root: Path, ask: Mapping[str, Any], greeting: str = "hello") -> str:
    """Do the work of the asked role and return its envelope."""
    match ask["role"]:
        case "builder":
            (root / "src" / "greeting.txt").write_text(f"{greeting}\n", encoding="utf-8")
            return envelope(ask, "READY_FOR_QA")
        case "tester":
            logs = tuple(ask["evidence"]["reports"])
            log = (root / logs[0]).read_text(encoding="utf-8").replace(" ", "")
            if '"exit_status":0' in log:
                return envelope(ask, "QA_IN_PROGRESS", passed=("GATE-TESTS",), reports=logs)
            return envelope(ask, "BLOCKED", reports=logs, fail_reason="GATE-TESTS: the greeting is not the one wanted")
        case "reviewer":
            path = f"{ask['reports_dir']}/review.md"
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(f"# Review\n\nRead tree {ask['tree']}. No objection.\n", encoding="utf-8")
            return envelope(ask, "READY_FOR_REVIEW", passed=("GATE-REVIEW",), reports=(path,))
        case role:
            raise ValueError(f"no script for {role}")
