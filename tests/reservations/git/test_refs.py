"""Git's hooks around refs: what moves a branch or takes changes away is refused, and everything else passes unseen."""

import sys
from pathlib import Path

import pytest

from interlock.reservations.git import commands as asking
from interlock.reservations.messages import sending
from tests.reservations.git.checkout import Checkout, make


@pytest.fixture
def branches(bare: Checkout) -> Checkout:
    """`theirs` changes ann.py, `ours` changes bob.py, and `main` has gone on with src/bob.py; ann holds ann.py."""
    for name, path in (("theirs", "ann.py"), ("ours", "bob.py")):
        bare.must("bob", "switch", "-q", "-c", name, "main")
        bare.write(path, f"{name}\n")
        bare.must("bob", "commit", "-q", "-a", "-m", name)
    bare.must("bob", "switch", "-q", "main")
    bare.write("src/bob.py", "main\n")
    bare.must("bob", "commit", "-q", "-a", "-m", "main")
    bare.install()
    bare.reserve("ann", "ann.py")
    return bare


def test_commit_past_the_pre_commit_hook_is_refused(branches: Checkout) -> None:
    branches.write("ann.py", "x\n")
    before = branches.head()
    done = branches.git("bob", "commit", "--no-verify", "-a", "-m", "x")
    assert done.status != 0
    assert "ann.py is held by ann" in done.err
    assert branches.head() == before


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    "command",
    [
        ("update-ref", "HEAD", "theirs"),
        ("update-ref", "refs/heads/main", "theirs"),
        ("reset", "-q", "--soft", "theirs"),
        ("reset", "-q", "--mixed", "theirs"),
        ("cherry-pick", "theirs"),
        ("revert", "--no-edit", "HEAD", "theirs"),
    ],
    ids=" ".join,
)
def test_branch_is_not_moved_where_a_held_path_changes(branches: Checkout, command: tuple[str, ...]) -> None:
    before = branches.head()
    done = branches.git("bob", *command)
    assert done.status != 0
    if command[0] != "revert":
        assert branches.head() == before
        assert "ann.py is held by ann" in done.err


def test_cherry_pick_that_was_refused_is_taken_back_by_its_abort(branches: Checkout) -> None:
    before = branches.head()
    assert branches.git("bob", "cherry-pick", "theirs").status != 0
    branches.must("bob", "cherry-pick", "--abort")
    assert (branches.head(), branches.must("bob", "status", "--porcelain")) == (before, "")


def test_merge_is_refused_before_the_working_tree_changes(branches: Checkout) -> None:
    for command in (("merge", "-q", "--no-edit", "theirs"), ("merge", "--no-commit", "theirs")):
        done = branches.git("bob", *command)
        assert (done.status != 0, "this merge would change" in done.err) == (True, True)
        assert branches.read("ann.py") == "ann.py one\n"
        assert branches.must("bob", "status", "--porcelain") == ""


def test_fast_forward_is_refused_before_the_working_tree_changes(branches: Checkout) -> None:
    branches.must("bob", "switch", "-q", "-c", "behind", "main~1")
    assert branches.git("bob", "merge", "--ff-only", "theirs").status != 0
    assert branches.read("ann.py") == "ann.py one\n"
    branches.must("bob", "merge", "-q", "--ff-only", "ours")


def test_pull_is_refused_before_the_working_tree_changes(branches: Checkout) -> None:
    done = branches.git("bob", "pull", "-q", "--no-rebase", "--no-edit", ".", "theirs")
    assert done.status != 0
    assert branches.read("ann.py") == "ann.py one\n"
    branches.must("bob", "pull", "-q", "--no-rebase", "--no-edit", ".", "ours")


def test_rebase_is_refused_before_it_begins(branches: Checkout) -> None:
    before = branches.head()
    done = branches.git("bob", "rebase", "-q", "theirs")
    assert (done.status != 0, "this rebase rewrites" in done.err) == (True, True)
    assert (branches.head(), branches.read("ann.py")) == (before, "ann.py one\n")
    branches.must("bob", "rebase", "-q", "ours")


def test_rebase_with_autostash_gives_foreign_work_back_when_refused(branches: Checkout) -> None:
    branches.write("ann.py", "unsaved\n")
    assert branches.git("bob", "rebase", "-q", "--autostash", "ours").status != 0
    assert branches.read("ann.py") == "unsaved\n"


def test_rebase_under_way_can_always_be_taken_back(branches: Checkout) -> None:
    branches.release("ann")
    branches.write("ann.py", "other\n")
    branches.must("bob", "commit", "-q", "-a", "-m", "other")
    before = branches.head()
    assert branches.git("bob", "rebase", "-q", "theirs").status != 0
    branches.reserve("ann", "ann.py")
    branches.must("bob", "rebase", "--abort")
    assert branches.head() == before


def test_am_is_refused_before_the_patch_is_applied(branches: Checkout, tmp_path: Path) -> None:
    patches = {name: tmp_path / f"{name}.patch" for name in ("theirs", "ours")}
    for name, path in patches.items():
        path.write_text(branches.must("bob", "format-patch", "-1", "--stdout", name) + "\n")
    done = branches.git("bob", "am", "-q", str(patches["theirs"]))
    assert (done.status != 0, "this patch changes" in done.err) == (True, True)
    assert branches.read("ann.py") == "ann.py one\n"
    branches.must("bob", "am", "--abort")
    branches.must("bob", "am", "-q", str(patches["ours"]))


def test_stash_that_would_take_foreign_changes_away_is_refused_and_they_stay(branches: Checkout) -> None:
    for path in ("ann.py", "bob.py"):
        branches.write(path, "unsaved\n")
    done = branches.git("bob", "stash")
    assert (done.status != 0, "stash push -- PATHS" in done.err) == (True, True)
    assert (branches.read("ann.py"), branches.read("bob.py")) == ("unsaved\n", "unsaved\n")
    assert branches.must("bob", "stash", "list") == ""


def test_stash_of_new_foreign_files_is_refused(branches: Checkout) -> None:
    branches.reserve("ann", "new/**")
    branches.write("new/a.py", "x\n")
    assert branches.git("bob", "stash", "-u").status != 0
    assert branches.read("new/a.py") == "x\n"


def test_stash_of_own_paths_goes_and_comes_back(branches: Checkout) -> None:
    for path in ("ann.py", "bob.py"):
        branches.write(path, "unsaved\n")
    done = branches.git("bob", "stash", "push", "-q", "--", "bob.py")
    assert (done.status, done.err) == (0, "")
    assert branches.read("ann.py") == "unsaved\n"
    branches.must("bob", "stash", "pop", "-q")
    assert branches.read("bob.py") == "unsaved\n"


def test_reset_hard_to_another_commit_is_noticed_too_late_for_unsaved_work_but_the_branch_stays(
    branches: Checkout,
) -> None:
    before = branches.head()
    branches.write("ann.py", "unsaved\n")
    assert branches.git("bob", "reset", "-q", "--hard", "theirs").status != 0
    assert branches.head() == before
    assert branches.read("ann.py") != "unsaved\n"


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("reset -q --hard theirs", True), ("cherry-pick theirs", True), ("switch -q --detach theirs", True),
        ("reset -q --soft theirs", False), ("reset -q --mixed theirs", False), ("update-ref HEAD theirs", False),
        ("merge -q theirs", False),
    ],
)  # fmt: skip
def test_holder_is_told_of_what_git_had_written_before_it_was_refused(
    branches: Checkout, command: str, told: bool
) -> None:
    done = branches.git("bob", *command.split())
    assert done.status != 0
    assert ("written already: ann.py" in done.err) == told
    found = sending.fetch(branches.agent("ann"))["messages"]
    assert [("bob" in row["body"], "ann.py" in row["body"]) for row in found] == ([(True, True)] if told else [])


def test_no_handle_for_reset_hard_switch_clean_and_restore(branches: Checkout) -> None:
    branches.must("bob", "switch", "-q", "theirs")
    branches.must("bob", "switch", "-q", "main")
    for command in (("reset", "-q", "--hard"), ("restore", "."), ("checkout", "-q", "--", "."), ("clean", "-qf")):
        branches.write("ann.py", "unsaved\n")
        branches.reserve("ann", "new.py")
        branches.write("new.py", "unsaved\n")
        branches.must("bob", *command)
        lost = "new.py" if command[0] == "clean" else "ann.py"
        assert not (branches.root / lost).exists() or branches.read(lost) != "unsaved\n"


def test_stash_pop_has_no_handle(branches: Checkout) -> None:
    branches.write("ann.py", "stashed\n")
    branches.must("ann", "stash", "push", "-q", "--", "ann.py")
    branches.must("bob", "stash", "pop", "-q")
    assert branches.read("ann.py") == "stashed\n"


@pytest.mark.long
def test_fetch_push_tag_notes_and_other_branches_pass_without_a_word(branches: Checkout, tmp_path: Path) -> None:
    branches.must("bob", "init", "-q", "--bare", str(tmp_path / "remote.git"))
    branches.must("bob", "remote", "add", "origin", str(tmp_path / "remote.git"))
    for command in (
        ("push", "-q", "origin", "main", "theirs"), ("fetch", "-q", "origin"), ("tag", "v1", "theirs"),
        ("notes", "add", "-m", "x"), ("branch", "free", "theirs"), ("branch", "-f", "free", "ours"),
        ("branch", "-D", "-q", "free"), ("update-ref", "refs/heads/made", "theirs"),
        ("fetch", "-q", "origin", "theirs:copied"), ("switch", "-q", "-c", "fresh"), ("gc", "-q"),
    ):  # fmt: skip
        done = branches.git("bob", *command)
        assert (command, done.status, done.err) == (command, 0, "")


def test_new_worktree_can_be_made_at_any_commit(branches: Checkout, tmp_path: Path) -> None:
    for number, target in enumerate(("theirs", "--detach")):
        done = branches.git("bob", "worktree", "add", "-q", str(tmp_path / f"w{number}"), target)
        assert (done.status, done.err) == (0, "")


def test_branch_of_another_worktree_is_checked_out_too(branches: Checkout, tmp_path: Path) -> None:
    branches.must("bob", "worktree", "add", "-q", str(tmp_path / "other"), "ours")
    assert branches.git("bob", "update-ref", "refs/heads/ours", "theirs").status != 0


def test_deletion_of_the_checked_out_branch_is_refused(branches: Checkout) -> None:
    assert branches.git("bob", "update-ref", "-d", "refs/heads/main").status != 0
    assert branches.head("main")


def test_holder_does_as_it_likes(branches: Checkout) -> None:
    branches.write("ann.py", "x\n")
    branches.must("ann", "stash", "-q")
    branches.must("ann", "merge", "-q", "--no-edit", "theirs")
    branches.must("ann", "reset", "-q", "--hard", "HEAD~1")


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


@pytest.mark.long
def test_a_rebase_starts_one_program_for_each_pick_and_three_around_them(bare: Checkout) -> None:
    picks(bare, 6)
    notes = counted(bare)
    bare.reserve("ann", "ann.py")
    bare.must("bob", "rebase", "main")
    assert notes.read_text().splitlines() == ["hook pre-rebase main", *["hook reference-transaction prepared"] * 8]


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
    assert asking.dirty(root, ["ann.py", "src/**", "**", "*.py"]) == {
        "ann.py": True, "src/**": False, "**": True, "*.py": True
    }  # fmt: skip


def test_dirtiness_is_not_known_outside_of_git_and_counts_from_a_root_below_the_top(
    branches: Checkout, tmp_path: Path
) -> None:
    assert asking.dirty(str(tmp_path), ["a"]) == {"a": None}
    branches.write("src/ann.py", "x\n")
    assert asking.dirty(str(branches.root / "src"), ["ann.py", "bob.py"]) == {"ann.py": True, "bob.py": False}


def test_project_named_by_the_environment_does_not_reach_into_other_repositories(
    branches: Checkout, tmp_path: Path
) -> None:
    other = make(tmp_path / "other")
    other.install()
    other.write("ann.py", "two\n")
    named = {"INTERLOCK_PROJECT": str(branches.root)}
    done = other.run("bob", "git", "commit", "-q", "-a", "-m", "x", env=named)
    assert (done.status, done.err) == (0, "")
    branches.write("ann.py", "two\n")
    done = branches.run("bob", "git", "commit", "-q", "-a", "-m", "x", env=named)
    assert (done.status, "held by ann" in done.err) == (1, True)


@pytest.mark.parametrize(
    "module",
    ["hooks.git_hook", "hooks.reference_transaction", "guard.walk"],
)
def test_hook_imports_nothing_slow(module: str, bare: Checkout) -> None:
    slow = ("click", "pydantic", "langgraph", "mcp", "pathlib", "subprocess", "tomllib", "hashlib", "shlex", "asyncio")
    code = f"import sys, interlock.reservations.{module}; print([n for n in {slow} if n in sys.modules])"
    done = bare.run("bob", sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path}; {code}")
    assert done.out.strip() == "[]", done
