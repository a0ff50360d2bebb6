"""The index, the stash and HEAD beside others who hold files."""

import pytest

from interlock.reservations.git.commit import commit
from interlock.reservations.leases import calls
from interlock.reservations.messages.negotiation import negotiate
from interlock.reservations.versions import repository
from tests.child import git
from tests.reservations.versions.sharing import WORK, Sharing

UNSTAGED = {
    "unstaged": "git reset -q",
    "taken out": "git rm -q --cached ann.py",
    "staged anew": "echo x > ann.py; git add -A",
    "all read anew": "git read-tree HEAD",
}


def index(sharing: Sharing) -> dict[str, str]:
    rows = git(sharing.root, "ls-files", "-s").splitlines()
    return {path: entry for row in rows for entry, _, path in (row.partition("\t"),)}


@pytest.mark.parametrize("line", UNSTAGED.values(), ids=UNSTAGED)
def test_entries_of_held_paths_go_back_and_what_the_other_staged_stays(sharing: Sharing, line: str) -> None:
    sharing.hold("ann.py")
    sharing.shell("git add ann.py", by="ann")
    staged = index(sharing)["ann.py"]
    said = sharing.shell(f"{line}; echo own > bob.py; git add bob.py")
    assert any("changed entries of the index that ann holds" in each for each in said)
    assert index(sharing)["ann.py"] == staged
    assert git(sharing.root, "show", ":bob.py") == "own\n"
    assert sharing.read("ann.py") == WORK
    assert any("were put back: ann.py" in row.body for row in sharing.told("ann"))


def test_what_the_holder_staged_is_staged_after_a_switch_of_the_branch(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.shell("git add ann.py", by="ann")
    staged = index(sharing)["ann.py"]
    sharing.shell("git switch -q -f -c other")
    sharing.shell("git reset -q --hard HEAD")
    assert (index(sharing)["ann.py"], sharing.read("ann.py")) == (staged, WORK)


def test_what_others_stage_with_a_commit_of_their_own_is_taken_out_again(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.shell("git add ann.py && echo more >> ann.py", by="ann")
    sharing.shell("git reset -q", by="ann")
    said = sharing.shell("echo own > bob.py; git add -A; git commit -qm own -- bob.py")
    assert any("changed entries of the index that ann holds, and were put back" in each for each in said)
    assert git(sharing.root, "diff", "--cached", "--name-only") == ""
    assert git(sharing.root, "show", "HEAD:bob.py") == "own\n"


def test_entries_of_a_holder_without_hooks_stay(sharing: Sharing) -> None:
    assert calls.reserve(sharing.context("pat"), ["ann.py"])["errors"] == []
    sharing.shell("true")
    sharing.shell("git rm -q --cached ann.py")
    assert "ann.py" not in index(sharing)


def test_a_commit_that_releases_leaves_the_index_as_it_made_it_for_the_next_holder(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.shell("git add ann.py && echo more >> ann.py", by="ann")
    sharing.shell("true")
    negotiate(sharing.context("bob"), "ann.py", "needed")
    sharing.before("ann", "commits")
    made = commit(sharing.context("ann"), "mine", release=True)
    assert (made["errors"], len(made["released"])) == ([], 1)
    assert "put back" not in " ".join(sharing.after("ann", "commits"))
    assert git(sharing.root, "status", "--porcelain") == ""


def test_what_the_holder_stages_stays(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.shell("git add ann.py", by="ann")
    sharing.shell("git reset -q", by="ann")
    assert git(sharing.root, "diff", "--cached", "--name-only") == ""
    assert sharing.told("ann") == []


@pytest.mark.parametrize("drop", ["git stash drop", "git stash clear", "git stash pop"])
def test_an_entry_of_the_stash_that_another_agent_made_is_stored_again(sharing: Sharing, drop: str) -> None:
    sharing.hold("src/ann.py")
    sharing.shell("echo set aside > ann.py; git stash push -q -m mine ann.py", by="ann")
    made = [*repository.stash_entries(f"{sharing.root}/.git")]
    said = sharing.shell(drop)
    assert [*repository.stash_entries(f"{sharing.root}/.git")] == made
    assert any("was stored again: On main: mine" in line for line in said)
    assert any("was stored again" in row.body for row in sharing.told("ann"))


def test_an_entry_has_its_owner_though_nobody_holds_anything_any_more(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.shell("echo set aside > ann.py; git stash push -q -m mine ann.py", by="ann")
    made = [*repository.stash_entries(f"{sharing.root}/.git")]
    calls.release_all(sharing.context("ann"))
    sharing.shell("true")
    sharing.shell("git stash drop -q")
    assert [*repository.stash_entries(f"{sharing.root}/.git")] == made
    assert any("was stored again" in row.body for row in sharing.told("ann"))
    sharing.shell("git stash drop -q", by="ann")
    assert repository.stash_entries(f"{sharing.root}/.git") == {}


def test_an_entry_is_stored_again_though_a_command_of_its_owner_runs_all_the_while(sharing: Sharing) -> None:
    sharing.hold("src/ann.py")
    sharing.shell("echo set aside > ann.py; git stash push -q -m mine ann.py", by="ann")
    made = [*repository.stash_entries(f"{sharing.root}/.git")]
    sharing.before("ann", "tests")
    sharing.shell("git stash drop")
    assert [*repository.stash_entries(f"{sharing.root}/.git")] == made
    assert any("was stored again" in row.body for row in sharing.told("ann"))
    sharing.shell("git stash drop", by="ann")
    assert repository.stash_entries(f"{sharing.root}/.git") == {}


def test_who_made_an_entry_may_take_it(sharing: Sharing) -> None:
    sharing.hold("src/ann.py")
    sharing.shell("echo set aside > ann.py; git stash push -q ann.py", by="ann")
    sharing.shell("git stash pop -q", by="ann")
    assert repository.stash_entries(f"{sharing.root}/.git") == {}
    sharing.shell("true")
    assert repository.stash_entries(f"{sharing.root}/.git") == {}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("git switch -q -c other", "is other now; it was main"),
        ("git commit -q -m swept -- src/ann.py", "changes these there: src/ann.py"),
    ],
)
def test_holders_are_told_of_a_head_that_moved_under_them(sharing: Sharing, line: str, said: str) -> None:
    sharing.hold("src/ann.py")
    sharing.shell(line)
    assert any(said in row.body for row in sharing.told("ann"))


def test_a_commit_goes_to_the_branch_on_which_its_files_were_reserved(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.shell("git switch -q -c other")
    refused = commit(sharing.context("ann"), "mine")
    assert "on other now, and ann.py was reserved on main" in refused["errors"][0]["message"]
    made = commit(sharing.context("ann"), "mine", on="other")
    assert made["errors"] == []
    assert made.get("branch") == "other"


def test_who_switches_the_branch_itself_commits_there(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.shell("git switch -q -c other", by="ann")
    assert commit(sharing.context("ann"), "mine")["errors"] == []


def test_a_commit_of_own_paths_tells_nobody(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.shell("echo own > bob.py; git commit -q -m own -- bob.py")
    assert sharing.told("ann") == []
