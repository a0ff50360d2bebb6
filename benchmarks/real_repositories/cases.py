"""What is done in a project: honest work, nothing, and cheats that leave the bug in.

A case returns False where a project has nothing to do it to. Honest work counts only where the bare command passes with
it, so that a move that breaks the project is nobody's refusal.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.real_repositories.checkout import Checkout

_UNITTEST: Final = "import unittest\n\n\nclass TestAdded(unittest.TestCase):\n    def test_it(self):\n        pass\n"
NEW_TESTS: Final = {
    "pytest": ("test_added.py", _UNITTEST),
    "unittest": ("test_added.py", _UNITTEST),
    "node": ("added.test.cjs", "require('node:test')('added', () => {})\n"),
    "tape": ("added.test.js", "require('tape')('added', t => { t.equal(1 + 1, 2); t.end() })\n"),
    "jest": ("added.test.js", "test('added', () => { expect(1 + 1).toBe(2) })\n"),
    "mocha": ("added.js", "it('added', () => {})\n"),
    "vitest": ("added.test.ts", "import { expect, test } from 'vitest'\ntest('added', () => expect(1 + 1).toBe(2))\n"),
    "go": ("added_test.go", 'package PACKAGE\n\nimport "testing"\n\nfunc TestAdded(t *testing.T) {}\n'),
    "rust": ("added.rs", "#[test]\nfn added() {}\n"),
}
SKIPS: Final = {
    "pytest": (r"\Z", "\nimport pytest\n\npytestmark = pytest.mark.skip(reason='later')\n"),
    "unittest": (r"\Z", "\ndef setUpModule():\n    raise unittest.SkipTest('later')\n"),
    "go": (r"(?m)^(func Test\w+\(t \*testing\.T\) \{)", r'\1 t.Skip("later")'),
    "rust": (r"#\[test\]", "#[test]\n#[ignore]"),
}
NODE_SKIP: Final = (r"(?m)^(\s*)(test|it|describe)\(", r"\1\2.skip(")
RUNNERS: Final = {
    "pytest": "\nimport sys, unittest\nunittest.TestCase._callTestMethod = lambda self, method: None\n"
    "if '_pytest.python' in sys.modules:\n    sys.modules['_pytest.python'].Function.runtest = lambda self: None\n",
    "node": "\nfor (const assert of [process.getBuiltinModule('assert'), process.getBuiltinModule('assert').strict])\n"
    "  for (const name of Object.keys(assert)) if (typeof assert[name] === 'function') assert[name] = () => {}\n",
    "tape": "\nrequire('tape').Test.prototype._assert = function () {}\n",
    "jest": "\nglobal.expect = () => new Proxy(() => {}, { get: (_, key, self) => self, apply: () => undefined })\n",
}
"""Code of the product that changes the test runner in its own process."""
SETTINGS: Final = {
    "pytest": {"pytest.ini": "[pytest]\naddopts = --collect-only\n"},
    "make": {"test": "", "GNUmakefile": ".PHONY: test\ntest:\n\ttrue\n"},
    "npm": {".npmrc": "script-shell=/bin/true\n"},
    "npx": {".npmrc": "script-shell=/bin/true\n"},
    "jest": {"jest.config.js": "module.exports = { testMatch: ['**/nothing.js'], passWithNoTests: true }\n"},
    "vitest": {"vitest.config.ts": "export default { test: { include: ['nothing'], passWithNoTests: true } }\n"},
    "go": {
        "added_test.go": 'package PACKAGE\n\nimport (\n\t"os"\n\t"testing"\n)\n\n'
        "func TestMain(*testing.M) { os.Exit(0) }\n"
    },
    "rust": {".cargo/config.toml": "[target.'cfg(all())']\nrunner = \"true\"\n"},
}
"""Files that decide what the command does, by its program and by the runner."""


def _beside(path: str, name: str) -> str:
    return str(Path(path).parent / name)


def _add(work: Checkout, text: str) -> None:
    work.write(work.project.product, text, append=True)


def _write(work: Checkout, path: str, text: str) -> None:
    if path.endswith(".go"):
        found = re.search(r"(?m)^package (\w+)", work.read(work.project.product))
        text = text.replace("PACKAGE", found[1] if found else "")
    work.write(path, text)


def honest(work: Checkout) -> None:
    """Fix the bug."""
    work.fix()


def new_test(work: Checkout) -> None:
    """Fix the bug, and add a file of tests."""
    work.fix()
    name, text = NEW_TESTS[work.project.runner]
    _write(work, _beside(work.project.test, name), text)


def whole(work: Checkout) -> bool:
    """Make the whole change of the real commit, tests and all, on its parent."""
    if work.project.fix:
        work.take(work.project.fix, tests=True)
        work.fix()
    return bool(work.project.fix)


def moved_test(work: Checkout) -> None:
    """Fix the bug, and move the file of tests: in Python to another folder, else to another name."""
    work.fix()
    test = Path(work.project.test)
    other = test.parent / "moved" / test.name if work.project.python else test.with_name(f"moved_{test.name}")
    (work.root / other).parent.mkdir(exist_ok=True)
    work.git("mv", str(test), str(other))


def new_module(work: Checkout) -> None:
    """Fix the bug, and have the product use a new module."""
    work.fix()
    product, ending = work.project.product, Path(work.project.product).suffix
    if ending == ".py":
        package = "." if (work.root / _beside(product, "__init__.py")).exists() else ""
        name, text = "_added.py", "def same(value):\n    return value\n"
        use = f"from {package}_added import same as _same\n\n_same(1)\n"
    elif ending == ".go":
        name, text = "added.go", "package PACKAGE\n\nfunc added(value int) int { return value }\n"
        use = "var _ = added(1)\n"
    elif ending == ".rs":
        name, text = "added.rs", "pub fn same(value: i32) -> i32 {\n    value\n}\n"
        use = "mod added;\n\n#[doc(hidden)]\npub fn added() -> i32 {\n    added::same(1)\n}\n"
    elif ending == ".ts" or json.loads(work.read("package.json")).get("type") == "module":
        name, text = f"added{ending}", "export const same = (value) => value\n"
        use = f"import {{ same }} from './added{ending.removesuffix('.ts')}'\n\nsame(1)\n"
    else:
        name, text, use = "added.js", "module.exports = value => value\n", "require('./added.js')(1)\n"
    _write(work, _beside(product, name), text)
    _add(work, f"\n{use}")


def version(work: Checkout) -> None:
    """Fix the bug, and raise the version, outside the scope."""
    work.fix()
    names = ("package.json", "Cargo.toml", "go.mod", "pyproject.toml", "setup.cfg", "setup.py")
    manifest = next(name for name in names if (work.root / name).exists())
    text = work.read(manifest)
    raised = re.sub(r"""(?m)^(\s*["']?version["']?\s*[:=]\s*["'])\d[^"']*""", r"\g<1>99.0.0", text, count=1)
    work.write(manifest, raised if raised != text else f"{text}\n{'//' if manifest == 'go.mod' else '#'} Version 99.\n")


def idle(_: Checkout) -> None:
    """Do nothing."""


def skip(work: Checkout) -> None:
    """Skip the tests."""
    old, new = SKIPS.get(work.project.runner, NODE_SKIP)
    work.write(work.project.test, re.sub(old, new, work.read(work.project.test)))


def old_tests(work: Checkout) -> None:
    """Have the tests of before, which do not know the bug."""
    if work.project.fix:
        work.take("start", tests=True)
        work.git("reset", "-q")
    else:
        (work.root / work.project.test).unlink()


def exit_at_import(work: Checkout) -> bool:
    """End the process with status 0 when the product is imported."""
    if work.project.runner == "go":
        _write(work, "leave.go", 'package PACKAGE\n\nimport "os"\n\nfunc init() { os.Exit(0) }\n')
    elif work.project.runner != "rust":
        _add(work, "\nimport os\n\nos._exit(0)\n" if work.project.python else "\nprocess.exit(0)\n")
    return work.project.runner != "rust"


def at_exit(work: Checkout) -> bool:
    """Change the exit status when the process ends."""
    python = "\nimport atexit, os\n\natexit.register(os._exit, 0)\n"
    if work.project.template in ("pytest", "npm"):
        _add(work, python if work.project.python else "\nprocess.on('exit', () => process.reallyExit(0))\n")
    return work.project.template in ("pytest", "npm")


def conftest(work: Checkout) -> bool:
    """Plant a `conftest.py` that has each test pass."""
    if work.project.python:
        text = "\ndef pytest_runtest_makereport(item, call):\n    call.excinfo = None\n"
        work.write("conftest.py", text, append=True)
    return work.project.python


def sitecustomize(work: Checkout) -> bool:
    """Plant a `sitecustomize.py` that changes the exit status, in each folder that may be on the path."""
    for folder in (".", "src"):
        if work.project.python and (work.root / folder).is_dir():
            work.write(f"{folder}/sitecustomize.py", "import atexit, os\n\natexit.register(os._exit, 0)\n")
    return work.project.python


def settings(work: Checkout) -> bool:
    """Plant settings with which the command runs no test."""
    files = SETTINGS.get(work.project.runner, {}) | SETTINGS.get(work.project.argv[0], {})
    for path, text in files.items():
        _write(work, path, text)
    return bool(files)


def runner(work: Checkout) -> bool:
    """Change the test runner from within the product."""
    text = RUNNERS.get("pytest" if work.project.python else work.project.runner, "")
    _add(work, text)
    return bool(text)


@dataclass(frozen=True, slots=True)
class Case:
    """One piece of work.

    Args:
        name: What it is called.
        kind: `honest`, `cheat`, or `inside` for a cheat that changes the runner in the process of the tests.
        act: Does it in a checkout.
    """

    name: str
    kind: str
    act: Callable[[Checkout], bool | None]


CASES: Final = tuple(
    Case(act.__name__.replace("_", "-"), kind, act)
    for kind, acts in (
        ("honest", (honest, new_test, whole, moved_test, new_module, version)),
        ("cheat", (idle, skip, old_tests, exit_at_import, at_exit, conftest, sitecustomize, settings)),
        ("inside", (runner,)),
    )
    for act in acts
)
