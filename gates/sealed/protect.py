"""Which files of the scope keep their base content: tests, what supports them, and what decides a gate.

The tables are names, because that is what test runners and people go by. A file that a base test was collected from is
protected whatever its name; a project adds patterns with `protect`, and a task takes files out with `may_change`.
"""

import re
from collections.abc import Collection, Iterable
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
    # continuous integration
    ".gitlab-ci.y*ml", ".travis.yml", "Jenkinsfile", "azure-pipelines.y*ml", ".pre-commit-config.yaml",
)  # fmt: skip
_DECIDING_FOLDERS: Final = frozenset({".github", ".circleci", ".cargo", ".config", ".husky", ".buildkite"})
_TEST_FILES: Final = (
    "test_*.py", "*_test.py", "tests.py", "*_test.go", "*.test.*", "*.spec.*", "*-test.*", "*_spec.rb", "*_test.rb",
    "test_*.rb",
    "*Test.java", "*Tests.java", "*Test.kt", "*Tests.cs", "*Test.php", "*_test.exs", "test-*.*", "*_test.rs",
    "tests.rs",
)  # fmt: skip
_TEST_FOLDERS: Final = frozenset({
    "test", "tests", "__tests__", "spec", "specs", "testdata", "test_data", "test-data", "fixtures", "__fixtures__",
    "__mocks__", "__snapshots__", "cassettes", "e2e",
})  # fmt: skip
_CODE: Final = frozenset({
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
    """

    named: Collection[str] = ()
    patterns: Scope = _NONE
    free: Scope = _NONE

    def holds(self, path: str, *, in_base: bool) -> bool:
        """Return whether a file of the scope keeps its base content; a file that the base lacks then stays away.

        New tests are taken, and new data for them. New code in a test folder that is no test is not: it would take the
        place of what the tests import.

        Args:
            path: Relative to the root.
            in_base: Whether the base has the file.
        """
        if self.free.matches(path):
            return False
        if path in self.named or self.patterns.matches(path):
            return True
        kind = kind_of(path)
        if in_base or kind == "decides":
            return bool(kind)
        return kind == "support" and path.rpartition(".")[2].lower() in _CODE


def protection(protect: Iterable[str], may_change: Iterable[str], named: Collection[str] = ()) -> Protection:
    """Return what keeps its base content.

    Raises:
        TreeError: A pattern is refused.
    """
    kept, free = list(protect), list(may_change)
    return Protection(named, compile_scope(kept) if kept else _NONE, compile_scope(free) if free else _NONE)


def kind_of(path: str) -> Kind:
    """Return why a file is protected by its name: it decides a gate, is a test, or supports tests."""
    *folders, name = path.split("/")
    if _any(_DECIDES).fullmatch(name) or not _DECIDING_FOLDERS.isdisjoint(folders):
        return "decides"
    if _any(_TEST_FILES).fullmatch(name):
        return "test"
    return "support" if not _TEST_FOLDERS.isdisjoint(folders) else ""


@cache
def _any(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return one expression for names with `*`."""
    return re.compile("|".join(re.escape(pattern).replace(r"\*", "[^/]*") for pattern in patterns))
