"""Nothing is called clean while its work may be unsaved in any checkout; git itself is asked."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlock.reservations.git import commands
from interlock.reservations.git.checkouts import unsaved
from interlock.reservations.service import Reservations, open_reservations
from tests.child import git
from tests.reservations.hooks.checkout import Checkout, make, with_library


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Give a checkout with a worktree `tree` beside it and a submodule `lib`."""
    found = make(tmp_path.resolve() / "project")
    with_library(found)
    git(found.root, "worktree", "add", "-q", "../tree")
    return found


PATTERNS = ("src/c.py", "src/**", "other.py", "lib/src/c.py", "lib/**", "lib", "**")


def dirty(checkout: Checkout) -> set[str]:
    """Return the patterns that cover unsaved work; the others are known to be clean."""
    found = unsaved(str(checkout.root), PATTERNS)
    assert None not in found.values()
    return {text for text, is_dirty in found.items() if is_dirty}


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("../origin/src/c.py", set[str]()),
        ("../tree/src/c.py", {"src/c.py", "src/**", "**"}),
        ("src/c.py", {"src/c.py", "src/**", "**"}),
        ("lib/src/new.py", {"lib/**", "lib", "**"}),
    ],
)
def test_work_in_any_worktree_counts_and_in_a_submodule_for_the_files_that_it_is_in(
    checkout: Checkout, file: str, found: set[str]
) -> None:
    assert dirty(checkout) == set()
    (checkout.root / file).write_text("unsaved\n")
    assert dirty(checkout) == found


def test_what_git_does_not_know_is_not_known(checkout: Checkout) -> None:
    (checkout.root / "lib" / ".git").unlink()
    (checkout.root / ".git" / "index").write_bytes(b"damaged")
    assert set(unsaved(str(checkout.root), PATTERNS).values()) == {None}


def test_a_worktree_that_git_cannot_read_makes_nothing_clean(checkout: Checkout) -> None:
    (checkout.root / ".git" / "worktrees" / "tree" / "index").write_bytes(b"damaged")
    (checkout.root / "src" / "c.py").write_text("unsaved\n")
    assert unsaved(str(checkout.root), ["src/c.py", "other.py"]) == {"src/c.py": True, "other.py": None}


def test_outside_of_git_nothing_is_known(tmp_path: Path) -> None:
    assert unsaved(str(tmp_path), ["a.py"]) == {"a.py": None}


def test_what_was_not_looked_into_in_time_is_not_known(checkout: Checkout) -> None:
    (checkout.root / "src" / "c.py").write_text("unsaved\n")
    assert unsaved(str(checkout.root), ["src/c.py", "other.py"], 0) == {"src/c.py": True, "other.py": None}


def test_a_folder_of_several_repositories_asks_the_one_that_a_file_is_in(checkout: Checkout) -> None:
    workspace, name = checkout.root.parent, checkout.root.name
    asked = [f"{name}/src/c.py", f"{name}/**", "no/repository.py"]
    assert unsaved(str(workspace), asked) == dict(zip(asked, (False, False, None), strict=True))
    (workspace / "tree" / "src" / "c.py").write_text("unsaved\n")
    assert unsaved(str(workspace), asked) == dict(zip(asked, (True, True, None), strict=True))


IGNORED = ".env", "src/*.local", "cache/", "keys/"
HELD = (".env", "src/a.local", "src/**", "cache/x.bin", "cache/**", "keys/no", "keys/*.pem", "**", "src/c.py")


@pytest.mark.parametrize(
    ("file", "found"),
    [
        (".env", {".env", "**"}),
        ("src/a.local", {"src/a.local", "src/**", "**"}),
        ("cache/x.bin", {"cache/x.bin", "cache/**"}),
        ("cache/deep/y.bin", {"cache/**"}),
        ("keys/a.pem", {"keys/*.pem"}),
        ("keys/a.pub", {"keys/*.pem"}),
    ],
)
def test_an_ignored_file_that_exists_is_unsaved_and_one_of_an_ignored_folder_for_who_named_it(
    tmp_path: Path, file: str, found: set[str]
) -> None:
    root = make(tmp_path.resolve() / "project").root
    (root / ".gitignore").write_text("\n".join(IGNORED))
    git(root, "add", ".gitignore")
    git(root, "commit", "-qm", "ignored")
    assert set(commands.dirty(str(root), HELD).values()) == {False}
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text("in no commit\n")
    assert {text for text, is_dirty in commands.dirty(str(root), HELD).items() if is_dirty} == found


@contextmanager
def opened(checkout: Checkout, name: str) -> Generator[Reservations, None, None]:
    """Give the calls of an agent as the commands have them."""
    found = open_reservations(str(checkout.root), name=name)
    yield found
    found.runtime.store.close()


def test_an_edit_of_a_file_with_unsaved_work_of_another_says_so_before_it_and_once(checkout: Checkout) -> None:
    """What is in another worktree stays there, and what the agent had itself is its own."""
    (checkout.root / "../tree/other.py").write_text("unsaved\n")
    for name in ("one", "two"):
        assert "had uncommitted changes" not in checkout.edit(name, "other.py").context
        checkout.agent(f"claude-{name}").release_all()
    assert checkout.edit("one", "src/c.py").status == 0
    (checkout.root / "src" / "c.py").write_text("unsaved\n")
    with opened(checkout, "claude-one") as own:
        assert own.release_all().get("unsaved", {})["patterns"] == ["src/c.py"]
    said = checkout.edit("two", "src/c.py").context
    assert "claude-one had it before you" in said
    assert "git status -vv -- src/c.py" in said
    assert "uncommitted" not in checkout.edit("two", "src/c.py").context
