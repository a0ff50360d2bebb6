"""What the gate is told of `node --test`, vitest and jest, by real ones, and that they see nothing of it."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.gates.sealed.node_observing import Observed, environment, installed, observe, run

NODE = shutil.which("node") or ""
pytestmark = pytest.mark.skipif(not NODE, reason="node is not installed")
runner = pytest.mark.slow

CALC = "const { zero } = require('./zero.json')\nexports.add = (a, b) => a + b + zero\nexports.bad = () => { null.x }\n"
TESTS = """
const test = require('node:test')
const assert = require('node:assert')
const { add, bad } = require('../src/calc')
test('adds', () => assert.equal(add(1, 2), 3))
test('adds', () => assert.equal(add(2, 2), 4))
test('fails', () => assert.equal(add(1, 2), 4))
test('throws', () => bad())
test('is skipped', { skip: 'no network' }, () => {})
test('is to do', { todo: true }, () => { throw new Error('later') })
test.describe('outer', () => { test.describe('inner', () => { test.it('is deep', () => {}) }) })
test('has parts', async t => { await t.test('one', () => {}) })
"""
ESM = """
import test from 'node:test'
import { sub } from '../src/sub.mjs'
await test('waits', async () => { sub(1, 1) })
"""
HOOK = """
import test from 'node:test'
test.describe('outer', () => { test.before(() => { null.x }); test.it('waits for it', () => {}) })
"""
PACKAGE = '{"scripts": {"test": "node --test"}}\n'
FILES = {
    "package.json": PACKAGE,
    "src/calc.js": CALC,
    "src/zero.json": '{"zero": 0}\n',
    "src/sub.mjs": "import './deep.mjs'\nexport const sub = (a, b) => a - b\n",
    "src/deep.mjs": "export {}\n",
    "src/unused.js": "",
    "node_modules/dep/index.js": "",
    "test/a.test.js": "require('dep')\n" + TESTS,
    "test/b.test.mjs": ESM,
}
TRICKS = {
    "an exit": "process.exit(0)",
    "an exit later": "setTimeout(() => process.exit(0), 20)",
    "an exit that no file calls": "setTimeout(process.exit, 20, 0)",
    "an exit under another name": "eval('process.exit(0)//# sourceURL=' + process.argv[1])",
    "an exit that nobody is told of": "process.reallyExit(0)",
    "another exit status": "process.on('exit', () => { process.exitCode = 0 })",
    "an exit at the exit": "process.on('exit', () => process.exit(0))",
    "an error that is swallowed": "process.on('uncaughtException', () => {})",
}
UNEQUAL = "setTimeout(() => require('node:assert').equal(1, 2), 60)\n"
DUMP = """
const { execFileSync } = require('node:child_process')
const { writeFileSync } = require('node:fs')
const see = '({ argv: process.argv, execArgv: process.execArgv, env: { ...process.env, OUT: "" } })'
require('node:test')('sees', () => {
  const child = JSON.parse(execFileSync(process.execPath, ['-p', `JSON.stringify(${see})`], { encoding: 'utf8' }))
  writeFileSync(process.env.OUT, JSON.stringify({ own: eval(see), child }))
})
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an empty folder for the observer and its socket."""
    made = tmp_path / "gate"
    made.mkdir()
    return made


def write(root: Path, files: dict[str, str], modules: Path | None = None) -> Path:
    """Make a project; `modules` are the packages that are installed in it."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if modules is not None:
        (root / "node_modules").symlink_to(modules)
    return root


def test_node_is_observed_behind_npm(folder: Path, tmp_path: Path) -> None:
    root = write(tmp_path / "p", FILES)
    seen = observe(folder, root, ("npm", "test"))
    assert seen.cases == {
        "test/a.test.js > adds": "passed",
        "test/a.test.js > adds (2)": "passed",
        "test/a.test.js > fails": "failed",
        "test/a.test.js > throws": "failed",
        "test/a.test.js > is skipped": "skipped",
        "test/a.test.js > is to do": "xfailed",
        "test/a.test.js > outer > inner > is deep": "passed",
        "test/a.test.js > has parts > one": "passed",
        "test/a.test.js > has parts": "passed",
        "test/b.test.mjs > waits": "passed",
    }
    messages = {event["id"].rpartition(" ")[2]: event["message"] for event in seen.of("case")}
    assert messages["fails"] == "test/a.test.js:8 AssertionError [ERR_ASSERTION]: 3 == 4"
    assert messages["throws"].startswith("src/calc.js:3 TypeError: Cannot read properties of null")
    assert {event["ran"] for event in seen.of("case") if event["outcome"] == "passed"} == {"ended"}
    assert {event["file"] for event in seen.of("case")} == {"test/a.test.js", "test/b.test.mjs"}
    assert ([hello["runner"] for hello in seen.hellos], seen.forged, seen.status) == (["node"], 0, 1)
    assert seen.sessions[0][0]["e"] == "begin"
    assert seen.end["status"] == 1
    assert dict(seen.end["loaded"]) == {
        name: os.fspath(root / name)
        for name in FILES
        if name not in ("package.json", "src/unused.js", "node_modules/dep/index.js")
    }
    assert seen.end["frozen"] == [
        os.fspath(root / name) for name in ("package.json", "test/a.test.js", "test/b.test.mjs")
    ]
    assert (seen.end["roots"], seen.end["changed"]) == ([], [])


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(
    "options",
    [
        "--test-reporter=tap",
        "",
        "--test-reporter spec --test-reporter-destination stderr",
        (
            "--test-reporter=tap --test-reporter-destination=stdout "
            "--test-reporter=./mine.mjs --test-reporter-destination=out"
        ),
    ],
)
def test_what_the_user_sees_is_the_same(folder: Path, tmp_path: Path, options: str) -> None:
    mine = "export default async function * (s) { for await (const e of s) yield `${e.type}\\n` }\n"
    root = write(tmp_path / "p", {**FILES, "mine.mjs": mine})
    argv = (NODE, "--test", *options.split(), "test/a.test.js", "test/b.test.mjs")
    plain, out = run(root, argv, environment(None)), _text(root / "out")
    (scratch := tmp_path / "tmp").mkdir()
    seen = observe(folder, root, argv, env={"TMPDIR": os.fspath(scratch)})
    assert (seen.status, len(seen.cases), seen.end["status"]) == (plain.returncode, 10, 1)
    assert _timeless(seen.stdout) == _timeless(plain.stdout)
    assert _timeless(seen.stderr) == _timeless(plain.stderr)
    assert _text(root / "out") == out
    assert not list(scratch.iterdir())


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _timeless(text: str) -> str:
    return re.sub(r"(duration_ms:? |\()[\d.e-]+", r"\1", text)


def test_a_plain_script_is_a_test_by_itself(folder: Path, tmp_path: Path) -> None:
    scripts = {
        "passes": "require('node:assert').equal(require('../src/calc').add(1, 2), 3)\n",
        "fails": "require('node:assert').equal(require('../src/calc').add(1, 2), 4)\n",
        "breaks": "require('../src/calc').missing()\n",
        "exits": "setTimeout(() => process.exit(0), 20)\n",
        "reports": "console.log('not ok 1 adds'); process.on('exit', () => { process.exitCode = 1 })\n",
        "helper": "exports.test = require('node:test')\n",
    }
    files = {**FILES, **{f"test/{name}.test.js": text for name, text in scripts.items()}}
    del files["test/a.test.js"], files["test/b.test.mjs"]
    seen = observe(folder, write(tmp_path / "p", files), (NODE, "--test"))
    assert seen.cases == {
        "test/passes.test.js": "passed",
        "test/fails.test.js": "failed",
        "test/exits.test.js": "passed",
        "test/reports.test.js": "failed",
    }
    # It may have tests that did not come to be defined.
    assert [event["file"] for event in seen.of("broken")] == ["test/breaks.test.js"]
    messages = {event["id"]: event["message"] for event in seen.of("case")}
    assert messages["test/fails.test.js"] == "test/fails.test.js:1 AssertionError [ERR_ASSERTION]: 3 == 4"
    assert messages["test/reports.test.js"] == "test/reports.test.js not ok 1 adds"


def test_a_file_that_does_not_load_is_broken(folder: Path, tmp_path: Path) -> None:
    files = {
        **FILES,
        "src/wrong.js": "exports.x = (\n",
        "test/a.test.js": "const test = require('node:test')\nrequire('../src/wrong')\ntest('x', () => {})\n",
        "test/b.test.mjs": HOOK,
    }
    seen = observe(folder, write(tmp_path / "p", files), (NODE, "--test", "test/a.test.js", "test/b.test.mjs"))
    assert seen.cases == {"test/b.test.mjs > outer > waits for it": "failed"}
    first, second = seen.of("broken")
    assert (first["file"], first["message"]) == (
        "test/a.test.js",
        "src/wrong.js:2 SyntaxError: Unexpected end of input",
    )
    assert second["message"].startswith("test/b.test.mjs:3 TypeError: Cannot read properties of null")


@pytest.mark.sample("an exit", "an exit that nobody is told of", "another exit status", "an error that is swallowed")
@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_of_the_product_is_no_pass(folder: Path, tmp_path: Path, trick: str) -> None:
    load = "require('../src/trick')\n"
    wait = "await new Promise(done => setTimeout(done, 60))"
    files = {
        "src/trick.js": TRICKS[trick],
        "test/script.test.js": load + UNEQUAL,
        "test/tests.test.js": "const test = require('node:test')\n" + load
        + f"test('one', async () => {{ {wait}; require('node:assert').equal(1, 2) }})\n",
    }  # fmt: skip
    seen = observe(folder, write(tmp_path / "p", files), (NODE, "--test", "test/script.test.js", "test/tests.test.js"))
    assert set(seen.cases.values()) == {"failed"}
    assert "test/script.test.js" in seen.cases
    assert {*seen.cases, *(event["file"] for event in seen.of("broken"))} & {
        "test/tests.test.js > one",
        "test/tests.test.js",
    }


def test_assertions_that_the_product_replaced_are_named(folder: Path, tmp_path: Path) -> None:
    trick = "const a = require('node:assert'); a.equal = a.strict.equal = () => {}\n"
    files = {"src/calc.js": trick, "test/a.test.js": "require('../src/calc'); require('node:test')('x', () => {})\n"}
    seen = observe(folder, write(tmp_path / "p", files), (NODE, "--test", "test/a.test.js"))
    assert seen.end["changed"] == ["assert.equal", "assert.strict.equal"]


@pytest.mark.parametrize("given", ["", "--no-warnings --max-old-space-size=512"])
def test_a_test_sees_nothing_of_the_observer(folder: Path, tmp_path: Path, given: str) -> None:
    root = write(tmp_path / "p", {"test/a.test.js": DUMP})
    argv = (NODE, "--test", "test/a.test.js")
    env = {**environment(None), **({"NODE_OPTIONS": given} if given else {})}
    assert run(root, argv, {**env, "OUT": os.fspath(root / "plain")}).returncode == 0
    both = f"{given} {environment(folder)['NODE_OPTIONS']}".strip()
    seen = observe(folder, root, argv, env={"NODE_OPTIONS": both, "OUT": os.fspath(root / "observed")})
    assert (seen.status, len(seen.cases)) == (0, 1)
    assert json.loads((root / "observed").read_text()) == json.loads((root / "plain").read_text())


def test_a_runner_that_a_test_starts_is_not_observed(folder: Path, tmp_path: Path) -> None:
    inner = "const { execFileSync } = require('node:child_process')\nconst env = { ...process.env }\n"
    inner += "delete env.NODE_TEST_CONTEXT\nrequire('node:test')('starts', () => {\n"
    inner += "  execFileSync(process.execPath, ['--test', 'inner/b.test.js'], { env, stdio: 'ignore' })\n})\n"
    files = {"test/a.test.js": inner, "inner/b.test.js": "require('node:test')('inner', () => {})\n"}
    seen = observe(folder, write(tmp_path / "p", files), (NODE, "--test", "test/a.test.js"))
    assert (list(seen.cases), len(seen.hellos)) == (["test/a.test.js > starts"], 1)


def test_one_that_is_ignored_says_nothing(folder: Path, tmp_path: Path) -> None:
    root = write(tmp_path / "p", {"test/a.test.js": "require('node:test')('x', () => {})\n"})
    argv = (NODE, "--test", "--test-reporter=tap", "test/a.test.js")
    seen = observe(folder, root, argv, ignores=True)
    assert (seen.status, seen.sessions, seen.forged) == (0, [], 0)
    alone = run(root, argv, environment(folder))  # nobody listens
    assert (alone.returncode, _timeless(alone.stdout), alone.stderr) == (0, _timeless(seen.stdout), seen.stderr)


def test_other_programs_are_left_alone(folder: Path, tmp_path: Path) -> None:
    root = write(tmp_path / "p", {"main.js": "console.log(process.env.NODE_OPTIONS, process.argv.length)\n"})
    seen = observe(folder, root, (NODE, "main.js", "--test"))
    assert (seen.hellos, seen.stderr) == ([], "")
    assert seen.stdout == f"--require {folder}/probes/node_observer.cjs 3\n"


def test_a_signal_opens_no_debugger(folder: Path, tmp_path: Path) -> None:
    text = "process.on('SIGTERM', () => process.exit(3))\nsetInterval(() => {}, 1000)\nconsole.log('ready')\n"
    root = write(tmp_path / "p", {"main.js": text})
    observe(folder, root, (NODE, "--version"))
    child = subprocess.Popen(
        (NODE, "main.js"), cwd=root, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGUSR1)
    time.sleep(0.3)
    child.send_signal(signal.SIGTERM)
    assert (child.communicate(timeout=20)[1], child.returncode) == ("", 3)


VITEST = """
import { beforeAll, describe, expect, it, test } from 'vitest'
import { add, bad } from '../src/calc.js'
test('adds', () => { expect(add(1, 2)).toBe(3) })
test('adds', () => { expect(add(1, 2)).toBe(3) })
test('fails', () => { expect(add(1, 2)).toBe(4) })
test('throws', () => bad())
test.skip('is skipped', () => {})
test.todo('is to do')
describe('outer', () => { describe('inner', () => { it('is deep', () => {}) }) })
describe('hook', () => { beforeAll(() => { throw new Error('no') }); it('waits for it', () => {}) })
test('sees nothing', () => {
  expect([process.env.NODE_OPTIONS, process.env.INTERLOCK_NODE]).toEqual([undefined, undefined])
})
"""
JEST = (
    VITEST.replace("import { beforeAll, describe, expect, it, test } from 'vitest'\n", "")
    .replace("import { add, bad } from '../src/calc.js'", "const { add, bad } = require('../src/calc.js')")
    .replace("  expect([", "  expect(process.argv.slice(2)).toEqual(JSON.parse(process.env.GIVEN))\n  expect([")
)
OUTCOMES = {
    "adds": "passed",
    "adds (2)": "passed",
    "fails": "failed",
    "throws": "failed",
    "is skipped": "skipped",
    "is to do": "skipped",
    "outer > inner > is deep": "passed",
    "hook > waits for it": "failed",
    "sees nothing": "passed",
}
SETTINGS = "{ setupFiles: ['./test/setup.js'], globalSetup: './test/global.js', reporters: ['./mine.js', 'default'] }"


def _vitest(root: Path, **more: str) -> Path:
    text = "import './deep.js'\nexport const add = (a, b) => a + b\nexport const bad = () => { null.x }\n"
    files = {
        "package.json": '{"type": "module"}\n',
        "src/calc.js": text,
        "src/deep.js": "export {}\n",
        "test/a.test.js": VITEST,
        "test/setup.js": "",
        "test/global.js": "export default () => {}\n",
        "mine.js": "export default class { onInit () { console.log('mine') } }\n",
        "vitest.config.js": f"export default {{ test: {SETTINGS} }}\n",
    }
    return write(root, {**files, **more}, installed("vitest"))


def _jest(root: Path, **more: str) -> Path:
    text = "require('./deep.js')\nexports.add = (a, b) => a + b\nexports.bad = () => { null.x }\n"
    files = {
        "package.json": "{}\n",
        "src/calc.js": text,
        "src/deep.js": "",
        "test/a.test.js": JEST,
        "test/setup.js": "",
        "test/global.js": "module.exports = () => {}\n",
        "mine.js": "module.exports = class { onRunComplete () { console.log('mine') } }\n",
        "jest.config.js": f"module.exports = {SETTINGS.replace('./', '<rootDir>/')}\n",
    }
    return write(root, {**files, **more}, installed("jest"))


def _check(seen: Observed, root: Path, name: str, config: str) -> None:
    """Check what was seen of the tests of `_vitest` or `_jest`."""
    assert seen.cases == {f"test/a.test.js > {each}": outcome for each, outcome in OUTCOMES.items()}
    messages = {event["id"].rpartition(" > ")[2]: event["message"] for event in seen.of("case")}
    assert messages["throws"].startswith("src/calc.js:3 TypeError: Cannot read properties of null")
    assert re.match(r"test/a\.test\.js:\d+ \w*Error: ", messages["fails"])
    assert ([hello["runner"] for hello in seen.hellos], seen.forged, seen.end["status"]) == ([name], 0, 1)
    loaded = dict[str, str](seen.end["loaded"])
    assert {"src/calc.js", "src/deep.js", "test/a.test.js"} <= loaded.keys()
    assert not any("node_modules" in path for path in loaded.values())
    frozen = ["mine.js", "package.json", "test/a.test.js", "test/global.js", "test/setup.js", config]
    assert sorted(seen.end["frozen"]) == sorted(os.fspath(root / each) for each in frozen)
    assert "mine\n" in seen.stdout
    assert "fails" in seen.stdout + seen.stderr


@runner
@pytest.mark.parametrize("pool", ["forks", "threads"])
def test_vitest_is_observed(folder: Path, tmp_path: Path, pool: str) -> None:
    root = _vitest(tmp_path / "p")
    _check(observe(folder, root, ("npx", "vitest", "run", f"--pool={pool}")), root, "vitest", "vitest.config.js")


@runner
@pytest.mark.parametrize(
    "config", ["{}", "{ reporters: ['./mine.js'] }", "{ reporters: ['json'], sequence: { shuffle: true } }"]
)
def test_vitest_keeps_the_reporters_of_the_user(folder: Path, tmp_path: Path, config: str) -> None:
    test = "import { test } from 'vitest'\ntest('x', () => {})\n"
    settings = f"export default {{ test: {config} }}\n"
    root = _vitest(tmp_path / "p", **{"test/a.test.js": test, "vitest.config.js": settings})
    plain = run(root, ("npx", "vitest", "run"), environment(None))
    seen = observe(folder, root, ("npx", "vitest", "run"))
    assert (seen.cases, seen.end["status"]) == ({"test/a.test.js > x": "passed"}, 0)
    times = re.compile(r"Duration.*|[\d.]+m?s|\d\d:\d\d:\d\d|\d{10,}[.\d]*|[\d.]{6,}")
    assert times.sub("", seen.stdout) == times.sub("", plain.stdout)
    assert times.sub("", seen.stderr) == times.sub("", plain.stderr)


@runner
@pytest.mark.parametrize("trick", ["an exit", "an exit later", "an exit that nobody is told of", "another exit status"])
def test_a_trick_of_the_product_does_not_pass_vitest(folder: Path, tmp_path: Path, trick: str) -> None:
    test = "import { expect, test } from 'vitest'\nimport '../src/trick.js'\n"
    test += "test('one', async () => { await new Promise(done => setTimeout(done, 60)); expect(1).toBe(2) })\n"
    more = {"src/trick.js": TRICKS[trick], "test/a.test.js": test}
    seen = observe(folder, _vitest(tmp_path / "p", **more), ("npx", "vitest", "run"))
    assert "passed" not in seen.cases.values()
    assert seen.end.get("status") != 0


@runner
def test_jest_is_observed_and_in_band_its_arguments_are_those_of_the_user(folder: Path, tmp_path: Path) -> None:
    root = _jest(tmp_path / "p")
    seen = observe(folder, root, ("npx", "jest", "-i"), env={"GIVEN": '["-i"]'})
    _check(seen, root, "jest", "jest.config.js")


@runner
def test_the_workers_of_jest_are_as_without_the_observer(folder: Path, tmp_path: Path) -> None:
    test = "test('x', () => { expect([process.argv.length, process.execArgv, process.env.NODE_OPTIONS]).toEqual"
    test += "([2, [], undefined]) })\n"
    root = _jest(tmp_path / "p", **{"test/a.test.js": test, "test/b.test.js": test})
    seen = observe(folder, root, ("npx", "jest", "--maxWorkers=2"))
    assert seen.cases == {"test/a.test.js > x": "passed", "test/b.test.js > x": "passed"}
    assert (len(seen.hellos), seen.end["status"]) == (1, 0)


@runner
@pytest.mark.parametrize("trick", ["an exit", "an exit later", "an exit that nobody is told of", "another exit status"])
def test_a_trick_of_the_product_does_not_pass_jest(folder: Path, tmp_path: Path, trick: str) -> None:
    test = "require('../src/trick.js')\n"
    test += "test('one', async () => { await new Promise(done => setTimeout(done, 60)); expect(1).toBe(2) })\n"
    more = {"src/trick.js": TRICKS[trick], "test/a.test.js": test}
    seen = observe(folder, _jest(tmp_path / "p", **more), ("npx", "jest", "-i"))
    assert [event["e"] for event in seen.sessions[0]][:1] == ["begin"]
    assert "passed" not in seen.cases.values()
    assert seen.end.get("status") != 0
