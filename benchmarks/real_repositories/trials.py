"""Lays out each case in a project, and has it judged by each gate."""

import json
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.real_repositories.cases import CASES, Case, honest, idle, whole
from benchmarks.real_repositories.checkout import Checkout, Ended, UnavailableError, run

VERDICTS: Final = {0: "accepted", 1: "refused"}
"""By the exit status of the gate; with another one it could not judge."""
ADVICE: Final = re.compile(
    r"\b((?:keep|product|tests|prepare|setup|env|network) = (?:\[[^\n]*?\]+|\{[^\n]*?\}|\"[^\"\n]*\"))"
)
"""A key of the gate's table that a message says to write."""
MOST_ADVICE: Final = 2


@dataclass(frozen=True, slots=True)
class Program:
    """A program `interlock` that is tried."""

    label: str
    path: Path


@dataclass(frozen=True, slots=True)
class Trial:
    """One case before one gate; `bare` is whether the command itself passed there, if it was run."""

    case: str
    kind: str
    verdict: str
    seconds: float
    bare: bool | None


@dataclass(slots=True)
class Tried:
    """What one program came to in one project.

    Args:
        project: The project.
        program: The program.
        refusals: How often honest work was refused before the gate worked; None if it never did.
        remedies: What had to be written to make it work.
        bare_seconds: The seconds of the command with honest work.
        first_seconds: Those of the first gate, with the run of the base.
        trials: What each case came to.
    """

    project: str
    program: str
    refusals: int | None
    remedies: list[str]
    bare_seconds: float
    first_seconds: float
    trials: list[Trial] = field(default_factory=list[Trial])

    @property
    def gate_seconds(self) -> float:
        """The seconds of a gate whose base has been judged before."""
        return median([each.seconds for each in self.trials if each.case != "whole"] or [0.0])

    def as_json(self) -> dict[str, Any]:
        """Everything, as JSON has it."""
        return asdict(self) | {"gate_seconds": self.gate_seconds}


class Gate:
    """The gate of one program in one project.

    Args:
        checkout: The project.
        program: The program.
        folder: Where its state and its refusals are kept.
    """

    def __init__(self, checkout: Checkout, program: Program, folder: Path) -> None:
        self.checkout = checkout
        self.program = program
        self.refusals = folder / "refusals"
        self.environment = {**checkout.environment, "INTERLOCK_STATE": str(folder / "state")}
        self.base = self.parent = ""
        shutil.rmtree(folder, ignore_errors=True)
        self.refusals.mkdir(parents=True)

    def interlock(self, *args: str) -> Ended:
        """Run the program."""
        return run([str(self.program.path), *args], self.checkout.root, self.environment)

    def configure(self, remedies: Sequence[str]) -> None:
        """Commit what `init` writes, the command, the scope and the remedies, and nothing else."""
        project, checkout = self.checkout.project, self.checkout
        checkout.switch("tests")
        if (made := self.interlock("init", "--template", project.template)).status != 0:
            raise UnavailableError(f"`interlock init`: {made.output}")
        lines = [each for each in remedies if " = " in each]
        for line in (f"command = {json.dumps(project.argv)}", *lines):
            key = line.partition(" =")[0]
            text, times = re.subn(rf"(?m)^{key} = .*$", lambda _, line=line: line, checkout.read("interlock.toml"))
            if not times:
                text = re.sub(r"(?m)^command = .*$", lambda found, line=line: f"{found[0]}\n{line}", text)
            checkout.write("interlock.toml", text)
        task = re.sub(r"(?m)^task = .*$", 'task = "Fix the bug"', checkout.read("task.toml"))
        if project.scope:
            task = re.sub(r"(?m)^scope = .*$", lambda _: f"scope = {json.dumps(project.scope.split())}", task)
        checkout.write("task.toml", f'{task}\n[agents.builder]\nrunner = "remote"\n')
        for line in set(remedies) - set(lines):
            checkout.write(".gitignore", f"\n{line}\n", append=True)
        names = [name for name in ("interlock.toml", "task.toml", ".gitignore") if checkout.read(name)]
        checkout.git("add", "-f", *names)
        self.base = checkout.commit(f"base-{self.program.label}")
        if project.fix:
            checkout.switch("start")
            checkout.git("checkout", "-q", self.base, "--", *names)
            self.parent = checkout.commit(f"parent-{self.program.label}")

    def judge(self, case: Case, name: str) -> tuple[str, float, str] | None:
        """Judge a case, and keep the output unless it is accepted.

        Returns:
            The verdict, the seconds and the output; None if the project has nothing to do it to.
        """
        base = self.parent if case.name == "whole" else self.base
        self.checkout.switch(base)
        if case.act(self.checkout) is False:
            return None
        ended = self.interlock("gate", "GATE-TESTS", "--base", base, "--json")
        verdict = VERDICTS.get(ended.status, "not judged")
        if verdict != "accepted":
            named = re.search(r'"log": "([^"]+)"', ended.output)
            log = Path(named[1]) if named else None
            tests = log.read_text(encoding="utf-8", errors="replace") if log and log.exists() else ""
            (self.refusals / f"{name}.txt").write_text(f"{verdict}\n{ended.output}\n{tests}", encoding="utf-8")
        return verdict, ended.seconds, ended.output

    def advice(self, output: str, known: Sequence[str]) -> str | None:
        """Return a line that the refusal says to write, or that `interlock check` does."""

        def lines() -> Iterator[str]:
            yield from ADVICE.findall(output)
            self.checkout.switch(self.base)
            checked = self.interlock("check", "task.toml").output
            (self.refusals / f"check-{len(known)}.txt").write_text(checked, encoding="utf-8")
            yield from ADVICE.findall(checked)

        return next((line for line in lines() if line not in known and "…" not in line and _toml(line)), None)

    def work(self) -> tuple[int | None, list[str], float]:
        """Try honest work until it is accepted: by what is advised, then by what the project is known to need.

        Returns:
            The refusals before that, what had to be written, and the seconds of the first gate.
        """
        project, said, refusals, first = self.checkout.project, list[str](), 0, 0.0
        ignored = ".venv" in self.checkout.read(".gitignore")
        waiting = [*([".venv/"] if project.python and not ignored else []), *project.remedies]
        kept = remedies = list[str]()
        while True:
            self.configure(remedies)
            verdict, seconds, output = self.judge(HONEST, f"honest-{refusals}") or ("", 0.0, "")
            first = first or seconds
            if verdict == "accepted":
                return refusals, remedies, first
            refusals += 1
            if len(said) < MOST_ADVICE and (line := self.advice(output, said)):
                said.append(line)
                remedies = [*kept, line]
            elif waiting:
                kept = remedies = [*kept, waiting.pop(0)]
            else:
                self.configure(())
                return None, [], first


HONEST: Final = next(case for case in CASES if case.act is honest)
IDLE: Final = next(case for case in CASES if case.act is idle)


def _toml(line: str) -> bool:
    try:
        return bool(tomllib.loads(line))
    except tomllib.TOMLDecodeError:
        return False


def bare_runs(checkout: Checkout, cases: Sequence[Case]) -> dict[str, Ended]:
    """Run the bare command with honest work and with none, and with each of these cases that the project has."""
    found: dict[str, Ended] = {}
    for case in (HONEST, IDLE, *(each for each in cases if each not in (HONEST, IDLE))):
        checkout.switch("start" if case.name == "whole" else "tests")
        # A commit that corrects an old test is refused rightly, so for `whole` the old tests have to pass with the fix.
        act = honest if case.act is whole and checkout.project.fix else case.act
        if act(checkout) is not False:
            found[case.name] = checkout.command()
        if case is HONEST and found[case.name].status != 0:
            raise UnavailableError(f"its command fails with the fix: {found[case.name].output.strip()[-600:]}")
        if case is IDLE and found[case.name].status == 0:
            raise UnavailableError("its command passes without the fix")
    return found


def tried(gate: Gate, cases: Sequence[Case], bare: Mapping[str, Ended], notice: Callable[[str], None]) -> Tried:
    """Try cases before a gate; honest work only where the bare command passes with it."""
    label = gate.program.label
    refusals, remedies, first = gate.work()
    notice(f"{label}: {'no working gate' if refusals is None else f'{refusals} refusals before it works'}")
    usual = median(bare[case.name].seconds for case in CASES if case.kind == "honest" and case.name in bare)
    found = Tried(gate.checkout.project.name, label, refusals, remedies, usual, first)
    for case in cases:
        alone = bare.get(case.name)
        if case.kind == "honest" and (alone is None or alone.status != 0):
            continue
        if judged := gate.judge(case, case.name):
            verdict, seconds, _ = judged
            found.trials.append(Trial(case.name, case.kind, verdict, seconds, alone and alone.status == 0))
            notice(f"{label}: {case.name} {verdict}, {seconds:.1f} s")
    return found
