"""A run with a sealed gate: frozen at the start, judged by the base, and only counts of held-out checks are shown."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from interlock.agents import Ask
from interlock.gates.config import load_config
from interlock.gates.sealed import SealError
from interlock.graph.engine.folder import list_runs
from interlock.graph.task.explain import explain_run, tree_after
from interlock.graph.task.policy import make_policy
from interlock.graph.task.runs import start_run, view_run
from interlock.graph.task.sealing import base_faults
from interlock.graph.task.task import task_from_mapping
from interlock.graph.task.trees import earlier_runs
from interlock.graph.verify import verify_journal
from tests.child import git
from tests.gates.sealed.sealing import FILES, RIGHT, WRONG, environment, write
from tests.graph.conftest import Project, Scripted, envelope

REQUIRED = ("GATE-MSG-STRICT", "GATE-TESTS")
VISIBLE = WRONG.replace("x + 2", "{2: 4, 5: 10, -1: -2}[x]")
CHEAT = "import pytest\n\n\ndef test_half():\n    pass\n"


@pytest.fixture
def sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Give a pytest project in git, whose gate has held-out checks."""
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    root = tmp_path / "project"
    table = (
        'function = "src/calc.py:double"\ncases = [{args = [31337], expected = 62674}, {args = [2], expected = 4}]\n'
    )
    write(tmp_path, {"held-outside.toml": table})
    config = """
roster = "replace"
[roles.orchestrator]
kind = "orchestrator"
[roles.builder]
kind = "build"
hands_over = true
[gates.GATE-TESTS]
title = "the tests pass"
command = [".venv/bin/pytest", "-q"]
heldout = "../held-outside.toml"
"""
    write(root, {**FILES, "interlock.toml": config})
    (root / ".venv").symlink_to(environment())
    git(root, "init", "-q", ".")
    fields = {"task_id": "CALC-001", "task": "Correct double", "gates_required": list(REQUIRED), "scope": ["src/**"]}
    return Project(root, {}, task_from_mapping({**fields, "run": {"max_rework": 1}}, base=str(root)))


def working(*rounds: dict[str, str]) -> Callable[[Ask], str]:
    """Return a builder that writes these files, in one round after another."""

    def answer(ask: Ask) -> str:
        write(Path(ask.root), rounds[min(ask.attempt, len(rounds)) - 1])
        return envelope(ask, "READY_FOR_QA", gates_required=REQUIRED)

    return answer


def codes_of(project: Project) -> list[list[str]]:
    """Return the codes that the sealed gate found in each round, as the journal has them."""
    rows = [entry.data for entry in project.entries() if entry.data.get("gate") == "GATE-TESTS"]
    return [[finding["code"] for finding in row["findings"]] for row in rows]


@pytest.mark.long
def test_a_cheat_is_put_back_and_sent_back_and_an_honest_fix_is_approved(sealed: Project) -> None:
    cheat = {"tests/test_calc.py": CHEAT, "src/notes.py": "x = 1\n"}
    sealed.runners = {"builder": Scripted([working(cheat, {"src/calc.py": RIGHT})])}
    view = sealed.run()
    assert view.status == "APPROVED", view.values["fail_reasons"]
    assert sealed.path().count("BLOCKED") == 1
    said = sealed.asks("builder")[1].prompt
    assert "- tests/test_calc.py" in said.partition("## What was put back")[2].partition("##")[0]
    assert "assert 7 == 10" in said
    assert codes_of(sealed) == [["EVD574", "EVD574"], []]
    assert (sealed.root / "tests/test_calc.py").read_text() == FILES["tests/test_calc.py"]
    assert verify_journal(sealed.root).problems == ()
    assert tree_after(view, sealed.root) == {"not_judged": [], "changed_since": [], "not_there": []}
    write(sealed.root, {"src/calc.py": WRONG})
    assert tree_after(view, sealed.root) == {"not_judged": [], "changed_since": ["src/calc.py"], "not_there": []}
    assert "not as it was approved" in explain_run(view, sealed.root)["next"][0]


@pytest.mark.long
def test_who_only_cheats_ends_blocked_by_reasons_with_the_missing_tests(sealed: Project) -> None:
    leaving = "import os\n\nos._exit(0)\n"
    sealed.runners = {
        "builder": Scripted([working({"tests/test_calc.py": CHEAT, "src/notes.py": ""}, {"src/calc.py": leaving})])
    }
    view = sealed.run()
    assert view.status == "BLOCKED"
    blocked = [entry.data for entry in sealed.entries() if entry.data.get("to") == "BLOCKED"]
    first, second = (row["envelope"]["fail_reasons"] for row in blocked)
    assert any("tests/test_calc.py::test_double" in reason for reason in first)
    assert any("tests/test_calc.py::test_double" in reason and "not begun" in reason for reason in second)


@pytest.mark.long
def test_held_out_checks_that_changed_meanwhile_judge_nothing(sealed: Project) -> None:
    outside = sealed.root.parent / "held-outside.toml"

    def forging(ask: Ask) -> str:
        outside.write_text('function = "src/calc.py:double"\ncases = [{args = [2], expected = 4}]\n')
        return working({"src/calc.py": VISIBLE})(ask)

    sealed.runners = {"builder": Scripted([forging])}
    view = sealed.run()
    assert view.status == "BLOCKED"
    assert [entry.data["code"] for entry in sealed.entries() if "code" in entry.data] == ["HELD108"]


@pytest.mark.long
def test_nothing_but_counts_of_held_out_checks_is_shown(sealed: Project) -> None:
    sealed.runners = {"builder": Scripted([working({"src/calc.py": VISIBLE}, {"src/calc.py": VISIBLE + "\n"})])}
    view = sealed.run()
    assert view.status == "BLOCKED"
    reasons = "\n".join(view.values["fail_reasons"])
    assert "1 of 2 held-out checks failed" in reasons
    assert codes_of(sealed) == [["EVD586"], ["EVD586"]]
    prompts = [ask.prompt.encode() for ask in sealed.asks("builder")]
    written = [path.read_bytes() for path in (sealed.root / "artifacts").rglob("*") if path.is_file()]
    assert len(written) > 3
    assert [word for word in (b"31337", b"62674") if any(word in data for data in (*prompts, *written))] == []
    assert not any(b"held-outside" in data for data in prompts)


def test_no_run_begins_on_what_an_unapproved_one_left_unless_a_person_accepts_it(sealed: Project) -> None:
    config = (sealed.root / "interlock.toml").read_text().partition("command =")[0] + (
        'command = ["true"]\nproduct = ["src/**"]\ntests = ["tests/**"]\n'
    )
    write(sealed.root, {"interlock.toml": config})
    view = partial(view_run, root=sealed.root)
    first = start_run(sealed.root, sealed.task, roles=("builder",))
    write(sealed.root, {"tests/test_calc.py": CHEAT, "src/calc.py": RIGHT})
    with pytest.raises(SealError, match="SEAL407") as caught:
        start_run(sealed.root, sealed.task, roles=("builder",))
    assert f"when {first} of this task began" in caught.value.message
    assert "tests/test_calc.py." in caught.value.message
    assert "src/" not in caught.value.message
    assert list_runs(sealed.root, "runs") == [first]
    policy = make_policy(sealed.task, load_config(sealed.root), sealed.root, roles=("builder",))
    earlier = list(earlier_runs(sealed.root, sealed.task.task_id, view))
    found = {row.code: row.level for row in base_faults(sealed.root, sealed.task, policy, earlier=earlier)}
    assert found["SEAL407"] == "error"
    allowed = replace(sealed.task, may_change=("tests/**",))
    assert "SEAL407" not in {row.code for row in base_faults(sealed.root, allowed, policy, earlier=earlier)}
    second = start_run(sealed.root, sealed.task, roles=("builder",), accept_base=True)
    third = start_run(sealed.root, sealed.task, roles=("builder",))  # what a person accepted is accepted
    assert [row[0] for row in earlier_runs(sealed.root, sealed.task.task_id, view) if row.base] == [third, second]
    write(sealed.root, {"tests/test_calc.py": FILES["tests/test_calc.py"]})
    with pytest.raises(SealError, match="SEAL407"):
        start_run(sealed.root, sealed.task, roles=("builder",))
