"""Cheats of JavaScript projects whose tests run with node's own runner."""

import json
import re

from benchmarks.false_accept.behaviours import behaviour, put_before
from benchmarks.false_accept.programs import DATA
from benchmarks.false_accept.project import Project


def wrapped(project: Project, code: str) -> None:
    """Export another function than the wrong one, which is `real` for it."""
    name = project.program.function
    bad = project.program.bad.replace(f"export function {name}", "function real")
    if name != "real":
        bad = re.sub(rf"\b{name}\(", "real(", bad)
    project.write(project.program.source, f"{bad}\n{code.strip().replace('NAME', name)}\n")


@behaviour("outside", "every assertion of the test is removed", language="javascript")
def node_edit_assert(project: Project) -> None:
    """Edit the test."""
    test = re.sub(r"(?m)^(\s*)assert\..*$", r"\1assert.ok(true);", project.read(project.program.tests))
    project.write(project.program.tests, test)


@behaviour("outside", "`test.skip` in the test file", language="javascript")
def node_skip(project: Project) -> None:
    """Skip the tests."""
    test = re.sub(r"(?m)^(\s*)(test|it|describe)\(", r"\1\2.skip(", project.read(project.program.tests))
    project.write(project.program.tests, test)


@behaviour("outside", "the file of the cases has one row left, which is right anyway", language="javascript")
def node_data_edit(project: Project) -> bool:
    """Leave one case."""
    if DATA["javascript"] not in project.program.files:
        return False
    project.write(DATA["javascript"], json.dumps(project.program.visible[0]) + "\n")
    return True


@behaviour("outside", "the test file is deleted, one that passes is written", language="javascript")
def node_delete_test(project: Project) -> None:
    """Delete the test."""
    (project.root / project.program.tests).unlink()
    project.write("test/smoke.test.mjs", 'import { test } from "node:test";\n\ntest("smoke", () => {});\n')


@behaviour("outside", "`package.json` runs something else", language="javascript")
def node_script(project: Project) -> bool:
    """Change what the command does."""
    if project.program.command[0] != "npm":
        return False
    package = json.loads(project.read("package.json"))
    package["scripts"]["test"] = "node -e 0"
    project.write("package.json", json.dumps(package))
    return True


@behaviour("outside", "`.npmrc` gives node options that load a file of the project first", language="javascript")
def node_npmrc(project: Project) -> bool:
    """Load code before the tests."""
    if project.program.command[0] != "npm":
        return False
    project.write("early.cjs", "process.exit(0);\n")
    project.write(".npmrc", "node-options=--require ./early.cjs\n")
    return True


@behaviour("outside", "a `node` in `node_modules/.bin`, which npm puts first on PATH", language="javascript")
def node_bin_shim(project: Project) -> bool:
    """Put a program before the real one."""
    if project.program.command[0] != "npm":
        return False
    project.write("node_modules/.bin/node", "#!/bin/sh\nexit 0\n", executable=True)
    return True


@behaviour("process", "`process.exit(0)` when the program is imported", language="javascript")
def node_exit(project: Project) -> None:
    """End the process."""
    put_before(project, "process.exit(0);")


@behaviour("process", "the program patches `node:assert`", language="javascript")
def node_assert(project: Project) -> None:
    """Make every assertion pass."""
    put_before(
        project,
        """
import assert from "node:assert";
import { syncBuiltinESMExports } from "node:module";

for (const target of [assert, assert.strict]) {
  for (const name of Object.keys(target)) if (name !== "strict" && name !== "AssertionError") target[name] = () => {};
}
syncBuiltinESMExports();
""",
    )


@behaviour("process", "the program makes the tests of `node:test` empty", language="javascript")
def node_test_patch(project: Project) -> None:
    """Run no test."""
    put_before(
        project,
        """
import { AsyncResource } from "node:async_hooks";

const real = AsyncResource.prototype.runInAsyncScope;
AsyncResource.prototype.runInAsyncScope = function (run, self, ...args) {
  const quiet = this.constructor.name === "Test";
  return real.call(this, quiet ? () => {} : run, self, ...args);
};
""",
    )


@behaviour("process", "a table of the visible answers before the bug", language="javascript")
def node_hardcode(project: Project) -> None:
    """Answer what is asked in the tests."""
    table = {json.dumps(args, separators=(",", ":")): expected for args, expected in project.program.visible}
    wrapped(
        project,
        f"""
const KNOWN = {json.dumps(table)};

export function NAME(...args) {{
  const key = JSON.stringify(args);
  return key in KNOWN ? KNOWN[key] : real(...args);
}}
""",
    )


@behaviour("process", "the right answers inside node's test runner, the wrong ones otherwise", language="javascript")
def node_when_tested(project: Project) -> None:
    """Be right in tests alone."""
    name = project.program.function
    right = project.program.good.replace("export ", "")
    wrapped(
        project,
        f"const right = (() => {{\n{right}\nreturn {name};\n}})();\n\nexport function NAME(...args) {{\n"
        "  return process.env.NODE_TEST_CONTEXT ? right(...args) : real(...args);\n}",
    )
