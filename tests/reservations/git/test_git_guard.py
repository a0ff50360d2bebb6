"""The guard of shell commands: what is refused before it runs while ann holds files, and what passes."""

import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from interlock.reservations.errors import StoreError
from interlock.reservations.guard.check import check_command
from tests.reservations.git.checkout import Checkout, copied, make
from tests.table import each_row

LISTS = Path(__file__).parents[3] / "benchmarks" / "guard"


def listed(path: Path) -> list[str]:
    """The commands of a list."""
    return [row.strip("\n") for row in path.read_text().split("\n", 1)[1].split("\n%\n")]


REFUSED = listed(LISTS / "refused.txt")
PERSONAL = ("interlock hook", "interlock answer", "interlock ui")
"""What no agent runs, whoever holds anything."""


@pytest.fixture(scope="module")
def unrelated(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout with git's hooks in which ann holds what no line of the list is about."""
    checkout = make(tmp_path_factory.mktemp("unrelated"))
    checkout.reserve("ann", "services/billing/**", "legacy/report.py")
    checkout.must("bob", "update-ref", "refs/remotes/origin/main", "main")
    checkout.must("bob", "branch", "feature")
    checkout.install()
    return checkout


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout for questions that change nothing in it."""
    return arranged(make(tmp_path_factory.mktemp("guard")))


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The same, in which ann has changed what she holds."""
    checkout = arranged(make(tmp_path_factory.mktemp("changed")))
    for path in ("ann.py", "src/ann.py"):
        checkout.write(path, "unsaved\n")
    return checkout


@pytest.fixture
def guarded(unchanged: Checkout, tmp_path: Path) -> Checkout:
    """A copy of it, to be changed."""
    return copied(unchanged, tmp_path)


def arranged(checkout: Checkout) -> Checkout:
    """`theirs` changes ann.py, `ours` changes bob.py, a stash holds ann.py; patches of both lie outside."""
    checkout.branch()
    for name in ("theirs", "ours"):
        patch = checkout.must("bob", "format-patch", "-1", "--stdout", name) + "\n"
        (checkout.root.parent / f"{name}.patch").write_text(patch)
    checkout.write("ann.py", "stashed\n")
    checkout.must("bob", "stash", "-q")
    for folder in ("docs", "build", "../other"):
        (checkout.root / folder).mkdir()
    checkout.reserve("ann", "ann.py", "src/ann.py")
    return checkout


@each_row("command", REFUSED)
def test_what_nothing_undoes_is_refused(changed: Checkout, command: str) -> None:
    text = changed.guard("bob", command)
    assert text is not None
    assert any(code in text for code in ("RSV207", "RSV215"))
    assert "fix:" in text


@each_row("command", [*listed(LISTS / "honest.txt"), *listed(LISTS / "more_honest.txt")])
def test_honest_line_passes_while_others_hold_something_else(unrelated: Checkout, command: str) -> None:
    assert unrelated.guard("bob", command) is None


@each_row("command", listed(Path(__file__).with_name("passes.txt")))
def test_what_is_undone_and_everything_else_passes(unchanged: Checkout, command: str) -> None:
    assert unchanged.guard("bob", command) is None


def test_all_but_what_takes_anothers_place_passes_without_leases_of_others(changed: Checkout) -> None:
    refused = {command for command in REFUSED if changed.guard("ann", command) is not None}
    assert all(any(said in command for said in PERSONAL) for command in refused)
    assert len(refused) == len(PERSONAL) + 1


# -- git's own hooks, linked worktrees, other repositories ----------------------------------------------------------


HOOKED = (
    "git merge theirs",
    "git rebase ours",
    "git pull",
    "git am ../ours.patch",
    "git stash",
    "git commit -am x",
    "git fetch && git merge FETCH_HEAD",
)


def test_what_hooks_of_git_judge_is_left_to_them_where_they_are_installed(guarded: Checkout) -> None:
    guarded.write("ann.py", "unsaved\n")
    assert [line for line in HOOKED if guarded.guard("bob", line) is None] == []
    own = ("git commit -m x", "git commit -m x -- bob.py", "git commit -m x bob.py", "git stash push -- bob.py")
    assert [line for line in own if guarded.guard("bob", line) is not None] == []
    guarded.must("ann", "add", "ann.py")
    assert guarded.guard("bob", "git commit -m '/api: x'") is not None
    guarded.install()
    assert [line for line in HOOKED if guarded.guard("bob", line) is not None] == []
    for line in ("git -c core.hooksPath=x pull", "git commit --no-verify -am x", "GIT_CONFIG_COUNT=0 git pull"):
        assert guarded.guard("bob", line) is not None, line
    guarded.must("bob", "config", "core.hooksPath", "elsewhere")
    assert guarded.guard("bob", "git pull") is not None


@pytest.mark.long
@pytest.mark.parametrize(
    "line", ["git pull -q --ff-only . theirs", "git pull -q --rebase . theirs", "git pull -q . theirs"]
)
def test_hooks_of_git_judge_a_pull_before_it_changes_a_file(guarded: Checkout, line: str) -> None:
    guarded.must("bob", "config", "pull.rebase", "false")
    guarded.install()
    before = (guarded.read("ann.py"), guarded.head())
    assert "RSV207" in guarded.run("bob", "sh", "-c", line).err
    assert (guarded.read("ann.py"), guarded.head()) == before
    assert guarded.run("bob", "sh", "-c", line.replace("theirs", "ours")).status == 0


@pytest.fixture
def tree(guarded: Checkout, tmp_path: Path) -> Path:
    """A linked worktree of bob's own."""
    guarded.must("bob", "worktree", "add", "-q", str(tmp_path / "tree"), "ours")
    return tmp_path / "tree"


WIDE = (
    "git commit -am x",
    "git stash",
    "git switch -c t theirs",
    "git pull",
    "git checkout --detach theirs",
    "rm -rf .",
    "git reset --hard theirs",
    "rm -rf ../tree",
)
REMOVING = ("git worktree remove --force ../tree", "git -C ../project worktree move tree ../t2", "mv ../tree ../t2")


def test_worktree_of_ones_own_is_free_to_work_in(guarded: Checkout, tree: Path) -> None:
    assert [command for command in (*WIDE, *REMOVING) if guarded.guard("bob", command, cwd=tree) is not None] == []


def test_what_a_neighbour_changed_in_a_linked_worktree_is_kept_there(guarded: Checkout, tree: Path) -> None:
    (tree / "ann.py").write_text("unsaved\n")
    lines = (*WIDE, *REMOVING, "cd ../project && rm -rf ../tree", "rm -rf ../t*")
    assert [command for command in lines if guarded.guard("bob", command, cwd=tree) is None] == []


def test_a_folder_that_contains_a_worktree_in_use_is_not_removed(guarded: Checkout) -> None:
    (guarded.root / ".claude").mkdir()
    guarded.must("bob", "worktree", "add", "-q", ".claude/worktrees/ann", "ours")
    lines = (
        "rm -rf .claude/worktrees",
        "rm -rf .claude",
        "mv .claude/worktrees /tmp/o",
        "git clean -ffdx",
    )
    assert [line for line in lines if guarded.guard("bob", line) is not None] == []
    (guarded.root / ".claude" / "worktrees" / "ann" / "ann.py").write_text("unsaved\n")
    assert [line for line in lines if guarded.guard("bob", line) is None] == []


def test_hooks_of_git_let_a_linked_worktree_move_to_commits_that_are_there(guarded: Checkout, tree: Path) -> None:
    guarded.install()
    for line in (
        "git switch -q --detach theirs",
        "git switch -q -c t theirs",
        "git reset -q --hard main",
        "git pull -q --ff-only . theirs",
        "git reset -q --hard t@{2}",
    ):
        assert guarded.guard("bob", line, cwd=tree) is None, line
        assert (line, guarded.run("bob", "sh", "-c", line, cwd=tree).status) == (line, 0)
    (tree / "ann.py").write_text("bob\n")
    assert "RSV207" in guarded.run("bob", "git", "commit", "-q", "--no-verify", "-a", "-m", "x", cwd=tree).err


def test_another_repository_is_judged_by_its_own_leases(guarded: Checkout, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    guarded.must("bob", "init", "-q", cwd=other)
    assert guarded.guard("bob", f"git -C {other} checkout --orphan x") is None
    assert guarded.guard("bob", f"cd {other} && rm -rf .git") is None
    assert guarded.guard("bob", f"git -C {guarded.root} reset --hard theirs", cwd=other) is not None
    for line in (
        f"rm -rf {guarded.root}",
        f"rm -rf {guarded.root}/.git",
        f"rm -rf {tmp_path}",
        f"> {guarded.root}/.git/HEAD",
    ):
        assert guarded.guard("bob", line, cwd=other) is not None, line
    assert not (other / ".git" / "interlock").exists()


def test_the_state_folder_and_a_store_without_git_are_kept(guarded: Checkout, tmp_path: Path) -> None:
    state = Path(guarded.env("bob")["INTERLOCK_STATE"]) / "interlock"
    state.mkdir(parents=True, exist_ok=True)
    for line in (f"rm -rf {state}", f"rm -rf {state}/x {state.parent}", f"echo > {state}/versions.sqlite"):
        assert guarded.guard("bob", line) is not None, line
    plain = Checkout(tmp_path / "plain")
    plain.root.mkdir()
    (plain.root / "interlock.toml").write_text("")
    plain.reserve("ann", "a.py")
    for line in ("rm -rf .interlock", "rm -rf ../plain", "mv .interlock/reservations.sqlite x"):
        assert plain.guard("bob", line) is not None, line
    assert plain.guard("bob", "rm -rf src; mv a b") is None


def test_repositories_below_are_kept_with_what_is_held_in_them(guarded: Checkout) -> None:
    inner = guarded.root / "lib"
    inner.mkdir()
    guarded.must("bob", "init", "-q", cwd=inner)
    lines = (
        "rm -rf lib",
        "git rm -rf lib",
        "git submodule update --force lib",
        "git submodule deinit -f lib",
        "git clean -ffdx",
        "mv lib l",
    )
    assert [line for line in lines if guarded.guard("bob", line) is not None] == []
    Checkout(inner).reserve("ann", "y.py")
    assert [line for line in lines if guarded.guard("bob", line) is None] == []
    assert guarded.guard("bob", "git submodule foreach git status") is None
    guarded.release("ann")
    assert guarded.guard("bob", "rm -rf lib") is not None


def test_named_project_hides_no_other_lease(guarded: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_PROJECT", str(tmp_path))
    env = guarded.env("bob") | {"INTERLOCK_PROJECT": str(tmp_path)}
    assert check_command("git reset --hard theirs", str(guarded.root), env) is not None
    assert check_command("git checkout -- bob.py", str(guarded.root), env) is None


# -- what belongs to another agent, whoever holds what --------------------------------------------------------------


def recorded(checkout: Checkout, agent: str, path: str) -> None:
    checkout.reserve(agent, path)
    checkout.write(path, f"{agent}\n")
    done = checkout.run(agent, sys.executable, "-m", "interlock", "commit", "-m", agent)
    assert done.status == 0, done
    checkout.release(agent)


def test_a_commit_that_another_agent_recorded_stays_in_its_branch(guarded: Checkout) -> None:
    guarded.release("ann")
    lines = ("git commit --amend -m x", "git reset --soft HEAD~1", "git reset --hard HEAD~1")
    recorded(guarded, "bob", "bob.py")
    assert [line for line in lines if guarded.guard("bob", line) is not None] == []
    recorded(guarded, "ann", "ann.py")
    for line in lines:
        assert "which ann committed" in (guarded.guard("bob", line) or ""), line
        assert guarded.guard("ann", line) is None or "reset" in line, line
    assert guarded.guard("bob", "git commit --amend --dry-run") is None


def test_an_entry_of_the_stash_is_its_owners(guarded: Checkout) -> None:
    def refused(lines: Sequence[str], owner: str) -> list[str]:
        said = {line: check_command(line, str(guarded.root), guarded.env("bob"), {}, lambda _: owner) for line in lines}
        return [line for line in lines if "which ann has set aside" in (said[line] or "")]

    lines = ("git stash pop", "git stash drop 0", "git stash apply stash@{0}", "git stash clear", "git stash branch x")
    assert (refused(lines, "bob"), refused(lines, "ann")) == ([], [*lines])
    guarded.release("ann")
    own = ("git stash push -q -- bob.py && git stash pop -q", "git stash; git stash apply; git stash drop")
    more = ("git stash push -m x bob.py; git stash drop; git stash drop", "git stash drop")
    assert refused([*own, *more], "ann") == [*own, *more]
    guarded.write("bob.py", "unsaved\n")
    assert refused([*own, *more], "ann") == [*more]
    assert guarded.guard("bob", "git stash drop") is None


def test_hook_called_by_hand_is_refused_though_nobody_holds_anything(guarded: Checkout) -> None:
    guarded.release("ann")
    for line in ("cd src && int''erlock hook session-start < x", "for x in 1; do interlock hook stop; done"):
        assert guarded.guard("bob", line) is not None, line


def test_no_agent_decides_in_a_persons_place_though_nobody_holds_anything(guarded: Checkout) -> None:
    guarded.release("ann")
    lines = (
        "interlock answer T-1.1 accept",
        "interlock ui --no-browser",
        "cd src && python3 -m interlock answer T-1 waive",
        "(interlock 'answer' T-1)",
        "bash -c 'interlock ui'",
        "env -u INTERLOCK_AGENT_ID interlock answer T-1 refuse --reason x",
        "echo answer | xargs -I{} interlock {} R accept",
        "echo answer R accept | xargs interlock",
        "interlock answ$(echo er) R accept",
    )
    assert [line for line in lines if "for the person who owns" not in (guarded.guard("bob", line) or "")] == []
    free = (
        "grep -rn 'interlock answer' docs | head",
        "interlock explain $RUN",
        "ls *interlock*",
        "interlock uninstall",
        "python3 -m interlock status",
        "echo interlock hook > $FILE; $RUN hook",
    )
    assert [line for line in free if guarded.guard("bob", line) is not None] == []


# -- refusals -------------------------------------------------------------------------------------------------------


def test_dead_store_is_an_error_for_what_it_would_have_judged_and_none_for_the_rest(guarded: Checkout) -> None:
    (guarded.root / ".git" / "interlock" / "reservations.sqlite").write_bytes(b"garbage" * 1000)
    assert guarded.guard("bob", "ls -l") is None
    with pytest.raises(StoreError):
        guarded.guard("bob", "git reset --hard theirs")


def test_refused_command_is_recorded_by_its_first_words_and_without_the_value_of_a_variable(guarded: Checkout) -> None:
    guarded.guard("bob", "git switch --orphan s3cret")
    guarded.guard("bob", "INTERLOCK_AGENT_ID=s3cret git status")
    guarded.guard("bob", "rm -rf .git s3cret")
    events = guarded.events("guard_refused")
    assert [row["action"] for row in events] == ["git switch", "INTERLOCK_AGENT_ID", "rm"]
    assert "s3cret" not in json.dumps(events)


# -- bounds ---------------------------------------------------------------------------------------------------------


@each_row(
    "text", ["$(", "'", "{,", "<<", ">", "a | ", "rm a; ", "cd x; ", "git st; ", "${x", "find . -exec ", "\ud800 git "]
)
def test_long_line_is_judged_at_once(changed: Checkout, text: str) -> None:
    begun = time.process_time()
    changed.guard("bob", f"git rm {text * (32_000 // len(text))}")
    assert time.process_time() - begun < 5, text  # quadratic time would be much more


@each_row(
    "command",
    ["git switch theirs", "> .git/config", "INTERLOCK_HOOKS=off ls", "INTERLOCK_DATABASE= ls", "bash -c 'rm -rf .git'"],
)
def test_no_length_hides_a_command(changed: Checkout, command: str) -> None:
    assert "RSV207" in (changed.guard("bob", f"{command} # {'a ' * 20_000}") or "")
    assert "RSV216" in (changed.guard("bob", f"{command} {'| a ' * 6_000}") or "")
    for text in (f"cat > x <<'E'\n{command}\n{'a | b ' * 4_000}\nE", f"git add bob.py # {'a ' * 20_000}{command}"):
        assert changed.guard("bob", text) is None


def test_no_words_make_the_guard_fail(changed: Checkout) -> None:
    text = (
        "git rm mv find -exec checkout stash drop branch -D worktree remove -f reset $x -- -C .. ~ xargs {} bash -c * "
    )
    text += (
        "< > | ; cd pushd popd - symbolic-ref submodule foreach config clean -ffdx python3 -m interlock env commit & "
    )
    words = f"{text} rsync --delete INTERLOCK_PROJECT=$z cherry-pick a..b".split()
    chosen = random.Random(7)
    for _ in range(300):
        changed.guard("bob", " ".join(chosen.choices(words, k=chosen.randint(1, 7))))
