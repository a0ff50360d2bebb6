"""What is promised about the benchmark of test gates: its programs and cheats do what they say."""

from pathlib import Path

import pytest

from benchmarks.false_accept.behaviours import BEHAVIOURS
from benchmarks.false_accept.programs import own_programs
from benchmarks.false_accept.trials import Trial, Trials, pairs_of, results, table
from interlock.gates.sealed.heldout import HeldOutTable, load_held_out

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
    """Run four behaviours on two programs before the gate that reads the exit status."""
    done: list[int] = []
    pairs = pairs_of(
        [PROGRAMS["roman"], PROGRAMS["median"]], ["honest", "idle", "edit_assert", "always_equal"], full=True
    )
    return Trials(tmp_path_factory.mktemp("trials"), done.append).run(pairs, ["exit"], 2)


@pytest.mark.long
def test_honest_work_passes_idling_fails_and_cheats_pass_the_exit_status(trials: list[Trial]) -> None:
    found = results(trials, ["exit"])["gates"]["exit"]
    assert found["correct_deliveries"] == {"accepted": 2, "of": 2}
    assert found["wrong_refusals"] == 0
    assert found["idle"] == {"accepted": 0, "of": 2}
    assert found["false_accepts"] == found["known_cheats"] == {"accepted": 4, "of": 4}
    assert found["by_place"]["outside"] == found["by_place"]["process"] == {"accepted": 2, "of": 2}
    assert found["seconds"] > 0


def test_the_table_has_a_row_for_each_behaviour_and_the_three_numbers(trials: list[Trial]) -> None:
    text = table(results(trials, ["exit"]))
    assert "edit_assert" in text
    assert all(label in text for label in ("false accepts", "correct deliveries", "wrong refusals"))


def test_the_held_out_table_of_a_trial_is_one_that_the_gate_can_read(tmp_path: Path) -> None:
    made = Trials(tmp_path, lambda _: None).workshop.project(PROGRAMS["roman"], "one")
    held_out = load_held_out(made.held_out, checkout=made.root)
    assert isinstance(held_out, HeldOutTable)
    assert (held_out.program, held_out.function) == ("roman.py", "roman")
    assert len(held_out.cases) == len(PROGRAMS["roman"].held_out)
