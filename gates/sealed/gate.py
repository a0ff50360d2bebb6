"""A sealed gate: the base, plus the product of the work, and nothing else; its tests; a verdict bound to that tree.

Theory of operation. Answers T1 and T2.

1. `check_base` ran the tests of the base on the base, sealed, and derived the product from what they loaded.
2. `choose` takes from the work the changed, removed and new files of the product, and what `may_change` lists. The base
   with these is the *candidate*, a git tree in our store. Everything else keeps its base content, whatever its name.
3. The same command runs on the candidate. Every test of the base must run and pass (`compare`). A file of the base that
   decides the run, or that the run rewrites though it did not on the base, refuses it. Where a file of the product
   turns out to hold tests, or to be a conftest file or a plugin, it is taken out, and the command runs again.
4. If that passes, the command runs on the candidate with the other new files of the scope: new tests, and what they
   bring. Test files that the work removed are not there (a moved test would collide with itself). Nothing may fail, and
   nothing that ran before may be gone.
5. Then held-out checks, on an export of the candidate.

What must never happen: a file of the work other than these has a say in steps 3 and 5; a verdict speaks of another tree
than the one that ran; a fault of the set-up is called a fault of the code (it raises a `SealError`, exit status 2).

A test that fails though it passed on the base may be flaky: before it is called a fault, the base runs once more.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Any, Final

from interlock.core.finding import Finding
from interlock.gates.checks.sealed import fault_of
from interlock.gates.command import store_log
from interlock.gates.manifest import Binding, Collection
from interlock.gates.patterns import compile_scope
from interlock.gates.sealed.bare import foreign_code
from interlock.gates.sealed.base import BaseCheck, Progress, confirm_base, usable_bytecode
from interlock.gates.sealed.case import GateCase
from interlock.gates.sealed.compare import Comparison, compare, compare_added
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.execution import Execution, Workspace, execute, workspace
from interlock.gates.sealed.heldout import run_held_out
from interlock.gates.sealed.outcomes import BAD, TestRun
from interlock.gates.sealed.product import Choice, Product, choose, matching
from interlock.gates.sealed.sandbox import is_below
from interlock.gates.sealed.store import Entry
from interlock.gates.suppressions import added_suppressions

MAX_FAULTS: Final = 50
_TAIL_BYTES: Final = 4000
_MAX_WORDS: Final = 300
_READ_ONLY: Final = re.compile(r"Read-only file system|read-only file system|EROFS")
_MAX_LISTED: Final = 200
_FAULT_KEYS: Final = ("message", "found", "expected", "fix")
_AGAIN: Final = frozenset({"failed", "still_failing", "flaky"})
"""Faults that another try of a flaky test can take away."""
_DOUBTFUL: Final = frozenset({"failed", "missing", "skipped", "exit_status", "not_collected"})
"""Faults that a base whose tests are not stable can explain."""


@dataclass(frozen=True)
class Work:
    """The present work, as a sealed gate judges it.

    Args:
        scope: Patterns of the files that the task may touch.
        may_change: Patterns of files that count although they are no product: tests, settings, lock files.
        outside: Files outside the scope that changed since the work was assigned; they have no effect.
        present: Lists the files in scope as evidence is bound to them, as `gates.tree.tree_files` does.
    """

    scope: tuple[str, ...]
    may_change: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    present: Callable[[], Mapping[str, str]] | None = None


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
        case.gate, done.execution.ended, done.execution.output, root=case.root, binding=binding,
        sealed=summary(case, done, work, check), results=results,
    )  # fmt: skip


def chosen(case: GateCase, work: Work, product: Product) -> tuple[str, Choice]:
    """Store the work, and choose what of it is judged; return its tree, too."""
    store, frozen = case.store, case.frozen
    tree = store.snapshot(frozen.root, case.seal.keep)
    changes: dict[str, Entry | None] = case.base.below(store.differing(frozen.base, tree))
    new = [path for path, entry in changes.items() if entry is not None and path not in case.files]
    ignored = case.base.below(dict.fromkeys(store.ignored_by(frozen.base, map(case.base.inside, new))))
    choice = choose(
        product, changes, case.files, scope=compile_scope(work.scope).matches, may_change=matching(work.may_change),
        ignored=frozenset(ignored),
    )  # fmt: skip
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
    done = judging.first(tree, choice)
    if not done.faults and done.choice.added:
        done = judging.with_new_tests(done)
    if not done.faults and case.seal.heldout:
        done = judging.held_out(done)
    if case.seal.forbid_new and not done.faults and done.suppressions:
        found = "; ".join(done.suppressions[:5])
        done = replace(done, faults=(fault_of("suppression", "", found),))
    case.check_dependencies()
    return done


@dataclass
class _Judging:
    """The steps of one judgement."""

    case: GateCase
    work: Work
    check: BaseCheck
    progress: Progress
    bytecode: str = field(init=False)

    def __post_init__(self) -> None:
        self.bytecode = usable_bytecode(self.case, self.check.bytecode)

    def first(self, tree: str, choice: Choice) -> SealedRun:
        """Run the tests of the base on the candidate, and judge them."""
        suppressions = self._suppressions(choice)
        while True:
            candidate = self._with(self.case.frozen.base, choice.taken)
            with self._workspace(candidate) as here:
                execution, comparison, tries = self._tried(here, self._compare)
            deciding = self._deciding(choice, execution)
            if not deciding:
                break
            # New tests, and what they brought, count in the second run alone.
            kept = {path: entry for path, entry in choice.taken.items() if path not in deciding}
            new = {path: entry for path, entry in deciding.items() if path not in self.case.files}
            held = {path: "it decides the run, as tests and plugins do" for path in deciding if path not in new}
            choice = replace(choice, taken=kept, added={**choice.added, **new}, held={**choice.held, **held})
        if {row.code for row in comparison.faults} & _DOUBTFUL and self.check.tests.again is None:
            self.check = confirm_base(self.case, self.check, self.progress)
            comparison = self._compare(execution.tests)
        self._refuse_set_up(execution, comparison)
        faults = (*comparison.faults, *self._rewritten(execution.tests, choice))
        return SealedRun(
            candidate, tree, choice, execution.tests, comparison, execution, faults, tries, suppressions
        )  # fmt: skip

    def with_new_tests(self, done: SealedRun) -> SealedRun:
        """Run the command once more with the new files that are no product, and without tests that were moved."""
        self.progress("the tests of the base passed; now with the new files")
        choice = done.choice
        tree = self._with(done.tree, {**choice.added, **dict.fromkeys(choice.removed)})
        moved, allow = choice.removed.__contains__, self.case.seal.allow_failing
        judged = partial(compare_added, self.check.tests, first=done.tests, moved=moved, allow_failing=allow)
        with self._workspace(tree) as here:
            execution, comparison, tries = self._tried(here, judged)
        new = frozenset(comparison.new)
        added = tuple(each for each in execution.tests.cases if each.id in new)
        tests = replace(done.tests, cases=(*done.tests.cases, *added))
        return replace(
            done, tests=tests, comparison=replace(done.comparison, new=(*done.comparison.new, *comparison.new)),
            execution=execution, faults=comparison.faults, tries=max(done.tries, tries),
        )  # fmt: skip

    def held_out(self, done: SealedRun) -> SealedRun:
        """Run the held-out checks on an export of the candidate."""
        self.progress("held-out checks")
        faults, counts = run_held_out(self.case, lambda files: self._workspace(done.tree, files), self.check.tests)
        return replace(done, faults=faults, heldout=counts)

    def _workspace(self, tree: str, laid_over: Mapping[str, bytes] | None = None) -> Any:
        product = self.check.product
        packages = None if product.globs else product.packages
        return workspace(
            self.case, tree, frozen=[path for path in product.frozen if not self._free(path)], packages=packages,
            bytecode=self.bytecode, laid_over=laid_over,
        )  # fmt: skip

    def _with(self, tree: str, changes: Mapping[str, Entry | None]) -> str:
        """Return a tree with other files below the root."""
        return self.case.store.compose(tree, {self.case.base.inside(path): entry for path, entry in changes.items()})

    def _tried(
        self, here: Workspace, judge_tests: Callable[[TestRun], Comparison]
    ) -> tuple[Execution, Comparison, int]:
        """Run the tests, and those that failed again as often as the gate allows."""
        known = len(self.check.tests.run.cases)
        here.progress = lambda count: self.progress(f"{count} of {known} tests" if known else f"{count} tests")
        allowed = {path for path, _ in self.check.tests.run.broken} & {*self.case.seal.allow_failing}
        execution, tries = execute(here, keep_going=bool(allowed)), 1
        if execution.unprepared:
            return execution, Comparison((fault_of("prepare", "", execution.unprepared),)), tries
        comparison = judge_tests(execution.tests)
        while tries <= self.case.seal.retries and (faults := comparison.faults):
            if not {row.code for row in faults} <= _AGAIN:
                break
            failed = [row.field for row in faults]
            self.progress(f"try {tries + 1}: {len(failed)} failed before")
            # In an export of its own: what a try leaves behind must not help the next one.
            with self._workspace(here.tree) as fresh:
                fresh.output, fresh.progress = here.output, here.progress
                again = execute(fresh, only=failed)
            if again.unprepared:
                break
            execution, tries = replace(again, tests=_merged(execution.tests, again.tests)), tries + 1
            comparison = judge_tests(execution.tests)
        return execution, comparison, tries

    def _compare(self, tests: TestRun) -> Comparison:
        return compare(self.check.tests, tests, free=self._free, allow_failing=self.case.seal.allow_failing)

    def _free(self, path: str) -> bool:
        return bool(path) and matching(self.work.may_change)(path)

    def _deciding(self, choice: Choice, execution: Execution) -> dict[str, Entry]:
        """Return the files of the product that turn out to decide the run, or to be none since nothing loads them."""
        product, tests, root = self.check.product, execution.tests, execution.root
        if not tests.sessions:
            return {}
        found = {os.path.relpath(path, root) for path in tests.frozen if path.startswith(f"{root}/")}
        if not product.roots and not product.globs:
            loaded = {os.path.relpath(path, root) for _, path in tests.loaded}
            new = (path for path in choice.taken if path not in self.case.files and not product.holds(path))
            found |= {path for path in new if path not in loaded}
        return {
            path: entry for path, entry in choice.taken.items()
            if entry is not None and path in found and not self._free(path)
        }  # fmt: skip

    def _refuse_set_up(self, execution: Execution, comparison: Comparison) -> None:
        """Refuse to call it a fault of the work that other code runs, or that a step writes where nothing can be."""
        gate = self.case.gate.id
        if (found := foreign_code(self.case, execution.tests, execution.root)) is not None:
            raise SealError(found.code, f"{gate}: {found.message}", found.fix)
        tail = execution.output.finish()[0][-_TAIL_BYTES:].decode("utf-8", "replace")
        lines = [line.strip() for line in tail.splitlines() if _READ_ONLY.search(line)]
        if lines and {row.code for row in comparison.faults} == {"exit_status"}:
            message = f"{gate} cannot be sealed as it is: a step of its command writes where dependencies lie"
            raise SealError("SEAL401", f"{message}: {lines[-1][:_MAX_WORDS]}", "Let the command write elsewhere.")

    def _rewritten(self, tests: TestRun, choice: Choice) -> list[Finding]:
        """Return what the run wrote, or made and loaded beside the product, although that of the base did not."""
        case, base = self.case, self.check.tests.run
        taken = {case.base.inside(path) for path in choice.taken}
        rows = [(path, "another content after the run") for path in sorted({*tests.written} - {*base.written} - taken)]
        there = {*case.files, *choice.taken, *choice.added}
        known = {*base.frozen, *(path for _, path in base.loaded)}
        for path in sorted({*tests.frozen, *(path for _, path in tests.loaded)} - known):
            inside = os.path.relpath(path, case.root)
            is_made = is_below(path, [os.fspath(case.root)]) and not is_below(path, case.environment.kept)
            if is_made and inside not in there and not self.check.product.holds(inside):
                rows.append((inside, "made and loaded by the run"))
        return [fault_of("rewritten", *row) for row in rows]

    def _suppressions(self, choice: Choice) -> tuple[str, ...]:
        found: list[str] = []
        for path, entry in choice.taken.items():
            if entry is not None:
                rows = added_suppressions(self.case.content(path), self.case.store.content(entry.oid), path)
                found += [f"{path}:{line} {comment}" for line, comment in rows]
        return tuple(found)


def _merged(first: TestRun, again: TestRun) -> TestRun:
    """Return a run with the tests that ran again; what else they show of the judge counts too."""
    if again.judge or again.problem or not again.complete:
        return again
    later = {case.id: case for case in again.cases}
    cases = tuple(later.get(case.id, case) for case in first.cases)
    bad = any(case.outcome in BAD for case in cases)
    both: dict[str, Any] = {
        name: tuple(dict.fromkeys((*getattr(first, name), *getattr(again, name))))
        for name in ("loaded", "frozen", "changed", "written")
    }
    return replace(first, cases=cases, exit_status=first.exit_status if bad else again.exit_status, **both)


def summary(case: GateCase, done: SealedRun, work: Work, check: BaseCheck) -> dict[str, Any]:
    """Return what the header of the log says of a sealed run, as JSON values."""
    tests, comparison = done.tests, done.comparison
    skipped = [each.id for each in tests.cases if each.outcome == "skipped"]
    lists: dict[str, Sequence[str]] = {
        "new": comparison.new, "gone": comparison.gone, "allowed": comparison.allowed, "skipped": skipped,
        "product": [*check.product.packages, *check.product.modules], "taken": [*done.choice.taken],
        "added": [*done.choice.added],
        "held_back": [path for path, why in done.choice.held.items() if why != "outside the scope"],
        "outside": work.outside, "inline": check.inline, "suppressions": done.suppressions,
    }  # fmt: skip
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
        "faults": [
            {"kind": row.code, "test": row.field, **{name: getattr(row, name) for name in _FAULT_KEYS}}
            for row in done.faults[:MAX_FAULTS]
        ],
        "more_faults": max(0, len(done.faults) - MAX_FAULTS),
    }


def _results(done: SealedRun) -> dict[str, Any]:
    return {
        "schema": "interlock.tests/1",
        "runner": done.tests.runner,
        "seconds": round(done.execution.ended.seconds, 3),
        "tests": [
            {"id": row.id, "outcome": row.outcome, "seconds": round(row.seconds, 4), "message": row.message}
            for row in done.tests.cases
        ],
        "not_collected": [{"file": path, "message": message} for path, message in done.tests.broken],
    }
