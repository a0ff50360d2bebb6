"""The workspace that the agents share: small git repositories with the same files in each."""

import os
import random
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

Layout: TypeAlias = Literal["repositories", "folders"]
"""`repositories`: each folder is a git repository of its own, and the workspace is none; `folders`: the workspace is
one git repository, so that all agents share one index."""

FILES: Final = ("README.md", "CHANGELOG.md", "settings.txt")
"""The files of each repository; every agent writes into each of them."""

SETTINGS: Final = """\
[reservations]
ttl_minutes = 5
dead_after_minutes = 0.25
"""


@dataclass(frozen=True, slots=True)
class Checkout:
    """One workspace.

    Args:
        root: The folder that all agents work in.
        layout: Where git's repositories are.
        count: How many there are.
    """

    root: Path
    layout: Layout
    count: int

    @property
    def names(self) -> list[str]:
        """The names of the repositories."""
        return [f"repo_{number:02}" for number in range(self.count)]

    def paths(self, repository: str) -> list[str]:
        """Return the files of a repository, relative to the root."""
        return [f"{repository}/{file}" for file in FILES]

    def top(self, repository: str) -> Path:
        """Return where git is asked about a repository."""
        return self.root / repository if self.layout == "repositories" else self.root

    def make(self) -> None:
        """Make the files and commit them."""
        self.root.mkdir(parents=True)
        (self.root / "interlock.toml").write_text(SETTINGS)
        (self.root / ".gitignore").write_text("artifacts/\n")
        for name in self.names:
            (self.root / name).mkdir()
            for path in self.paths(name):
                (self.root / path).write_text(f"# {path}\n")
        for top in {self.top(name): None for name in self.names}:
            git(top, "init", "-q")
            for key, value in (("user.name", "bench"), ("user.email", "bench@localhost"), ("gc.auto", "0")):
                git(top, "config", key, value)
            git(top, "add", ".")
            git(top, "commit", "-qm", "start")

    def lines(self) -> dict[str, list[str]]:
        """Return the lines of each file as they are in the working tree, the heading left out."""
        paths = [path for name in self.names for path in self.paths(name)]
        return {path: (self.root / path).read_text().splitlines()[1:] for path in paths}

    def committed(self) -> dict[str, list[str]]:
        """Return the lines of each file as of the last commit, the heading left out."""
        return {
            path: git(self.top(name), "show", f"HEAD:./{path if self.layout == 'folders' else Path(path).name}")
            .decode()
            .splitlines()[1:]
            for name in self.names
            for path in self.paths(name)
        }

    def carried(self, repository: str, commit: str) -> list[str]:
        """Return the paths that a commit changes, relative to the root."""
        names = git(self.top(repository), "show", "--pretty=", "--name-only", commit).decode().split()
        return names if self.layout == "folders" else [f"{repository}/{name}" for name in names]


def git(top: Path, *arguments: str) -> bytes:
    """Run git and return what it says.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    return subprocess.run(["git", *arguments], cwd=top, check=True, capture_output=True, env=environment()).stdout


def environment(**more: str) -> dict[str, str]:
    """Return an environment that names no agent, session or project of whoever runs this."""
    foreign = ("INTERLOCK_", "INTERMUTE_", "CLAUDE", "GIT_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {**kept, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, **more}


def orders(names: Sequence[str], agents: int, seed: int) -> list[list[str]]:
    """Return in which order each agent sweeps the repositories: forwards, backwards, and mixed."""
    rng = random.Random(seed)
    found = [list(names), list(reversed(names))]
    while len(found) < agents:
        mixed = list(names)
        rng.shuffle(mixed)
        found.append(mixed)
    return found[:agents]
