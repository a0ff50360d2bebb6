"""The stages of a ticket, a small project, and payloads that hold for both."""

import copy
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from interlock.core.finding import Finding
from interlock.gates.stages import Field, Stage, Surroundings, judge_stage
from interlock.gates.stages.stage import CheckName
from tests.gates.support import put

LOGIN: Final = '''"""Login."""

from app import sessions


def check(user, password):
    if not password:
        return False
    return user.verify(password)


def logout(user):
    for session in sessions.of(user):
        session.clear()
'''
WINDOWS: Final = "first line\r\n\tindented  \r\nlast line\r\n"


def texts(*names: str, may_be_empty: tuple[str, ...] = ()) -> tuple[Field, ...]:
    return tuple(Field(name, "texts", f"the {name}", may_be_empty=name in may_be_empty) for name in names)


def plain(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, meaning=f"the {name}") for name in names)


def row(name: str, *fields: Field, checks: tuple[CheckName, ...] = (), acts: bool = False) -> Stage:
    return Stage(name, f"Do {name}.", fields, checks, acts)


_STEP: Final = (*plain("step_id", "intent"), *texts("requirement_refs", "evidence_refs"))
STAGES: Final = {
    stage.name: stage
    for stage in (
        row("fetch_ticket", *plain("external_source", "external_ticket_id", "title", "description")),
        row(
            "extract_requirements",
            *texts("acceptance_criteria", "constraints", "unknowns", may_be_empty=("constraints", "unknowns")),
        ),
        row("scope_context", *texts("retrieval_targets"), *plain("retrieval_justification"), checks=("targets",)),
        row(
            "gather_evidence",
            Field(
                "evidence_items",
                "items",
                "what was found",
                fields=(
                    *plain("source_id", "source_type", "locator", "snippet"),
                    Field("claim", "item", "the value of a subject", fields=plain("subject", "value"), optional=True),
                ),
            ),
            checks=("unique_ids", "grounded", "no_conflict", "one_value"),
        ),
        row(
            "propose_plan",
            Field("plan_steps", "items", "the steps", fields=_STEP),
            checks=("unique_ids", "known_refs", "covered"),
        ),
        row("act_via_tools", *texts("actions_taken", "outputs", "checkpoints"), checks=("observed",), acts=True),
        row(
            "record_and_finalize",
            *texts("artifacts"),
            *plain("final_summary"),
            Field("outcome", "choice", "how it ended", choices=("success", "partial", "blocked")),
            checks=("artifacts_exist", "unchanged_said"),
        ),
        row("intake", *plain("ticket_id", "title"), Field("description", meaning="the text", optional=True)),
    )
}


def item(source_id: str, locator: str, snippet: str, source_type: str = "repo") -> dict[str, Any]:
    return {"source_id": source_id, "source_type": source_type, "locator": locator, "snippet": snippet}


GOOD: Final[Mapping[str, dict[str, Any]]] = {
    "fetch_ticket": {
        "external_source": "github",
        "external_ticket_id": "12",
        "title": "Refuse empty passwords",
        "description": "An empty password must be refused.\nLog it.",
    },
    "extract_requirements": {
        "acceptance_criteria": ["Empty passwords are refused", "Refusals are logged", "Nobody is locked out"],
        "constraints": ["No new dependency"],
        "unknowns": ["Nobody is locked out"],
    },
    "scope_context": {"retrieval_targets": ["repo:src/**"], "retrieval_justification": "The login is there."},
    "gather_evidence": {
        "evidence_items": [
            item("ev_1", "src/login.py:7-8", "    if not password:\n        return False"),
            item("ev_2", "src/login.py:12", "def logout(user):"),
            item("ev_3", "https://example.org/policy", "Refuse empty passwords.", "web"),
        ]
    },
    "propose_plan": {
        "plan_steps": [
            {"step_id": "s1", "intent": "Refuse", "requirement_refs": ["ac_001", "con_001"], "evidence_refs": ["ev_1"]},
            {"step_id": "s2", "intent": "Log", "requirement_refs": ["ac_002"], "evidence_refs": ["ev_1", "ev_2"]},
        ]
    },
    "act_via_tools": {
        "actions_taken": ["Changed src/login.py"],
        "outputs": ["src/login.py"],
        "checkpoints": ["The tests pass"],
    },
    "record_and_finalize": {"artifacts": ["src/login.py"], "final_summary": "Done.", "outcome": "success"},
    "intake": {"ticket_id": "DEMO-1", "title": "Refuse empty passwords"},
}


def earlier() -> dict[str, Any]:
    """Return what all stages together have collected."""
    return {name: value for payload in copy.deepcopy(dict(GOOD)).values() for name, value in payload.items()}


def project(root: Path) -> Surroundings:
    """Lay out the files that evidence points at, and some that it must not."""
    put(root, "src/login.py", LOGIN)
    put(root, "src/windows.txt", WINDOWS)
    put(root, "src/tabs.mk", "all:\n\tcc -o a a.c\n\n\tstrip a\nclean:\n\trm a\n")
    put(root, "src/twice.py", "x = 1\ny = 2\nx = 1\n")
    put(root, "src/short.c", "f() {}\n}\n")
    put(root, "src/latin.txt", "Grüße".encode("latin-1"))
    put(root, "src/image.bin", b"a\0b")
    put(root, "src/empty.txt", "")
    put(root, "src/bom.txt", b"\xef\xbb\xbffirst\n")
    put(root, "src/large.txt", b"x" * (2 * 1024 * 1024 + 1))
    put(root, ".git/config", "[core]\n")
    put(root, ".interlock/state", "secret\n")
    put(root, "artifacts/interlock/tickets/run-1/ticket.json", "what the agent wrote\n")
    put(root, "src/.ruff_cache/log", "what a tool wrote\n")
    put(root, "tickets/ticket.json", "what the agent wrote\n")
    (root / "src/link.py").symlink_to("login.py")
    (root / "linked").symlink_to("src")
    return Surroundings(root)


def judged(
    stage: str, payload: object, around: Surroundings, known: dict[str, Any] | None = None
) -> tuple[Finding, ...]:
    """Judge a payload and hold every finding to what findings promise."""
    issues = judge_stage(STAGES[stage], payload, earlier() if known is None else known, around)
    for issue in issues:
        assert re.fullmatch(r"STG\d\d\d", issue.code)
        for text in (issue.message, issue.found, issue.expected, issue.fix):
            assert text.strip()
            assert len(text) <= 1200, issue
            assert text.isprintable(), issue
        assert issue.message.endswith(".")
        assert issue.fix.endswith(".")
        assert len(issue.field) <= 200
        assert issue.field or issue.code in {"STG101", "STG102", "STG112", "STG601", "STG602", "STG605"}
    return issues


NOWHERE: Final = Surroundings(Path("/nowhere"))


def evidence(*items: dict[str, Any]) -> dict[str, Any]:
    return {"evidence_items": list(items)}


def gathered(around: Surroundings, *items: dict[str, Any], known: dict[str, Any] | None = None) -> tuple[Finding, ...]:
    """Judge evidence that was gathered."""
    return judged("gather_evidence", evidence(*items), around, known)


def codes(issues: tuple[Finding, ...]) -> list[str]:
    return [issue.code for issue in issues]


def holds(issues: tuple[Finding, ...]) -> bool:
    return all(issue.level == "warn" for issue in issues)
