"""The names of all tests, for the tables that say which test holds a promise."""

import ast
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent


@cache
def existing_tests() -> dict[str, Path]:
    """Return every test of the suite, in a module or in a class of one, and the file that it is in."""
    found: dict[str, Path] = {}
    for path in TESTS.rglob("test_*.py"):
        nodes = ast.parse(path.read_bytes()).body
        nodes += [inner for node in nodes if isinstance(node, ast.ClassDef) for inner in node.body]
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                found[node.name] = path
    return found
