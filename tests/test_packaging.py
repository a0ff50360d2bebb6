"""What is promised about archives and installation: the wheel is whole, from the checkout and from the sdist alike."""

import os
import stat
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import distribution, version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

from tests.test_layout import PACKAGES

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parent.parent
MAPPED = (*PACKAGES, "examples")
PROJECT = "interlock-orchestrator"


def _build(source: Path, target: Path, *kinds: str) -> Path:
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), *kinds, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return next(_build(ROOT, tmp_path_factory.mktemp("sdist"), "--sdist").glob("*.tar.gz"))


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("unpacked")
    subprocess.run(["tar", "-xf", str(sdist), "-C", str(target)], check=True)
    return next(target.iterdir())


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return next(_build(unpacked, tmp_path_factory.mktemp("wheel"), "--wheel").glob("*.whl"))


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _files(folder: Path, prefix: str) -> set[str]:
    """List what a folder of the checkout holds; caches and the state of runs are left out, links not followed."""
    return {
        f"{prefix}/{Path(at, name).relative_to(folder).as_posix()}"
        for at, _, names in os.walk(folder)
        for name in names
        if "__pycache__" not in at and "/." not in Path(at).relative_to(ROOT).as_posix()
    }


def test_the_sdist_holds_the_packages_and_their_tests_and_no_link(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    names = {member.name.partition("/")[2] for member in members}
    assert [member.name for member in members if member.issym() or member.islnk()] == []
    assert {
        "Makefile",
        "requirements.lock",
        "scripts/prepare",
        "tests/test_packaging.py",
        "envelope/__init__.py",
    } <= names
    assert all(f"{folder}/" in {name[: len(folder) + 1] for name in names} for folder in MAPPED)
    assert [name for name in names if name.startswith(tuple(f"interlock/{folder}/" for folder in MAPPED))] == []
    assert [name for name in names if "__pycache__" in name or name.startswith((".venv", "artifacts/interlock"))] == []


def test_the_wheel_from_the_sdist_holds_every_file_of_every_package_and_nothing_else(wheel: Path) -> None:
    expected = _files(ROOT / "interlock", "interlock").union(*(_files(ROOT / n, f"interlock/{n}") for n in MAPPED))
    names = {name for name in _names(wheel) if not name.split("/")[0].endswith(".dist-info")}
    assert names == expected
    assert "interlock/py.typed" in names
    assert any(name.endswith(".lark") for name in names)
    assert any(name.startswith("interlock/agents/roles/") and name.endswith(".md") for name in names)


def test_the_wheel_has_no_links(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert [info.filename for info in archive.infolist() if stat.S_ISLNK(info.external_attr >> 16)] == []


@pytest.mark.long
def test_the_wheel_from_the_checkout_is_the_wheel_from_the_sdist(wheel: Path, tmp_path: Path) -> None:
    direct = next(_build(ROOT, tmp_path, "--wheel").glob("*.whl"))
    assert _names(direct) == _names(wheel)
    with zipfile.ZipFile(direct) as one, zipfile.ZipFile(wheel) as two:
        assert [name for name in one.namelist() if one.read(name) != two.read(name)] == []


def _script(name: str) -> ModuleType:
    spec = spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel where nothing is but what it asks for: each of its dependencies is linked in from here."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", str(wheel)], check=True)
    site = next((folder / "lib").glob("python3.*/site-packages"))
    for name in _script("lock").closure(Requirement(PROJECT)):
        for file in distribution(name).files or ():
            top = file.parts[0]
            target = site / top
            if top not in {"..", "__pycache__"} and not target.exists():
                target.symlink_to(Path(str(distribution(name).locate_file(top))))
    return folder


def _run(environment: Path, cwd: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(environment / "bin" / command[0]), *command[1:]],
        cwd=cwd,
        env={"PATH": os.defpath, "HOME": str(cwd), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
@pytest.mark.parametrize("command", ["interlock", "validate-envelope"])
def test_an_installed_command_runs_in_an_empty_folder(environment: Path, tmp_path: Path, command: str) -> None:
    done = _run(environment, tmp_path, command, "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert version(PROJECT) in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_an_installed_validator_knows_its_grammar(environment: Path, tmp_path: Path) -> None:
    template = _run(
        environment, tmp_path, "validate-envelope", "--template", "frontend-implementer", "--task-id", "A-1"
    )
    assert (template.returncode, template.stderr) == (0, "")
    (tmp_path / "answer.txt").write_text(template.stdout)
    done = _run(environment, tmp_path, "validate-envelope", "--no-evidence", "answer.txt")
    assert done.returncode == 0, done.stdout + done.stderr


WITH_AN_EXTRA = {
    "langchain": {"agents.runners.chat", "agents.runners.pictures", "agents.runners.turn"},
    "dbos": {"graph.team.worker"},
    "psycopg": {"graph.engine.saver", "graph.team.moving"},
    "securesystemslib": {"graph.attest"},
}
"""What is imported with the first model, by a worker, or for a bundle alone: it needs an extra."""


@pytest.mark.long
def test_every_module_imports_with_the_core_dependencies_alone(environment: Path, tmp_path: Path) -> None:
    program = """
import importlib, pkgutil, sys
import interlock
for module in pkgutil.walk_packages(interlock.__path__, "interlock."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name not in ("langchain", "dbos", "psycopg", "securesystemslib"):
                raise
            print(error.name + ":" + module.name)
        else:
            print(module.name)
print(interlock.__file__)
"""
    done = _run(environment, tmp_path, "python", "-c", program)
    assert done.returncode == 0, done.stderr
    *modules, place = done.stdout.split()
    for extra, expected in WITH_AN_EXTRA.items():
        assert {name.partition(":interlock.")[2] for name in modules if name.startswith(f"{extra}:")} == expected
    assert Path(place).is_relative_to(environment)
    assert {f"interlock.{name}" for name in PACKAGES} <= set(modules)
    words = ("verify", "--bundle", sys.executable, "--commit", "0" * 40, "--key", sys.executable)
    done = _run(environment, tmp_path, "interlock", *words)
    assert (done.returncode, "ATT803" in done.stderr, "[attest]" in done.stderr) == (2, True, True), done.stderr
