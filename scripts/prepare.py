"""The set-up of a checkout: its virtual environment, its packages, and what its tests need of Debian.

Run by `scripts/prepare` with the standard library alone. A second run finds everything done and prints nothing.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final, NoReturn

ROOT: Final = Path(__file__).resolve().parent.parent
VENV: Final = ROOT / ".venv"
PYTHON: Final = VENV / "bin" / "python"
LOCK: Final = ROOT / "requirements.lock"
CLIENTS_VENV: Final = ROOT / ".venv-clients"
"""An environment of its own: what the tests use as a client of yesterday needs older packages than this project."""
CLIENTS_LOCK: Final = ROOT / "tests" / "clients" / "requirements.lock"
LANGGRAPH_VENV: Final = ROOT / ".venv-langgraph"
"""An environment with LangGraph's own tools, whose server is under another kind of licence than this project."""
PROGRAMS: Final = ROOT / ".npm-clients"
"""The command-line agents and test runners that some tests drive, each in a folder of its own."""
PROGRAM_LOCKS: Final = ROOT / "tests" / "clients" / "npm"
OWNER: Final = "interlock-root"
"""The file that names the checkout which an environment was made for: scripts in it hold absolute paths."""
STAMP: Final = "interlock-stamp"
"""The file that holds the digest of what was installed."""
BROWSER_PACKAGES: Final = ("chromium-headless-shell", "fonts-dejavu-core")
SANDBOX_PACKAGES: Final = ("bubblewrap",)
SERVERS: Final = Path("/usr/lib/postgresql")
"""Where Debian puts the programs of each version of PostgreSQL."""

_NET: Final = (
    "check the network and pip's configuration (`python3 -m pip config list`), then run the same command again"
)
_NO_BROWSER: Final = 3
_FIND_BROWSER: Final = f"""
import sys
from interlock.gates.collect.browser import find_browser
from interlock.gates.errors import CollectorError
try:
    find_browser()
except CollectorError as error:
    print(error, file=sys.stderr)
    sys.exit({_NO_BROWSER})
"""


def main(arguments: Sequence[str]) -> None:
    """Set up what the arguments name: one of the steps, or a program of npm."""
    steps = {"packages": packages, "browser": browser, "clients": clients, "langgraph": langgraph, "sandbox": sandbox}
    steps["database"] = database
    steps |= {path.name: partial(program, path.name) for path in sorted(PROGRAM_LOCKS.glob("*"))}
    if not arguments or any(name not in steps for name in arguments):
        _stop(f"say what to prepare: {', '.join(steps)}", f"run `sh scripts/prepare {' '.join(steps)}`")
    with _alone():
        for name in arguments:
            steps[name]()


def packages() -> None:
    """Make the virtual environment and install the pinned packages and this checkout, unless that is done."""
    with _environment(VENV, ROOT / "pyproject.toml", LOCK) as missing:
        if missing:
            _install(VENV, LOCK)
            pip = _pip(VENV)
            _run(
                "installing this checkout into .venv",
                [*pip, "--no-deps", "--no-build-isolation", "-e", str(ROOT)],
                _NET,
            )


def clients() -> None:
    """Make the second environment, in which the tests run other people's clients, unless that is done."""
    with _environment(CLIENTS_VENV, CLIENTS_LOCK) as missing:
        if missing:
            _install(CLIENTS_VENV, CLIENTS_LOCK)


def langgraph() -> None:
    """Make the environment in which a test starts `langgraph dev`, unless that is done."""
    with _environment(LANGGRAPH_VENV, ROOT / "pyproject.toml") as missing:
        if missing:
            what = [*_pip(LANGGRAPH_VENV), "-e", f"{ROOT}[langgraph]", "pytest"]
            _run("installing LangGraph's tools into .venv-langgraph", what, _NET)


def program(name: str) -> None:
    """Install one program for the tests that run it, unless that is done; without it they are skipped."""
    folder = PROGRAMS / name
    sources = [PROGRAM_LOCKS / name / file for file in ("package.json", "package-lock.json")]
    stamp, wanted = folder / STAMP, _digest(sources)
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    if shutil.which("npm") is None:
        _stop(f"{name} is installed by npm, which is not on PATH", "install Node.js 20 or later, then try again")
    folder.mkdir(parents=True, exist_ok=True)
    for source in sources:
        shutil.copy(source, folder)
    # Nothing that the packages bring is run before a test does it.
    install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder)]
    _run(f"installing {name} into {PROGRAMS.name}", install, "check the network and `npm config list`, then try again")
    stamp.write_text(wanted)


@contextmanager
def _environment(venv: Path, *sources: Path) -> Generator[bool, None, None]:
    """Yield a usable environment and whether something must be installed into it; note when that is done."""
    if not _is_usable(venv):
        _make_environment(venv)
    stamp, wanted = venv / STAMP, _digest(sources)
    missing = not stamp.is_file() or stamp.read_text() != wanted
    yield missing
    if missing:
        stamp.write_text(wanted)


def _install(venv: Path, lock: Path) -> None:
    count = sum(1 for line in lock.read_text().splitlines() if "==" in line)
    _run(f"installing {count} packages into {venv.name}", [*_pip(venv), "-r", str(lock)], _NET)


def _pip(venv: Path) -> list[str]:
    python = str(venv / "bin" / "python")
    return [python, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]


def browser() -> None:
    """Make sure that there is a Chromium; on Debian, as root, install one."""
    problem = _missing_browser()
    if not problem:
        return
    # A wish for a certain browser is not met by installing another.
    if os.environ.get("INTERLOCK_BROWSER") or not _may_install():
        _stop(problem)
    _install_debian(BROWSER_PACKAGES, " or set INTERLOCK_BROWSER")
    problem = _missing_browser()
    if problem:
        _stop(problem)


def sandbox() -> None:
    """Install bubblewrap on Debian, as root, unless it is there; where it cannot be had the tests go on without it."""
    if shutil.which("bwrap") is None and _may_install():
        try:
            _install_debian(SANDBOX_PACKAGES)
        except SystemExit:
            print("  going on without it: the tests of isolation will be skipped", file=sys.stderr)


def database() -> None:
    """Install PostgreSQL and PgBouncer on Debian, as root, unless they are there; without them their tests are skipped.

    The tests start servers of their own, so the services that the packages bring are stopped and stay off. One that was
    there before is left as it was.
    """
    missing = [] if any(SERVERS.glob("*/bin/initdb")) else ["postgresql"]
    if shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        missing.append("pgbouncer")
    if not missing:
        return
    without = f"  going on without {' and '.join(missing)}: tests that need that will be skipped"
    if not _may_install():
        print(f"{without}\n  fix: install it (Debian: apt-get install {' '.join(missing)})", file=sys.stderr)
        return
    try:
        _install_debian(missing)
    except SystemExit:
        print(without, file=sys.stderr)
        return
    for name in missing:
        for stop in (["service", name, "stop"], ["update-rc.d", name, "disable"]):
            subprocess.run(stop, capture_output=True, check=False)


def _may_install() -> bool:
    return Path("/etc/debian_version").exists() and os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install_debian(packages: Sequence[str], otherwise: str = "") -> None:
    fix = f"run `apt-get update && apt-get install {' '.join(packages)}`{otherwise}"
    apt = ("apt-get", "--quiet", "--yes", "-o", "DPkg::Lock::Timeout=300")
    _run("reading the list of Debian packages", [*apt, "update"], fix)
    install = [*apt, "install", "--no-install-recommends", *packages]
    _run(f"installing {' and '.join(packages)}", install, fix)


def _is_usable(venv: Path) -> bool:
    owner, python = venv / OWNER, venv / "bin" / "python"
    if not owner.is_file() or owner.read_text().strip() != str(ROOT) or not python.exists():
        return False
    probe = [str(python), "-c", "import sys, pip; sys.exit(sys.version_info < (3, 11))"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def _make_environment(venv: Path) -> None:
    if venv.is_symlink():
        _stop(f"{venv} leads to the environment of another checkout, which is not emptied for this one", f"rm {venv}")
    python = str(venv / "bin" / "python")
    fix = "install pip for this Python (Debian: apt-get install python3-pip python3-venv), then try again"
    version = ".".join(map(str, sys.version_info[:3]))
    make = [sys.executable, "-m", "venv", "--clear", "--without-pip", str(venv)]
    _run(f"making {venv.name} with Python {version}", make, fix)
    # Debian's Python has no ensurepip without python3-venv, but its pip can fill another environment.
    ways = (
        [python, "-m", "ensurepip"],
        [sys.executable, "-m", "pip", "--quiet", "--python", python, "install", "--no-input", "pip"],
    )
    if not any(subprocess.run(way, capture_output=True, check=False).returncode == 0 for way in ways):
        _stop(f"pip could not be put into {venv.name}", fix)
    (venv / OWNER).write_text(f"{ROOT}\n")


def _digest(sources: Sequence[Path]) -> str:
    parts = (*(path.read_bytes() for path in sources), str(ROOT).encode(), sys.version.encode())
    return sha256(b"\0".join(parts)).hexdigest()


def _missing_browser() -> str:
    """Say why there is no browser; empty when there is one."""
    done = subprocess.run([str(PYTHON), "-c", _FIND_BROWSER], capture_output=True, text=True, check=False)
    if done.returncode not in {0, _NO_BROWSER}:
        print(done.stderr, end="", file=sys.stderr)
        _stop("the search for a browser did not work", "fix the error above")
    return done.stderr.strip()


@contextmanager
def _alone() -> Generator[None, None, None]:
    """Keep two commands that were started at once from setting up the same checkout together."""
    folder = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _run(what: str, command: Sequence[str], fix: str) -> None:
    """Run one command, saying what it does and how long it took; its last output is shown only when it fails."""
    print(f"interlock: {what} … ", end="", file=sys.stderr, flush=True)
    start = time.monotonic()
    environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "PIP_ROOT_USER_ACTION": "ignore"}
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environ,
        cwd=ROOT,
        check=False,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode == 0:
        print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)
        return
    print("failed", file=sys.stderr)
    print("\n".join(f"  | {line}" for line in done.stdout.splitlines()[-20:]), file=sys.stderr)
    _stop(f"`{' '.join(command[:4])} …` ended with {done.returncode}", fix)


def _stop(message: str, fix: str = "") -> NoReturn:
    print(f"interlock: {message}", file=sys.stderr)
    if fix:
        print(f"  fix: {fix}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
