"""Tries the gate on the repositories of other people, with the configuration that `interlock init` writes.

    python -m benchmarks.real_repositories                       # what can be had from PyPI and npm
    python -m benchmarks.real_repositories --snapshots DIR       # and clones of the others, as DIR/owner/name
    python -m benchmarks.real_repositories --interlock OLD --interlock NEW --json found.json
    python -m benchmarks.real_repositories --only toolz --only ufo --cases honest,idle

A project whose clone, packages or tools are missing is named and left out, and so is one whose own command does not
tell the fix from the base. Honest work is tried first: where it is refused, the line that the message or `interlock
check` says to write is written, then what the project is known to need; each refusal before the first working gate
counts. Every case is then judged with the configuration that worked. Cheats count only where one did. The output of
each gate that did not accept is kept in the work folder.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.real_repositories.cases import CASES
from benchmarks.real_repositories.checkout import UnavailableError, bring
from benchmarks.real_repositories.projects import projects
from benchmarks.real_repositories.trials import Gate, Program, Tried, bare_runs, tried

MARKS: Final = {"accepted": "+", "refused": "-", "not judged": "!"}


def programs(paths: Sequence[Path]) -> list[Program]:
    """Name the programs, each by the folder of its environment."""
    places = [path.absolute() for path in paths]
    return [Program(f"{number}-{place.parent.parent.name.strip('.')}", place) for number, place in enumerate(places, 1)]


def count(found: Sequence[Tried], kind: str, case: str = "") -> str:
    """Count the trials of a kind, or of one case, that came to what they should: honest work alone is accepted."""
    trials = [trial for each in found for trial in each.trials if trial.kind == kind and case in ("", trial.case)]
    return f"{sum((trial.verdict == 'accepted') == (kind == 'honest') for trial in trials)} of {len(trials)}"


def totals(found: Sequence[Tried]) -> dict[str, Any]:
    """Count what one program came to."""
    working = [each for each in found if each.refusals is not None]
    never = 99
    refusals = median([never if each.refusals is None else each.refusals for each in found])
    return {
        "plain configuration works": f"{sum(each.refusals == 0 for each in found)} of {len(found)}",
        "some configuration works": f"{len(working)} of {len(found)}",
        "refusals before the first working gate, median": "never" if refusals >= never else refusals,
        "honest work accepted": count(found, "honest"),
        "honest work accepted where the gate works": count(working, "honest"),
        "idle refused": count(working, "cheat", "idle"),
        "idle and cheats refused": count(working, "cheat"),
        "changed runners refused": count(working, "inside"),
        "seconds of the command, median": round(median(each.bare_seconds for each in found), 2),
        "seconds of the first gate, median": round(median(each.first_seconds for each in found), 2),
        "seconds of a later gate, median": round(median(each.gate_seconds for each in found), 2),
    }


def table(found: Sequence[Tried]) -> str:
    """Lay out the verdicts, a line for each project and program, and the totals of each program."""
    lines = [f"{number:2} {case.name} ({case.kind})" for number, case in enumerate(CASES, 1)]
    lines += ["+ accepted  - refused  ! could not judge  . not tried  * not as expected", ""]
    numbers = "".join(f"{number:>3}" for number in range(1, len(CASES) + 1))
    lines.append(f"{'project':20}{'program':18}refusals{numbers}    bare  first   gate")
    for each in found:
        trials, cells = {trial.case: trial for trial in each.trials}, ""
        for trial in (trials.get(case.name) for case in CASES):
            right = trial is None or trial.verdict == ("accepted" if trial.kind == "honest" else "refused")
            cells += f"{(MARKS[trial.verdict] if trial else '.') + ('' if right else '*'):>3}"
        refusals = "never" if each.refusals is None else str(each.refusals)
        seconds = f"{each.bare_seconds:8.1f}{each.first_seconds:7.1f}{each.gate_seconds:7.1f}"
        lines.append(f"{each.project:20}{each.program:18}{refusals:>8}{cells}{seconds}")
    for label in dict.fromkeys(each.program for each in found):
        came_to = totals([each for each in found if each.program == label])
        lines += ["", label, *(f"  {key:48}{value}" for key, value in came_to.items())]
    cheats = [
        trial.bare for each in found for trial in each.trials if trial.kind != "honest" and trial.bare is not None
    ]
    if cheats:
        lines += ["", f"the bare command accepts {sum(cheats)} of {len(cheats)} of the cheats"]
    return "\n".join(lines)


def notice(text: str) -> None:
    """Tell how far it is."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Try the projects and print what came of it."""
    listed, names = projects(), [case.name for case in CASES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = Path(sys.executable).with_name("interlock")
    parser.add_argument("--interlock", type=Path, action="append", metavar="PATH", help="a program to try; repeatable")
    parser.add_argument("--snapshots", type=Path, metavar="DIR", help="clones of repositories, bare or not")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="makes the environments of projects")
    parser.add_argument("--work", type=Path, metavar="DIR", help="the work folder, which is kept")
    parser.add_argument("--only", action="append", choices=[each.name for each in listed], metavar="NAME")
    parser.add_argument("--cases", default=",".join(names), help=f"some of {','.join(names)}")
    parser.add_argument("--bare", action="store_true", help="run the bare command with each cheat, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON, too")
    args = parser.parse_args()
    cases = [each for each in CASES if each.name in args.cases.split(",")]
    work = (args.work or Path(tempfile.mkdtemp(prefix="real-repositories-"))).resolve()
    snapshots = args.snapshots and args.snapshots.resolve()
    found, left_out = list[Tried](), dict[str, str]()
    for project in listed:
        if args.only and project.name not in args.only:
            continue
        notice(f"{project.name}: {project.why}")
        try:
            checkout = bring(project, work / project.name, snapshots, args.python)
            bare = bare_runs(checkout, [each for each in cases if args.bare or each.kind == "honest"])
            for program in programs(args.interlock or [beside]):
                found.append(tried(Gate(checkout, program, work / project.name / program.label), cases, bare, notice))
        except UnavailableError as error:
            left_out[project.name] = str(error)
            notice(f"left out: {error}")
        if args.json:
            everything = {"tried": [each.as_json() for each in found], "left_out": left_out}
            args.json.write_text(json.dumps(everything, indent=2), encoding="utf-8")
    if found:
        print(table(found))
    for name, reason in left_out.items():
        print(f"left out: {name}: {reason.splitlines()[0]}")
    print(f"refusals: {work}/PROJECT/PROGRAM/refusals")


if __name__ == "__main__":
    main()
