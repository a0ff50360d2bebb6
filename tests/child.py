"""Programs in processes of their own: what they did, and those to which a test talks line by line."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.core.state import STATE


@dataclass(frozen=True)
class Ran:
    """What a program did that has ended."""

    status: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    """Return the variables of a client: none of ours, none of a machine's settings of git, which knows its author.

    Compiled modules are kept, the state folder is that of the tests, and a hidden `/proc` stays hidden.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "INTER", "CLAUDE"))}
    kept |= {name: os.environ[name] for name in (STATE, "INTERLOCK_PROC") if name in os.environ}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    who = {f"GIT_{role}_{part}": "t@t" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    return {**kept, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **more}


def git(folder: Path, *words: str, **more: str) -> str:
    """Run git to a good end, and return what it printed."""
    command = ("git", "-c", "protocol.file.allow=always", "-c", "core.quotePath=false", *words)
    done = subprocess.run(command, cwd=folder, env=environment(**more), capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


class Child(subprocess.Popen[str]):
    """A program that is started with both pipes open."""

    def __init__(self, *command: object, **options: Any) -> None:
        """Start it; the options are those of `subprocess.Popen`."""
        super().__init__(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options
        )

    def say(self, line: str) -> None:
        """Write a line to its input."""
        assert self.stdin is not None
        self.stdin.write(f"{line}\n")
        self.stdin.flush()

    def line(self) -> str:
        """Return the next line of its output, with the line break."""
        assert self.stdout is not None
        return self.stdout.readline()

    def rest(self) -> str:
        """Return what follows the lines that were read; unlike `communicate`, with what is buffered of it."""
        assert self.stdout is not None
        text = self.stdout.read()
        self.communicate()
        return text


def python(program: str, *arguments: object, **options: Any) -> Child:
    """Start the text of a program."""
    return Child(sys.executable, "-c", program, *arguments, **options)
