"""A small world in a folder: a project whose agents are scripts, and commands of Interlock as processes."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from interlock import graph
from interlock.cli.main import COMMANDS, main
from tests.graph import test_trees

WORLD: Final = Path("/srv")
PROJECT: Final = WORLD / "project"
STATE: Final = WORLD / "home/.local/state/interlock"
CONFIG, WRITE = test_trees.CONFIG, test_trees.WRITE
WRONG: Final = WRITE.replace("good", "bad")
CHECK: Final = "! grep -Lx good src/*.txt | grep .\n"
KNOWN: Final = {1, os.getpid()}
"""Processes of the benchmark itself; the first one is that of bubblewrap."""

# A child begins with what is loaded here.
for _name in ("run", "land", "prune", "verify"):
    __import__(COMMANDS[_name][0])


def git(folder: Path, *words: str) -> str:
    """Run git to a good end, and return what it printed."""
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def write(root: Path, files: Mapping[str, str]) -> None:
    """Write files below a folder."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def make(acts: Mapping[str, str], more: Mapping[str, str] | None = None) -> None:
    """Make the project anew; by task id what its agent does. The gate wants every file of `src` to say `good`."""
    clear()
    # Who runs this may have set the folders and the author; here are those of the home.
    for name in [each for each in os.environ if each.startswith(("GIT_", "INTERLOCK", "XDG_"))]:
        del os.environ[name]
    write(WORLD, {"home/.gitconfig": "[user]\n\tname = Person\n\temail = person@example.org\n"})
    ignored = "artifacts/\n.interlock/\n.cache/\n.venv/\nnode_modules/\nbuild/\n__pycache__/\n"
    test_trees.Checkout(PROJECT, acts, {".gitignore": ignored, **(more or {})})


def clear() -> None:
    """Remove everything of the world but the folders that are mounted."""
    mounted = [WORLD / "tmp", WORLD / "run"]
    for path in (path for folder in (WORLD, *mounted) for path in folder.iterdir()):
        if path not in mounted:
            subprocess.run(["rm", "-rf", path], check=True)


def start(*words: str) -> int:
    """Start a command of Interlock in the project, and return its process id; `said` has what it prints."""
    if pid := os.fork():
        return pid
    os.setsid()
    os.chdir(PROJECT)
    with (WORLD / "said").open("ab") as said:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    code = 70
    try:
        main(words)
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


def interlock(*words: str) -> tuple[int, str]:
    """Run a command of Interlock in the project; return its exit code and what it printed."""
    before = (WORLD / "said").stat().st_size if (WORLD / "said").exists() else 0
    code = os.waitstatus_to_exitcode(os.waitpid(start(*words), 0)[1])
    return code, (WORLD / "said").read_bytes()[before:].decode("utf-8", "replace")


def processes() -> dict[int, str]:
    """Return the command line of each process of this world but our own; one that is over has none."""
    found = dict[int, str]()
    for pid in {int(folder.name) for folder in Path("/proc").glob("[0-9]*")} - KNOWN:
        with suppress(OSError):
            found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    return {pid: line for pid, line in found.items() if line}


def left(seconds: float = 5) -> list[str]:
    """Return the processes that are still there after some time, and end them."""
    end = time.monotonic() + seconds
    while (there := processes()) and time.monotonic() < end:
        time.sleep(0.05)
    for pid in there:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [*there.values()]


def digests(folder: Path, left_out: tuple[str, ...] = ()) -> dict[str, str]:
    """Return for each path below a folder its mode, with a digest of its content or the text of a link."""
    found = dict[str, str]()
    for path in folder.rglob("*"):
        name = os.fspath(path.relative_to(folder))
        if not name.startswith(left_out or "\0"):
            with suppress(FileNotFoundError):
                content = os.fspath(path.readlink()).encode() if path.is_symlink() else b""
                content = path.read_bytes() if path.is_file() and not path.is_symlink() else content
                found[name] = f"{path.lstat().st_mode:o} {hashlib.sha256(content).hexdigest()}"
    return found


def trees() -> list[str]:
    """Return the trees that are there."""
    return [path.name for path in STATE.glob("*/trees/*")]


def end_of(run_id: str) -> str:
    """Return the status of a run that has ended; of another one where it is."""
    view = graph.view_run(run_id, root=PROJECT)
    return str(view.status) if view.phase == "done" else view.phase
