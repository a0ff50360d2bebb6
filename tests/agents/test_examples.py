"""Promises of the example's scripts: valid answers but for the one meant to be refused, and edits in every round."""

import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import make_runner
from interlock.agents.runners.replay import expand, read_script
from interlock.envelope import Case, validate
from interlock.envelope.protocol import DEFAULT_PROTOCOL, EvidenceKey, RoleKind, Status

EXAMPLE = Path(__file__).parents[2] / "examples" / "landing-page"
TASKS = ("task.toml", "task-unfixed.toml")
BEFORE: dict[RoleKind, Status] = {"build": "IN_PROGRESS", "qa": "QA_IN_PROGRESS", "review": "READY_FOR_REVIEW"}
COLLECTED: dict[str, dict[EvidenceKey, tuple[str, ...]]] = {
    "visual-qa": {
        "screenshots": tuple(f"artifacts/screenshots/LANDING-UI-001/1/page-{width}.png" for width in (375, 768, 1280)),
        "console": ("artifacts/console/LANDING-UI-001/1/console.jsonl",),
    },
    "a11y-auditor": {"a11y": ("artifacts/a11y/LANDING-UI-001/1/axe.json",)},
}


def load(name: str) -> dict[str, Any]:
    return tomllib.loads((EXAMPLE / name).read_text("utf-8"))


def answers(name: str, make_ask: Any) -> list[tuple[str, int, int, str]]:
    """Return role, attempt, re-ask and text of every answer of a task's scripts."""
    found: list[tuple[str, int, int, str]] = []
    for role, settings in load(name)["agents"].items():
        for turn in read_script(EXAMPLE / settings["script"]):
            for attempt in turn.attempts:
                ask = make_ask(
                    task_id="LANDING-UI-001",
                    role=role,
                    attempt=attempt,
                    reask=turn.reask,
                    evidence=COLLECTED.get(role, {}),
                    reports_dir=f"artifacts/reports/LANDING-UI-001/{attempt}",
                )
                found.append((role, attempt, turn.reask, expand(turn.response, ask)))
    return found


def verdict_of(name: str, role: str, text: str) -> Any:
    task = load(name)
    before = BEFORE[DEFAULT_PROTOCOL.roles[role].kind]
    return validate(
        text, Case(agent=role, task_id=task["task_id"], gates=task["gates_required"], current_status=before)
    )


@pytest.mark.parametrize("name", TASKS)
def test_every_scripted_answer_is_valid_but_the_one_that_is_meant_to_be_refused(name: str, make_ask: Any) -> None:
    refused: list[tuple[str, int, int]] = []
    for role, attempt, number, text in answers(name, make_ask):
        report = verdict_of(name, role, text)
        if not report.ok:
            refused.append((role, attempt, number))
    assert refused == ([("frontend-implementer", 1, 0)] if name == "task.toml" else [])


@pytest.mark.parametrize("name", TASKS)
def test_qa_fails_the_first_round_and_passes_only_where_the_faults_are_fixed(name: str, make_ask: Any) -> None:
    verdicts = {
        (role, attempt): verdict_of(name, role, text).verdict
        for role, attempt, _, text in answers(name, make_ask)
        if role in COLLECTED
    }
    for role in COLLECTED:
        assert verdicts[role, 1] == "FAIL"
        assert verdicts[role, 2] == ("PASS" if name == "task.toml" else "FAIL")


@pytest.mark.parametrize("name", TASKS)
def test_the_implementer_changes_the_site_in_every_round(name: str, tmp_path: Path, make_ask: Any) -> None:
    work = tmp_path / "work"
    shutil.copytree(EXAMPLE, work)
    settings = load(name)["agents"]["frontend-implementer"]
    run: Any = make_runner("frontend-implementer", settings, root=work, base=work)

    def site() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in (work / "site").rglob("*") if path.is_file()}

    for attempt in (1, 2):
        before = site()
        run(make_ask(work, attempt=attempt))
        assert site() != before
    fixed = all((work / "site" / path.name).read_bytes() == path.read_bytes() for path in (work / "fixed").iterdir())
    assert fixed == (name == "task.toml")
