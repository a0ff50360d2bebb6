"""The tests of the base against the present ones: every test of the base must run and pass.

Answers T1 and T2. A file that the base could not collect (its tests need what the work is to write) has no list of
tests: each test that it has now counts as one that failed on the base, one of them at least must pass, and none may be
skipped from within its body.

Ids that differ between two runs of the base hold a path, a time or a random value: of the functions of such tests so
many must pass as on the base. A test that failed in one of two runs of the base is flaky, and named.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from interlock.core.finding import Finding
from interlock.core.text import few
from interlock.gates.checks.sealed import fault_of
from interlock.gates.sealed.outcomes import BAD, GOOD, SKIPPED, TestCase, TestRun

_MAX_NAMED: Final = 5
PARAMETERS: Final = re.compile(r"\[.*\]$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class BaseTests:
    """The tests of the base: one run of them, and a second one where a verdict depended on it."""

    run: TestRun
    again: TestRun | None = None

    def failing(self) -> tuple[str, ...]:
        """Return the ids that did not pass on the base, files that could not be collected included."""
        bad = (case.id for case in self.run.cases if case.outcome in BAD)
        return (*bad, *(path for path, _ in self.run.broken))

    @property
    def unstable(self) -> frozenset[str]:
        """The functions of tests with ids that only one of two runs of the base has."""
        if self.again is None or not self.again.complete:
            return frozenset()
        # An id that only one of the runs has holds something that changes, such as a temporary path.
        differing = {case.id for case in self.run.cases} ^ {case.id for case in self.again.cases}
        return frozenset(map(_function, differing))

    @property
    def flaky(self) -> frozenset[str]:
        """The tests that passed in one of two runs of the base, and failed in the other."""
        if self.again is None:
            return frozenset()
        bad = [{case.id for case in run.cases if case.outcome in BAD} for run in (self.run, self.again)]
        return frozenset(each for each in bad[0] ^ bad[1] if _function(each) not in self.unstable)

    @property
    def allow_line(self) -> str:
        """The line of configuration that allows what fails on the base, of a long one the beginning; else empty."""
        names = [json.dumps(name, ensure_ascii=False) for name in self.failing()]
        return f"allow_failing = [{few(names, 2 * _MAX_NAMED)}]" if names else ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the present tests are, measured by those of the base; without faults they pass.

    Args:
        faults: Every reason why they do not pass, those first that explain others.
        new: Ids that the base does not have.
        gone: Ids of the base that are missing or skipped, as a file in `may_change` allows.
        allowed: Ids that fail, as `allow_failing` allows.
    """

    faults: tuple[Finding, ...]
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


def compare(
    base: BaseTests,
    now: TestRun,
    *,
    before: TestRun | None = None,
    free: Callable[[str], bool],
    allow_failing: Sequence[str] = (),
) -> Comparison:
    """Compare a run with one before.

    Args:
        base: The tests of the base.
        now: The run.
        before: An earlier run, of which every test has to run and pass; by default that of the base.
        free: Whether the tests of a file may be other ones than before: the task may change it, or the work moved it.
        allow_failing: Ids of tests, or files, that may fail; an id without its brackets means all of its parameters.
    """
    was = base.run if before is None else before
    # Plugins that the base has may replace functions of the runner themselves.
    changed = sorted({*now.changed} - {*was.changed})
    if now.problem:
        return Comparison((fault_of("unread", "", now.problem),))
    if judge := now.judge or (f"other code in {few(changed, _MAX_NAMED)}" if changed else ""):
        return Comparison((fault_of("judge", "", judge),))
    # Of a command that nobody observes the exit status is all there is to compare; a checker has findings besides.
    if not was.parsed or (was.runner == now.runner == "sarif"):
        return Comparison(() if now.succeeded else (_ended(now, []),))
    # A product that ends the process before its runner starts leaves a session less.
    if not now.parsed or now.sessions < was.sessions:
        found = "no test runner reported" if not now.sessions else f"{now.sessions} of {was.sessions} runners reported"
        if failed := [case.id for case in now.cases if case.outcome in BAD]:
            found += f"; failed: {few(failed, _MAX_NAMED)}"
        return Comparison((fault_of("incomplete", "", f"{_end(now)}; {found}"),))
    return _Comparing(base, was, now, free, frozenset(allow_failing)).result()


class _Comparing:
    """One comparison; `gone` collects what a file that is free lets go."""

    def __init__(
        self, base: BaseTests, was: TestRun, now: TestRun, free: Callable[[str], bool], allow: frozenset[str]
    ) -> None:
        self.was, self.now, self.free, self.allow = was, now, free, allow
        self.flaky, self.unstable = base.flaky, base.unstable
        self.before = {case.id: case for case in was.cases}
        self.present = {case.id: case for case in now.cases}
        # Not every runner lists its tests before it runs them, and a run that was cut off lists more than it ran.
        listed = dict.fromkeys((*was.collected, *self.before))
        self.wanted = [each for each in listed if _function(each) not in self.unstable]
        # Files that the base could not collect: which tests they must have is not known.
        self.unlisted = {path for path, _ in was.broken}
        self.broken = dict(now.broken)
        self.gone: list[str] = []

    def result(self) -> Comparison:
        now = self.now
        # The end of the run comes first, since it explains the tests that are missing.
        faults = [] if now.complete else [_ended(now, self.wanted)]
        for identity in self.wanted:
            faults += self._of_base(identity)
        faults += self._fewer()
        faults += [fault_of("equals", name, f"__eq__ of {name}") for name in sorted({*now.equals} - {*self.was.equals})]
        known = {*self.wanted, *self.before}
        new = [case for case in now.cases if case.id not in known and _function(case.id) not in self.unstable]
        for case in now.cases:
            if case.id not in self.wanted:
                faults += self._unknown(case)
        faults += [fault_of("not_collected", *row) for row in now.broken if row[0] not in self.allow]
        passed = {case.file for case in now.cases if case.outcome in GOOD}
        for path in sorted(self.unlisted - passed - self.broken.keys() - self.allow):
            if now.complete and not self.free(path):
                faults.append(fault_of("no_test_in_file", path, "no test of this file passed"))
        # A run in which all is allowed to fail, or was let go, has nothing to pass and is no fault.
        others = [case for case in now.cases if not _allowed(case, self.allow)]
        if not faults and not passed and not self.gone and (others or not now.cases):
            counts = Counter(case.outcome for case in now.cases)
            found = ", ".join(f"{number} {name}" for name, number in sorted(counts.items())) or "no test"
            faults.append(fault_of("nothing_ran", "", found))
        failed = [case for case in now.cases if case.outcome in BAD]
        # Such as a coverage threshold; where tests failed or files are broken, the status says nothing new.
        if not faults and now.exit_status != 0 and not now.broken and not failed:
            faults.append(fault_of("exit_status", "", f"exit status {now.exit_status}, and no test failed"))
        allowed = tuple(case.id for case in failed if _allowed(case, self.allow))
        return Comparison(tuple(faults), tuple(case.id for case in new), tuple(self.gone), allowed)

    def _of_base(self, identity: str) -> list[Finding]:
        """Return what is wrong with a test that was there before."""
        was, case = self.before.get(identity), self.present.get(identity)
        if case is not None:
            # A test that was found on the base and came to no outcome there has to pass like one that failed.
            return self._outcome(was or TestCase(identity, "error", file=case.file), case)
        file = was.file if was else file_of(identity)
        if self.free(file):
            self.gone.append(identity)
            return []
        if identity in self.now.running:
            return [fault_of("failed", identity, "it had begun when the run ended")]
        if identity in self.now.deselected:
            return [fault_of("deselected", identity, "found, and left out of the run")]
        if file in self.broken or not self.now.complete or (self.broken and not self.now.cases):
            return []  # the file, the end of the run, or what kept pytest from running any test, is named
        reason = dict(self.now.skipped_files).get(file)
        found = f"{file} was skipped as a whole: {reason}" if reason else "no such test ran"
        return [fault_of("missing", identity, found)]

    def _fewer(self) -> list[Finding]:
        """Return the functions with unstable ids of which fewer tests passed than before."""
        if not self.now.complete:
            return []
        passed = [
            Counter(_function(row.id) for row in run.cases if row.outcome in GOOD) for run in (self.was, self.now)
        ]
        return [
            fault_of("missing", name, f"{passed[1][name]} of its tests passed, and {passed[0][name]} before")
            for name in sorted(self.unstable)
            if passed[1][name] < passed[0][name] and not self.free(file_of(name))
        ]

    def _outcome(self, was: TestCase | None, case: TestCase) -> list[Finding]:
        """Return what is wrong with a test that came to an outcome; `was` is what it was before."""
        if _allowed(case, self.allow):
            return []
        if case.outcome in BAD:
            if case.id in self.flaky:
                fix = "Set `retries = 2` for the gate, or repair the test: it fails now and then on the base, too."
                return [fault_of("flaky", case.id, case.message or case.outcome, fix=fix)]
            kind = "still_failing" if was is not None and was.outcome in BAD else "failed"
            return [fault_of(kind, case.id, case.message or case.outcome)]
        if case.outcome in SKIPPED:
            # A new test may be skipped, and one of the base may stay so.
            if was is None or was.outcome in SKIPPED:
                return []
            if self.free(case.file):
                self.gone.append(case.id)
                return []
            return [fault_of(case.outcome, case.id, case.message or case.outcome)]
        if was is None or case.ran == "ended" or self.free(case.file):
            return []
        # The proof is asked for only where the base gave it: of some tests, such as generated ones, nobody sees the
        # code.
        if was.ran == "ended" or (was.outcome in BAD and was.ran):
            found = "its code did not run to its end" if case.ran else "its code did not run"
            return [fault_of("unproven", case.id, found)]
        return []

    def _unknown(self, case: TestCase) -> list[Finding]:
        """Return what is wrong with a test that is new, or that the base could not list."""
        if case.file in self.unlisted and not self.free(case.file):
            if case.outcome in SKIPPED and case.when != "call":
                return []  # by a mark or a fixture, which the base's text has
            faults = self._outcome(TestCase(case.id, "error", file=case.file), case)
            if not faults and case.outcome in GOOD and case.ran == "begun":
                faults = [fault_of("unproven", case.id, "its code did not run to its end")]
            return faults
        return self._outcome(None, case)


def file_of(identity: str) -> str:
    """Return the file that the id of a test begins with, as pytest writes it; empty where it does not."""
    file, mark, _ = identity.partition("::")
    return file if mark else ""


def _function(identity: str) -> str:
    return PARAMETERS.sub("", identity)


def _allowed(case: TestCase, allow: frozenset[str]) -> bool:
    return bool({case.id, _function(case.id), case.file} & allow)


def _end(run: TestRun) -> str:
    return "the time limit" if run.exit_status is None else f"exit status {run.exit_status}"


def _ended(run: TestRun, wanted: Sequence[str]) -> Finding:
    """Return the fault of a run that was stopped or did not say that it was finished; `wanted` are the base's tests."""
    if not run.parsed or run.runner == "sarif":
        return fault_of("exit_status" if run.exit_status is not None else "incomplete", "", _end(run))
    found = f"{_end(run)} after {len(run.cases)} of {len(run.collected or wanted)} tests"
    ended = {*run.running, *(case.id for case in run.cases)}
    for what, ids in (("running", run.running), ("not begun", [each for each in wanted if each not in ended])):
        if ids:
            found += f"; {what}: {few(ids, _MAX_NAMED)}"
    return fault_of("incomplete", "", found)
