"""The tests of the base against the present ones: every test of the base must run and pass.

A *base list* is what one run and one collection of the base say together. Ids that only one of two collections has
hold a path, a time or a random value; such tests are compared by their function, or failing that by their file, and by
their number: as many have to pass, and no more may be skipped.

A file that the base could not collect has no list. Each of its tests counts as one that failed there, and each test
that is plainly in its text has to run. New tests beside those of the base are judged by themselves, in a run of their
own (`compare_added`): what they bring with them has no say about the tests of the base.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, assert_never

from interlock.core.finding import Finding
from interlock.gates.checks.sealed import fault_of
from interlock.gates.sealed.outcomes import TestCase, TestRun, run_from_json
from interlock.gates.sealed.static_tests import ANY_TEST, StaticTests

_MAX_NAMED: Final = 5
_PARAMETERS: Final = re.compile(r"\[.*\]$", re.DOTALL)
_GOOD: Final = ("passed", "xpassed")
_SKIPPED: Final = ("skipped", "xfailed")
_BAD: Final = ("failed", "error")
_NO_TESTS: Final[StaticTests] = {}


@dataclass(frozen=True, slots=True)
class BaseList:
    """The tests of the base: its run, and the ids that differ between two collections of it."""

    run: TestRun
    unstable: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data, for a file."""
        return {"run": asdict(self.run), "unstable": list(self.unstable)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "BaseList":
        """Return the list that `to_json` wrote, or raise KeyError, TypeError or ValueError."""
        return cls(run_from_json(data["run"]), tuple(str(each) for each in data["unstable"]))

    def failing(self) -> tuple[str, ...]:
        """Return the ids that did not pass on the base, files that could not be collected included."""
        bad = (case.id for case in self.run.cases if case.outcome in _BAD)
        return (*bad, *(path for path, _ in self.run.broken))

    @property
    def allow_line(self) -> str:
        """The line of configuration that allows what fails on the base; empty when all of it passes."""
        quoted = ['"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"' for name in self.failing()]
        return f"allow_failing = [{', '.join(quoted)}]" if quoted else ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the present tests are, measured by those of the base; without faults they pass.

    Args:
        faults: Every reason why they do not pass.
        new: Ids that the base does not have.
        gone: Ids of the base that are missing or skipped, as a file in `may_change` allows.
        allowed: Ids that fail, as `allow_failing` allows.
        counts: How many tests came to each outcome.
    """

    faults: tuple[Finding, ...]
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    counts: Mapping[str, int] | None = None

    @property
    def ok(self) -> bool:
        """Return whether nothing is wrong."""
        return not self.faults


def make_base_list(run: TestRun, again: TestRun | None = None) -> BaseList:
    """Make the list of the base from its run and a second collection of it (`None` where the runner has none)."""
    if again is None or not again.complete or not again.collected:
        return BaseList(run)
    first = set(run.collected) or {case.id for case in run.cases}
    return BaseList(run, tuple(sorted(first ^ set(again.collected))))


def compare(
    base: BaseList,
    now: TestRun,
    *,
    may_change: Callable[[str], bool],
    allow_failing: Sequence[str] = (),
    changed: Callable[[str], bool],
    written: StaticTests = _NO_TESTS,
    more: bool = False,
) -> Comparison:
    """Compare a run with the base.

    Args:
        base: The tests of the base.
        now: The present run.
        may_change: Whether the task allows a test file to change.
        allow_failing: Ids of tests, or files, that may fail; the id of a parametrized test without its brackets
            means all of them.
        changed: Whether a file differs from the base, or is missing.
        written: The tests that the base's text has, of files of which its run says nothing.
        more: New tests run afterwards, so that here none need be left where those of the base may go.

    Returns:
        The faults, those that explain others first. A judge that was changed is the only fault: nothing else that the
        run says is evidence.
    """
    comparing = _Comparator(base, now, may_change, frozenset(allow_failing), changed, written, more)
    return comparing.unread() or comparing.result()


def compare_added(base: BaseList, now: TestRun, *, allow_failing: Sequence[str] = ()) -> Comparison:
    """Judge a run in which new tests and what they bring with them are added, where the base's tests passed without.

    Nothing may fail, and new tests must prove what they say. That a test of the base is missing or skipped says
    nothing here: it passed where nothing new was beside it.
    """
    never = frozenset[str]().__contains__
    comparing = _Comparator(base, now, never, frozenset(allow_failing), never, _NO_TESTS)
    return comparing.unread() or comparing.added()


@dataclass(slots=True)
class _Comparator:
    base: BaseList
    now: TestRun
    may_change: Callable[[str], bool]
    allow: frozenset[str]
    changed: Callable[[str], bool]
    written: StaticTests
    more: bool = False

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(case.outcome for case in self.now.cases))

    def unread(self) -> Comparison | None:
        """Return what is to say of a run whose tests are not known, or are no evidence; None of another."""
        now, counts = self.now, self.counts
        if now.problem:
            return Comparison((fault_of("unread", "", now.problem),), counts=counts)
        if now.judge:
            return Comparison((fault_of("judge", "", now.judge),), counts=counts)
        if not now.parsed:
            return Comparison((_ended(now),) if now.exit_status != 0 else (), counts=counts)
        return None

    def added(self) -> Comparison:
        now, known = self.now, {*self.base.run.collected, *(case.id for case in self.base.run.cases)}
        faults = [] if now.complete else [_ended(now)]
        new = [case for case in now.cases if case.id not in known and not self._is_unstable(case.id)]
        faults += [
            fault_of("failed", case.id, case.message or case.outcome)
            for case in now.cases
            if case.outcome in _BAD and not self._allows(case)
        ]
        for case in new:
            faults += self._proofs(None, case) if case.outcome in _GOOD else []
        faults += [fault_of("not_collected", *row) for row in now.broken if row[0] not in self.allow]
        if self._nothing_ran():
            faults.append(fault_of("nothing_ran", "", _summary(self.counts)))
        if now.complete and not faults and self._unexplained(now.cases):
            faults.append(fault_of("exit_status", "", f"exit status {now.exit_status}, and no test failed"))
        return Comparison(tuple(faults), tuple(case.id for case in new), counts=self.counts)

    def result(self) -> Comparison:
        base, now, counts = self.base.run, self.now, self.counts
        faults: list[Finding] = []
        gone: list[str] = []
        if not now.complete:
            faults.append(_ended(now, list(dict.fromkeys((*base.collected, *(case.id for case in base.cases))))))
        before = {case.id: case for case in base.cases}
        known = {*before, *base.collected}
        present = {case.id: case for case in now.cases}
        for identity in dict.fromkeys((*base.collected, *before)):
            if identity not in self.base.unstable:
                faults += self._one(identity, before.get(identity), present.get(identity), gone)
        faults += self._unstable(before, gone)
        new = tuple(case.id for case in now.cases if case.id not in known and not self._is_unstable(case.id))
        for case in now.cases:
            if case.id not in known:
                faults += self._unknown(case, gone)
        faults += self._files()
        left = self.more and gone and not now.cases and not faults
        if not left and self._nothing_ran():
            faults.insert(not now.complete, fault_of("nothing_ran", "", _summary(counts)))
        if now.complete and not faults and not left and self._unexplained(present.values()):
            faults.append(fault_of("exit_status", "", f"exit status {now.exit_status}, and no test failed"))
        allowed = tuple(case.id for case in now.cases if case.outcome in _BAD and self._allows(case))
        return Comparison(tuple(faults), new, tuple(gone), allowed, counts)

    def _unexplained(self, cases: Iterable[TestCase]) -> bool:
        return self.now.exit_status != 0 and not any(case.outcome in _BAD for case in cases)

    def _nothing_ran(self) -> bool:
        """Return whether no test passed, or failed, which is a fault of its own, and not every one may fail."""
        others = [case.outcome for case in self.now.cases if not self._allows(case)]
        passed = any(case.outcome in _GOOD for case in self.now.cases)
        return not passed and not any(outcome in _BAD for outcome in others) and bool(others or not self.now.cases)

    def _allows(self, case: TestCase) -> bool:
        return bool({case.id, _function(case.id), case.file} & self.allow)

    def _free(self, file: str) -> bool:
        """Return whether the tests of a file may be other ones than the base's."""
        return bool(file) and self.may_change(file) and self.changed(file)

    def _one(self, identity: str, was: TestCase | None, case: TestCase | None, gone: list[str]) -> list[Finding]:
        if case is not None:
            # A test that was found on the base and came to no outcome there has to pass like one that failed.
            return self._state(was or TestCase(identity, "error", file=case.file), case, gone)
        file = was.file if was else file_of(identity)
        if self._free(file):
            gone.append(identity)
            return []
        if identity in self.now.running:
            return [fault_of("failed", identity, "it had begun when the run ended")]
        if identity in self.now.deselected:
            return [fault_of("deselected", identity, "found, and left out of the run")]
        if file in dict(self.now.broken) or not self.now.complete:
            return []
        reason = dict(self.now.skipped_files).get(file)
        return [
            fault_of("missing", identity, f"{file} was skipped as a whole: {reason}" if reason else "no such test ran")
        ]

    def _unknown(self, case: TestCase, gone: list[str]) -> list[Finding]:
        """Return what is wrong with a test that the base does not list: it is new, or the base could not list it."""
        if (file := self._unlisted(case)) and not self._free(case.file):
            tests = self.written.get(file, {})
            test = tests.get(self._qualified(file, case.id)) or tests.get(ANY_TEST)
            if case.outcome in _SKIPPED and test is not None and test.skips:
                return []
            faults = self._state(TestCase(case.id, "error", file=case.file), case, gone)
            silent = test is not None and self.now.proves and not case.proof
            if self.now.runner == "unittest":
                silent = silent and test is not None and not test.decorated
            if not faults and case.outcome in _GOOD and (case.proof == "body" or silent):
                return [fault_of("unproven", case.id, "its body did not run")]
            return faults
        if self._is_unstable(case.id):
            # How many may be skipped is seen where they are counted.
            return [] if case.outcome in _SKIPPED else self._state(self._like(case.id), case, gone)
        if case.outcome in _SKIPPED and self._skipped_below(case.id):
            return self._state(TestCase(case.id, "error", file=case.file), case, gone)
        return self._state(None, case, gone)

    def _unlisted(self, case: TestCase) -> str:
        """Return the file, or the package of Go, of a test that the base could not list; empty where it could."""
        names = {*(path for path, _ in self.base.run.broken), *self.written}
        if self.now.runner == "go":
            return next((name for name in names if case.id.startswith(f"{name}.")), "")
        return next((name for name in (case.file, file_of(case.id)) if name in names), "")

    def _qualified(self, file: str, identity: str) -> str:
        """Return the name of a test as its file writes it, such as `TestCart.test_total`."""
        name = _function(identity)
        if self.now.runner == "go":
            return name.removeprefix(f"{file}.").partition("/")[0]
        return name.partition("::")[2].replace("::", ".") if "::" in name else ".".join(name.split(".")[-2:])

    def _like(self, identity: str) -> TestCase | None:
        """Return the test of the base that proved most, among those of the same function."""
        mine = [case for case in self.base.run.cases if _function(case.id) == _function(identity)]
        good = [case for case in mine if case.outcome in _GOOD]
        return next((case for case in good if case.proof == "ended"), (good or mine or [None])[0])

    def _skipped_below(self, identity: str) -> bool:
        """Return whether more subtests of a test of the base are skipped than were there."""
        for case in self.base.run.cases:
            below = (f"{case.id}/", f"{case.id} > ")
            if case.outcome not in _SKIPPED and identity.startswith(below):
                number = [
                    sum(each.outcome in _SKIPPED and each.id.startswith(below) for each in run.cases)
                    for run in (self.base.run, self.now)
                ]
                return number[1] > number[0]
        return False

    def _state(self, was: TestCase | None, case: TestCase, gone: list[str]) -> list[Finding]:
        """Return what is wrong with a test that came to an outcome."""
        match case.outcome:
            case "passed" | "xpassed":
                return self._proofs(was, case)
            case "failed" | "error":
                if self._allows(case):
                    return []
                kind = "still_failing" if was and was.outcome in _BAD else "failed"
                return [fault_of(kind, case.id, case.message or case.outcome)]
            case "skipped" | "xfailed":
                if was is None or was.outcome in _SKIPPED or self._allows(case):
                    return []
                if self._free(case.file):
                    gone.append(case.id)
                    return []
                return [fault_of(case.outcome, case.id, case.message or case.outcome)]
            case _:
                assert_never(case.outcome)

    def _proofs(self, was: TestCase | None, case: TestCase) -> list[Finding]:
        """Return what is wrong with a test that is reported as passed."""
        if was is not None and case.skips > was.skips and not self._free(case.file):
            return [fault_of("skipped", case.id, f"{case.skips} of its subtests skipped; {case.message}")]
        if case.apart and not (was and was.apart == case.apart) and (not case.mover or self.changed(case.mover)):
            return [fault_of("apart", case.id, f"{case.apart}{case.mover and f', by {case.mover}'}")]
        if case.accepts and not (was and was.accepts):
            return [fault_of("accepts", case.id, case.accepts)]
        if was is None or self._free(case.file):
            unproven = case.proof == "reached"
        elif was.outcome in _GOOD:
            unproven = was.proof == "ended" and case.proof != "ended"
        else:
            ran = was.proof in ("reached", "open", "ended")
            unproven = case.proof == "reached" or (ran and case.proof in ("", "body"))
            unproven = unproven or (was.proof == "ended" and case.proof != "ended")
        return [fault_of("unproven", case.id, "its body did not run to its end")] if unproven else []

    def _is_unstable(self, identity: str) -> bool:
        """Return whether a test of unknown id can be one of the base whose id is not stable."""
        return _function(identity) in {_function(each) for each in self.base.unstable}

    def _unstable(self, before: Mapping[str, TestCase], gone: list[str]) -> list[Finding]:
        """Compare the tests whose ids differ from run to run by number."""
        unstable = set(self.base.unstable)
        if not unstable:
            return []
        mine = [each for each in dict.fromkeys((*self.base.run.collected, *before)) if each in unstable]
        others = unstable - set(mine)
        functions = frozenset({_function(each) for each in mine} & {_function(each) for each in others})
        known = {*before, *self.base.run.collected} - unstable

        def groups(ids: Iterable[tuple[str, str]]) -> Counter[str]:
            rows = ((_function(identity), file or file_of(identity)) for identity, file in ids)
            return Counter(name if name in functions else f"{file} (any test)" for name, file in rows)

        skipped = [each for each in mine if each in before and before[each].outcome in _SKIPPED]
        files = {each: before[each].file if each in before else "" for each in mine}
        wanted, may_skip = groups(files.items()), groups((each, files[each]) for each in skipped)
        rows = [case for case in self.now.cases if case.id not in known]
        has = groups((case.id, case.file) for case in rows)
        skips = groups((case.id, case.file) for case in rows if case.outcome in _SKIPPED and not self._allows(case))
        faults: list[Finding] = []
        for name, number in wanted.items():
            file, fewer = file_of(name), has[name] < number
            if self._free(file):
                gone += [name] if fewer else []
            elif fewer and self.now.complete and file not in dict(self.now.broken):
                faults.append(fault_of("missing", name, f"{has[name]} of its {number} tests ran"))
            elif not fewer and skips[name] > may_skip[name]:
                faults.append(fault_of("skipped", name, f"{skips[name]} of its {has[name]} tests are skipped"))
        return faults

    def _files(self) -> list[Finding]:
        """Return the files that cannot be collected, and those that must have a test now and have none."""
        broken = dict(self.now.broken)
        faults = [fault_of("not_collected", *row) for row in broken.items() if row[0] not in self.allow]
        passed = {self._unlisted(case) for case in self.now.cases if case.outcome in _GOOD}
        for path, _ in self.base.run.broken:
            if path in broken or path in passed or path in self.allow or not self.now.complete:
                continue
            if not self._free(path):
                faults.append(fault_of("no_test_in_file", path, "no test of this file passed"))
        named = {fault.field for fault in faults}
        for path in self.written if self.now.complete else ():
            if path not in broken and path not in self.allow and path not in named and not self._free(path):
                faults += self._not_run(path)
        return faults

    def _not_run(self, path: str) -> list[Finding]:
        """Return the tests that are in the text of a file of which the base has no list, and did not run."""
        go = self.now.runner == "go"
        ran = {self._qualified(path, case.id) for case in self.now.cases if go or path == case.file}
        left_out = {self._qualified(path, each) for each in self.now.deselected}
        return [
            fault_of("missing", f"{path}::{name}", "no such test ran")
            for name, test in self.written[path].items()
            if name not in (*ran, ANY_TEST) and not (test.marked and name in left_out)
        ]


def file_of(identity: str) -> str:
    """Return the file that the id of a test begins with, as pytest writes it; empty where it does not."""
    file, mark, _ = identity.partition("::")
    return file if mark else ""


def _function(identity: str) -> str:
    return _PARAMETERS.sub("", identity)


def _summary(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items())) or "no test"


def _ended(run: TestRun, wanted: Sequence[str] = ()) -> Finding:
    """Return the fault of a run that was stopped or did not say that it was finished; `wanted` are the base's tests."""
    end = "the time limit" if run.exit_status is None else f"exit status {run.exit_status}"
    if not run.parsed:
        return fault_of("exit_status" if run.exit_status is not None else "incomplete", "", end)
    found = f"{end} after {len(run.cases)} of {len(run.collected or wanted)} tests"
    ended = {*run.running, *(case.id for case in run.cases)}
    for what, ids in (("running", run.running), ("not begun", [each for each in wanted if each not in ended])):
        if ids:
            more = f" and {len(ids) - _MAX_NAMED} more" if len(ids) > _MAX_NAMED else ""
            found += f"; {what}: {', '.join(ids[:_MAX_NAMED])}{more}"
    return fault_of("incomplete", "", found)
