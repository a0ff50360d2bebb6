"""The programs: a right version, a wrong one, visible tests that distinguish them, and held-out cases.

One of ours is a TOML file in `programs/`: `good`, and `bad` or `find` and `replace`; `visible` and `heldout`, a line of
JSON `[args, expected]` for each case; `test`, or the visible cases are written to a file that a general test reads.
Those of QuixBugs are read from its folder: even rows are visible, odd rows are held out.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

Language: TypeAlias = Literal["python", "javascript"]
Row: TypeAlias = tuple[list[Any], Any]

OWN: Final = Path(__file__).with_name("programs")
DATA: Final[Mapping[Language, str]] = {"python": "tests/cases.json", "javascript": "test/cases.json"}
LOADER: Final = "tests/load_cases.py"
COMMANDS: Final[Mapping[Language, tuple[str, ...]]] = {
    "python": ("python", "-m", "pytest", "-q"),
    "javascript": ("node", "--test"),
}

_LOAD: Final = """
import json
from pathlib import Path


def load_cases():
    with Path(__file__).with_name("cases.json").open() as file:
        return [json.loads(line) for line in file]
"""
_PYTHON_TEST: Final = """
import pytest

from {name} import {function}
from load_cases import load_cases


@pytest.mark.parametrize("args,expected", load_cases())
def test_{name}(args, expected):
    assert {call} == {expected}
"""
_NODE_TEST: Final = """
import assert from "node:assert/strict";
import {{ readFileSync }} from "node:fs";
import {{ test }} from "node:test";

import {{ {function} }} from "../{name}.mjs";

const lines = readFileSync(new URL("cases.json", import.meta.url), "utf8").trim().split("\\n");

for (const [args, expected] of lines.map((line) => JSON.parse(line))) {{
  test(`{function} of ${{JSON.stringify(args)}}`, () => {{
    assert.deepEqual({function}(...args), expected);
  }});
}}
"""


@dataclass(frozen=True, slots=True)
class Program:
    """One program and what is known about it.

    Args:
        name: Its name, and that of its file.
        language: Of the program and its tests.
        function: What is called.
        good: The right version.
        bad: The wrong one, with which each trial begins.
        files: Tests, data and build files by path.
        tests: The path of the test file.
        command: What runs the visible tests; its program is looked up on PATH.
        visible: Cases that the tests have.
        held_out: Cases that they have not.
        tolerance: Of the held-out cases.
    """

    name: str
    language: Language
    function: str
    good: str
    bad: str
    files: Mapping[str, str] = field(repr=False)
    tests: str
    command: tuple[str, ...]
    visible: Sequence[Row] = field(repr=False)
    held_out: Sequence[Row] = field(repr=False)
    tolerance: float | None = None

    @property
    def source(self) -> str:
        """Return the path of the program, which is the scope of the task."""
        return f"{self.name}.{'py' if self.language == 'python' else 'mjs'}"


def _rows(lines: str) -> list[Row]:
    return [(args, expected) for args, expected in map(json.loads, filter(None, lines.splitlines()))]


def _lines(rows: Sequence[Row]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def own_programs() -> list[Program]:
    """Read the programs of the repository."""
    return [_own(path) for path in sorted(OWN.glob("*.toml"))]


def _own(path: Path) -> Program:
    table = tomllib.loads(path.read_text("utf-8"))
    language: Language = table.get("language", "python")
    name, function, good = path.stem, table["function"], table["good"].lstrip()
    visible = _rows(table["visible"])
    command = tuple(table.get("command", COMMANDS[language]))
    python = language == "python"
    tests = f"tests/test_{name}.py" if python else f"test/{name}.test.mjs"
    files: dict[str, str] = dict(table.get("files", {}))
    if "test" in table:
        files[tests] = table["test"].lstrip()
    else:
        files[DATA[language]] = _lines(visible)
        call = f"{function}(*args)"
        general = _PYTHON_TEST if python else _NODE_TEST
        files[tests] = general.format(name=name, function=function, call=call, expected="expected").lstrip()
        if python:
            files[LOADER] = _LOAD.lstrip()
    if command[0] == "make":
        files["Makefile"] = "-include .env\nexport\n\ntest:\n\t@python -m pytest -q\n"
    if not python:
        package = {"name": name.replace("_", "-"), "version": "1.0.0", "scripts": {"test": "node --test"}}
        files["package.json"] = json.dumps(package, indent=2) + "\n"
    bad = table["bad"].lstrip() if "bad" in table else good.replace(table["find"], table["replace"])
    if bad == good:
        raise ValueError(f"{path.name}: the wrong version is the right one")
    return Program(
        name=name,
        language=language,
        function=function,
        good=good,
        bad=bad,
        files=files,
        tests=tests,
        command=command,
        visible=visible,
        held_out=_rows(table["heldout"]),
        tolerance=table.get("tolerance"),
    )


# -- QuixBugs --------------------------------------------------------------------------------------------------------

QUIXBUGS: Final = (
    "bitcount",
    "bucketsort",
    "find_first_in_sorted",
    "find_in_sorted",
    "flatten",
    "gcd",
    "get_factors",
    "hanoi",
    "is_valid_parenthesization",
    "kheapsort",
    "knapsack",
    "kth",
    "lcs_length",
    "levenshtein",
    "lis",
    "longest_common_subsequence",
    "max_sublist_sum",
    "mergesort",
    "next_palindrome",
    "next_permutation",
    "pascal",
    "possible_change",
    "powerset",
    "rpn_eval",
    "shunting_yard",
    "sieve",
    "sqrt",
    "subsequences",
    "to_base",
    "wrap",
)
"""Those whose wrong version fails the visible rows and whose right version passes them."""

_SLOW: Final = (6404180, "amanaplanacanalpanama")
"""First arguments of the two rows that the tests of QuixBugs leave out, because they take minutes."""
_LISTS: Final = ("flatten", "kheapsort")
_TUPLES: Final = ("hanoi",)


def quixbugs_programs(folder: Path) -> list[Program]:
    """Read the programs of QuixBugs.

    Raises:
        OSError: The folder has not the files of QuixBugs.
    """
    return [_quixbug(folder, name) for name in QUIXBUGS]


def _quixbug(folder: Path, name: str) -> Program:
    rows = _rows((folder / f"json_testcases/{name}.json").read_text("utf-8"))
    visible, held_out = ([row for row in rows[start::2] if row[0][0] not in _SLOW] for start in (0, 1))
    call = f"list({name}(*args))" if name in _LISTS else f"{name}(*args)"
    expected = "[tuple(each) for each in expected]" if name in _TUPLES else "expected"
    if name == "sqrt":
        expected = "pytest.approx(expected, abs=args[-1])"
    test = _PYTHON_TEST.format(name=name, function=name, call=call, expected=expected).lstrip()
    return Program(
        name=name,
        language="python",
        function=name,
        good=(folder / f"correct_python_programs/{name}.py").read_text("utf-8"),
        bad=(folder / f"python_programs/{name}.py").read_text("utf-8"),
        files={f"tests/test_{name}.py": test, LOADER: _LOAD.lstrip(), DATA["python"]: _lines(visible)},
        tests=f"tests/test_{name}.py",
        command=COMMANDS["python"],
        visible=visible,
        held_out=held_out,
        tolerance=0.01 if name == "sqrt" else None,
    )
