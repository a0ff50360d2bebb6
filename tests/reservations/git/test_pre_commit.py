"""Git's pre-commit hook: a commit carries no path that another agent holds."""

from pathlib import Path

import pytest

from tests.reservations.git.checkout import Checkout


def test_commit_with_a_foreign_path_is_refused_and_names_path_holder_and_way_out(checkout: Checkout) -> None:
    checkout.write("ann.py", "two\n")
    checkout.must("bob", "add", "ann.py")
    done = checkout.git("bob", "commit", "-m", "x")
    assert done.status == 1
    for part in ("RSV207", "ann.py is held by ann (alive", "rewriting it", "interlock commit", "negotiate"):
        assert part in done.err


def test_own_commit_passes_without_a_word(checkout: Checkout) -> None:
    checkout.write("bob.py", "two\n")
    done = checkout.git("bob", "commit", "-q", "-m", "x", "--", "bob.py")
    assert (done.status, done.out, done.err) == (0, "", "")


def test_holder_commits_what_it_holds(checkout: Checkout) -> None:
    checkout.write("ann.py", "two\n")
    assert checkout.git("ann", "commit", "-q", "-a", "-m", "x").status == 0


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param([["rm", "-q", "ann.py"]], id="deletion"),
        pytest.param([["rm", "-q", "ann.py"], ["mv", "bob.py", "ann.py"]], id="rename onto"),
        pytest.param([["update-index", "--cacheinfo", "160000,{head},src/ann.py"]], id="submodule"),
    ],
)
def test_every_kind_of_change_counts(checkout: Checkout, prepare: list[list[str]]) -> None:
    for command in prepare:
        checkout.must("bob", *(word.format(head=checkout.head()) for word in command))
    before = checkout.head()
    assert checkout.git("bob", "commit", "-m", "x").status == 1
    assert checkout.head() == before


def test_first_commit_of_a_repository_is_judged(bare: Checkout) -> None:
    bare.install()
    bare.must("bob", "checkout", "-q", "--orphan", "fresh")
    bare.reserve("ann", "ann.py")
    assert bare.git("bob", "commit", "-m", "x").status == 1
    assert bare.git("bob", "commit", "-m", "x", "--no-verify").status != 0
    bare.must("bob", "rm", "-q", "--cached", "ann.py")
    assert bare.git("bob", "commit", "-q", "-m", "x").status == 0


def test_commit_in_a_linked_worktree_is_judged_by_the_same_leases(checkout: Checkout, tmp_path: Path) -> None:
    other = tmp_path / "other"
    checkout.must("bob", "worktree", "add", "-q", str(other), "-b", "side")
    (other / "src" / "ann.py").write_text("two\n")
    assert checkout.git("bob", "commit", "-a", "-m", "x", cwd=other / "src").status == 1
    checkout.must("bob", "checkout", "-q", "--", ".", cwd=other)
    (other / "bob.py").write_text("two\n")
    assert checkout.git("bob", "commit", "-q", "-a", "-m", "x", cwd=other).status == 0


@pytest.mark.parametrize("name", ["a\nb.py", "[x]{y}.py", "bad-\udcff.py"])
def test_odd_file_names_are_seen(checkout: Checkout, name: str) -> None:
    checkout.write(f"odd/{name}", "x\n")
    checkout.reserve("ann", "odd/**")
    checkout.must("bob", "add", "odd")
    done = checkout.git("bob", "commit", "-m", "x")
    assert (done.status, "held by ann" in done.err) == (1, True)


def test_dead_store_refuses_and_says_how_to_go_on(checkout: Checkout) -> None:
    store = checkout.root / ".git" / "interlock" / "reservations.sqlite"
    store.write_bytes(b"garbage" * 1000)
    checkout.write("bob.py", "two\n")
    done = checkout.git("bob", "commit", "-a", "-m", "x")
    assert (done.status, "RSV902" in done.err, "fix:" in done.err) == (1, True, True)


def test_project_without_a_store_commits_as_ever(bare: Checkout) -> None:
    bare.install()
    bare.write("bob.py", "two\n")
    done = bare.git("bob", "commit", "-q", "-a", "-m", "x")
    assert (done.status, done.out, done.err) == (0, "", "")
    assert not (bare.root / ".git" / "interlock").exists()


def test_refusal_is_recorded_without_content(checkout: Checkout) -> None:
    checkout.write("ann.py", "secret words\n")
    checkout.git("bob", "commit", "-a", "-m", "secret message")
    (event,) = checkout.events("guard_refused")
    assert (event["agent"], "ann.py" in event["paths"], "secret" in str(event)) == ("bob", True, False)
