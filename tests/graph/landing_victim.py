"""Lands runs of a project, and kills its own process just before or just after the target moves."""

import os
import signal
import sys
from pathlib import Path

from interlock.graph import land
from interlock.graph.landing.repository import Repository

_advance = Repository.advance


def main() -> None:
    """Land the runs, and die."""
    point, root, *runs = sys.argv[1:]

    def advance(self: Repository, new: str, old: str) -> bool:
        if point == "after":
            _advance(self, new, old)
        os.kill(os.getpid(), signal.SIGKILL)
        return False

    Repository.advance = advance
    land(Path(root), runs)


if __name__ == "__main__":
    main()
