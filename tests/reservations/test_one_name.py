"""A file has one name through every entry point: the command line, the tools, the edit hook, git's hooks."""

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlock.cli.main import interlock
from interlock.core.finding import Finding
from interlock.core.patterns import Pattern
from interlock.reservations import place
from interlock.reservations.git import foreign_leases
from interlock.reservations.git.commit import commit
from interlock.reservations.hooks import client_hook
from interlock.reservations.leases import arguments
from interlock.reservations.service import Reservations, open_reservations
from tests.child import git
from tests.reservations.world import codes


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a checkout with links, a worktree `.trees/t`, another repository `lib`, and names with combining marks."""
    base = tmp_path_factory.mktemp("names").resolve()
    root = base / "root"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "app.py").write_text("one\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    git(root, "worktree", "add", "-q", ".trees/t")
    git(root, "worktree", "add", "-q", "../beside")
    for folder in ("lib", ".trees/t/other"):
        git(root, "init", "-q", folder)
    (base / "outside").mkdir()
    (base / "outside" / "x.py").touch()
    (root / "données").mkdir()
    leads = {
        "link": "src",
        "chain": "link",
        "src/deep/up": "../..",
        "tree": ".trees/t",
        "wide": "../beside",
        "inner": "lib",
        "alias.py": "src/app.py",
        "gone.py": "src/none.py",
        "out": "../outside",
        "out.py": "../outside/x.py",
        "marks": "données",
        "round": "round",
    }
    for name, target in leads.items():
        (root / name).symlink_to(target)
    return root


@pytest.fixture
def typed(project: Path) -> Callable[[str], Pattern | Finding]:
    mine = open_reservations(str(project), name="ann")
    return lambda text: arguments.typed(mine, text)


def hooked(project: Path, path: str, cwd: str = ".") -> list[str]:
    """Return by which names the edit hook holds a file in the project's own store."""
    here = place.find(str(project))
    rows = client_hook.located(here, str(project / cwd), [path])
    return sorted(name for found, names in rows.items() if found.store_path == here.store_path for name in names)


FILES = {
    "src/app.py": ["src/app.py"],
    "link/app.py": ["src/app.py"],
    "chain/deep/new/a.py": ["src/deep/new/a.py"],
    "src/deep/up/src/app.py": ["src/app.py"],
    ".trees/t/src/app.py": ["src/app.py"],
    ".trees/t/new.py": ["new.py"],
    "tree/src/app.py": ["src/app.py"],
    "wide/src/app.py": ["src/app.py"],
    "alias.py": ["alias.py", "src/app.py"],
    "link/../alias.py": ["alias.py", "src/app.py"],
    "gone.py": ["gone.py", "src/none.py"],
    "out.py": ["out.py"],
    "round/x": ["round/x"],
    "inner/x.py": ["lib/x.py"],
    ".trees/t/other/x.py": ["other/x.py"],
    "marks/x.py": ["données/x.py"],
}


@pytest.mark.parametrize("path", FILES)
def test_what_is_typed_and_what_is_held_has_one_name(project: Path, typed: Callable[[str], Pattern], path: str) -> None:
    found = typed(path.removeprefix("link/../"))
    names = "{" + ",".join(FILES[path]) + "}" if len(FILES[path]) > 1 else FILES[path][0]
    assert found.text == names
    assert hooked(project, path) == FILES[path]


@pytest.mark.parametrize(
    ("text", "held_as"),
    [
        ("link/**", "src/**"),
        ("link/", "src/**"),
        ("link", "{link,src/**}"),
        ("link/*.py", "src/*.py"),
        ("{link,src}/app.py", "src/app.py"),
        ("{link/a,lib}/*.py", "{lib/*.py,src/a/*.py}"),
        ("l*k/app.py", "l*k/app.py"),
        (".trees/t", "**"),
        (".trees/t/**", "**"),
        (".trees/t/*.py", "*.py"),
        (".trees/t/src", "src/**"),
        ("tree", "**"),
        ("new/", "new/**"),
        ("marks", "{données/**,marks}"),
    ],
)
def test_a_pattern_takes_the_name_of_what_comes_before_its_first_wildcard(
    typed: Callable[[str], Pattern], text: str, held_as: str
) -> None:
    assert typed(text).text == held_as
    assert typed(held_as).text == held_as, "what an answer says can be sent back"


@pytest.mark.parametrize("text", ["out/x.py", "out/**", "out", "out/", "{out,src}/x.py"])
def test_what_leads_out_of_the_project_is_refused_with_the_real_place(
    project: Path, typed: Callable[[str], Finding], text: str
) -> None:
    problem = typed(text)
    assert problem.code == "RSV101"
    assert problem.found.startswith(str(project.parent / "outside"))
    assert hooked(project, "out/x.py") == []


def test_a_link_into_another_repository_inside_is_refused_with_that_one(project: Path) -> None:
    (refusal,) = open_reservations(str(project), name="ann").reserve_files(["inner/x.py"])["errors"]
    assert (refusal["code"], f"cd '{project}/lib'" in refusal["fix"]) == ("RSV101", True)


@pytest.fixture
def ann(project: Path) -> Reservations:
    mine = open_reservations(str(project), name="ann")
    mine.release_all()
    return mine


def test_every_call_takes_a_name_through_a_link_for_the_real_one(project: Path, ann: Reservations) -> None:
    bob = open_reservations(str(project), name="bob")
    assert [row["pattern"] for row in ann.reserve_files(["link/app.py"])["reservations"]] == ["src/app.py"]
    (conflict,) = bob.check_conflicts(["chain/app.py"])["conflicts"]
    assert conflict["holder"] == "ann"
    asked = bob.negotiate_release(".trees/t/src/app.py", "mine next")
    assert asked["status"] == "pending"
    assert ann.respond_to_release(str(asked["thread_id"]), "release")["status"] == "released"
    bob.release_all()


@pytest.mark.parametrize(
    ("cwd", "text"),
    [
        (".", ".trees/t/src/app.py"),
        (".", "link/app.py"),
        ("link", "app.py"),
        (".trees/t", "src/app.py"),
        (".trees/t/src", "app.py"),
        ("tree", "src/*.py"),
    ],
)
def test_the_command_line_names_it_so_from_any_folder(
    project: Path, ann: Reservations, monkeypatch: pytest.MonkeyPatch, cwd: str, text: str
) -> None:
    ann.reserve_files(["src/app.py"])
    monkeypatch.chdir(project / cwd)
    monkeypatch.setenv("INTERLOCK_AGENT_ID", "bob")
    assert CliRunner().invoke(interlock, ["reserve", text]).exit_code == 5
    monkeypatch.setenv("INTERLOCK_AGENT_ID", "ann")
    assert CliRunner().invoke(interlock, ["release", text]).exit_code == 0
    assert ann.my_reservations()["reservations"] == []


def test_two_spellings_of_a_name_are_one_agent(project: Path, ann: Reservations) -> None:
    first = open_reservations(str(project), name=unicodedata.normalize("NFC", "josé"))
    second = open_reservations(str(project), name=unicodedata.normalize("NFD", "JOSÉ"))
    assert codes(first.reserve_files(["a.py"])) == []
    assert codes(second.reserve_files(["a.py"])) == []
    assert len(second.my_reservations()["reservations"]) == 1
    second.release_all()


# -- a worktree of one that is named, and a workspace of several repositories --------------------------------------


def test_a_file_of_a_worktree_has_its_name_where_the_environment_names_the_checkout(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERLOCK_PROJECT", str(project))
    assert hooked(project, ".trees/t/src/app.py") == ["src/app.py"]
    assert place.real(str(project), ".trees/t/src/app.py") == ("src/app.py",)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a workspace without git whose store has a lease of ann's on a file of its repository `one`."""
    root = tmp_path.resolve() / "workspace"
    (root / "one" / "src").mkdir(parents=True)
    (root / "one" / "src" / "x.py").write_text("one\n")
    git(root / "one", "init", "-q")
    git(root / "one", "add", ".")
    monkeypatch.setenv("INTERLOCK_PROJECT", str(root))
    ann = open_reservations(name="ann")
    assert codes(ann.reserve_files(["one/src/x.py"])) == []
    return root


@pytest.mark.parametrize("named", [True, False])
def test_what_is_held_in_a_workspace_is_held_in_its_repositories(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """The edit hook asks the workspace's store, and git's hooks see the file under the name that git has for it."""
    if not named:
        monkeypatch.delenv("INTERLOCK_PROJECT")
    one = workspace / "one"
    located = client_hook.located(place.find(str(one)), str(one), ["src/x.py"])
    assert ["one/src/x.py"] in [names for found, names in located.items() if found.root == str(workspace)]
    found = foreign_leases.project(str(one))
    assert found.root == str(one)
    _, conflicts = foreign_leases.holdings(found, "git", os.environ | {"INTERLOCK_AGENT_ID": "bob"})
    assert [path for path, _ in foreign_leases.touched(conflicts, ["src/x.py", "src/y.py"])] == ["src/x.py"]


def test_who_names_the_workspace_does_not_pass_by_leases_of_a_repository_in_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = place.find(str(workspace))
    assert [found.root for found in place.around(str(workspace / "one" / "x"), here)] == [here.root]
    monkeypatch.delenv("INTERLOCK_PROJECT")
    open_reservations(str(workspace / "one"), name="bob").reserve_files(["src/y.py"])
    monkeypatch.setenv("INTERLOCK_PROJECT", str(workspace))
    located = client_hook.located(here, str(workspace), ["one/src/y.py"])
    assert {found.root: names for found, names in located.items()} == {
        str(workspace): ["one/src/y.py"],
        str(workspace / "one"): ["src/y.py"],
    }


def test_commit_of_ours_in_a_workspace_says_how_to_commit(workspace: Path) -> None:
    ann = open_reservations(str(workspace / "one"), name="ann")
    (refusal,) = commit(ann, "x")["errors"]
    assert (refusal["code"], refusal["found"]) == ("RSV208", str(workspace))
    assert "git commit -m MESSAGE -- PATHS" in refusal["fix"]


# -- unsaved work --------------------------------------------------------------------------------------------------


def test_a_conflict_reports_unsaved_work_in_the_holders_own_worktree(project: Path, ann: Reservations) -> None:
    file = project / ".trees" / "t" / "src" / "app.py"
    ann.reserve_files(["src/app.py"])
    bob = open_reservations(str(project), name="bob")
    for text, unsaved in (("two\n", True), ("one\n", False)):
        file.write_text(text)
        (conflict,) = bob.check_conflicts(["src/app.py"])["conflicts"]
        assert conflict["dirty"] is unsaved
