"""How a table is judged: results of honest code as JSON, and code that does not know the answers does not pass."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from interlock.gates.heldout import HeldOutTable, judge_cases, load_held_out
from interlock.gates.heldout.judge import PROBES, same

NAN, INFINITY = float("nan"), float("inf")


@dataclass
class Project:
    """A program with a function `it` and a table for it; runs calls, and keeps what goes in and comes out."""

    node: tuple[str, ...] = ("node",)
    seen: list[bytes] = field(default_factory=list[bytes])

    def __call__(self, argv: Sequence[str], *, stdin: bytes, timeout_seconds: float) -> tuple[int | None, bool, bytes]:
        try:
            ended = subprocess.run(argv, input=stdin, stdout=subprocess.PIPE, timeout=timeout_seconds, check=False)
        except subprocess.TimeoutExpired:
            return None, True, b""
        self.seen.append(repr(argv).encode() + stdin + ended.stdout)
        return ended.returncode, False, ended.stdout

    def judged(self, code: str, cases: Sequence[Any], name: str = "src/it.py", **keys: object) -> dict[str, int]:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(code)
        rows: list[Any] = [case if isinstance(case, dict) else {"args": case[0], "expected": case[1]} for case in cases]
        Path("../table.json").write_text(json.dumps({"function": f"{name}:it", "cases": rows, **keys}))
        table = load_held_out(Path("../table.json"), checkout=Path())
        assert isinstance(table, HeldOutTable)
        interpreter = (sys.executable,) if table.language == "python" else self.node
        return judge_cases(table, self, interpreter=interpreter, probes=str(PROBES), jobs=2)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "root").mkdir()
    monkeypatch.chdir(tmp_path / "root")
    return Project()


def counts(total: int, **parts: int) -> dict[str, int]:
    return {"total": total, "passed": 0, "failed": 0, "errors": 0, "timed_out": 0, "not_run": 0} | parts


def equal(*pairs: tuple[JsonValue, JsonValue], tolerance: float = 0) -> list[tuple[JsonValue, JsonValue]]:
    return [pair for pair in pairs if same(*pair, tolerance)]


def test_values_equal_by_type_and_value() -> None:
    assert len(equal((1, 1.0), ([1, [2]], [1, [2]]), (NAN, NAN), (None, None))) == 4
    assert equal((True, 1), ("1", 1), (None, []), ([], {}), ({"a": [True]}, {"a": [1]})) == []
    assert equal(([1, 2], [1]), ({"a": 1}, {"a": 1, "b": None}), (0.1 + 0.2, 0.3), (2.0**53, 2**53 + 1)) == []


def test_a_tolerance_is_for_floats() -> None:
    assert len(equal((0.1 + 0.2, 0.3), (0.001, 0), tolerance=0.09)) == 2
    numbers = ((30, 31), (True, 1.0), (NAN, 1.0), (1.0, NAN), (1.0, 10**400), (INFINITY, -INFINITY))
    assert equal(*numbers, tolerance=0.09) == []


PYTHON = """
import collections, dataclasses, enum, sys, types
print("[1, 2] on stdout when loaded")
Colour = enum.Enum("Colour", {"RED": "red"})
@dataclasses.dataclass
class Point: x: "int"; y: "float"
def late(): yield {}[1]
async def later(): return "done"
def everything(): return {
    "generator": (2 * n for n in (1, 2)), "tuple": (1, (2.5, None)), "set": {10, 9, 2}, "pairs": {(2, 1), (1, 2)},
    "keys": {1: "a", True: Colour.RED}, "items": {"b": 1, "a": 2}.items(), "deque": collections.deque([1]),
    "mapping": types.MappingProxyType({"a": Point(1, float("nan"))}), "text": "\\ud800é",
}
def it(expression):
    print("noise without an end", end="")
    return eval(expression)
"""
EVERYTHING = """{
    "generator": [2, 4], "tuple": [1, [2.5, null]], "set": [2, 9, 10], "pairs": [[1, 2], [2, 1]], "keys": {"1": "red"},
    "items": [["b", 1], ["a", 2]], "deque": [1], "mapping": {"a": {"x": 1, "y": NaN}}, "text": "\\ud800é"
}"""


def test_results_of_python_become_json_as_documented(project: Project) -> None:
    values = [[["everything()"], json.loads(EVERYTHING)], [["later()"], "done"], [["map(abs, [-1])"], [1]]]
    errors = {"late()": "KeyError", "sys.exit(0)": "SystemExit", "abs('')": "TypeError"}
    cases = values + [{"args": [code], "raises": name} for code, name in errors.items()]
    assert project.judged(PYTHON, cases) == counts(6, passed=6)


def test_a_module_is_imported_in_its_package_and_otherwise_by_its_path(project: Project) -> None:
    for name, text in {"src/pkg/__init__.py": "", "src/pkg/json.py": "N = 3\n", "src/json/__init__.py": ""}.items():
        project.judged(text, [[[1], 1]], name)
    code = "from .json import N\nfrom pkg.json import N as again\ndef it(): return N + again\n"
    assert project.judged(code, [[(), 6]], "src/pkg/queue.py") == counts(1, passed=1)
    assert project.judged("def it(): return 7\n", [[(), 7]], "math.py") == counts(1, passed=1)
    assert project.judged("def it(): return 7\n", [[(), 7]], "src/json/tool.py") == counts(1, errors=1)


JAVASCRIPT = """
console.log('{"value": 1}');
export async function it(kind) {
  process.stdout.write("noise");
  if (kind === "error") throw new RangeError("no");
  const circle = {}; circle.it = circle;
  return kind === "circle" ? circle : {
    set: new Set([3, 1]), map: new Map([[1, null]]), nan: [NaN, -Infinity, -0], big: 2n ** 70n, date: new Date(0),
    iterator: (function* () { yield 1; yield [2]; })(), undefined: { a: undefined, b: null }, typed: Uint8Array.of(7),
  };
}
"""
ALL_OF_IT = """{
    "set": [3, 1], "map": {"1": null}, "nan": [NaN, -Infinity, 0], "big": 1180591620717411303424, "iterator": [1, [2]],
    "date": "1970-01-01T00:00:00.000Z", "undefined": {"b": null}, "typed": [7]
}"""


@pytest.mark.long
def test_results_of_javascript_become_json_as_documented(project: Project) -> None:
    errors = [{"args": [kind], "raises": "RangeError"} for kind in ("error", "circle")]
    cases = [[["all"], json.loads(ALL_OF_IT)], *errors]
    assert project.judged(JAVASCRIPT, cases, "src/it.mjs") == counts(3, passed=2, errors=1)
    project.node = ("sh", "-c", '(sleep 0.5; cat) | "$0" "$@"', "node")  # the question comes when node has started
    text = "x" * 200_000
    assert project.judged("exports.it = (a) => a + 1;", [[[text], text + "1"]], "it.cjs") == counts(1, passed=1)


NO_ANSWER = {
    "ends at import": "raise SystemExit(0)",
    "answers several times for the word that it found": """
import os, sys
frame = sys._getframe()
while "word" not in frame.f_locals: frame = frame.f_back
for number in range(3, 64):
    try: os.write(number, f'\\n{frame.f_locals["word"]}{{"value": 1}}\\n'.encode())
    except OSError: pass
""",
    "answers with a value and an error": 'import json; json.dumps = lambda *_, **__: \'{"value": 1, "raised": "E"}\'',
}


@pytest.mark.parametrize("name", NO_ANSWER)
def test_code_without_exactly_one_answer_has_none(name: str, project: Project) -> None:
    cases = [[[5], 1], {"args": [6], "raises": "E"}]
    assert project.judged(NO_ANSWER[name] + "\ndef it(n): return n\n", cases) == counts(2, errors=2)


def test_an_object_equal_to_everything_is_judged_by_its_value(project: Project) -> None:
    code = "equal = {'__eq__': lambda self, other: True, '__hash__': None}\ndef it(text): return eval(text)\n"
    values = ["type('Int', (int,), equal)(9)", "type('List', (list,), equal)([9])", "True", "'1'"]
    without = ["type('Any', (), equal)()", "iter(int, 1)", "b'1'", "print", "__import__('os')._exit(0)", "exit(0)"]
    cases = [[[expression], 1] for expression in values + without]
    assert project.judged(code, cases) == counts(10, failed=4, errors=6)


@pytest.mark.long
def test_slow_calls_are_stopped_and_after_three_the_rest_is_not_run(project: Project) -> None:
    code = "def it(n):\n    while n: pass\n"
    result = project.judged(code, [[[0], None], *[[[1], 1]] * 9], timeout_seconds=0.5)
    assert result in (counts(10, passed=1, timed_out=late, not_run=9 - late) for late in (3, 4))


def test_nothing_but_one_call_reaches_the_checked_process(project: Project) -> None:
    code = """
import gc, os, sys
def it(n):
    proc = [open(f"/proc/self/{name}").read() for name in ("cmdline", "environ") if os.path.exists("/proc")]
    return repr((proc, dict(os.environ), os.getcwd(), sys.argv, [row for row in gc.get_objects() if type(row) is dict]))
"""
    cases = [[["first-argument"], "exp3cted"], [["second-argument"], "exp3cted"]]
    assert project.judged(code, cases) == counts(2, failed=2)
    assert any(b"first-argument" in text for text in project.seen)
    assert [text for text in project.seen if b"first-argument" in text and b"second-argument" in text] == []
    assert [word for word in (b"exp3cted", b"table.json") if word in b"".join(project.seen)] == []
