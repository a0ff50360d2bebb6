"""The guard of shell commands: what it refuses while ann holds files, and what passes."""

import json
import sys
import time
from pathlib import Path

import pytest

from interlock.reservations.errors import StoreDamagedError
from interlock.reservations.guard import prefilter
from interlock.reservations.guard.check import check_command
from interlock.reservations.leases import calls
from interlock.reservations.patterns import canonical, prefix_index
from interlock.reservations.store.records import replace
from tests.reservations.git.checkout import Checkout, copied, make
from tests.table import each_row

LISTS = Path(__file__).parents[3] / "benchmarks" / "guard"


SEEN_LATER = ("perl -e 'unlink \"ann.py\"'", "split bob.py ann.py")
"""What a program does by itself, and what makes other files than those it is given."""


def listed(path: Path, *but: str) -> list[str]:
    """The commands of a list, without some."""
    rows = path.read_text().split("\n", 1)[1].split("\n%\n")
    return [row for row in (row.strip("\n") for row in rows) if row not in but]


REFUSED = listed(Path(__file__).with_name("refused.txt"))
PASSES = listed(Path(__file__).with_name("passes.txt"))


@pytest.fixture(scope="module")
def unrelated(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout in which ann holds what no line of the list is about."""
    checkout = make(tmp_path_factory.mktemp("unrelated"))
    checkout.reserve("ann", "services/billing/**", "legacy/report.py")
    checkout.must("bob", "update-ref", "refs/remotes/origin/main", "main")
    checkout.install()
    return checkout


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout for questions that change nothing in it."""
    return arranged(make(tmp_path_factory.mktemp("guard")))


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
    checkout.must("bob", "config", "alias.nuke", "reset --hard")
    checkout.must("bob", "config", "alias.boom", "!git clean -fd && true")
    checkout.must("bob", "config", "alias.st", "status")
    (checkout.root / "link.py").symlink_to("ann.py")
    (checkout.root / "up").symlink_to("src")
    for folder in ("docs", "build", "../other"):
        (checkout.root / folder).mkdir()
    checkout.reserve("ann", "ann.py", "src/ann.py")
    return checkout


@each_row("command", REFUSED)
def test_refused(unchanged: Checkout, command: str) -> None:
    text = unchanged.guard("bob", command)
    assert text is not None
    assert ("RSV207" in text and "held by ann" in text) or ("RSV215" in text and "place: line" in text)
    assert "fix:" in text


@each_row("command", [*listed(LISTS / "bypasses.txt", *SEEN_LATER), *listed(LISTS / "more_bypasses.txt")])
def test_bypass_is_refused(unchanged: Checkout, command: str) -> None:
    assert unchanged.guard("bob", command) is not None


@each_row("command", listed(LISTS / "known_bypasses.txt"))
def test_known_bypass_passes(unchanged: Checkout, command: str) -> None:
    assert unchanged.guard("bob", command) is None


@each_row("command", [*listed(LISTS / "honest.txt", "git stash"), *listed(LISTS / "more_honest.txt")])
def test_honest_line_passes_while_others_hold_something_else(unrelated: Checkout, command: str) -> None:
    assert unrelated.guard("bob", command) is None


@each_row("command", PASSES)
def test_passes(unchanged: Checkout, command: str) -> None:
    assert unchanged.guard("bob", command) is None


def test_all_but_a_hook_passes_without_leases_of_others(unchanged: Checkout) -> None:
    assert {command for command in REFUSED if unchanged.guard("ann", command) is not None} == {
        command for command in REFUSED if "interlock hook" in command
    }


def test_commit_and_reset_are_judged_by_what_is_staged(guarded: Checkout) -> None:
    guarded.write("ann.py", "two\n")
    guarded.must("ann", "add", "ann.py")
    for command in ("git commit -m x", "git commit --amend --no-edit", "git reset", "git merge --abort"):
        assert guarded.guard("bob", command) is not None, command
    assert guarded.guard("bob", "git commit -m x -- bob.py") is None


def test_what_git_lists_as_changed_is_judged_by_what_has_changed(guarded: Checkout) -> None:
    lines = ("git diff --name-only | xargs black", "git checkout -- $(git diff --name-only)",
             "git ls-files -m | xargs rm", "git status --porcelain | awk '{print $2}' | xargs rm")  # fmt: skip
    for written, refused in (("bob.py", False), ("ann.py", True)):
        guarded.write(written, "two\n")
        assert [line for line in lines if (guarded.guard("bob", line) is not None) != refused] == []
    moving = "git commit -m x -- bob.py; git diff --name-only HEAD~1 | xargs black"
    assert guarded.guard("bob", moving) is not None


def test_another_repository_is_judged_by_its_own_leases(guarded: Checkout, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    guarded.must("bob", "init", "-q", cwd=other)
    assert guarded.guard("bob", f"git -C {other} reset --hard") is None
    assert guarded.guard("bob", f"cd {other} && git clean -fd && rm ann.py") is None
    assert guarded.guard("bob", f"git -C {guarded.root} reset --hard", cwd=other) is not None
    assert guarded.guard("bob", f"rm {guarded.root}/ann.py", cwd=other) is not None
    assert not (other / ".git" / "interlock").exists()


@pytest.fixture
def tree(guarded: Checkout, tmp_path: Path) -> Path:
    """A linked worktree of bob's own."""
    guarded.must("bob", "worktree", "add", "-q", str(tmp_path / "tree"), "ours")
    return tmp_path / "tree"


WIDE = (
    "git add -A", "git add .", "git commit -am x", "git reset --hard", "git checkout .", "git checkout -- ann.py",
    "git restore .", "git stash", "git clean -fdx", "git switch -c t theirs", "git pull", "git checkout -f",
    "git checkout --detach theirs", "git worktree remove --force ../tree", "git sparse-checkout set src",
)  # fmt: skip


def test_worktree_of_ones_own_is_free_to_work_in(guarded: Checkout, tree: Path) -> None:
    assert [command for command in WIDE if guarded.guard("bob", command, cwd=tree) is not None] == []
    assert guarded.guard("bob", "git -C ../tree reset --hard") is None
    assert guarded.guard("bob", "git worktree remove -f tree") is None


def test_what_a_neighbour_changed_in_a_linked_worktree_is_kept_there(guarded: Checkout, tree: Path) -> None:
    (tree / "ann.py").write_text("unsaved\n")
    assert [command for command in WIDE if guarded.guard("bob", command, cwd=tree) is None] == []
    assert guarded.guard("bob", "git worktree remove -f tree") is not None


def test_files_and_commits_in_a_linked_worktree_are_judged_by_all_leases(guarded: Checkout, tree: Path) -> None:
    for command in (
        "rm ann.py", "git rm ann.py", "git checkout theirs -- ann.py", "git merge theirs", "git cherry-pick theirs",
        "git restore -s theirs .", "git apply ../theirs.patch", "git fetch -u . theirs:main", "rm -rf .",
    ):  # fmt: skip
        assert guarded.guard("bob", command, cwd=tree) is not None, command
    assert guarded.guard("bob", "git merge main", cwd=tree) is None


def test_hooks_of_git_let_a_linked_worktree_move_to_commits_that_are_there(guarded: Checkout, tree: Path) -> None:
    guarded.install()
    for line in (
        "git switch -q --detach theirs", "git switch -q -c t theirs", "git reset -q --hard main",
        "git pull -q --ff-only . theirs", "git reset -q --hard t@{2}",
    ):  # fmt: skip
        assert guarded.guard("bob", line, cwd=tree) is None, line
        assert (line, guarded.run("bob", "sh", "-c", line, cwd=tree).status) == (line, 0)
    (tree / "ann.py").write_text("bob\n")
    assert "RSV207" in guarded.run("bob", "git", "commit", "-q", "--no-verify", "-a", "-m", "x", cwd=tree).err
    assert "RSV207" in guarded.run("bob", "git", "update-ref", "refs/heads/main", "theirs", cwd=tree).err


# -- what git's own hooks see more exactly --------------------------------------------------------------------------


def test_pull_and_what_is_fetched_first_are_left_to_the_hooks_that_are_installed(guarded: Checkout) -> None:
    lines = (
        "git pull", "git pull --ff-only", "git fetch && git merge FETCH_HEAD", "git fetch && git rebase FETCH_HEAD",
    )  # fmt: skip
    assert [line for line in lines if guarded.guard("bob", line) is None] == []
    guarded.install()
    assert [line for line in lines if guarded.guard("bob", line) is not None] == []
    for line in ("git -c core.hooksPath=x pull", "GIT_CONFIG_COUNT=0 git pull", "git fetch && git switch FETCH_HEAD"):
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


def test_work_that_a_merge_would_set_aside_is_asked_for(guarded: Checkout) -> None:
    guarded.install()
    guarded.write("ann.py", "unsaved\n")
    assert guarded.guard("bob", "git merge ours") is None
    assert guarded.guard("bob", "git merge --autostash ours") is not None
    assert guarded.guard("bob", "git pull --autostash") is not None
    guarded.must("bob", "config", "merge.autostash", "true")
    assert guarded.guard("bob", "git pull") is not None
    assert guarded.guard("bob", "git pull --no-autostash") is None


def test_what_only_stages_is_judged_by_what_has_changed(guarded: Checkout) -> None:
    lines = ("git add -A", "git add .", "git add -u", "git add src", "git commit -am x", "git commit -qam x",
    "git stage -A",
             "git add '*.py'", "git add :/", "git commit -m x .", "git commit --amend -a --no-edit")  # fmt: skip
    assert [line for line in lines if guarded.guard("bob", line) is not None] == []
    assert guarded.guard("bob", "git commit --no-verify -am x") is not None
    for path in ("ann.py", "src/ann.py"):
        guarded.write(path, "two\n")
    assert [line for line in lines if guarded.guard("bob", line) is None] == []


def test_refusal_names_the_way_that_is_safe(guarded: Checkout) -> None:
    guarded.write("ann.py", "two\n")
    for command, way in (("git add -A", "git add FILE"), ("git stash", "git stash push -- PATHS"),
                         ("git commit -am x", "interlock commit"), ("git pull", "git fetch")):  # fmt: skip
        assert way in (guarded.guard("bob", command) or "")


def lines_of(text: str | None, begin: str = "") -> list[str]:
    return [line.strip() for line in (text or "").split("\n") if line.strip().startswith(begin)]


def test_command_that_takes_whatever_is_there_says_so_and_names_changed_files_first(guarded: Checkout) -> None:
    for command in ("git reset --hard", "git stash", "git clean -fd"):
        assert lines_of(guarded.guard("bob", command), "why:") != [], command
    guarded.reserve("ann", "docs/**", "zoo.py")
    guarded.write("zoo.py", "new\n")
    guarded.write("docs/a.md", "new\n")
    held = [line for line in lines_of(guarded.guard("bob", "git stash")) if "is held by ann" in line]
    assert [line.split(" is held")[0] for line in held] == ["docs/a.md as docs/**", "zoo.py", "ann.py", "src/ann.py"]
    assert ["with uncommitted changes" in line for line in held] == [True, True, False, False]
    (only,) = [line for line in lines_of(guarded.guard("bob", "git add docs")) if "is held by ann" in line]
    assert only.startswith("docs/a.md as docs/** is held")
    for command, rows in (("rm -rf docs/x", 1), ("black .", 4), ("cat > zoo.py <<< x", 0)):
        refusal = guarded.guard("bob", command) or ""
        assert refusal.count("is held by ann") == rows
        assert (".git" in refusal, "`<<< TEXT` before `> FILE`" in refusal) == (False, rows == 0)


def test_refusal_of_what_has_changed_needs_no_further_reason(guarded: Checkout) -> None:
    for path in ("ann.py", "src/ann.py"):
        guarded.write(path, "new\n")
    assert lines_of(guarded.guard("bob", "git stash"), "why:") == []
    guarded.reserve("ann", "docs/**")
    guarded.write("docs/a.md", "new\n")
    guarded.write("docs/b.md", "new\n")
    guarded.must("ann", "add", "docs/a.md")
    text = guarded.guard("bob", "git commit -m x")
    assert (lines_of(text, "docs/b.md"), lines_of(text, "why:")) == ([], [])
    assert lines_of(guarded.guard("bob", "git switch theirs"), "why:") == []


@each_row(
    ("command", "help"),
    [
        ("rm ann.py", ["to get it: `interlock negotiate 'ann.py' --reason WHY`"]),
        ("git stash", ["to get one of them: `interlock negotiate FILE --reason WHY`"]),
        ("INTERLOCK_HOOKS=off git status", []), ("interlock uninstall", []), ("interlock hook stop", []),
        ("rm -rf .git/hooks", []),
    ],
)  # fmt: skip
def test_asking_is_proposed_where_it_helps(unchanged: Checkout, command: str, help: list[str]) -> None:  # noqa: A002
    text = unchanged.guard("bob", command)
    assert "RSV207" in (text or "")
    assert [line.split(" (tool")[0] for line in lines_of(text, "to get ")] == help


@each_row(
    ("command", "quoted"),
    [
        ("rm -rf src", "rm -rf src"), ("sed -i s/a/b/ src/*.py", "sed -i s/a/b/ src/*.py"),
        ("sudo cp -r $x ann.py", "cp -r … ann.py"), ("INTERLOCK_HOOKS=off git status", "INTERLOCK_HOOKS=off"),
        ("echo x > ann.py", "> ann.py"), ("git rm -q --cached a ann.py b c d", "git rm -q --cached a ann.py b c d"),
    ],
)  # fmt: skip
def test_refusal_quotes_the_command_as_it_was_written(unchanged: Checkout, command: str, quoted: str) -> None:
    assert f"`{quoted}`" in lines_of(unchanged.guard("bob", command))[0]


@each_row(
    ("pattern", "codes"),
    [(".git/config", ["RSV213"]), (".git/hooks/**", ["RSV213"]), (".git/info/exclude", []), (".gitignore", [])],
)
def test_what_no_edit_may_change_is_not_reserved(guarded: Checkout, pattern: str, codes: list[str]) -> None:
    answer = calls.reserve(guarded.agent("ann"), [pattern])
    assert [row["code"] for row in answer["errors"]] == codes


def test_dead_store_is_an_error_for_what_it_would_have_judged_and_none_for_the_rest(guarded: Checkout) -> None:
    (guarded.root / ".git" / "interlock" / "reservations.sqlite").write_bytes(b"garbage" * 1000)
    assert guarded.guard("bob", "ls -l") is None
    with pytest.raises(StoreDamagedError):
        guarded.guard("bob", "git reset --hard")


def test_refused_command_is_recorded_by_its_first_words_and_without_the_value_of_a_variable(guarded: Checkout) -> None:
    guarded.guard("bob", "git stash push -m 'token s3cret'")
    guarded.guard("bob", "INTERLOCK_AGENT_ID=s3cret git status")
    guarded.guard("bob", "sed -i s/a/s3cret/ ann.py")
    events = guarded.events("guard_refused")
    assert [row["action"] for row in events][1:] == ["INTERLOCK_AGENT_ID", "sed"]
    assert (len(events), "s3cret" in json.dumps(events)) == (3, False)


def test_command_too_long_or_too_deep_to_be_read_is_refused(unchanged: Checkout) -> None:
    assert unchanged.guard("bob", "true git" + "\ntrue" * 300_000) is not None
    assert unchanged.guard("bob", "echo " + "$(echo " * 60 + "git" + ")" * 60) is not None
    assert unchanged.guard("bob", "cat > bob.py <<'EOF'\n" + "git reset --hard\n" * 30_000 + "EOF\n") is None


@each_row("text", ["$(" * 50, "'" * 99_999, "(" * 1000, "{," * 40_000, "a" * 2_000_000, "<<" * 1000, "`", "$'\\", ">"])
def test_odd_text_is_judged_at_once(unchanged: Checkout, text: str) -> None:
    begun = time.process_time()
    unchanged.guard("bob", text)
    assert time.process_time() - begun < 5


def test_prefilter_passes_nothing_that_the_guard_refuses() -> None:
    lines = [*REFUSED, *listed(LISTS / "bypasses.txt", *SEEN_LATER), *listed(LISTS / "more_bypasses.txt")]
    assert [command for command in lines if prefilter.is_plain(command)] == []


@each_row(
    "command",
    ["$x a", "g$x", "`a`", "{a,b}", "~/a", "a*", "a; $x", "a | $x", "a && ~b", "x=1 b", "\\a", "'a'", "a\n$b"],
)
def test_prefilter_passes_no_expansion_in_command_position(command: str) -> None:
    assert not prefilter.is_plain(command)


@pytest.mark.parametrize(
    "command",
    ["ls -la", "pytest -q tests/a.py", "cat a.txt | head -3", "npm run build && make ok", "npm test 2>&1 | tail"],
)
def test_most_commands_need_no_parser(command: str) -> None:
    assert prefilter.is_plain(command)


def test_hook_called_by_hand_is_refused_though_nobody_holds_anything(guarded: Checkout) -> None:
    guarded.release("ann")
    for line in ("cd src && int''erlock hook session-start < x", "for x in 1; do interlock hook stop; done"):
        assert guarded.guard("bob", line) is not None, line


def test_no_agent_decides_in_a_persons_place_though_nobody_holds_anything(guarded: Checkout) -> None:
    guarded.release("ann")
    lines = (
        "interlock answer T-1.1 accept", "interlock ui --no-browser",
        "cd src && python3 -m interlock answer T-1 waive",
        "env -u INTERLOCK_AGENT_ID interlock answer T-1 refuse --reason x", "(interlock 'answer' T-1)",
        "bash -c 'interlock ui'", "echo answer | xargs -I{} interlock {} R accept",
        "echo answer R accept | xargs interlock", "interlock answ$(echo er) R accept",
        "V=ans; interlock ${V}wer R accept", "python3 -m interlock.__main__ answer R accept",
        "python3 -Im interlock answer R accept", "python3 -minterlock answer R accept",
    )  # fmt: skip
    assert [line for line in lines if "for the person who owns" not in (guarded.guard("bob", line) or "")] == []
    free = (
        "grep -rn 'interlock answer' docs | head", "interlock explain $RUN", "ls *interlock*",
        "python3 -m interlock status",
    )  # fmt: skip
    assert [line for line in free if guarded.guard("bob", line) is not None] == []


def test_speaking_of_hooks_is_free_where_nobody_holds_anything(guarded: Checkout) -> None:
    guarded.release("ann")
    lines = ["grep -rn 'interlock hook' $HOME | head", "interlock uninstall", "echo interlock hook > $FILE; $RUN hook"]
    assert [line for line in lines if guarded.guard("bob", line) is not None] == []


def test_parser_is_not_loaded_where_nobody_else_holds_anything(unchanged: Checkout) -> None:
    code = (
        "import os, sys\nfrom interlock.reservations.guard.check import check_command as check\n"
        "assert check('x=it; g$x reset --hard', os.getcwd(), os.environ) is None\n"
        "assert 'tree_sitter' not in sys.modules"
    )
    assert unchanged.run("ann", sys.executable, "-c", code).err == ""


def test_without_parser_git_is_refused_while_others_hold(unchanged: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "interlock.reservations.guard.walk", None)
    text = unchanged.guard("bob", "cd src && g''it add .")
    assert text is not None
    assert "RSV215" in text
    assert "tree-sitter" in text
    assert unchanged.guard("bob", "cd src && npm test") is None
    assert unchanged.guard("ann", "git add .") is None


# -- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        "rm " + " ".join(f"file{number}" for number in range(20_000)),
        "rm bob.py; " * 20_000,
        "git merge ours; " * 500,
        "a() { cd x; cd y; cd z; }; " + "a; " * 20 + "rm bob.py",
        "x=aa; " + "x=$x$x; " * 60 + "rm $x",
        "find . \\( " + "-name x -o " * 5_000 + "-name y \\) -delete",
        "find . " + "\\( -name x -o -path './a/*' -o -empty \\) " * 300 + "-type f -delete",
        "for i in " + " ".join(map(str, range(1_000))) + "; do rm bob$i.py; done",
    ],
    ids=["words", "commands", "git", "folders", "text", "names", "tests", "values"],
)
def test_line_that_takes_too_long_to_look_at_is_refused_in_time(unchanged: Checkout, command: str) -> None:
    begun = time.process_time()
    assert unchanged.guard("bob", command) is not None
    assert time.process_time() - begun < 15


def test_among_ten_thousand_leases_few_are_read(guarded: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    with guarded.runtime.store.transaction() as tx:
        first = tx.leases()[0]
        for number in range(10_000):
            path = f"lib/{number % 90}/{number}.py"
            tx.put_lease(replace(first, reservation_id=f"rsv_{number}", pattern=path, prefix=path))
    read_ones: list[str] = []

    def counted(text: str) -> object:
        read_ones.append(text)
        return canonical(text)

    monkeypatch.setattr(prefix_index, "canonical", counted)
    for command in ("rm -rf build dist out tmp x", "git add a b c d e", "find docs -name '*.log' -delete"):
        assert guarded.guard("bob", command) is None
    assert guarded.guard("bob", "rm lib/1/1.py") is not None
    assert len(read_ones) < 60


# -- where a line goes ------------------------------------------------------------------------------------------------


def test_folder_that_may_not_be_there_leaves_both_possible(unchanged: Checkout, tmp_path: Path) -> None:
    for line in ("cd nosuch; rm ann.py", f"cd {tmp_path}/nosuch; rm -rf src", "cd docs/$X; rm ann.py"):
        assert unchanged.guard("bob", line) is not None, line
    for line in ("cd nosuch && rm ann.py", "mkdir -p made; cd made; rm ann.py", f"cd {tmp_path}; rm ann.py"):
        assert unchanged.guard("bob", line) is None, line


def test_commands_that_git_runs_in_submodules_are_judged_there(guarded: Checkout) -> None:
    guarded.write(".gitmodules", '[submodule "lib"]\n\tpath = lib\n\turl = ../lib\n')
    (guarded.root / "lib").mkdir()
    guarded.must("bob", "update-index", "--add", "--cacheinfo", f"160000,{guarded.head()},lib")
    assert guarded.guard("bob", "git submodule foreach 'cd .. && git reset --hard'") is not None
    assert guarded.guard("bob", "git submodule foreach git status") is None
    assert guarded.guard("bob", "git submodule update --init") is None
    guarded.reserve("ann", "lib/app.py")
    assert guarded.guard("bob", "git submodule update --init") is not None
    assert guarded.guard("bob", "git submodule update --init other") is None


def test_named_project_hides_no_other_lease(guarded: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_PROJECT", str(tmp_path))
    env = guarded.env("bob") | {"INTERLOCK_PROJECT": str(tmp_path)}
    assert check_command("git reset --hard", str(guarded.root), env) is not None
    assert check_command("git checkout -- bob.py", str(guarded.root), env) is None


def test_held_file_of_an_outer_project_is_judged_by_its_leases(guarded: Checkout) -> None:
    inner = guarded.root / "inner"
    inner.mkdir()
    guarded.must("bob", "init", "-q", cwd=inner)
    guarded.reserve("ann", "lib/held.py")
    (guarded.root / "lib").mkdir()
    guarded.must("bob", "init", "-q", cwd=guarded.root / "lib")
    assert guarded.guard("bob", "rm held.py", cwd=guarded.root / "lib") is not None
    assert guarded.guard("bob", "rm own.py", cwd=inner) is None
