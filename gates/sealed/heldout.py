"""Held-out checks of a sealed gate: tests or cases that no agent sees, run at the end on an export of the candidate.

Answers T2: answers that are hard-coded for the visible tests. An agent may read what a gate says, so only counts leave
here; the output stays in the state folder.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final

from interlock.core.finding import Finding
from interlock.gates.checks.sealed import fault_of
from interlock.gates.heldout import HeldOutError, HeldOutFolder, HeldOutTable, judge_cases, load_held_out
from interlock.gates.sealed.case import GateCase
from interlock.gates.sealed.compare import BaseTests
from interlock.gates.sealed.execution import Workspace, execute, prepare
from interlock.gates.sealed.outcomes import GOOD
from interlock.gates.sealed.store import write

Open = Callable[[Mapping[str, bytes]], AbstractContextManager[Workspace]]
"""Makes an export of the candidate with files laid over it."""

_CODE: Final = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
_SUPPORT: Final = ("conftest.py", "__init__.py")


def run_held_out(case: GateCase, open_export: Open, tests: BaseTests) -> tuple[tuple[Finding, ...], Mapping[str, int]]:
    """Run the held-out checks of a gate; return what is wrong, and how many there were and passed."""
    recorded = case.frozen.heldout[case.gate.id]
    held = load_held_out(case.root / case.seal.heldout, checkout=case.store.top, recorded=recorded)
    laid = {path: content for path, (content, _) in held.files.items()} if isinstance(held, HeldOutFolder) else {}
    with open_export(laid) as here:
        if prepare(here):
            message = "A command of `prepare` failed before the held-out checks."
            raise HeldOutError("HELD107", message, "Look at the command.")
        total, passed = _folder(here, held, tests) if isinstance(held, HeldOutFolder) else _table(here, held)
        write(f"{case.store.folder}/heldout/{case.gate.id}.log", here.output.finish()[0])
    counts = {"total": total, "passed": passed}
    if passed == total > 0:
        return (), counts
    message = f"{total - passed} of {total} held-out checks failed." if total else "No held-out check ran."
    return (fault_of("heldout", "", f"{passed} of {total} passed", message),), counts


def _folder(here: Workspace, held: HeldOutFolder, tests: BaseTests) -> tuple[int, int]:
    """Run the command with the held-out tests in the export.

    Each of their tests must pass. A file of code that neither has a test nor was loaded by one did not run.
    """
    run = execute(here).tests
    paths = held.files.keys()
    mine = [case for case in run.cases if case.file in paths]
    good = sum(case.outcome in GOOD and not case.equals and case.ran != "begun" for case in mine)
    known = {case.id for case in run.cases}
    lost = sum(identity not in known and identity.partition("::")[0] in paths for identity in run.collected)
    lost += sum(path in paths for path, _ in (*run.broken, *run.skipped_files))
    ran = {case.file for case in mine} | {os.path.relpath(path, here.root) for _, path in run.loaded}
    code = [path for path in paths if path.endswith(_CODE) and os.path.basename(path) not in _SUPPORT]
    lost += sum(path not in ran for path in code) if run.sessions else 0
    whole = run.complete and not run.judge and not run.problem and not {*run.changed} - {*tests.run.changed}
    return len(mine) + lost, good if whole else 0


def _table(here: Workspace, held: HeldOutTable) -> tuple[int, int]:
    def call(argv: Sequence[str], *, stdin: bytes, timeout_seconds: float) -> tuple[int | None, bool, bytes]:
        output = bytearray()
        ended = here.run(argv, timeout_seconds=timeout_seconds, output=output.extend, stdin=stdin)
        return ended.exit_status, ended.timed_out, bytes(output)

    result = judge_cases(held, call, interpreter=(here.interpreter(held.language),), probes=here.held_out_probes)
    return result["total"], result["passed"]
