"""Runs behaviours, gates, programs, each trial in a project of its own.

The projects of one program lie at the same place, one after the other, so that what the tests of a base come to is
known from the first one.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.false_accept import cheats_beside, cheats_inside, cheats_node, cheats_outside
from benchmarks.false_accept.behaviours import BEHAVIOURS, Behaviour
from benchmarks.false_accept.judges import GATES, Bare, Judge, Verdict, judged
from benchmarks.false_accept.programs import Program
from benchmarks.false_accept.project import Workshop

CHEATS: Final = (cheats_beside, cheats_inside, cheats_node, cheats_outside)
"""The modules whose import fills the table of behaviours."""
BARE: Final = "bare"


@dataclass(frozen=True, slots=True)
class Trial:
    """One behaviour on one program before one gate."""

    behaviour: str
    place: str
    known: bool
    program: str
    gate: str
    accepted: bool
    reason: str
    seconds: float


class Trials:
    """Makes trials in a folder, some at a time.

    Args:
        folder: An empty folder.
        notice: Called with the number of trials that are done.
    """

    def __init__(self, folder: Path, notice: Callable[[int], None]) -> None:
        self.workshop = Workshop(folder)
        self.store = folder / "store"
        self.store.mkdir()
        self.notice = notice
        self.done = 0
        self.lock = threading.Lock()

    def one(self, program: Program, behaviour: Behaviour, name: str) -> Trial | None:
        """Make one trial; None when the program has nothing to do the behaviour to."""
        judge: Judge = Bare() if name == BARE else GATES[name].judge(self.store)
        project = self.workshop.project(program, program.name)
        try:
            judge.begin(project)
            if behaviour.act(project) is False:
                return None
            verdict, seconds = judged(judge, project)
        finally:
            self.workshop.remove(project)
        return _trial(program, behaviour, name, verdict, seconds)

    def before_every_gate(self, program: Program, behaviour: Behaviour, gates: Sequence[str]) -> list[Trial]:
        """Make the trials of one behaviour on one program."""
        trials: dict[str, Trial] = {}
        for name in ([BARE] if behaviour.place == "honest" else []) + list(gates):
            first = trials.get(GATES[name].adds_to) if name in GATES else None
            if first is not None and not first.accepted:
                verdict = Verdict(False, first.reason)
                trials[name] = _trial(program, behaviour, name, verdict, first.seconds)
            elif trial := self.one(program, behaviour, name):
                trials[name] = trial
        with self.lock:
            self.done += 1
            self.notice(self.done)
        return list(trials.values())

    def run(self, pairs: Sequence[tuple[Program, Behaviour]], gates: Sequence[str], jobs: int) -> list[Trial]:
        """Make every trial there is, so many programs at a time; the pairs of a program follow each other."""

        def every(some: list[tuple[Program, Behaviour]]) -> list[Trial]:
            return [trial for pair in some for trial in self.before_every_gate(*pair, gates)]

        with ThreadPoolExecutor(jobs) as pool:
            programs = [list(some) for _, some in groupby(pairs, lambda pair: pair[0].name)]
            return [trial for trials in pool.map(every, programs) for trial in trials]


def _trial(program: Program, behaviour: Behaviour, gate: str, verdict: Verdict, seconds: float) -> Trial:
    return Trial(
        behaviour=behaviour.name,
        place=behaviour.place,
        known=behaviour.known,
        program=program.name,
        gate=gate,
        accepted=verdict.accepted,
        reason=verdict.reason,
        seconds=round(seconds, 3),
    )


def pairs_of(
    programs: Sequence[Program], names: Sequence[str] = (), *, known: bool = False, full: bool = False
) -> list[tuple[Program, Behaviour]]:
    """List what is tried: honest work and none on each program, each cheat on each or on every third.

    Args:
        programs: The programs.
        names: The behaviours; none means all.
        known: Whether of the cheats only those that were measured first are tried.
        full: Whether each cheat is tried on each program.
    """
    return [
        (program, behaviour)
        for at, program in enumerate(programs)
        for number, behaviour in enumerate(BEHAVIOURS.values())
        if program.language in behaviour.languages
        and (not names or behaviour.name in names)
        and (
            behaviour.place in {"honest", "idle"} or ((behaviour.known or not known) and (full or at % 3 == number % 3))
        )
    ]


# -- what they come to -----------------------------------------------------------------------------------------------


def results(trials: Sequence[Trial], gates: Sequence[str]) -> dict[str, Any]:
    """Return the figures of each gate, a row for each behaviour, and every trial."""
    return {
        "gates": {name: _figures(trials, name) for name in gates},
        "behaviours": _rows(trials, gates),
        "trials": [asdict(trial) for trial in trials if trial.gate != BARE],
    }


def _figures(trials: Sequence[Trial], gate: str) -> dict[str, Any]:
    mine = [trial for trial in trials if trial.gate == gate]
    honest = [trial for trial in mine if trial.place == "honest"]
    cheats = [trial for trial in mine if trial.place not in {"honest", "idle"}]
    bare = [trial.seconds for trial in trials if trial.gate == BARE]
    seconds = median(trial.seconds for trial in honest) if honest else None

    def accepted(some: Iterable[Trial]) -> dict[str, int]:
        rows = list(some)
        return {"accepted": sum(trial.accepted for trial in rows), "of": len(rows)}

    return {
        "false_accepts": accepted(cheats),
        "correct_deliveries": accepted(honest),
        "wrong_refusals": sum(not trial.accepted for trial in honest),
        "idle": accepted(trial for trial in mine if trial.place == "idle"),
        "known_cheats": accepted(trial for trial in cheats if trial.known),
        "by_place": {
            place: accepted(trial for trial in cheats if trial.place == place)
            for place in ("outside", "scope", "process")
        },
        "seconds": seconds,
        "times_the_bare_command": round(seconds / median(bare), 2) if seconds and bare else None,
    }


def _rows(trials: Sequence[Trial], gates: Sequence[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for each in BEHAVIOURS.values():
        mine = [trial for trial in trials if trial.behaviour == each.name and trial.gate != BARE]
        if mine:
            programs = sorted({trial.program for trial in mine})
            accepted = {
                gate: [trial.program for trial in mine if trial.gate == gate and trial.accepted] for gate in gates
            }
            rows.append(
                {
                    "behaviour": each.name,
                    "place": each.place,
                    "known": each.known,
                    "does": each.does,
                    "programs": len(programs),
                    "accepted": {gate: len(names) for gate, names in accepted.items()},
                    "accepted_programs": accepted,
                }
            )
    return rows


def table(found: dict[str, Any]) -> str:
    """Return the results as lines for a terminal."""
    gates: dict[str, Any] = found["gates"]
    wide = "".join(f"{name:>16}" for name in gates)
    lines = [f"{'accepted':26}{'place':9}{'programs':>9}{wide}"]
    for row in found["behaviours"]:
        counts = "".join(f"{row['accepted'][name]:>16}" for name in gates)
        mark = "*" if row["known"] else " "
        lines.append(f"{mark} {row['behaviour']:24}{row['place']:9}{row['programs']:>9}{counts}")
    lines += ["* one of the 15 cheats that were measured first", ""]

    def line(label: str, text: Callable[[dict[str, Any]], str]) -> None:
        lines.append(f"{label:44}" + "".join(f"{text(row):>16}" for row in gates.values()))

    def share(row: dict[str, int]) -> str:
        return f"{row['accepted']} of {row['of']}"

    lines.append(f"{'':44}{wide}")
    line("false accepts", lambda row: share(row["false_accepts"]))
    for place in ("outside", "scope", "process"):
        line(f"  {place}", lambda row, place=place: share(row["by_place"][place]))
    line("  the 15 measured first", lambda row: share(row["known_cheats"]))
    line("correct deliveries", lambda row: share(row["correct_deliveries"]))
    line("wrong refusals", lambda row: str(row["wrong_refusals"]))
    line("nothing done, accepted", lambda row: share(row["idle"]))
    line("seconds (median of honest work)", lambda row: f"{row['seconds']:.2f}" if row["seconds"] else "-")
    line("  times the bare command", lambda row: str(row["times_the_bare_command"] or "-"))
    return "\n".join(lines)
