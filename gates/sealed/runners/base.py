"""What a runner is: how a test command is recognised, really started, and read."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from interlock.gates.sealed.outcomes import TestRun

PROBES: Final = Path(__file__).resolve().parent.parent / "probes"
"""The folder of the files that run beside the tested code; a sandbox must show it, read-only."""

ReadFile: TypeAlias = Callable[[str], bytes | None]
"""The bytes of a file, or None: a relative path in the tree to be judged, an absolute one on the machine."""
Which: TypeAlias = Callable[[str], str | None]
"""The absolute path of a program, or None: a bare name on PATH, one with a slash relative to the root of the tree."""

ReportFrom: TypeAlias = Literal["", "file", "stdout"]


@dataclass(frozen=True, slots=True)
class Plan:
    """One start of a test command.

    Args:
        root: Absolute path of the project's root, as the command sees it; its working directory.
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


class Runner(Protocol):
    """A kind of test command."""

    @property
    def name(self) -> str:
        """Return its name, as in `TestRun.runner`."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """Return the variables that the command itself sets."""
        ...

    @property
    def note(self) -> str:
        """Return why the tests are not parsed or not watched, in one sentence; empty where they are."""
        ...

    @property
    def collects(self) -> bool:
        """Return whether it can list the tests without running them."""
        ...

    @property
    def selects(self) -> bool:
        """Return whether it can run some ids alone, for another try of a flaky test."""
        ...

    def launch(self, plan: Plan) -> Launch:
        """Return how to start it. Each launch has secrets of its own."""
        ...

    def read(self, launch: Launch, stream: bytes, report: bytes, *, exit_status: int | None) -> TestRun:
        """Return what the run came to; never raises for what the command wrote.

        Args:
            launch: What was started.
            stream: What the probe wrote.
            report: The report, empty where there is none or it is missing.
            exit_status: None when the command was stopped.
        """
        ...
