"""What is promised about the benchmark of test gates: its programs and cheats do what they say."""

from pathlib import Path

import pytest

from benchmarks.false_accept.behaviours import BEHAVIOURS
from benchmarks.false_accept.programs import own_programs
from benchmarks.false_accept.trials import Trial, Trials, pairs_of, results, table
from interlock.core.state import STATE
from interlock.gates.sealed import HeldOutTable, load_held_out

PROGRAMS = {program.name: program for program in own_programs()}
CHEATS = [each for each in BEHAVIOURS.values() if each.place not in {"honest", "idle"}]


def test_there_are_enough_programs_and_cheats() -> None:
    languages = [program.language for program in PROGRAMS.values()]
    assert languages.count("python") >= 20
    assert languages.count("javascript") >= 5
    assert len([each for each in CHEATS if each.known]) == 15
    assert len(CHEATS) >= 40
    assert {each.place for each in CHEATS} == {"outside", "scope", "process"}


def test_every_cheat_and_every_program_is_tried_even_when_each_cheat_has_a_third_of_them() -> None:
    pairs = pairs_of(list(PROGRAMS.values()))
    assert {behaviour.name for _, behaviour in pairs} == set(BEHAVIOURS)
    assert {program.name for program, _ in pairs} == set(PROGRAMS)
    assert len(pairs) < len(pairs_of(list(PROGRAMS.values()), full=True)) / 2


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    """Run five behaviours on a program before the gate that reads the exit status and those that are sealed."""
    done: list[int] = []
    pairs = pairs_of([PROGRAMS["roman"]], ["honest", "idle", "edit_assert", "always_equal", "hardcode"], full=True)
    place = tmp_path_factory.mktemp("trials")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STATE, str(place))
        return Trials(place, done.append).run(pairs, ["exit", "sealed", "heldout"], 2)


@pytest.mark.long
def test_honest_work_passes_every_gate_and_each_cheat_those_that_cannot_see_it(trials: list[Trial]) -> None:
    gates = results(trials, ["exit", "sealed", "heldout"])["gates"]
    for found in gates.values():
        assert (found["correct_deliveries"], found["wrong_refusals"]) == ({"accepted": 1, "of": 1}, 0)
        assert found["idle"] == {"accepted": 0, "of": 1}
        assert found["seconds"] > 0
    assert {name: found["by_place"]["outside"]["accepted"] for name, found in gates.items()} == {
        "exit": 1,
        "sealed": 0,
        "heldout": 0,
    }
    assert {name: found["by_place"]["process"]["accepted"] for name, found in gates.items()} == {
        "exit": 2,
        "sealed": 1,
        "heldout": 0,
    }


@pytest.mark.long
def test_the_table_has_a_row_for_each_behaviour_and_the_three_numbers(trials: list[Trial]) -> None:
    text = table(results(trials, ["exit"]))
    assert "edit_assert" in text
    assert all(label in text for label in ("false accepts", "correct deliveries", "wrong refusals"))


def test_the_held_out_table_of_a_trial_is_one_that_the_gate_can_read(tmp_path: Path) -> None:
    made = Trials(tmp_path, lambda _: None).workshop.project(PROGRAMS["roman"], "one")
    held_out = load_held_out(made.held_out, checkout=made.root)
    assert isinstance(held_out, HeldOutTable)
    assert held_out.function == "roman.py:roman"
    assert len(held_out.cases) == len(PROGRAMS["roman"].held_out)
