"""A cheating, careless or unlucky agent against the edit hook and the release of clean files."""

from pathlib import Path

import pytest

from tests.reservations.hooks.checkout import Checkout, git

PATCH = "*** Begin Patch\n*** Update File: app.py\n@@\n-one\n+two\n*** End Patch"


def make(root: Path) -> Checkout:
    """Make a git checkout with one commit."""
    (root / "src").mkdir(parents=True)
    for name in ("ann.py", "bob.py", "src/app.py"):
        (root / name).write_text("one\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return Checkout(root)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return make(tmp_path.resolve() / "project")


@pytest.fixture
def nested(checkout: Checkout, tmp_path: Path) -> Checkout:
    """Give a checkout with a submodule `lib`."""
    library = make(tmp_path.resolve() / "library")
    git(checkout.root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.root), "lib")
    git(checkout.root, "commit", "-qm", "lib")
    return checkout


# -- which file is meant -------------------------------------------------------------------------------------------


def test_file_of_a_submodule_has_one_holder_from_above_and_from_inside(nested: Checkout) -> None:
    """Architecture §8: two exclusive holders must be impossible; here each looks into a store of its own."""
    file = nested.root / "lib" / "src" / "app.py"
    assert nested.edit("ann", file).status == 0
    assert nested.edit("bob", file, cwd=nested.root / "lib").status == 2


@pytest.mark.parametrize("elsewhere", ["a folder without git", "another repository"])
def test_held_file_is_refused_to_an_agent_that_works_elsewhere(
    checkout: Checkout, tmp_path: Path, elsewhere: str
) -> None:
    """Architecture §9: an edit of a path that another agent holds is refused; a `cd` in Bash must not change that."""
    folder = tmp_path.resolve() / "elsewhere"
    if elsewhere == "another repository":
        make(folder)
    else:
        folder.mkdir()
    assert checkout.edit("ann", "ann.py").status == 0
    assert checkout.edit("bob", checkout.root / "ann.py", cwd=folder).status == 2


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("shell", {"command": ["bash", "-lc", "rm app.py"], "workdir": "src"}),
        ("shell", {"command": ["apply_patch", PATCH], "workdir": "src"}),
        ("exec_command", {"cmd": "rm app.py", "workdir": "src"}),
        ("run_shell_command", {"command": "rm app.py", "dir_path": "src"}),
    ],
    ids=("codex-shell", "codex-patch", "codex-exec", "gemini"),
)
def test_folder_that_a_shell_tool_names_is_where_its_command_is_judged(
    checkout: Checkout, tool: str, arguments: dict[str, object]
) -> None:
    """Architecture §9: the same program for Codex and Gemini CLI, whose shell tools name the folder in the call."""
    assert checkout.edit("ann", "src/app.py").status == 0
    assert checkout.hook("pre-edit", checkout.call("bob", tool, arguments)).status == 2


# -- given up while it is dirty ------------------------------------------------------------------------------------


def _asked_for(checkout: Checkout, file: str) -> None:
    """Let bob ask for a file that ann holds, and ann go on with another one, where clean files are handed over."""
    assert checkout.agent("bob").negotiate_release(file, "mine next")["status"] == "pending"
    edit = checkout.call("ann", "Edit", {"file_path": "bob.py"})
    assert checkout.hook("pre-edit", edit, INTERLOCK_AUTO_RELEASE="clean").status == 0


def test_unsaved_work_in_another_worktree_is_not_handed_over_as_clean(checkout: Checkout) -> None:
    """PRD F2: with uncommitted changes the agent retains the reservation, in whichever worktree it has them."""
    git(checkout.root, "worktree", "add", "-q", ".worktrees/ann")
    file = checkout.root / ".worktrees" / "ann" / "src" / "app.py"
    assert checkout.edit("ann", file).status == 0
    file.write_text("unsaved\n")
    _asked_for(checkout, "src/app.py")
    assert checkout.leases["src/app.py"] == "claude-ann"


def test_unsaved_work_in_a_submodule_is_not_handed_over_as_clean(nested: Checkout) -> None:
    """PRD F2: git says only that `lib` has changed content, which is no reason to call `lib/src/app.py` clean."""
    file = nested.root / "lib" / "src" / "app.py"
    assert nested.edit("ann", file).status == 0
    file.write_text("unsaved\n")
    _asked_for(nested, "lib/src/app.py")
    assert nested.leases["lib/src/app.py"] == "claude-ann"
