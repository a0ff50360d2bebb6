"""Ways round the guard of shell commands and git's hooks that an adversary found.

`ann` holds `ann.py` and `src/ann.py`; bob tries what docs/coverage.md does not list as without a handle.
"""

from pathlib import Path

import pytest

from interlock.reservations import leases
from tests.reservations.git.checkout import Checkout, make


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Give a repository that is only looked at: the guard judges commands and runs none of them."""
    checkout = make(tmp_path_factory.mktemp("held"))
    (checkout.root / "sub").mkdir()
    (checkout.root / "link.py").symlink_to("ann.py")
    checkout.reserve("ann", "ann.py", "src/ann.py")
    return checkout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Give a repository with git's hooks installed."""
    checkout = make(tmp_path)
    checkout.install()
    checkout.reserve("ann", "ann.py", "src/ann.py")
    return checkout


def passed(checkout: Checkout, *commands: str) -> list[str]:
    """Return the commands that the guard lets bob run."""
    return [command for command in commands if checkout.guard("bob", command) is None]


# -- the guard -----------------------------------------------------------------------------------------------------


def test_cd_counts_only_when_the_shell_goes_there(held: Checkout) -> None:
    """Coverage: it reads `cd`. One that fails, stands in a pipe, a function or the background moves nobody."""
    assert not passed(
        held,
        "cd nosuch; git reset --hard",
        "cd /tmp | git reset --hard",
        "cd /tmp & git reset --hard",
        "f() { cd /tmp; }; git reset --hard",
        "cd sub && cd - && rm ann.py",
        "cd -- src && rm ann.py",
        "pushd sub; popd; rm ann.py",
    )


def test_quotes_inside_the_name_of_a_program_hide_nothing(held: Checkout) -> None:
    """Coverage: it reads plain commands. The reader takes quotes off, but a look at the raw text comes first."""
    assert not passed(held, "g''it reset --hard", "g\\it reset --hard", 'r"m" ann.py')


def test_checkout_named_from_above_is_as_held_as_what_is_in_it(held: Checkout) -> None:
    """Coverage: a held file removed is refused, so removing or moving the folder that holds it all is too."""
    name = held.root.name
    assert not passed(held, f"rm -rf {held.root}", f"cd .. && rm -rf {name}", f"mv ../{name} ../gone")


def test_write_through_a_symbolic_link_is_a_write_of_the_held_file(held: Checkout) -> None:
    """Coverage: a held file written by redirection is refused; the edit hook looks where links lead, the guard not."""
    assert not passed(held, "echo x > link.py", "echo x | tee link.py", "cp bob.py link.py")


def test_what_comes_through_a_pipe_may_be_anything(held: Checkout) -> None:
    """Coverage: it reads pipes and `xargs`. What is not known is refused for commands that could do harm."""
    assert not passed(
        held,
        "git ls-files | xargs rm -f",
        "find . -name ann.py | xargs git checkout --",
        "echo 'git reset --hard' | sh",
        "bash <<< 'git reset --hard'",
        "cat <<EOF | sh\ngit reset --hard\nEOF",
    )


def test_project_that_git_asks_about_is_not_changed_by_a_command(held: Checkout) -> None:
    """Coverage: what turns the hooks off is refused; with another INTERLOCK_PROJECT git's hooks see no lease at all."""
    assert not passed(held, "INTERLOCK_PROJECT=/tmp make commit", "export INTERLOCK_PROJECT=/tmp; make commit")


def test_store_of_the_leases_is_not_removed(held: Checkout) -> None:
    """Architecture §8: nothing is taken from the living; without its file every door calls everything clear."""
    assert not passed(
        held, "rm -rf .git/interlock", "rm .git/interlock/reservations.sqlite", ": > .git/interlock/reservations.sqlite"
    )


@pytest.mark.parametrize(
    ("pattern", "codes"),
    [(".git/config", ["RSV213"]), (".git/hooks/**", ["RSV213"]), (".git/info/exclude", []), (".gitignore", [])],
)
def test_what_no_edit_may_change_is_not_reserved(held: Checkout, pattern: str, codes: list[str]) -> None:
    answer = leases.reserve(held.desk, held.caller("ann"), [pattern])
    assert [row["code"] for row in answer["errors"]] == codes


# -- the guard and git's hooks together ----------------------------------------------------------------------------


def test_commit_from_another_working_tree_carries_nothing_that_is_held(checkout: Checkout, tmp_path: Path) -> None:
    """Architecture §9: a commit that carries paths held by others is refused, wherever git is told that files are."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "ann.py").write_text("bob\n")
    before = checkout.head()
    command = ("git", "--git-dir=.git", f"--work-tree={other}", "commit", "-q", "-a", "-m", "x")
    if checkout.guard("bob", " ".join(command)) is None:
        checkout.run("bob", *command)
    assert checkout.head() == before


@pytest.mark.parametrize(
    "command", ["git update-ref -d refs/stash", "git reflog delete --updateref --rewrite stash@{0}"]
)
def test_stash_with_held_work_is_not_thrown_away_by_plumbing(checkout: Checkout, command: str) -> None:
    """Architecture §9: dropping a neighbour's stash is refused by `stash drop`, and no door sees the same by name."""
    checkout.write("ann.py", "unsaved\n")
    checkout.must("ann", "stash", "-q")
    if checkout.guard("bob", command) is None:
        checkout.run("bob", *command.split())
    assert checkout.must("ann", "stash", "list")
