"""What commands find beside the export, and that it is what was accepted."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from interlock.gates.sealed.environment import Environment, find_environment, installed
from interlock.gates.sealed.environment import held as held_in
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.settings import Seal
from interlock.gates.sealed.store import Store
from tests.child import git
from tests.gates.sealed.sealing import PATH, PYTHON, Sealed, write
from tests.refusals import raises_code

SITE = f"lib/{PYTHON}/site-packages"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home folder, with a checkout `shop` in it."""
    monkeypatch.setenv("HOME", str(tmp_path / "ann"))
    (tmp_path / "ann/shop").mkdir(parents=True)
    return tmp_path / "ann"


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    write(path.parent, {path.name: text})
    path.chmod(0o755)
    return path


def link(path: Path, to: str | Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to)


def venv(folder: Path, python: str | Path, settings: str = "include-system-site-packages = false\n") -> Path:
    """Make what an environment consists of, with an interpreter that is a link."""
    write(folder, {"pyvenv.cfg": f"home = x\n{settings}", f"{SITE}/dep.py": ""})
    for name in ("python", "python3"):
        link(folder / "bin" / name, python)
    program(folder / "bin/pytest", f"#!{folder}/bin/python\n")
    return folder


def found(
    home: Path,
    *command: str,
    ignored: Sequence[str] = (),
    tracked: Sequence[str] = (),
    path: str = PATH,
    **seal: object,
) -> Environment:
    given = Seal(**seal)  # pyright: ignore[reportArgumentType]
    return find_environment(home / "shop", "", given, [command or ("sh",)], ignored, tracked, {}, path)


# -- places -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [".venv/bin/python", ".venv/bin/pytest"])
@pytest.mark.parametrize("own", [True, False])
def test_of_an_environment_the_interpreter_is_seen_and_its_packages_only_where_the_environment_has_them(
    home: Path, command: str, own: bool
) -> None:
    installed = home / "python/3.11"
    write(program(installed / "bin/python3.11").parent.parent, {f"{SITE}/other.py": ""})
    settings = f"include-system-site-packages = {'false' if own else 'true'}\n"
    top = venv(home / "shop/.venv", installed / "bin/python3.11", settings)
    seen = found(home, command, ignored=[".venv/"], tracked=["pyproject.toml"])
    assert (seen.kept, seen.places) == ({str(top): str(top)}, (str(installed),))
    assert [*seen.hidden] == ([f"{installed}/{SITE}"] if own else [])
    assert Environment(**asdict(seen)).recorded == (str(top), str(installed))


def test_an_environment_behind_links_is_seen_with_the_links(home: Path) -> None:
    uv = home / ".local/share/uv/python"
    program(uv / "cpython-3.12.4/bin/python3.12")
    link(uv / "cpython-3.12", "cpython-3.12.4")
    link(home / ".local/bin/python3.12", uv / "cpython-3.12/bin/python3.12")
    real = venv(home / "envs/shop", home / ".local/bin/python3.12")
    link(home / "shop/.venv", real)
    seen = found(home, ".venv/bin/pytest", ignored=[".venv"])
    assert (seen.kept, {*seen.places}) == ({}, {str(real), str(uv / "cpython-3.12.4")})
    assert dict(seen.links) == {
        str(home / "shop/.venv"): str(real),
        str(real / "bin/python"): str(home / ".local/bin/python3.12"),
        str(real / "bin/python3"): str(home / ".local/bin/python3.12"),
        str(uv / "cpython-3.12"): "cpython-3.12.4",
        str(home / ".local/bin/python3.12"): str(uv / "cpython-3.12/bin/python3.12"),
    }


def test_of_a_folder_of_several_installations_the_program_alone_is_seen(home: Path) -> None:
    tool, (deep, _) = program(home / ".local/bin/tool"), (program(home / "tools/x/bin/deep"), program(home / "bin/top"))
    seen = found(home, "tool", path=f"{home}/.local/bin:{PATH}")
    assert [*seen.places] == [str(tool)]
    assert [*found(home, "deep", path=f"{deep.parent}:{PATH}").places] == [str(deep.parent.parent)]
    assert [*found(home, "top", path=f"{home}/bin:{PATH}").places] == [str(home / "bin/top")], "never the home folder"
    assert (found(home, "sh").places, found(home, "no-such-program").programs) == ((), {})


def test_names_are_kept_at_any_depth_and_paths_from_the_root_with_what_they_link_to(home: Path) -> None:
    shop = home / "shop"
    write(shop, dict.fromkeys(("node_modules/a/index.js", "deps/x.py", "app/deps/y.py", "one.bin"), ""))
    write(home, dict.fromkeys(("cache/z", "outer/index.js", "packages/p/index.js", "store/a/index.js"), ""))
    link(shop / "node_modules/outer", "../../outer")
    link(shop / "node_modules/@a/p", home / "packages/p")
    link(shop / "node_modules/own", "../app")
    link(shop / "app/node_modules", home / "store")
    ignored = ["node_modules/", "app/node_modules", "deps/", "app/deps/", "one.bin"]
    keep = ("node_modules", "./deps", "one.bin", f"{home}/cache", "missing", "not/there")
    seen = found(home, "sh", ignored=ignored, keep=keep)
    assert {*seen.kept} == {f"{shop}/{name}" for name in ("node_modules", "deps", "one.bin")}
    assert {*seen.places} == {f"{home}/{name}" for name in ("cache", "outer", "packages/p", "store")}
    assert seen.links[f"{shop}/app/node_modules"] == f"{home}/store"


def test_an_ignored_file_beside_modules_is_kept_as_generated(home: Path) -> None:
    write(home / "shop", dict.fromkeys(["pkg/_version.py", "pkg/sub/x.py", "build/out.py", ".venv/x"], ""))
    ignored = ["pkg/_version.py", "pkg/sub/", "build/", ".venv/"]
    seen = found(home, ignored=ignored, tracked=["pkg/__init__.py", "pkg/a.py"])
    assert (seen.generated, {*seen.kept}) == (
        (f"{home}/shop/pkg/_version.py",),
        {f"{home}/shop/.venv", f"{home}/shop/pkg/_version.py"},
    )


def test_what_environments_hold_is_known_by_their_files(tmp_path: Path) -> None:
    site = tmp_path / ".venv" / SITE
    files = {
        "_pytest/config/__init__.py": "",
        "requests/__init__.py": "",
        "six.py": "",
        "shop-1.0.dist-info/RECORD": "",
        "__editable___shop_finder.py": f"MAPPING: dict = {{'s': '{tmp_path}/lib/s'}}\n",
        "_native.abi3.so": "",
        "__editable___bad_finder.py": "MAPPING = {",
        "_shop.pth": f"import x\n{tmp_path}/src\n",
    }
    write(site, files)
    held = installed(Environment(), {str(tmp_path / ".venv"): [f"{SITE}/{name}" for name in files], str(site): files})
    assert {"requests", "six", "_pytest", "shop-1", "_native"} <= {*held.names}
    assert str(site / "_pytest/config/__init__.py") in held.runners
    assert {folder for folder, _ in held.editable} == {f"{tmp_path}/src", f"{tmp_path}/lib"}


# -- records ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """Give a folder with two packages."""
    names = ("a/index.js", "a/lib/x.js", "b/index.js", "b/__pycache__/b.pyc", ".cache/tool", ".bin/run")
    made = write(tmp_path / "node_modules", dict.fromkeys(names, "code"))
    (made / "link").symlink_to("a")
    return made


def held(place: Path, *hidden: str) -> str:
    return held_in(Store(place.parent), str(place), hidden)


def test_files_that_differ_are_named_and_touched_ones_are_not(modules: Path) -> None:
    before = held(modules)
    os.utime(modules / "a/lib/x.js", ns=(1, 1))
    assert held(modules) == before
    status = (modules / "b/index.js").stat()
    write(modules, {"b/index.js": "evil", "a/new.js": "code", "a/index.js": None, "link": None})
    os.utime(modules / "b/index.js", ns=(status.st_atime_ns, status.st_mtime_ns))
    (modules / "link").symlink_to("b")
    (modules / ".bin/run").chmod(0o755)
    names = [f"{modules}/{name}" for name in (".bin/run", "a/index.js", "a/new.js", "b/index.js", "link")]
    with raises_code(SealError, "SEAL201", f"5 files of {modules} differ: {', '.join(names)}."):
        held(modules)
    one = modules / "a/new.js"
    held(one)
    write(modules, {"a/new.js": "evil"})
    with raises_code(SealError, "SEAL201", f"1 file of {one} differ: {one}."):
        held(one)
    with raises_code(SealError, "SEAL102"):
        held(modules / "gone")


def test_bytecode_and_caches_of_tools_are_no_part_of_a_record_and_repositories_inside_are(modules: Path) -> None:
    git(modules / "a", "init", "-q")
    before = held(modules)
    free = ("b/__pycache__/b.pyc", "c/__pycache__/c.pyc", ".cache/tool", ".vite/deps.js")
    write(modules, dict.fromkeys(free, "other"))
    assert held(modules) == before
    assert held(modules, f"{modules}/b") != before
    write(modules, dict.fromkeys(("a/.cache/x.js", "b/old.pyc"), "other"))
    with raises_code(SealError, "SEAL201", "2 files of"):
        held(modules)


def test_dependencies_that_changed_are_a_question_from_one_run_to_the_next(home: Path) -> None:
    shop = write(home / "shop", {".gitignore": "deps/\n", "a.py": "", "deps/lib.py": "1"})
    git(shop, "init", "-q")

    def run() -> Sealed:
        return Sealed(shop, ("sh", "-c", "true"), Seal(keep=("deps",)))

    first = run()
    assert dict(first.frozen.records).keys() == {f"{shop}/deps"}
    os.utime(shop / "deps/lib.py")
    first.case.check_dependencies()
    write(shop, {"deps/lib.py": "2"})
    for ask in (first.case.check_dependencies, lambda: run().frozen):
        with raises_code(SealError, "SEAL201", f"{shop}/deps/lib.py"):
            ask()
    second = run()
    second.trust = True
    assert second.frozen.records != first.frozen.records
    second.case.check_dependencies()
    with raises_code(SealError, "SEAL201"):
        first.case.check_dependencies()
