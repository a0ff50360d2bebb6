"""The tests of the base against the present ones: which differences are faults, and which are allowed."""

from dataclasses import replace
from typing import Any

from interlock.gates.sealed.compare import BaseTests, Comparison, compare
from interlock.gates.sealed.outcomes import TestCase, TestRun
from tests.table import each_row

FILE = "tests/test_a.py"


def case(name: str, outcome: Any = "passed", *, ran: Any = "ended", **more: Any) -> TestCase:
    return TestCase(f"{FILE}::{name}", outcome, file=FILE, ran=ran, **more)


def run(*cases: TestCase, status: int | None = 0, **more: Any) -> TestRun:
    made = TestRun("pytest", cases, tuple(each.id for each in cases), exit_status=status, sessions=1)
    return replace(made, **more)


BASE = run(case("ok"), case("bug", "failed", ran="begun"), case("off", "skipped", ran=""), status=1)
FIXED = run(case("ok"), case("bug"), case("off", "skipped", ran=""))


def other(now: TestRun, *cases: TestCase, **more: Any) -> TestRun:
    """Return a run with other outcomes of some tests."""
    changed = {each.id: each for each in cases}
    rows = tuple(changed.pop(each.id, each) for each in now.cases)
    bad = any(each.outcome in ("failed", "error") for each in (*rows, *cases))
    return replace(now, cases=(*rows, *changed.values()), exit_status=int(bad), **more)


def against(
    now: TestRun, base: TestRun = BASE, again: TestRun | None = None, *, free: str = "-", allow: tuple[str, ...] = ()
) -> Comparison:
    return compare(BaseTests(base, again), now, free=free.__eq__, allow_failing=allow)


def kinds(found: Comparison) -> list[str]:
    assert all(fault.message and fault.found and fault.expected and fault.fix for fault in found.faults)
    return [fault.code for fault in found.faults]


def test_a_fix_passes_and_new_tests_are_listed() -> None:
    found = against(other(FIXED, case("new")))
    assert (kinds(found), found.new) == ([], (f"{FILE}::new",))


@each_row(
    ("now", "expected"),
    [
        (BASE, ["still_failing"]),
        (other(FIXED, case("ok", "failed")), ["failed"]),
        (other(FIXED, case("ok", "error")), ["failed"]),
        (other(FIXED, case("bug", "error")), ["still_failing"]),
        (other(FIXED, case("off", "failed")), ["failed"]),
        (other(FIXED, case("new", "failed")), ["failed"]),
        (other(FIXED, case("ok", "skipped")), ["skipped"]),
        (other(FIXED, case("bug", "skipped")), ["skipped"]),
        (other(FIXED, case("ok", "xfailed")), ["xfailed"]),
        (other(FIXED, case("off", "xfailed"), case("new", "skipped"), case("bug", "xpassed")), []),
        (other(FIXED, case("ok", ran="begun")), ["unproven"]),
        (other(FIXED, case("ok", ran="")), ["unproven"]),
        (other(FIXED, case("bug", ran="")), ["unproven"]),
        (replace(FIXED, equals=("calc.Any",)), ["equals"]),
        (replace(FIXED, cases=FIXED.cases[1:]), ["missing"]),
        (replace(FIXED, cases=FIXED.cases[:2]), ["missing"]),
        (replace(FIXED, cases=FIXED.cases[1:], deselected=(f"{FILE}::ok",)), ["deselected"]),
        (replace(FIXED, cases=(), skipped_files=((FILE, "no"),)), ["missing"] * 3),
        (run(status=5), ["missing"] * 3),
        (replace(FIXED, cases=(), broken=((FILE, "ImportError"),), exit_status=2), ["not_collected"]),
        (replace(FIXED, complete=False, exit_status=None), ["incomplete"]),
        (replace(FIXED, cases=FIXED.cases[1:], complete=False, running=(f"{FILE}::ok",)), ["incomplete", "failed"]),
        (replace(FIXED, exit_status=1), ["exit_status"]),
        (replace(BASE, judge="a forged line"), ["judge"]),
        (replace(FIXED, changed=("pytest.x",)), ["judge"]),
        (replace(FIXED, sessions=0), ["incomplete"]),
        (TestRun("exit", exit_status=0), ["incomplete"]),
        (TestRun("junit", problem="missing"), ["unread"]),
    ],
    ids=lambda value: getattr(value, "exit_status", value),
)
def test_what_is_worse_than_the_base_is_a_fault(now: TestRun, expected: list[str]) -> None:
    assert kinds(against(now)) == expected


def test_what_was_so_on_the_base_is_no_fault() -> None:
    base = run(case("ok", ran="begun"), case("odd", ran=""), changed=("pytest.x",), equals=("calc.Any",), sessions=2)
    assert kinds(against(base, base)) == []
    assert kinds(against(replace(base, sessions=1), base)) == ["incomplete"]
    failing = run(case("bug", "failed", ran=""), status=1)
    assert kinds(against(run(case("bug", ran="begun")), failing)) == [], "nobody proves the tests of this runner"


def test_only_tests_of_files_that_may_change_disappear() -> None:
    found = against(run(case("bug")), free=FILE)
    assert (kinds(found), found.gone) == ([], (f"{FILE}::ok", f"{FILE}::off"))
    found = against(other(FIXED, case("ok", "skipped")), free=FILE)
    assert (kinds(found), found.gone) == ([], (f"{FILE}::ok",))
    assert kinds(against(run(case("bug", "failed"), status=1), free=FILE)) == ["still_failing"]


def test_a_test_may_fail_that_is_allowed_by_its_id_its_function_or_its_file() -> None:
    base = run(case("ok"), case("p[1]", "failed"), case("p[2]", "failed"), status=1)
    for name, faults in ((f"{FILE}::p", 0), (f"{FILE}::p[1]", 1), (FILE, 0), (f"{FILE}::ok", 2)):
        found = against(base, base, allow=(name,))
        assert (len(found.faults), len(found.allowed)) == (faults, 2 - faults)
    assert BaseTests(base).allow_line == f'allow_failing = ["{FILE}::p[1]", "{FILE}::p[2]"]'
    assert BaseTests(FIXED).allow_line == ""
    many = run(*(case(str(number), "failed") for number in range(193)), status=1)
    assert BaseTests(many).allow_line.endswith(f'"{FILE}::9" and 183 more]')


def test_a_file_that_the_base_cannot_collect_must_run_a_test_that_passes_to_its_end() -> None:
    base = run(status=2, broken=((FILE, "no module named calc"),))
    assert kinds(against(base, base)) == ["not_collected"]
    elsewhere = TestCase("tests/test_b.py::x", "passed", file="tests/test_b.py", ran="ended")
    assert kinds(against(run(elsewhere), base)) == ["no_test_in_file"]
    assert kinds(against(run(case("any")), base)) == []
    assert kinds(against(run(case("any"), case("off", "skipped", ran="", when="setup")), base)) == []
    assert kinds(against(run(case("any"), case("off", "skipped", when="call")), base)) == ["skipped"]
    assert kinds(against(run(case("any"), case("two", ran="begun")), base)) == ["unproven"]
    assert kinds(against(run(case("any"), case("two", "failed"), status=1), base)) == ["still_failing"]
    both = (run(elsewhere, status=1, broken=base.broken), replace(base, cases=(elsewhere,)))
    assert (kinds(against(*both)), kinds(against(*both, allow=(FILE,)))) == (["not_collected"], [])


def test_a_base_that_hangs_requires_what_it_collected() -> None:
    base = replace(run(case("ok")), collected=(f"{FILE}::ok", f"{FILE}::slow"), complete=False, exit_status=None)
    assert kinds(against(run(case("ok")), base)) == ["missing"]
    assert kinds(against(run(case("ok"), case("slow", "skipped")), base)) == ["skipped"]
    assert kinds(against(run(case("ok"), case("slow")), base)) == []


def test_of_tests_with_ids_that_differ_between_two_runs_of_the_base_as_many_must_pass() -> None:
    first = run(case("p[0.11]"), case("p[0.12]", "skipped"), case("ok"))
    again = run(case("p[0.21]"), case("p[0.22]", "skipped"), case("ok"))

    def now(*outcomes: Any) -> list[str]:
        found = against(run(*(case(f"p[0.3{at}]", each) for at, each in enumerate(outcomes)), case("ok")), first, again)
        assert found.new == ()
        return kinds(found)

    assert now("passed", "skipped") == []
    assert now("passed", "passed") == []
    assert now("skipped", "skipped") == ["missing"]
    assert now("passed") == []
    assert now("passed", "failed") == ["failed"]


def test_a_test_that_failed_in_one_of_two_runs_of_the_base_is_flaky_and_named() -> None:
    first, again = run(case("ok"), case("odd")), run(case("ok"), case("odd", "failed"), status=1)
    for one, two in ((first, again), (again, first)):
        found = against(again, one, two)
        assert (kinds(found), found.faults[0].field) == (["flaky"], f"{FILE}::odd")
        assert kinds(against(first, one, two)) == []
    assert kinds(against(run(case("ok", "failed"), case("odd"), status=1), first, again)) == ["failed"]


def test_where_new_tests_run_with_the_others_nothing_that_ran_before_is_gone() -> None:
    def added(now: TestRun, before: TestRun = FIXED, *, free: str = "-", allow: tuple[str, ...] = ()) -> list[str]:
        return kinds(compare(BaseTests(BASE), now, before=before, free=free.__eq__, allow_failing=allow))

    assert added(other(FIXED, case("new"))) == []
    assert added(run(case("new"))) == ["missing"] * 3
    assert added(other(FIXED, case("ok", "skipped"), case("new"))) == ["skipped"]
    assert added(other(FIXED, case("bug", "failed"))) == ["failed"]
    assert added(run(case("new")), free=FILE) == []
    assert added(BASE, BASE, allow=(f"{FILE}::bug",)) == []


def test_tests_that_nobody_reads_are_judged_by_the_exit_status() -> None:
    base = TestRun("exit", exit_status=1)
    rows = {status: TestRun("exit", exit_status=status, complete=status is not None) for status in (0, 1, None)}
    assert [kinds(against(now, base)) for now in rows.values()] == [[], ["exit_status"], ["incomplete"]]
