"""Which runner a test command is, from its words and a few files; nothing is run.

Only plain commands are recognised: one program that is known, its arguments, and in front of it what merely chooses an
environment (`env`, `uv run`, `npx`). A script of `package.json` is followed where it is a plain command itself. Every
doubt ends with `exit`: the exit status decides, and the note says what the doubt was.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from interlock.core.errors import InterlockError
from interlock.gates.config_tables import Tests
from interlock.gates.sealed.runners.base import ReadFile, Which
from interlock.gates.sealed.runners.node import NodeRunner
from interlock.gates.sealed.runners.python import PythonRunner
from interlock.gates.sealed.runners.reports import ReportKind, ReportRunner

Runner: TypeAlias = PythonRunner | NodeRunner | ReportRunner
"""A kind of test command, and one start of it; `read` never raises for what the command wrote."""

_PYTHON: Final = re.compile(r"python(\d(\.\d+)?)?$")
_PYTHON_FLAGS: Final = frozenset({"-B", "-E", "-I", "-O", "-OO", "-P", "-b", "-bb", "-d", "-s", "-u", "-v", "-q"})
_PYTHON_PAIRS: Final = frozenset({"-W", "-X"})
_UV_FLAGS: Final = frozenset({"--frozen", "--locked", "--no-sync", "--offline", "-q", "--quiet", "--isolated"})
_SHELL: Final = frozenset("|&;<>()$`\\\n#!{}")
_GLOB: Final = frozenset("*?[~")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_MAX_STEPS: Final = 8


class _NotPlainError(InterlockError):
    """The command is not one that is recognised; the text says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "Write the plain command of the test runner.")


@dataclass(slots=True)
class _Command:
    words: list[str]
    read_file: ReadFile
    which: Which
    env: dict[str, str] = field(default_factory=dict[str, str])
    bins: tuple[str, ...] = ()

    def program(self, name: str) -> str:
        """Return the absolute path of a program, packages of the project first where a script of npm names it."""
        for folder in () if "/" in name else self.bins:
            found = self.which(f"{folder}/{name}")
            if found:
                return found
        found = self.which(name)
        if not found:
            raise _NotPlainError(f"the program `{name}` is not found")
        return found


def recognise(
    argv: Sequence[str], *, read_file: ReadFile, which: Which, tests: Tests = "auto", junit: str = ""
) -> Runner:
    """Return the runner of a command; the last resort is `exit`.

    `tests` as in `[gates.X]`: `auto` looks at the command, `junit` reads the report at `junit`, relative to the root,
    `exit` looks at the exit status alone.
    """
    why = '`tests = "exit"`'
    if tests == "auto":
        try:
            return _follow(_Command(list(argv), read_file, which))
        except _NotPlainError as error:
            why = str(error)
    found = (which(argv[0]) or argv[0], *argv[1:]) if argv else ()
    if tests == "junit":
        return ReportRunner("junit", found, {}, junit)
    return ReportRunner("exit", found, {}, note=f"Tests not parsed: {why}.")


def _follow(command: _Command) -> Runner:
    """Take away what comes before the program, a step at a time."""
    for _ in range(_MAX_STEPS):
        if not command.words:
            break
        runner = _step(command)
        if runner is not None:
            return runner
    raise _NotPlainError("it names no test runner that is known")


def _step(command: _Command) -> Runner | None:
    words = command.words
    name = words[0].rpartition("/")[2]
    match name:
        case "env" | "cross-env":
            command.words = _assigned(command, words[1:])
            if command.words and command.words[0].startswith("-"):
                raise _NotPlainError(f"`env {command.words[0]}` changes more than variables")
        case "uv" | "poetry" | "pdm" | "hatch":
            _take_environment_manager(command)
        case "npm" | "yarn" | "pnpm" | "bun":
            _take_script(command)
        case "npx":
            command.words = [each for each in words[1:] if each not in ("--no-install", "--no", "--yes", "-y", "--")]
            command.bins = ("node_modules/.bin",)
        case "pytest" | "py.test":
            return PythonRunner("pytest", (_interpreter(command),), tuple(words[1:]), False, command.env)
        case "node" | "vitest" | "jest" | "go" | "cargo" | "cargo-nextest":
            return _other(name, command)
        case _ if _PYTHON.match(name):
            return _python(command)
        case _:
            raise _NotPlainError(f"`{name}` is not a test runner that is known")
    return None


def _assigned(command: _Command, words: list[str]) -> list[str]:
    """Keep the variables that words begin with, and return the others."""
    while words and (found := _ASSIGNMENT.fullmatch(words[0])):
        command.env[found[1]] = found[2]
        words = words[1:]
    return words


def _take_environment_manager(command: _Command) -> None:
    """`uv run`, `poetry run` …: the program of the environment in the project."""
    name, words = command.words[0].rpartition("/")[2], command.words[1:]
    if not words or words[0] != "run":
        raise _NotPlainError(f"`{name}` does something other than `run`")
    words = words[1:]
    while words and words[0] in _UV_FLAGS:
        words = words[1:]
    if words and words[0] == "--":
        words = words[1:]
    if not words or words[0].startswith("-"):
        raise _NotPlainError(f"`{name} run` has options that choose another environment")
    if not command.which(".venv/bin/python"):
        raise _NotPlainError(f"`{name} run` uses an environment that is not at .venv")
    command.bins = (".venv/bin",)
    command.words = words


def _take_script(command: _Command) -> None:
    """`npm test`, `npm run X`, `yarn X` …: the words of a script in package.json."""
    name, words = command.words[0].rpartition("/")[2], command.words[1:]
    words = [each for each in words if each not in ("-s", "--silent")]
    if words[:1] == ["run"] or words[:1] == ["run-script"]:
        words = words[1:]
    elif words[:1] == ["t"]:
        words = ["test", *words[1:]]
    elif name in ("npm", "bun") and words[:1] != ["test"]:
        raise _NotPlainError(f"`{name} {' '.join(words[:1])}` is not a script")
    if not words or words[0].startswith("-"):
        raise _NotPlainError(f"`{name}` names no script")
    script, rest = words[0], words[1:]
    rest = rest[1:] if rest[:1] == ["--"] else rest
    scripts = _scripts(command.read_file)
    text = scripts.get(script)
    if not isinstance(text, str):
        raise _NotPlainError(f"package.json has no script `{script}`")
    hooks = [hook for hook in (f"pre{script}", f"post{script}") if hook in scripts]
    if hooks:
        raise _NotPlainError(f"package.json runs `{hooks[0]}` too")
    command.bins = ("node_modules/.bin",)
    command.words = [*_assigned(command, _plain_words(text)), *rest]


def _scripts(read_file: ReadFile) -> Mapping[str, Any]:
    try:
        data: object = json.loads(read_file("package.json") or b"")
    except (ValueError, RecursionError):
        raise _NotPlainError("package.json cannot be read") from None
    scripts = cast("dict[str, Any]", data).get("scripts") if isinstance(data, dict) else None
    return cast("dict[str, Any]", scripts) if isinstance(scripts, dict) else {}


def _plain_words(text: str) -> list[str]:
    """Split a script that needs no shell into its words."""
    quoted = re.sub(r"'[^']*'|\"[^\"$`\\]*\"", "", text)
    if _SHELL & set(quoted) or "$" in text or "`" in text:
        raise _NotPlainError(f"the script `{text}` needs a shell")
    if _GLOB & set(quoted):
        raise _NotPlainError(f"the shell replaces a pattern of the script `{text}`")
    try:
        return shlex.split(text)
    except ValueError:
        raise _NotPlainError(f"the script `{text}` has an open quotation mark") from None


def _interpreter(command: _Command) -> str:
    """Return the interpreter of a console script, by its first line."""
    path = command.program(command.words[0])
    head = (command.read_file(path) or b"")[:512].decode("utf-8", "replace")
    first, _, rest = head.partition("\n")
    if first == "#!/bin/sh":
        found = re.match(r"'''exec' (?:\"([^\"]+)\"|(\S+)) \"\$0\" \"\$@\"", rest)
        named = (found[1] or found[2]) if found else ""
    else:
        named = first[2:].strip() if first.startswith("#!") else ""
        if named.startswith("/usr/bin/env "):
            named = command.which(named.split()[1]) or ""
    if path.rpartition("/")[0].endswith("/shims"):
        # pyenv and the like: a shell script that starts what is beside it.
        named = command.which(f"{path.rpartition('/')[0]}/python3") or ""
    if not _PYTHON.match(named.rpartition("/")[2]) or not named.startswith("/"):
        raise _NotPlainError(f"`{path}` does not begin with the path of a Python interpreter")
    return named


def _python(command: _Command) -> Runner:
    words, options = command.words[1:], list[str]()
    while words and words[0] != "-m":
        if words[0] in _PYTHON_PAIRS and len(words) > 1:
            options += words[:2]
            words = words[2:]
        elif words[0] in _PYTHON_FLAGS or words[0][:2] in _PYTHON_PAIRS:
            options.append(words[0])
            words = words[1:]
        else:
            raise _NotPlainError(f"Python is started with `{words[0]}`")
    module = words[1] if len(words) > 1 else ""
    if module not in ("pytest", "unittest"):
        raise _NotPlainError(f"Python runs the module `{module}`" if module else "Python runs no module")
    interpreter = (command.program(command.words[0]), *options)
    add_cwd = not {"-P", "-I"} & set(options)
    return PythonRunner(module, interpreter, tuple(words[2:]), add_cwd, command.env)


def _other(name: str, command: _Command) -> Runner:
    words = command.words
    argv = (command.program(words[0]), *words[1:])
    known: ReportKind
    match name:
        case "node":
            if "--test" not in words or "--watch" in words:
                raise _NotPlainError("node is started without `--test`, or watches")
            return NodeRunner(argv[0], argv[1:], command.env)
        case "vitest":
            known, bad = "vitest", words[1:2] and words[1] in ("watch", "dev", "bench", "related", "list", "init")
            bad = bad or any(each.startswith(("--reporter", "--outputFile", "--watch", "-w")) for each in words)
        case "jest":
            known, bad = "jest", any(each.startswith(("--json", "--outputFile", "--watch")) for each in words)
        case "go":
            known, bad = "go", words[1:2] != ["test"] or any(each in ("-json", "-c", "-exec") for each in words)
        case _:
            if name == "cargo" and words[1:2] in (["test"], ["t"]):
                raise _NotPlainError("`cargo test` writes no report, and `cargo nextest run` does")
            known, rest = "nextest", words[1:]
            rest = rest[1:] if rest[:1] == ["nextest"] else rest if name == "cargo-nextest" else []
            bad = rest[:1] != ["run"] or any(each.startswith("--message-format") for each in words)
    if bad:
        raise _NotPlainError(f"`{' '.join(words[:3])}` has options that change what it reports")
    env = {**command.env, **({"CI": "1"} if known in ("vitest", "jest") else {})}
    return ReportRunner(known, argv, env)
