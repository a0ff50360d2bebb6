"""What the gate is told of `node --test`, vitest and jest, by real ones, and that they see nothing of it."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.gates.sealed.observing import PROBES, command, environment, observe
from tests.gates.sealed.sealing import needs_namespaces, project, write

RUNNERS = Path(os.environ.get("NODE_RUNNERS", PROBES.parents[2] / ".npm-clients"))
"""Where vitest and jest are installed, each in a folder of its own."""
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


def test_node_is_observed_behind_npm(tmp_path: Path) -> None:
    root = write(tmp_path / "p", FILES)
    seen = observe(root, ("npm", "test"))
    assert seen.ids == {
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
    cases, run = seen.cases, seen.run
    assert cases["fails"].message == "test/a.test.js:8:28 AssertionError [ERR_ASSERTION]: 3 == 4"
    assert re.match(r"src/calc\.js:3:\d+ TypeError: Cannot read properties of null", cases["throws"].message)
    assert {case.ran for case in run.cases if case.outcome == "passed"} == {"ended"}
    assert {case.file for case in run.cases} == {"test/a.test.js", "test/b.test.mjs"}
    assert (run.runner, run.sessions, run.complete, run.changed, seen.status) == ("node", 1, True, (), 1)
    others = ("package.json", "src/unused.js", "node_modules/dep/index.js")
    assert dict(run.loaded) == {name: os.fspath(root / name) for name in FILES if name not in others}
    assert run.frozen == tuple(os.fspath(root / name) for name in ("package.json", "test/a.test.js", "test/b.test.mjs"))


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
def test_what_the_user_sees_is_the_same(tmp_path: Path, options: str) -> None:
    mine = "export default async function * (s) { for await (const e of s) yield `${e.type}\\n` }\n"
    root = write(tmp_path / "p", {**FILES, "mine.mjs": mine})
    argv = (NODE, "--test", *options.split(), "test/a.test.js", "test/b.test.mjs")
    plain, out = command(root, argv, environment()), text_of(root / "out")
    (scratch := tmp_path / "tmp").mkdir()
    seen = observe(root, argv, env={"TMPDIR": os.fspath(scratch)})
    assert (seen.status, len(seen.run.cases), seen.run.complete) == (plain.returncode, 10, True)
    assert timeless(seen.stdout) == timeless(plain.stdout)
    assert timeless(seen.stderr) == timeless(plain.stderr)
    assert text_of(root / "out") == out
    assert not list(scratch.iterdir())


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def timeless(text: str) -> str:
    return re.sub(r"(duration_ms:? |\()[\d.e-]+", r"\1", text)


def test_a_plain_script_is_a_test_by_itself_and_a_file_that_does_not_load_is_broken(tmp_path: Path) -> None:
    scripts = {
        "passes": "require('node:assert').equal(require('../src/calc').add(1, 2), 3)\n",
        "fails": "require('node:assert').equal(require('../src/calc').add(1, 2), 4)\n",
        "breaks": "require('../src/calc').missing()\n",
        "exits": "setTimeout(() => process.exit(0), 20)\n",
        "a": "const test = require('node:test')\nrequire('../src/wrong')\ntest('x', () => {})\n",
    }
    files = {**FILES, **{f"test/{name}.test.js": text for name, text in scripts.items()}, "test/b.test.mjs": HOOK}
    seen = observe(write(tmp_path / "p", {**files, "src/wrong.js": "exports.x = (\n"}), (NODE, "--test"))
    assert seen.ids == {
        "test/passes.test.js": "passed",
        "test/fails.test.js": "failed",
        "test/exits.test.js": "passed",
        "test/b.test.mjs > outer > waits for it": "failed",
    }
    assert {name: seen.ran[name] for name in ("test/passes.test.js", "test/exits.test.js")} == {
        "test/passes.test.js": "ended",
        "test/exits.test.js": "begun",
    }
    fails = "test/fails.test.js:1:24 AssertionError [ERR_ASSERTION]: 3 == 4"
    assert seen.cases["test/fails.test.js"].message == fails
    # One that breaks may have tests that did not come to be defined.
    broken = dict(seen.run.broken)
    assert broken.keys() == {"test/breaks.test.js", "test/a.test.js", "test/b.test.mjs"}
    assert broken["test/a.test.js"] == "src/wrong.js:2 SyntaxError: Unexpected end of input"
    assert re.match(r"test/b\.test\.mjs:3:\d+ TypeError: Cannot read properties of null", broken["test/b.test.mjs"])


@pytest.mark.sample("an exit", "an exit that nobody is told of", "another exit status", "an error that is swallowed")
@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_of_the_product_is_no_pass(tmp_path: Path, trick: str) -> None:
    load = "require('../src/trick')\n"
    wait = "await new Promise(done => setTimeout(done, 60))"
    files = {
        "src/trick.js": TRICKS[trick],
        "test/script.test.js": load + UNEQUAL,
        "test/tests.test.js": "const test = require('node:test')\n"
        + load
        + f"test('one', async () => {{ {wait}; require('node:assert').equal(1, 2) }})\n",
    }
    seen = observe(write(tmp_path / "p", files), (NODE, "--test", "test/script.test.js", "test/tests.test.js"))
    assert seen.ids["test/script.test.js"] in ("passed", "failed")
    assert [case.id for case in seen.run.cases if case.outcome == "passed" and case.ran == "ended"] == []
    assert seen.ids.get("test/tests.test.js > one") in (None, "failed")


@pytest.mark.parametrize("options", ["", "--no-warnings --max-old-space-size=512"])
def test_a_test_sees_nothing_of_the_observer(tmp_path: Path, options: str) -> None:
    root = write(tmp_path / "p", {"test/a.test.js": DUMP})
    argv = (NODE, "--test", "test/a.test.js")
    plain = command(root, argv, environment(options, OUT=f"{root}/plain", PYTHONPATH=""))
    seen = observe(root, argv, options=options, env={"OUT": f"{root}/observed", "PYTHONPATH": ""})
    assert (plain.returncode, seen.status, len(seen.run.cases)) == (0, 0, 1)
    assert json.loads((root / "observed").read_text()) == json.loads((root / "plain").read_text())


def test_a_runner_that_a_test_starts_is_not_observed(tmp_path: Path) -> None:
    inner = "const { execFileSync } = require('node:child_process')\nconst env = { ...process.env }\n"
    inner += "delete env.NODE_TEST_CONTEXT\nrequire('node:test')('starts', () => {\n"
    inner += "  execFileSync(process.execPath, ['--test', 'inner/b.test.js'], { env, stdio: 'ignore' })\n})\n"
    files = {"test/a.test.js": inner, "inner/b.test.js": "require('node:test')('inner', () => {})\n"}
    seen = observe(write(tmp_path / "p", files), (NODE, "--test", "test/a.test.js"))
    assert (list(seen.ids), seen.run.sessions) == (["test/a.test.js > starts"], 1)


def test_one_that_is_ignored_says_nothing(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {"test/a.test.js": "require('node:test')('x', () => {})\n"})
    argv = (NODE, "--test", "--test-reporter=tap", "test/a.test.js")
    seen = observe(root, argv, is_ignored=True)
    assert (seen.found, seen.status) == (None, 0)
    alone = command(root, argv, environment(f"--require {PROBES}/node_observer.cjs"))  # nobody listens
    assert (alone.returncode, timeless(alone.stdout), alone.stderr) == (0, timeless(seen.stdout), seen.stderr)


def test_other_programs_are_left_alone(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {"main.js": "console.log(process.env.NODE_OPTIONS, process.argv.length)\n"})
    seen = observe(root, (NODE, "main.js", "--test"))
    assert (seen.found, seen.stderr, seen.stdout[-26:]) == (None, "", "/probes/node_observer.cjs 3\n"[-26:])


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
  expect([process.env.NODE_OPTIONS ?? '', process.env.INTERLOCK_NODE]).toEqual(['', undefined])
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
PROJECTS = {
    "vitest": {
        "package.json": '{"type": "module", "scripts": {"test": "vitest run"}}\n',
        "src/calc.js": "import './deep.js'\nexport const add = (a, b) => a + b\nexport const bad = () => { null.x }\n",
        "src/deep.js": "export {}\n",
        "test/a.test.js": VITEST,
        "test/setup.js": "",
        "test/global.js": "export default () => {}\n",
        "mine.js": "export default class { onInit () { console.log('mine') } }\n",
        "vitest.config.js": f"export default {{ test: {SETTINGS} }}\n",
    },
    "jest": {
        "package.json": '{"scripts": {"test": "jest -i"}}\n',
        "src/calc.js": "require('./deep.js')\nexports.add = (a, b) => a + b\nexports.bad = () => { null.x }\n",
        "src/deep.js": "",
        "test/a.test.js": JEST,
        "test/setup.js": "",
        "test/global.js": "module.exports = () => {}\n",
        "mine.js": "module.exports = class { onRunComplete () { console.log('mine') } }\n",
        "jest.config.js": f"module.exports = {SETTINGS.replace('./', '<rootDir>/')}\n",
    },
}
COMMANDS = {
    "vitest": (NODE, "node_modules/vitest/vitest.mjs", "run"),
    "jest": (NODE, "node_modules/jest/bin/jest.js", "-i"),
}


def installed(root: Path, name: str, **more: str) -> Path:
    """Make a project in which a runner is installed."""
    modules = RUNNERS / name / "node_modules"
    if not (modules / name).is_dir():
        pytest.skip(f"{name} is not installed; `sh scripts/prepare {name}` does that")
    (root / "node_modules").mkdir(parents=True)
    for each in modules.iterdir():
        (root / "node_modules" / each.name).symlink_to(each)
    return write(root, {**PROJECTS[name], **more})


@runner
@pytest.mark.parametrize(
    ("name", "argv"),
    [
        ("vitest", (*COMMANDS["vitest"], "--pool=forks")),
        ("vitest", (*COMMANDS["vitest"], "--pool=threads")),
        ("vitest", ("npm", "test")),
        ("jest", COMMANDS["jest"]),
        ("jest", ("npm", "test")),
    ],
)
def test_a_runner_is_observed_and_its_tests_see_nothing(tmp_path: Path, name: str, argv: tuple[str, ...]) -> None:
    root = installed(tmp_path / "p", name)
    seen = observe(root, argv, env={"GIVEN": '["-i"]'})
    assert seen.ids == {f"test/a.test.js > {each}": outcome for each, outcome in OUTCOMES.items()}, seen.output
    assert re.match(r"src/calc\.js:3:\d+ TypeError: Cannot read properties of null", seen.cases["throws"].message)
    assert re.match(r"test/a\.test\.js:\d+:\d+ \w*Error: ", seen.cases["fails"].message)
    assert (seen.run.runner, seen.run.sessions, seen.run.complete, seen.status) == (name, 1, True, 1)
    loaded = dict(seen.run.loaded)
    assert {"src/calc.js", "src/deep.js", "test/a.test.js"} <= loaded.keys()
    assert not any("node_modules" in path for path in loaded.values())
    frozen = ["mine.js", "package.json", "test/a.test.js", "test/global.js", "test/setup.js", f"{name}.config.js"]
    assert sorted(seen.run.frozen) == sorted(os.fspath(root / each) for each in frozen)
    assert "mine\n" in seen.stdout
    assert "fails" in seen.output


@runner
@pytest.mark.parametrize(
    "config", ["{}", "{ reporters: ['./mine.js'] }", "{ reporters: ['json'], sequence: { shuffle: true } }"]
)
def test_vitest_keeps_the_reporters_of_the_user(tmp_path: Path, config: str) -> None:
    test = "import { test } from 'vitest'\ntest('x', () => {})\n"
    settings = f"export default {{ test: {config} }}\n"
    root = installed(tmp_path / "p", "vitest", **{"test/a.test.js": test, "vitest.config.js": settings})
    seen = observe(root, COMMANDS["vitest"])
    plain = command(root, COMMANDS["vitest"], environment())
    assert (seen.ids, seen.run.passes) == ({"test/a.test.js > x": "passed"}, True)
    times = re.compile(r"Duration.*|[\d.]+m?s|\d\d:\d\d:\d\d|\d{10,}[.\d]*|[\d.]{6,}")
    assert times.sub("", seen.stdout) == times.sub("", plain.stdout)
    assert times.sub("", seen.stderr) == times.sub("", plain.stderr)


@runner
def test_the_workers_of_jest_are_as_without_the_observer(tmp_path: Path) -> None:
    test = "test('x', () => { expect([process.argv.length, process.execArgv, process.env.NODE_OPTIONS]).toEqual"
    test += "([2, [], undefined]) })\n"
    root = installed(tmp_path / "p", "jest", **{"test/a.test.js": test, "test/b.test.js": test})
    # Without a cache of how long they took jest starts workers for them.
    seen = observe(root, (*COMMANDS["jest"][:2], "--maxWorkers=2", "--no-cache"))
    assert seen.ids == {"test/a.test.js > x": "passed", "test/b.test.js > x": "passed"}
    assert (seen.run.sessions, seen.status) == (1, 0)


@runner
@pytest.mark.parametrize("trick", ["an exit", "an exit later", "an exit that nobody is told of", "another exit status"])
@pytest.mark.parametrize("name", PROJECTS)
def test_a_trick_of_the_product_does_not_pass_the_runner(tmp_path: Path, name: str, trick: str) -> None:
    load = "require('../src/trick.js')\n"
    if name == "vitest":
        load = "import { expect, test } from 'vitest'\nimport '../src/trick.js'\n"
    test = "test('one', async () => { await new Promise(done => setTimeout(done, 60)); expect(1).toBe(2) })\n"
    root = installed(tmp_path / "p", name, **{"src/trick.js": TRICKS[trick], "test/a.test.js": load + test})
    seen = observe(root, COMMANDS[name])
    assert not seen.run.passes
    assert "passed" not in seen.ids.values()


@runner
@pytest.mark.parametrize(("name", "words"), [("jest", "jest"), ("vitest", "vitest run")])
def test_a_gate_mounts_the_observer_into_a_runner_that_is_kept(tmp_path: Path, name: str, words: str) -> None:
    needs_namespaces()
    script = f"NODE_OPTIONS=--max-old-space-size=512 {words}"
    test = "test('x', () => { expect(1).toBe(1) })\n"
    files = {
        "package.json": json.dumps({"scripts": {"test": script}}),
        "a.test.js": ("import { test, expect } from 'vitest'\n" if name == "vitest" else "") + test,
        ".gitignore": "node_modules\n.venv\n",
    }
    (root := tmp_path / "p").mkdir()
    if not (modules := RUNNERS / name / "node_modules").is_dir():
        pytest.skip(f"{name} is not installed")
    shutil.copytree(modules, root / "node_modules", symlinks=True)
    seen = project(root, files, "npm", "test", keep=("node_modules",)).check.tests.run
    assert (seen.runner, {case.id: case.outcome for case in seen.cases}) == (name, {"a.test.js > x": "passed"})
