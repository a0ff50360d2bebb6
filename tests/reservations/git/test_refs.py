"""Git's hooks around refs: what moves a branch or takes changes away is refused, and everything else passes unseen."""

import sys
from pathlib import Path

import pytest

from interlock.reservations import place
from interlock.reservations.git import commands as asking
from interlock.reservations.messages import sending
from interlock.reservations.versions import watch
from tests.reservations.git.checkout import Checkout, make


@pytest.fixture
def branches(bare: Checkout) -> Checkout:
    """`theirs` changes ann.py, `ours` changes bob.py, and `main` has gone on with src/bob.py; ann holds ann.py."""
    bare.branch()
    bare.write("src/bob.py", "main\n")
    bare.must("bob", "commit", "-q", "-a", "-m", "main")
    bare.install()
    bare.reserve("ann", "ann.py")
    return bare


def test_cherry_pick_that_was_refused_is_taken_back_by_its_abort(branches: Checkout) -> None:
    before = branches.head()
    assert branches.git("bob", "cherry-pick", "theirs").status != 0
    branches.must("bob", "cherry-pick", "--abort")
    assert (branches.head(), branches.must("bob", "status", "--porcelain")) == (before, "")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("merge --no-commit", "this merge would change"),
        ("pull -q --no-rebase --no-edit .", "this merge would change"),
        ("rebase -q", "this rebase rewrites"),
    ],
)
def test_what_changes_a_held_path_is_refused_before_files_change(branches: Checkout, command: str, words: str) -> None:
    before = branches.head()
    done = branches.git("bob", *command.split(), "theirs")
    assert (done.status != 0, words in done.err) == (True, True)
    assert (branches.head(), branches.read("ann.py")) == (before, "ann.py one\n")
    assert branches.must("bob", "status", "--porcelain") == ""
    branches.must("bob", *command.split(), "ours")


def test_rebase_under_way_can_always_be_taken_back(branches: Checkout) -> None:
    branches.release("ann")
    branches.write("ann.py", "other\n")
    branches.must("bob", "commit", "-q", "-a", "-m", "other")
    before = branches.head()
    assert branches.git("bob", "rebase", "-q", "theirs").status != 0
    branches.reserve("ann", "ann.py")
    branches.must("bob", "rebase", "--abort")
    assert branches.head() == before


def test_stash_of_own_paths_goes_and_comes_back(branches: Checkout) -> None:
    for path in ("ann.py", "bob.py"):
        branches.write(path, "unsaved\n")
    assert "stash push -- PATHS" in branches.git("bob", "stash").err
    done = branches.git("bob", "stash", "push", "-q", "--", "bob.py")
    assert (done.status, done.err) == (0, "")
    assert branches.read("ann.py") == "unsaved\n"
    branches.must("bob", "stash", "pop", "-q")
    assert branches.read("bob.py") == "unsaved\n"


@pytest.mark.parametrize(
    ("command", "notified"),
    [("cherry-pick theirs", True), ("switch -q --detach theirs", True), ("reset -q --soft theirs", False)],
)
def test_holder_is_told_of_what_git_wrote_before_a_refusal(branches: Checkout, command: str, notified: bool) -> None:
    watch.look_now(branches.agent("ann"), place.find(str(branches.root)))
    before = branches.head()
    done = branches.git("bob", *command.split())
    assert (done.status != 0, branches.head()) == (True, before)
    assert ("Both versions are kept" in done.err) == notified
    rows = sending.fetch(branches.agent("ann"))["messages"]
    found = [("bob" in row["body"], "ann.py" in row["body"]) for row in rows if "of the index" not in row["body"]]
    assert found == ([(True, True)] if notified else [])


@pytest.mark.long
def test_fetch_push_tag_notes_and_other_branches_pass_without_a_word(branches: Checkout, tmp_path: Path) -> None:
    branches.must("bob", "init", "-q", "--bare", str(tmp_path / "remote.git"))
    branches.must("bob", "remote", "add", "origin", str(tmp_path / "remote.git"))
    for line in (
        "push -q origin main theirs",
        "fetch -q origin",
        "tag v1 theirs",
        "notes add -m x",
        "branch free theirs",
        "branch -f free ours",
        "branch -D -q free",
        "fetch -q origin theirs:copied",
        "switch -q -c fresh",
        "gc -q",
    ):
        done = branches.git("bob", *line.split())
        assert (line, done.status, done.err) == (line, 0, "")


def test_new_worktree_can_be_made_at_any_commit(branches: Checkout, tmp_path: Path) -> None:
    for number, target in enumerate(("theirs", "--detach")):
        done = branches.git("bob", "worktree", "add", "-q", str(tmp_path / f"w{number}"), target)
        assert (done.status, done.err) == (0, "")


def test_deletion_of_the_checked_out_branch_is_refused(branches: Checkout) -> None:
    assert branches.git("bob", "update-ref", "-d", "refs/heads/main").status != 0
    assert branches.head("main")


def test_dead_store_stops_moves_of_the_branch_but_not_tags(branches: Checkout) -> None:
    (branches.root / ".git" / "interlock" / "reservations.sqlite").write_bytes(b"garbage" * 1000)
    done = branches.git("bob", "commit", "--no-verify", "--allow-empty", "-m", "x")
    assert (done.status != 0, "RSV902" in done.err, "fix:" in done.err) == (True, True, True)
    branches.must("bob", "tag", "v1")


def counted(checkout: Checkout) -> Path:
    """Install git's hooks with a program that notes each start; return its notes."""
    notes, program = checkout.root.parent / "notes", checkout.root.parent / "noted"
    notes.touch()
    program.write_text(f'#!/bin/sh\necho "$*" >> {notes}\nexec {sys.executable} -P -m interlock "$@"\n')
    program.chmod(0o755)
    checkout.install([str(program)])
    return notes


def picks(checkout: Checkout, number: int) -> None:
    """Make a branch with some commits beside `main`, and check it out."""
    checkout.must("bob", "switch", "-q", "-c", "topic")
    for count in range(number):
        checkout.write("src/bob.py", f"{count}\n")
        checkout.must("bob", "commit", "-q", "-a", "-m", f"pick {count}")
    checkout.must("bob", "switch", "-q", "main")
    checkout.write("bob.py", "main\n")
    checkout.must("bob", "commit", "-q", "-a", "-m", "main")
    checkout.must("bob", "switch", "-q", "topic")


def test_no_program_is_started_where_nobody_ever_reserved_anything(bare: Checkout) -> None:
    picks(bare, 2)
    notes = counted(bare)
    bare.must("bob", "rebase", "main")
    bare.must("bob", "commit", "-q", "--allow-empty", "-m", "x")
    bare.must("bob", "worktree", "add", "-q", "../tree")
    bare.must("bob", "commit", "-q", "--allow-empty", "-m", "x", cwd=bare.root.parent / "tree")
    assert notes.read_text() == ""


def test_a_store_further_up_or_in_a_project_that_is_named_is_asked(bare: Checkout) -> None:
    notes = counted(bare)
    for store in ("../.interlock", "../.git/interlock"):
        path = bare.root / store / "reservations.sqlite"
        path.parent.mkdir(parents=True)
        path.touch()
        bare.git("bob", "commit", "-q", "--allow-empty", "-m", "x")
        assert "hook pre-commit" in notes.read_text()
        path.unlink()
        notes.write_text("")
    bare.run("bob", "git", "commit", "-q", "--allow-empty", "-m", "x", env={"INTERLOCK_PROJECT": str(bare.root)})
    assert "hook pre-commit" in notes.read_text()


def test_hooks_can_be_turned_off_by_a_person(branches: Checkout) -> None:
    branches.write("ann.py", "x\n")
    done = branches.run("bob", "git", "commit", "-q", "-a", "-m", "x", env={"INTERLOCK_HOOKS": "off"})
    assert done.status == 0


def test_questions_to_git_see_this_repository_alone(branches: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "0")
    branches.write("new file.py", "x\n")
    branches.write("ann.py", "x\n")
    root = str(branches.root)
    assert sorted(asking.changed(root)) == ["ann.py", "new file.py"]
    wanted = {"ann.py": True, "src/**": False, "**": True, "*.py": True}
    assert asking.dirty(root, [*wanted]) == wanted


def test_dirtiness_is_unknown_outside_git_and_counts_from_a_root_below_top(branches: Checkout, tmp_path: Path) -> None:
    assert asking.dirty(str(tmp_path), ["a"]) == {"a": None}
    branches.write("src/ann.py", "x\n")
    assert asking.dirty(str(branches.root / "src"), ["ann.py", "bob.py"]) == {"ann.py": True, "bob.py": False}


def test_project_of_the_environment_does_not_reach_into_other_repositories(branches: Checkout, tmp_path: Path) -> None:
    other = make(tmp_path / "other")
    other.install()
    other.write("ann.py", "two\n")
    named = {"INTERLOCK_PROJECT": str(branches.root)}
    done = other.run("bob", "git", "commit", "-q", "-a", "-m", "x", env=named)
    assert (done.status, done.err) == (0, "")
    branches.write("ann.py", "two\n")
    done = branches.run("bob", "git", "commit", "-q", "-a", "-m", "x", env=named)
    assert (done.status, "held by ann" in done.err) == (1, True)


@pytest.mark.parametrize("module", ["hooks.git_hook", "hooks.reference_transaction", "guard.judge"])
def test_hook_imports_nothing_slow(module: str, bare: Checkout) -> None:
    slow = ("click", "pydantic", "langgraph", "mcp", "pathlib", "subprocess", "tomllib", "hashlib", "shlex", "asyncio")
    code = f"import sys, interlock.reservations.{module}; print([n for n in {slow} if n in sys.modules])"
    done = bare.run("bob", sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path}; {code}")
    assert done.out.strip() == "[]", done
