"""The base of a run: raw bytes in a store that nobody is trusted with."""

import os
import subprocess
from pathlib import Path

import pytest

from interlock.gates.sealed import base as bases
from interlock.gates.sealed.base import FILE, LINK, PROGRAM, Base, freeze, keep_base, load, place_of
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.export import Plan, write_export
from interlock.gates.sealed.store import Store
from tests.child import git
from tests.gates.sealed.sealing import write
from tests.refusals import raises_code

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
CONTENTS = {
    ".gitattributes": b"*.txt text eol=lf\n*.bin filter=lfs\n*.id ident\n",
    "windows.txt": b"a\r\nb\r\n",
    "big.bin": POINTER,
    "keyword.id": b"$Id$\n",
    "binary": bytes(range(256)),
    "empty": b"",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a checkout whose attributes ask git to change what it stores."""
    root = tmp_path / "project"
    root.mkdir()
    for name, data in CONTENTS.items():
        (root / name).write_bytes(data)
    git(root, "init", "-q", ".")
    return root


def whole(base: Base) -> Plan:
    return Plan(base, base.files, frozenset(), (), (), ())


def test_bytes_modes_and_links_come_back_as_they_were_without_git(root: Path, tmp_path: Path) -> None:
    (root / "run.sh").write_text("true\n")
    (root / "run.sh").chmod(0o744)
    (root / "private").write_text("x")
    (root / "private").chmod(0o600)
    (root / "link").symlink_to("../out of/the tree")
    made = freeze(root)
    subprocess.run(["rm", "-rf", str(root)], check=True)
    root.mkdir()
    (root / ".git").mkdir()
    read = load(root, made.digest)
    assert {name: read.content(name) for name in CONTENTS} == CONTENTS
    assert {name: read.files[name].mode for name in ("run.sh", "private", "link")} == {
        "run.sh": PROGRAM, "private": FILE, "link": LINK,
    }  # fmt: skip
    folder = tmp_path / "export"
    write_export(whole(read), folder)
    assert {name: (folder / name).read_bytes() for name in CONTENTS} == CONTENTS
    assert str((folder / "link").readlink()) == "../out of/the tree"
    assert (os.access(folder / "run.sh", os.X_OK), (folder / "private").stat().st_mode & 0o777) == (True, 0o644)


def test_the_digest_changes_with_content_mode_and_name_and_not_with_time(root: Path) -> None:
    digests = [freeze(root).digest]
    os.utime(root / "empty", ns=(1, 1))
    assert freeze(root).digest == digests[0]
    (root / "empty").chmod(0o755)
    digests.append(freeze(root).digest)
    (root / "empty").rename(root / "other")
    digests.append(freeze(root).digest)
    (root / "binary").write_bytes(b"")
    digests.append(freeze(root).digest)
    assert len(set(digests)) == 4


def test_an_empty_repository_a_dirty_one_and_no_repository_have_a_base(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q", ".")
    assert freeze(empty).files == keep_base(empty, {}).files == {}
    (empty / "dirty").write_text("uncommitted")
    assert freeze(empty).content("dirty") == b"uncommitted"
    assert list(freeze(write(tmp_path / "plain", {"in/a": "x"})).files) == ["in/a"]


def test_a_project_below_the_top_knows_its_own_paths(root: Path) -> None:
    write(root, {"app/a.py": "x = 1\n"})
    made = freeze(root / "app")
    assert (made.top, made.root) == (root, "app")
    assert made.content(made.inside("a.py")) == b"x = 1\n"
    assert (made.outside("app/a.py"), made.outside("empty")) == ("a.py", None)


def test_a_root_that_its_checkout_ignores_is_a_tree_of_its_own(root: Path) -> None:
    project = root / "out/copies/project"
    write(project, {"a.py": "", "out.log": "", "sub/b.py": "", ".gitignore": "*.log\n"})
    (root / ".git/info/exclude").write_text("out/\n")  # git's own state says nothing of the tree
    assert place_of(project) == (root, "out/copies/project")
    for ignored in ("out/*\n", "/out/copies\n", "project\n"):
        (root / ".gitignore").write_text(ignored)
        assert place_of(project) == (project, "")
        assert sorted(freeze(project).files) == [".gitignore", "a.py", "sub/b.py"]
    (root / "out/.gitignore").write_text("!project\n")
    assert place_of(project) == (root, "out/copies/project")
    (root / "out/.gitignore").unlink()
    git(root, "add", "-f", "out/copies/project/a.py")
    assert place_of(project) == (root, "out/copies/project")


def test_an_object_that_was_changed_or_removed_is_refused(root: Path, tmp_path: Path) -> None:
    made = freeze(root)
    place = Path(Store(made.top).object_path(made.files["windows.txt"].sha256))
    place.write_bytes(b"a\nb\n")
    with raises_code(SealError, "SEAL110"):
        made.content("windows.txt")
    with raises_code(SealError, "SEAL110"):
        write_export(whole(made), tmp_path / "export")
    place.unlink()
    with raises_code(SealError, "SEAL110"):
        write_export(whole(made), tmp_path / "export")


@pytest.mark.parametrize("damage", ["forged", "same size", "a pipe", "removed"])
def test_freezing_again_repairs_a_damaged_object(root: Path, damage: str) -> None:
    made = freeze(root)
    place = Path(Store(made.top).object_path(made.files["windows.txt"].sha256))
    data = place.read_bytes()
    place.unlink()
    if damage == "a pipe":
        os.mkfifo(place)
    elif damage != "removed":
        place.write_bytes(data[::-1] if damage == "same size" else b"forged")
    again = freeze(root)
    assert again.digest == made.digest
    assert again.content("windows.txt") == CONTENTS["windows.txt"]


def test_a_manifest_that_was_changed_or_removed_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = freeze(root)
    manifest = Store(made.top).folder / "bases" / made.digest.removeprefix("sha256:")
    manifest.write_bytes(manifest.read_bytes().replace(FILE.encode(), PROGRAM.encode()))
    bases._loaded.cache_clear()  # pyright: ignore[reportPrivateUsage]
    with raises_code(SealError, "SEAL110"):
        load(root, made.digest)
    monkeypatch.setenv("INTERLOCK_STATE", str(root / "elsewhere"))
    with raises_code(SealError, "SEAL110"):
        load(root, made.digest)


def test_a_pipe_in_the_place_of_a_listed_file_is_refused_and_not_waited_for(root: Path) -> None:
    (root / "empty").unlink()
    os.mkfifo(root / "empty")
    with raises_code(SealError, "SEAL102"):
        bases.read_entry(root, "empty")


def test_a_store_that_cannot_be_written_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_STATE", str(root / "empty" / "below a file"))
    with raises_code(SealError, "SEAL112"):
        freeze(root)
