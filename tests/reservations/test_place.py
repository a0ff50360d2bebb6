"""Which project a path belongs to; git itself is asked for the truth."""

from pathlib import Path

import pytest

from interlock.reservations import place
from interlock.reservations.errors import NoProject
from tests.reservations.hooks.checkout import git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "main"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "x").write_text("")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


def told_by_git(folder: Path) -> tuple[str, str]:
    root, common = git(
        folder, "rev-parse", "--show-toplevel", "--path-format=absolute", "--git-common-dir"
    ).splitlines()
    return root, common


@pytest.mark.parametrize("start", [".", "deep", "deep/er", "deep/x", "not/there/yet"])
def test_the_checkout_is_found_from_anywhere_inside(repository: Path, start: str) -> None:
    found = place.find(str(repository / start))
    assert (found.root, found.common) == told_by_git(repository)
    assert found.store_path == f"{repository}/.git/interlock/reservations.sqlite"


def test_linked_worktrees_share_the_store(repository: Path) -> None:
    tree = repository.parent / "tree"
    git(repository, "worktree", "add", "-q", str(tree))
    found = place.find(str(tree / "deep"))
    assert (found.root, found.common) == told_by_git(tree)
    assert found.store_path == place.find(str(repository)).store_path


def test_a_worktree_that_was_moved_is_still_found(repository: Path) -> None:
    git(repository, "worktree", "add", "-q", "../tree")
    git(repository, "worktree", "move", "../tree", "../moved")
    assert place.find(str(repository.parent / "moved")).common == str(repository / ".git")


def test_a_submodule_is_a_project_of_its_own(repository: Path) -> None:
    inner = repository.parent / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-q", "--allow-empty", "-m", "x")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    found = place.find(str(repository / "sub"))
    assert (found.root, found.common) == told_by_git(repository / "sub")
    assert found.store_path != place.find(str(repository)).store_path


def test_a_repository_with_its_git_folder_elsewhere(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "root"
    root.mkdir()
    git(root, "init", "-q", "--separate-git-dir", str(tmp_path / "elsewhere"))
    found = place.find(str(root))
    assert (found.root, found.common) == told_by_git(root)


def test_links_lead_to_the_real_folder(repository: Path) -> None:
    link = repository.parent / "link"
    link.symlink_to(repository / "deep")
    assert place.find(str(link)).root == str(repository)


@pytest.mark.parametrize("text", ["", "nonsense", "gitdir: /no/such/folder", "gitdir:"])
def test_a_git_file_that_leads_nowhere_is_no_repository(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").write_text(text)
    assert place.find(str(tmp_path)).common == ""


def test_a_folder_named_git_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert place.find(str(tmp_path)).common == ""


@pytest.mark.parametrize("mark", ["interlock.toml", ".interlock"])
def test_without_git_the_nearest_mark_counts(tmp_path: Path, mark: str) -> None:
    base = tmp_path.resolve()
    (base / "a" / "b").mkdir(parents=True)
    (base / "a" / mark).mkdir()
    found = place.find(str(base / "a" / "b"))
    assert (found.root, found.common) == (str(base / "a"), "")
    assert found.store_path == str(base / "a" / ".interlock" / "reservations.sqlite")


def test_without_anything_it_is_here(tmp_path: Path) -> None:
    assert place.find(str(tmp_path)).root == str(tmp_path.resolve())


def test_a_named_project_goes_before_all(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = repository.parent / "other"
    other.mkdir()
    monkeypatch.setenv("INTERLOCK_PROJECT", str(other))
    assert place.find(str(repository)) == place.Place(str(other), "", f"{other}/.interlock/reservations.sqlite")
    monkeypatch.setenv("INTERLOCK_PROJECT", str(repository))
    assert place.find("/").common == str(repository / ".git")


def test_a_named_project_that_is_no_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_PROJECT", str(tmp_path / "none"))
    with pytest.raises(NoProject) as caught:
        place.find(str(tmp_path))
    assert caught.value.code == "RSV905"
    assert caught.value.fix


@pytest.mark.parametrize(
    ("path", "inside"), [("/a", True), ("/a/b", True), ("/ab", False), ("/", False), ("/b/a", False)]
)
def test_inside_is_counted_in_parts(path: str, inside: bool) -> None:
    assert place.inside("/a", path) is inside
    assert place.inside("/", path) is True
