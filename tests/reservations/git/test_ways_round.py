"""Ways round the guard of shell commands and git's hooks that an adversary found.

`ann` holds `ann.py` and `src/ann.py`; bob tries what docs/coverage.md does not list as without a handle.
"""

from pathlib import Path

import pytest

from interlock.reservations.leases import calls
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


@pytest.mark.parametrize(
    ("pattern", "codes"),
    [(".git/config", ["RSV213"]), (".git/hooks/**", ["RSV213"]), (".git/info/exclude", []), (".gitignore", [])],
)
def test_what_no_edit_may_change_is_not_reserved(held: Checkout, pattern: str, codes: list[str]) -> None:
    answer = calls.reserve(held.runtime, held.caller("ann"), [pattern])
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
