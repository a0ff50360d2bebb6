"""Which project a file belongs to: the file says so, wherever the agent works."""

from pathlib import Path

import pytest

from interlock.reservations.service import open_reservations
from tests.reservations.hooks.checkout import Checkout, make

PATCH = "*** Begin Patch\n*** Update File: c.py\n@@\n-one\n+two\n*** End Patch"


@pytest.mark.parametrize("first", ["above", "inside"])
def test_submodule_file_has_one_holder_from_above_and_inside(checkout: Checkout, library: Checkout, first: str) -> None:
    """Architecture: two exclusive holders must be impossible."""
    folders = [checkout.root, library.root]
    one, two = folders if first == "above" else reversed(folders)
    file = library.root / "src" / "c.py"
    assert checkout.edit("ann", file, cwd=one).status == 0
    ran = checkout.edit("bob", file, cwd=two)
    assert ran.status == 2
    assert "claude-ann" in ran.err
    assert library.leases == {"src/c.py": "claude-ann"}


def test_file_of_a_repository_inside_a_folder_without_git_has_one_holder(tmp_path: Path) -> None:
    above = Checkout(tmp_path.resolve() / "above")
    inner = make(above.root / "inner")
    (above.root / "interlock.toml").write_text("")
    assert above.edit("ann", "inner/src/c.py").status == 0
    assert inner.edit("bob", "src/c.py").status == 2


def test_what_is_held_from_above_is_refused_inside_too(checkout: Checkout, library: Checkout) -> None:
    checkout.agent("ann").reserve_files(["lib/**"])
    ran = library.edit("bob", "src/c.py")
    assert ran.status == 2
    assert f"cd '{checkout.root}' && interlock negotiate 'lib/src/c.py'" in ran.err


def test_an_edit_one_project_refuses_leaves_nothing_reserved_in_another(checkout: Checkout, library: Checkout) -> None:
    checkout.agent("ann").reserve_files(["lib/**"])
    assert library.edit("bob", "src/c.py").status == 2
    assert library.leases == {}


def test_a_project_around_that_never_had_a_store_gets_none(checkout: Checkout, library: Checkout) -> None:
    assert library.edit("ann", "src/c.py").status == 0
    assert not (checkout.root / ".git" / "interlock").exists()


@pytest.mark.parametrize("elsewhere", ["a folder without git", "another repository"])
def test_held_file_is_refused_to_an_agent_elsewhere(checkout: Checkout, tmp_path: Path, elsewhere: str) -> None:
    """Architecture: an edit of a path that another agent holds is refused; a `cd` does not change that."""
    folder = tmp_path.resolve() / "elsewhere"
    if elsewhere == "another repository":
        make(folder)
    else:
        folder.mkdir()
    assert checkout.edit("ann", "a.py").status == 0
    assert checkout.edit("bob", checkout.root / "a.py", cwd=folder).status == 2
    assert not (folder / ".interlock").exists()


def test_a_file_of_no_project_is_not_reserved_and_no_store_is_made(checkout: Checkout, tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "notes"
    folder.mkdir()
    assert checkout.edit("ann", folder / "plan.md").status == 0
    assert list(folder.iterdir()) == []
    assert not (checkout.root / ".git" / "interlock").exists()


def test_requests_of_another_project_are_shown_with_its_folder(checkout: Checkout, library: Checkout) -> None:
    assert checkout.edit("ann", library.root / "src" / "c.py").status == 0
    assert library.agent("bob").negotiate_release("src/c.py", "mine next")["status"] == "pending"
    said = checkout.edit("ann", library.root / "src" / "c.py").context
    assert str(library.root) in said
    assert "interlock inbox" in said


def test_a_command_is_judged_in_the_folder_its_call_names(checkout: Checkout) -> None:
    assert checkout.edit("ann", "src/c.py").status == 0
    call = checkout.call("bob", "run_shell_command", {"command": "rm -rf ../.git", "dir_path": "src"})
    assert checkout.hook("pre-edit", call, "--client", "gemini").status == 2


# -- the tools and the command line --------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "there"), [("lib/src/c.py", "src/c.py"), ("lib/src/**", "src/**"), ("lib", "**")])
def test_an_inner_repository_reserves_its_own(checkout: Checkout, library: Checkout, asked: str, there: str) -> None:
    answer = open_reservations(str(checkout.root), name="ann").reserve_files([asked, "a.py"])
    (refusal,) = answer["errors"]
    assert (refusal["code"], refusal["place"]) == ("RSV101", "patterns[0]")
    assert refusal["fix"] == f"Reserve it there: `cd '{library.root}' && interlock reserve '{there}'`."
    assert checkout.leases == {}
    assert open_reservations(str(library.root), name="ann").reserve_files([there])["errors"] == []
    assert library.leases == {there: "ann"}


def test_a_pattern_over_repositories_inside_is_granted_and_holds_there(checkout: Checkout, library: Checkout) -> None:
    assert open_reservations(str(checkout.root), name="ann").reserve_files(["**/c.py"])["errors"] == []
    assert library.edit("bob", "src/c.py").status == 2
