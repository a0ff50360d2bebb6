"""A base from a commit: its files and those of its submodules, from objects that are what their names say."""

import os
import shutil
import zlib
from pathlib import Path

import pytest

from interlock.gates.sealed.base import LINK
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.revision import base_of
from tests.child import git
from tests.gates.sealed.sealing import write
from tests.refusals import raises_code


def repository(folder: Path, files: dict[str, str]) -> Path:
    git(write(folder, files), "init", "-q")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "-qm", "Start")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project with a test of its own and one in a submodule."""
    other = repository(tmp_path / "other", {"test_of_lib.py": "assert lib\n", "deep/data.txt": "1\n"})
    root = repository(tmp_path / "project", {"tests/test_a.py": "assert 1\n", "run.sh": "true\n", "a/b/c": "deep\n"})
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("a/b")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", os.fspath(other), "lib/other")
    commit(root)
    return root


def refusal(root: Path) -> SealError:
    with raises_code(SealError, "SEAL130") as caught:
        base_of(root, "HEAD")
    return caught.value


def test_the_files_of_a_commit_and_of_its_submodules_are_the_base(project: Path) -> None:
    base, dirty = base_of(project, "HEAD")
    files = {
        "a/b/c", "run.sh", "link", "tests/test_a.py", ".gitmodules", "lib/other/test_of_lib.py",
        "lib/other/deep/data.txt",
    }  # fmt: skip
    assert (set(base.files), dirty) == (files, ())
    assert base.files["run.sh"].mode.endswith("755")
    assert base.files["link"].mode == LINK
    (project / "lib/other/test_of_lib.py").write_text("pass\n")
    (project / "lib/other/new.py").touch()
    assert base_of(project, "HEAD")[1] == ("lib/other/new.py", "lib/other/test_of_lib.py")


def test_a_submodule_that_is_not_checked_out_is_named_and_one_without_its_repository_refused(project: Path) -> None:
    (project / "lib/other/.git").unlink()
    assert refusal(project).fix == "Run `git submodule update --init`."
    shutil.rmtree(project / "lib/other")
    assert base_of(project, "HEAD")[1] == ("lib/other",)


@pytest.mark.parametrize(
    ("attributes", "taken"),
    [("* -text\n", False), ("", False), ("* text=auto\n", False), ("*.txt text eol=crlf\n", True),
     ("* text=auto eol=crlf\n", True), ("* eol=crlf\n*.txt -text\n", False), ("*.txt eol=lf\n", False)],
)  # fmt: skip
def test_line_ends_are_those_that_the_commit_asks_for(tmp_path: Path, attributes: str, taken: bool) -> None:
    root = repository(tmp_path / "p", {"tests/golden.txt": "a\nb\n", ".gitattributes": attributes, "bin": "a\0\n"})
    (root / "tests/golden.txt").write_bytes(b"a\r\nb\r\n")
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/attributes").write_text("* text eol=crlf\n")
    git(root, "config", "core.autocrlf", "true")
    base, dirty = base_of(root, "HEAD")
    assert base.content("tests/golden.txt") == (b"a\r\nb\r\n" if taken else b"a\nb\n")
    assert ("tests/golden.txt" in dirty) is not taken
    (root / ".gitattributes").write_text("* text eol=crlf\n")
    assert base_of(root, "HEAD")[0].content("tests/golden.txt") == base.content("tests/golden.txt")


def test_the_attributes_of_a_checkout_around_say_nothing_of_a_submodule(project: Path) -> None:
    (project / ".gitattributes").write_text("* eol=crlf\n")
    commit(project)
    base, _ = base_of(project, "HEAD")
    assert base.content("tests/test_a.py") == b"assert 1\r\n"
    assert base.content("lib/other/test_of_lib.py") == b"assert lib\n"


@pytest.mark.parametrize("kind", ["blob", "tree", "commit"])
def test_an_object_that_is_not_what_its_name_says_is_no_base(project: Path, kind: str) -> None:
    name = git(project, "rev-parse", {"blob": "HEAD:run.sh", "tree": "HEAD:tests", "commit": "HEAD"}[kind]).strip()
    content = git(project, "cat-file", kind, name) if kind != "tree" else ""
    forged = content.replace("Start", "Other").replace("true", "pass").encode()
    loose = project / ".git/objects" / name[:2] / name[2:]
    loose.chmod(0o644)
    loose.write_bytes(zlib.compress(b"%s %d\0%s" % (kind.encode(), len(forged), forged)))
    assert "cannot be read" in str(refusal(project))


def test_parents_that_an_agent_wrote_down_are_not_followed(project: Path) -> None:
    first = git(project, "rev-parse", "HEAD").strip()
    (project / "tests/test_a.py").write_text("pass\n")
    commit(project)
    weak = git(project, "rev-parse", "HEAD").strip()
    git(project, "reset", "-q", "--hard", first)
    git(project, "commit", "-q", "--allow-empty", "-m", "More")
    (project / ".git/info").mkdir(exist_ok=True)
    (project / ".git/info/grafts").write_text(f"{git(project, 'rev-parse', 'HEAD').strip()} {weak}\n")
    assert base_of(project, "HEAD~1")[0].content("tests/test_a.py") == b"assert 1\n"


def test_no_command_that_the_configuration_names_fetches_a_missing_object(project: Path) -> None:
    ran, name = project.parent / "ran", git(project, "rev-parse", "HEAD:run.sh").strip()
    settings = {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": os.fspath(project),
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": f"touch {ran};",
        "protocol.file.allow": "always",
    }
    for key, value in settings.items():
        git(project, "config", key, value)
    (project / ".git/objects" / name[:2] / name[2:]).unlink()
    assert "cannot be read" in str(refusal(project))
    assert not ran.exists()
