"""The base before anything is spent: what the set-up breaks is its own fault, and said with the key that helps."""

import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from interlock.gates.errors import CollectorError
from interlock.gates.sealed.base import BaseCheck, check_base
from tests.child import git
from tests.gates.sealed.sealing import (
    FILES,
    RIGHT,
    TESTS,
    WRONG,
    Sealed,
    environment,
    kinds,
    needs_namespaces,
    project,
    write,
)
from tests.refusals import raises_code

SHELL = {".gitignore": "out/\ndata.txt\n.venv\n", "src/calc": "wrong\n", "check.sh": "grep -q right src/calc\n"}
KEYS: dict[str, Any] = {"product": ("src/**",), "tests": ("check.sh",)}


def shell(root: Path, files: dict[str, str] | None = None, *command: str, **settings: Any) -> Sealed:
    """Make a project whose gate reads an exit status."""
    return project(root, SHELL | (files or {}), *(command or ("sh", "check.sh")), **{**KEYS, **settings})


def codes(check: BaseCheck) -> list[str]:
    return [fault.code for fault in check.faults]


# -- commands that nobody observes ------------------------------------------------------------------------------------


def test_a_command_that_nobody_observes_judges_what_the_keys_name(tmp_path: Path) -> None:
    made = shell(tmp_path / "p")
    assert (codes(made.check), made.check.note != "", made.check.tests.run.parsed) == ([], True, False)
    assert kinds(made.judge({"src/calc": "right\n"})) == []
    run = made.judge({"check.sh": "exit 0\n", "src/more": "", "docs/x.md": ""})
    assert (kinds(run), [*run.choice.held], [*run.choice.taken]) == (["exit_status"], ["check.sh"], ["src/more"])
    assert kinds(made.judge({"src/calc": "right\n", "docs/x.md": ""})) == []


def test_commands_run_in_the_folder_that_the_gate_names_and_after_those_that_prepare(tmp_path: Path) -> None:
    files = {"app/check.sh": "grep -q right ../src/calc && test -e made\n"}
    made = shell(tmp_path / "p", files, cwd="app", tests=("app/**",), prepare=(("touch", "made"),))
    assert kinds(made.judge({"src/calc": "right\n"})) == []
    assert not (made.root / "app/made").exists()


def test_a_report_is_believed_and_one_that_is_not_there_stale_or_outside_is_no_result(tmp_path: Path) -> None:
    good = '<testsuite><testcase classname="t" name="a"/></testsuite>'
    write(tmp_path, {"report.xml": good})
    bad = good.replace("/></t", "><failure/></testcase></t")
    script = f"cat src/calc | sh; test -e out.xml || test -L out.xml || echo '{bad}' > out.xml\n"
    made = shell(tmp_path / "p", {"check.sh": script, "src/calc": "true\n"}, junit="out.xml")
    assert (codes(made.check), made.check.tests.failing(), made.check.note != "") == ([], ("t::a",), True)
    assert kinds(made.judge({"src/calc": f"echo '{good}' > out.xml\n"})) == []
    assert kinds(made.judge({"src/calc": "touch out.xml\n", "out.xml": good})) == ["unread"]
    assert kinds(made.judge({"src/calc": f"ln -s {tmp_path}/report.xml out.xml\n"})) == ["unread"]


SETUP = (("sh", "-c", "echo $GREETING > deps/made; mkdir .tool; touch .tool/x"),)


def test_dependencies_that_the_gate_makes_itself_are_seen_and_made_once_for_each_state_of_the_manifests(
    tmp_path: Path,
) -> None:
    needs_namespaces()
    check = "grep -q hello deps/made && test -e .tool/x && ! touch .tool/y\n"
    made = shell(
        tmp_path / "p", {"deps/list": "", "lock": "1", "check.sh": check}, setup=SETUP, env={"GREETING": "hello"}
    )
    assert codes(made.check) == []
    assert kinds(made.judge({"src/calc": "right\n"})) == []
    assert not (made.root / ".tool").exists()
    kept = {*(made.case.store.folder / "setup").iterdir()}
    for name, number in (("src/calc", 0), ("lock", 1)):
        write(made.root, {name: "2\n"})
        git(made.root, "commit", "-qam", "More")
        assert Sealed(made.root, made.command, made.seal).frozen.base != made.frozen.base
        assert len({*(made.case.store.folder / "setup").iterdir()} - kept) == number


@pytest.mark.parametrize("script", ["echo no network; exit 3", "sleep 60"])
def test_a_setup_that_fails_or_hangs_is_named_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr("interlock.gates.sealed.environment._LIMIT_SECONDS", 1.0)
    with raises_code(CollectorError, "SEAL132", "no network" if "exit" in script else ""):
        shell(tmp_path / "p", setup=(("sh", "-c", script),))
    again = Sealed(tmp_path / "p", ("sh", "check.sh"), shell(tmp_path / "q").seal)
    assert again.frozen.base


# -- what is said of a base -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "settings", "code"),
    [
        ({"check.sh": "test -e data.txt\n"}, {}, "SEAL401"),
        ({}, {"prepare": (("sh", "-c", "echo no target; exit 2"),)}, "SEAL410"),
    ],
)
def test_what_is_a_fault_of_the_set_up_is_none_of_the_work(
    tmp_path: Path, files: dict[str, str], settings: dict[str, Any], code: str
) -> None:
    made = shell(tmp_path / "p", files, **settings)
    write(made.root, {"data.txt": ""})
    assert codes(made.check) == [code]
    assert not check_base(made.case).cached, "it may be of the moment"


@pytest.mark.parametrize(
    ("command", "code"),
    [("no-such-program", "COL202"), ("/no/such", "COL202"), (".venv/bin/no", "COL202"), ("bin/x", "SEAL107")],
)
def test_a_program_that_is_missing_is_no_fault_of_the_work(tmp_path: Path, command: str, code: str) -> None:
    made = shell(tmp_path / "p", None, command)
    write(made.root, {"bin/x": "#!/bin/sh\n"})
    with raises_code(CollectorError, code):
        check_base(made.case)


def test_a_base_is_known_afterwards_by_its_tree_and_its_command(tmp_path: Path) -> None:
    made = shell(tmp_path / "p")
    first, again = check_base(made.case), check_base(made.case)
    assert (first.cached, again.cached, again.tests, again.digest) == (False, True, first.tests, first.digest)
    (kept,) = (made.case.store.folder / "results").glob("*.json")
    kept.write_text(kept.read_text().replace('"log":"', r'"log":"\udc80'))  # what a message may hold
    assert check_base(made.case).log == f"\udc80{first.log}"
    for other in (made.with_seal(env={"A": "b"}), Sealed(made.root, ("sh", "-e", "check.sh"), made.seal)):
        assert not check_base(other.case).cached
    write(made.root, {"src/calc": "right\n"})
    assert not check_base(Sealed(made.root, made.command, made.seal).case).cached


def test_what_is_kept_of_a_base_and_cannot_be_read_is_not_believed(tmp_path: Path) -> None:
    made = shell(tmp_path / "p")
    assert made.check
    (kept,) = (made.case.store.folder / "results").glob("*.json")
    for text in ('{"tests": {}}', "", "[]"):
        kept.write_text(text)
        assert not check_base(made.case).cached


def test_a_base_that_could_not_be_read_is_not_kept(tmp_path: Path) -> None:
    made = shell(tmp_path / "p", {"check.sh": "exit 1\n"}, junit="out.xml")
    assert codes(made.check) == ["SEAL403"]
    assert not check_base(made.case).cached
    hangs = shell(tmp_path / "q", {"check.sh": "sleep 60\n"})
    slow = Sealed(hangs.root, hangs.command, hangs.seal, timeout_seconds=0.5)
    assert not slow.check.tests.run.complete
    (fault,) = Sealed(hangs.root, hangs.command, timeout_seconds=0.5).check.faults
    assert (fault.code, "within 0.5 seconds" in fault.message) == ("SEAL412", True)
    assert not check_base(slow.case).cached


def test_held_out_checks_that_cannot_be_used_are_found_before_anything_runs(tmp_path: Path) -> None:
    with raises_code(CollectorError, "HELD102"):
        shell(tmp_path / "p", heldout="src")


# -- bases of pytest --------------------------------------------------------------------------------------------------

NEEDS = """
import os, pathlib, socket, sys
from src.calc import double

def test_needs_data():
    assert pathlib.Path("data.txt").read_text() == "x"

def test_needs_a_variable():
    assert os.environ["NEEDED_HERE"] == "on"

def test_needs_a_module():
    import local_dependency

def test_needs_the_network():
    socket.create_connection(("127.0.0.1", PORT), 2).close()

def test_fails_everywhere():
    assert double(5) == 10
"""


@pytest.mark.long
def test_what_fails_only_sealed_is_named_with_the_key_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_namespaces()
    monkeypatch.setenv("NEEDED_HERE", "on")
    with socket.create_server(("127.0.0.1", 0)) as server:
        tests = NEEDS.replace("PORT", str(server.getsockname()[1]))
        ignored = "data.txt\nlocal_dependency.py\n.venv\n"
        made = project(tmp_path / "p", {**FILES, ".gitignore": ignored, "tests/test_calc.py": tests})
        write(made.root, {"data.txt": "x", "local_dependency.py": ""})
        check = check_base(Sealed(made.root).case)
    tests = [row.message.partition("::")[2].split()[0] for row in check.faults]
    assert tests == ["test_needs_data", "test_needs_a_variable", "test_needs_a_module", "test_needs_the_network"]
    assert [row.fix.split()[0] for row in check.faults] == ["keep", "pass_env", "keep", "network"]
    assert {fault.code for fault in check.faults} == {"SEAL401"}
    assert "test_needs_data" in Path(check.log).read_text()


@pytest.mark.long
def test_a_test_of_the_base_that_fails_now_and_then_is_named_and_may_run_again(tmp_path: Path) -> None:
    needs_namespaces()
    # A base's first run may write compiled code, and no later one.
    odd = "\n\ndef test_odd():\n    import os\n    assert os.access('/run/interlock/bytecode', os.W_OK)\n"
    made = project(tmp_path / "p", {**FILES, "src/calc.py": RIGHT, "tests/test_calc.py": TESTS + odd})
    run = made.judge({"src/calc.py": RIGHT + "# more\n"})
    assert (kinds(run), [fault.field for fault in run.faults]) == (["flaky"], ["tests/test_calc.py::test_odd"])
    assert check_base(made.case).tests.flaky == {"tests/test_calc.py::test_odd"}


@pytest.mark.long
def test_a_command_under_which_no_test_can_run_is_a_fault_that_says_why(tmp_path: Path) -> None:
    conftest = {**FILES, "tests/conftest.py": "import a_package_of_another_environment\n"}
    (fault,) = project(tmp_path / "p", conftest).check.faults
    assert (fault.code, "a_package_of_another_environment" in fault.message) == ("SEAL412", True)


@pytest.mark.long
def test_an_environment_of_another_checkout_is_found_before_anything_is_spent(tmp_path: Path) -> None:
    needs_namespaces()
    other = write(tmp_path / "other", {"calc.py": RIGHT})
    shutil.copytree(environment(), tmp_path / "env", symlinks=True)
    (site,) = (tmp_path / "env").glob("lib/*/site-packages")
    write(site, {"_calc.pth": f"{other}\n"})
    link = tmp_path / "p/.venv"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "env")
    files = {"calc.py": WRONG, "tests/test_calc.py": TESTS.replace("src.calc", "calc")}
    (fault,) = project(tmp_path / "p", files).check.faults
    assert (fault.code, str(other) in fault.message) == ("SEAL302", True), fault.message


DISTRIBUTES = """
def test_x(pytester):
    pytester.makeconftest("")
    pytester.makepyfile("def test_a(hello): assert hello == 'hello'\\ndef test_b(hello): assert hello == 'bye'")
    pytester.runpytest("-n2", "-pplugin").assert_outcomes(passed=1, failed=1)
"""


@pytest.mark.long
def test_the_tests_that_a_test_of_a_plugin_runs_in_workers_are_none_of_the_base(tmp_path: Path) -> None:
    plugin = 'import pytest\n\n@pytest.fixture\ndef hello():\n    return "hello"\n'
    files = {"conftest.py": 'pytest_plugins = ["pytester"]\n', "src/plugin.py": plugin, "test_x.py": DISTRIBUTES}
    files["pytest.ini"] = "[pytest]\npythonpath = src\n"
    check = project(tmp_path / "p", files, product=("src/**",)).check
    assert [str(fault) for fault in check.faults] == []
    assert [(case.id, case.outcome) for case in check.tests.run.cases] == [("test_x.py::test_x", "passed")]


@pytest.mark.long
def test_a_module_that_a_test_wrote_is_not_taken_for_another_environment(tmp_path: Path) -> None:
    leaves = "import sys\n\ndef test_x(tmp_path, monkeypatch):\n    (tmp_path / 'calc.py').write_text('')\n"
    leaves += "    monkeypatch.syspath_prepend(tmp_path)\n    import calc\n"
    (fault,) = project(tmp_path / "p", {"src/calc.py": RIGHT, "calc.py": RIGHT, "tests/test_x.py": leaves}).check.faults
    assert (fault.code, "venv" in fault.fix) == ("SEAL302", False), fault
