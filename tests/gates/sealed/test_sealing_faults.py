"""What the seal breaks is told from what is broken anyway."""

from interlock.gates.sealed.outcomes import TestCase, TestRun
from interlock.gates.sealed.preflight import _faults  # pyright: ignore[reportPrivateUsage]

GOOD = TestRun("pytest", (TestCase("test_a.py::test_one", "passed"),), exit_status=0)
UNCOLLECTED = TestRun("pytest", broken=(("test_a.py", "No module named 'cart'"),), exit_status=2)


def test_a_project_whose_tests_cannot_be_collected_in_the_checkout_has_no_sealing_fault() -> None:
    assert _faults(UNCOLLECTED, UNCOLLECTED, "", "") == []


def test_tests_that_are_collected_in_the_checkout_alone_are_a_sealing_fault_with_the_key_that_helps() -> None:
    found = _faults(GOOD, UNCOLLECTED, "", '".venv", "build"')
    assert found
    assert "keep" in {row.field for row in found}
    assert any('keep = [".venv", "build"]' in row.fix for row in found)


def test_the_end_of_the_output_tells_the_key_where_the_runner_came_to_no_test() -> None:
    bare, sealed = TestRun("go", GOOD.cases), TestRun("go", problem="go left no report", exit_status=1)
    (found,) = _faults(bare, sealed, "missing go.sum entry for module providing package x", '"vendor"')
    assert (found.field, 'keep = ["vendor"]' in found.fix) == ("keep", True)
