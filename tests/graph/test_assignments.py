"""What a run puts into its assignments: what failed and where its log is, what changed, and what may be run."""

from dataclasses import replace

import pytest

from interlock.agents import Ask
from tests.graph.conftest import Project, Scripted, build, judge_log, reviewing

CHECK = "echo looking for hello\ngrep -qx hello src/greeting.txt\n"


def rework(project: Project, check: str | None = CHECK) -> dict[str, list[Ask]]:
    """Run a task whose builder writes the wrong greeting first; return the asks of each role."""
    if check is not None:
        (project.root / "check.sh").write_text(check, encoding="utf-8")
    runners = {
        "builder": Scripted([build("bye\n"), "Done!", build()]),
        "tester": Scripted([judge_log]),
        "reviewer": Scripted([reviewing]),
    }
    project.runners.update(runners)
    assert project.run().status == "APPROVED"
    return {name: runner.asks for name, runner in runners.items()}


def section(ask: Ask, title: str) -> list[str]:
    return ask.prompt.partition(f"## {title}\n")[2].partition("\n## ")[0].splitlines()


def test_a_rework_quotes_the_log_of_the_command_and_names_it(project: Project) -> None:
    first, again, corrected = rework(project)["builder"]
    assert not section(first, "What Interlock measured then")
    for ask in (again, corrected):
        lines = section(ask, "What Interlock measured then")
        assert "### GATE-TESTS" in lines
        assert "Its log, to be read whole: `artifacts/reports/HELLO-001/1/GATE-TESTS.log`" in lines
        assert "| looking for hello" in lines
    refused = "# Your last answer was refused"
    assert (refused in again.prompt, refused in corrected.prompt) == (False, True)
    assert "GATE-TESTS: the tests fail" in corrected.prompt


def test_a_log_that_is_not_the_judged_one_any_more_is_not_quoted(project: Project) -> None:
    (project.root / "check.sh").write_text(CHECK, encoding="utf-8")

    def tester(ask: Ask) -> str:
        answer = judge_log(ask)
        (project.root / "src" / "greeting.txt").write_text("bye\n", encoding="utf-8")
        return answer

    def builder(ask: Ask) -> str:
        if ask.attempt == 2:
            (project.root / "artifacts/reports/HELLO-001/1/GATE-TESTS.log").write_text("{}\nall is well\n")
            return "Done!"
        return build("bye\n")(ask)

    asked = Scripted([builder])
    project.runners |= {"builder": asked, "tester": Scripted([tester]), "reviewer": Scripted([reviewing])}
    project.run()
    again = next(ask for ask in asked.asks if (ask.attempt, ask.reask) == (2, 1))
    assert "all is well" not in again.prompt
    assert "GATE-TESTS.log`" in again.prompt


def test_judges_of_commands_and_reviewers_read_the_diff_since_the_run_began(project: Project) -> None:
    (project.root / "src" / "greeting.txt").write_text("good morning\n", encoding="utf-8")
    (project.root / "src" / "same.txt").write_text("same\n", encoding="utf-8")
    asks = rework(project)
    assert all("What changed since" not in ask.prompt for ask in asks["builder"])
    for ask, now in ((asks["tester"][0], "bye"), (asks["tester"][1], "hello"), (asks["reviewer"][0], "hello")):
        lines = section(ask, "What changed since the run began")
        assert "| - changed, in scope: src/greeting.txt" in lines
        assert {"| -good morning", f"| +{now}"} <= set(lines)
        assert not any("same.txt" in line for line in lines)


def test_a_builder_may_run_the_commands_of_the_task_and_of_its_gates_and_no_judge_may(project: Project) -> None:
    path = project.root / "interlock.toml"
    path.write_text(f'{path.read_text()}\n[commands]\nlook = ["cat", "src/greeting.txt"]\n')
    asks = rework(project)
    gates = {"GATE-TESTS": ("sh", "check.sh"), "GATE-LINT": ("sh", "lint.sh")}
    assert asks["builder"][0].commands == {**gates, "look": ("cat", "src/greeting.txt")}
    assert "- GATE-TESTS: sh check.sh" in section(asks["builder"][0], "Commands you may run")
    assert all(not ask.commands for name in ("tester", "reviewer") for ask in asks[name])


JUNIT = """
if grep -qx hello src/greeting.txt; then bad=''; else bad='<failure message="not hello">expected hello</failure>'; fi
echo "<testsuite><testcase classname='greeting' name='test_says_hello'>$bad</testcase></testsuite>" > report.xml
test -z "$bad"
"""


@pytest.fixture
def sealed(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return the project as a git checkout, whose tests are sealed and come as a JUnit report."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    (project.root / ".git").mkdir()
    (project.root / ".gitignore").write_text("*.log\n")
    (project.root / "check.sh").write_text(JUNIT)
    (project.root / "src" / "greeting.txt").write_text("good morning\n")
    (project.root / "src" / "old.log").write_text("was there\n")
    config = project.root / "interlock.toml"
    seal = 'junit = "report.xml"\n'
    config.write_text(config.read_text().replace('["sh", "check.sh"]\n', f'["sh", "check.sh"]\n{seal}'))
    project.task = replace(project.task, may_change=("src/free/**",))
    return project


@pytest.mark.long
def test_an_assignment_says_how_a_sealed_gate_judges_and_a_rework_names_its_failed_tests(sealed: Project) -> None:
    first, again, _ = rework(sealed, check=None)["builder"]
    gates = {line.partition(":")[0]: line for line in section(first, "Gates of the task")}
    assert "a copy of the tree as it was when the run began" in gates["- GATE-TESTS"]
    assert "src/free/**" in gates["- GATE-TESTS"]
    assert "a copy" not in gates["- GATE-REVIEW"]
    lines = section(again, "What Interlock measured then")
    assert "1 test did not pass:" in lines
    named = next(at for at, line in enumerate(lines) if "test_says_hello" in line)
    assert "not hello" in lines[named + 1]
