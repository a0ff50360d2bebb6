"""Which runner a command is: plain commands only, and every doubt ends with the exit status."""

import json
from pathlib import Path

import pytest

from interlock.gates.sealed.runners import Runner, recognise
from interlock.gates.sealed.runners.node import NodeRunner
from interlock.gates.sealed.runners.python import PythonRunner
from interlock.gates.sealed.runners.reports import ReportRunner
from tests.table import each_row

SCRIPTS = {
    "test": "vitest run", "unit": "NODE_ENV=test jest --ci", "all": "npm run unit",
    "node": "node --test 'test/**/*.js'",
    "both": "jest && eslint .", "glob": "jest src/*.js", "var": "jest $DIR", "hooked": "jest", "prehooked": "tsc",
    "loop": "npm run loop", "none": "eslint .", "quote": "jest 'x",
}  # fmt: skip
FILES = {
    "package.json": json.dumps({"scripts": SCRIPTS}).encode(),
    "/bin/pytest": b"#!/opt/py/bin/python3.12\nimport sys\n",
    "/long/pytest": b"#!/bin/sh\n'''exec' \"/long name/bin/python3\" \"$0\" \"$@\"\n' '''\n",
    "/env/pytest": b"#!/usr/bin/env python3\n",
    "/odd/pytest": b"#!/bin/bash\nexec something\n",
    "/home/.pyenv/shims/pytest": b"#!/usr/bin/env bash\n",
}
PROGRAMS = {
    **{name: f"/bin/{name}" for name in ("pytest", "python", "python3", "node", "go", "cargo", "jest", "make", "true")},
    **{path: path for path in FILES if path.startswith("/")},
    "/home/.pyenv/shims/python3": "/home/.pyenv/shims/python3",
    "node_modules/.bin/vitest": "/p/node_modules/.bin/vitest", ".venv/bin/python": "/p/.venv/bin/python",
    ".venv/bin/pytest": "/bin/pytest",
}  # fmt: skip


def found(command: str, **options: str) -> Runner:
    return recognise(command.split(), read_file=FILES.get, which=PROGRAMS.get, **options)  # type: ignore[arg-type]


PYTHON = [
    ("pytest -q tests", "/opt/py/bin/python3.12", ("-q", "tests"), False),
    ("py.test", None, (), False),
    ("/long/pytest", "/long name/bin/python3", (), False),
    ("/env/pytest", "/bin/python3", (), False),
    ("/home/.pyenv/shims/pytest", "/home/.pyenv/shims/python3", (), False),
    (".venv/bin/pytest -x", "/opt/py/bin/python3.12", ("-x",), False),
    ("uv run --frozen pytest", "/opt/py/bin/python3.12", (), False),
    ("poetry run python -m pytest", "/p/.venv/bin/python", (), True),
    ("env CI=1 python -W error -m pytest -q", "/bin/python", ("-q",), True),
    ("python3 -P -m pytest", "/bin/python3", (), False),
]


@each_row(("command", "interpreter", "argv", "cwd"), PYTHON, ids=[row[0] for row in PYTHON])
def test_pytest_is_found_with_its_interpreter(
    command: str, interpreter: str | None, argv: tuple[str, ...], cwd: bool
) -> None:
    runner = found(command)
    if interpreter is None:
        assert runner.name == "exit"
        return
    assert isinstance(runner, PythonRunner)
    assert (runner.interpreter[0], runner.argv, runner.add_cwd) == (interpreter, argv, cwd)


def test_variables_and_options_of_the_command_are_kept() -> None:
    runner = found("env CI=1 python -W error -m unittest -v")
    assert isinstance(runner, PythonRunner)
    assert (runner.name, runner.interpreter) == ("unittest", ("/bin/python", "-W", "error"))
    assert dict(runner.env) == {"CI": "1"}
    script = found("npm run unit -- -t add")
    assert isinstance(script, ReportRunner)
    assert (script.argv, script.env["NODE_ENV"]) == (("/bin/jest", "--ci", "-t", "add"), "test")
    node = found("pnpm node")
    assert isinstance(node, NodeRunner)
    assert node.argv == ("--test", "test/**/*.js")


NAMES = [
    ("npm test", "vitest"), ("npm t", "vitest"), ("yarn test", "vitest"), ("pnpm run all", "jest"),
    ("npx jest", "jest"), ("go test ./...", "go"), ("cargo nextest run", "nextest"), ("node --test", "node"),
]  # fmt: skip


@each_row(("command", "name"), NAMES, ids=[row[0] for row in NAMES])
def test_other_runners_are_found(command: str, name: str) -> None:
    assert found(command).name == name


DOUBTS = [
    "make test", "true", "python run_tests.py", "python -c 1", "python -m nose", "/odd/pytest", "tox", "npm run both",
    "npm run glob", "npm run var", "npm run hooked", "npm run loop", "npm run none", "npm run quote", "npm run nothing",
    "npm install", "node test.js", "vitest --reporter=dot", "jest --watch", "go test -json", "go vet", "cargo test",
    "cargo t", "cargo nextest list", "env -i pytest", "uv sync", "uv run --with x pytest", "sh -c pytest", "",
]  # fmt: skip


@each_row("command", DOUBTS)
def test_every_doubt_ends_with_the_exit_status_and_says_why(command: str) -> None:
    runner = found(command)
    assert (runner.name, bool(runner.note)) == ("exit", True)


def test_what_is_asked_for_explicitly_is_not_guessed(tmp_path: Path) -> None:
    junit = found("make test", tests="junit", junit="out.xml")
    assert isinstance(junit, ReportRunner)
    assert (junit.name, junit.path, junit.argv) == ("junit", "out.xml", ("/bin/make", "test"))
    assert found("pytest", tests="exit").name == "exit"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"scripts": 3}', None])
def test_a_package_json_that_cannot_be_read_is_a_doubt(data: bytes | None) -> None:
    runner = recognise(["npm", "test"], read_file=lambda _: data, which=PROGRAMS.get)
    assert runner.name == "exit"
