"""The tests of the base against the present ones: every test of the base must run and pass.

Answers T1 and T2. A file that the base could not collect (its tests need what the work is to write) has no list of
tests: each test that it has now counts as one that failed on the base, one of them at least must pass, and none may be
skipped from within its body. New tests are judged in a run of their own (`compare_added`): what they bring with them
has no say about the tests of the base.

Ids that differ between two runs of the base hold a path, a time or a random value: such tests get the name of their
function and a number, those first that passed. A test that failed in one of two runs of the base is flaky, and named.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from interlock.core.finding import Finding
from interlock.core.text import few
from interlock.gates.checks.sealed import fault_of
from interlock.gates.sealed.outcomes import BAD, GOOD, SKIPPED, TestCase, TestRun, run_from_json

_MAX_NAMED: Final = 5
_PARAMETERS: Final = re.compile(r"\[.*\]$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class BaseTests:
    """The tests of the base: one run of them, and a second one where a verdict depended on it."""

    run: TestRun
    again: TestRun | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "BaseTests":
        """Return what `asdict` made plain data of, or raise KeyError, TypeError or ValueError."""
        return cls(run_from_json(data["run"]), run_from_json(data["again"]) if data["again"] else None)

    def failing(self) -> tuple[str, ...]:
        """Return the ids that did not pass on the base, files that could not be collected included."""
        bad = (case.id for case in self.run.cases if case.outcome in BAD)
        return (*bad, *(path for path, _ in self.run.broken))

    @property
    def unstable(self) -> frozenset[str]:
        """The ids that only one of two runs of the base has."""
        if self.again is None or not self.again.complete:
            return frozenset()
        return frozenset({case.id for case in self.run.cases} ^ {case.id for case in self.again.cases})

    @property
    def flaky(self) -> frozenset[str]:
        """The tests that passed in one of two runs of the base, and failed in the other."""
        if self.again is None:
            return frozenset()
        bad = [{case.id for case in run.cases if case.outcome in BAD} for run in (self.run, self.again)]
        return frozenset((bad[0] ^ bad[1]) - self.unstable)

    @property
    def allow_line(self) -> str:
        """The line of configuration that allows what fails on the base; empty when all of it passes."""
        names = self.failing()
        return f"allow_failing = {json.dumps(names, ensure_ascii=False)}" if names else ""


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
    base: BaseTests, now: TestRun, *, free: Callable[[str], bool], allow_failing: Sequence[str] = ()
) -> Comparison:
    """Compare a run with the base.

    `free` returns whether the tests of a file may be other ones than the base's, since the task may change it.
    `allow_failing` are ids of tests, or files, that may fail; an id without its brackets means all of its parameters.
    """
    if (unusable := _unusable(base.run, now)) is not None:
        return unusable
    return _Comparing(base, now, free, frozenset(allow_failing)).result()


def compare_added(
    base: BaseTests,
    now: TestRun,
    *,
    first: TestRun,
    moved: Callable[[str], bool] = lambda _path: False,
    allow_failing: Sequence[str] = (),
) -> Comparison:
    """Judge a run in which new tests and what they bring with them are added, where the base's passed without them.

    Nothing may fail, and what ran in the `first` run runs here, too: a new `conftest.py` takes no test away. `moved`
    returns whether the work removed a file of tests.
    """
    if (unusable := _unusable(base.run, now)) is not None:
        return unusable
    allow, known = frozenset(allow_failing), {case.id for case in base.run.cases}
    faults = [] if now.complete else [_ended(now, [])]
    bad = (case for case in now.cases if case.outcome in BAD and not _allowed(case, allow))
    faults += [fault_of("failed", case.id, case.message or case.outcome) for case in bad if case.id not in base.flaky]
    faults += [fault_of("not_collected", *row) for row in now.broken if row[0] not in allow]
    present, why = {case.id: case for case in now.cases}, "it ran without the new files"
    gone = [case.id for case in first.cases if case.outcome in GOOD and not moved(case.file or file_of(case.id))]
    for identity in gone if now.complete and not now.broken and not base.unstable else ():
        if identity not in present:
            faults.append(fault_of("missing", identity, why))
        elif present[identity].outcome in SKIPPED:
            faults.append(fault_of("skipped", identity, why))
    new = [case for case in now.cases if case.id not in known]
    faults += [fault_of("equals", case.id, case.equals) for case in new if case.equals and case.outcome in GOOD]
    return Comparison(tuple(faults or _unexplained(now)), tuple(case.id for case in new))


def _unusable(base: TestRun, now: TestRun) -> Comparison | None:
    """Return what is to say of a run whose tests are not known, or prove nothing; None of another."""
    changed = sorted({*now.changed} - {*base.changed})
    if now.problem:
        fault = fault_of("unread", "", now.problem)
    elif judge := now.judge or (f"other code in {few(changed, _MAX_NAMED)}" if changed else ""):
        fault = fault_of("judge", "", judge)
    elif not base.parsed:
        if now.exit_status == 0:
            return Comparison(())
        fault = _ended(now, [])
    elif not now.parsed or now.sessions < base.sessions:
        found = "no test runner reported" if not now.sessions else f"{now.sessions} of {base.sessions} runners reported"
        if failed := [case.id for case in now.cases if case.outcome in BAD]:
            found += f"; failed: {few(failed, _MAX_NAMED)}"
        fault = fault_of("incomplete", "", f"{_end(now)}; {found}")
    else:
        return None
    return Comparison((fault,))


class _Comparing:
    """One comparison; `gone` collects what a file in `may_change` lets go."""

    def __init__(self, base: BaseTests, now: TestRun, free: Callable[[str], bool], allow: frozenset[str]) -> None:
        unstable = {_function(each) for each in base.unstable}
        was, self.now = _numbered(base.run, unstable), _numbered(now, unstable)
        self.flaky, self.free, self.allow = base.flaky, free, allow
        self.before = {case.id: case for case in was.cases}
        self.present = {case.id: case for case in self.now.cases}
        self.wanted = [*dict.fromkeys((*was.collected, *self.before))]
        self.unlisted = {path for path, _ in was.broken}
        self.broken = dict(now.broken)
        self.gone: list[str] = []

    def result(self) -> Comparison:
        now, known = self.now, {*self.wanted}
        faults = [] if now.complete else [_ended(now, self.wanted)]
        for identity in self.wanted:
            faults += self._of_base(identity)
        new = [case for case in now.cases if case.id not in known]
        for case in new:
            faults += self._unknown(case)
        faults += [fault_of("not_collected", *row) for row in now.broken if row[0] not in self.allow]
        passed = {case.file for case in now.cases if case.outcome in GOOD}
        for path in sorted(self.unlisted - passed - self.broken.keys() - self.allow):
            if now.complete and not self.free(path):
                faults.append(fault_of("no_test_in_file", path, "no test of this file passed"))
        others = [case for case in now.cases if not _allowed(case, self.allow)]
        if not faults and not passed and not self.gone and (others or not now.cases):
            counts = Counter(case.outcome for case in now.cases)
            found = ", ".join(f"{number} {name}" for name, number in sorted(counts.items())) or "no test"
            faults.append(fault_of("nothing_ran", "", found))
        allowed = tuple(case.id for case in now.cases if case.outcome in BAD and _allowed(case, self.allow))
        faults = faults or _unexplained(now)
        return Comparison(tuple(faults), tuple(case.id for case in new), tuple(self.gone), allowed)

    def _of_base(self, identity: str) -> list[Finding]:
        """Return what is wrong with a test that the base has."""
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

    def _outcome(self, was: TestCase | None, case: TestCase) -> list[Finding]:
        """Return what is wrong with a test that came to an outcome; `was` is what it was on the base."""
        if _allowed(case, self.allow):
            return []
        if case.outcome in BAD:
            if case.id in self.flaky:
                fix = "Set `retries = 2` for the gate, or repair the test: it fails now and then on the base, too."
                return [fault_of("flaky", case.id, case.message or case.outcome, fix=fix)]
            kind = "still_failing" if was is not None and was.outcome in BAD else "failed"
            return [fault_of(kind, case.id, case.message or case.outcome)]
        if case.outcome in SKIPPED:
            if was is None or was.outcome in SKIPPED:
                return []
            if self.free(case.file):
                self.gone.append(case.id)
                return []
            return [fault_of(case.outcome, case.id, case.message or case.outcome)]
        if case.equals and not (was is not None and was.equals):
            return [fault_of("equals", case.id, case.equals)]
        if was is None or case.ran == "ended" or self.free(case.file):
            return []
        if was.ran == "ended" or (was.outcome in BAD and was.ran):
            found = "its code did not run to its end" if case.ran else "its code did not run"
            return [fault_of("unproven", case.id, found)]
        return []

    def _unknown(self, case: TestCase) -> list[Finding]:
        """Return what is wrong with a test that the base does not list: it is new, or the base could not list it."""
        if case.file in self.unlisted and not self.free(case.file):
            if case.outcome in SKIPPED and case.when != "call":
                return []  # by a mark or a fixture, which the base's text has
            faults = self._outcome(TestCase(case.id, "error", file=case.file), case)
            if not faults and case.outcome in GOOD and case.ran == "begun":
                faults = [fault_of("unproven", case.id, "its code did not run to its end")]
            return faults
        return self._outcome(None, case)


def _numbered(run: TestRun, functions: set[str]) -> TestRun:
    """Return the run with the tests of some functions named by a number, those first that passed."""
    if not functions:
        return run
    seen, cases = Counter[str](), list[TestCase]()
    for case in sorted(run.cases, key=lambda case: (case.outcome not in GOOD, case.outcome in BAD)):
        name = _function(case.id)
        seen[name] += 1
        cases.append(replace(case, id=f"{name}[#{seen[name]}]") if name in functions else case)
    collected = tuple(each for each in run.collected if _function(each) not in functions)
    return replace(run, cases=tuple(cases), collected=collected)


def _unexplained(run: TestRun) -> list[Finding]:
    """Return that a run did not succeed, where no test that failed and no file explains that."""
    if run.exit_status == 0 or run.broken or any(case.outcome in BAD for case in run.cases):
        return []
    return [fault_of("exit_status", "", f"exit status {run.exit_status}, and no test failed")]


def file_of(identity: str) -> str:
    """Return the file that the id of a test begins with, as pytest writes it; empty where it does not."""
    file, mark, _ = identity.partition("::")
    return file if mark else ""


def _function(identity: str) -> str:
    return _PARAMETERS.sub("", identity)


def _allowed(case: TestCase, allow: frozenset[str]) -> bool:
    return bool({case.id, _function(case.id), case.file} & allow)


def _end(run: TestRun) -> str:
    return "the time limit" if run.exit_status is None else f"exit status {run.exit_status}"


def _ended(run: TestRun, wanted: Sequence[str]) -> Finding:
    """Return the fault of a run that was stopped or did not say that it was finished; `wanted` are the base's tests."""
    if not run.parsed:
        return fault_of("exit_status" if run.exit_status is not None else "incomplete", "", _end(run))
    found = f"{_end(run)} after {len(run.cases)} of {len(run.collected or wanted)} tests"
    ended = {*run.running, *(case.id for case in run.cases)}
    for what, ids in (("running", run.running), ("not begun", [each for each in wanted if each not in ended])):
        if ids:
            found += f"; {what}: {few(ids, _MAX_NAMED)}"
    return fault_of("incomplete", "", found)
