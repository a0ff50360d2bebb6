"""Kept dependencies: unchanged since the start, whatever their times say."""

import os
from pathlib import Path

import pytest

from interlock.gates.sealed import keep
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.keep import Place, changed, kept_folders, leads_back, left_out, record
from interlock.gates.sealed.listing import Listing
from interlock.gates.sealed.store import state_folder
from tests.gates.sealed.sealing import write
from tests.refusals import raises_code


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with two packages."""
    names = ("a/index.js", "a/lib/x.js", "b/index.js", "b/__pycache__/b.pyc", ".cache/tool", ".bin/run")
    made = write(tmp_path / "node_modules", dict.fromkeys(names, "code"))
    (made / "link").symlink_to("a")
    return made


def changes(folder: Path, digest: str) -> dict[str, str]:
    found = changed({str(folder): digest})
    return {os.path.relpath(path, folder): what for path, what in found}


def test_added_changed_and_removed_files_are_named_and_touched_ones_are_not(folder: Path) -> None:
    digest = record(Place(str(folder)))
    assert changes(folder, digest) == {}
    os.utime(folder / "a/lib/x.js", ns=(1, 1))
    assert changes(folder, digest) == {}
    same = (folder / "b/index.js").stat()
    (folder / "b/index.js").write_text("evil")
    os.utime(folder / "b/index.js", ns=(same.st_atime_ns, same.st_mtime_ns))
    (folder / "a/new.js").write_text("code")
    (folder / "a/index.js").unlink()
    (folder / "link").unlink()
    (folder / "link").symlink_to("b")
    (folder / ".bin/run").chmod(0o755)
    assert changes(folder, digest) == {
        "a/index.js": "removed", "a/new.js": "added", "b/index.js": "changed", "link": "changed", ".bin/run": "changed",
    }  # fmt: skip


def test_bytecode_is_named_apart_and_scratch_of_tools_does_not_count(folder: Path) -> None:
    digest = record(Place(str(folder)))
    write(folder, dict.fromkeys(("b/__pycache__/b.pyc", ".cache/tool", ".vite/deps.js"), "other"))
    write(folder, {"b/__pycache__/c.pyc": "new"})
    assert changes(folder, digest) == {"b/__pycache__/b.pyc": "bytecode", "b/__pycache__/c.pyc": "bytecode"}
    assert {f"{folder}/.cache", f"{folder}/.vite"} <= set(left_out(digest))


@pytest.mark.parametrize("name", ["a/.cache/x.js", "a/node_modules/.cache/r.js", "b/__pycache__/fixed.py", "b/b.pyc"])
def test_files_where_tools_write_count_unless_bytecode_or_the_scratch_of_the_folder(folder: Path, name: str) -> None:
    digest = record(Place(str(folder)))
    write(folder, {name: "fixed"})
    assert changes(folder, digest) == {name: "added"}


def test_a_file_is_a_place_and_what_is_left_out_of_a_folder_does_not_count(folder: Path) -> None:
    digest = record(Place(str(folder / "a/index.js")))
    assert changes(folder / "a/index.js", digest) == {}
    (folder / "a/index.js").write_text("evil")
    assert changes(folder / "a/index.js", digest) == {".": "changed"}
    digest = record(Place(str(folder), but=("a",)))
    (folder / "a/index.js").write_text("more")
    assert changes(folder, digest) == {}
    assert f"{folder}/a" in left_out(digest)


def test_a_large_file_is_compared_by_its_stamp(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keep, "_LARGE_BYTES", 3)
    digest = record(Place(str(folder)))
    assert changes(folder, digest) == {}
    os.utime(folder / "a/lib/x.js", ns=(1, 1))
    assert changes(folder, digest) == {"a/lib/x.js": "changed"}


def test_of_a_folder_of_programs_the_files_alone_count(folder: Path) -> None:
    digest = record(Place(str(folder / ".bin"), deep=False))
    write(folder, {".bin/below/x": ""})
    assert changes(folder / ".bin", digest) == {}
    (folder / ".bin/python").write_text("#!/bin/sh\n")
    assert changes(folder / ".bin", digest) == {"python": "added"}


def test_a_record_is_found_again_and_its_forgery_is_refused(folder: Path) -> None:
    digest = record(Place(str(folder)))
    assert record(Place(str(folder))) == digest
    (folder / "a/index.js").write_text("newer")
    again = record(Place(str(folder)))
    assert again != digest
    kept = state_folder() / "kept" / again
    kept.write_bytes(kept.read_bytes().replace(b"100644", b"100755"))
    with raises_code(SealError, "SEAL110"):
        changes(folder, again)


def test_a_damaged_record_is_written_anew(tmp_path: Path) -> None:
    for folder in (tmp_path / "empty", tmp_path / "full"):
        folder.mkdir()
        if folder.name == "full":
            (folder / "index.js").write_text("x")
        kept = state_folder() / "kept" / record(Place(str(folder)))
        kept.write_bytes(b"forged")
        assert kept.name == record(Place(str(folder)))
        assert kept.read_bytes() != b"forged"


def test_a_folder_that_is_gone_is_refused(folder: Path) -> None:
    digest = record(Place(str(folder)))
    folder.rename(folder.with_name("moved"))
    with raises_code(SealError, "SEAL102"):
        changes(folder, digest)


def test_folders_are_kept_by_name_at_any_depth_or_by_path(tmp_path: Path) -> None:
    listing = Listing({}, ["node_modules", "web/node_modules", "dist", "web/dist", "api/.venv"])
    found = kept_folders(tmp_path, "", listing, (".venv", "node_modules", "web/dist"))
    assert [os.path.relpath(path, tmp_path) for path in found] == [
        "api/.venv", "node_modules", "web/dist", "web/node_modules",
    ]  # fmt: skip


def test_a_folder_is_kept_by_its_path_from_the_root_and_inside_an_ignored_one(tmp_path: Path) -> None:
    listing = Listing({}, ["web/build", "web/lib"])
    (tmp_path / "web/build/editable/calc").mkdir(parents=True)
    (tmp_path / "web/lib").symlink_to(tmp_path)
    wanted = ("build/editable", "build/editable/calc", "lib/web", "../else", "src")
    assert kept_folders(tmp_path, "web", listing, wanted) == (f"{tmp_path}/web/build/editable",)


def test_links_and_path_files_that_lead_back_are_found(tmp_path: Path) -> None:
    top = tmp_path / "project"
    (top / "src").mkdir(parents=True)
    files = {
        "editable.pth": f"{top}/src\n",
        "__editable___x_finder.py": f"MAPPING = {{'x': '{top}/src/x'}}\n",
        "fine.pth": "/usr/lib/elsewhere\n",
    }
    packages = write(top / ".venv/lib", files)
    (packages / "workspace").symlink_to("../../src")
    (packages / "inner").symlink_to("../lib")
    (packages / "outer").symlink_to("/usr")
    found = leads_back({str(top / ".venv"): record(Place(str(top / ".venv")))}, top)
    assert sorted(Path(path).name for path in found) == ["__editable___x_finder.py", "editable.pth", "workspace"]
