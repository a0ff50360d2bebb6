"""The guard of shell commands: what it refuses while ann holds files, and what passes."""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from interlock.reservations import git
from interlock.reservations.errors import StoreDamaged
from interlock.reservations.hooks.git_guard import check_command
from interlock.reservations.hooks.shell import Unreadable, read
from tests.reservations.git.checkout import Checkout, copied, make
from tests.reservations.git.lines import PASSES, REFUSED


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
    (checkout.root / "link.py").symlink_to("ann.py")
    (checkout.root / "up").symlink_to("src")
    for folder in ("docs", "build", "../other"):
        (checkout.root / folder).mkdir()
    checkout.reserve("ann", "ann.py", "src/ann.py")
    return checkout


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
    by_hand = ("interlock hook", "-m interlock")
    own = [command for command in REFUSED if not any(way in command for way in by_hand)]
    assert [command for command in own if standing.guard("ann", command) is not None] == []


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


# -- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "rm " + " ".join(f"file{number}" for number in range(20_000)),
        "rm bob.py; " * 20_000,
        "git merge ours; " * 500,
        "f() { f; f; f; rm bob.py; }; f",
        "a() { cd x; cd y; cd z; }; " + "a; " * 20 + "rm bob.py",
        "x=aa; " + "x=$x$x; " * 60 + "rm $x",
        "find . " + "-name x -o " * 5_000 + "-name y -delete",
        "for i in " + " ".join(map(str, range(1_000))) + "; do rm bob$i.py; done",
    ],
    ids=["words", "commands", "git", "recursion", "folders", "text", "names", "values"],
)
def test_line_that_takes_too_long_to_look_at_is_refused_in_time(standing: Checkout, command: str) -> None:
    begun = time.perf_counter()
    assert standing.guard("bob", command) is not None
    assert time.perf_counter() - begun < 5


def test_unknown_subcommands_ask_git_for_aliases_once(standing: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    answer = git.ask

    def counted(root: str, arguments: Sequence[str], **rest: Any) -> bytes:
        asked.append(arguments[0])
        return answer(root, arguments, **rest)

    monkeypatch.setattr(git, "ask", counted)
    assert standing.guard("bob", "; ".join(f"git unknown{number}" for number in range(50))) is None
    assert asked == ["config"]


# -- where a line goes ------------------------------------------------------------------------------------------------


def test_folder_that_may_not_be_there_leaves_both_possible(standing: Checkout, tmp_path: Path) -> None:
    for line in ("cd nosuch; rm ann.py", f"cd {tmp_path}/nosuch; rm -rf src", "cd docs/$X; rm ann.py"):
        assert standing.guard("bob", line) is not None, line
    for line in ("cd nosuch && rm ann.py", "mkdir -p made; cd made; rm ann.py", f"cd {tmp_path}; rm ann.py"):
        assert standing.guard("bob", line) is None, line


def test_commands_that_git_runs_in_submodules_are_judged_there(guarded: Checkout) -> None:
    guarded.write(".gitmodules", '[submodule "lib"]\n\tpath = lib\n\turl = ../lib\n')
    (guarded.root / "lib").mkdir()
    assert guarded.guard("bob", "git submodule foreach 'cd .. && git reset --hard'") is not None
    assert guarded.guard("bob", "git submodule foreach git status") is None
    assert guarded.guard("bob", "git submodule update --init") is None
    guarded.reserve("ann", "lib/app.py")
    assert guarded.guard("bob", "git submodule update --init") is not None
    assert guarded.guard("bob", "git submodule update --init other") is None


def test_named_project_hides_no_leases_of_the_repository(
    guarded: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERLOCK_PROJECT", str(tmp_path))
    env = guarded.env("bob") | {"INTERLOCK_PROJECT": str(tmp_path)}
    assert check_command("git reset --hard", str(guarded.root), env) is not None
    assert check_command("git checkout -- bob.py", str(guarded.root), env) is None


def test_hook_called_by_hand_is_refused_though_nobody_holds_anything(guarded: Checkout) -> None:
    guarded.release("ann")
    assert guarded.guard("bob", "interlock hook stop") is not None
    assert guarded.guard("bob", "interlock uninstall") is None


def test_held_file_of_an_outer_project_is_judged_by_its_leases(guarded: Checkout) -> None:
    inner = guarded.root / "inner"
    inner.mkdir()
    guarded.must("bob", "init", "-q", cwd=inner)
    guarded.reserve("ann", "lib/held.py")
    (guarded.root / "lib").mkdir()
    guarded.must("bob", "init", "-q", cwd=guarded.root / "lib")
    assert guarded.guard("bob", "rm held.py", cwd=guarded.root / "lib") is not None
    assert guarded.guard("bob", "rm own.py", cwd=inner) is None


def test_patch_that_git_cannot_read_may_change_anything(guarded: Checkout) -> None:
    (guarded.root.parent / "odd.patch").write_text("--- ann.py\n+++ ann.py\n@@ -1 +9 @@ nonsense\n")
    assert guarded.guard("bob", "patch -p0 < ../odd.patch") is not None
    assert guarded.guard("bob", "patch -p0 < ../nowhere.patch") is None
