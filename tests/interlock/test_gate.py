"""`interlock gate`: work that is done already, judged as a run would judge it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.child import git
from tests.gates.sealed.sealing import write

CONFIG = (
    '[roles.builder]\nkind = "build"\n[agents.builder]\nrunner = "remote"\n'
    '[gates.GATE-TESTS]\ncommand = ["sh", "tests/check.sh"]\nproduct = ["src/**"]\ntests = ["tests/**"]\n'
)
TASK = 'task_id = "CALC-1"\ntask = "Fix it"\ngates_required = ["GATE-TESTS"]\nscope = ["src/**"]\n'
FILES = {
    "interlock.toml": CONFIG,
    "task.toml": TASK,
    "tests/check.sh": 'test "$(cat src/answer)" = 42\n',
    "src/answer": "41\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a git project whose one test is a shell script, and which fails."""
    root = write(tmp_path / "project", FILES)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "Start")
    return root


def gate(root: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = warm.interlock(root, "gate", "GATE-TESTS", "--task", "task.toml", "--json", *arguments)
    return done.returncode, json.loads(done.stdout)


def test_work_is_judged_by_the_test_of_the_commit(project: Path) -> None:
    (project / "tests/check.sh").write_text("true\n")
    (project / "src/answer").write_text("43\n")
    status, said = gate(project)
    assert (status, said["ok"], said["outside"]) == (1, False, ["tests/check.sh"])
    log = warm.interlock(project, "gate", "GATE-TESTS", "--format", "sarif")
    assert [row["level"] for row in json.loads(log.stdout)["runs"][0]["results"]] == ["error"]
    (project / "src/answer").write_text("42\n")
    status, said = gate(project)
    assert (status, said["ok"], said["schema"], said["taken"]) == (0, True, "interlock.gate/1", ["src/answer"])


def test_the_commit_its_date_and_what_differs_are_named(project: Path) -> None:
    (project / "src/answer").write_text("42\n")
    (project / "src/more").write_text("1\n")
    done = warm.interlock(project, "gate", "GATE-TESTS")
    name = git(project, "rev-parse", "HEAD").strip()
    assert re.search(rf"^compared with commit {name[:12]} of \d{{4}}-\d\d-\d\d \d\d:\d\d$", done.stderr, re.MULTILINE)
    assert "  judged: 2 files of the product that differ from the base\n" in done.stdout
    assert "  note: Nobody observes this command: its exit status decides." in done.stdout


def test_work_that_changes_nothing_of_the_product_is_not_passed(project: Path) -> None:
    (project / "src/answer").write_text("42\n")
    git(project, "commit", "--quiet", "--all", "-m", "Right")
    (project / "tests/check.sh").write_text("true\n")
    status, said = gate(project)
    assert (status, [row["kind"] for row in said["faults"]]) == (1, ["idle"])
    assert "EVD597" in warm.interlock(project, "gate", "GATE-TESTS").stdout


def test_the_answer_is_the_same_whoever_asks_first(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "src/answer").write_text("42\n")
    first = gate(project)
    monkeypatch.setenv("INTERLOCK_STATE", str(project.parent / "state"))
    assert warm.interlock(project, "check", "task.toml").returncode == 0
    assert warm.interlock(project, "run", "task.toml").returncode == 3
    later = [gate(project) for _ in range(2)]
    for _, said in (first, *later):
        for name in ("seconds", "log"):
            del said[name]
    assert first == later[0] == later[1]


def test_the_start_of_a_run_is_a_base_too_and_what_changed_outside_the_scope_is_named(project: Path) -> None:
    refused = warm.interlock(project, "gate", "GATE-TESTS", "--task", "task.toml", "--base", "start")
    assert (refused.returncode, "name a commit with --base" in refused.stderr) == (2, True)
    assert warm.interlock(project, "run", "task.toml").returncode == 3
    git(project, "rm", "--quiet", "tests/check.sh")
    git(project, "commit", "--quiet", "-m", "No test")
    (project / "src/answer").write_text("42\n")
    status, said = gate(project, "--base", "start")
    assert (status, said["ok"], said["outside"]) == (0, True, ["tests/check.sh"])


def test_a_gate_that_is_not_there_is_answered_with_those_that_are(project: Path) -> None:
    done = warm.interlock(project, "gate", "GATE-TSETS", "--task", "task.toml")
    assert (done.returncode, "GATE-TESTS" in done.stderr) == (2, True)


def test_settings_of_the_checkout_do_not_judge(project: Path) -> None:
    (project / "interlock.toml").write_text(CONFIG.replace('"sh", "tests/check.sh"', '"true"'))
    (project / "task.toml").write_text(TASK.replace("src/**", "**"))
    (project / "src/answer").write_text("43\n")
    status, said = gate(project)
    assert (status, said["ok"]) == (1, False)


@pytest.mark.parametrize(
    ("gone", "made"),
    [
        ("task.toml", {"fix.task.toml": TASK.replace("src/**", "**")}),
        ("interlock.toml", {"pyproject.toml": "[tool.interlock.gates.GATE-TESTS]\ncommand = ['true']\n"}),
    ],
    ids=["another task file", "another file of configuration"],
)
def test_settings_that_moved_to_another_file_do_not_judge(project: Path, gone: str, made: dict[str, str]) -> None:
    (project / gone).unlink()
    write(project, {**made, "src/answer": "43\n"})
    done = warm.interlock(project, "gate", "GATE-TESTS", "--json")
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (1, False), done.stderr
    for name in made:
        named = warm.interlock(project, "gate", "GATE-TESTS", "--task", name)
        assert (named.returncode, f"{name} is not in the base" in named.stderr) == (2, True)


def test_settings_that_the_base_lacks_are_asked_for(project: Path) -> None:
    git(project, "rm", "--quiet", "--cached", "task.toml", "interlock.toml")
    git(project, "commit", "--quiet", "-m", "No settings")
    (project / "src/answer").write_text("42\n")
    done = warm.interlock(project, "gate", "GATE-TESTS")
    assert (done.returncode, "interlock.toml is not in the base" in done.stderr) == (2, True)
    git(project, "add", "interlock.toml")
    git(project, "commit", "--quiet", "-m", "No task")
    done = warm.interlock(project, "gate", "GATE-TESTS")
    assert (done.returncode, "; commit it" in done.stderr) == (2, True)


def test_what_is_judged_is_not_known_of_a_command_that_nobody_observes(project: Path) -> None:
    (project / "interlock.toml").write_text(CONFIG.partition("product")[0])
    git(project, "commit", "--quiet", "--all", "-m", "No keys")
    for words in (("check", "task.toml"), ("run", "task.toml"), ("gate", "GATE-TESTS")):
        done = warm.interlock(project, *words)
        assert done.returncode == 2
        assert "SEAL412" in done.stdout + done.stderr
        assert 'product = ["src/**"] and tests = ["tests/**"]' in done.stdout + done.stderr
    assert not (project / ".interlock/runs").exists()


def test_a_check_prints_what_each_gate_judges(project: Path) -> None:
    done = warm.interlock(project, "check", "task.toml")
    assert "GATE-TESTS judges src/**; tests/check.sh keeps its base content\n" in done.stdout
    assert "SEAL404" in done.stdout
    said = json.loads(warm.interlock(project, "check", "task.toml", "--json").stdout)
    assert said["gates"] == [
        {
            "gate": "GATE-TESTS",
            "runner": "exit",
            "observed": False,
            "product": ["src/**"],
            "frozen": ["tests/check.sh"],
            "tests": {},
            "failing": [],
        }
    ]


NAMED: dict[str, tuple[str, str, str, bool]] = {
    # the command, `product`, `tests`, and whether the check warns
    "a test that the gate names": ('["sh", "check.sh"]', "*.{sh,js}", "none/**", True),
    "a test that a script names": ('["sh", "-c", "npm test || true"]', "*.{sh,js}", "none/**", True),
    "below the folder": ('["sh", "answer"]\ncwd = "src"', "src/**", "none/**", True),
    "it is a test": ('["sh", "check.sh"]', "*.{sh,js}", "*.sh", False),
    "it is what the package offers": ('["cat", "index.js"]', "*.{sh,js}", "none/**", False),
}


@pytest.mark.sample("a test that a script names", "it is a test")
@pytest.mark.parametrize(("command", "product", "tests", "warns"), NAMED.values(), ids=NAMED.keys())
def test_a_product_that_the_command_names_is_named(
    project: Path, command: str, product: str, tests: str, *, warns: bool
) -> None:
    config = CONFIG.replace('["sh", "tests/check.sh"]', command).replace("tests/**", tests)
    package = '{"scripts": {"test": "npm run unit", "unit": "sh check.sh"}}'
    files = {"check.sh": "true\n", "index.js": "", "package.json": package}
    write(project, {"interlock.toml": config.replace('["src/**"]', json.dumps([product])), **files})
    found = json.loads(warm.interlock(project, "check", "task.toml", "--json").stdout)["findings"]
    assert [row["level"] for row in found if row["code"] == "SEAL417"] == ["warning"] * warns


def test_a_part_of_the_scope_that_no_gate_judges_is_named(project: Path) -> None:
    write(project, {"docs/a.md": "", "site/a.md": "", "task.toml": TASK.replace('"src/**"', '"src/**", "docs/**"')})
    found = json.loads(warm.interlock(project, "check", "task.toml", "--json").stdout)["findings"]
    assert [(row["level"], row["key"]) for row in found if row["code"] == "SEAL415"] == [("warning", "scope")]
    with (project / "task.toml").open("a") as file:
        file.write('may_change = ["docs/**"]\n')
    found = json.loads(warm.interlock(project, "check", "task.toml", "--json").stdout)["findings"]
    assert "SEAL415" not in [row["code"] for row in found]


def test_a_product_that_matches_nothing_is_refused_by_check_gate_and_run(project: Path) -> None:
    config = (project / "interlock.toml").read_text()
    write(project, {"interlock.toml": config.replace('product = ["src/**"]', 'product = ["srcs/**"]')})
    git(project, "commit", "--quiet", "-am", "A slip")
    write(project, {"src/answer": "42\n"})
    for words in (("check", "task.toml"), ("gate", "GATE-TESTS"), ("run", "task.toml")):
        done = warm.interlock(project, *words)
        said = " ".join((done.stdout + done.stderr).split())
        assert done.returncode == 2, (words, said)
        assert "`product` matches no file of the base: srcs/**" in said, words
        assert 'product = ["src/**"]' in said, words


def test_a_product_may_still_be_to_be_made(project: Path) -> None:
    git(project, "rm", "--quiet", "src/answer")
    git(project, "commit", "--quiet", "-m", "Nothing yet")
    (project / "src").mkdir()
    done = warm.interlock(project, "check", "task.toml", "--json")
    assert done.returncode == 0, done.stdout
    write(project, {"src/answer": "42\n"})
    status, said = gate(project)
    assert (status, said["ok"], said["taken"]) == (0, True, ["src/answer"])
