"""The guard of shell commands: what it refuses while ann holds files, and what passes."""

import time
from contextlib import suppress
from pathlib import Path

import pytest

from interlock.reservations.errors import StoreDamaged
from interlock.reservations.hooks.shell import Unreadable, read
from tests.reservations.git.checkout import Checkout, copied, make


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout for questions that change nothing in it."""
    return arranged(make(tmp_path_factory.mktemp("guard")))


@pytest.fixture
def guarded(standing: Checkout, tmp_path: Path) -> Checkout:
    """A copy of it, to be changed."""
    return copied(standing, tmp_path)


def arranged(checkout: Checkout) -> Checkout:
    """`theirs` changes ann.py, `ours` changes bob.py, a stash holds ann.py; patches of both lie outside."""
    for name, path in (("theirs", "ann.py"), ("ours", "bob.py")):
        checkout.must("bob", "switch", "-q", "-c", name, "main")
        checkout.write(path, f"{name}\n")
        checkout.must("bob", "commit", "-q", "-a", "-m", name)
        patch = checkout.must("bob", "format-patch", "-1", "--stdout") + "\n"
        (checkout.root.parent / f"{name}.patch").write_text(patch)
    checkout.must("bob", "switch", "-q", "main")
    checkout.write("ann.py", "stashed\n")
    checkout.must("bob", "stash", "-q")
    checkout.must("bob", "config", "alias.nuke", "reset --hard")
    checkout.must("bob", "config", "alias.boom", "!git clean -fd && true")
    checkout.must("bob", "config", "alias.st", "status")
    checkout.reserve("ann", "ann.py", "src/ann.py")
    return checkout


REFUSED = [
    # -- working tree and index as a whole
    "git reset --hard", "git reset --hard HEAD~1", "git reset --hard origin/main", "git checkout .",
    "git checkout -- .",
    "git checkout -f", "git checkout HEAD -- ann.py", "git checkout ann.py", "git checkout --theirs ann.py",
    "git restore .", "git restore ann.py", "git restore --staged .", "git restore -s HEAD~1 src", "git restore :/",
    "git stash", "git stash push", "git stash -u", "git stash save x", "git stash push -- ann.py", "git stash pop",
    "git stash apply", "git stash apply stash@{0}", "git stash pop 0", "git stash drop", "git stash clear",
    "git clean -fd", "git clean -fdx", "git clean -f src", "git clean -xdff .",
    "git read-tree -u -m HEAD", "git read-tree --reset HEAD", "git checkout-index -f -a",
    "git checkout-index -f ann.py",
    # -- the index
    "git add -A", "git add --all", "git add .", "git add -u", "git add ann.py", "git add src", "git add src/*.py",
    "git add '*.py'", "git add :/", "git add -- ann.py", "git add $FILES", "git stage -A", "git update-index ann.py",
    "git add --pathspec-from-file=list",
    # -- commits
    "git commit -a -m x", "git commit -am x", "git commit --all -m x", "git commit -m x -- ann.py",
    "git commit -m x .",
    "git commit --amend -a --no-edit", "git commit -qam x",
    # -- files
    "git rm ann.py", "git rm -r src", "git rm --cached ann.py", "git mv ann.py x.py", "git mv bob.py ann.py",
    # -- branches
    "git switch theirs", "git checkout theirs", "git switch -f main", "git switch --detach theirs",
    "git checkout -b new theirs", "git switch --orphan empty", "git merge theirs", "git merge --no-ff theirs",
    "git rebase theirs", "git rebase --onto theirs main", "git pull", "git pull --rebase", "git cherry-pick theirs",
    "git cherry-pick main..theirs", "git cherry-pick -n theirs", "git revert theirs", "git am ../theirs.patch",
    "git apply ../theirs.patch", "git apply < ../theirs.patch", "cat x | git apply", "git branch -f main theirs",
    "git reset --soft theirs", "git reset --keep theirs", "git reset --merge theirs", "git update-ref HEAD theirs",
    "git update-ref refs/heads/main theirs", "git symbolic-ref HEAD refs/heads/theirs", "git bisect start",
    "git worktree remove --force ../other", "git filter-branch -f", "git sparse-checkout set src",
    # -- ways to say it
    "cd src && git add .", "(cd src; git checkout .)", "git -C src clean -fd", "git -c core.pager=cat reset --hard",
    "/usr/bin/git reset --hard", "command git reset --hard", "env A=1 git reset --hard", "A=1 git reset --hard",
    "sudo -u bob git reset --hard", "timeout 5 git reset --hard", "sh -c 'git reset --hard'",
    'bash -lc "cd src && git checkout ."', "eval git reset --hard", "echo ann.py | xargs git reset --hard",
    "true && git reset --hard", "false || git reset --hard", "true; git reset --hard", "true & git reset --hard",
    "echo $(git reset --hard)", "echo `git reset --hard`", 'echo "$(git stash)"', "cat <(git reset --hard)",
    "if true; then git reset --hard; fi", "for x in 1; do git reset --hard; done", "! git reset --hard",
    "{ git reset --hard; }", "git nuke", "git boom", "git -c alias.x='reset --hard' x", "true\ngit reset --hard",
    "git \\\n  reset --hard", "bash <<'EOF'\ngit reset --hard\nEOF", "git 'reset' \"--hard\"", "nohup git stash &",
    "git reset --har", "git commit --al -m x", "INTERLOCK_HOOKS=off git commit -m x", "export INTERLOCK_HOOKS=off",
    "INTERLOCK_AGENT_ID=ann git status", "git add -A && git commit -m \"$(cat <<'EOF'\nIt's done (almost\nEOF\n)\"",
    "echo $((1 + 2)) && git stash", "x=$( # it's odd\n git stash)", "sh -c \"it's\"; git stash",
    "echo 'open && git stash",
    "git reset --hard > /dev/null 2>&1", "xargs -n 1 git add -A < list", "git reset --ha''rd",
    # -- files without git
    "rm ann.py", "rm -rf src", "rm -f -- ann.py", "rm *.py", "mv ann.py x", "mv x src/ann.py", "cp bob.py ann.py",
    "cp ../ann.py .", "echo x > ann.py", "echo x >> src/ann.py", "echo x >| ann.py", "date &> ann.py",
    "date 2>ann.py",
    "cat <<EOF > ann.py\nx\nEOF", "sed -i s/a/b/ ann.py", "sed -i.bak -e s/a/b/ src/ann.py",
    "sed --in-place x ann.py",
    "perl -pi -e s/a/b/ ann.py", "date | tee ann.py", "date | tee -a src/ann.py", "truncate -s 0 ann.py",
    "dd if=/dev/zero of=ann.py", "patch -i ../theirs.patch", "patch -p1 < ../theirs.patch", "find . -delete",
    "find src -name '*.py' -exec rm {} +", "ln -sf bob.py ann.py", "rm ./src/../ann.py", "cd src && rm ann.py",
    "install -m 644 bob.py ann.py",
]  # fmt: skip

PASSES = [
    "git status", "git log --oneline", "git diff HEAD", "git show theirs", "git fetch", "git push origin main",
    "git add bob.py", "git add src/bob.py", "git add -- bob.py", "git add -A bob.py", "git add -n .",
    "git add -u src/bob.py",
    "git commit -m x -- bob.py", "git commit -m 'git reset --hard'", "git commit --dry-run -a",
    "git commit -m x bob.py",
    "git commit -F - <<'EOF'\ngit reset --hard\nEOF", "git restore bob.py", "git checkout -- bob.py",
    "git checkout bob.py",
    "git checkout HEAD -- src/bob.py", "git checkout main", "git checkout -b new", "git switch -c new",
    "git switch ours",
    "git stash list", "git stash show -p", "git stash push -- bob.py", "git stash push -m x bob.py",
    "git stash create",
    "git clean -n", "git clean -f bob.py", "git merge ours", "git rebase ours", "git cherry-pick ours",
    "git revert ours",
    "git am ../ours.patch", "git apply ../ours.patch", "git apply --check ../theirs.patch", "git rm bob.py",
    "git mv bob.py c.py", "git branch -f theirs main", "git branch new", "git branch -D theirs", "git tag v1",
    "git worktree add ../w theirs", "git worktree remove ../other", "git reset -- bob.py", "git reset",
    "git reset bob.py",
    "git st", "git unknown-thing", "git", "git --version", "git reset --soft HEAD", "git bisect log",
    "git update-ref refs/heads/x theirs", "git checkout nowhere",
    "rm bob.py", "rm -rf build", "mv bob.py c.py", "cp ann.py copy.py", "cp ann.py ..", "echo x > bob.py",
    "cat ann.py",
    "sed -n 1p ann.py", "sed s/a/b/ ann.py", "sed -e s/i/j/ ann.py", "tee bob.py < ann.py", "grep -r ann.py .",
    "echo git reset --hard", "echo 'rm ann.py'", "# git reset --hard", "rm -rf /tmp/ann.py", "echo hi > /dev/null",
    "find . -name ann.py", "rm $FILE", "python -c 'print(1) > 2'", "echo 'a > ann.py'", "git log -- ann.py",
    "echo a 2>&1", "test 1 -gt 0 && echo ok", "INTERLOCK_AGENT_ID=bob git status",
    "git add bob.py && git commit -m \"$(cat <<'EOF'\nIt's (git reset --hard) done\nEOF\n)\" -- bob.py",
    "cat <<'EOF'\nrm ann.py\nEOF",
]  # fmt: skip


@pytest.mark.parametrize("command", REFUSED)
def test_refused(standing: Checkout, command: str) -> None:
    text = standing.guard("bob", command)
    assert text is not None
    assert "RSV207" in text
    assert "held by ann" in text
    assert "fix:" in text


@pytest.mark.parametrize("command", PASSES)
def test_passes(standing: Checkout, command: str) -> None:
    assert standing.guard("bob", command) is None


def test_everything_passes_without_leases_of_others(standing: Checkout) -> None:
    assert [command for command in REFUSED if standing.guard("ann", command) is not None] == []


def test_commit_and_reset_are_judged_by_what_is_staged(guarded: Checkout) -> None:
    guarded.write("ann.py", "two\n")
    guarded.must("ann", "add", "ann.py")
    for command in ("git commit -m x", "git commit --amend --no-edit", "git reset", "git merge --abort"):
        assert guarded.guard("bob", command) is not None, command
    assert guarded.guard("bob", "git commit -m x -- bob.py") is None


def test_another_repository_is_judged_by_its_own_leases(guarded: Checkout, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    guarded.must("bob", "init", "-q", cwd=other)
    assert guarded.guard("bob", f"git -C {other} reset --hard") is None
    assert guarded.guard("bob", f"cd {other} && git clean -fd && rm ann.py") is None
    assert guarded.guard("bob", f"git -C {guarded.root} reset --hard", cwd=other) is not None
    assert guarded.guard("bob", f"rm {guarded.root}/ann.py", cwd=other) is not None
    assert not (other / ".git" / "interlock").exists()


def test_linked_worktree_is_judged_by_the_same_leases(guarded: Checkout, tmp_path: Path) -> None:
    guarded.must("bob", "worktree", "add", "-q", str(tmp_path / "tree"), "ours")
    assert guarded.guard("bob", "git checkout -- ann.py", cwd=tmp_path / "tree") is not None
    assert guarded.guard("bob", "git checkout -- bob.py", cwd=tmp_path / "tree") is None


def test_refusal_names_the_way_that_is_safe(guarded: Checkout) -> None:
    for command, way in (("git add -A", "git add FILE"), ("git stash", "git stash push -- PATHS"),
                         ("git commit -am x", "interlock commit"), ("git pull", "merge --ff-only")):  # fmt: skip
        assert way in (guarded.guard("bob", command) or "")


def test_dead_store_is_an_error_for_what_it_would_have_judged_and_none_for_the_rest(guarded: Checkout) -> None:
    (guarded.root / ".git" / "interlock" / "reservations.sqlite").write_bytes(b"garbage" * 1000)
    assert guarded.guard("bob", "ls -l") is None
    with pytest.raises(StoreDamaged):
        guarded.guard("bob", "git reset --hard")


def test_refused_command_is_recorded_by_its_first_words(guarded: Checkout) -> None:
    guarded.guard("bob", "git commit -a -m 'token s3cret'")
    with guarded.desk.store.transaction() as tx:
        events = [row.data for row in tx.events(str(guarded.root), 500) if row.type == "guard_refused"]
    assert len(events) == 1
    assert "s3cret" not in events[0]


def test_command_too_long_or_too_deep_to_be_read_is_refused(standing: Checkout) -> None:
    assert standing.guard("bob", "true git" + "\ntrue" * 300_000) is not None
    assert standing.guard("bob", "echo " + "$(echo " * 12 + "git" + ")" * 12) is not None
    assert standing.guard("bob", "cat > bob.py <<'EOF'\n" + "git reset --hard\n" * 30_000 + "EOF\n") is None


@pytest.mark.parametrize(
    "text", ["$(" * 50, "'" * 99_999, "(" * 1000, "{," * 400_000, "a" * 2_000_000, "<<" * 1000, "`", "$'\\", ">", "2>"]
)
def test_odd_text_is_read_or_refused_at_once(text: str) -> None:
    begun = time.perf_counter()
    with suppress(Unreadable):
        read(text)
    assert time.perf_counter() - begun < 2


def test_words_are_read_as_a_shell_reads_them() -> None:
    rows = {
        "a 'b c' \"d e\" f\\ g": ["a", "b c", "d e", "f g"],
        "a # b": ["a"],
        "a#b": ["a#b"],
        'a "x\\"y" \'z"\'': ["a", 'x"y', 'z"'],
        "a\\\nb": ["ab"],
        "echo a{b,c}d": ["echo", "a{b,c}d"],
    }
    for text, words in rows.items():
        assert [word.text for command in read(text) for word in command.words] == words, text
