"""What the set-up promises: everything is made once, nothing the second time, and what fails says what to do."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

BACKEND = """
import zipfile

def _wheel(folder):
    name = "toy-1-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as archive:
        archive.writestr("toy.py", "")
        archive.write("search.py", "interlock/gates/collect/browser.py")
        archive.write("errors.py", "interlock/gates/errors.py")
        archive.writestr("toy-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: toy\\nVersion: 1\\n")
        archive.writestr("toy-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr("toy-1.dist-info/RECORD", "")
    return name

def build_wheel(folder, settings=None, metadata=None):
    return _wheel(folder)

def build_editable(folder, settings=None, metadata=None):
    return _wheel(folder)
"""
SEARCH = """
import os
from interlock.gates.errors import CollectorError

def find_browser():
    if not os.path.exists(os.environ["TOY_BROWSER"]):
        raise CollectorError("COL301: there is no browser")
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "toy"
version = "1"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Make a small checkout that needs no package from elsewhere."""
    folder = tmp_path / "checkout"
    (folder / "scripts").mkdir(parents=True)
    for name in ("prepare", "prepare.py"):
        shutil.copy(ROOT / "scripts" / name, folder / "scripts" / name)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "backend.py").write_text(BACKEND)
    (folder / "search.py").write_text(SEARCH)
    (folder / "errors.py").write_text("class CollectorError(Exception): ...\n")
    (folder / "requirements.lock").write_text("# nothing\n")
    return folder


def _prepare(checkout: Path, *steps: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["/bin/sh", str(checkout / "scripts" / "prepare"), *steps],
        cwd="/",
        env={"PATH": os.environ["PATH"], "HOME": str(checkout.parent), "PYTHON": sys.executable} | environ,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
def test_a_second_set_up_does_nothing_until_something_changes(checkout: Path) -> None:
    first = _prepare(checkout, "packages")
    assert first.returncode == 0, first.stderr
    assert [line.partition(" … ")[0].partition(" with ")[0] for line in first.stderr.splitlines()] == [
        "interlock: making .venv",
        "interlock: installing 0 packages into .venv",
        "interlock: installing this checkout into .venv",
    ]
    python = checkout / ".venv" / "bin" / "python"
    subprocess.run([python, "-c", "import toy"], check=True)

    second = _prepare(checkout, "packages")
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")

    (checkout / "requirements.lock").write_text("# changed\n")
    changed = _prepare(checkout, "packages")
    assert len(changed.stderr.splitlines()) == 2

    moved = checkout.rename(checkout.with_name("moved"))
    again = _prepare(moved, "packages")
    assert again.stderr.splitlines()[0].startswith("interlock: making .venv")
    assert _prepare(moved, "packages").stderr == ""


@pytest.mark.long
def test_a_failed_installation_shows_why_and_is_tried_again(checkout: Path) -> None:
    (checkout / "requirements.lock").write_text("no-such-package-at-all==1\n")
    for _ in range(2):
        done = _prepare(checkout, "packages", PIP_NO_INDEX="1")
        assert done.returncode == 2
        assert "no-such-package-at-all" in done.stderr
        assert "  fix: " in done.stderr
    (checkout / "requirements.lock").write_text("")
    assert _prepare(checkout, "packages").returncode == 0


def test_without_a_python_that_is_new_enough_it_says_so(checkout: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("cat", "dirname"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    old = tools / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = _prepare(checkout, "packages", PATH=str(tools), PYTHON="")
    assert done.returncode == 2
    assert "  fix: " in done.stderr


@pytest.mark.long
@pytest.mark.skipif(not Path("/etc/debian_version").exists() or os.geteuid() != 0, reason="needs root on Debian")
def test_as_root_on_debian_a_missing_browser_is_installed_once(checkout: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    calls = tmp_path / "calls"
    apt = tools / "apt-get"
    apt.write_text(
        f'#!/bin/sh\necho "$DEBIAN_FRONTEND $*" >> {calls}\ncase "$*" in *install*) touch "$TOY_BROWSER";; esac\n'
    )
    apt.chmod(0o755)
    environ = {"PATH": f"{tools}:{os.environ['PATH']}", "TOY_BROWSER": str(tmp_path / "browser")}
    first = _prepare(checkout, "packages", "browser", **environ)
    assert first.returncode == 0, first.stderr
    second = _prepare(checkout, "packages", "browser", **environ)
    assert (second.returncode, second.stderr) == (0, "")
    update, install = calls.read_text().splitlines()
    assert update.startswith("noninteractive ")
    assert update.endswith(" update")
    assert install.startswith("noninteractive ")
    assert install.endswith(" chromium-headless-shell fonts-dejavu-core")


def test_a_wished_browser_that_is_missing_is_reported_and_no_other_is_installed() -> None:
    if not (ROOT / ".venv" / "interlock-root").exists():
        pytest.skip("this checkout was not set up by make")
    done = _prepare(ROOT, "browser", INTERLOCK_BROWSER="/nowhere/chromium")
    assert done.returncode == 2
    assert "INTERLOCK_BROWSER" in done.stderr


def test_an_unknown_step_is_refused(checkout: Path) -> None:
    done = _prepare(checkout, "everything")
    assert done.returncode == 2
    assert "packages, browser" in done.stderr


@pytest.mark.skipif(not Path("/etc/debian_version").exists() or os.geteuid() != 0, reason="needs root on Debian")
@pytest.mark.parametrize("works", [True, False])
def test_as_root_on_debian_bubblewrap_is_installed_where_that_is_possible(
    checkout: Path, tmp_path: Path, works: bool
) -> None:
    tools, calls = tmp_path / "tools", tmp_path / "calls"
    tools.mkdir()
    for name in ("cat", "dirname", "cp"):
        (tools / name).symlink_to(str(shutil.which(name)))
    apt = tools / "apt-get"
    install = f"cp {apt} {tools}/bwrap" if works else "exit 100"
    apt.write_text(f'#!/bin/sh\necho "$*" >> {calls}\ncase "$*" in *install*) {install};; esac\n')
    apt.chmod(0o755)
    done = [_prepare(checkout, "sandbox", PATH=str(tools)) for _ in range(2)]
    assert [row.returncode for row in done] == [0, 0]
    assert ("fix: " in done[0].stderr, bool(done[1].stderr)) == (not works, not works)
    asked = [line.rpartition(" ")[2] for line in calls.read_text().splitlines()]
    assert asked == ["update", "bubblewrap"] * (1 if works else 2)


@pytest.mark.skipif(not Path("/etc/debian_version").exists() or os.geteuid() != 0, reason="needs root on Debian")
@pytest.mark.parametrize("missing", [("postgresql", "pgbouncer"), ("pgbouncer",)], ids="+".join)
def test_as_root_on_debian_a_missing_database_is_installed_and_its_service_stays_off(
    checkout: Path, tmp_path: Path, missing: tuple[str, ...]
) -> None:
    tools, calls, servers = tmp_path / "tools", tmp_path / "calls", tmp_path / "servers"
    tools.mkdir()
    for name in ("cat", "chmod", "dirname", "mkdir", "touch"):
        (tools / name).symlink_to(str(shutil.which(name)))
    for name in ("apt-get", "service", "update-rc.d"):
        tool = tools / name
        tool.write_text(
            f'#!/bin/sh\necho "${{0##*/}} $*" >> {calls}\n'
            f'case "$*" in *" install "*) mkdir -p {servers}/15/bin; touch {servers}/15/bin/initdb {tools}/pgbouncer\n'
            f"chmod +x {tools}/pgbouncer;; esac\n"
        )
        tool.chmod(0o755)
    program = checkout / "scripts" / "prepare.py"
    text = program.read_text().replace('"/usr/lib/postgresql"', f'"{servers}"').replace("/usr/sbin", "/nowhere")
    program.write_text(text)
    if "postgresql" not in missing:
        (servers / "13" / "bin").mkdir(parents=True)
        (servers / "13" / "bin" / "initdb").touch()
    done = [_prepare(checkout, "database", PATH=str(tools)) for _ in range(2)]
    assert [row.returncode for row in done] == [0, 0]
    assert done[1].stderr == ""
    update, install, *services = calls.read_text().splitlines()
    assert update.endswith(" update")
    assert install.endswith(" ".join(("--no-install-recommends", *missing)))
    turned_off = [call for name in missing for call in (f"service {name} stop", f"update-rc.d {name} disable")]
    assert services == turned_off


def test_without_the_right_to_install_a_database_the_set_up_says_what_to_install(
    checkout: Path, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("cat", "dirname"):
        (tools / name).symlink_to(str(shutil.which(name)))
    program = checkout / "scripts" / "prepare.py"
    program.write_text(program.read_text().replace('"/usr/lib/postgresql"', f'"{tmp_path}"').replace("/usr/sbin", "/x"))
    done = _prepare(checkout, "database", PATH=str(tools))
    assert done.returncode == 0
    assert "fix: " in done.stderr
    assert "postgresql pgbouncer" in done.stderr
