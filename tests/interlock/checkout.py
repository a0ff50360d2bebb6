"""A git checkout for the tests of what is installed, and the programs that are run in it."""

import os
import subprocess
import sys
from pathlib import Path

from interlock.install import Launch, apply, apply_undo, pick, plan, plan_undo
from interlock.reservations import place
from tests import warm
from tests.child import environment, git

LAUNCH = Launch(sys.executable, ("-P", "-m", "interlock", "mcp"), "for a test")


def attempt(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program."""
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=environment(**more)
    )


def interlock_command(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return warm.interlock(folder, *words, env=environment(**more))


def make(folder: Path) -> Path:
    """Make a checkout with one commit."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a\n")
    (folder / ".gitignore").write_text("artifacts/\n")
    git(folder, "add", "a.txt", ".gitignore")
    git(folder, "commit", "-qm", "first")
    return folder


def install(root: Path, *clients: str, git_hooks: bool = False, launch: Launch = LAUNCH) -> None:
    """Write what init would."""
    apply(root, plan(root, pick(clients), launch, git=git_hooks))


def write_hook(path: Path, text: str, mode: int = 0o755) -> None:
    """Write a hook that somebody has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file and link with its mode and bytes; git's own objects, index and logs are left out."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name.startswith((".git/objects", ".git/logs", ".git/index", ".git/COMMIT_EDITMSG", ".git/refs")):
            continue
        data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[name] = (path.lstat().st_mode, data)
    return found


def uninstall(root: Path) -> None:
    """Take all of it back."""
    apply_undo(root, plan_undo(root, pick(["all"]), git=True))


def make_store(root: Path) -> None:
    """Make as if somebody had reserved something: before that no hook of git refuses."""
    path = Path(place.find(str(root)).store_path)
    path.parent.mkdir()
    path.touch()
