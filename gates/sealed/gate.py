"""A sealed gate from its parts: export the work, run its tests, compare them with the base, keep the evidence.

What cannot be judged raises a `CollectorError` with a code `SEAL…` or `COL20x`.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final

from interlock.core.finding import Finding
from interlock.core.process import Ended
from interlock.gates.checks.sealed import fault_of
from interlock.gates.command import store_log
from interlock.gates.manifest import Binding, Collection
from interlock.gates.sealed import added_files
from interlock.gates.sealed.base import LINK
from interlock.gates.sealed.case import GateCase
from interlock.gates.sealed.compare import BaseList, Comparison, compare, compare_added
from interlock.gates.sealed.configured import configured_files
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.execution import Execution, Workspace, execute, fresh_export, prepare, replacing, workspace
from interlock.gates.sealed.export import Plan, plan_of
from interlock.gates.sealed.gitignore import base_ignores
from interlock.gates.sealed.heldout_run import run_held_out
from interlock.gates.sealed.listing import list_tree
from interlock.gates.sealed.loaded_code import altered, check_loaded
from interlock.gates.sealed.outcomes import TestRun
from interlock.gates.sealed.protect import Protection, above, is_code, kind_of, protection
from interlock.gates.sealed.static_tests import static_tests
from interlock.gates.tree import TreeError, file_value, in_scope, paths_in_scope

MAX_FAULTS: Final = 50
_MAX_LISTED: Final = 200
_FAULT_KEYS: Final = ("message", "found", "expected", "fix")
_INLINE_RUST: Final = re.compile(rb"#\[(?:cfg\(test\)|test\b|tokio::test)")
_INTERPRETER: Final = re.compile(r"(?:ba|da|z|k)?sh|python[\d.]*|node|ruby|perl|php")
_AGAIN: Final = frozenset({"failed", "still_failing"})
"""Faults that another try of a flaky test can take away."""

Progress = Callable[[str], None]
"""Takes a line about what the gate does now."""


@dataclass(frozen=True)
class Work:
    """The present work, as a sealed gate judges it.

    Args:
        scope: Patterns of the files that are laid over the base.
        may_change: Patterns of tests and settings that the work may change.
        outside: Files outside the scope that changed since the work was assigned; they are not in the export.
        present: Lists the files in scope as `gates.tree.tree_files` does, where they are known already. Of those that
            are not as in the base, the contents must still be as listed.
    """

    scope: tuple[str, ...]
    may_change: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    present: Callable[[], Mapping[str, str]] | None = None


@dataclass(frozen=True)
class SealedRun:
    """What came of one sealed gate, before it is evidence; without faults it is passed.

    Args:
        plan: What the export held.
        comparison: The tests against those of the base.
        execution: The last run of the command, or what `prepare` printed.
        faults: Every reason why the gate is not passed.
        tries: How often tests ran.
        inline: Files in scope that define tests and product code together, so that their tests are not sealed.
        heldout: Counts of held-out checks, or None.
    """

    plan: Plan
    comparison: Comparison
    execution: Execution
    faults: tuple[Finding, ...]
    tries: int
    inline: tuple[str, ...]
    heldout: Mapping[str, int] | None = None

    @property
    def ok(self) -> bool:
        """Whether the gate is passed."""
        return not self.faults


def run_sealed_gate(
    case: GateCase, work: Work, tests: BaseList, *, binding: Binding, progress: Progress = lambda _line: None
) -> Collection:
    """Run a sealed gate on the present work and store its evidence."""
    done = judge(case, work, tests, progress=progress)
    execution = done.execution
    results = json.dumps(_results(done), indent=1, ensure_ascii=True).encode("ascii")
    return store_log(
        case.gate, execution.ended, execution.output, root=case.root, binding=binding, sealed=summary(case, done, work),
        results=results,
    )  # fmt: skip


def judge(case: GateCase, work: Work, tests: BaseList, *, progress: Progress = lambda _line: None) -> SealedRun:
    """Run a sealed gate on the present work."""
    judging = _Judgement(case, work, tests, progress)
    with case.unchanged(), workspace(case, judging.first) as here:
        if failed := prepare(here):
            return judging.unprepared(here, failed)
        return judging.run(here)


@dataclass(frozen=True)
class _Judgement:
    case: GateCase
    work: Work
    tests: BaseList
    progress: Progress

    @cached_property
    def inline(self) -> tuple[str, ...]:
        """Files in scope that hold tests beside the code that they test."""
        return tuple(sorted(_inline(self.case, self.tests) & self.present.keys()))

    @cached_property
    def present(self) -> dict[str, str]:
        """The files in scope as they are now.

        What is ignored, now or by the rules of the base, and not in the base is no part of the work: installed
        dependencies, and what a build left behind, which would take the place of what `prepare` makes of the work.
        """
        root, base = self.case.root, self.case.base
        try:
            given = None if self.work.present is None else self.work.present()
            paths = sorted(paths_in_scope(root, self.work.scope) if given is None else given)
            listed = base.files.keys()
            if any(base.inside(path) not in listed for path in paths):
                ignored = base_ignores(base, lambda path: self._may_change(base.outside(path) or ""))
                now = list_tree(base.top, base.root).files.keys()
                listed = listed | {path for path in now - listed if not ignored(path)}
            mine = (path for path in paths if base.inside(path) in listed)
            return {path: file_value(root, path) if given is None else given[path] for path in mine}
        except TreeError as error:
            raise SealError("SEAL121", error.message, error.fix) from error

    @cached_property
    def _may_change(self) -> Callable[[str], bool]:
        return protection((), self.work.may_change).free.matches

    @cached_property
    def protection(self) -> Protection:
        """What keeps its base content, and what the tests of the base are judged without."""
        files = self.base_files
        env = {**self.case.seal.env, **self.case.runner.env}
        configured = configured_files(self.case.gate.command, self.read, files, env)
        named = {*self.case.named, *added_files.defining_files(self.tests), *configured}
        named -= _inline(self.case, self.tests)
        own = added_files.tests_of_packages(files) | added_files.data_of_tests(files)
        named |= {path for path in files if not own.isdisjoint(above(path))}
        folders = own | added_files.test_folders(self.tests.run, files)
        made = protection(self.case.seal.protect, self.work.may_change, named, folders)
        led, places = added_files.linked(self.base_links, files, lambda path: made.holds(path, in_base=True))
        return replace(made, named=named | led, folders=folders | places)

    @property
    def base_links(self) -> dict[str, str]:
        """The links of the base below the root, each with its text."""
        base = self.case.base
        return {
            path: os.fsdecode(base.store.object(entry.sha256))
            for inside, entry in base.files.items()
            if entry.mode == LINK and (path := base.outside(inside)) is not None
        }

    @cached_property
    def base_files(self) -> tuple[str, ...]:
        return tuple(filter(None, map(self.case.base.outside, self.case.base.files)))

    def read(self, path: str) -> bytes | None:
        """Return the content of a file of the base, by its path relative to the root."""
        return self.case.base.content(self.case.base.inside(path))

    @cached_property
    def plan(self) -> Plan:
        return plan_of(self.case.base, self.present, self.work.scope, self.protection)

    @cached_property
    def first(self) -> Plan:
        """What the export holds when the tests of the base are judged: nothing new beside them."""
        return self.plan.without([path for path in self.plan.added if self.protection.beside_tests(path)])

    @cached_property
    def changed(self) -> frozenset[str]:
        """Files of the export that differ from the base, relative to the root."""
        paths = (*self.plan.laid_over, *self.plan.removed)
        return frozenset(filter(None, map(self.case.base.outside, paths)))

    def unprepared(self, here: Workspace, why: str) -> SealedRun:
        fault = fault_of("prepare", "", why)
        ended = Ended(0, 0.0, "unstarted")
        execution = Execution(TestRun(self.case.runner.name, complete=False), ended, here.output, "namespaces")
        return SealedRun(self.plan, Comparison((fault,)), execution, (fault,), 1, self.inline)

    def run(self, here: Workspace) -> SealedRun:
        """Judge the tests of the base, then the new ones beside them, then run the held-out checks."""
        known = len(self.tests.run.cases)
        here.progress = lambda number: self.progress(f"{number} of {known} tests" if known else f"{number} tests")
        plan, done = self.first, self._tried(here, self.first, self._compare)
        tests = done.execution.tests
        new = added_files.new_test_files(self.tests, tests, plan.added)
        if new and not done.comparison.faults:
            # Only its tests say that a file is one of tests: what it did to the others is not known.
            plan = plan.without(new)
            if failed := self._export(here, plan):
                return self.unprepared(here, failed)
            done = self._tried(here, plan, self._compare)
        faults, heldout = (*done.comparison.faults, *self._displaced(plan, done.execution.tests, replacing(here))), None
        if faults:
            left_out = (path for path in self.plan.added if path not in plan.added)
            held_back = tuple(sorted((*self.plan.held_back, *left_out)))
            plan = replace(self.plan, held_back=held_back)
            return SealedRun(plan, done.comparison, done.execution, faults, done.tries, self.inline)
        if plan.added != self.plan.added:
            self.progress("the tests of the base passed; now with the new tests")
            if failed := self._export(here, self.plan):
                return self.unprepared(here, failed)
            added = partial(compare_added, self.tests, allow_failing=self.case.seal.allow_failing)
            done = done.followed_by(self._tried(here, self.plan, added))
            faults = done.comparison.faults
        faults = faults or self._unjudged()
        if not faults and (hidden := run_held_out(self.case, plan, here, done.execution.tests)) is not None:
            faults, heldout = (() if hidden.fault is None else (hidden.fault,)), hidden.counts
            faults += self._rewritten(plan, hidden.touched)
        return SealedRun(self.plan, done.comparison, done.execution, faults, done.tries, self.inline, heldout)

    def _unjudged(self) -> tuple[Finding, ...]:
        """Return the changed files that keep their base content for no other reason than that a command reads them."""
        files, patterns = self.base_files, self.protection.patterns
        others = {*added_files.defining_files(self.tests), *configured_files(self.case.gate.command, self.read, files)}
        others |= {os.path.normpath(word) for argv in self.case.commands for word in _run_by(argv)}
        only = (path for path in self.plan.held_back if path in self.case.named and path not in others)
        return tuple(
            fault_of("unjudged", path, "the content of the base was judged")
            for path in only
            if not kind_of(path) and not patterns.matches(path)
        )

    def _export(self, here: Workspace, plan: Plan) -> str:
        """Make the export what another plan says; return why `prepare` failed, or nothing."""
        fresh_export(here, plan)
        return prepare(here)

    def _tried(self, here: Workspace, plan: Plan, judge: Callable[[TestRun], Comparison]) -> "_Tried":
        """Run the tests, and those that failed again as often as the gate allows."""
        execution = execute(here)
        tests, tries = execution.tests, 1
        comparison = judge(tests)
        while (
            tries <= self.case.seal.retries and comparison.faults and {row.code for row in comparison.faults} <= _AGAIN
        ):
            failed = [row.field for row in comparison.faults]
            self.progress(f"try {tries + 1}: {len(failed)} failed before")
            if self._export(here, plan):
                break
            execution = execute(here, only=failed if self.case.runner.selects else ())
            tests, tries = _merged(tests, execution.tests), tries + 1
            comparison = judge(tests)
        check_loaded(self.case, plan.files, tests.loaded)
        comparison = replace(comparison, faults=(*comparison.faults, *self._rewritten(plan, tests.touched)))
        return _Tried(replace(execution, tests=tests), comparison, tries)

    def _displaced(self, plan: Plan, tests: TestRun, built: Iterable[str]) -> list[Finding]:
        """Return the files of the work in the place of other modules, and base files compiled from another text."""
        before, outside = self.tests.run, self.case.base.outside
        new = [*plan.added, *filter(None, map(outside, sorted({*built} - {*before.touched} - plan.files.keys())))]
        found = [*added_files.shadowed(plan, before, tests)]
        found += added_files.hiding(plan, before, self.case.python_path, new)
        for path, others in sorted(added_files.displacing(new, self.base_files).items()):
            if kept := sorted(other for other in others if self._keeps(other)):
                found.append(fault_of("shadowed", path, f"it is loaded in place of {kept[0]}"))
        return [*found, *altered(plan, before, tests)]

    def _rewritten(self, plan: Plan, touched: Iterable[str]) -> tuple[Finding, ...]:
        """Return the files that keep their base content, and were written or moved; on the base they were not.

        So are new ones, where the tests or what they start would load them.
        """
        found: list[Finding] = []
        outside = self.case.base.outside
        for path in sorted({*touched} - {*self.tests.run.touched} - plan.laid_over):
            inside = [name for name in plan.files if name == path or name.startswith(f"{path}/") or not path]
            if any(self._keeps(outside(name) or name) for name in inside):
                found.append(fault_of("rewritten", outside(path) or path or ".", "another time of change"))
            elif not inside and self._stays_away(outside(path.rstrip("/")) or path):
                found.append(fault_of("planted", outside(path) or path, "made while the tests, or `prepare`, ran"))
        return tuple(found)

    def _stays_away(self, path: str) -> bool:
        """Return whether a file that a run made, relative to the root, may be loaded in the place of another."""
        if self._may_change(path):
            return False
        return self.protection.holds(path, in_base=True) or path.rpartition("/")[0] in self._judging_folders

    @cached_property
    def _judging_folders(self) -> frozenset[str]:
        """The folders, relative to the root, with code of the base that the work may not write."""
        code = (path for path in self.base_files if is_code(path))
        return frozenset(path.rpartition("/")[0] for path in code if self._keeps(path))

    def _keeps(self, path: str) -> bool:
        """Return whether a file of the base, relative to the root, is none that the work may write."""
        work = in_scope(path, self.work.scope) and not self.protection.holds(path, in_base=True)
        return not work and not self._may_change(path)

    def _compare(self, tests: TestRun) -> Comparison:
        return compare(
            self.tests,
            tests,
            may_change=self._may_change,
            allow_failing=self.case.seal.allow_failing,
            changed=self.changed.__contains__,
            written=static_tests(self._unlisted(tests), tests.runner, self.read, self.base_files),
            more=self.first.added != self.plan.added,
        )

    def _unlisted(self, now: TestRun) -> frozenset[str]:
        """Return the files whose tests the base could not list; where it listed none, those that have some now."""
        run = self.tests.run
        if run.broken or run.cases or run.collected:
            return frozenset(path for path, _ in run.broken)
        return frozenset((*(case.file for case in now.cases), *(path for path, _ in now.skipped_files)))


@dataclass(frozen=True, slots=True)
class _Tried:
    """One judgement of the tests, after as many tries as it took."""

    execution: Execution
    comparison: Comparison
    tries: int

    def followed_by(self, other: "_Tried") -> "_Tried":
        """Return this judgement of the base's tests with that of the new ones, which ran together later."""
        new = frozenset(other.comparison.new)
        added = tuple(case for case in other.execution.tests.cases if case.id in new)
        cases = (*self.execution.tests.cases, *added)
        comparison = replace(
            self.comparison, faults=other.comparison.faults, new=(*self.comparison.new, *other.comparison.new),
            counts=dict(Counter(case.outcome for case in cases)),
        )  # fmt: skip
        tests = replace(self.execution.tests, cases=cases)
        return _Tried(replace(other.execution, tests=tests), comparison, max(self.tries, other.tries))


def _run_by(argv: Sequence[str]) -> Sequence[str]:
    """Return what a command runs: its program, and the script that an interpreter is given."""
    words = [word for word in argv if not word.startswith("-")]
    script = "-m" not in argv and _INTERPRETER.fullmatch(os.path.basename(argv[0]))
    return words[: 2 if script else 1]


def _merged(first: TestRun, again: TestRun) -> TestRun:
    """Return a run with the tests that ran again; what else they show of the judge counts too."""
    if again.judge or again.problem or not again.complete:
        return again
    later = {case.id: case for case in again.cases}
    cases = tuple(later.get(case.id, case) for case in first.cases)
    bad = any(case.outcome in ("failed", "error") for case in cases)
    both: dict[str, Any] = {
        name: tuple(dict.fromkeys((*getattr(first, name), *getattr(again, name))))
        for name in ("loaded", "touched", "shadows", "sources")
    }
    return replace(first, cases=cases, exit_status=first.exit_status if bad else again.exit_status, **both)


def _inline(case: GateCase, tests: BaseList) -> frozenset[str]:
    """Return files that hold tests beside the code they test: doctests, and Rust's test modules."""
    dotted: dict[str, bool] = {}
    for row in tests.run.cases:
        path, _, name = row.id.partition("::")
        if path.endswith(".py") and not kind_of(path):
            dotted[path] = dotted.get(path, True) and "." in name.partition("[")[0]
    found = {path for path, inline in dotted.items() if inline}
    if case.runner.name == "nextest" or "cargo" in case.gate.command[0]:
        base = case.base
        for inside in base.files:
            path = base.outside(inside)
            if path is not None and path.endswith(".rs") and not kind_of(path):
                found |= {path} if _INLINE_RUST.search(base.content(inside) or b"") else set()
    return frozenset(found)


def summary(case: GateCase, done: SealedRun, work: Work) -> dict[str, Any]:
    """Return what the header of the log says of a sealed run, as JSON values."""
    tests, comparison = done.execution.tests, done.comparison
    lists = {
        "new": comparison.new, "gone": comparison.gone, "allowed": comparison.allowed,
        "held_back": done.plan.held_back, "outside": work.outside, "inline": done.inline,
    }  # fmt: skip
    return {
        "level": done.execution.level,
        "base": case.frozen.base,
        "scope": done.plan.scope_digest,
        "command": case.command_digest,
        "runner": tests.runner,
        "parsed": tests.parsed,
        "canaries": tests.canaries,
        "counts": dict(comparison.counts or {}),
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
    tests = done.execution.tests
    return {
        "schema": "interlock.tests/1",
        "runner": tests.runner,
        "seconds": round(done.execution.ended.seconds, 3),
        "tests": [
            {"id": row.id, "outcome": row.outcome, "seconds": round(row.seconds, 4), "message": row.message[:2000]}
            for row in tests.cases
        ],
        "not_collected": [{"file": path, "message": message[:2000]} for path, message in tests.broken],
    }
