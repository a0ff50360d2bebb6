"""What a runner is started from, and how it starts: the values between the gate and each kind of test command."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

PROBES: Final = Path(__file__).resolve().parent.parent / "probes"
"""The folder of the files that run beside the tested code; a sandbox must show it, read-only."""

ReadFile: TypeAlias = Callable[[str], bytes | None]
"""The bytes of a file, or None: a relative path in the tree to be judged, an absolute one on the machine."""
Which: TypeAlias = Callable[[str], str | None]
"""The absolute path of a program, or None: a bare name on PATH, one with a slash relative to the root of the tree."""

ReportFrom: TypeAlias = Literal["", "file", "stdout"]


@dataclass(frozen=True, slots=True)
class Plan:
    """One start of a test command, whose working directory is the root.

    Args:
        root: Absolute path of the project's root, as the command sees it.
        env: The whole environment that the gate gives to the command.
        spec_fd: The descriptor from which the probe reads its specification.
        stream_fd: The descriptor to which the probe writes its events.
        report_path: Absolute path of a file that does not exist yet, in a folder that the command can write.
        collect_only: List the tests and run none; only a runner with `collects`.
        only: Run these ids alone; only a runner with `selects`.
        keep_going: Run the tests of other files where a file cannot be collected.
    """

    root: str
    env: Mapping[str, str]
    spec_fd: int
    stream_fd: int
    report_path: str
    collect_only: bool = False
    only: tuple[str, ...] = ()
    keep_going: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """How a recognised command is really started.

    Args:
        argv: The program by absolute path, and its arguments.
        env: The whole environment.
        spec: What the probe reads from its descriptor; empty: no probe, and neither descriptor is needed. Secret.
        report: Where `Runner.read` has its report from: `file` the file at `report_file`, `stdout` the output of the
            command (which may have lines of its errors in it), or nowhere.
        report_file: Absolute, or relative to the root; it must not exist before the command starts.
        root: As in the plan.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    spec: bytes = b""
    report: ReportFrom = ""
    report_file: str = ""
    root: str = ""


def without_debugger(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which no process of node opens its debugger when another one sends it a signal."""
    path = os.fspath(PROBES / "no_debugger.cjs").replace("\\", "\\\\").replace('"', '\\"')
    return {**env, "NODE_OPTIONS": f'{env.get("NODE_OPTIONS", "")} --require "{path}"'.lstrip()}
