"""The tests of the base against the present ones: which differences are faults, and which are allowed."""

from dataclasses import replace
from typing import Any

from interlock.gates.sealed.compare import BaseList, Comparison, compare, compare_added, make_base_list
from interlock.gates.sealed.outcomes import Outcome, Proof, TestCase, TestRun
from interlock.gates.sealed.static_tests import StaticTest
from tests.table import each_row


def case(name: str, outcome: Outcome = "passed", *, proof: Proof = "ended", accepts: str = "") -> TestCase:
    return TestCase(f"tests/test_a.py::{name}", outcome, file="tests/test_a.py", proof=proof, accepts=accepts)


def run(*cases: TestCase, status: int | None = 0, **more: object) -> TestRun:
    made = TestRun("pytest", cases, tuple(each.id for each in cases), exit_status=status)
    return replace(made, **more)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


BASE = run(case("ok"), case("bug", "failed", proof="reached"), case("off", "skipped", proof="body"), status=1)
FIXED = run(case("ok"), case("bug"), case("off", "skipped", proof="body"))


def against(now: TestRun, base: TestRun = BASE, *, free: bool = False, allow: tuple[str, ...] = ()) -> Comparison:
    return compare(
        make_base_list(base), now, may_change=lambda _: free, allow_failing=allow, changed=lambda path: path != ""
    )


def strictly(base: BaseList, now: TestRun, **more: Any) -> Comparison:
    """Compare where no file may change."""
    return compare(base, now, may_change=lambda _: False, changed=lambda _: False, **more)


def kinds(found: Comparison) -> list[str]:
    return [fault.code for fault in found.faults]


def test_a_fix_passes_and_new_tests_are_listed() -> None:
    new = case("new")
    found = against(replace(FIXED, cases=(*FIXED.cases, new)))
    assert (found.ok, found.new, found.counts) == (True, (new.id,), {"passed": 3, "skipped": 1})


TABLE: list[tuple[str, TestRun, list[str]]] = [
    ("the bug is still there", BASE, ["still_failing"]),
    ("a test broke", replace(FIXED, cases=(case("ok", "failed"), *FIXED.cases[1:]), exit_status=1), ["failed"]),
    ("a test is missing", replace(FIXED, cases=FIXED.cases[1:]), ["missing"]),
    ("a skipped test is missing", replace(FIXED, cases=FIXED.cases[:2]), ["missing"]),
    ("newly skipped", replace(FIXED, cases=(case("ok", "skipped"), *FIXED.cases[1:])), ["skipped"]),
    ("the bug is skipped", replace(FIXED, cases=(FIXED.cases[0], case("bug", "skipped"), FIXED.cases[2])), ["skipped"]),
    ("newly xfailed", replace(FIXED, cases=(case("ok", "xfailed"), *FIXED.cases[1:])), ["xfailed"]),
    ("deselected", replace(FIXED, cases=FIXED.cases[1:], deselected=("tests/test_a.py::ok",)), ["deselected"]),
    ("a new test fails", replace(FIXED, cases=(*FIXED.cases, case("new", "failed")), exit_status=1), ["failed"]),
    ("the only one that runs fails", run(case("bug", "failed"), status=1), ["missing", "still_failing", "missing"]),
    ("nothing ran", run(status=5), ["nothing_ran", "missing", "missing", "missing"]),
    ("it hung", replace(FIXED, complete=False, exit_status=None, running=("x",)), ["incomplete"]),
    ("an exit at import", run(complete=False), ["incomplete", "nothing_ran"]),
    ("another judge", replace(BASE, judge="a canary passed"), ["judge"]),
    ("no report", TestRun("junit", problem="missing"), ["unread"]),
    ("a threshold of coverage", replace(FIXED, exit_status=1), ["exit_status"]),
    (
        "a file is broken",
        replace(FIXED, cases=(), broken=(("tests/test_a.py", "ImportError"),), exit_status=2),
        ["nothing_ran", "not_collected"],
    ),
    (
        "its body did not end",
        replace(FIXED, cases=(FIXED.cases[0], case("bug", proof="reached"), FIXED.cases[2])),
        ["unproven"],
    ),
    ("its body did not run", replace(FIXED, cases=(case("ok", proof="body"), *FIXED.cases[1:])), ["unproven"]),
    (
        "its body was replaced",
        replace(FIXED, cases=(FIXED.cases[0], case("bug", proof=""), FIXED.cases[2])),
        ["unproven"],
    ),
    ("equal to everything", replace(FIXED, cases=(case("ok", accepts="line 3"), *FIXED.cases[1:])), ["accepts"]),
]


@each_row(("now", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_what_is_worse_than_the_base_is_a_fault(now: TestRun, expected: list[str]) -> None:
    found = against(now)
    assert kinds(found) == expected
    assert all(fault.message and fault.found and fault.expected and fault.fix for fault in found.faults)


def test_only_tests_of_files_that_may_change_disappear() -> None:
    now = replace(FIXED, cases=(case("bug"),))
    assert kinds(against(now)) == ["missing", "missing"]
    found = against(now, free=True)
    assert (found.ok, found.gone) == (True, ("tests/test_a.py::ok", "tests/test_a.py::off"))
    kept = compare(make_base_list(BASE), now, may_change=lambda _: True, changed=lambda _: False)
    assert kinds(kept) == ["missing", "missing"]


def test_a_test_may_fail_that_is_allowed_by_name() -> None:
    found = against(BASE, allow=("tests/test_a.py::bug",))
    assert (found.ok, found.allowed) == (True, ("tests/test_a.py::bug",))
    assert make_base_list(BASE).allow_line == 'allow_failing = ["tests/test_a.py::bug"]'
    assert make_base_list(FIXED).allow_line == ""


def test_a_parametrized_test_may_fail_by_the_name_of_its_function() -> None:
    base = run(case("ok"), case("p[1]", "failed"), case("p[2]", "failed"), status=1)
    assert against(base, base, allow=("tests/test_a.py::p",)).ok


def test_a_file_that_the_base_cannot_collect_must_run_a_test_that_passes() -> None:
    base = run(status=2, broken=(("tests/test_a.py", "ImportError: no module named calc"),))
    assert kinds(against(base, base)) == ["nothing_ran", "not_collected"]
    assert kinds(against(run(TestCase("tests/test_b.py::x", "passed", file="tests/test_b.py")), base)) == [
        "no_test_in_file"
    ]
    assert against(run(case("any")), base).ok


def test_a_base_that_hangs_requires_what_it_collected() -> None:
    base = replace(run(case("ok")), collected=("tests/test_a.py::ok", "tests/test_a.py::slow"), complete=False)
    assert kinds(against(run(case("ok")), base)) == ["missing"]
    assert kinds(against(run(case("ok"), case("slow", "skipped")), base)) == ["skipped"]
    assert against(run(case("ok"), case("slow")), base).ok


def test_ids_that_differ_between_collections_are_compared_by_function_and_number() -> None:
    first = run(case("p[0.11]"), case("p[0.12]"), case("ok"))
    base = make_base_list(first, run(case("p[0.21]"), case("p[0.22]"), case("ok")))
    assert base.unstable == tuple(f"tests/test_a.py::p[0.{number}]" for number in (11, 12, 21, 22))
    assert BaseList.from_json(base.to_json()) == base

    def now(*names: str) -> Comparison:
        return strictly(base, run(*(case(name) for name in names)))

    assert (now("p[0.31]", "p[0.32]", "ok").ok, now("p[0.31]", "p[0.32]", "ok").new) == (True, ())
    assert kinds(now("p[0.31]", "ok")) == ["missing"]
    assert kinds(now("p[0.31]", "p[0.32]")) == ["missing"]


def test_of_tests_with_unstable_ids_as_many_pass_as_on_the_base() -> None:
    skipped = replace(case("p[3]"), outcome="skipped")
    first = run(case("p[1]"), case("p[2]", "failed"), skipped, case("ok"), status=1)
    base = make_base_list(first, run(case("p[7]"), case("p[8]"), case("p[9]"), case("ok")))

    def now(*outcomes: Outcome) -> list[str]:
        cases = run(*(case(f"p[0{number}]", outcome) for number, outcome in enumerate(outcomes)), case("ok"))
        return kinds(strictly(base, cases))

    assert now("passed", "passed", "skipped") == []
    assert now("passed", "passed", "passed") == []
    assert now("passed", "skipped", "skipped") == ["skipped"]
    assert now("passed", "xfailed", "skipped") == ["skipped"]
    assert now("passed", "passed") == ["missing"]


def test_no_more_subtests_are_skipped_than_on_the_base() -> None:
    base = run(replace(case("ok"), skips=1), case("bug", "failed"), status=1)
    assert against(run(replace(case("ok"), skips=1), case("bug")), base).ok
    assert kinds(against(run(replace(case("ok"), skips=2), replace(case("bug"), skips=1)), base)) == ["skipped"] * 2
    go = TestRun("go", (TestCase("p.TestA", "failed"), TestCase("p.TestA/x", "skipped")), exit_status=1)
    same = TestRun("go", (TestCase("p.TestA", "passed"), TestCase("p.TestA/x", "skipped")))
    assert against(same, go).ok
    more = replace(same, cases=(*same.cases, TestCase("p.TestA/y", "skipped")))
    assert kinds(against(more, go)) == ["skipped"]


def test_tests_of_a_broken_file_may_be_skipped_only_by_its_text_or_by_name() -> None:
    base = make_base_list(run(status=2, broken=(("tests/test_a.py", "ImportError"),)))
    written = {"tests/test_a.py": {"ok": StaticTest(), "off": StaticTest(skips=True), "slow": StaticTest(marked=True)}}

    def now(*cases: TestCase, allow: tuple[str, ...] = (), deselected: tuple[str, ...] = ()) -> list[str]:
        found = run(*cases, proves=True, deselected=deselected)
        return kinds(strictly(base, found, allow_failing=allow, written=written))

    ok, off, slow = case("ok"), case("off", "skipped", proof="body"), case("slow")
    assert now(ok, off, slow) == []
    assert now(ok, off, deselected=("tests/test_a.py::slow",)) == []
    assert now(ok, slow, deselected=("tests/test_a.py::off",)) == ["missing"]
    assert now(case("ok", "skipped"), off, slow) == ["skipped"]
    assert now(case("ok", "skipped"), off, slow, allow=("tests/test_a.py::ok",)) == []
    assert now(off, slow) == ["missing"]
    assert now(case("ok", proof=""), off, slow) == ["unproven"]
    assert now(case("ok", proof="body"), off, slow) == ["unproven"]
    assert now(ok, off, slow, case("other", "xfailed")) == ["xfailed"]


def test_a_method_that_unittest_ran_has_the_code_of_its_file_unless_something_decorates_it() -> None:
    base = make_base_list(TestRun("unittest", exit_status=1, broken=(("tests/test_a.py", "ImportError"),)))
    names = {"T.plain": StaticTest(), "T.other": StaticTest(decorated=True)}

    def now(proof: Proof) -> list[str]:
        cases = tuple(TestCase(f"tests.test_a.{name}", "passed", 0, "", "tests/test_a.py", proof) for name in names)
        found = TestRun("unittest", cases, exit_status=0, proves=True)
        return kinds(strictly(base, found, written={"tests/test_a.py": names}))

    assert (now("ended"), now("")) == ([], ["unproven"])


def test_where_new_tests_run_with_the_others_nothing_fails_and_the_base_says_nothing_else() -> None:
    base = make_base_list(BASE)
    new = case("new")
    found = compare_added(base, run(case("ok", "skipped"), new))
    assert (found.ok, found.new) == (True, (new.id,))
    assert kinds(compare_added(base, run(case("ok", "failed"), new, status=1))) == ["failed"]
    assert kinds(compare_added(base, run(case("ok"), case("new", "failed"), status=1))) == ["failed"]
    assert kinds(compare_added(base, run(case("ok"), case("new", proof="reached")))) == ["unproven"]
    assert kinds(compare_added(base, run(case("ok"), status=3))) == ["exit_status"]
    assert kinds(compare_added(base, run(case("ok"), broken=(("tests/test_new.py", "x"),), status=1))) == [
        "not_collected"
    ]
    assert compare_added(base, run(case("ok"), new, judge="a canary")).faults[0].code == "judge"


def test_a_suite_whose_only_file_is_renamed_needs_a_test_that_passes_in_the_second_run() -> None:
    base = make_base_list(run(case("ok")))

    def first(now: TestRun, *, more: bool) -> list[str]:
        return kinds(compare(base, now, may_change=lambda _: True, changed=lambda _: True, more=more))

    none = run(status=5)
    assert (first(none, more=True), first(none, more=False)) == ([], ["nothing_ran"])
    assert first(replace(none, complete=False), more=True) == ["incomplete", "nothing_ran"]
    assert kinds(compare_added(base, none)) == ["nothing_ran"]
    assert compare_added(base, run(case("new"))).ok


def test_unparsed_tests_are_judged_by_the_exit_status() -> None:
    base = make_base_list(TestRun("exit", exit_status=1))

    def now(status: int | None) -> list[str]:
        return kinds(strictly(base, TestRun("exit", exit_status=status, complete=status is not None)))

    assert (now(0), now(1), now(None)) == ([], ["exit_status"], ["incomplete"])
