"""Held-out checks at the end of a sealed gate. What comes out of here is counts: no name, path, value or log."""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from interlock.envelope.labels import closest
from interlock.gates.command import Output
from interlock.gates.sealed.execution import GateCase, Workspace, execute, fresh_export, prepare
from interlock.gates.sealed.export import Plan
from interlock.gates.sealed.faults import Fault
from interlock.gates.sealed.heldout import HeldOutError, HeldOutFolder, HeldOutTable, load_held_out
from interlock.gates.sealed.heldout_judge import INTERPRETERS, judge_cases
from interlock.gates.sealed.runners.python import PythonRunner
from interlock.gates.sealed.sandbox import Pipes
from interlock.gates.sealed.store import write

JOBS = 2

_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What held-out checks came to.

    Args:
        counts: How many there are, and how many came to what.
        fault: Why the gate is not passed, or None.
    """

    counts: Mapping[str, int]
    fault: Fault | None


def load_for(case: GateCase) -> HeldOutFolder | HeldOutTable | None:
    """Read the held-out checks of a gate; None where it has none.

    Raises:
        HeldOutError: They cannot be used, or are not those that the run began with.
    """
    if not case.seal.heldout:
        return None
    checks = load_held_out(case.root / case.seal.heldout, checkout=case.base.top)
    if checks.digest != case.frozen.heldout.get(case.gate.id, checks.digest):
        raise HeldOutError(
            "HELD108",
            f"The held-out checks of {case.gate.id} are not those that the run began with.",
            "Put them back and resume, or start a new run.",
        )
    return checks


def unknown_function(case: GateCase) -> str:
    """Return what of a held-out table's `function` the base does not have; empty where it has it, or needs none.

    Raises:
        HeldOutError: As `load_for`.
    """
    checks = load_for(case)
    if not isinstance(checks, HeldOutTable):
        return ""
    content = case.base.content(case.base.inside(checks.program))
    if content is None:
        return f"{checks.program} is not there"
    words = set(_WORD.findall(content.decode("utf-8", "replace")))
    missing = next((part for part in checks.function.split(".") if part not in words), None)
    if missing is None:
        return ""
    near = closest(missing, sorted(words))
    return f"{checks.program} has no `{missing}`" + (f" (did you mean `{near}`?)" if near else "")


def run_held_out(case: GateCase, plan: Plan, here: Workspace) -> HeldOut | None:
    """Run the held-out checks of a gate on a fresh export of the same work.

    Raises:
        CollectorError: They cannot be used, or cannot be run.
    """
    checks = load_for(case)
    if checks is None:
        return None
    fresh_export(case, plan, here)
    hidden = replace(here, output=Output())
    if failed := prepare(case, hidden):
        raise HeldOutError(
            "HELD107", f"A command of `prepare` failed before the held-out checks: {failed}.", "Look at it."
        )
    try:
        return _table(case, hidden, checks) if isinstance(checks, HeldOutTable) else _folder(case, hidden, checks)
    finally:
        write(f"{case.base.store.folder}/heldout/{case.gate.id}.log", hidden.output.finish()[0])


def _table(case: GateCase, here: Workspace, table: HeldOutTable) -> HeldOut:
    def call(argv: Sequence[str], *, stdin: bytes, timeout_seconds: float) -> tuple[int | None, bool, bytes]:
        output = Output()
        ended = here.run(argv, timeout_seconds=timeout_seconds, pipes=Pipes(output.add, stdin=stdin))
        return ended.exit_status, ended.timed_out, output.finish()[0]

    known = dict(INTERPRETERS)
    if isinstance(case.runner, PythonRunner):
        known["python"] = case.runner.interpreter[:1]
    else:
        known["python"] = (case.frozen.programs.get("python3", ""),)
    known["javascript"] = (case.frozen.programs.get("node", ""),)
    result = judge_cases(table, call, interpreters=known, jobs=JOBS)
    return HeldOut(asdict(result), None if result.ok else _fault(result.total, result.passed))


def _folder(case: GateCase, here: Workspace, folder: HeldOutFolder) -> HeldOut:
    names: set[str] = set()
    for file in folder.files:
        path = Path(here.export) / case.base.inside(file.path)
        _place(path)
        path.write_bytes(file.content)
        path.chmod(0o755 if file.executable else 0o644)
        names.add(file.path)
    tests = execute(case, here).tests
    if not tests.parsed:
        good = tests.exit_status == 0
        return HeldOut({"total": 1, "passed": int(good)}, None if good else _fault(1, 0))
    rows = [row for row in tests.cases if row.file in names or row.id.partition("::")[0] in names]
    passed = sum(row.outcome in ("passed", "xpassed") for row in rows)
    whole = len(rows) + sum(path in names for path, _ in tests.broken)
    good = bool(rows) and passed == whole and tests.complete and not tests.judge
    return HeldOut({"total": whole, "passed": passed}, None if good else _fault(whole, passed if tests.complete else 0))


def _place(path: Path) -> None:
    """Make room for a file: what the tested tree has in its way is removed."""
    for parent in reversed(path.parents):
        if parent.is_symlink() or parent.is_file():
            parent.unlink()
            break
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            os.unlink(path)


def _fault(total: int, passed: int) -> Fault:
    return Fault(
        "heldout", "", f"{total - passed} of {total} held-out checks failed." if total else "No held-out check ran.",
        f"{passed} of {total} passed", "all held-out checks pass",
        "Correct the code for all inputs that the task allows, not only for those of the visible tests.",
    )  # fmt: skip
