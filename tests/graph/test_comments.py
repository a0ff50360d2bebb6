"""Comments of people on lines: kept once, given to the build role once, and consistent wherever a process is killed."""

from typing import Any

import pytest

from interlock.agents import REMOTE, Ask
from interlock.gates.config import load_config
from interlock.graph import (
    GraphError,
    UnknownRunError,
    abandon,
    comment,
    comments,
    comments_go_to,
    make_policy,
    verify_journal,
    view_run,
)
from interlock.graph.task import comments as kept
from interlock.graph.task.record import Recorder
from interlock.journal import Journal
from tests.graph.conftest import Project, Scripted, asks_of, build, envelope, judge_log

TEXT = "say hello, not hullo"


def unreviewed(project: Project) -> Project:
    """Take the review role and its gate out."""
    path = project.root / "interlock.toml"
    text = path.read_text()
    for name in ("[roles.reviewer]", "[gates.GATE-REVIEW]"):
        begin = text.index(name)
        text = text[:begin] + text[text.index("\n[", begin) + 1 :]
    path.write_text(text)
    return project


@pytest.fixture
def waiting(project: Project) -> tuple[Project, str]:
    """Return a project with a run whose first round waits for the answer of a tester; a person commented on its work.

    An agent reviews, which passes no comments on.
    """
    project.runners["tester"] = REMOTE
    project.runners["builder"] = Scripted([build("hullo\n"), build()])
    run_id = project.start()
    assert project.drive(run_id).phase == "waiting"
    return project, run_id


def write(project: Project, run_id: str, text: str = TEXT, line: int = 1, path: str = "src/greeting.txt") -> Any:
    return comment(project.root, run_id, 1, path, line, text, "ada")


def answer(project: Project, run_id: str) -> str:
    """Return what a tester answers that goes by the log of the present attempt."""
    return judge_log(asks_of(view_run(run_id, root=project.root), project.root)["tester"])


def finish(project: Project, run_id: str) -> None:
    views = [project.drive(run_id, tester=answer(project, run_id)) for _ in range(2)]
    assert views[-1].status == "APPROVED"


def given(ask: Ask) -> list[str]:
    """Return the comments in an assignment."""
    block = ask.prompt.partition("## Comments on lines")[2].partition("</data>")[0]
    return [line.removeprefix("| ") for line in block.split("\n") if line.startswith("| ")]


def whole(project: Project) -> bool:
    return not verify_journal(project.root).problems


def test_a_comment_goes_to_the_build_role_with_its_next_assignment_once(waiting: tuple[Project, str]) -> None:
    project, run_id = waiting
    first = write(project, run_id)
    assert write(project, run_id) == first, "a repeated comment is the first one"
    write(project, run_id, "two\r\nlines \u2028 and <b>", 0, "src/other file.txt")
    assert [row.number for row in comments(project.root, run_id)] == [1, 2]
    lines = [row for row in project.entries("comment") if row.run == f"{run_id}/beside"]
    assert [row.data["text"] for row in lines] == [TEXT, "two lines and <b>"]
    assert whole(project)

    def progress(ask: Ask) -> str:
        return envelope(ask, "IN_PROGRESS")

    project.runners["builder"] = Scripted([progress, build()])
    finish(project, run_id)
    with_them, after = project.asks("builder")
    assert given(with_them) == [
        f"ada on attempt 1: src/greeting.txt:1 {TEXT}",
        "ada on attempt 1: src/other file.txt two lines and <b>",
    ]
    assert "Comments on lines" not in after.prompt
    moves = [entry.data for entry in project.entries("status")]
    assert [move.get("comments") for move in moves if move["to"] == "IN_PROGRESS"] == [None, 2, None]
    assert whole(project)
    assert verify_journal(project.root).runs == 1


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.long
@pytest.mark.parametrize("place", ["before the line", "after the line", "after the dispatch"])
def test_wherever_a_process_is_killed_each_comment_is_given_once_and_the_journal_is_whole(
    waiting: tuple[Project, str], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    project, run_id = waiting
    extend, keep = Journal.extend, Recorder.keep

    def killed(self: Any, *arguments: Any, **named: Any) -> Any:
        if "after" in place:
            extend(self, *arguments, **named)
        raise Killed

    def dispatched(self: Any, run: str, key: str, kind: str, data: dict[str, Any]) -> Any:
        entry = keep(self, run, key, kind, data)
        if data.get("comments"):
            raise Killed
        return entry

    with monkeypatch.context() as patch:
        if place == "after the dispatch":
            write(project, run_id)
            patch.setattr(Recorder, "keep", dispatched)
            with pytest.raises(Killed):
                project.drive(run_id, tester=answer(project, run_id))
        else:
            patch.setattr(Journal, "extend", killed)
            with pytest.raises(Killed):
                write(project, run_id)
    assert whole(project)
    write(project, run_id)
    if place == "after the dispatch":
        write(project, run_id, "one that comes too late")
        project.drive(run_id)
        assert project.drive(run_id, tester=answer(project, run_id)).status == "APPROVED"
    else:
        finish(project, run_id)
    asks = [given(ask) for ask in project.asks("builder")]
    assert [len(rows) for rows in asks] == [0, 1], "what came after the dispatch goes with the next one"
    assert len(project.entries("comment")) == len(comments(project.root, run_id))
    assert whole(project)


@pytest.mark.long
def test_a_comment_can_be_written_while_the_run_is_driven(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def meanwhile(ask: Ask) -> str:
        comment(project.root, ask.run_id, 1, "src/greeting.txt", 1, f"from within {ask.attempt}", "ada")
        return build("hullo\n" if ask.attempt == 1 else "hello\n")(ask)

    project.runners["builder"] = Scripted([meanwhile])
    assert project.run().status == "APPROVED"
    assert [len(given(ask)) for ask in project.asks("builder")] == [0, 1]
    assert whole(project)


@pytest.mark.parametrize("reviewer", ["person", "agent", "nobody"])
def test_comments_go_to_the_build_role_unless_a_person_reviews(project: Project, reviewer: str) -> None:
    if reviewer == "nobody":
        unreviewed(project)
    table = {"person": 'runner = "remote"', "agent": 'runner = "replay"\nfile = "x"'}
    if reviewer in table:
        project.configure(f"[agents.reviewer]\n{table[reviewer]}")
    policy = make_policy(project.task, load_config(project.root), project.root, roles=())
    assert comments_go_to(policy) == ("review" if reviewer == "person" else "build")


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("no text", {"text": " \n"}),
    ("long text", {"text": "x" * (kept.MAX_CHARS + 1)}),
    ("absolute", {"path": "/etc/passwd"}),
    ("key in the path", {"path": "k3y-of-the-shop.txt"}),
    ("line", {"line": -1}),
    ("attempt", {"attempt": 2}),
]


def test_a_comment_that_names_no_place_or_says_nothing_is_refused(
    waiting: tuple[Project, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, run_id = waiting
    monkeypatch.setenv("SHOP_API_KEY", "k3y-of-the-shop")
    good: dict[str, Any] = {"attempt": 1, "path": "src/a.txt", "line": 1, "text": "the k3y-of-the-shop", "by": "ada"}
    for name, harm in REFUSED:
        with pytest.raises(GraphError) as caught:
            comment(project.root, run_id, **{**good, **harm})
        assert caught.value.code == "RUN650", name
    assert comments(project.root, run_id) == ()
    assert comment(project.root, run_id, **good).text == "the [SHOP_API_KEY]"
    with pytest.raises(UnknownRunError):
        write(project, "NONE-1.1")
    assert abandon(project.root, run_id)
    with pytest.raises(GraphError):
        write(project, run_id)
