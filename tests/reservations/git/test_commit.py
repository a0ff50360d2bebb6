"""`interlock commit`: exactly one's own paths, whatever others do in the same checkout."""

import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from interlock.reservations.git.commit import CommitAnswer, commit
from interlock.reservations.hooks import pre_edit
from interlock.reservations.leases import calls, commit_lock
from interlock.reservations.leases.commit_lock import at_work
from interlock.reservations.leases.runtime import Context, Runtime
from interlock.reservations.messages import negotiation, sending
from tests.reservations.git.checkout import Checkout
from tests.reservations.world import codes


def committed(checkout: Checkout, name: str, *paths: str, release: bool = False) -> CommitAnswer:
    return commit(checkout.agent(name), f"work of {name}", list(paths), release=release)


def test_own_paths_are_committed_and_what_others_staged_stays_staged(shared: Checkout) -> None:
    before = shared.index()
    answer = committed(shared, "bob")
    assert (answer["errors"], answer["paths"]) == ([], ["bob.py", "src/bob.py"])
    assert answer["commit"] == shared.head()
    assert shared.files_of() == {"bob.py", "src/bob.py"}
    after = shared.index()
    assert {path for path in before if before[path] != after[path]} == {"bob.py", "src/bob.py"}
    assert shared.must("ann", "status", "--porcelain").split("\n") == ["M  ann.py", " M src/ann.py"]


def test_commit_without_own_changes_names_them_and_reserves_what_nobody_holds(shared: Checkout) -> None:
    shared.write("forgotten.py", "x\n")
    shared.release("bob")
    (error,) = committed(shared, "bob")["errors"]
    assert (error["code"], error.get("conflict", {}).get("holder")) == ("RSV208", "ann")
    patterns = ["bob.py", "forgotten.py", "src/bob.py"]
    assert error.get("next") == {"tool": "reserve_files", "arguments": {"patterns": patterns}}
    shared.must("ann", "stash", "push", "-q", "--", "ann.py", "src/ann.py")
    assert codes(committed(shared, "bob", "ann.py")) == ["RSV208"], "it is not changed"


def test_new_files_and_deletions_are_taken_along(shared: Checkout) -> None:
    shared.write("new/a.py", "x\n")
    (shared.root / "src" / "bob.py").unlink()
    answer = committed(shared, "bob")
    assert answer["paths"] == ["bob.py", "new/a.py", "src/bob.py"]
    files = shared.must("bob", "ls-tree", "-r", "--name-only", "HEAD").split()
    assert files == ["ann.py", "bob.py", "new/a.py", "src/ann.py"]


def test_named_paths_alone_are_committed(shared: Checkout) -> None:
    answer = committed(shared, "bob", "src/bob.py")
    assert answer["paths"] == ["src/bob.py"]
    assert shared.must("bob", "diff", "--name-only").split() == ["bob.py", "src/ann.py"]


def test_named_path_of_another_is_refused_with_its_holder(shared: Checkout) -> None:
    before = shared.head()
    answer = committed(shared, "bob", "src")
    assert codes(answer) == ["RSV206"]
    assert answer["errors"][0].get("conflict", {}).get("holder") == "ann"
    assert shared.head() == before


@pytest.mark.parametrize(
    ("letters", "stages"),
    [("UD", "12"), ("AA", "23"), ("UU", "123")],
)
def test_path_with_conflicts_is_refused_until_they_are_settled(shared: Checkout, letters: str, stages: str) -> None:
    before, entry = shared.head(), shared.head("HEAD:bob.py")
    rows = [f"0 {'0' * 40}\tbob.py", *(f"100644 {entry} {stage}\tbob.py" for stage in stages)]
    shared.git("bob", "update-index", "--index-info", data="\n".join(rows).encode())
    assert f"{letters} bob.py" in shared.must("bob", "status", "--porcelain")
    for paths in ((), ("bob.py",)):
        answer = committed(shared, "bob", *paths)
        assert (codes(answer), answer["errors"][0]["found"]) == (["RSV208"], "bob.py")
    assert shared.head() == before
    shared.must("bob", "add", "bob.py")
    assert "bob.py" in committed(shared, "bob")["paths"]


def test_path_without_a_lease_is_refused_with_the_call_that_reserves_it(bare: Checkout) -> None:
    bare.write("bob.py", "two\n")
    answer = committed(bare, "bob", "bob.py")
    assert codes(answer) == ["RSV206"]
    assert answer["errors"][0].get("next") == {"tool": "reserve_files", "arguments": {"patterns": ["bob.py"]}}


def test_shared_lease_is_not_enough(bare: Checkout) -> None:
    bare.reserve("bob", "bob.py", exclusive=False)
    bare.write("bob.py", "two\n")
    assert codes(committed(bare, "bob", "bob.py")) == ["RSV206"]
    assert codes(committed(bare, "bob")) == ["RSV208"]


def test_path_that_is_nowhere_is_refused(shared: Checkout) -> None:
    assert codes(committed(shared, "bob", "src/bbo.py")) == ["RSV208"]


def test_leases_are_kept_unless_asked_and_released_where_nothing_else_is_changed(shared: Checkout) -> None:
    shared.reserve("bob", "wide/**")
    for path in ("wide/a", "wide/b"):
        shared.write(path, "x\n")
    assert committed(shared, "bob", "bob.py")["released"] == []
    answer = committed(shared, "bob", "wide/a", release=True)
    assert answer["released"] == []
    assert len(committed(shared, "bob", release=True)["released"]) == 2


def hook(checkout: Checkout, name: str, text: str) -> None:
    """Put a hook of the user's own in the place of ours."""
    path = checkout.root / ".git" / "hooks" / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_failing_hook_of_the_user_stops_the_commit_and_nothing_is_lost(shared: Checkout) -> None:
    hook(shared, "pre-commit", "echo 'lint: line 3' >&2; exit 1")
    shared.write("new/a.py", "x\n")
    index, head = shared.index(), shared.head()
    answer = committed(shared, "bob")
    assert codes(answer) == ["RSV208"]
    assert "lint: line 3" in answer.get("said", "")
    assert (shared.index(), shared.head()) == (index, head)
    assert shared.read("bob.py") == "bob.py two\n"
    assert shared.read("new/a.py") == "x\n"


def test_hook_of_the_user_sees_the_index_of_the_commit_and_may_change_its_files(shared: Checkout) -> None:
    hook(shared, "pre-commit", "git diff --cached --name-only '*.py' > seen; echo formatted >> bob.py; git add bob.py")
    answer = committed(shared, "bob")
    assert shared.read("seen").split() == ["bob.py", "src/bob.py"]
    assert answer["errors"] == []
    assert shared.must("bob", "show", "HEAD:bob.py").endswith("formatted")


def test_merge_under_way_is_refused_in_the_words_of_git(shared: Checkout) -> None:
    (shared.root / ".git" / "MERGE_HEAD").write_text(shared.head() + "\n")
    answer = committed(shared, "bob")
    assert codes(answer) == ["RSV208"]
    assert "partial commit during a merge" in answer["errors"][0]["found"]


def test_first_commit_and_detached_head_work(bare: Checkout) -> None:
    bare.must("bob", "switch", "-q", "--detach")
    bare.reserve("bob", "bob.py")
    bare.write("bob.py", "two\n")
    assert committed(bare, "bob")["commit"] == bare.head()
    bare.must("bob", "checkout", "-q", "--orphan", "fresh")
    bare.write("bob.py", "three\n")
    assert committed(bare, "bob")["paths"] == ["bob.py"]
    assert bare.must("bob", "ls-tree", "-r", "--name-only", "HEAD") == "bob.py"


@pytest.fixture
def fresh(tmp_path: Path) -> Checkout:
    """Make a repository without a commit."""
    (tmp_path / "fresh").mkdir()
    made = Checkout(tmp_path / "fresh")
    made.must("bob", "init", "-q")
    return made


def test_repository_without_any_commit_works(fresh: Checkout) -> None:
    fresh.must("bob", "config", "user.name", "bob")
    fresh.must("bob", "config", "user.email", "bob@example.org")
    fresh.write("a.py", "x\n")
    fresh.reserve("bob", "a.py")
    assert committed(fresh, "bob")["commit"] == fresh.head()


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("name", ["a\nb", "-dash", "[x]*", ":(top)x", "bad-\udcff"])
def test_odd_file_names_are_committed(checkout: Checkout, name: str) -> None:
    checkout.reserve("bob", "odd/**")
    checkout.write(f"odd/{name}", "x\n")
    assert committed(checkout, "bob")["paths"] == [f"odd/{name}"]


def test_two_agents_commit_at_once_and_both_commits_carry_their_own_paths(shared: Checkout) -> None:
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(partial(committed, shared), ("ann", "bob")))
    assert [answer["paths"] for answer in answers] == [["ann.py", "src/ann.py"], ["bob.py", "src/bob.py"]]
    for answer in answers:
        assert shared.files_of(str(answer["commit"])) == set(answer["paths"])


def test_held_index_is_waited_for(shared: Checkout) -> None:
    lock = shared.root / ".git" / "index.lock"
    lock.touch()
    runtime = shared.runtime
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        lock.unlink(missing_ok=True)

    object.__setattr__(runtime, "pause", pause)
    assert commit(Context(runtime, shared.caller("bob")), "x")["errors"] == []
    assert pauses


def while_waiting(runtime: Runtime, lock: Path, act: Callable[[], object]) -> None:
    """Let git's index be taken, and something happen as soon as that is waited for."""
    lock.touch()

    def pause(_seconds: float) -> None:
        if lock.exists():
            lock.unlink()
            act()

    object.__setattr__(runtime, "pause", pause)


@pytest.mark.long
@pytest.mark.parametrize(("held", "reflogs"), [(True, True), (False, True), (False, False)])
def test_commit_that_another_made_by_git_while_it_was_waited_for_is_not_taken_for_the_own_one(
    shared: Checkout, held: bool, reflogs: bool
) -> None:
    runtime = shared.runtime
    if not held:
        shared.release("ann")
    if not reflogs:
        shared.must("bob", "config", "core.logAllRefUpdates", "false")
        shutil.rmtree(shared.root / ".git" / "logs")
    while_waiting(
        runtime, shared.root / ".git" / "index.lock", lambda: shared.must("ann", "commit", "-qm", "a", "--", "ann.py")
    )
    answer = commit(Context(runtime, shared.caller("bob")), "work of bob")
    assert answer["errors"] == []
    assert (answer["commit"], answer["paths"]) == (shared.head(), ["bob.py", "src/bob.py"])
    assert shared.files_of("HEAD~1") == {"ann.py"}
    (event,) = shared.events("committed")
    assert (event["agent"], event["commit"], event["paths"]) == ("bob", shared.head(), ["bob.py", "src/bob.py"])


def test_commit_that_a_hook_amends_is_the_amended_one(shared: Checkout) -> None:
    hook(shared, "post-commit", '[ -n "$AGAIN" ] || AGAIN=1 git commit -q --amend -m amended')
    answer = committed(shared, "bob")
    assert (answer["commit"], answer["paths"]) == (shared.head(), ["bob.py", "src/bob.py"])


ASIDE = "git diff > ../aside; git checkout -q -- .; {during}; git apply ../aside"
"""What pre-commit and lint-staged do: work that is not staged is taken off the disk while the checks run."""


def test_unsaved_work_that_a_hook_set_aside_and_put_back_is_nobodys_surprise(shared: Checkout) -> None:
    shared.must("ann", "reset", "-q")
    hook(shared, "commit-msg", ASIDE.format(during="true"))
    answer = committed(shared, "bob", "bob.py")
    assert (answer["errors"], answer.get("disturbed")) == ([], None)
    assert shared.read("ann.py") == "ann.py two\n"
    assert shared.events("surprise_write") == []


def test_work_that_a_hook_took_away_comes_back_and_both_are_told(shared: Checkout) -> None:
    hook(shared, "commit-msg", "rm ann.py")
    answer = committed(shared, "bob", "bob.py")
    assert any("ann holds: ann.py. They were put back" in line for line in answer.get("disturbed", ()))
    assert shared.read("ann.py") == "ann.py two\n"
    assert [(row["path"], row["outcome"]) for row in shared.events("surprise_write")] == [("ann.py", "back")]
    messages = sending.fetch(shared.agent("ann"))["messages"]
    assert ["bob (interlock commit) changed what you hold: ann.py" in row["body"] for row in messages] == [True]


def test_edit_waits_while_hooks_of_a_commit_work_in_the_same_checkout_alone(shared: Checkout, tmp_path: Path) -> None:
    shared.must("bob", "worktree", "add", "-q", "--detach", str(tmp_path / "other"))
    hook(shared, "post-commit", "true")
    seen: list[str] = []
    runtime, common = shared.runtime, str(shared.root / ".git")
    roots = (str(shared.root), str(tmp_path / "other"))
    while_waiting(
        runtime,
        shared.root / ".git" / "index.lock",
        lambda: seen.extend(at_work(common, root, 0.0) for root in roots),
    )
    assert at_work(common, str(shared.root), 0.0) == ""
    assert commit(Context(runtime, shared.caller("bob")), "x")["errors"] == []
    assert seen == ["bob", ""]
    assert at_work(common, str(shared.root), 0.0) == ""


def edited(checkout: Checkout, name: str, path: str) -> int:
    call = {"cwd": str(checkout.root), "tool_name": "Edit", "tool_input": {"file_path": path}}
    return pre_edit.run([], json.dumps(call).encode(), {"INTERLOCK_AGENT_ID": name})


def test_edit_is_refused_while_a_commit_takes_long_and_passes_when_it_has_ended(
    shared: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commit_lock, "PATIENCE_SECONDS", 0.0)
    with commit_lock.alone(shared.runtime, str(shared.root / ".git")) as lock:
        assert lock is not None
        assert edited(shared, "ann", "ann.py") == 0
        commit_lock.announce(lock, "bob", str(shared.root))
        assert edited(shared, "ann", "ann.py") == 2
        said = capsys.readouterr().err
        assert "RSV212" in said
        assert "bob" in said
    assert edited(shared, "ann", "ann.py") == 0


def test_edit_waiting_for_a_commit_passes_as_soon_as_it_ends(shared: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    with commit_lock.alone(shared.runtime, str(shared.root / ".git")) as lock:
        assert lock is not None
        file = lock
        commit_lock.announce(file, "bob", str(shared.root))

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            os.truncate(file, 0)

        monkeypatch.setattr("time.sleep", sleep)
        assert edited(shared, "ann", "ann.py") == 0
    assert waits[0] == commit_lock.PAUSE_SECONDS


def test_own_journal_is_no_change_of_anybody_and_is_committed_when_it_is_named(bare: Checkout) -> None:
    bare.reserve("bob", "**")
    journal = "artifacts/interlock/events.jsonl"
    for path in (journal, "artifacts/other", "bob.py"):
        bare.write(path, "x\n")
    answer = committed(bare, "bob", ".")
    assert answer["paths"] == ["artifacts/other", "bob.py"]
    assert codes(committed(bare, "bob")) == ["RSV208"]
    assert committed(bare, "bob", journal)["paths"] == [journal]


def test_release_with_a_commit_hands_the_file_to_the_waiter_and_notifies_it(shared: Checkout) -> None:
    runtime = shared.runtime
    asked = negotiation.negotiate(Context(runtime, shared.caller("ann")), "bob.py", "needs it")
    assert asked["errors"] == []
    answer = committed(shared, "bob", "bob.py", release=True)
    assert len(answer["released"]) == 1
    assert "bob.py" in [row["pattern"] for row in calls.mine(Context(runtime, shared.caller("ann")))["reservations"]]
    messages = sending.fetch(Context(runtime, shared.caller("ann")))["messages"]
    assert [(row["topic"], "bob.py" in row["body"]) for row in messages] == [("granted", True)]


def test_lease_below_which_another_worktree_has_unsaved_work_is_not_released(shared: Checkout, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shared.must("bob", "worktree", "add", "-q", "--detach", str(other))
    (other / "bob.py").write_text("unsaved\n")
    answer = committed(shared, "bob", release=True)
    kept = [row["pattern"] for row in calls.mine(shared.agent("bob"))["reservations"]]
    assert (len(answer["released"]), kept) == (1, ["bob.py", "new/**"])
