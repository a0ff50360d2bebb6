"""An approved run is measured against the checkout for as long as its work is what is uncommitted there."""

from dataclasses import replace
from pathlib import Path

from interlock.graph.task.explain import tree_after
from tests.child import git
from tests.graph.sealed_project import RIGHT, sealed_project, working, write


def test_a_change_after_the_approval_is_named_until_the_work_is_committed_or_another_run_begins(tmp_path: Path) -> None:
    project = sealed_project(tmp_path)
    project.runners = {"builder": working(RIGHT)}
    view = project.run()
    assert view.status == "APPROVED", view.values["fail_reasons"]
    view = replace(view, policy=replace(view.policy, commit=git(tmp_path, "rev-parse", "HEAD").strip()))

    def changed(seen: object = view) -> list[str]:
        return tree_after(seen, tmp_path)["changed_since"]  # type: ignore[arg-type]

    assert changed() == []
    write(tmp_path, {"src/greeting.txt": "hello\nworld\n"})
    assert changed() == ["src/greeting.txt"]
    assert changed(replace(view, policy=replace(view.policy, tree="t-1"))) == [], "its files are not these"
    project.start()
    assert changed() == [], "what differs may be the work of the run that began since"
    fresh = replace(view, run_id="HELLO-001.2")
    assert changed(fresh) == ["src/greeting.txt"]
    git(tmp_path, "commit", "-qam", "the work")
    assert changed(fresh) == []
