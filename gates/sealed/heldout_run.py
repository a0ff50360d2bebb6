"""Held-out checks at the end of a sealed gate. What comes out of here is counts: no name, path, value or log.

Checks that cannot be used, or are not those that the run began with, raise `HeldOutError`.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from interlock.core.finding import Finding
from interlock.core.text import closest
from interlock.gates.checks.sealed import fault_of
from interlock.gates.command import Output
from interlock.gates.sealed.added_files import shadowed
from interlock.gates.sealed.case import GateCase
from interlock.gates.sealed.compare import BaseList, Comparison, compare, file_of
from interlock.gates.sealed.execution import Workspace, execute, fresh_export, prepare
from interlock.gates.sealed.export import Plan, add_to_export, folders_of, forget
from interlock.gates.sealed.heldout import HeldOutError, HeldOutFolder, HeldOutTable, Language, load_held_out
from interlock.gates.sealed.heldout_judge import judge_cases
from interlock.gates.sealed.loaded_code import altered
from interlock.gates.sealed.outcomes import TestRun
from interlock.gates.sealed.protect import kind_of
from interlock.gates.sealed.sandbox import Pipes
from interlock.gates.sealed.static_tests import static_tests
from interlock.gates.sealed.store import write

JOBS = 2

_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What held-out checks came to: counts, the fault if there is one, `TestRun.touched` without anything of theirs."""

    counts: Mapping[str, int]
    fault: Finding | None
    touched: tuple[str, ...] = ()


def load_for(case: GateCase) -> HeldOutFolder | HeldOutTable | None:
    """Read the held-out checks of a gate; None where it has none."""
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
    """Return what of a held-out table's `function` the base does not have; empty where it has it, or needs none."""
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


def run_held_out(case: GateCase, plan: Plan, here: Workspace, before: TestRun) -> HeldOut | None:
    """Run the held-out checks of a gate on a fresh export of the same work; the visible tests passed in `before`."""
    checks = load_for(case)
    if checks is None:
        return None
    fresh_export(here, plan)
    hidden = replace(here, output=Output())
    if failed := prepare(hidden):
        raise HeldOutError(
            "HELD107", f"A command of `prepare` failed before the held-out checks: {failed}.", "Look at it."
        )
    try:
        if isinstance(checks, HeldOutTable):
            return _table(case, hidden, checks)
        return _folder(case, hidden, checks, before)
    finally:
        write(f"{case.base.store.folder}/heldout/{case.gate.id}.log", hidden.output.finish()[0])


def _table(case: GateCase, here: Workspace, table: HeldOutTable) -> HeldOut:
    def call(argv: Sequence[str], *, stdin: bytes, timeout_seconds: float) -> tuple[int | None, bool, bytes]:
        output = Output()
        ended = here.run(argv, timeout_seconds=timeout_seconds, pipes=Pipes(output.add, stdin=stdin))
        return ended.exit_status, ended.timed_out, output.finish()[0]

    known: dict[Language, tuple[str, ...]] = {
        "python": (case.python,), "javascript": (case.frozen.programs.get("node", ""),),
    }  # fmt: skip
    try:
        result = judge_cases(table, call, interpreters=known, jobs=JOBS)
    finally:
        forget(here.export)
    return HeldOut(asdict(result), None if result.ok else _fault(result.total, result.passed))


def _folder(case: GateCase, here: Workspace, folder: HeldOutFolder, before: TestRun) -> HeldOut:
    files = {case.base.inside(file.path): (file.content, file.executable) for file in folder.files}
    plan = here.plan
    here.plan = add_to_export(plan, here.export, files)
    own = files.keys() | folders_of(here.plan) - folders_of(plan)
    tests = execute(here).tests
    touched = tuple(path for path in tests.touched if path not in own)
    if len(touched) < len(tests.touched):
        return HeldOut({"total": len(files), "passed": 0}, _WRITTEN, touched)
    if not tests.parsed:
        good = tests.exit_status == 0
        return HeldOut({"total": 1, "passed": int(good)}, None if good else _fault(1, 0), touched)
    contents = {file.path: file.content for file in folder.files}
    mine, wanted = _own(tests, before, contents.keys())
    faults = _compared(case, mine, contents).faults
    elsewhere = (*shadowed(here.plan, before, tests), *altered(here.plan, before, tests))
    bad = {fault.field for fault in faults}
    passed = {row.id for row in mine.cases if row.outcome in ("passed", "xpassed")} - bad
    wanted |= {fault.field for fault in faults if fault.field}
    good = bool(passed) and passed == wanted and not faults and not elsewhere
    number = len(passed) if tests.complete and not elsewhere and "" not in bad else 0
    return HeldOut({"total": len(wanted), "passed": number}, None if good else _fault(len(wanted), number), touched)


def _own(tests: TestRun, before: TestRun, names: Collection[str]) -> tuple[TestRun, set[str]]:
    """Return what a run says of held-out files, and the ids of tests and files that have to pass.

    A runner that does not say where a test is has only names of tests: those that did not run before are theirs.
    """
    known = {case.id for case in before.cases}

    def own(identity: str, file: str) -> bool:
        return {file, file_of(identity)} & {*names} != set() or not (file or identity in known or file_of(identity))

    cases = tuple(row for row in tests.cases if own(row.id, row.file))
    files = {row.id: row.file for row in tests.cases}
    # unittest says nothing of the file of a test that did not run.
    others = known | {row.id for row in tests.cases} - {row.id for row in cases}

    def listed(ids: Iterable[str]) -> tuple[str, ...]:
        return tuple(each for each in ids if each not in others and own(each, files.get(each, "")))

    fails_elsewhere = any(row.outcome in ("failed", "error") for row in tests.cases if row not in cases)
    mine = replace(
        tests, cases=cases, collected=listed(tests.collected), running=listed(tests.running),
        deselected=listed(tests.deselected), broken=tuple(row for row in tests.broken if row[0] in names),
        skipped_files=tuple(row for row in tests.skipped_files if row[0] in names),
        exit_status=0 if fails_elsewhere else tests.exit_status,
    )  # fmt: skip
    wanted = {*mine.collected, *mine.running, *mine.deselected, *(row.id for row in cases)}
    return mine, wanted | {path for path, _ in (*mine.broken, *mine.skipped_files)}


def _compared(case: GateCase, tests: TestRun, contents: Mapping[str, bytes]) -> Comparison:
    """Judge held-out tests as those of a file that the base cannot collect: all that their text has must run."""

    def read(path: str) -> bytes | None:
        return contents.get(path) or case.base.content(case.base.inside(path))

    texts = [path for path in contents if kind_of(path) == "test"] if case.runner.name in _SAYS_FILES else []
    text = static_tests(texts, tests.runner, read, tuple(contents))
    listed = [path for path in texts if not path.endswith(".py") or text.get(path) or _TEST.search(contents[path])]
    base = BaseList(TestRun(tests.runner, broken=tuple((path, "") for path in listed)))
    return compare(
        base, tests, may_change=lambda _: False, allow_failing=case.seal.allow_failing, changed=lambda _: True,
        written={path: rows for path, rows in text.items() if rows},
    )  # fmt: skip


_SAYS_FILES: Final = frozenset({"pytest", "unittest", "node", "vitest", "jest"})
_TEST: Final = re.compile(rb"^\s*(?:async )?def test|^class Test|TestCase\b", re.MULTILINE)
_WRITTEN: Final = fault_of(
    "heldout", "", "another time of change", "Held-out tests were written or moved while they ran.",
    "Write into a temporary folder, and nowhere else.",
)._replace(expected="held-out tests stay as they are")  # fmt: skip


def _fault(total: int, passed: int) -> Finding:
    message = f"{total - passed} of {total} held-out checks failed." if total else "No held-out check ran."
    return fault_of("heldout", "", f"{passed} of {total} passed", message)
