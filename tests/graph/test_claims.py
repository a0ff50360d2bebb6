"""Files that a hand-over names and that are not there: whoever approves is told, and nothing is decided."""

from pathlib import Path

import pytest

from interlock.agents import Ask
from interlock.graph.task.explain import explain_run, tree_after
from tests import warm
from tests.graph.conftest import Project, Scripted, build, envelope


def claiming(text: str, removes: str = "") -> Scripted:
    """Return a builder that does its work and says so in these words."""

    def answer(ask: Ask) -> str:
        build()(ask)
        if removes:
            (Path(ask.root) / removes).unlink()
        return envelope(ask, "READY_FOR_QA", output=text)

    return Scripted([answer])


def test_files_that_output_names_and_nobody_made_are_shown_at_the_approval_and_block_nothing(project: Project) -> None:
    project.runners["builder"] = claiming(
        "I wrote src/greeting.txt, `src/helper.py`, `notes.txt` and 14 tests:\n- tests/test_greeting.py: all pass"
    )
    view = project.run()
    assert view.status == "APPROVED"
    claims = ["src/helper.py", "notes.txt", "tests/test_greeting.py"]
    approval = project.entries("status")[-1].data["envelope"]["output"]
    assert f"RUN616: the hand-over names files that do not exist: {', '.join(claims)}." in approval
    assert tree_after(view, project.root)["not_there"] == claims
    shown = warm.interlock(project.root, "status", "HELLO-001").stdout
    assert [path for path in claims if f"not there   {path} " in shown] == claims
    steps = explain_run(view, project.root)["next"]
    assert [path for path in claims if any(path in step for step in steps)] == claims


def test_a_file_that_the_work_removed_is_no_false_claim(project: Project) -> None:
    (project.root / "src/old.txt").write_text("old\n")
    project.runners["builder"] = claiming("Deleted src/old.txt, wrote src/greeting.txt.", removes="src/old.txt")
    assert tree_after(project.run(), project.root)["not_there"] == []


def test_only_the_hand_over_that_was_approved_counts(project: Project) -> None:
    project.runners["builder"] = Scripted(
        [
            lambda ask: build("wrong\n")(ask).replace("as asked", "See src/first.py."),
            lambda ask: build()(ask).replace("as asked", "See src/second.py."),
        ]
    )
    assert tree_after(project.run(), project.root)["not_there"] == ["src/second.py"]


@pytest.mark.parametrize(
    "words", ["see https://example.com/a/b.html", "and/or v1.2/x", "Node.js, e.g. json.loads", "`obj.method` of 3/4.5"]
)
def test_other_words_are_no_claims(project: Project, words: str) -> None:
    project.runners["builder"] = claiming(words)
    assert tree_after(project.run(), project.root)["not_there"] == []
