"""SIGKILL of a hook while it puts held files back: the next hook of anybody ends with nothing lost."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reservations.versions.sharing import WORK, Sharing

ROOT = Path(__file__).parents[3]
HOOK = """
import os, signal, sys
from pathlib import Path
from interlock.core import files
from interlock.reservations.versions import putting_back, watch
from tests.reservations.versions.sharing import Sharing

owner, name = {
    "before the first file": (putting_back, "put_back"), "between two files": (putting_back, "put_back"),
    "between a file and its row": (watch.VersionRows, "put_file"), "before the end": (watch._Look, "tell"),
}[sys.argv[2]]
after = sys.argv[2] == "between two files"
act = getattr(owner, name)

def killed(*given, **more):
    if after:
        act(*given, **more)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(owner, name, killed)
Sharing(Path(sys.argv[1])).after("bob")
"""
"""The hook after bob's command, which dies at a point."""


@pytest.mark.parametrize(
    "point", ["before the first file", "between two files", "between a file and its row", "before the end"]
)
def test_a_hook_that_is_killed_while_it_puts_files_back_loses_nothing(sharing: Sharing, point: str) -> None:
    held = ("ann.py", "src/ann.py")
    sharing.hold(*held)
    sharing.before("bob")
    for path in held:
        (sharing.root / path).write_text(f"bob's {path}\n")
    done = subprocess.run([sys.executable, "-c", HOOK, str(sharing.root), point], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    sharing.before("carl")
    assert {path: sharing.read(path) for path in held} == dict.fromkeys(held, WORK)
    kept = {path: {sharing.kept(version) for version in sharing.versions(path)} for path in held}
    assert kept == {path: {f"{path} one\n", WORK, f"bob's {path}\n"} for path in held}
