"""What the text of a broken test file says of its tests, and which files the settings of a test run name."""

from collections.abc import Mapping

from interlock.gates.sealed.configured import configured_files
from interlock.gates.sealed.protect import kind_of
from interlock.gates.sealed.static_tests import StaticTest, static_tests
from tests.table import each_row

PYTHON = """
import unittest
import pytest
from calc import add, CASES

def test_plain(): ...
async def test_waits(): ...
@pytest.mark.parametrize("a", CASES)
def test_many(a): ...
@pytest.mark.slow
def test_slow(): ...
@pytest.mark.skipif(True, reason="")
def test_off(): ...
def test_maybe():
    pytest.skip("later")
@pytest.fixture
def test_client(): ...
if CASES:
    def test_conditional(): ...
def test_again(): ...
test_again = None
def helper(): ...

class TestCart:
    def test_total(self): ...
    def helper(self): ...
class TestMade:
    def __init__(self): ...
    def test_never(self): ...
class TestOff:
    __test__ = False
    def test_never(self): ...
class TestDerived(Base):
    def test_unknown(self): ...
class Unit(unittest.TestCase):
    def test_unit(self): ...
    def setUp(self):
        self.skipTest("")
"""
GO_TEST = b"""package calc
import "testing"
func TestAdd(t *testing.T) {}
func Testify(t *testing.T) {}
func TestMain(m *testing.M) {}
func BenchmarkAdd(b *testing.B) {}
"""
PLAIN, OFF = StaticTest(), StaticTest(skips=True)
MANY, MARKED = StaticTest(decorated=True), StaticTest(marked=True, decorated=True)


def test_each_test_that_is_plainly_in_a_file_is_known_and_nothing_else() -> None:
    files = {"tests/test_a.py": PYTHON.encode()}
    found = static_tests(["tests/test_a.py"], "pytest", files.get, files)
    assert found == {
        "tests/test_a.py": {
            "test_plain": PLAIN, "test_waits": PLAIN, "test_many": MANY, "test_slow": MARKED,
            "test_off": StaticTest(skips=True, decorated=True),
            "test_maybe": OFF, "TestCart.test_total": PLAIN, "Unit.test_unit": OFF,
        },
    }  # fmt: skip
    units = static_tests(["tests/test_a.py"], "unittest", files.get, files)
    assert units == {"tests/test_a.py": {"Unit.test_unit": OFF}}
    skips = files | {"conftest.py": b"def pytest_collection_modifyitems(items): pytest.mark.skip"}
    assert static_tests(["tests/test_a.py"], "pytest", skips.get, skips)["tests/test_a.py"]["test_slow"].skips
    named = files | {"pytest.ini": b"[pytest]\npython_functions = check_*"}
    assert static_tests(["tests/test_a.py"], "pytest", named.get, named) == {}
    broken = {"tests/test_a.py": b"def test_a(:"}
    assert static_tests(["tests/test_a.py"], "pytest", broken.get, broken) == {"tests/test_a.py": {}}


def test_the_tests_of_a_package_of_go_are_known_by_its_module() -> None:
    skips = GO_TEST.replace(b"{}", b"{ t.Skip() }").replace(b"TestAdd", b"TestSkips")
    files = {
        "go.mod": b"module example.org/p\n", "calc/calc_test.go": GO_TEST, "calc/more_test.go": skips,
        "calc/calc_windows_test.go": GO_TEST.replace(b"TestAdd", b"TestWindows"), "other/a_test.go": GO_TEST,
    }  # fmt: skip
    found = static_tests(["example.org/p/calc"], "go", files.get, files)
    assert found == {"example.org/p/calc": {"TestAdd": PLAIN, "TestSkips": OFF}}


NPM = (
    '{"scripts": {"test": "npm run unit", "pretest": "sh pre.sh", "unit": "node scripts/u.js src/a.js", '
    '"start": "sh start.sh"}}'
)
SETTINGS: Mapping[str, tuple[tuple[str, ...], Mapping[str, str], set[str]]] = {
    "a plugin of the command": (("pytest", "-p", "plug"), {"lib/plug.py": "", "src/a.py": ""}, {"lib/plug.py"}),
    "a plugin that is turned off": (("pytest", "-p", "no:plug"), {"plug.py": ""}, set()),
    "a plugin of the settings": (("pytest",), {"pyproject.toml": 'addopts = ["-p", "a.plug"]', "a/plug.py": ""},
                                 {"a/plug.py"}),
    "plugins of conftest.py": (("pytest",), {"t/conftest.py": 'pytest_plugins = ["t.one", "two"]', "t/one.py": "",
                                             "two/__init__.py": "", "three.py": ""}, {"t/one.py", "two/__init__.py"}),
    "plugins of a test, and of these": (("pytest",), {"t/test_a.py": "pytest_plugins = 'one'", "one.py":
                                                     "pytest_plugins = ('two',)", "two.py": ""}, {"one.py", "two.py"}),
    "options of node": (("node", "--import", "./setup.mjs", "--require=./more", "--test"),
                        {"setup.mjs": "", "more.cjs": "", "src/a.js": ""}, {"setup.mjs", "more.cjs"}),
    "set-up of vitest": (("vitest",), {"vitest.config.ts": "test: { setupFiles: ['./src/setupTests.ts'],\n"
                                       "globalSetup: './src/global' }, build: { entry: 'src/main.ts' }",
                                       "src/setupTests.ts": "", "src/global.ts": "", "src/main.ts": ""},
                         {"src/setupTests.ts", "src/global.ts"}),
    "set-up of jest in package.json": (("jest",), {"a/package.json": '{"jest": {"setupFiles": ["<rootDir>/pre.js"]}}',
                                                   "a/pre.js": "", "pre.js": ""}, {"a/pre.js"}),
    "a recipe of make": (("make", "test"), {"Makefile": "all: run\nrun:\n\tsh ci/run.sh\ntest: unit\nunit:\n\tpython "
                                            "tools/check.py src/a.py\n\t./go\n", "ci/run.sh": "", "tools/check.py": "",
                                            "src/a.py": "", "go": ""}, {"tools/check.py", "go"}),
    "what a Makefile includes": (("make", "test"), {"Makefile": "-include ci/rules.inc\n", "ci/rules.inc": "test: u\n"
                                                    "u:\n\t$(MAKE) more\nmore:\n\tsh run.sh\n", "run.sh": ""},
                                 {"ci/rules.inc", "run.sh"}),
    "what a script runs and imports": (("make",), {"Makefile": "test:\n\tsh ci/run.sh\n", "ci/run.sh": ". ./env.inc\n"
                                                   "python ci/go.py src/a.py", "ci/env.inc": "", "src/a.py": "",
                                                   "ci/go.py": "from . import one\nimport src.a, two", "ci/one.py": "",
                                                   "ci/two.py": "", "ci/three.py": ""},
                                       {"ci/run.sh", "ci/env.inc", "ci/go.py", "ci/one.py", "ci/two.py"}),
    "a script of npm": (("npm", "test"), {"package.json": NPM, "pre.sh": "", "scripts/u.js": "", "src/a.js": "",
                                          "start.sh": ""}, {"pre.sh", "scripts/u.js"}),
    "a session of nox": (("nox",), {"noxfile.py": "session.run('bash', 'ci/all.sh')", "ci/all.sh": ""}, {"ci/all.sh"}),
}  # fmt: skip


@each_row(("command", "files", "expected"), SETTINGS.values(), ids=list(SETTINGS))
def test_files_in_settings_are_found(command: tuple[str, ...], files: Mapping[str, str], expected: set[str]) -> None:
    assert configured_files(command, lambda path: files[path].encode() if path in files else None, files) == expected


def test_files_that_variables_name_are_found() -> None:
    files = ["a/one.py", "two.py", "lib/boot.js", "three.py"]
    env = {"PYTEST_PLUGINS": "a.one", "PYTEST_ADDOPTS": "-q -p two", "NODE_OPTIONS": "--require ./lib/boot.js"}
    assert configured_files(("run",), lambda _: b"", files, env) == {"a/one.py", "two.py", "lib/boot.js"}


NAMES = {
    "tests": "support", "unit_tests": "support", "integrationTests": "support", "test-utils": "support",
    "__mocks__": "support", "testing": "support", "e2e": "support", "api-test": "support", "TestData": "support",
    "tests2": "support",
    "src": "", "latest": "", "contest": "", "test_runner": "", "mock_server": "", "spec_parser": "",
    "snapshots": "", "__snapshots__": "support", "attestation": "",
    "testutil": "support", "testutils": "support", "testhelpers": "support", "testcases": "support",
    "testsuite": "support", "testsupport": "support", "testvectors": "support", "test_vectors": "support",
    "test_inputs": "support", "testInputs": "support", "golden": "support", "goldens": "support", "expected": "support",
    "expected_output": "support", "golden-files": "support", "testdata2": "support",
    "testimonials": "", "testament": "", "golden_ratio": "", "expected_utility": "", "fastest": "", "protest": "",
    "specification": "", "mockup": "", "testbench": "", "hitTesting": "support", "testable": "", "vectors": "",
}  # fmt: skip


@each_row(("folder", "kind"), NAMES.items())
def test_folders_of_tests_are_known_by_their_words(folder: str, kind: str) -> None:
    assert kind_of(f"a/{folder}/x.bin") == kind


FILES = {
    "setupTests.ts": "test", "Tests.py": "test", "test_data.json": "test", "spec_helper.rb": "test",
    "CartTests.kt": "test", "expected_output.txt": "support",
    "testdata.py": "support", "testutils.js": "support", "testHelpers.ts": "support",
    "testing_utils.py": "support", "expected.json": "support", "golden.txt": "support",
    "cart.golden": "support", "cart.snap": "support", ".taprc": "decides", "ava.config.js": "decides",
    "contest.py": "", "test_plan.md": "", "static_tests.py": "", "golden_record.csv": "",
    "latest.py": "", "expected_value.py": "", "expected.py": "", "golden_ratio.json": "",
    "testing.py": "", "tester.py": "", "testimonials.tsx": "", "attest.py": "", "hitTest.js": "",
    "testbench.v": "", "spec_utils.py": "", "mock_server.py": "", "vectors.py": "", "fixture.py": "", "snapshot.py": "",
}  # fmt: skip


@each_row(("name", "kind"), FILES.items())
def test_files_that_support_tests_are_known_by_their_words(name: str, kind: str) -> None:
    assert kind_of(f"src/{name}") == kind
