"""The tests that a file of the base defines, by its text alone: what a run of the base cannot say of a broken file.

A file that the base cannot import has no list of tests, and keeps its base content. So each test function that is
plainly in it has to run in the end. Left out is what only running it could show: names below a condition, names that
are assigned or deleted again, classes that are no test classes by their name or base, functions that are fixtures.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeGuard

from interlock.gates.sealed.configured import PYTEST_SETTINGS, ReadBase

_SKIPS: Final = frozenset({
    "skip", "skipif", "skipIf", "skipUnless", "skipTest", "SkipTest", "importorskip", "xfail", "expectedFailure",
})  # fmt: skip
_PLAIN_MARKS: Final = frozenset({"parametrize", "usefixtures", "filterwarnings", "asyncio", "anyio", "trio"})
_NAMING: Final = re.compile(rb"python_functions|python_classes")
_NODE_SKIP: Final = re.compile(rb"\bskip\b|\btodo\b|\bskipIf\b|\brunIf\b|\bx(?:it|test|describe)\b")
_GO_TEST: Final = re.compile(rb"^func (Test[A-Z_0-9]\w*|Test)\(\w+ \*testing\.T\)", re.MULTILINE)
_GO_SKIP: Final = re.compile(rb"\.Skip(?:f|Now)?\(")
_GO_PLATFORM: Final = re.compile(
    r"_(?:linux|windows|darwin|freebsd|openbsd|netbsd|unix|js|wasip1|android|ios|plan9|solaris|aix|amd64|arm64|386|arm|wasm)"
    r"_test\.go$"
)
_GO_CONSTRAINT: Final = re.compile(rb"^//\s*(?:go:build|\+build)\b", re.MULTILINE)

ANY_TEST: Final = "*"
"""The name that means every test of a file."""


@dataclass(frozen=True, slots=True)
class StaticTest:
    """One test by the text of its file.

    Args:
        skips: Its own text, or that of its class or file, says that it may be skipped or may fail.
        marked: It has a mark of the project, by which options and `conftest.py` leave tests out.
        decorated: It, or its class, has a decorator, which may put another function in its place.
    """

    skips: bool = False
    marked: bool = False
    decorated: bool = False


StaticTests = Mapping[str, Mapping[str, StaticTest]]
"""By file (or package of Go), the tests in it by qualified name, such as `TestCart.test_total`."""


def static_tests(broken: Collection[str], runner: str, read: ReadBase, files: Collection[str]) -> StaticTests:
    """Return the tests of files (or packages of Go) that the base could not collect.

    Of a file for node it is known only whether its text skips tests, of runners but pytest, unittest and go nothing.
    """
    if runner in ("node", "vitest", "jest"):
        texts = {path: read(path) or b"" for path in broken}
        return {path: {ANY_TEST: StaticTest(skips=True)} for path, text in texts.items() if _NODE_SKIP.search(text)}
    if not broken or runner not in ("pytest", "unittest", "go"):
        return {}
    if runner == "go":
        return {package: _go(package, read, files) for package in broken}
    if runner == "pytest" and any(_NAMING.search(read(name) or b"") for name in PYTEST_SETTINGS):
        return {}
    leaves_out = any(b"skip" in (read(path) or b"") for path in files if path.rpartition("/")[2] == "conftest.py")
    found = {path: read(path) for path in broken if path.endswith(".py")}
    return {path: _python(text, runner, leaves_out) for path, text in found.items() if text is not None}


def _python(text: bytes, runner: str, leaves_out: bool) -> dict[str, StaticTest]:
    """Return the tests of a file of Python; none when it cannot be parsed.

    `leaves_out`: a `conftest.py` of the base skips tests, which it does by marks.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    again = _changed_names(tree.body)
    whole = StaticTest(_mentions_skip(*_assigned(tree.body, "pytestmark")), False)
    found: dict[str, StaticTest] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name not in again and _is_test_class(node, runner):
            outer = _joined(whole, node, [*node.decorator_list, *_assigned(node.body, "pytestmark"), *_set_up(node)])
            others = _changed_names(node.body)
            for each in node.body:
                if _is_test(each, others):
                    found[f"{node.name}.{each.name}"] = _joined(outer, each, [each])
        elif runner == "pytest" and _is_test(node, again):
            found[node.name] = _joined(whole, node, [node])
    if not leaves_out:
        return found
    return {name: replace(test, skips=test.skips or test.marked) for name, test in found.items()}


def _is_test(node: ast.stmt, again: frozenset[str]) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or not node.name.startswith("test"):
        return False
    names = {name for decorator in node.decorator_list for name in _names(decorator)}
    return (
        node.name not in again
        and not any("fixture" in name or "abstract" in name for name in names)
        and not (names & {"property", "overload"})
    )


def _is_test_class(node: ast.ClassDef, runner: str) -> bool:
    bases = {name for base in node.bases for name in _names(base)}
    if _assigned(node.body, "__test__"):
        return False
    if any(name.endswith("TestCase") for name in bases):
        return True
    own = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    return runner == "pytest" and node.name.startswith("Test") and not own & {"__init__", "__new__"} and not bases


def _joined(outer: StaticTest, node: ast.stmt, parts: list[ast.AST]) -> StaticTest:
    """Return what the text of a class or function adds to what is around it."""
    marks = {
        each.attr
        for decorator in getattr(node, "decorator_list", ())
        for each in ast.walk(decorator)
        if isinstance(each, ast.Attribute) and getattr(each.value, "attr", getattr(each.value, "id", "")) == "mark"
    }
    return StaticTest(
        outer.skips or _mentions_skip(*parts),
        outer.marked or bool(marks - _PLAIN_MARKS - _SKIPS),
        outer.decorated or bool(getattr(node, "decorator_list", ())),
    )


def _mentions_skip(*nodes: ast.AST) -> bool:
    return any(name in _SKIPS for node in nodes for name in _names(node))


def _names(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr


def _set_up(node: ast.ClassDef) -> list[ast.AST]:
    names = ("setUp", "setUpClass", "setup_method", "setup_class", "asyncSetUp")
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [each for each in node.body if isinstance(each, functions) and each.name in names]


def _assigned(body: list[ast.stmt], name: str) -> list[ast.AST]:
    assignments = [each for each in body if isinstance(each, (ast.Assign, ast.AnnAssign))]
    return [each for each in assignments if any(getattr(node, "id", "") == name for node in ast.walk(each))]


def _changed_names(body: list[ast.stmt]) -> frozenset[str]:
    """Return the names that a module or class assigns or deletes anywhere outside its functions."""
    found: set[str] = set()
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        pending.extend(ast.iter_child_nodes(node))
    return frozenset(found)


def _go(package: str, read: ReadBase, files: Collection[str]) -> dict[str, StaticTest]:
    """Return the tests of a package of Go, by the module that `go.mod` names at the root."""
    module = re.search(rb"^module\s+\"?([^\s\"]+)", read("go.mod") or b"", re.MULTILINE)
    if module is None or not f"{package}/".startswith(f"{module[1].decode('utf-8', 'replace')}/"):
        return {}
    folder = package[len(module[1].decode("utf-8", "replace")) + 1 :]
    found: dict[str, StaticTest] = {}
    for path in files:
        at, _, name = path.rpartition("/")
        if at == folder and name.endswith("_test.go") and not _GO_PLATFORM.search(name):
            text = read(path) or b""
            if not _GO_CONSTRAINT.search(text):
                skips = _GO_SKIP.search(text) is not None
                found |= {each.decode(): StaticTest(skips) for each in _GO_TEST.findall(text)}
    return found
