"""A small world in a folder: a project whose agents are scripts, a home, a remote, and what else agents could harm."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from interlock import graph
from interlock.cli import land, prune, run, status  # noqa: F401 - what children begin with
from interlock.cli.main import main

WORLD: Final = "/srv"
PROJECT: Final = Path(WORLD, "project")
KNOWN: Final[set[int]] = set()
"""Processes of the benchmark itself."""

AGENT: Final = """import os, pathlib, re, subprocess, sys, time
prompt = open(sys.argv[1]).read()
task = re.search(r"TASK_ID: (\\S+)", prompt)[1]
exec(pathlib.Path("acts", task.lower() + ".py").read_text())
print(f'''STATUS: READY_FOR_QA
TASK_ID: {task}
TASK: Write {task}
ASSIGNED_AGENT: builder
REPORTS_TO: orchestrator
INPUTS_USED: []
GATES_REQUIRED:
- GATE-TESTS
GATES_PASSED: []
EVIDENCE:
  screenshots: []
  a11y: []
  console: []
  reports: []
FAIL_REASONS: NONE
OUTPUT:
Done.
NEXT_ACTIONS:
1. orchestrator to go on
''')
"""
CONFIG: Final = f"""
[roles.builder]
kind = "build"
[gates.GATE-TESTS]
command = ["sh", "tests/check.sh"]
product = ["src/**"]
tests = ["tests/**"]
[run]
max_rework = 0
max_reasks = 0
[agents.builder]
runner = "command"
argv = ["{sys.executable}", "agent.py", "{{prompt_file}}"]
"""
CHECK: Final = "! grep -Lx good src/*.txt | grep .\n"
WRITE: Final = "pathlib.Path('src', task.lower() + '.txt').write_text('good\\n')\n"


def git(folder: Path, *words: str) -> str:
    """Run git to a good end, and return what it printed."""
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def write(root: Path, files: Mapping[str, str]) -> None:
    """Write files below a folder."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def task_text(name: str) -> str:
    """Return a task whose scope is `src`."""
    return f'task_id = "{name}"\ntask = "Write {name}"\ngates_required = ["GATE-TESTS"]\nscope = ["src/**"]\n'


def make(acts: Mapping[str, str], more: Mapping[str, str] | None = None) -> None:
    """Make the project anew; by task id what its agent does. The gate wants every file of `src` to say `good`."""
    clear()
    # Who runs this may have set the folders and the author; here are those of the home.
    for name in [each for each in os.environ if each.startswith(("GIT_", "INTERLOCK", "XDG_"))]:
        del os.environ[name]
    identity = "[user]\n\tname = Person\n\temail = person@example.org\n[init]\n\tdefaultBranch = main\n"
    write(Path(WORLD, "home"), {".gitconfig": identity})
    write(PROJECT, {"interlock.toml": CONFIG, "agent.py": AGENT, "src/first.txt": "good\n", "tests/check.sh": CHECK})
    write(PROJECT, {".gitignore": "artifacts/\n.interlock/\n.cache/\n"})
    write(PROJECT, {f"acts/{task.lower()}.py": act for task, act in acts.items()})
    write(PROJECT, {f"tasks/{task}.toml": task_text(task) for task in acts} | dict(more or {}))
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "Start")):
        git(PROJECT, *words)


def clear() -> None:
    """Remove everything of the world but the folders that are mounted."""
    folders = [Path(WORLD, name) for name in ("tmp", "run")]
    for path in (path for folder in (Path(WORLD), *folders) for path in folder.iterdir()):
        if path not in folders:
            subprocess.run(["rm", "-rf", path], check=True)


def start(*words: str) -> int:
    """Start a command of Interlock in the project, and return its process id; `said` has what it prints."""
    if pid := os.fork():
        return pid
    os.setsid()
    os.chdir(PROJECT)
    with open(f"{WORLD}/said", "ab") as said, open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
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


def wait(pid: int) -> int:
    """Wait for a command and return its exit code; of one that was killed a negative number."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def interlock(*words: str) -> tuple[int, str]:
    """Run a command of Interlock in the project; return its exit code and what it printed."""
    before = len(said())
    return wait(start(*words)), said()[before:]


def said() -> str:
    """Return what all commands have printed."""
    path = Path(WORLD, "said")
    return path.read_text(errors="replace") if path.exists() else ""


def processes() -> dict[int, str]:
    """Return the command line of each process of this world but our own."""
    found = dict[int, str]()
    for pid in (int(folder.name) for folder in Path("/proc").glob("[0-9]*")):
        with suppress(OSError):
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            # The first process is that of bubblewrap; one without a command line is over.
            if line and pid not in (1, os.getpid(), *KNOWN):
                found[pid] = line
    return found


def descendants(pid: int) -> list[int]:
    """Return a process and everything below it."""
    parents, found = dict[int, int](), [pid]
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(each.name)] = int((each / "stat").read_text().rpartition(")")[2].split()[1])
    for above in found:
        found += [child for child, parent in parents.items() if parent == above]
    return found


def left(seconds: float = 5) -> list[str]:
    """Return the processes that are still there after some time, and end them."""
    end = time.monotonic() + seconds
    while (there := processes()) and time.monotonic() < end:
        time.sleep(0.05)
    for pid in there:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [*there.values()]


def digests(folder: Path, left_out: Iterable[str] = ()) -> dict[str, str]:
    """Return for each path below a folder what it holds: a digest, the text of a link, or its kind."""
    skipped, found = {*left_out}, dict[str, str]()
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if os.path.relpath(f"{top}/{name}", folder) not in skipped]
        for path in (Path(top, name) for name in (*names, *folders)):
            with suppress(FileNotFoundError):
                kind = f"{path.lstat().st_mode:o} "
                if path.is_symlink():
                    kind += os.readlink(path)
                elif path.is_file():
                    kind += hashlib.sha256(path.read_bytes()).hexdigest()
                found[os.path.relpath(path, folder)] = kind
    return found


def first_parents() -> list[str]:
    """Return the commits that the branch came to, the newest first."""
    return git(PROJECT, "rev-list", "--first-parent", "main").split()


def trees() -> list[str]:
    """Return the trees that are there."""
    return [path.name for path in Path(WORLD, "home/.local/state/interlock").glob("*/trees/*")]


def end_of(run_id: str) -> str:
    """Return the status of a run, or where it is."""
    view: Any = graph.view_run(run_id, root=PROJECT)
    return str(view.status) if view.phase == "done" else str(view.phase)

