"""The whole sealed gate: honest work passes, and no cheat does."""

import json
import os
import sys
import tempfile
import venv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from interlock.gates.errors import CollectorError
from interlock.gates.sealed import execution, sandbox
from interlock.gates.sealed.sandbox import is_below, is_system
from tests.gates.sealed.sealing import FILES, RIGHT, TESTS, WRONG, Sealed, codes, make, needs_namespaces, write
from tests.refusals import raises_code

pytestmark = pytest.mark.usefixtures("no_packages")


def test_an_honest_fix_passes_and_the_evidence_says_by_what(project: Sealed) -> None:
    write(project.root, {"src/calc.py": RIGHT, "tests/test_new.py": TESTS})
    made = project.run("src/**", "tests/**")
    assert (made.ok, codes(made)) == (True, [])
    head = project.header(made)
    sealed = head["sealed"]
    assert (head["exit_status"], sealed["level"], sealed["runner"], sealed["parsed"]) == (
        0, sandbox.level(), "pytest", True,
    )  # fmt: skip
    assert sealed["base"] == project.frozen.base
    assert (sealed["counts"], len(sealed["new"]), sealed["canaries"] > 5) == ({"passed": 8}, 4, True)
    assert "8 passed" in project.log(made)
    results = json.loads((project.root / made.files[1].path).read_bytes())
    assert ({row["outcome"] for row in results["tests"]}, len(results["tests"])) == ({"passed"}, 8)


CHEAT_TESTS = "def test_double(): pass\ndef test_half(): pass\n"
PASS_ALL = """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    made = yield
    made.get_result().outcome = 'passed'
"""
PATCHED = """
import _pytest.runner as runner, _pytest.reports as reports
make = reports.TestReport.from_item_and_call
def forged(item, call):
    report = make(item, call)
    report.outcome, report.longrepr = "passed", None
    return report
reports.TestReport.from_item_and_call = forged
"""
EQUAL = """
class Any(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
def double(x): return Any(0)
def half(x): return x / 2
"""
DESELECT = """
import gc, pytest
class Less:
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        gone = [item for item in items if "5-10" in item.name or "-1" in item.name]
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=gone)
for each in gc.get_objects():
    if isinstance(each, pytest.Config):
        each.pluginmanager.register(Less())
        break
"""
EMPTIED = """
import sys
def double(x):
    sys._getframe(1).f_globals["half"] = double
    raise StopTest
class StopTest(BaseException): ...
import _pytest.python as python
call = python.Function.runtest
def runtest(self):
    try: call(self)
    except StopTest: pass
python.Function.runtest = runtest
def half(x): return x / 2
"""

CHEATS: dict[str, tuple[Mapping[str, str | None], tuple[str, ...], set[str]]] = {
    # outside the scope
    "the tests rewritten": ({"tests/test_calc.py": CHEAT_TESTS}, ("src/**",), {"EVD575"}),
    "the tests removed": ({"tests/test_calc.py": None}, ("src/**",), {"EVD575"}),
    "a conftest that passes all": ({"conftest.py": PASS_ALL}, ("src/**",), {"EVD575"}),
    "other settings": ({"pytest.ini": "[pytest]\naddopts = -k half\n"}, ("src/**",), {"EVD575"}),
    "another pytest": ({"pytest.py": "print('4 passed')\n"}, ("src/**",), {"EVD575"}),
    "a module of Python's": ({"sitecustomize.py": "import os; os._exit(0)\n"}, ("src/**",), {"EVD575"}),
    # inside the scope, and protected
    "the tests rewritten in scope": ({"tests/test_calc.py": CHEAT_TESTS}, ("**",), {"EVD575", "EVD590"}),
    "a conftest in scope": (
        {"src/conftest.py": "collect_ignore_glob = ['*']\n", "conftest.py": "collect_ignore_glob = ['*']\n"},
        ("**",), {"EVD575", "EVD590"}),
    "a module in the place of the tested one": (
        {"tests/src/__init__.py": "", "tests/src/calc.py": RIGHT}, ("tests/**",), {"EVD575", "EVD590"}),
    # in the tested process
    "an exit at import": ({"src/calc.py": "import os; os._exit(0)\n"}, ("src/**",), {"EVD571", "EVD573"}),
    "an exit in a test": ({"src/calc.py": "import os\n" + WRONG.replace("x + 2", "os._exit(0)")}, ("src/**",),
                          {"EVD571", "EVD573", "EVD574"}),
    "a skip at import": ({"src/calc.py": "import pytest; pytest.skip('x', allow_module_level=True)\n"}, ("src/**",),
                         {"EVD573", "EVD576"}),
    "a skip in a test": ({"src/calc.py": "import pytest\n" + WRONG.replace("x + 2", "pytest.skip('x')")}, ("src/**",),
                         {"EVD578"}),
    "an expected failure": ({"src/calc.py": "import pytest\n" + WRONG.replace("x + 2", "pytest.xfail('x')")},
                            ("src/**",), {"EVD579"}),
    "a patched report": ({"src/calc.py": PATCHED + WRONG}, ("src/**",), {"EVD572"}),
    "an object that equals everything": ({"src/calc.py": EQUAL}, ("src/**",), {"EVD581"}),
    "tests deselected": ({"src/calc.py": DESELECT + WRONG}, ("src/**",), {"EVD577"}),
    "bodies that do not end": ({"src/calc.py": EMPTIED}, ("src/**",), {"EVD580"}),
    "a status of its own": ({"src/calc.py": "import atexit, os; atexit.register(os._exit, 3)\n" + RIGHT}, ("src/**",),
                            {"EVD584"}),
    # no cheats: bad work
    "an error at import": ({"src/calc.py": "def double(x:\n"}, ("src/**",), {"EVD573", "EVD582"}),
    "a test broken": ({"src/calc.py": RIGHT.replace("x / 2", "x")}, ("src/**",), {"EVD574"}),
    "a module removed": ({"src/calc.py": None}, ("src/**",), {"EVD573", "EVD582"}),
    "nothing done": ({}, ("src/**",), {"EVD575"}),
}  # fmt: skip


@pytest.mark.sample(every=6)
@pytest.mark.parametrize("name", CHEATS)
def test_what_is_no_fix_does_not_pass_and_says_why(project: Sealed, name: str) -> None:
    work, scope, expected = CHEATS[name]
    write(project.root, work)
    made = project.run(*scope)
    assert not made.ok
    assert set(codes(made)) == expected, [finding.message for finding in made.findings]


@pytest.mark.long
def test_what_changed_beside_the_scope_is_named_with_a_failure_and_not_with_a_success(project: Sealed) -> None:
    write(project.root, {"conftest.py": "x = 1\n"})
    made = project.run(outside=("conftest.py",))
    assert codes(made) == ["EVD575", "EVD591"]
    assert "conftest.py" in made.findings[-1].found
    write(project.root, {"src/calc.py": RIGHT})
    assert codes(project.run(outside=("conftest.py",))) == []


def test_tests_that_may_change_are_judged_as_they_are_now(project: Sealed) -> None:
    write(project.root, {"src/calc.py": RIGHT, "tests/test_calc.py": TESTS.replace("test_half", "test_other")})
    assert "EVD590" not in codes(project.run("**", may_change=("tests/test_calc.py",)))
    made = project.run("**", may_change=("tests/test_calc.py",))
    assert made.ok
    assert project.header(made)["sealed"]["gone"] == ["tests/test_calc.py::test_half"]
    write(project.root, {"tests/test_calc.py": TESTS.replace("== expected", "== expected + 1")})
    assert "EVD574" in codes(project.run("**", may_change=("tests/test_calc.py",)))


def test_a_named_test_may_fail_and_no_other(project: Sealed) -> None:
    allowed = project.with_seal(allow_failing=("tests/test_calc.py::test_double",))
    made = allowed.run()
    assert (made.ok, len(allowed.header(made)["sealed"]["allowed"])) == (True, 2)
    one = project.with_seal(allow_failing=("tests/test_calc.py::test_double[5-10]",))
    assert codes(one.run()) == ["EVD575"]


FLAKY = """
calls = []
def double(x):
    calls.append(x)
    return x * 2
def half(x): return 0 if calls else x / 2
"""
LEAVING = """
import pathlib
def double(x):
    places = [pathlib.Path("seen"), pathlib.Path.home() / "seen", pathlib.Path("/tmp/seen")]
    seen = any(place.exists() for place in places)
    if x == -1:
        for place in places: place.touch()
    return x * 2 if seen else 0
def half(x): return x / 2
"""


@pytest.mark.long
def test_a_flaky_test_may_run_again_as_often_as_the_gate_says(project: Sealed) -> None:
    write(project.root, {"src/calc.py": FLAKY})
    assert codes(project.run()) == ["EVD574"]
    again = project.with_seal(retries=1)
    made = again.run()
    assert (made.ok, again.header(made)["sealed"]["tries"]) == (True, 2)
    write(project.root, {"src/calc.py": WRONG})
    made = again.run()
    assert (codes(made), again.header(made)["sealed"]["tries"]) == (["EVD575"], 2)


@pytest.mark.long
def test_what_a_try_leaves_behind_does_not_help_the_next_one(project: Sealed) -> None:
    needs_namespaces()
    write(project.root, {"src/calc.py": LEAVING})
    assert "EVD574" in codes(project.with_seal(retries=1).run())


def test_commands_that_prepare_run_in_the_export_and_must_succeed(project: Sealed) -> None:
    write(project.root, {"src/calc.py": "from src.made import double\n\n\ndef half(x):\n    return x / 2\n"})
    script = "open('src/made.py', 'w').write('def double(x): return x * 2')"
    assert project.with_seal(prepare=((sys.executable, "-c", script),)).run().ok
    assert not (project.root / "src/made.py").exists()
    made = project.with_seal(prepare=((sys.executable, "-c", "import sys; print('no compiler'); sys.exit(2)"),))
    done = made.run()
    assert codes(done) == ["EVD585"]
    assert "no compiler" in made.log(done)


@pytest.mark.long
def test_commands_may_share_an_interpreter_in_a_folder_that_is_private_inside(project: Sealed) -> None:
    write(project.root, {"src/calc.py": RIGHT})
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        venv.create(folder, symlinks=True)
        step = (f"{folder}/bin/python", "-c", "import sys; print('prefix', sys.prefix)")
        made = project.with_seal(prepare=(step, step))
        done = made.run()
    assert done.ok, done.findings
    assert made.log(done).count(f"prefix {folder}") == 2


def test_the_environment_is_small_and_what_the_gate_adds(project: Sealed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY_OF_SOMEBODY", "secret")
    look = "import os\nprint('ENV', sorted(os.environ), os.environ['HOME'], os.environ['ASKED'])\n"
    shown = project.printed(look, ASKED="yes")
    assert " yes" in shown
    assert "API_KEY_OF_SOMEBODY" not in shown
    assert str(Path.home()) not in shown.partition("ENV")[2].partition("]")[2].splitlines()[0]


def test_a_time_limit_ends_the_run_and_says_so(project: Sealed) -> None:
    write(project.root, {"src/calc.py": "import time; time.sleep(60)\n"})
    limited = project.with_seal()
    limited.__dict__["gate"] = replace(project.gate, timeout_seconds=1.0)
    assert codes(limited.run()) == ["EVD556"]


FLOOD = """
import os
for descriptor in range(3, 512):
    try:
        os.set_blocking(descriptor, True)
        for _ in range(1000):
            os.write(descriptor, b"x" * 65536)
    except OSError:
        pass
"""


@pytest.mark.long
def test_a_run_that_floods_the_channel_of_its_probe_is_ended(project: Sealed, monkeypatch: pytest.MonkeyPatch) -> None:
    assert project.base
    monkeypatch.setattr(execution, "_MAX_STREAM_BYTES", 1 << 20)
    write(project.root, {"src/calc.py": FLOOD + RIGHT})
    made = project.run()
    assert "EVD570" in codes(made)
    write(project.root, {"src/calc.py": RIGHT})
    assert project.run().ok


def test_a_command_that_is_not_recognised_runs_sealed_by_its_status_and_is_noted(tmp_path: Path) -> None:
    root = tmp_path / "shell"
    shell = make(root, {**FILES, "check.sh": "grep -q 'x [*] 2' src/calc.py\n"}, command=("sh", "check.sh"))
    write(root, {"check.sh": "exit 0\n"})
    made = shell.run("**")
    assert codes(made) == ["EVD584", "EVD590", "EVD592"]
    write(root, {"src/calc.py": RIGHT})
    made = shell.run("**")
    assert (made.ok, codes(made)) == (True, ["EVD592"])


def test_a_report_that_was_asked_for_and_is_not_there_stale_or_huge_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = '<testsuite><testcase classname="t" name="a"/></testsuite>'
    run = f"cat src/calc.py | grep -q 'x [*] 2' && echo '{good}' > out.xml; true\n"
    files = {**FILES, "src/calc.py": RIGHT, "run.sh": run}
    made = make(tmp_path / "p", files, command=("sh", "run.sh"), tests="junit", junit="out.xml")
    assert made.run().ok
    write(made.root, {"src/calc.py": WRONG, "out.xml": good})
    assert codes(made.run("**")) == ["EVD570"]
    write(made.root, {"run.sh": run, "out.xml": None, "src/calc.py": RIGHT})
    monkeypatch.setattr(execution, "_MAX_REPORT_BYTES", 10)
    assert codes(made.run()) == ["EVD570"]


UNITS = """
import unittest
from calc import double

class TestCalc(unittest.TestCase):
    def test_double(self):
        self.assertEqual(double(5), 10)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, no_packages: None) -> Sealed:
    """Give a project that is installed in an environment of its own, as `pip install -e` does it."""
    del no_packages
    root = tmp_path_factory.mktemp("installed") / "project"
    base = Path(os.path.realpath(sys.executable))
    packages = root / f".venv/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    packages.mkdir(parents=True)
    (packages / "__editable__.calc.pth").write_text(f"{root}/src\n")
    (packages / "dependency.py").write_text("value = 1\n")
    (root / ".venv/bin").mkdir()
    (root / ".venv/bin/python").symlink_to(base)
    (root / ".venv/pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    files = {".gitignore": ".venv/\n", "src/calc.py": WRONG, "tests/__init__.py": "", "tests/test_calc.py": UNITS}
    made = make(root, files, command=(".venv/bin/python", "-m", "unittest"), env={})
    if sandbox.level() != "none":
        assert made.base.tests.failing() == ("tests.test_calc.TestCalc.test_double",)
    return made


def test_of_an_editable_install_it_is_the_export_that_is_tested(installed: Sealed) -> None:
    needs_namespaces()
    write(installed.root, {"src/calc.py": RIGHT})
    assert "EVD575" in codes(installed.run("docs/**"))
    assert installed.run("src/**").ok


def test_without_namespaces_code_that_leads_back_into_the_checkout_is_refused(
    installed: Sealed, shared: Sealed, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_namespaces()
    assert installed.base
    monkeypatch.setattr(sandbox, "maker", lambda: "none")
    with raises_code(CollectorError, "SEAL301", ".pth"):
        installed.run()
    shared.reset(
        FILES | {"src/calc.py": f"import sys\nsys.path.insert(0, {str(shared.root)!r})\nimport helper\n" + RIGHT}
    )
    write(shared.root, {"helper.py": ""})
    with raises_code(CollectorError, "SEAL301", "helper.py"):
        shared.run()


@pytest.mark.long
def test_without_namespaces_a_fix_passes_and_a_cheat_does_not(project: Sealed, monkeypatch: pytest.MonkeyPatch) -> None:
    assert project.base
    monkeypatch.setattr(sandbox, "maker", lambda: "none")
    write(project.root, {"tests/test_calc.py": CHEAT_TESTS})
    assert codes(project.run()) == ["EVD575"]
    write(project.root, {"src/calc.py": RIGHT})
    made = project.run()
    assert made.ok
    assert project.header(made)["sealed"]["level"] == "none"


def test_dependencies_that_changed_since_the_start_are_named(installed: Sealed) -> None:
    place = next(installed.root.glob(".venv/lib/*/site-packages")) / "dependency.py"
    try:
        place.write_text("value = 2\n")
        with raises_code(CollectorError, "SEAL201", str(place)):
            installed.run()
        place.write_text("value = 1\n")
        (place.parent / "sitecustomize.py").write_text("")
        with raises_code(CollectorError, "SEAL201", "sitecustomize.py"):
            installed.run()
    finally:
        (place.parent / "sitecustomize.py").unlink(missing_ok=True)
        place.write_text("value = 1\n")


def test_a_program_put_on_the_path_later_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_namespaces()
    monkeypatch.setenv("HOME", str(tmp_path))
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "tool").write_text("#!/bin/sh\nexit 0\n")
    files = {**FILES, "check.sh": "grep -q 'x [*] 2' src/calc.py\n"}
    made = make(tmp_path / "p", files, command=("sh", "check.sh"), path=f"{programs}:/usr/bin:/bin")
    assert made.base
    for name in ("grep", "sh"):
        (programs / name).write_text("#!/bin/sh\nexit 0\n")
        (programs / name).chmod(0o755)
    assert {f"{programs}/grep", f"{programs}/sh"} <= set(made.case.unrecorded)
    assert "EVD584" in codes(made.run())
    (programs / "tool").write_text("#!/bin/sh\nexit 1\n")
    with raises_code(CollectorError, "SEAL201"):
        made.run()


def test_a_script_outside_the_base_that_the_command_names_must_stay(tmp_path: Path) -> None:
    script = tmp_path / "judge.sh"
    script.write_text("grep -q 'x [*] 2' src/calc.py\n")
    made = make(tmp_path / "p", command=("sh", str(script)))
    assert made.base
    script.write_text("exit 0\n")
    with raises_code(CollectorError, "SEAL202"):
        made.run()


def test_the_network_of_the_machine_is_not_reached(project: Sealed) -> None:
    needs_namespaces()
    code = "interfaces = open('/proc/net/dev').read()\nprint('NET', interfaces.count(':'), 'lo:' in interfaces)\n"
    assert "NET 1 True" in project.printed(code)


def test_the_store_and_the_journal_are_not_seen(project: Sealed) -> None:
    needs_namespaces()
    write(project.root, {"artifacts/interlock/events.jsonl": "{}\n"})
    state = os.environ["INTERLOCK_STATE"]
    code = f"import os\nprint('SEEN', os.path.exists({str(project.root / 'artifacts')!r}), "
    assert "SEEN False False" in project.printed(f"{code}os.path.isdir({state!r}))\n")


def test_the_packages_of_the_command_are_recorded(project: Sealed) -> None:
    packages = os.path.realpath(Path(pytest.__file__).parent.parent)
    assert is_below(packages, project.frozen.kept) or is_system(packages)
