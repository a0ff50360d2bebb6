"""What an agent did to files that keep their base content is put back at the hand-over, once, and kept."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlock.core.text import few
from interlock.gates.sealed import Store
from interlock.graph.task.explain import explain_run, explanation_text, run_summary, tree_after
from interlock.graph.task.progress import progress_since
from interlock.graph.task.record import Recorder
from interlock.graph.task.restoring import restoring
from interlock.graph.task.runs import view_run
from interlock.graph.task.trees import put_back_of
from interlock.graph.verify import verify_journal
from interlock.reservations import open_reservations
from tests.child import git
from tests.graph.conftest import Project
from tests.graph.sealed_project import FILES, RIGHT, WEAK, sealed_project, text_of, working, write


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    return sealed_project(tmp_path)


def hand_overs_of(project: Project) -> list[dict[str, Any]]:
    """Return what the journal says of each hand-over."""
    return [dict(entry.data) for entry in project.entries("status") if entry.data["to"] == "READY_FOR_QA"]


def put_back(project: Project) -> list[list[str]]:
    """Return what the journal says was put back, by hand-over."""
    return [entry.data["paths"] for entry in project.entries("put_back")]


def test_approved_leaves_nothing_behind_that_no_gate_took_from_the_work(shop: Project) -> None:
    planted = {"tests/sitecustomize.py": "raise SystemExit(0)\n"}
    changed = {"tests/check.sh": WEAK, "tests/more.sh": None, "Makefile": "test:\n\ttrue\n"}
    kept = {**RIGHT, "src/new.txt": "new\n", "tests/new.sh": "true\n", "notes.txt": "of another person\n"}
    shop.runners = {"builder": working({**planted, **changed, **kept})}
    view = shop.run()
    assert view.status == "APPROVED", view.values["fail_reasons"]
    for name in (*planted, *changed):
        assert text_of(shop.root, name) == FILES.get(name), name
    for name, text in kept.items():
        assert text_of(shop.root, name) == text, name
    (handed,) = hand_overs_of(shop)
    names = sorted((*planted, *changed))
    assert put_back(shop) == [names]
    assert [row["path"] for row in handed["outside"]] == ["notes.txt"]
    notices = progress_since(shop.root, view.run_id)[0]
    assert [row["files"] for row in notices if row["kind"] == "put_back"] == [names]
    said = explain_run(view, shop.root)
    assert said["put_back"] == {"1": names}
    line = f"put back as in the base, attempt 1: {few(names)} (interlock restore {view.run_id} --show)"
    assert line in explanation_text(said)
    assert run_summary(view, shop.root)["put_back"] == names
    after = tree_after(view, shop.root)
    assert (after["not_judged"], after["changed_since"]) == (["notes.txt"], [])
    assert verify_journal(shop.root).problems == ()
    (found,) = put_back_of(shop.root, view.run_id)
    store = Store(shop.root)
    assert store.content(store.files(found.work)["tests/check.sh"].oid) == WEAK.encode()


def test_outside_the_scope_what_decides_a_gate_is_put_back_and_all_else_is_left(shop: Project) -> None:
    shop.task = replace(shop.task, scope=("src/**",))
    shop.runners = {"builder": working({**RIGHT, "tests/check.sh": WEAK, "Makefile": "", "new.sh": ""})}
    assert shop.run().status == "APPROVED"
    assert put_back(shop) == [["tests/check.sh"]]
    assert [text_of(shop.root, name) for name in ("tests/check.sh", "Makefile", "new.sh")] == [
        FILES["tests/check.sh"],
        "",
        "",
    ]


def test_a_journal_that_is_committed_goes_on_whatever_the_scope(shop: Project) -> None:
    shop.runners = {"builder": working({"src/new.txt": "new\n"})}
    assert shop.run().status == "BLOCKED"
    git(shop.root, "add", "-Af", "artifacts/interlock/events.jsonl", "src")
    git(shop.root, "commit", "-qm", "With the journal")
    shop.task = replace(shop.task, task_id="HELLO-002", scope=("**",))
    shop.runners = {"builder": working(RIGHT)}
    view = shop.run()
    assert view.status == "APPROVED", view.values["fail_reasons"]
    assert put_back(shop) == []
    assert verify_journal(shop.root).problems == ()
    assert restoring(shop.root, view).paths == ()


def test_a_file_that_another_agent_holds_is_left_alone(shop: Project) -> None:
    shop.task = replace(shop.task, scope=("src/**",))
    bob = open_reservations(str(shop.root), "cli", name="bob")
    bob.reserve_files(["tests/check.sh"])
    shop.runners = {"builder": working({**RIGHT, "tests/check.sh": WEAK, "tests/more.sh": WEAK + "\n"})}
    view = shop.run()
    assert view.status == "APPROVED"
    assert put_back(shop) == [["tests/more.sh"]]
    assert text_of(shop.root, "tests/check.sh") == WEAK
    assert [(row["path"], row["holder"]) for row in hand_overs_of(shop)[0]["outside"]] == [("tests/check.sh", "bob")]


def test_what_the_task_lets_change_stays_as_the_work_has_it(shop: Project) -> None:
    shop.task = replace(shop.task, may_change=("tests/more.sh", "Makefile"))
    shop.runners = {"builder": working({**RIGHT, "tests/more.sh": None, "Makefile": ""})}
    assert shop.run().status == "APPROVED"
    assert put_back(shop) == []
    assert [text_of(shop.root, name) for name in ("tests/more.sh", "Makefile")] == [None, ""]


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


def killed_at(shop: Project, patch: Callable[[pytest.MonkeyPatch], None]) -> str:
    """Start a run, kill it where the patch says so, and return its id."""
    shop.runners = {"builder": working({**RIGHT, "tests/check.sh": WEAK, "tests/more.sh": None})}
    run_id = shop.start()
    with pytest.MonkeyPatch.context() as patching:
        patch(patching)
        with pytest.raises(Killed):
            shop.drive(run_id)
    return run_id


def before_the_line(patching: pytest.MonkeyPatch) -> None:
    keep = Recorder.keep

    def dying(self: Recorder, run_id: str, key: str, *rest: Any) -> Any:
        if key.endswith("READY_FOR_QA"):
            raise Killed
        return keep(self, run_id, key, *rest)

    patching.setattr(Recorder, "keep", dying)


def within_the_files(patching: pytest.MonkeyPatch) -> None:
    restore = Store.restore

    def dying(self: Store, tree: str, paths: list[str]) -> list[str]:
        restore(self, tree, paths[:1])
        raise Killed

    patching.setattr(Store, "restore", dying)


@pytest.mark.parametrize("patch", [before_the_line, within_the_files])
def test_a_run_that_is_killed_meanwhile_puts_back_what_it_had_begun_with_and_both_versions_are_kept(
    shop: Project, patch: Callable[[pytest.MonkeyPatch], None]
) -> None:
    run_id = killed_at(shop, patch)
    view = shop.drive(run_id)
    assert view.status == "APPROVED", view.values["fail_reasons"]
    assert put_back(shop) == [["tests/check.sh", "tests/more.sh"]]
    assert [text_of(shop.root, name) for name in ("tests/check.sh", "tests/more.sh")] == [
        FILES["tests/check.sh"],
        FILES["tests/more.sh"],
    ]
    (found,) = put_back_of(shop.root, run_id)
    store = Store(shop.root)
    left = store.files(found.work)
    assert store.content(left["tests/check.sh"].oid) == WEAK.encode()
    assert "tests/more.sh" not in left


def test_the_agent_is_told_and_a_work_of_nothing_else_is_sent_back_at_once(shop: Project) -> None:
    shop.runners = {"builder": working({"tests/check.sh": WEAK}, RIGHT)}
    view = shop.run()
    assert view.status == "APPROVED"
    (blocked,) = (entry.data for entry in shop.entries("status") if entry.data["to"] == "BLOCKED")
    (why,) = blocked["envelope"]["fail_reasons"]
    assert why.startswith("GATE-TESTS: ")
    assert "put back: tests/check.sh" in why
    assert len([entry for entry in shop.entries() if entry.data.get("gate") == "GATE-TESTS"]) == 1
    first, second = (ask.prompt for ask in shop.asks("builder"))
    assert "## What was put back" not in first
    assert "- tests/check.sh" in second.partition("## What was put back")[2].partition("##")[0]
    assert run_summary(view, shop.root)["put_back"] == [], "nothing of the attempt that was approved"


def test_a_run_of_an_earlier_version_says_so_and_a_new_one_goes_on(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.runners = {"builder": working(RIGHT)}
    frozen: dict[str, Any] = {"base": "9f2c", "top": str(shop.root), "links": {}, "listing": "x"}

    def sealed_then(*_: object) -> dict[str, Any]:
        return {"frozen": frozen, "tests": {"GATE-TESTS": ""}}

    with monkeypatch.context() as patch:
        patch.setattr("interlock.graph.task.runs.seal_run", sealed_then)
        run_id = shop.start()
    assert shop.drive(run_id).status == "BLOCKED"
    assert [entry.data["code"] for entry in shop.entries() if "code" in entry.data] == ["SEAL402"]
    assert any("new run" in reason for reason in view_run(run_id, root=shop.root).values["fail_reasons"])
    assert json.dumps(explain_run(view_run(run_id, root=shop.root), shop.root))
    write(shop.root, {"src/greeting.txt": "hullo\n"})
    assert shop.run().status == "APPROVED"
