"""The builds of Interlock that are measured, and how their hooks are called."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SHELL_TOOL: Final = "Bash"
UNREAD_TOOL: Final = "Run"
"""A tool that may write anything and whose input no hook reads: so no line is judged, and each effect is seen."""
COMPILED: Final = "PYTHONPYCACHEPREFIX"
"""Where Python keeps what it compiles: the checkouts cannot be written, and no project is to have such files."""
_FOREIGN: Final = ("INTERLOCK_", "INTERMUTE_", "CLAUDE", "CODEX", "GEMINI", "GIT_", "PYTHON", "XDG_", "AI_AGENT")


@dataclass(frozen=True, slots=True)
class Interlock:
    """One build.

    Args:
        path: A checkout of Interlock, or its program.
        launcher: The program that starts a checkout's; see `launch.py`.
        no_guard: Its hooks are told of shell lines as of calls of `UNREAD_TOOL`.
    """

    path: Path
    launcher: Path
    no_guard: bool = False

    @property
    def is_checkout(self) -> bool:
        """Whether it is a folder with the package, which this Python runs."""
        return self.path.is_dir()

    @property
    def words(self) -> list[str]:
        """The words that run it."""
        if not self.is_checkout:
            return [str(self.path)]
        return [sys.executable, str(self.launcher), str(self.path)]

    def hook(self, name: str) -> list[str]:
        """Return the command line of a hook."""
        return [*self.words, "hook", name]

    def tool(self, name: str) -> str:
        """Return the name by which a tool is reported to the hooks."""
        return UNREAD_TOOL if self.no_guard and name == SHELL_TOOL else name

    def write_program(self, folder: Path) -> Path:
        """Make a program `interlock` for lines and for git's hooks, and return it."""
        folder.mkdir(parents=True, exist_ok=True)
        program = folder / "interlock"
        program.write_text(f'#!/bin/sh\nexec {" ".join(self.words)} "$@"\n')
        program.chmod(0o755)
        return program


def builds(paths: Sequence[Path], folder: Path, *, no_guard: bool) -> list[Interlock]:
    """Return the builds at some paths, by default this checkout; a folder is made for the launcher.

    It has the name of the program, by which Interlock knows its own processes.
    """
    launcher = folder / "launcher" / "interlock"
    launcher.parent.mkdir(parents=True)
    shutil.copyfile(Path(__file__).with_name("launch.py"), launcher)
    return [Interlock(path.resolve(), launcher, no_guard) for path in paths or [ROOT]]


def environment(home: Path, path: str, **more: str) -> dict[str, str]:
    """Return an environment that names no agent, session or project of whoever runs this."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    settings: Mapping[str, str] = {
        "HOME": str(home),
        "PATH": path,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_EDITOR": "true",
        "EDITOR": "true",
        "npm_config_update_notifier": "false",
        "npm_config_fund": "false",
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
    }
    compiled = {name: os.environ[name] for name in (COMPILED,) if name in os.environ}
    return {**kept, **settings, **compiled, **more}
