"""A sealed gate: the base, plus the product of the work, and nothing else; its tests; a verdict bound to that tree.

Theory of operation. Answers T1 and T2.

1. `check_base` ran the tests of the base on the base, sealed, and derived the product from what they loaded.
2. `choose` takes from the work the changed, removed and new files of the product, and what `may_change` lists. The base
   with these is the *candidate*, a git tree in our store. Everything else keeps its base content, whatever its name.
3. The same command runs on the candidate. Every test of the base must run and pass (`compare`). A file of the base that
   the run rewrites, though it did not on the base, refuses it. Where a file of the product turns out to hold tests, or
   to be a conftest file or a plugin, it is taken out, and the command runs again.
4. If that passes, the command runs on the candidate with the other new files of the scope: new tests, and what they
   bring. Test files that the work removed are not there (a moved test would collide with itself). Nothing may fail, and
   nothing that ran before may be gone.
5. Then, where the gate asks for it, so many of the changed lines have to have run in that last run.
6. Then held-out checks, on an export of the candidate: tests or cases that no agent sees. An agent may read what a gate
   says, so only counts leave here; their output stays in the state folder.

What must never happen: a file of the work other than these has a say in steps 3 and 6; a verdict speaks of another tree
than the one that ran; a fault of the set-up is called a fault of the code (it raises a `SealError`, exit status 2).

A test that fails though it passed on the base may be flaky: before it is called a fault, the base runs once more.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from interlock.core.finding import Finding
from interlock.core.text import few
from interlock.gates.checks.sealed import fault_of
from interlock.gates.command import store_log
from interlock.gates.errors import CollectorError
from interlock.gates.heldout import HeldOutFolder, HeldOutTable, judge_cases, load_held_out
from interlock.gates.manifest import Binding, Collection
from interlock.gates.patterns import compile_scope
from interlock.gates.sealed.against_base import Covered, covered_changes, new_results
from interlock.gates.sealed.base import BaseCheck, Progress, confirm_base, foreign_code, usable_bytecode
from interlock.gates.sealed.case import GateCase
from interlock.gates.sealed.compare import Comparison, compare
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.execution import Execution, Workspace, execute, prepare, workspace
from interlock.gates.sealed.outcomes import GOOD, TestCase, TestRun
from interlock.gates.sealed.product import Choice, Product, choose, matching
from interlock.gates.sealed.store import Entry, write
from interlock.gates.suppressions import added_suppressions

MAX_FAULTS: Final = 50
_MAX_LISTED: Final = 200
_MAX_MISSED: Final = 20
_FAULT_KEYS: Final = ("message", "found", "expected", "fix")
_AGAIN: Final = frozenset({"failed", "still_failing", "flaky"})
"""Faults that another try of a flaky test can take away."""
_DOUBTFUL: Final = frozenset({"failed", "missing", "skipped", "exit_status", "not_collected"})
"""Faults that a base whose tests are not stable can explain."""
_CODE: Final = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
_SUPPORT: Final = ("conftest.py", "__init__.py")


@dataclass(frozen=True)
class Work:
    """The present work, as a sealed gate judges it.

    Args:
        scope: Patterns of the files that the task may touch.
        may_change: Patterns of files that count although they are no product: tests, settings, lock files.
        outside: Files outside the scope that changed since the work was assigned; they have no effect.
        present: Lists the files in scope as evidence is bound to them, as `gates.tree.tree_files` does.
        tree: The stored tree that is the work; empty for the checkout as it is now.
    """

    scope: tuple[str, ...]
    may_change: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    present: Callable[[], Mapping[str, str]] | None = None
    tree: str = ""


@dataclass(frozen=True)
class SealedRun:
    """What came of one sealed gate, before it is evidence; without faults it is passed.

    Args:
        tree: The candidate that was judged.
        work: The work that it was made from.
        choice: What came from the work, and what did not.
        tests: The run of its tests; the outcomes of new ones are from their own run.
        comparison: The tests against those of the base.
        execution: The last run of the command.
        faults: Every reason why the gate is not passed.
        tries: How often tests ran.
        suppressions: New comments that silence a checker: `path:line comment`.
        heldout: Counts of held-out checks, or None.
        changed_lines: Which of the lines that the work adds or changes ran, where the gate asks for it.
    """

    tree: str
    work: str
    choice: Choice
    tests: TestRun
    comparison: Comparison
    execution: Execution
    faults: tuple[Finding, ...]
    tries: int = 1
    suppressions: tuple[str, ...] = ()
    heldout: Mapping[str, int] | None = None
    changed_lines: Covered | None = None

    @property
    def ok(self) -> bool:
        """Whether the gate is passed."""
        return not self.faults


def run_sealed_gate(
    case: GateCase, work: Work, check: BaseCheck, *, binding: Binding, progress: Progress = lambda _line: None
) -> Collection:
    """Run a sealed gate on the present work and store its evidence."""
    done = judge(case, work, check, progress=progress)
    results = json.dumps(_results(done), indent=1, ensure_ascii=True).encode("ascii")
    return store_log(
        case.gate,
        done.execution.ended,
        done.execution.output,
        root=case.root,
        binding=binding,
        sealed=summary(case, done, work, check),
        results=results,
    )


def chosen(case: GateCase, work: Work, product: Product) -> tuple[str, Choice]:
    """Store the work, and choose what of it is judged; return its tree, too."""
    store, frozen = case.store, case.frozen
    tree = work.tree or store.snapshot(frozen.root, case.seal.keep)
    changes: dict[str, Entry | None] = case.base.below(store.differing(frozen.base, tree))
    new = [path for path, entry in changes.items() if entry is not None and path not in case.files]
    # By the rules of the base, since those of the work are the agent's.
    ignored = case.base.below(dict.fromkeys(store.ignored_by(frozen.base, map(case.base.inside, new))))
    choice = choose(
        product,
        changes,
        case.files,
        scope=compile_scope(work.scope).matches,
        may_change=matching(work.may_change),
        ignored=frozenset(ignored),
    )
    if work.present is not None:
        _check_present(case, choice, work.present())
    return tree, choice


def _check_present(case: GateCase, choice: Choice, present: Mapping[str, str]) -> None:
    """Refuse work that is not what evidence is bound to: a process may change files while they are read."""
    for path, entry in (*choice.taken.items(), *choice.added.items()):
        found = "" if entry is None else f"{entry.mode} {sha256(case.store.content(entry.oid)).hexdigest()}"
        if present.get(path, "") != found:
            fix = "Let nothing write there until the gate has ended."
            raise SealError("SEAL121", f"{path} changed while {case.gate.id} ran.", fix)


def judge(case: GateCase, work: Work, check: BaseCheck, *, progress: Progress = lambda _line: None) -> SealedRun:
    """Judge the present work by the tests of the base.

    Raises:
        CollectorError: The set-up is at fault, so that nothing is known of the work.
    """
    tree, choice = chosen(case, work, check.product)
    judging = _Judging(case, work, check, progress)
    done = judging.tests_of_the_base(tree, choice)
    if not done.faults and done.choice.added:
        done = judging.new_tests(done)
    if not done.faults and case.seal.min_changed_coverage:
        done = judging.changed_lines(done)
    if not done.faults and case.seal.heldout:
        done = judging.held_out(done)
    if case.seal.forbid_new and not done.faults and done.suppressions:
        done = replace(done, faults=(fault_of("suppression", "", "; ".join(done.suppressions[:5])),))
    # The tests ran code of the work; where dependencies can be written, as without namespaces, what it left there
    # counts.
    case.check_dependencies()
    return done


@dataclass
class _Judging:
    """The steps of one judgement."""

    case: GateCase
    work: Work
    check: BaseCheck
    progress: Progress

    def tests_of_the_base(self, tree: str, choice: Choice) -> SealedRun:
        """Run the tests of the base on the candidate, and judge them."""
        suppressions = self._suppressions(choice)
        while True:
            candidate = self._with(self.case.frozen.base, choice.taken)
            execution, comparison, tries = self._run(candidate)
            deciding = self._deciding(choice, execution)
            if not deciding:
                break
            # New tests, and what they brought, count in the second run alone.
            taken = {path: entry for path, entry in choice.taken.items() if path not in deciding}
            new = {path: entry for path, entry in deciding.items() if path not in self.case.files}
            held = {path: "it decides the run, as tests and plugins do" for path in deciding if path not in new}
            choice = replace(choice, taken=taken, added={**choice.added, **new}, held={**choice.held, **held})
        # The base runs a second time only where the verdict hangs on it, since that takes as long as the gate.
        if {row.code for row in comparison.faults} & _DOUBTFUL and self.check.tests.again is None:
            self.check = confirm_base(self.case, self.check, self.progress)
            comparison = self._compared(execution.tests, None, self._free)
        if (other := foreign_code(self.case, execution.tests, execution.root)) is not None:
            raise SealError(other.code, f"{self.case.gate.id}: {other.message}", other.fix)
        # A run may rewrite files of the product, as formatters and generators do: nothing is judged by what they
        # were.
        own = {self.case.base.inside(path) for path in choice.taken}
        rewritten = {*execution.tests.written} - {*self.check.tests.run.written} - own
        faults = [fault_of("rewritten", path, "another content after the run") for path in sorted(rewritten)]
        return SealedRun(
            candidate,
            tree,
            choice,
            execution.tests,
            comparison,
            execution,
            (*comparison.faults, *faults),
            tries,
            suppressions,
        )

    def new_tests(self, done: SealedRun) -> SealedRun:
        """Run the command once more with the new files that are no product, and without tests that were moved."""
        self.progress("the tests of the base passed; now with the new files")
        removed = done.choice.removed
        tree = self._with(done.tree, {**done.choice.added, **dict.fromkeys(removed)})
        # Only tests of removed files may be gone: what `may_change` lets go was let go in the first run.
        execution, comparison, tries = self._run(tree, done.tests, lambda path: path in removed)
        # The outcomes of known tests are those of the first run, in which no new file had a say.
        added = tuple(each for each in execution.tests.cases if each.id in comparison.new)
        tests = replace(done.tests, cases=(*done.tests.cases, *added))
        new = (*done.comparison.new, *comparison.new)
        return replace(
            done,
            tests=tests,
            comparison=replace(done.comparison, new=new),
            execution=execution,
            faults=comparison.faults,
            tries=max(done.tries, tries),
        )

    def changed_lines(self, done: SealedRun) -> SealedRun:
        """Measure how many of the new lines of the product ran in the last run of the tests."""
        case, content = self.case, self.case.store.content
        changed = {
            path: (case.content(path) or b"", content(entry.oid))
            for path, entry in done.choice.taken.items()
            if entry is not None and not self._free(path)
        }
        found = covered_changes(done.execution.coverage, changed)
        if not done.execution.coverage:
            fault = fault_of("unread", "", f"{case.seal.coverage} names no line")
        elif found.percent < case.seal.min_changed_coverage:
            said = f"{found.covered} of {found.lines} ran; not {few(found.missed, _MAX_MISSED)}"
            message = f"{found.percent:.1f} % of the changed lines ran, of {case.seal.min_changed_coverage:g} %."
            fault = fault_of("changed_lines", "", said, message)
        else:
            return replace(done, changed_lines=found)
        return replace(done, faults=(fault,), changed_lines=found)

    def held_out(self, done: SealedRun) -> SealedRun:
        """Run the held-out checks on an export of the candidate."""
        self.progress("held-out checks")
        case = self.case
        held = load_held_out(
            case.root / case.seal.heldout, checkout=case.store.top, recorded=case.frozen.heldout[case.gate.id]
        )
        laid_over = (
            {path: content for path, (content, _) in held.files.items()} if isinstance(held, HeldOutFolder) else {}
        )
        with self._workspace(done.tree, laid_over) as here:
            if prepare(here):
                message = "A command of `prepare` failed before the held-out checks."
                raise CollectorError("HELD107", message, "Look at the command.")
            if isinstance(held, HeldOutFolder):
                total, passed = _held_out_folder(here, held, self.check.tests.run)
            else:
                total, passed = _held_out_table(here, held)
            # For the person alone: an agent reads what lies in `artifacts/`.
            write(f"{case.store.folder}/heldout/{case.gate.id}.log", here.output.finish()[0])
        counts = {"total": total, "passed": passed}
        # No check at all is no proof, as a folder in which the runner finds nothing.
        if passed == total > 0:
            return replace(done, heldout=counts)
        message = f"{total - passed} of {total} held-out checks failed." if total else "No held-out check ran."
        fault = fault_of("heldout", "", f"{passed} of {total} passed", message)
        return replace(done, faults=(fault,), heldout=counts)

    def _workspace(self, tree: str, laid_over: Mapping[str, bytes] | None = None) -> AbstractContextManager[Workspace]:
        frozen = [path for path in self.check.product.frozen if not self._free(path)]
        bytecode = usable_bytecode(self.case, self.check.bytecode)
        return workspace(self.case, tree, frozen=frozen, bytecode=bytecode, laid_over=laid_over)

    def _with(self, tree: str, changes: Mapping[str, Entry | None]) -> str:
        """Return a tree with other files below the root."""
        return self.case.store.compose(tree, {self.case.base.inside(path): entry for path, entry in changes.items()})

    def _run(
        self, tree: str, before: TestRun | None = None, free: Callable[[str], bool] | None = None
    ) -> tuple[Execution, Comparison, int]:
        """Run the tests on a tree, and where some fail, all again as often as the gate allows.

        Each try has an export of its own: what one leaves behind must not help the next one.
        """
        tries = 0
        # Where a file may stay broken, pytest has to run the tests of the others in spite of it.
        allowed = {path for path, _ in self.check.tests.run.broken} & {*self._allowed}
        while True:
            tries += 1
            with self._workspace(tree) as here:
                execution = execute(here, keep_going=bool(allowed))
            if execution.unprepared:
                return execution, Comparison((fault_of("prepare", "", execution.unprepared),)), tries
            comparison = self._compared(execution.tests, before, free or self._free)
            kinds = {row.code for row in comparison.faults}
            # One fault of another kind settles it: no further try can take that away.
            if not kinds or tries > self.case.seal.retries or not kinds <= _AGAIN:
                return execution, comparison, tries
            self.progress(f"try {tries + 1}: {len(comparison.faults)} failed before")

    @property
    def _allowed(self) -> Sequence[str]:
        seal = self.case.seal
        return (*seal.allow_failing, *(self.check.tests.failing() if seal.new_only else ()))

    def _compared(self, tests: TestRun, before: TestRun | None, free: Callable[[str], bool]) -> Comparison:
        found = compare(self.check.tests, tests, before=before, free=free, allow_failing=self._allowed)
        results = new_results(self.check.tests.run.results if self.case.seal.new_only else (), tests.results)
        # Of a report that cannot be read, or a checker that did not end well, that is said alone.
        if found.faults and not tests.cases:
            return found
        faults = [fault_of("finding", row.path, row.said, f"{row.rule}: {row.message}") for row in results]
        return replace(found, faults=(*found.faults, *faults))

    def _free(self, path: str) -> bool:
        return bool(path) and matching(self.work.may_change)(path)

    def _deciding(self, choice: Choice, execution: Execution) -> dict[str, Entry]:
        """Return the files of the product that turn out to decide the run, or to be none since nothing loads them."""
        product, tests, root = self.check.product, execution.tests, execution.root
        if not tests.sessions:
            return {}
        paths = {os.path.relpath(path, root) for path in tests.frozen if path.startswith(f"{root}/")}
        if not product.roots and not product.globs:  # as with Node
            loaded = {os.path.relpath(path, root) for _, path in tests.loaded}
            new = {path for path in choice.taken if path not in self.case.files and not product.holds(path)}
            paths |= new - loaded
        return {
            path: entry
            for path, entry in choice.taken.items()
            if entry is not None and path in paths and not self._free(path)
        }

    def _suppressions(self, choice: Choice) -> tuple[str, ...]:
        lines: list[str] = []
        for path, entry in choice.taken.items():
            if entry is not None:
                rows = added_suppressions(self.case.content(path), self.case.store.content(entry.oid), path)
                lines += [f"{path}:{line} {comment}" for line, comment in rows]
        return tuple(lines)


def _held_out_folder(here: Workspace, held: HeldOutFolder, base: TestRun) -> tuple[int, int]:
    """Run the command with the held-out tests in the export; return how many there are, and how many passed.

    A file of code that neither has a test nor was loaded by one did not run.
    """
    run, paths = execute(here).tests, held.files.keys()
    mine = [case for case in run.cases if case.file in paths]
    # A test that began and did not return was ended from within, whatever its outcome says.
    good = sum(case.outcome in GOOD and case.ran != "begun" for case in mine)
    known = {case.id for case in run.cases}
    lost = sum(identity not in known and identity.partition("::")[0] in paths for identity in run.collected)
    lost += sum(path in paths for path, _ in (*run.broken, *run.skipped_files))
    ran = {case.file for case in mine} | {os.path.relpath(path, here.root) for _, path in run.loaded}
    code = [path for path in paths if path.endswith(_CODE) and os.path.basename(path) not in _SUPPORT]
    # Where nobody observes the runner, no file is known to have run.
    lost += sum(path not in ran for path in code) if run.sessions else 0
    whole = (
        run.complete
        and not run.judge
        and not run.problem
        and not {*run.changed, *run.equals} - {*base.changed, *base.equals}
    )
    return len(mine) + lost, good if whole else 0


def _held_out_table(here: Workspace, held: HeldOutTable) -> tuple[int, int]:
    def call(argv: Sequence[str], *, stdin: bytes, timeout_seconds: float) -> tuple[int | None, bool, bytes]:
        output = bytearray()
        ended = here.run(argv, timeout_seconds=timeout_seconds, output=output.extend, stdin=stdin)
        return ended.exit_status, ended.timed_out, bytes(output)

    result = judge_cases(held, call, interpreter=(here.interpreter(held.language),), probes=here.held_out_probes)
    return result["total"], result["passed"]


def summary(case: GateCase, done: SealedRun, work: Work, check: BaseCheck) -> dict[str, Any]:
    """Return what the header of the log says of a sealed run, as JSON values."""
    tests, comparison = done.tests, done.comparison
    skipped = [each.id for each in tests.cases if each.outcome == "skipped"]
    lists: dict[str, Sequence[str]] = {
        "new": comparison.new,
        "gone": comparison.gone,
        "allowed": comparison.allowed,
        "skipped": skipped,
        "product": [*check.product.packages, *check.product.modules],
        "taken": [*done.choice.taken],
        "added": [*done.choice.added],
        "held_back": [path for path, why in done.choice.held.items() if why != "outside the scope"],
        "outside": work.outside,
        "inline": check.inline,
        "suppressions": done.suppressions,
    }
    return {
        "level": done.execution.level,
        "base": case.frozen.base,
        "tree": done.tree,
        "work": done.work,
        "command": case.digest,
        "runner": tests.runner,
        "parsed": tests.parsed,
        "observed": tests.sessions > 0,
        "counts": Counter(each.outcome for each in tests.cases),
        "tries": done.tries,
        **{name: list(values[:_MAX_LISTED]) for name, values in lists.items()},
        "heldout": None if done.heldout is None else dict(done.heldout),
        "changed_lines": None if (ran := done.changed_lines) is None else {"lines": ran.lines, "ran": ran.covered},
        "faults": [
            {"kind": row.code, "test": row.field, **{name: getattr(row, name) for name in _FAULT_KEYS}}
            for row in done.faults[:MAX_FAULTS]
        ],
        "more_faults": max(0, len(done.faults) - MAX_FAULTS),
    }


def _findings(done: SealedRun) -> Iterator[TestCase]:
    """Yield the findings of a checker for which a gate is not passed, as tests that failed."""
    for row in done.faults:
        if row.code == "finding":
            yield TestCase(row.found, "failed", message=row.found, file=row.field)


def _results(done: SealedRun) -> dict[str, Any]:
    return {
        "schema": "interlock.tests/1",
        "runner": done.tests.runner,
        "seconds": round(done.execution.ended.seconds, 3),
        "tests": [
            {"id": row.id, "outcome": row.outcome, "seconds": round(row.seconds, 4), "message": row.message}
            for row in (*done.tests.cases, *_findings(done))
        ],
        "not_collected": [{"file": path, "message": message} for path, message in done.tests.broken],
    }
