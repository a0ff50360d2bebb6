"""Landing: nothing lands twice or unjudged, whoever is killed, in the way, or flaky."""

import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from interlock.graph import hold, queue_of, verify_journal
from interlock.graph.landing.land import conflict_of, land
from interlock.graph.landing.lander import Lander, Landing, Merge, Verdict
from interlock.graph.landing.repository import Repository
from interlock.graph.landing.work import Member, member_of
from tests import warm
from tests.child import git
from tests.graph.conftest import Project
from tests.graph.landing_project import FILES, approved_run, landing_project, lines_of, run_apart
from tests.graph.sealed_project import write

VICTIM = Path(__file__).parent / "landing_victim.py"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return landing_project(tmp_path / "project")


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_landing_that_is_killed_goes_on_and_lands_nothing_twice(project: Project, point: str) -> None:
    root = project.root
    runs = [run_apart(project, name, {f"src/{name}.txt": "x\n"}) for name in ("A-1", "B-1")]
    (only,) = land(root, runs[:1])
    assert (only.state, only.how) == ("landed", "run")
    assert warm.script(VICTIM, point, str(root), *runs).returncode == -signal.SIGKILL
    assert lines_of(root)[:-2] == (["B-1: Do B-1"] if point == "after" else [])
    again = land(root, runs)
    assert [(row.state, row.how) for row in again] == [
        ("landed", "before"),
        ("landed", "before" if point == "after" else "kept"),
    ]
    assert lines_of(root) == ["B-1: Do B-1", "A-1: Do A-1", "Start"]
    assert [entry.run for entry in project.entries("landed")] == [f"{run}/beside" for run in runs]
    assert git(root, "for-each-ref", "refs/interlock") == git(root, "status", "--porcelain") == ""
    assert (queue_of(root), verify_journal(root).verdict) == ([], "whole")


def test_two_landers_at_once_land_everything_once(project: Project) -> None:
    root = project.root
    runs = [run_apart(project, f"T-{number}", {f"src/t{number}.txt": "t\n"}) for number in range(4)]
    with ThreadPoolExecutor() as pool:
        begun = [pool.submit(warm.interlock, root, "land", *names) for names in (runs[:3], runs[1:])]
    assert [(each.result().returncode, each.result().stderr) for each in begun if each.result().returncode] == []
    assert sorted(lines_of(root)) == ["Start", *(f"T-{number}: Do T-{number}" for number in range(4))]
    assert git(root, "status", "--porcelain") == ""
    assert (queue_of(root), verify_journal(root).verdict) == ([], "whole")


def test_a_target_that_somebody_moves_meanwhile_is_judged_again(project: Project) -> None:
    root, heads = project.root, list[str]()
    member = _member(root, "RUN-1", "src/c.txt")

    def judge(merge: Merge) -> Verdict:
        heads.append(merge.head)
        if len(heads) == 1:
            git(root, "commit", "-q", "--allow-empty", "-m", "Of a person")
        return Verdict(ok=True)

    assert [row.state for row in Lander(Repository(root), judge).land([member])] == ["landed"]
    assert (len(heads), lines_of(root)) == (2, ["RUN-1", "Of a person", "Start"])


def _member(root: Path, name: str, path: str) -> Member:
    """Make a commit that writes a file, as the work of a run."""
    base = git(root, "rev-parse", "HEAD").strip()
    git(root, "checkout", "-q", "--detach")
    write(root, {path: f"{name}\n"})
    git(root, "add", "-A")
    git(root, "commit", "-qm", name)
    work = git(root, "rev-parse", "HEAD").strip()
    git(root, "checkout", "-q", "main")
    return Member(name, work, base, name)


def _landed(root: Path, members: Sequence[Member], verdicts: Sequence[Sequence[str]]) -> list[Landing]:
    """Land members with a judge that names these tests as failing, one judgement after another."""
    left = iter(verdicts)

    def judge(_merge: Merge) -> Verdict:
        failed = tuple(next(left))
        return Verdict(not failed, failed)

    found = [*Lander(Repository(root), judge, batch=8).land(members)]
    assert next(left, None) is None, "it was judged less often"
    return found


def test_a_failure_that_goes_away_is_flaky_and_said(project: Project) -> None:
    members = [_member(project.root, f"RUN-{number}", f"src/{number}.txt") for number in range(4)]
    (alone,) = _landed(project.root, members[:1], [["t::a"], []])
    assert (alone.state, alone.flaky) == ("landed", ("t::a",))
    # Of the red batch of three all land, so that its very tree has passed in the end.
    found = _landed(project.root, members[1:], [["t::b"], [], [], []])
    assert [(row.state, row.flaky) for row in found] == [("landed", ()), ("landed", ()), ("landed", ("t::b",))]


def test_a_failure_in_batch_and_alone_is_known_and_another_one_is_tried_again(project: Project) -> None:
    members = [_member(project.root, f"RUN-{number}", f"src/{number}.txt") for number in range(3)]
    # Who changed the file of the failing test is tried alone, after the others.
    found = _landed(project.root, members, [["src/0.txt::a"], [], ["src/0.txt::a"]])
    assert [(row.run_ids, row.state) for row in found] == [(("RUN-1", "RUN-2"), "landed"), (("RUN-0",), "red")]
    found = _landed(project.root, members[:1], [["src/0.txt::a"], ["src/0.txt::b"]])
    assert [(row.state, row.tests) for row in found] == [("red", ("src/0.txt::b",))]


def test_a_conflict_is_with_what_has_landed_alone(project: Project) -> None:
    first, second = (_member(project.root, name, "src/a.txt") for name in ("RUN-1", "RUN-2"))
    found = _landed(project.root, [first, second], [["t::a"], ["t::a"], []])
    # The first does not land, so that the second has nothing to conflict with.
    assert [(row.run_ids, row.state) for row in found] == [(("RUN-1",), "red"), (("RUN-2",), "landed")]
    (again,) = _landed(project.root, [first], [])
    assert (again.state, again.files) == ("conflict", ("src/a.txt",))


def test_of_a_run_that_began_elsewhere_its_own_work_lands_alone(project: Project) -> None:
    root = project.root
    git(root, "checkout", "-q", "-b", "feature")
    write(root, {"src/b.txt": "of a person\n"})
    git(root, "commit", "-qam", "Of a person")
    runs = [run_apart(project, "A-1", {"src/c.txt": "c\n"}), run_apart(project, "B-1", {"src/b.txt": "more\n"})]
    found = land(root, runs, target="main")
    assert [(row.state, row.how, row.files) for row in found] == [
        ("landed", "again", ()),
        ("conflict", "", ("src/b.txt",)),
    ]
    assert git(root, "log", "--format=%s", "main").splitlines() == ["A-1: Do A-1", "Start"]
    assert git(root, "diff", "--name-only", "main~1", "main") == "src/c.txt\n"
    assert [row.how for row in land(root, runs[:1], target="main")] == ["before"]


def test_the_builder_of_a_conflict_knows_both_sides_and_has_what_merges(project: Project) -> None:
    root = project.root
    run_id = run_apart(project, "A-1", {"src/a.txt": "mine\n", "src/c.txt": "c\n"})
    other = run_apart(project, "B-1", {"src/a.txt": "theirs\n", "src/b.txt": "more\n"})
    assert [row.state for row in land(root, [other])] == ["landed"]
    repository = Repository(root)
    member = member_of(root, run_id, repository)
    _, files = repository.merge(repository.tree_of(repository.head()), member.work, member.parent)
    conflict = conflict_of(repository, member, files)
    assert ("+mine" in conflict.note, "+theirs" in conflict.note) == (True, True)
    names = ("src/a.txt", "src/b.txt", "src/c.txt")
    assert [git(root, "cat-file", "blob", f"{conflict.files}:{name}") for name in names] == [
        "theirs\n",
        "more\n",
        "c\n",
    ]


def test_a_verdict_on_the_same_trees_is_kept_and_a_run_that_is_held_waits(project: Project) -> None:
    root = project.root
    runs = [run_apart(project, name, {f"src/{name}.txt": "x\n"}) for name in ("A-1", "B-1")]
    hold(root, runs[1], on=True)
    assert [row.held for row in queue_of(root)] == [False, True]
    git(root, "commit", "-q", "--allow-empty", "-m", "Of a person")
    assert [row.how for row in land(root, runs[:1])] == ["again"]
    git(root, "reset", "-q", "--hard", "HEAD^")
    assert [row.how for row in land(root, runs[:1])] == ["kept"]


def test_a_run_is_refused_where_another_branch_brought_its_own_journal(tmp_path: Path) -> None:
    """And the ways of docs/ci.md to commit the journal, while the work lies in the checkout, work."""
    tracked = {
        ".gitignore": "artifacts/*\n!artifacts/interlock/\nartifacts/interlock/*\n!**/events.jsonl\n.interlock/\n"
    }
    project = landing_project(tmp_path / "project", FILES | tracked)
    root, journal = project.root, "artifacts/interlock/events.jsonl"
    (root / "C-1.toml").write_text('task_id = "C-1"\ntask = "C"\ngates_required = ["GATE-TESTS"]\nscope = ["src/**"]\n')
    for task_id in ("A-1", "B-1"):  # main has no journal, and then one of before the run
        run = approved_run(project, task_id, {"src/a.txt": f"{task_id}\n", f"src/{task_id}.txt": "new\n"})
        assert f"next: `interlock land {run}`" in warm.interlock(root, "commit", run).stderr
        git(root, "add", "-A", "src")
        git(root, "switch", "-q", "-c", task_id, f"interlock/{run}")
        git(root, "add", journal)
        git(root, "commit", "-qm", "Journal")
        assert (git(root, "status", "--porcelain"), verify_journal(root).verdict) == ("?? C-1.toml\n", "whole")
        git(root, "switch", "-q", "main")
        for words in (("commit", run), ("land", run), ("explain", run), ("report", run), ("run", "C-1.toml")):
            said = warm.interlock(root, *words).stderr
            assert f"the journal of this checkout has 0 of the 8 lines of run {run}" in said
        git(root, "merge", "-q", task_id)
        assert [row.how for row in land(root, [run])] == ["before"]
        git(root, "commit", "-qam", "Landed")
