"""Which project a path belongs to; git itself is asked for the truth."""

import os
import stat
from pathlib import Path

import pytest

from interlock.core.project import NoProject, find_root
from interlock.core.project import counts as mark_counts
from interlock.reservations import place
from tests.child import git
from tests.table import each_row


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "main"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "x").write_text("")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


def from_git(folder: Path) -> tuple[str, str]:
    root, common = git(
        folder, "rev-parse", "--show-toplevel", "--path-format=absolute", "--git-common-dir"
    ).splitlines()
    return root, common


@pytest.mark.parametrize("start", [".", "deep", "deep/er", "deep/x", "not/there/yet"])
def test_the_checkout_is_found_from_anywhere_inside(repository: Path, start: str) -> None:
    found = place.find(str(repository / start))
    assert (found.root, found.common) == from_git(repository)
    assert found.store_path == f"{repository}/.git/interlock/reservations.sqlite"


def test_linked_worktrees_share_the_store(repository: Path) -> None:
    tree = repository.parent / "tree"
    git(repository, "worktree", "add", "-q", str(tree))
    found = place.find(str(tree / "deep"))
    assert (found.root, found.common) == from_git(tree)
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
    assert (found.root, found.common) == from_git(repository / "sub")
    assert found.store_path != place.find(str(repository)).store_path


def test_a_repository_with_its_git_folder_elsewhere(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "root"
    root.mkdir()
    git(root, "init", "-q", "--separate-git-dir", str(tmp_path / "elsewhere"))
    found = place.find(str(root))
    assert (found.root, found.common) == from_git(root)
    assert place.main_root(str(root)) == str(root)


def test_every_command_goes_by_the_project_that_the_environment_names(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    monkeypatch.setenv("INTERLOCK_PROJECT", str(repository))
    assert Path(find_root("")) == repository == Path(place.find(str(other)).root)
    monkeypatch.setenv("INTERLOCK_PROJECT", str(tmp_path / "gone"))
    with pytest.raises(NoProject):
        find_root("")


def test_links_lead_to_the_real_folder(repository: Path) -> None:
    link = repository.parent / "link"
    link.symlink_to(repository / "deep")
    assert place.find(str(link)).root == str(repository)


@pytest.mark.parametrize("text", ["", "nonsense", "gitdir: /no/such/folder", "gitdir:"])
def test_a_git_file_that_leads_nowhere_is_no_repository(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").write_text(text)
    found = place.find(str(tmp_path / "below"))
    assert (found.root, found.common) == (find_root(str(tmp_path / "below")), "")


@pytest.mark.parametrize("mark", ["interlock.toml", ".interlock"])
def test_without_git_the_nearest_mark_counts(tmp_path: Path, mark: str) -> None:
    base = tmp_path.resolve()
    (base / "a" / "b").mkdir(parents=True)
    (base / "a" / mark).mkdir()
    found = place.find(str(base / "a" / "b"))
    assert (found.root, found.common) == (str(base / "a"), "")
    assert found.store_path == str(base / "a" / ".interlock" / "reservations.sqlite")


def status(owner: int, mode: int = 0o40755) -> os.stat_result:
    """Return what is known of a file or folder of somebody."""
    return os.stat_result((mode, 0, 0, 1, owner, owner, 0, 0, 0, 0))


@each_row(
    ("mark", "folder", "user", "counts"),
    [
        (status(1000), status(1000), 1000, True),
        (status(0), status(0), 1000, True),
        (status(1000), status(0), 1000, True),
        (status(1001), status(0), 1000, False),
        (status(1001), status(1001), 1000, False),
        (status(1000), status(1000), 0, True),
        (status(1001), status(1000), 0, False),
        (status(1000), status(0), 0, False),
        (status(1000), status(0, 0o41777), 1000, False),
        (status(0), status(0, 0o41777), 0, False),
        (status(1000), status(1000, 0o40777), 1000, True),
        (status(1001), status(1000, 0o40777), 1000, False),
        (status(1000), status(1000, 0o43770), 1000, True),
    ],
)
def test_a_mark_counts_that_the_user_or_root_put_into_a_folder_that_not_all_share(
    mark: os.stat_result, folder: os.stat_result, user: int, counts: bool
) -> None:
    assert mark_counts(mark, folder, user=user) is counts


@pytest.mark.parametrize("mark", ["interlock.toml", ".interlock"])
def test_no_mark_in_a_folder_that_all_share_joins_what_is_below(repository: Path, mark: str) -> None:
    (repository.parent / mark).mkdir()
    (repository.parent / ".interlock").mkdir(exist_ok=True)
    (repository.parent / ".interlock" / "reservations.sqlite").touch()
    repository.parent.chmod(0o1777)
    own = place.find(str(repository))
    assert place.around(str(repository / "x"), own) == [own]
    plain = repository.parent / "plain"
    plain.mkdir()
    assert place.find(str(plain)).root == str(plain)
    assert place.find(str(repository.parent)).root == str(repository.parent)
    repository.parent.chmod(0o700)
    assert [row.root for row in place.around(str(repository / "x"), own)] == [own.root, str(repository.parent)]


def test_a_mark_in_the_home_folder_joins_nothing_below(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = repository.parent
    (base / ".interlock").mkdir()
    (base / ".interlock" / "reservations.sqlite").touch()
    own = place.find(str(repository))
    assert [row.root for row in place.around(str(repository / "x"), own)] == [own.root, str(base)]
    assert [row.root for row in place.around(str(base / "x"), own)] == [str(base)]
    monkeypatch.setenv("HOME", str(base))
    assert place.around(str(repository / "x"), own) == [own]
    here = place.find(str(base))
    assert here.root == str(base)
    assert place.around(str(base / "x"), here) == [here]


def test_a_mark_of_another_user_joins_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "interlock.toml").touch()
    (tmp_path / "deep").mkdir()
    assert place.find(str(tmp_path / "deep")).root == str(tmp_path.resolve())
    real = os.lstat
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    others = status(1001, stat.S_IFREG | 0o644)
    monkeypatch.setattr(os, "lstat", lambda path: others if str(path).endswith(".toml") else real(path))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert place.find(str(tmp_path / "deep")).root == str(tmp_path.resolve() / "deep")


def test_without_anything_it_is_here_and_a_folder_named_git_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert (place.find(str(tmp_path)).root, place.find(str(tmp_path)).common) == (str(tmp_path.resolve()), "")


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


def test_the_rules_of_a_store_come_from_the_main_worktree(repository: Path) -> None:
    git(repository, "worktree", "add", "-q", "../tree")
    for root in (repository, repository.parent / "tree"):
        assert place.main_root(str(root)) == str(repository)
    assert place.main_root(str(repository / "deep")) == str(repository / "deep")


def test_the_rules_of_a_submodule_are_its_own(repository: Path) -> None:
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository), "sub")
    sub = repository / "sub"
    git(sub, "worktree", "add", "-q", "../../tree")
    for root in (sub, repository.parent / "tree"):
        assert place.main_root(str(root)) == str(sub)


def test_no_worktree_of_a_bare_repository_speaks_for_the_others(repository: Path) -> None:
    git(repository.parent, "clone", "-q", "--bare", str(repository), "bare.git")
    bare = repository.parent / "bare.git"
    git(bare, "worktree", "add", "-q", "../tree", "HEAD", "--detach")
    assert place.main_root(str(repository.parent / "tree")) == str(bare)


@pytest.fixture
def inner(repository: Path) -> Path:
    """Give a repository inside the other one, which knows nothing of it."""
    root = repository / "vendor" / "inner"
    root.mkdir(parents=True)
    git(root, "init", "-q")
    return root


@pytest.mark.parametrize("start", [".", "vendor/inner", "deep"])
def test_a_file_belongs_to_the_innermost_repository_from_everywhere(repository: Path, inner: Path, start: str) -> None:
    here = place.find(str(repository / start))
    (first, *_) = place.around(str(inner / "x"), here)
    assert first == place.find(str(inner))


def test_projects_around_a_file_follow_where_they_have_a_store(repository: Path, inner: Path) -> None:
    own = place.find(str(inner))
    assert place.around(str(repository.parent / "x"), own) == []
    assert place.around(str(inner / "x"), own) == [own]
    above = place.find(str(repository))
    assert place.around(str(inner / "x"), above) == [own, above]
    Path(above.store_path).parent.mkdir()
    Path(above.store_path).touch()
    assert place.around(str(inner / "x"), own) == [own, above]


def test_a_named_project_has_its_files_alone(repository: Path, inner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_PROJECT", str(repository))
    here = place.find("/")
    assert place.around(str(inner / "x"), here) == [here]


@pytest.mark.parametrize(
    ("path", "found"),
    [("vendor/inner/x", True), ("vendor/inner", True), ("vendor/inner/no/such", True), ("vendor", False), ("", False)],
)
def test_a_path_in_a_repository_inside_is_seen(repository: Path, inner: Path, path: str, found: bool) -> None:
    seen = place.nested(str(repository), path)
    assert (seen == place.find(str(inner))) if found else (seen is None)


def test_only_a_repository_below_is_a_project(repository: Path, inner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(repository, "worktree", "add", "-q", "trees/t")
    assert place.other_below(str(repository), "vendor/inner/x") == "vendor/inner"
    assert place.other_below(str(repository), "trees/t/x") == ""
    assert place.other_below(str(repository), "deep/x") == ""
    monkeypatch.setenv("INTERLOCK_PROJECT", str(repository))
    assert place.other_below(str(repository), "vendor/inner/x") == ""


def test_a_repository_is_the_same_place_when_git_names_its_folder(repository: Path) -> None:
    git(repository, "worktree", "add", "-q", "../tree")
    tree = repository.parent / "tree"
    for root in (repository, tree):
        folder = git(root, "rev-parse", "--absolute-git-dir").strip()
        assert place.git_dir_of(str(root)) == folder
    assert place.git_dir_of(str(repository / "deep")) == str(repository / "deep" / ".git")
