"""The files that a project starts with: `interlock.toml` and `task.toml`, by what kind of project it is.

A template looks at the folder for what differs from project to project (which folders hold code, which command runs the
tests) and writes every key that a project may want besides, commented out, with what it does.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import Template as Text
from typing import Final

from interlock.core.files import write_atomically
from interlock.core.finding import Finding
from interlock.gates.config import FILE, PYPROJECT, load_config
from interlock.gates.errors import ConfigError, TreeError
from interlock.gates.sealed import Store, place_of
from interlock.gates.tree import paths_in_scope
from interlock.graph import PLACEHOLDER
from interlock.install.errors import InstallError, file_problem

TASK: Final = "task.toml"
_IGNORE: Final = ".gitignore"
_OURS: Final = ("artifacts/", ".interlock/")


@dataclass(frozen=True, slots=True)
class Template:
    """One kind of project.

    Args:
        name: The word for `--template`.
        title: What its tests are, for people.
        marks: Patterns of files that such a project has in its root.
        sources: Returns the patterns of its code, from its root.
        tests: Patterns of its tests; those that match no file of the project are left out.
        command: Returns the command that runs its tests, from its root.
        test: The id of a test, as its runner writes it: for an example.
        test_file: A file of tests, for an example.
        setup: A command that makes its dependencies, for an example.
        prepare: A command that builds something, for an example.
        lint: A command that agents may want to run, for an example.
        notes: Lines about the seal that hold for this kind alone.
        env: Variables that its tests need in the export.
        observed: Whether it is known test by test what the command does; else `product` and `tests` are needed.
    """

    name: str
    title: str
    marks: tuple[str, ...]
    sources: Callable[[Path], Sequence[str]]
    tests: tuple[str, ...]
    command: Callable[[Path], Sequence[str]]
    test: str
    test_file: str
    setup: tuple[str, ...]
    prepare: tuple[str, ...]
    lint: tuple[str, ...]
    notes: tuple[str, ...] = ()
    env: str = ""
    observed: Callable[[Path], bool] = lambda _root: True


_GATE: Final = Text("""\
[gates.GATE-TESTS]
title = "the tests pass"
command = $command
timeout_seconds = 300.0
# The gate runs in an export: the tree as it was when the run began, with what the work changes of the product laid over
# it. All else keeps the content that it had: tests, their data, settings and recipes.
${notes}sealed = true
$product
# What the checkout has and git does not, such as dependencies, read-only; default: .venv, venv and node_modules:
# keep = [".venv", "node_modules"]
# Or commands that make the dependencies, with network, once for each state of the lock files:
# setup = [$setup]
# Commands that run in the export before the tests:
# prepare = [$prepare]
# "host", or the default "loopback", on which only servers of the tests themselves can be reached:
# network = "host"
# Variables for the command, which gets few others, and names of those that it gets from yours:
$env
# pass_env = ["DATABASE_URL"]
# Where the commands run, relative to the root:
# cwd = "."
# The JUnit report that the command writes, where nobody observes its test runner:
# junit = "build/report.xml"
# Tests that fail already and may go on failing:
# allow_failing = [$test]
# How often failed tests may run again:
# retries = 1
# Tests outside the project that no agent sees; they run at the end:
# heldout = "../heldout"
# Refuse new comments that silence a checker, such as `noqa`:
# forbid_new = ["suppressions"]
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

_PROJECT: Final = Text("""\
# How Interlock runs tasks in this project: one agent builds, and the tests decide ($title).
# Check it: interlock check task.toml --model builder=command:claude

[roles.builder]
kind = "build"

# Who the builder is; without it, `--model builder=command:claude` says so for one run.
# [agents.builder]
# runner = "command"
# preset = "claude"

$gate""")

_PAGE: Final = Text("""\
# How Interlock runs tasks in this project: one agent builds, two look at what a browser shows, one reviews.
# Check it: interlock check task.toml --model command:claude

# Who they are; without these, `--model command:claude` says so for all of them and one run.
# [agents.frontend-implementer]
# runner = "command"
# preset = "claude"
# [agents.visual-qa]
# runner = "command"
# preset = "claude"
# [agents.a11y-auditor]
# runner = "command"
# preset = "claude"
# [agents.code-reviewer]
# runner = "command"
# preset = "claude"

# A command that decides besides; then add "GATE-TESTS" to `gates_required` of the task.
$gate""")

_STRICT: Final = """\
# What must pass. GATE-MSG-STRICT is about the answers of agents: each must have the form of the protocol.
"""

_TASK: Final = Text("""\
# One task. Start it: interlock run task.toml --model $model

# Capital letters and digits in two or more parts. Its runs are TASK-001.1, TASK-001.2 and so on.
task_id = "TASK-001"
task = "$placeholder"
${strict}gates_required = $gates
# The files that the work may touch:
scope = $scope
${page}# Files that the agents work from:
# inputs = ["docs/brief.md"]
# Tests and settings that this task is to change; all others keep their content in a sealed gate:
# may_change = [$test_file]

# What agents may have run beside the commands of the gates, by name; no shell.
[commands]
# lint = $lint

# What the agents may spend on this task.
[budget]
# calls = 50
# usd = 5.0
""")


def render(template: Template, root: Path) -> dict[str, str]:
    """Return the files of a template by name, as they fit a project."""
    code, tests = template.sources(root), _there(root, template.tests) or template.tests[:1]
    keys = (_DERIVED if template.observed(root) else _GIVEN).substitute(
        product=_toml([each for pattern in code for each in _packages(root, pattern) or [pattern]]), tests=_toml(tests)
    )
    words = {
        "title": template.title,
        "command": _toml(template.command(root)),
        "product": keys,
        "notes": "".join(f"# {line}\n" for line in template.notes),
        "setup": _toml(template.setup),
        "prepare": _toml(template.prepare),
        "env": template.env or '# env = { TZ = "UTC" }',
        "test": _toml(template.test),
        "test_file": _toml(template.test_file),
        "lint": _toml(template.lint),
        "scope": _toml([*code, *(each for each in _there(root, template.tests) if not each.startswith("**"))]),
        "strict": _STRICT,
    }
    gate = _GATE.substitute(words)
    if template.name != "page":
        gates, model, page = ("GATE-MSG-STRICT", "GATE-TESTS"), "builder=command:claude", ""
        project = _PROJECT.substitute(words, gate=gate)
    else:
        gates, model = ("GATE-MSG-STRICT", "GATE-VISUAL-QA", "GATE-A11Y-BASELINE", "GATE-CODE-REVIEW"), "command:claude"
        page = f"# The page that the browser opens: a path in the scope, or a URL.\npage = {_toml(_page(root))}\n"
        lines = (line if line.startswith("#") else f"# {line}" for line in gate.splitlines(keepends=True))
        project = _PAGE.substitute(words, gate="".join(lines))
    words |= {"placeholder": PLACEHOLDER, "gates": _toml(gates), "model": model, "page": page}
    return {FILE: project, TASK: _TASK.substitute(words)}


def suggested(root: Path) -> dict[str, str]:
    """Return the templates that a folder looks like, each with the file that says so."""
    found: dict[str, str] = {}
    for template in TEMPLATES.values():
        names = (path.name for mark in template.marks for path in sorted(root.glob(mark)))
        if (name := next(names, None)) is not None:
            found[template.name] = name
    return found


def existing(root: Path, names: Iterable[str]) -> tuple[Finding, ...]:
    """Return what keeps files from being written: `INI105` one is there, or another file configures the project."""
    problems = [_is_there(name) for name in names if os.path.lexists(root / name)]
    with suppress(ConfigError):
        if not problems and load_config(root).path == PYPROJECT:
            message = f"[tool.interlock] configures this project, and {FILE} would too."
            fix = "Keep that table, and copy what is wanted into it from `interlock init --template NAME --dry-run`."
            problems.append(file_problem("INI105", PYPROJECT, message, "[tool.interlock]", "no such table", fix))
    return tuple(problems)


def not_ignored(root: Path) -> tuple[str, ...]:
    """Return the folders of Interlock's own that git does not ignore yet, as lines of a `.gitignore`."""
    top, _ = place_of(root)
    if not os.path.lexists(top / ".git"):
        return ()
    ignored = Store(top)
    at = os.path.relpath(root.resolve(), top)
    return tuple(name for name in _OURS if not ignored.ignores(os.path.normpath(f"{at}/{name}x")))


def write(root: Path, files: dict[str, str], ignored: Iterable[str] = ()) -> None:
    """Write new files, all of them or none, and lines into `.gitignore`.

    Raises:
        InstallError: `INI105` one of them is there, or another file configures the project.
        OSError: The file system refuses.
    """
    if problems := existing(root, files):
        raise InstallError(problems)
    made: list[Path] = []
    try:
        for name, text in files.items():
            with (root / name).open("x", encoding="utf-8") as file:
                made.append(root / name)
                file.write(text)
        if lines := list(ignored):
            path = root / _IGNORE
            before = path.read_bytes() if path.exists() else b""
            end = b"\n" if before and not before.endswith(b"\n") else b""
            write_atomically(path, before + end + "".join(f"{line}\n" for line in lines).encode(), mode=0o644)
    except OSError as error:
        for path in made:
            path.unlink(missing_ok=True)
        if isinstance(error, FileExistsError):
            raise InstallError((_is_there(Path(error.filename).name),)) from error
        raise


def _is_there(name: str) -> Finding:
    fix = f"Rename {name}, or copy what is wanted into it from `interlock init --template NAME --dry-run`."
    return file_problem("INI105", name, "the file exists, and a template overwrites nothing.", "a file", "none", fix)


def _toml(value: str | Sequence[str]) -> str:
    """Return a text or a list of texts in TOML, whose texts are those of JSON here."""
    return json.dumps(value if isinstance(value, str) else list(value), ensure_ascii=False)


def _folders(root: Path, *names: str) -> list[str]:
    return [f"{name}/**" for name in names if (root / name).is_dir()]


def _packages(root: Path, pattern: str) -> list[str]:
    """Return the packages directly in a folder that is none itself, such as those in `src`."""
    folder = pattern.removesuffix("/**")
    if (root / folder / "__init__.py").exists():
        return []
    return [f"{folder}/{path.parent.name}/**" for path in sorted(root.glob(f"{folder}/*/__init__.py"))]


def _there(root: Path, patterns: Iterable[str]) -> list[str]:
    """Return the patterns that match a file of the project."""
    with suppress(TreeError):
        return [each for each in patterns if next(iter(paths_in_scope(root, [each])), None) is not None]
    return []


def _python_code(root: Path) -> list[str]:
    packages = sorted(path.parent.name for path in root.glob("*/__init__.py"))
    return _folders(root, "src", *(name for name in packages if name not in ("src", "test", "tests"))) or ["*.py"]


def _node_code(root: Path) -> list[str]:
    return _folders(root, "src", "lib", "app", "packages") or ["*.{js,mjs,cjs,ts}"]


def _page_code(root: Path) -> list[str]:
    folder = _page(root).rpartition("/")[0]
    return [f"{folder}/**"] if folder else ["*.{html,css,js}", *_folders(root, "assets", "css", "js", "images")]


def _page(root: Path) -> str:
    names = ("index.html", "site/index.html", "public/index.html", "src/index.html", "docs/index.html")
    return next((name for name in names if (root / name).is_file()), names[0])


def _pytest(root: Path) -> list[str]:
    own = (name for name in (".venv/bin/pytest", "venv/bin/pytest") if (root / name).exists())
    return [next(own, "pytest"), "-q"]


def _node_test(root: Path) -> list[str]:
    managers = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn"}
    return [next((name for lock, name in managers.items() if (root / lock).exists()), "npm"), "test"]


def _is_observed(root: Path) -> bool:
    """Return whether the script `test` of package.json names a runner that is observed."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        script = str(json.loads((root / "package.json").read_bytes())["scripts"]["test"])
        return any(runner in script for runner in ("node --test", "vitest", "jest"))
    return False


def _cargo(_root: Path) -> list[str]:
    return ["cargo", "nextest", "run"] if shutil.which("cargo-nextest") else ["cargo", "test"]


_NODE_TESTS: Final = ("test/**", "tests/**", "**/*.{test,spec}.*", "**/__tests__/**")
_ROWS: Final = (
    Template(
        "pytest", "pytest", ("pytest.ini", "pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "conftest.py", "*.py"),
        _python_code, ("tests/**", "test/**"), _pytest, "tests/test_cart.py::test_total", "tests/test_cart.py",
        ("uv", "sync"), ("make", "build"), ("ruff", "check"),
    ),
    Template(
        "npm", "the script `test` of package.json", ("package.json",), _node_code, _NODE_TESTS, _node_test,
        "test/cart.test.js > adds up", "test/cart.test.js", ("npm", "ci"), ("npm", "run", "build"),
        ("npm", "run", "lint"), observed=_is_observed,
    ),
    Template(
        "page", "a browser", ("index.html", "site/index.html", "public/index.html"), _page_code, _NODE_TESTS,
        lambda _root: ("npm", "test"), "test/menu.test.js > opens", "test/menu.test.js", ("npm", "ci"),
        ("npm", "run", "build"), ("npm", "run", "lint"), observed=lambda _root: False,
    ),
    Template(
        "go", "go test", ("go.mod",), lambda _root: ("**/*.go",), ("**/*_test.go",),
        lambda _root: ("go", "test", "./..."), "example.com/cart.TestTotal", "cart_test.go", ("go", "mod", "download"),
        ("go", "generate", "./..."), ("go", "vet", "./..."),
    ),
    Template(
        "rust", "cargo", ("Cargo.toml",), lambda root: _folders(root, "src", "crates") or ["**/*.rs"],
        ("tests/**", "benches/**"), _cargo, "cart::tests::total", "tests/cart.rs",
        ("cargo", "fetch"), ("cargo", "build"), ("cargo", "clippy"),
        ("Tests inside the files of the scope, under #[cfg(test)], cannot be sealed; reviewers get a list of them.",
         "Tests are compared one by one where the command is `cargo nextest run`; `cargo test` counts by its",
         "exit status alone. Crates come from the cache of cargo: run `cargo fetch` first."),
        'env = { CARGO_NET_OFFLINE = "true" }',
        observed=lambda root: "nextest" in _cargo(root),
    ),
)  # fmt: skip

TEMPLATES: Final = {row.name: row for row in _ROWS}
"""The templates by name."""
