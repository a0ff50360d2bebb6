"""`interlock hook applypatch-msg`: `git am` changes no path that another agent holds; git asks before it applies."""

import os
import os.path
from collections.abc import Mapping, Sequence
from typing import Final

from interlock.reservations.git import commands
from interlock.reservations.git.foreign_leases import Held, touched
from interlock.reservations.git.rewrites import patched_paths
from interlock.reservations.hooks.git_hook import Verdict, judged

FIX: Final = (
    "`git am --abort`, wait until these paths are free (`interlock reserve PATHS --wait 45`), then apply it again."
)


def run(argv: Sequence[str], data: bytes, env: Mapping[str, str]) -> int:  # noqa: ARG001 - the patch is where git keeps it
    """Return 0 when the patch at hand leaves alone what others hold, else 1 with the reason."""
    return judged("applypatch-msg", env, _look)


def _look(held: Held) -> Verdict:
    """Judge the paths of the patch that `git am` is about to apply."""
    here = os.getcwd()
    folder = os.fsdecode(commands.ask(here, ["rev-parse", "--absolute-git-dir"], in_hook=True)).removesuffix("\n")
    paths = patched_paths(here, os.path.join(folder, "rebase-apply", "patch"), in_hook=True)
    return Verdict("this patch changes", touched(held, paths), FIX)
