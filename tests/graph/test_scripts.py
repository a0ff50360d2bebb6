"""What decides a command gate beside the scope: each file that its command names, however it names it."""

from pathlib import Path

import pytest

from interlock.agents import Ask
from interlock.graph.task.scripts import script_rows
from tests.graph.conftest import Project, Scripted, build
from tests.table import each_row

FILES = (
    *("ci/check.sh", "ci/run.py", "ci/Makefile", "Makefile", "package.json", "web/package.json"),
    *("src/main.py", "tools/lint/__init__.py", "tools/lint/__main__.py"),
)


def rows(root: Path, *command: str) -> dict[str, str]:
    found = script_rows(command, root, lambda path: path.startswith("src/"))
    return {path: what.partition(":")[0] for path, _, what in (row.rpartition(" ") for row in found)}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with scripts."""
    root = tmp_path_factory.mktemp("project")
    for name in FILES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return root


@each_row(
    ("command", "path"),
    [
        (("sh", "ci/check.sh"), "ci/check.sh"),
        (("bash", "-e", "ci/check.sh"), "ci/check.sh"),
        (("bash", "-euo", "pipefail", "./ci/check.sh"), "ci/check.sh"),
        (("python3", "-B", "ci/run.py"), "ci/run.py"),
        (("python3", "-B", "-X", "dev", "-W", "error", "ci/run.py", "--fast"), "ci/run.py"),
        (("env", "A=b", "bash", "ci/check.sh"), "ci/check.sh"),
        (("env", "-i", "PATH=/bin", "sh", "-e", "ci/check.sh"), "ci/check.sh"),
        (("env", "SCRIPT=ci/check.sh", "sh", "-c", "$SCRIPT"), "ci/check.sh"),
        (("sh", "-c", "ci/check.sh"), "ci/check.sh"),
        (("sh", "-c", "set -e; ./ci/check.sh && echo ok"), "ci/check.sh"),
        (("bash", "-lc", "exec ci/check.sh"), "ci/check.sh"),
        (("sh", "-c", "cd ci && ./check.sh"), "ci/check.sh"),
        (("sh", "-c", ". 'ci/check.sh'"), "ci/check.sh"),
        (("sh", "-c", "$(cat ci/check.sh)"), "ci/check.sh"),
        (("python3", "-c", "exec(open('ci/run.py').read())"), "ci/run.py"),
        (("node", "--require=./ci/run.py", "src/main.py"), "ci/run.py"),
        (("timeout", "60", "nice", "-n", "5", "sh", "ci/check.sh"), "ci/check.sh"),
        (("python3", "-m", "tools.lint"), "tools/lint/__main__.py"),
        (("python3", "-m", "tools.lint"), "tools/lint/__init__.py"),
        (("make", "test"), "Makefile"),
        (("make", "-C", "ci", "test"), "ci/Makefile"),
        (("sh", "-c", "make -s test"), "Makefile"),
        (("env", "CI=1", "make"), "Makefile"),
        (("/usr/bin/make",), "Makefile"),
        (("make", "-f", "ci/Makefile"), "ci/Makefile"),
        (("make", "--file=ci/Makefile"), "ci/Makefile"),
        (("npm", "test"), "package.json"),
        (("npm", "--prefix", "web", "test"), "web/package.json"),
        (("sh", "-c", "cd web && npm test"), "web/package.json"),
    ],
)
def test_a_file_that_a_command_names_is_digested(root: Path, command: tuple[str, ...], path: str) -> None:
    assert rows(root, *command)[path] == "sha256"


def test_an_absolute_path_below_the_root_is_the_same_file(root: Path) -> None:
    assert rows(root, "sh", f"{root}/ci/../ci/check.sh") == {"ci/check.sh": "sha256"}


@each_row(
    ("command", "path"),
    [
        (("sh", "ci/gone.sh"), "ci/gone.sh"),
        (("python3", "-B", "gone.py"), "gone.py"),
        (("sh", "-c", "test -x ci/gone.sh && ci/gone.sh"), "ci/gone.sh"),
        (("python3", "-m", "pytest"), "pytest.py"),
        (("pytest", "-q"), "conftest.py"),
        (("make",), "GNUmakefile"),
    ],
)
def test_a_script_that_is_not_there_yet_is_noticed_when_it_turns_up(
    root: Path, command: tuple[str, ...], path: str
) -> None:
    assert rows(root, *command)[path] == "absent"


@each_row(
    "command",
    [
        ("pytest", "--junitxml", "ci/check.sh"),
        ("pytest", "--junitxml=ci/check.sh"),
        ("tool", "-o", "ci/check.sh"),
        ("sh", "src/main.py"),
        ("sh", "../ci/check.sh"),
        ("true",),
        ("echo", "a\0b"),
    ],
)
def test_what_a_command_writes_and_what_is_in_scope_does_not_count(root: Path, command: tuple[str, ...]) -> None:
    assert not {"ci/check.sh", "src/main.py"} & rows(root, *command).keys()


@pytest.mark.parametrize("command", ['["sh", "-e", "check.sh"]', '["sh", "-c", "sh ./check.sh"]', '["make", "-s"]'])
def test_a_script_that_the_builder_changes_passes_nothing(project: Project, command: str) -> None:
    """Whatever precedes the script, and though make alone names it."""
    config = project.root / "interlock.toml"
    config.write_text(config.read_text().replace('["sh", "check.sh"]', command))
    (project.root / "Makefile").write_text("all:\n\tfalse\n")

    def builder(ask: Ask) -> str:
        (project.root / "check.sh").write_text("exit 0\n")
        (project.root / "Makefile").write_text("all:\n\ttrue\n")
        return build("wrong\n")(ask)

    project.runners["builder"] = Scripted([builder])
    view = project.run()
    assert (view.phase, view.status, view.values["cause"]) == ("done", "BLOCKED", "collector")
    assert "was changed after the run began" in str(project.entries("evidence")[0].data)
