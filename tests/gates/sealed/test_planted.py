"""What appears while tests run, and may be loaded unasked: by its name, and by what was there."""

import os
import subprocess
import threading
from pathlib import Path

import pytest

from interlock.gates.sealed import home
from interlock.gates.sealed.added_files import loadable
from interlock.gates.sealed.programs import settle, unreadable
from tests.table import each_row

FILES = ("tests/verify.py", "tests/golden.json", "test/check.js", "test/data/index.js", "tests/cases/one.txt")


@each_row(("path", "unasked"), [
    ("tests/difflib.py", True), ("tests/difflib.pyc", True), ("tests/verify.cpython-311-x86_64-linux-gnu.so", True),
    ("tests/__pycache__/verify.cpython-311.pyc", True), ("tests/verify/", True), ("tests/difflib/", True),
    ("tests/difflib/__init__.py", True), ("test/check", True), ("test/data.json", True), ("test/data.node", True),
    ("tests/conftest.py", True), ("test/package.json", True), ("node_modules/x/readme", True), ("tests/x.pth", True),
    ("tests/out.txt", False), ("tests/out.json", False), ("tests/verify.out", False), ("tests/verify", False),
    ("tests/cases/", False), ("tests/out/", False), ("tests/cases.json", False), (".coverage", False),
    ("node_modules/.cache/x.js", False), ("tests/tmpab12cd34/x.py", False), ("tests/tmpab12cd34.py", False),
    (".pytest_cache/README.md", False), ("tests/__snapshots__/a.snap", False),
])  # fmt: skip
def test_what_is_loaded_unasked_is_recognised_by_its_name(path: str, unasked: bool) -> None:
    assert loadable([path], FILES) == ({path} if unasked else set())


def test_of_home_only_packages_are_left(tmp_path: Path) -> None:
    for name in (".cache/pip/x", ".cache/go-build/x", "go/pkg/mod/x", ".npmrc", ".local/lib/python3/x.pth", "go/env"):
        (tmp_path / "home" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "home" / name).touch()
    (tmp_path / "mine/registry").mkdir(parents=True)
    (tmp_path / "home/.cargo").symlink_to(tmp_path / "mine")
    (tmp_path / "home/.local").chmod(0)
    home.empty(str(tmp_path / "home"))
    left = {os.path.relpath(path, tmp_path) for path in tmp_path.rglob("*") if not path.is_dir()}
    assert left == {"home/.cache/pip/x", "home/go/pkg/mod/x"}
    assert (tmp_path / "mine/registry").is_dir()


def test_programs_and_those_that_scripts_name_are_copied_without_the_right_to_read_them(tmp_path: Path) -> None:
    real = os.path.realpath("/bin/sh")
    for name, line in (("plain", "#!/bin/sh"), ("env", "#!/usr/bin/env -S sh -e"), ("none", "text"), ("empty", "#!")):
        (tmp_path / name).write_text(f"{line}\n")
    names = [str(tmp_path / name) for name in ("plain", "env", "none", "empty", "missing")]
    with unreadable([*names, "/bin/sh"], "/usr/bin:/bin", tmp_path / "copies") as found:
        assert [*found] == [real]
        assert Path(found[real]).stat().st_mode & 0o777 == 0o111
    assert not (tmp_path / "copies").exists()


def test_programs_that_cannot_be_copied_are_named(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="cannot be copied") as caught, unreadable(["/bin/sh"], "", tmp_path / "a/b"):
        pass
    assert getattr(caught.value, "code", "") == "SEAL122"


def test_a_program_is_settled_once_nobody_can_write_it(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(Path("/bin/true").read_bytes())
    program.chmod(0o755)
    writer = program.open("ab")
    threading.Timer(0.2, writer.close).start()
    settle(str(program))
    assert writer.closed
    subprocess.run([program], check=True)


@pytest.mark.long
def test_a_copy_can_be_run_at_once_though_other_threads_start_programs(tmp_path: Path) -> None:
    done = threading.Event()

    def start_programs() -> None:
        while not done.is_set():
            subprocess.run(["true"], check=True)

    threads = [threading.Thread(target=start_programs) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(200):
            with unreadable(["/bin/true"], "", tmp_path / "copies") as found:
                subprocess.run([*found.values()], check=True)
    finally:
        done.set()
        for thread in threads:
            thread.join()
