"""The gates that are compared. Each sees a project before the worker begins, and again when the work is handed over."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from benchmarks.false_accept.project import Project, run_to_end
from interlock.core.state import STATE
from interlock.envelope.protocol import GateSpec
from interlock.gates import Binding, run_command_gate
from interlock.gates.errors import CollectorError
from interlock.gates.sealed import BaseCheck, GateCase, Seal, Work, check_base, freeze, judge

TIMEOUT_SECONDS: Final = 20.0
GATE: Final = "GATE-TESTS"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate said.

    Args:
        accepted: Whether the work passed.
        reason: Why not, or how, in one line.
    """

    accepted: bool
    reason: str = ""


class Judge(Protocol):
    """One gate, for one trial."""

    def begin(self, project: Project) -> None:
        """See the project as it is before the worker begins."""

    def verdict(self, project: Project) -> Verdict:
        """Judge what was handed over."""
        ...


class ExitStatus:
    """A command gate that is not sealed: the exit status of the tests in the tree of the worker."""

    def begin(self, project: Project) -> None:
        """Look at nothing."""

    def verdict(self, project: Project) -> Verdict:
        """Run the tests as a run of Interlock does without a seal."""
        gate = GateSpec(
            id=GATE,
            title="the tests pass",
            check="command",
            evidence=("reports",),
            grade="runner",
            command=project.program.command,
            timeout_seconds=TIMEOUT_SECONDS,
        )
        binding = Binding("run", "BENCH-001", 1, f"sha256:{'0' * 64}")
        collection = run_command_gate(gate, root=project.root, binding=binding, environment=project.environment())
        return Verdict(collection.ok, "; ".join(finding.code for finding in collection.findings))


class StopHook:
    """A Stop hook as people configure it for Claude Code: a script of the checkout that runs the tests there.

    The settings are read when the session begins, as that client does; the script is read when it runs. The script
    always blocks while the tests fail: many let the second attempt pass, to end a loop, and those accept everything.
    """

    def __init__(self) -> None:
        self.commands: list[str] = []

    def begin(self, project: Project) -> None:
        """Read the settings."""
        settings = json.loads(project.read(".claude/settings.json"))
        self.commands = [hook["command"] for group in settings["hooks"]["Stop"] for hook in group["hooks"]]

    def verdict(self, project: Project) -> Verdict:
        """Run each hook in the worker's environment; 2 is the status that lets nobody stop."""
        environment = {**project.environment(), "CLAUDE_PROJECT_DIR": str(project.root)}
        event = json.dumps({"hook_event_name": "Stop", "stop_hook_active": False, "cwd": str(project.root)})
        for command in self.commands:
            status = run_to_end(
                ("sh", "-c", command), root=project.root, env=environment, stdin=event, timeout_seconds=TIMEOUT_SECONDS
            )
            if status is None or status == 2:
                return Verdict(False, "the hook blocked the stop" if status else "the hook did not end")
        return Verdict(True)


class Bare:
    """The command itself, for the cost of the others; it is no gate."""

    def begin(self, project: Project) -> None:
        """Look at nothing."""

    def verdict(self, project: Project) -> Verdict:
        """Run the command and nothing else."""
        return Verdict(project.run(project.program.command) == 0)


@dataclass(frozen=True, slots=True)
class Gate:
    """One row of the table of gates.

    Args:
        judge: Makes the judge of one trial from a folder for what it stores; the folder is shared by all trials.
        adds_to: The gate that it is, with something more to pass: what that one refuses is refused here, unseen.
    """

    judge: Callable[[Path], Judge]
    adds_to: str = ""


class Sealed:
    """A sealed command gate, as a run applies it; with the held-out cases besides, where it is asked for."""

    def __init__(self, store: Path, *, heldout: bool = False) -> None:
        self.store = store
        self.heldout = heldout
        self.case: GateCase | None = None
        self.check: BaseCheck | None = None

    def begin(self, project: Project) -> None:
        """Freeze the tree and run the tests of the base."""
        os.environ[STATE] = str(self.store)
        gate = GateSpec(
            id=GATE,
            title="the tests pass",
            check="command",
            evidence=("reports",),
            grade="runner",
            command=project.program.command,
            timeout_seconds=TIMEOUT_SECONDS,
        )
        seal = Seal(heldout=str(project.held_out) if self.heldout else "")
        frozen = freeze(project.root, [(gate, seal)], path=project.environment()["PATH"])
        self.case = GateCase(gate, seal, frozen, project.root.resolve())
        self.check = check_base(self.case)

    def verdict(self, project: Project) -> Verdict:
        """Run the gate on the work."""
        assert self.case is not None
        assert self.check is not None
        if self.check.faults:
            return Verdict(False, "; ".join(f"{row.code} {row.message}" for row in self.check.faults[:3]))
        try:
            done = judge(self.case, Work(project.scope), self.check)
        except CollectorError as error:
            return Verdict(False, f"{error.code} {error.message}")
        return Verdict(done.ok, "; ".join(f"{row.code} {row.field}".strip() for row in done.faults[:3]))


GATES: Final[dict[str, Gate]] = {
    "exit": Gate(lambda _store: ExitStatus()),
    "hook": Gate(lambda _store: StopHook()),
    "sealed": Gate(Sealed),
    "heldout": Gate(lambda store: Sealed(store, heldout=True), adds_to="sealed"),
}
"""By the name on the command line."""


def judged(judge: Judge, project: Project) -> tuple[Verdict, float]:
    """Return the verdict and the seconds that it took."""
    start = time.perf_counter()
    verdict = judge.verdict(project)
    return verdict, time.perf_counter() - start
