"""The files that a project starts with: `interlock.toml` and `task.toml`, by what kind of project it is.

Which folders hold code is looked up in the project; the page of the documentation with all other keys is named in the
file.
"""

import json
import os
import tomllib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import Template as Text
from typing import Final

from interlock.core.finding import Finding
from interlock.gates.config import FILE, PYPROJECT, load_config
from interlock.gates.errors import ConfigError
from interlock.gates.patterns import compile_scope
from interlock.gates.sealed import NODE_TESTS, named_files, offered_files, place_of, with_scripts
from interlock.graph import PLACEHOLDER
from interlock.install.errors import InstallError

TASK: Final = "task.toml"
_IGNORE: Final = ".gitignore"
_OURS: Final = ("artifacts/", ".interlock/")


@dataclass(frozen=True, slots=True)
class Template:
    """One kind of project.

    Args:
        name: The word for `--template`.
        code: Returns the patterns of its code, from its root.
        command: What runs its tests; empty where a browser looks at a page.
        folders: Where tests are; those that the project does not have are left out.
        tests: Patterns of tests that stand beside the code.
        more: Keys that hold for this kind alone.
        named: Returns other such folders, which the project's own settings name.
        observed: Returns whether it is known test by test what the command does; else `product` and `tests` are needed.
    """

    name: str
    code: Callable[[Path], Sequence[str]]
    command: tuple[str, ...] = ()
    folders: tuple[str, ...] = ("tests", "test")
    tests: tuple[str, ...] = ()
    more: str = ""
    named: Callable[[Path], Sequence[str]] = lambda _root: ()
    observed: Callable[[Path], bool] = lambda _root: True


_PROJECT: Final = Text("""\
# How Interlock runs tasks in this project: one agent builds, and the tests decide.
# Check it: interlock check task.toml --model builder=command:claude

[roles.builder]
kind = "build"

# Who the builder is; without it, `--model builder=command:claude` says so for one run.
# [agents.builder]
# runner = "command"
# preset = "claude"

[gates.GATE-TESTS]
title = "the tests pass"
command = $command
timeout_seconds = 300.0
# The gate runs in an export: the tree as it was when the run began, with what the work changes of the product laid over
# it. All else keeps the content that it had: tests, their data, settings and recipes.
sealed = true
$product
${more}# docs/sealed-gates.md of Interlock lists the other keys, such as `keep`, `setup`, `allow_failing` and `heldout`.
""")
_DERIVED: Final = Text("""\
# What the work may change; by default what the tests of the base load and is no test, as `interlock check` prints:
# product = $product
# What keeps its content although it looks like product:
# tests = $tests\
""")
_GIVEN: Final = Text("""\
# Nobody observes this command, whose exit status decides. So these say what the work may change, and what are tests:
product = $product
tests = $tests\
""")
_PAGE: Final = """\
# How Interlock runs tasks in this project: frontend-implementer builds, visual-qa and a11y-auditor look at what a
# browser shows, code-reviewer reviews. docs/agents.md of Interlock says how to name who they are.
# Check it: interlock check task.toml --model command:claude
"""
_TASK: Final = Text("""\
# One task. Start it: interlock run task.toml --model $model

# Capital letters and digits in two or more parts. Its runs are TASK-001.1, TASK-001.2 and so on.
task_id = "TASK-001"
task = "$placeholder"
# What must pass. GATE-MSG-STRICT: each answer of an agent has the form that Interlock reads; any other is sent back.
gates_required = $gates
# The files that the work may touch:
scope = $scope
${page}# docs/configuration.md of Interlock lists the other keys: `inputs`, `may_change`, `[commands]`, `[budget]`.
""")


def render(template: Template, root: Path) -> dict[str, str]:
    """Return the files of a template by name, as they fit a project."""
    gates, page, project, model = ("GATE-TESTS",), "", _PAGE, "builder=command:claude"
    code = template.code(root)
    # Settings may name a package that has its tests in it.
    tests = [each for each in _folders(root, *template.folders, *template.named(root)) if each not in code]
    if template.command:
        command = template.command
        # Whoever starts a gate may not have activated the environment, and `pytest` would be another one.
        if template.name == "pytest" and (root / ".venv/bin/pytest").exists():
            command = (".venv/bin/pytest", *command[1:])
        keys = _DERIVED if template.observed(root) else _GIVEN
        # A project that has no tests yet gets the folder in which they will be.
        patterns = [*tests, *template.tests] or [f"{template.folders[0]}/**"]
        if template.name == "npm":
            held = compile_scope(patterns).matches
            patterns += [name for name in named_files("npm test", root) if not held(name)]
        product = keys.substitute(product=_toml(code), tests=_toml(patterns))
        project = _PROJECT.substitute(command=_toml(command), product=product, more=template.more)
    else:
        gates, model = ("GATE-VISUAL-QA", "GATE-A11Y-BASELINE", "GATE-CODE-REVIEW"), "command:claude"
        page = f"# What the browser opens: a path in the scope, or a URL.\npage = {_toml(_page(root))}\n"
    task = {
        "placeholder": PLACEHOLDER,
        "gates": _toml(("GATE-MSG-STRICT", *gates)),
        "model": model,
        "page": page,
        "scope": _toml([*code, *tests]),
    }
    return {FILE: project, TASK: _TASK.substitute(task)}


def existing(root: Path, names: Iterable[str]) -> tuple[Finding, ...]:
    """Return what keeps files from being written: `INI105` one is there, or another file configures the project."""
    message = "the file exists, and a template overwrites nothing."
    problems: list[Finding] = []
    for name in names:
        if os.path.lexists(root / name):
            fix = f"Rename {name}, or copy what is wanted into it from `interlock init --template NAME --dry-run`."
            problems.append(Finding("INI105", "error", "", message, "a file", "none", fix, path=name))
    with suppress(ConfigError):
        # With both, no command could read the configuration any more.
        if not problems and load_config(root).path == PYPROJECT:
            message = f"[tool.interlock] configures this project, and {FILE} would too."
            fix = "Keep that table, and copy what is wanted into it from `interlock init --template NAME --dry-run`."
            found = ("[tool.interlock]", "no such table", fix)
            problems.append(Finding("INI105", "error", "", message, *found, path=PYPROJECT))
    return tuple(problems)


def not_ignored(root: Path) -> list[str]:
    """Return the folders of Interlock's own that `.gitignore` does not name yet; none outside of git."""
    top, _ = place_of(root)
    if not os.path.lexists(top / ".git"):
        return []
    path = root / _IGNORE
    lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines() if path.exists() else []
    return [name for name in _OURS if name not in lines]


def write(root: Path, files: dict[str, str], ignored: Sequence[str]) -> None:
    """Write new files, and lines into `.gitignore`.

    Raises:
        InstallError: `INI105` one of the files is there, or another file configures the project.
        OSError: The file system refuses.
    """
    if problems := existing(root, files):
        raise InstallError(*problems)
    for name, text in files.items():
        # `x`: a file that somebody made since the look is not overwritten.
        with (root / name).open("x", encoding="utf-8") as file:
            file.write(text)
    if ignored:
        path = root / _IGNORE
        before = path.read_bytes() if path.exists() else b""
        # A last line without an end would run into the first of ours.
        start = "\n" if before and not before.endswith(b"\n") else ""
        with path.open("a", encoding="utf-8") as file:
            file.write(start + "".join(f"{line}\n" for line in ignored))


def _toml(value: str | Sequence[str]) -> str:
    """Return a text or a list of texts in TOML, whose texts are those of JSON here."""
    return json.dumps(value if isinstance(value, str) else list(value), ensure_ascii=False)


def _folders(root: Path, *names: str) -> list[str]:
    return [f"{name}/**" for name in dict.fromkeys(names) if (root / name).is_dir()]


_PYTHON_TESTS: Final = ("tests", "test", "testing")


def _python(root: Path) -> list[str]:
    packages = sorted(path.parent.name for path in root.glob("*/__init__.py"))
    return _folders(root, "src", *(name for name in packages if name not in ("src", *_PYTHON_TESTS))) or ["*.py"]


def _testpaths(root: Path) -> list[str]:
    """Return the folders below the root that pytest's `testpaths` in pyproject.toml names."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        given = tomllib.loads((root / PYPROJECT).read_text("utf-8"))["tool"]["pytest"]["ini_options"]["testpaths"]
        names = [os.path.normpath(name) for name in (given.split() if isinstance(given, str) else given)]
        return [name for name in names if not name.startswith((".", "/"))]
    return []


def _node(root: Path) -> list[str]:
    folders = _folders(root, "src", "lib", "app", "packages")
    return [*folders, *(name for name in offered_files(root) if "/" not in name)] if folders else ["*.{js,mjs,cjs,ts}"]


def _is_observed(root: Path) -> bool:
    """Return whether the script `test` of package.json, or one that it runs, names a runner that is observed."""
    scripts = with_scripts("npm test", root)
    return any(runner in scripts for runner in ("node --test", "vitest", "jest"))


def _site(root: Path) -> list[str]:
    folder = _page(root).rpartition("/")[0]
    return [f"{folder}/**"] if folder else ["*.{html,css,js}", *_folders(root, "assets", "css", "js", "images")]


def _page(root: Path) -> str:
    names = ("index.html", "site/index.html", "public/index.html", "src/index.html", "docs/index.html")
    return next((name for name in names if (root / name).is_file()), names[0])


def _go(_root: Path) -> list[str]:
    return ["**/*.go"]


def _rust(root: Path) -> list[str]:
    return _folders(root, "src", "crates") or ["**/*.rs"]


_CARGO: Final = """\
# With `cargo nextest run` as the command each test is compared, and the two lines above may go.
# Tests inside the files of the scope, under #[cfg(test)], cannot be sealed; reviewers get a list of them.
# Crates come from the cache of cargo: run `cargo fetch` first.
env = { CARGO_NET_OFFLINE = "true" }
"""

_ROWS: Final = (
    Template("pytest", _python, ("pytest", "-q"), _PYTHON_TESTS, named=_testpaths),
    Template("npm", _node, ("npm", "test"), ("test", "tests"), NODE_TESTS, observed=_is_observed),
    Template("page", _site, folders=()),
    Template("go", _go, ("go", "test", "./..."), (), ("**/*_test.go",)),
    Template("rust", _rust, ("cargo", "test"), ("tests",), more=_CARGO, observed=lambda _root: False),
)
TEMPLATES: Final = {row.name: row for row in _ROWS}
"""The templates by name."""
