"""The tests of the base against the present ones: every test of the base must run and pass.

A *base list* is what one run and one collection of the base say together. Ids that only one of two collections has
hold a path, a time or a random value; such tests are compared by their function, or failing that by their file, and by
their number.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias, assert_never

from interlock.gates.sealed.outcomes import TestCase, TestRun, run_from_json, run_to_json

FaultKind: TypeAlias = Literal[
    "unread",
    "incomplete",
    "judge",
    "nothing_ran",
    "failed",
    "still_failing",
    "missing",
    "deselected",
    "skipped",
    "xfailed",
    "unproven",
    "accepts",
    "not_collected",
    "no_test_in_file",
    "exit_status",
    "prepare",
    "heldout",
]
"""What can be wrong with a run of tests; each is a row of `_TEXTS`."""

_MAX_NAMED: Final = 5
_PARAMETERS: Final = re.compile(r"\[.*\]$", re.DOTALL)
_GOOD: Final = ("passed", "xpassed")


@dataclass(frozen=True, slots=True)
class Fault:
    """One reason why the tests do not pass.

    Args:
        kind: What is wrong.
        test: The id of the test, or the file; empty when the whole run is meant.
        message: One sentence.
        found: What the run came to, bounded.
        expected: What it has to come to.
        fix: What to do, in the imperative, for the agent whose work is judged.
    """

    kind: FaultKind
    test: str
    message: str
    found: str
    expected: str
    fix: str


@dataclass(frozen=True, slots=True)
class BaseList:
    """The tests of the base.

    Args:
        run: Its run.
        unstable: The ids that differ between two collections of it.
    """

    run: TestRun
    unstable: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data, for a file."""
        return {"run": run_to_json(self.run), "unstable": list(self.unstable)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "BaseList":
        """Return the list that `to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: It is not one.
        """
        return cls(run_from_json(data["run"]), tuple(str(each) for each in data["unstable"]))

    def failing(self) -> tuple[str, ...]:
        """Return the ids that did not pass on the base, files that could not be collected included."""
        bad = (case.id for case in self.run.cases if case.outcome in ("failed", "error"))
        return (*bad, *(path for path, _ in self.run.broken))


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the present tests are, measured by those of the base.

    Args:
        faults: Every reason why they do not pass; none: they pass.
        new: Ids that the base does not have.
        gone: Ids of the base that are missing or skipped, as a file in `may_change` allows.
        allowed: Ids that fail, as `allow_failing` allows.
        counts: How many tests came to each outcome.
    """

    faults: tuple[Fault, ...]
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    counts: Mapping[str, int] | None = None

    @property
    def ok(self) -> bool:
        """Return whether nothing is wrong."""
        return not self.faults

    def to_json(self) -> dict[str, Any]:
        """Return plain data, for the evidence."""
        return asdict(self)


def make_base_list(run: TestRun, again: TestRun | None = None) -> BaseList:
    """Make the list of the base from its run and a second collection of it (`None` where the runner has none)."""
    if again is None or not again.complete or not again.collected:
        return BaseList(run)
    first = set(run.collected) or {case.id for case in run.cases}
    return BaseList(run, tuple(sorted(first ^ set(again.collected))))


def allow_failing_line(base: BaseList) -> str:
    """Return the line of configuration that allows what fails on the base; empty when all of it passes."""
    failing = base.failing()
    if not failing:
        return ""
    quoted = ", ".join('"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"' for name in failing)
    return f"allow_failing = [{quoted}]"


def compare(
    base: BaseList,
    now: TestRun,
    *,
    may_change: Callable[[str], bool],
    allow_failing: Sequence[str] = (),
    changed: Callable[[str], bool],
) -> Comparison:
    """Compare a run with the base.

    Args:
        base: The tests of the base.
        now: The present run.
        may_change: Whether the task allows a test file to change.
        allow_failing: Ids of tests, or files, that may fail; the id of a parametrized test without its brackets
            stands for all of them.
        changed: Whether a file differs from the base, or is missing.

    Returns:
        The faults, those that explain others first. A judge that was changed is the only fault: nothing else that the
        run says is evidence.
    """
    counts = dict(Counter(case.outcome for case in now.cases))
    if now.problem:
        return Comparison((_fault("unread", "", now.problem),), counts=counts)
    if now.judge:
        return Comparison((_fault("judge", "", now.judge),), counts=counts)
    if not now.parsed:
        bad = now.exit_status != 0
        return Comparison((_ended(now),) if bad else (), counts=counts)
    return _Comparing(base, now, may_change, frozenset(allow_failing), changed).result(counts)


@dataclass(slots=True)
class _Comparing:
    """One comparison of parsed runs."""

    base: BaseList
    now: TestRun
    may_change: Callable[[str], bool]
    allow: frozenset[str]
    changed: Callable[[str], bool]

    def result(self, counts: Mapping[str, int]) -> Comparison:
        base, now = self.base.run, self.now
        faults: list[Fault] = []
        gone: list[str] = []
        if not now.complete:
            faults.append(_ended(now, list(dict.fromkeys((*base.collected, *(case.id for case in base.cases))))))
        if not self._explained() and not self._all_allowed():
            faults.append(_fault("nothing_ran", "", _summary(counts)))
        before = {case.id: case for case in base.cases}
        known = {*before, *base.collected}
        present = {case.id: case for case in now.cases}
        for identity in dict.fromkeys((*base.collected, *before)):
            if identity not in self.base.unstable:
                faults += self._one(identity, before.get(identity), present.get(identity), gone)
        faults += self._unstable(before, gone)
        new = tuple(case.id for case in now.cases if case.id not in known and not self._stands_for(case.id))
        for case in now.cases:
            if case.id not in known:
                faults += self._state(None, case, gone)
        faults += self._files()
        if now.complete and not faults and self._unexplained(present.values()):
            faults.append(_fault("exit_status", "", f"exit status {now.exit_status}, and no test failed"))
        allowed = tuple(case.id for case in now.cases if case.outcome in ("failed", "error") and self._allows(case))
        return Comparison(tuple(faults), new, tuple(gone), allowed, counts)

    def _unexplained(self, cases: Iterable[TestCase]) -> bool:
        return self.now.exit_status != 0 and not any(case.outcome in ("failed", "error") for case in cases)

    def _explained(self) -> bool:
        """Return whether a test passed, or failed, which is a fault of its own."""
        return any(
            case.outcome in _GOOD or (case.outcome in ("failed", "error") and not self._allows(case))
            for case in self.now.cases
        )

    def _all_allowed(self) -> bool:
        return bool(self.now.cases) and all(self._allows(case) for case in self.now.cases)

    def _allows(self, case: TestCase) -> bool:
        return bool({case.id, _function(case.id), case.file} & self.allow)

    def _free(self, file: str) -> bool:
        """Return whether the tests of a file may be other ones than the base's."""
        return bool(file) and self.may_change(file) and self.changed(file)

    def _one(self, identity: str, was: TestCase | None, case: TestCase | None, gone: list[str]) -> list[Fault]:
        if case is not None:
            # A test that was found on the base and came to no outcome there has to pass like one that failed.
            return self._state(was or TestCase(identity, "error", file=case.file), case, gone)
        file = was.file if was else file_of(identity)
        if self._free(file):
            gone.append(identity)
            return []
        if identity in self.now.running:
            return [_fault("failed", identity, "it had begun when the run ended")]
        if identity in self.now.deselected:
            return [_fault("deselected", identity, "found, and left out of the run")]
        broken = dict(self.now.broken)
        if file in broken:
            return []
        if not self.now.complete:
            return []
        reason = dict(self.now.skipped_files).get(file)
        return [
            _fault("missing", identity, f"{file} was skipped as a whole: {reason}" if reason else "no such test ran")
        ]

    def _state(self, was: TestCase | None, case: TestCase, gone: list[str]) -> list[Fault]:
        """Return what is wrong with a test that came to an outcome."""
        match case.outcome:
            case "passed" | "xpassed":
                return self._proofs(was, case)
            case "failed" | "error":
                if self._allows(case):
                    return []
                kind: FaultKind = "still_failing" if was and was.outcome in ("failed", "error") else "failed"
                return [_fault(kind, case.id, case.message or case.outcome)]
            case "skipped" | "xfailed":
                if was is None or was.outcome in ("skipped", "xfailed"):
                    return []
                if self._free(case.file):
                    gone.append(case.id)
                    return []
                return [_fault(case.outcome, case.id, case.message or case.outcome)]
            case _:
                assert_never(case.outcome)

    def _proofs(self, was: TestCase | None, case: TestCase) -> list[Fault]:
        """Return what speaks against a test that is said to have passed."""
        if case.accepts and not (was and was.accepts):
            return [_fault("accepts", case.id, case.accepts)]
        if was is None or self._free(case.file):
            unproven = case.proof == "reached"
        elif was.outcome in _GOOD:
            unproven = was.proof == "ended" and case.proof != "ended"
        else:
            ran = was.proof in ("reached", "open", "ended")
            unproven = case.proof == "reached" or (ran and case.proof in ("", "body"))
            unproven = unproven or (was.proof == "ended" and case.proof != "ended")
        return [_fault("unproven", case.id, "its body did not run to its end")] if unproven else []

    def _group(self, identity: str, file: str, functions: frozenset[str]) -> str:
        function = _function(identity)
        return function if function in functions else f"{file or file_of(identity)} (any test)"

    def _stands_for(self, identity: str) -> bool:
        """Return whether a test of unknown id can be one of the base whose id is not stable."""
        return _function(identity) in {_function(each) for each in self.base.unstable}

    def _unstable(self, before: Mapping[str, TestCase], gone: list[str]) -> list[Fault]:
        """Compare the tests whose ids differ from run to run by number."""
        unstable = set(self.base.unstable)
        if not unstable:
            return []
        mine = [each for each in dict.fromkeys((*self.base.run.collected, *before)) if each in unstable]
        others = unstable - set(mine)
        functions = frozenset({_function(each) for each in mine} & {_function(each) for each in others})
        known = {*before, *self.base.run.collected} - unstable

        def groups(ids: Iterable[tuple[str, str]]) -> Counter[str]:
            return Counter(self._group(identity, file, functions) for identity, file in ids)

        wanted = groups((each, before[each].file if each in before else "") for each in mine)
        has = groups((case.id, case.file) for case in self.now.cases if case.id not in known)
        faults: list[Fault] = []
        for name, number in wanted.items():
            found = has.get(name, 0)
            file = file_of(name)
            if found < number and self._free(file):
                gone.append(name)
            elif found < number and self.now.complete and file not in dict(self.now.broken):
                faults.append(_fault("missing", name, f"{found} of its {number} tests ran"))
        return faults

    def _files(self) -> list[Fault]:
        """Return the files that cannot be collected, and those that must have a test now and have none."""
        faults: list[Fault] = []
        broken = dict(self.now.broken)
        for path, message in broken.items():
            if path not in self.allow:
                faults.append(_fault("not_collected", path, message))
        passed = {case.file for case in self.now.cases if case.outcome in _GOOD}
        for path, _ in self.base.run.broken:
            if path in broken or path in passed or path in self.allow or not self.now.complete:
                continue
            if not self._free(path):
                faults.append(_fault("no_test_in_file", path, "no test of this file passed"))
        return faults


def file_of(identity: str) -> str:
    """Return the file that the id of a test begins with, as pytest writes it; empty where it does not."""
    file, mark, _ = identity.partition("::")
    return file if mark else ""


def _function(identity: str) -> str:
    """Return the id without the parameters of the test."""
    return _PARAMETERS.sub("", identity)


def _summary(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items())) or "no test"


def _ended(run: TestRun, wanted: Sequence[str] = ()) -> Fault:
    """Return the fault of a run that was stopped or did not say that it was finished.

    Args:
        run: The run.
        wanted: The tests of the base.
    """
    if not run.parsed:
        how = "the time limit" if run.exit_status is None else f"exit status {run.exit_status}"
        return _fault("exit_status" if run.exit_status is not None else "incomplete", "", how)
    end = "the time limit" if run.exit_status is None else f"exit status {run.exit_status}"
    found = f"{end} after {len(run.cases)} of {len(run.collected or wanted)} tests"
    ended = {*run.running, *(case.id for case in run.cases)}
    for what, ids in (("running", run.running), ("not begun", [each for each in wanted if each not in ended])):
        if ids:
            more = f" and {len(ids) - _MAX_NAMED} more" if len(ids) > _MAX_NAMED else ""
            found += f"; {what}: {', '.join(ids[:_MAX_NAMED])}{more}"
    return _fault("incomplete", "", found)


def _fault(kind: FaultKind, test: str, found: str) -> Fault:
    message, expected, fix = _TEXTS[kind]
    return Fault(kind, test, message.format(test=test), found, expected, fix.format(test=test))


_TEXTS: Final[Mapping[FaultKind, tuple[str, str, str]]] = {
    "unread": (
        "The results of the tests cannot be read.",
        "a report of the tests that ran",
        "Let the command write its report to the end; look at the log for the error that stopped it.",
    ),
    "incomplete": (
        "The test run did not finish.",
        "the test runner reports that it is finished",
        "Remove what ends or blocks the process: an exit at import or in a test, an endless loop, a deadlock.",
    ),
    "judge": (
        "The tested code changed the test runner, so this run proves nothing.",
        "added tests that must fail fail, one that must pass passes, and the runner's reports match what was observed",
        "Remove the code that changes the test runner, its reports, built-in functions or comparisons.",
    ),
    "nothing_ran": (
        "No test passed.",
        "at least one test runs and passes",
        "Make the code importable, so that its tests can be collected and run.",
    ),
    "failed": (
        "{test} passed on the base and fails now, or is new and fails.",
        "passed",
        "Correct the code until this test passes; the test itself stays as it is on the base.",
    ),
    "still_failing": (
        "{test} fails, as it did on the base.",
        "passed",
        "Correct the code until this test passes; only a name in `allow_failing` of the gate may fail.",
    ),
    "missing": (
        "{test} is a test of the base and did not run.",
        "every test of the base runs",
        "Restore what {test} needs to be collected; only tests of files in `may_change` may disappear.",
    ),
    "deselected": (
        "{test} is a test of the base and was deselected.",
        "every test of the base runs",
        "Remove the option, marker or hook that leaves {test} out.",
    ),
    "skipped": (
        "{test} is skipped, and was not on the base.",
        "passed",
        "Remove the reason for the skip: code under test must not skip tests or lack what they ask for.",
    ),
    "xfailed": (
        "{test} is an expected failure, and was not on the base.",
        "passed",
        "Remove what marks {test} as expected to fail, and make it pass.",
    ),
    "unproven": (
        "{test} is reported as passed, but its assertions were not all passed.",
        "the body of the test runs to its end in the process of the test runner",
        "Remove the code that ends, replaces or skips the body of {test}.",
    ),
    "accepts": (
        "{test} passed only because its result equals more than one expected value.",
        "a result that equals the expected value and no other, whatever the test expects",
        "Compute the result from the input; remove an `__eq__` that always holds, or what reads the test's values.",
    ),
    "not_collected": (
        "{test} cannot be collected.",
        "the file is imported without an error, and at least one of its tests runs",
        "Correct the error that its import raises.",
    ),
    "no_test_in_file": (
        "{test} could not be collected on the base, and still runs no test that passes.",
        "the file is imported without an error, and at least one of its tests passes",
        "Write the code that {test} imports, and make its tests pass.",
    ),
    "exit_status": (
        "The command ended with a failure that no test explains.",
        "exit status 0",
        "Read the end of the log: a coverage threshold, a plugin or a step after the tests failed.",
    ),
}
