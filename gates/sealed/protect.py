"""Which files of the scope keep their base content: tests, what supports them, and what decides a gate.

The tables are names, because that is what test runners and people go by. A file that a base test was collected from, or
that the settings of its runner name, is protected whatever its name; a project adds patterns with `protect`, and a task
takes files out with `may_change`.

New files beside tests are taken, and the tests of the base are judged without them: a test module can replace what the
others import, and so can a helper or data that one of them would rather read.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, TypeAlias

from interlock.gates.patterns import Scope, compile_scope

Kind: TypeAlias = Literal["decides", "test", "support", ""]

_DECIDES: Final = (
    # Python
    "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "tox.toml", "setup.cfg",
    "setup.py",
    "pyproject.toml", "noxfile.py", ".coveragerc", "sitecustomize.py", "usercustomize.py", "*.pth", "requirements*.txt",
    "uv.lock", "poetry.lock", "pdm.lock", "Pipfile", "Pipfile.lock", ".python-version",
    # JavaScript
    "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml",
    "pnpm-workspace.yaml", ".npmrc",
    ".yarnrc", ".yarnrc.yml", ".pnp.cjs", ".pnp.loader.mjs", "vitest.*.*", "vite.config.*", "jest.config.*",
    "jest.setup.*",
    "babel.config.*", ".babelrc*", ".swcrc", ".mocharc.*", "karma.conf.*", "playwright.config.*", "tsconfig*.json",
    # Go, Rust, and others
    "go.mod", "go.sum", "go.work", "go.work.sum", "Cargo.toml", "Cargo.lock", "build.rs", "rust-toolchain",
    "rust-toolchain.toml",
    "nextest.toml", "Makefile", "makefile", "GNUmakefile", "*.mk", "CMakeLists.txt", "justfile", "Justfile",
    "Taskfile.y*ml",
    "Rakefile", "Gemfile", "Gemfile.lock", "build.gradle*", "settings.gradle*", "pom.xml",
    ".env", ".env.*", ".envrc", "interlock.toml",
    # linters, type checkers, formatters: commands of gates too
    "ruff.toml", ".ruff.toml", "mypy.ini", ".mypy.ini", ".flake8", "pylintrc", ".pylintrc", "pyrightconfig.json",
    "bandit.y*ml", ".bandit", ".isort.cfg", ".pydocstyle", ".eslintrc*", "eslint.config.*", ".eslintignore",
    "biome.json*", ".prettierrc*", "prettier.config.*", ".prettierignore", ".stylelintrc*", "stylelint.config.*",
    ".golangci.*", "clippy.toml", ".clippy.toml", "rustfmt.toml", ".rustfmt.toml", "deny.toml", "deno.json*",
    "bunfig.toml", ".nycrc*", "c8rc.json", ".c8rc*", "node.config.json", "phpunit.xml*", "phpstan.neon*", ".rspec",
    ".rubocop.yml",
    # other test runners
    ".taprc", "ava.config.*", "cypress.config.*", "wdio.conf.*", "nightwatch.conf.*", "web-test-runner.config.*",
    ".jasmine.*", "jasmine.json", "behave.ini", ".behaverc", "unittest.cfg", "nose2.cfg",
    # continuous integration
    ".gitlab-ci.y*ml", ".travis.yml", "Jenkinsfile", "azure-pipelines.y*ml", ".pre-commit-config.yaml",
)  # fmt: skip
_DECIDING_FOLDERS: Final = frozenset({".github", ".circleci", ".cargo", ".config", ".husky", ".buildkite"})
_TEST_FILES: Final = (
    "test_*.*", "test-*.*", "test.*", "tests.*", "Tests.*", "*_test.*", "*-test.*", "*.test.*", "*.spec.*", "*_spec.rb",
    "spec_helper.*", "rails_helper.rb", "setupTests.*", "*Test.java", "*Tests.java", "*Test.kt", "*Tests.kt",
    "*Tests.cs", "*Test.php",
)  # fmt: skip
_TEST_FOLDERS: Final = frozenset({
    "test", "tests", "testing", "spec", "specs", "fixture", "fixtures", "mock", "mocks", "snapshots", "cassettes",
    "e2e", "unittests", "golden", "goldens", "expected",
})  # fmt: skip
"""Names of folders that hold tests and what they need; `snapshots` only as `__snapshots__`."""
_LAST_WORDS: Final = frozenset({"test", "tests", "testing", "specs", "fixtures", "mocks", "e2e"})
_FIRST_WORDS: Final = frozenset({"test", "tests", "testing", "spec", "mock", "e2e", "golden", "expected"})
_PROSE: Final = (".md", ".rst", ".adoc")
_FIRST_OF_FILES: Final = frozenset({"test", "tests", "testing"})
_DATA_WORDS: Final = frozenset({"golden", "goldens", "expected"})
_DATA_ENDINGS: Final = frozenset({"golden", "expected", "snap"})
_AFTER_FIRST: Final = frozenset({
    "assets", "case", "cases", "common", "config", "data", "expected", "files", "fixture", "fixtures", "golden",
    "helper", "helpers", "input", "inputs", "integration", "kit", "lib", "mocks", "output", "outputs", "resources",
    "results", "samples", "setup", "snapshots", "suite", "suites", "support", "tools", "unit", "util", "utils",
    "vector", "vectors",
})  # fmt: skip
"""A name of several words: its last one says test, or its first one does and the next is what goes with tests."""
_WORD: Final = re.compile(r"[A-Z]+(?![a-z0-9])|[A-Z]?[a-z0-9]+")
_JOINED: Final = re.compile(rf"(tests?)({'|'.join(sorted(_AFTER_FIRST, key=len, reverse=True))})")
"""Two words that are written as one: `testutils`, `testdata`."""
CODE: Final = frozenset({
    "py", "pyi", "pyx", "so", "pyd", "pyc", "js", "cjs", "mjs", "jsx", "ts", "cts", "mts", "tsx", "node", "wasm",
    "go", "rs", "rb",
    "java", "kt", "cs", "php", "ex", "exs", "c", "cc", "cpp", "h", "hpp", "sh", "bash", "pl",
})  # fmt: skip


_NONE: Final = Scope(())


@dataclass(frozen=True, slots=True)
class Protection:
    """What keeps its base content in one gate.

    Args:
        named: Paths relative to the root that are protected whatever their name: files that base tests were collected
            from, and words of the gate's command.
        patterns: `protect` of the gate.
        free: `may_change` of the task.
        folders: Folders, relative to the root, in which the base has nothing but tests.
    """

    named: Collection[str] = ()
    patterns: Scope = _NONE
    free: Scope = _NONE
    folders: Collection[str] = ()

    def holds(self, path: str, *, in_base: bool) -> bool:
        """Return whether a file of the scope keeps its base content; a file that the base lacks then stays away.

        Installed packages keep it, and new ones stay away: they come from `keep`, and would take the place of others.
        A new `conftest.py` comes with new tests, and those of the base are judged without both.
        """
        if self.free.matches(path):
            return False
        if path in self.named or self.patterns.matches(path):
            return True
        installed = "node_modules" in path.split("/") or path.endswith("vendor/modules.txt")
        if in_base or path.rpartition("/")[2] != "conftest.py":
            kind = kind_of(path)
            return installed or (bool(kind) if in_base else kind == "decides")
        return installed

    def beside_tests(self, path: str) -> bool:
        """Return whether a new file is one that the tests of the base are judged without."""
        if self.free.matches(path):
            return False
        return bool(kind_of(path)) or path in self.folders or any(folder in self.folders for folder in above(path))


def protection(
    protect: Iterable[str], may_change: Iterable[str], named: Collection[str] = (), folders: Collection[str] = ()
) -> Protection:
    """Return what keeps its base content, or raise `TreeError` for a pattern."""
    patterns, free = (compile_scope(rows) if (rows := list(given)) else _NONE for given in (protect, may_change))
    return Protection(named, patterns, free, folders)


def kind_of(path: str) -> Kind:
    """Return why a file is protected by its name: it decides a gate, is a test, or supports tests."""
    *folders, name = path.split("/")
    if _any(_DECIDES).fullmatch(name) or not _DECIDING_FOLDERS.isdisjoint(folders):
        return "decides"
    if any(folder.endswith((".dist-info", ".egg-info")) for folder in folders):
        return "decides"  # a distribution whose entry points test runners load
    if _any(_TEST_FILES).fullmatch(name) and not name.endswith(_PROSE):
        return "test"
    if _supports_tests(name):
        return "support"
    return "support" if any(_holds_tests(folder) for folder in folders) else ""


def is_code(path: str) -> bool:
    """Return whether the name of a file ends like code."""
    return path.rpartition(".")[2].lower() in CODE


def above(path: str) -> Iterator[str]:
    """Yield the folders around a path, the innermost first."""
    while path := path.rpartition("/")[0]:
        yield path


def decides_above(name: str) -> bool:
    """Return whether a file of this name above a checkout can change how tests are found and run."""
    return name == "__init__.py" or kind_of(name) == "decides"


def _words(name: str) -> list[str]:
    """Return the words of a name in lower case: those between `_`, `-` and `.`, and those of camel case."""
    found = [word.lower().rstrip("0123456789") or word for word in _WORD.findall(name)]
    joined = _JOINED.fullmatch(found[0]) if found else None
    return [*joined.groups(), *found[1:]] if joined else found


@cache
def _holds_tests(folder: str) -> bool:
    """Return whether a folder is one of tests, by its name: `tests`, `unit_tests`, `integrationTests`, `testutils`."""
    words = _words(folder)
    if len(words) == 1:
        return words[0] in _TEST_FOLDERS and (words[0] != "snapshots" or folder.startswith("__"))
    if not words:
        return False
    return words[-1] in _LAST_WORDS or (words[0] in _FIRST_WORDS and words[1] in _AFTER_FIRST)


@cache
def _supports_tests(name: str) -> bool:
    """Return whether a file supports tests by its own name: `testutils.py`, `testing_helpers.js`, `expected.json`."""
    stem, _, ending = name.rpartition(".")
    words = [] if name.endswith(_PROSE) else _words(stem)
    if ending in _DATA_ENDINGS and stem:
        return True
    if not words:
        return False
    goes_with = len(words) > 1 and words[1] in _AFTER_FIRST
    if words[0] in _DATA_WORDS and ending.lower() not in CODE:
        return len(words) == 1 or goes_with
    return words[0] in _FIRST_OF_FILES and goes_with


@cache
def _any(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(pattern).replace(r"\*", "[^/]*") for pattern in patterns))
