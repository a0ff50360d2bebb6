"""Plays the sessions of a page again: `python -m tests.interlock.replay PAGE` writes the real output into it.

A block of the language `console` is a part of one session in one fresh checkout: lines that begin with `ann$ ` or
`bob$ ` are what these agents type, the rest is what they see.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

AHEAD_SECONDS: Final = 5
"""Commits are made so far ahead, in place of waiting until the second in which a lease began is over."""

BLOCK: Final = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT: Final = re.compile(r"^(ann|bob)\$ (.*)$")

# What differs each time: ids and commits, times, and how long something lasts.
IDS: Final = re.compile(r"\b(?:rsv|neg|thr)_[0-9a-f]{16}\b|\b[0-9a-f]{40}\b|\b[0-9a-f]{12}\b")
TIMES: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\d\d:\d\d:\d\d|\b\d+ (?:s|min|lines)\b")
# Only there when a second has passed between two commands.
PASSING: Final = re.compile(r"^note: \d+ commits? (?:is|are) younger than .*\n", re.MULTILINE)


@dataclass
class Step:
    """One command and what it printed."""

    name: str
    command: str
    output: str


@dataclass
class Shop:
    """A fresh checkout with `interlock init` done, in which ann and bob work.

    Args:
        folder: An empty folder.
        state: Where sealed gates keep what they recorded of the environment, which takes long; default: in the folder.
    """

    folder: Path
    state: Path | None = None
    real: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def root(self) -> Path:
        return self.folder / "shop"

    def install(self) -> None:
        self.root.mkdir()
        (self.folder / "bin").mkdir()
        for name, module in (("interlock", "interlock"), ("validate-envelope", "interlock.validate_envelope")):
            program = self.folder / "bin" / name
            program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m {module} "$@"\n')
            program.chmod(0o755)

    def begin(self) -> None:
        self.install()
        (self.root / "src").mkdir()
        (self.root / "src" / "login.py").write_text("def login(): ...\n")
        (self.root / "src" / "cart.py").write_text("def cart(): ...\n")
        (self.root / ".gitignore").write_text("artifacts/\ntickets/\n")
        for command in ("git init -q -b main", "interlock init", "git add -A", "git commit -q -m 'First version'"):
            done = self._run("dev", command)
            assert done.returncode == 0, done.stdout

    def run(self, name: str, command: str) -> str:
        """Return what an agent sees, with the checkout's path as a page writes it."""
        command = IDS.sub(lambda found: self.real.get(found[0], found[0]), command)
        return self._run(name, command).stdout.replace(str(self.root), "<checkout>")

    def learn(self, written: str, seen: str) -> None:
        """Remember which id of this session corresponds to which id of the page."""
        self.real |= dict(zip(IDS.findall(written), IDS.findall(seen), strict=False))

    def _run(self, name: str, command: str) -> subprocess.CompletedProcess[str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "INTER", "CLAUDE"))}
        at = f"@{int(time.time()) + AHEAD_SECONDS}"
        who = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", "dev"), ("EMAIL", "dev@example.org"), ("DATE", at))
        }
        own = {
            "HOME": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "INTERLOCK_AGENT_ID": name,
            "COLUMNS": "120",
            "PATH": f"{self.folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "XDG_STATE_HOME": str(self.state or self.folder / "state"),
        }
        return subprocess.run(
            ["sh", "-c", command],
            cwd=self.root,
            env=kept | who | own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=200,
        )


def steps(block: str) -> list[Step]:
    """Return the commands of a block, each with its output."""
    found: list[Step] = []
    for line in block.splitlines(keepends=True):
        prompt = PROMPT.match(line)
        if prompt:
            found.append(Step(prompt[1], prompt[2], ""))
        elif found:
            found[-1].output += line
    return found


def alike(text: str) -> str:
    """Return an output without what differs each time."""
    text = TIMES.sub(lambda found: re.sub(r"\d+", "0", found[0]), IDS.sub("ID", PASSING.sub("", text)))
    return re.sub(r"[ \t]+", " ", text)


def lines(text: str) -> list[str]:
    """Return the lines of an output without what differs each time, seconds at their beginning among it."""
    text = re.sub(r"^ *\d+\.\d+ s|\b\d+\.\d\ds$", "", alike(text), flags=re.MULTILINE)
    return [line.strip() for line in text.splitlines() if line.strip()]


def missing(shown: str, printed: str) -> list[str]:
    """Return the lines of a page that were not printed, or not in this order."""
    rest = iter(lines(printed))
    return [line for line in lines(shown) if line not in rest]


def renewed(page: str, folder: Path) -> dict[str, str]:
    """Return each session of a page as it is written, and as it goes now."""
    shop = Shop(folder)
    shop.begin()
    found: dict[str, str] = {}
    for block in BLOCK.findall(page):
        parts: list[str] = []
        for step in steps(block):
            seen = PASSING.sub("", shop.run(step.name, step.command))
            shop.learn(step.output, seen)
            command = IDS.sub(lambda each: shop.real.get(each[0], each[0]), step.command)
            parts.append(f"{step.name}$ {command}\n{seen}")
        found[block] = "".join(parts)
    return found


def renew(path: Path) -> None:
    """Write the output of now into a page."""
    with tempfile.TemporaryDirectory() as scratch:
        replayed = renewed(path.read_text(encoding="utf-8"), Path(scratch))
    # Read again: somebody may have edited the text meanwhile.
    page = path.read_text(encoding="utf-8")
    path.write_text(BLOCK.sub(lambda found: f"```console\n{replayed[found[1]]}```", page), encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        renew(Path(name))
