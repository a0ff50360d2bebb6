"""What is promised about held-out checks: who can reach them, what a table is, and that checked code cannot pass it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from interlock.gates.sealed.heldout import HeldOutError, HeldOutFolder, HeldOutTable, Language, load_held_out
from interlock.gates.sealed.heldout_judge import HeldOutResult, judge_cases, same
from tests.refusals import raises_code
from tests.table import each_row

NONE: list[object] = []
PYTHON: dict[Language, tuple[str, ...]] = {"python": (sys.executable,), "javascript": ("node",)}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "src").mkdir(parents=True)
    return folder


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "secret"
    folder.mkdir()
    return folder


def run_in(root: Path) -> Callable[..., tuple[int | None, bool, bytes]]:
    """Return what runs a program in a folder with an empty environment and ends its process group."""

    def execute(argv: Sequence[str], *, stdin: bytes, timeout_seconds: float) -> tuple[int | None, bool, bytes]:
        process = subprocess.Popen(
            argv,
            cwd=root,
            env={"PATH": os.environ["PATH"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            output, complaints = process.communicate(stdin, timeout_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, True, b""
        if process.returncode or complaints:
            print(process.returncode, complaints)
        return process.returncode, False, output

    return execute


def table_of(
    secret: Path, checkout: Path, cases: object, function: str = "src/it.py:it", **keys: object
) -> HeldOutTable:
    path = secret / "table.json"
    path.write_text(json.dumps({"function": function, "cases": cases, **keys}))
    table = load_held_out(path, checkout=checkout)
    assert isinstance(table, HeldOutTable)
    return table


def judged(
    secret: Path, checkout: Path, code: str, cases: object, name: str = "src/it.py", **keys: object
) -> HeldOutResult:
    (checkout / name).parent.mkdir(parents=True, exist_ok=True)
    (checkout / name).write_text(code)
    table = table_of(secret, checkout, cases, f"{name}:it", **keys)
    return judge_cases(table, run_in(checkout), interpreters=PYTHON)


# -- reaching them ---------------------------------------------------------------------------------------------------


def test_a_folder_is_read_with_its_modes_and_digest(secret: Path, checkout: Path) -> None:
    (secret / "deep").mkdir()
    (secret / "deep/test_b.py").write_text("b")
    (secret / "test_a.py").write_text("a")
    (secret / "__pycache__").mkdir()
    (secret / "__pycache__/x.pyc").write_text("x")
    first = load_held_out(secret, checkout=checkout)
    assert isinstance(first, HeldOutFolder)
    assert [(file.path, file.content) for file in first.files] == [("deep/test_b.py", b"b"), ("test_a.py", b"a")]
    (secret / "test_a.py").chmod(0o755)
    second = load_held_out(secret, checkout=checkout)
    assert second.digest != first.digest
    assert load_held_out(secret, checkout=checkout) == second


@pytest.mark.parametrize(
    "how", ["inside", "around", "link", "link to the folder above", "link in an ignored folder", "link of links"]
)
def test_held_out_checks_that_an_agent_reaches_are_refused(how: str, secret: Path, checkout: Path) -> None:
    (secret / "test_a.py").write_text("a")
    path = {"inside": checkout / "src", "around": checkout.parent}.get(how, secret)
    (checkout / "src/test_b.py").write_text("b")
    if how == "link":
        (checkout / "src/to").symlink_to(secret / "test_a.py")
    if how == "link to the folder above":
        (checkout / "src/to").symlink_to("../..", target_is_directory=True)
    if how == "link in an ignored folder":
        (checkout / ".git/info").mkdir(parents=True)
        (checkout / ".git/info/to").symlink_to(secret)
    if how == "link of links":
        (checkout / "one").symlink_to("two")
        (checkout / "two").symlink_to(secret / "..")
    with raises_code(HeldOutError, "HELD102"):
        load_held_out(path, checkout=checkout)


def test_a_link_to_somewhere_else_or_to_nothing_is_no_matter(secret: Path, checkout: Path) -> None:
    (secret / "test_a.py").write_text("a")
    (checkout / "python").symlink_to(sys.executable)
    (checkout / "broken").symlink_to("nowhere")
    (checkout / "circle").symlink_to("circle")
    assert isinstance(load_held_out(secret, checkout=checkout), HeldOutFolder)


@pytest.mark.parametrize("what", ["link", "hard link", "pipe", "nothing"])
def test_a_folder_of_anything_but_plain_files_is_refused(what: str, secret: Path, checkout: Path) -> None:
    (checkout / "src/test_a.py").write_text("a")
    if what == "link":
        (secret / "test_a.py").symlink_to(checkout / "src/test_a.py")
    if what == "hard link":
        (secret / "test_a.py").hardlink_to(checkout / "src/test_a.py")
    if what == "pipe":
        os.mkfifo(secret / "test_a.py")
    with raises_code(HeldOutError, "HELD103"):
        load_held_out(secret, checkout=checkout)


# -- what a table is -------------------------------------------------------------------------------------------------


def test_cases_come_as_toml_or_in_lines_beside_the_table(secret: Path, checkout: Path) -> None:
    toml = (
        'function = "src/it.py:it"\ntolerance = 0.05\nabsolute_tolerance = 0.5\n[[cases]]\nargs = [1]\nexpected = nan\n'
    )
    (secret / "a.toml").write_text(toml)
    (secret / "b.toml").write_text('function = "src/it.py:it"\ncases = "b.jsonl"\n')
    (secret / "b.jsonl").write_text('[[1], null]\n\n{"args": [2], "raises": "ValueError", "absolute_tolerance": 1}\n')
    one = load_held_out(secret / "a.toml", checkout=checkout)
    two = load_held_out(secret / "b.toml", checkout=checkout)
    assert isinstance(one, HeldOutTable)
    assert isinstance(two, HeldOutTable)
    assert (one.program, one.function, one.language, one.timeout_seconds) == ("src/it.py", "it", "python", 20.0)
    assert (one.cases[0].tolerance, one.cases[0].absolute) == (0.05, 0.5)
    assert [case.absolute for case in two.cases] == [None, 1.0]
    assert [(case.args, case.expected, case.raises) for case in two.cases] == [
        ((1,), None, ""),
        ((2,), None, "ValueError"),
    ]
    (secret / "b.jsonl").write_text("[[1], null]")
    assert load_held_out(secret / "b.toml", checkout=checkout).digest != two.digest


GOOD = {"function": "src/it.py:it", "cases": [{"args": [1], "expected": "s3cret"}]}


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("HELD104", {"cases": []}),
        ("HELD104", {"cases": "../elsewhere.jsonl"}),
        ("HELD104", {"s3cret": 1}),
        ("HELD104", {"tolerance": True}),
        ("HELD104", {"tolerance": -1}),
        ("HELD104", {"tolerance": 0.1}),
        ("HELD104", {"absolute_tolerance": float("inf")}),
        ("HELD104", {"cases": [{"args": [1], "expected": 2.0, "tolerance": 1.0}]}),
        ("HELD104", {"timeout_seconds": 0}),
        ("HELD104", {"function": "src/it.mjs:it", "cases": [{"args": [float("nan")], "expected": 1}]}),
        ("HELD105", {"cases": ["s3cret"]}),
        ("HELD105", {"cases": [{"args": "s3cret", "expected": 1}]}),
        ("HELD105", {"cases": [{"args": [1]}]}),
        ("HELD105", {"cases": [{"args": [1], "expected": 1, "raises": "s3cret"}]}),
        ("HELD105", {"cases": [{"args": [1], "raises": ""}]}),
        ("HELD105", {"cases": [[1, 2, 3]]}),
        ("HELD106", {"function": "src/s3cret.rb:it"}),
        ("HELD106", {"function": "../s3cret.py:it"}),
        ("HELD106", {"function": "/s3cret.py:it"}),
        ("HELD106", {"function": "src/s3cret.py"}),
        ("HELD106", {"function": "src/s3cret.py:it()"}),
        ("HELD101", {"cases": "s3cret.jsonl"}),
    ],
)
def test_a_malformed_table_is_refused_without_a_word_of_what_is_in_it(
    code: str, change: dict[str, object], secret: Path, checkout: Path
) -> None:
    (secret / "s3cret.json").write_text(json.dumps(GOOD | change))
    with raises_code(HeldOutError, code) as caught:
        load_held_out(secret / "s3cret.json", checkout=checkout)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[", "[" * 100_000, '["s3cret"]', "\xff"])
def test_what_is_no_table_is_refused(text: str, secret: Path, checkout: Path) -> None:
    (secret / "s3cret.json").write_text(text, encoding="latin-1")
    with raises_code(HeldOutError, "HELD104") as caught:
        load_held_out(secret / "s3cret.json", checkout=checkout)
    assert "s3cret" not in str(caught.value)


# -- comparing -------------------------------------------------------------------------------------------------------

NAN = float("nan")


@each_row(
    ("found", "expected", "tolerance", "equal"),
    [
        (True, 1, None, False), (0, False, 1.0, False), (1, 1.0, None, True), ("1", 1, None, False),
        (None, [], None, False), ([], {}, None, False), ([1, [2]], [1, [2]], None, True), ([1, 2], [1], None, False),
        ({"a": 1}, {"a": 1, "b": None}, None, False), ({"a": [True]}, {"a": [1]}, None, False),
        (0.1 + 0.2, 0.3, None, False), (0.1 + 0.2, 0.3, 1e-9, True), (2.5, 2, 0.1, False), (3, 4, 10.0, False),
        (NAN, NAN, None, True), (NAN, 1.0, 1.0, False), (float("inf"), 10**400, 1e-9, False),
        (1.0, 10**400, 1e-9, False), (float("inf"), float("-inf"), 1.0, False), (2**53, 2**53 + 1, None, False),
    ],
)  # fmt: skip
def test_values_equal_by_type_and_value(found: object, expected: object, tolerance: float | None, equal: bool) -> None:
    assert same(found, expected, tolerance) is equal


def test_an_absolute_tolerance_is_never_relative() -> None:
    assert same(3.5, 4.0, None, 0.5)
    assert not same(3.5, 31415.9, None, 1.0)
    assert not same([3.5], [31415.9], 0.05, 1.0)
    assert same([31000.0], [31415.9], 0.05, 1.0)


def test_long_integers_are_arguments_and_results(secret: Path, checkout: Path) -> None:
    cases = "[[[" + "9" * 5000 + "], 1" + "0" * 5000 + "], [[3], 4]]"
    (checkout / "src/it.py").write_text("def it(n): return n + 1\n")
    (secret / "table.json").write_text('{"function": "src/it.py:it", "cases": ' + cases + "}")
    table = load_held_out(secret / "table.json", checkout=checkout)
    assert isinstance(table, HeldOutTable)
    assert judge_cases(table, run_in(checkout), interpreters=PYTHON).ok
    (secret / "table.json").write_text('{"function": "src/it.py:it", "cases": [[[1], ' + "9" * 100_001 + "]]}")
    with raises_code(HeldOutError, "HELD104"):
        load_held_out(secret / "table.json", checkout=checkout)


# -- honest programs -------------------------------------------------------------------------------------------------

HONEST_PYTHON = """
import collections, dataclasses, enum, os, queue
from helper import twice

print("[1, 2] on stdout when loaded")

class Colour(enum.Enum):
    RED = "red"

@dataclasses.dataclass
class Point:
    x: int
    y: float

def it(kind):
    print("noise without an end", end="")
    if kind == "error":
        raise KeyError(kind)
    return {
        "generator": (twice(n) for n in (1, 2)),
        "tuple": (1, (2.5, None)),
        "set": {10, 9, 2},
        "mixed set": {"a", 1},
        "dict": {1: "a", "b": {True: Colour.RED}},
        "items": {"b": 1, "a": 2}.items(),
        "dataclass": Point(1, float("nan")),
        "deque": collections.deque([1]),
        "text": "\\ud800é",
        "big": 10**300,
        "coroutine": later(),
    }[kind]

async def later():
    return "done"
"""
PYTHON_CASES = [
    [["generator"], [2, 4]],
    [["tuple"], [1, [2.5, None]]],
    [["set"], [2, 9, 10]],
    [["mixed set"], ["a", 1]],
    [["dict"], {"1": "a", "b": {"true": "red"}}],
    [["items"], [["b", 1], ["a", 2]]],
    [["dataclass"], {"x": 1, "y": NAN}],
    [["deque"], [1]],
    [["text"], "\ud800é"],
    [["big"], 10**300],
    [["coroutine"], "done"],
    {"args": ["error"], "raises": "KeyError"},
]


@pytest.mark.filterwarnings("ignore")
def test_results_of_python_become_json_as_documented(secret: Path, checkout: Path) -> None:
    (checkout / "src/helper.py").write_text("def twice(n): return 2 * n\n")
    assert judged(secret, checkout, HONEST_PYTHON, PYTHON_CASES) == HeldOutResult(12, 12, 0, 0, 0)


def test_a_module_of_a_package_is_imported_as_one(secret: Path, checkout: Path) -> None:
    (checkout / "src/pkg").mkdir()
    (checkout / "src/pkg/__init__.py").write_text("")
    (checkout / "src/pkg/json.py").write_text("N = 3\n")
    code = "from .json import N\nfrom pkg.json import N as again\ndef it(): return N + again\n"
    assert judged(secret, checkout, code, [[NONE, 6]], "src/pkg/queue.py").ok


HONEST_JAVASCRIPT = """
console.log('{"value": 1}');
export async function it(kind) {
  process.stdout.write("noise");
  if (kind === "error") throw new RangeError("no");
  return {
    set: new Set([3, 1]), map: new Map([[1, undefined]]), nan: [NaN, -Infinity, -0], big: 2n ** 70n,
    iterator: (function* () { yield 1; yield [2]; })(), object: { a: undefined, b: null }, typed: Uint8Array.of(7),
  }[kind];
}
"""
JAVASCRIPT_CASES = [
    [["set"], [3, 1]],
    [["map"], {"1": None}],
    [["nan"], [NAN, float("-inf"), 0]],
    [["big"], 2**70],
    [["iterator"], [1, [2]]],
    [["object"], {"b": None}],
    [["typed"], [7]],
    [["none of them"], None],
    {"args": ["error"], "raises": "RangeError"},
]


@pytest.mark.long
def test_results_of_javascript_become_json_as_documented(secret: Path, checkout: Path) -> None:
    assert judged(secret, checkout, HONEST_JAVASCRIPT, JAVASCRIPT_CASES, "src/it.mjs").ok
    code = "exports.it = (a, b) => a + b;"
    assert judged(secret, checkout, code, [[[1, 2], 3], [["a", "b"], "ab"]], "src/it.cjs").ok


@pytest.mark.long
def test_javascript_is_judged_though_the_question_comes_late(secret: Path, checkout: Path) -> None:
    (checkout / "src/it.mjs").write_text("export const it = (n) => n + 1")

    def late(argv: Sequence[str], *, stdin: bytes, timeout_seconds: float) -> tuple[int | None, bool, bytes]:
        with subprocess.Popen(argv, cwd=checkout, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            time.sleep(0.5)  # more than node takes to start
            output, _ = process.communicate(stdin, timeout_seconds)
        return process.returncode, False, output

    table = table_of(secret, checkout, [[["x" * 200_000], "x" * 200_000 + "1"]], "src/it.mjs:it")
    assert judge_cases(table, late, interpreters=PYTHON).ok


# -- dishonest ones --------------------------------------------------------------------------------------------------

NEVER_RIGHT = {
    "prints answers when it is imported": "print('{\"value\": 1}'); print(1)",
    "ends at import": "import os; os._exit(0)",
    "ends at import with an answer on every descriptor": """
import os
for number in range(3, 64):
    try: os.write(number, b'{"value": 1}\\n')
    except OSError: pass
os._exit(0)""",
    "finds the word in the memory of the probe and answers for it, several times": """
import gc, os, sys
frame = sys._getframe()
while frame:
    word = frame.f_locals.get("frame")
    if isinstance(word, str) and len(word) == 32:
        for value in ("0", "1", "2"):
            for number in range(3, 64):
                try: os.write(number, f'\\n{word}{{"value": {value}}}\\n'.encode())
                except OSError: pass
    frame = frame.f_back""",
    "patches json": "import json; json.dumps = lambda *a, **k: '{\"value\": 1}'; json.loads = lambda *a, **k: 1",
    "patches the probe": """
import sys
main = sys.modules["__main__"]
main.answered = lambda call: {"value": [0, 1, 2]}
main.Plain.of = lambda self, value, depth=0: {"value": 1}""",
    "leaves a writer behind": """
import os, time
if os.fork() == 0:
    os.setsid()
    for _ in range(200):
        for number in range(1, 64):
            try: os.write(number, b'{"value": 1}\\n')
            except OSError: pass
        time.sleep(0.001)""",
}


@pytest.mark.parametrize("how", NEVER_RIGHT)
def test_code_that_does_not_know_the_answer_does_not_pass(how: str, secret: Path, checkout: Path) -> None:
    code = NEVER_RIGHT[how] + "\ndef it(n): return n\n"
    result = judged(secret, checkout, code, [[[5], 1], [[6], 1]], timeout_seconds=2)
    assert result.passed == 0, how
    assert result.total == 2


@pytest.mark.parametrize(
    "value",
    [
        "type('Any', (), {'__eq__': lambda s, o: True, '__hash__': None})()",
        "type('Int', (int,), {'__eq__': lambda s, o: True, '__hash__': None})(9)",
        "type('List', (list,), {'__eq__': lambda s, o: True, '__len__': lambda s: 0})([9])", "True", "'1'",
        "iter(int, 1)", "b'1'", "print", "exec('import os; os._exit(0)')", "exec('raise SystemExit(0)')",
    ],
)  # fmt: skip
def test_an_object_equal_to_everything_is_judged_by_its_value(value: str, secret: Path, checkout: Path) -> None:
    result = judged(secret, checkout, f"def it(): return {value}\n", [[NONE, 1]])
    assert (result.passed, result.total) == (0, 1)


@pytest.mark.parametrize(
    "code",
    [
        "process.exit(0);",
        "JSON.stringify = () => '1'; JSON.parse = () => ({});",
        """import fs from 'node:fs'; import { syncBuiltinESMExports } from 'node:module';
        const real = fs.writeSync; fs.writeSync = (fd, data) => real(fd, String(data).replace(/:9/, ':1') + data);
        syncBuiltinESMExports();""",
        "Array.prototype.join = () => '1'; String.prototype.toString = () => '1';",
        "globalThis.String = () => '7';",
    ],
)
def test_javascript_that_does_not_know_the_answer_does_not_pass(code: str, secret: Path, checkout: Path) -> None:
    result = judged(secret, checkout, f"{code}\nexport function it() {{ return 9; }}\n", [[NONE, 1]], "src/it.mjs")
    assert (result.passed, result.total) == (0, 1)


def test_right_answers_for_the_first_calls_alone_do_not_carry_over(secret: Path, checkout: Path) -> None:
    """Each call is a process of its own, so a count starts anew and what one call saw the next does not know."""
    code = "seen = []\ndef it(n):\n    seen.append(n)\n    return len(seen)\n"
    assert judged(secret, checkout, code, [[[n], 1] for n in range(3)]).ok


@pytest.mark.long
def test_slow_calls_are_stopped_and_after_three_the_rest_is_not_run(secret: Path, checkout: Path) -> None:
    code = "def it(n):\n    while n: pass\n    return n\n"
    cases = [[[0], 0], *[[[1], 1]] * 4]
    result = judged(secret, checkout, code, cases, timeout_seconds=0.5)
    assert result == HeldOutResult(5, 1, 0, 0, 3, 1)
    assert not result.ok
    assert not HeldOutResult(0, 0, 0, 0, 0).ok


def test_nothing_but_one_call_reaches_the_checked_process(secret: Path, checkout: Path) -> None:
    (checkout / "src/it.py").write_text(
        "import gc, os, sys\n"
        "def it(n):\n"
        "    names = ('cmdline', 'environ') if os.path.exists('/proc') else ()\n"
        "    proc = [open(f'/proc/self/{name}').read() for name in names]\n"
        "    everything = [each for each in gc.get_objects() if type(each) is dict]\n"
        "    return repr((proc, dict(os.environ), os.getcwd(), sys.argv, everything))\n"
    )
    calls: list[tuple[Sequence[str], bytes]] = []
    table = table_of(secret, checkout, [[["first-argument"], "exp3cted"], [["second-argument"], "exp3cted"]])
    outputs: list[bytes] = []
    run = run_in(checkout)

    def execute(argv: Sequence[str], *, stdin: bytes, timeout_seconds: float) -> tuple[int | None, bool, bytes]:
        calls.append((argv, stdin))
        ended = run(argv, stdin=stdin, timeout_seconds=timeout_seconds)
        outputs.append(ended[2])
        return ended

    result = judge_cases(table, execute, interpreters=PYTHON)
    assert (result.failed, result.total) == (2, 2)
    assert b"first-argument" in calls[0][1]
    assert b"second-argument" in calls[1][1]
    given = [repr(call).encode() for call in calls]
    assert b"second-argument" not in given[0] + outputs[0]
    for text in (*given, *outputs):
        assert b"exp3cted" not in text
        assert table.digest.encode() not in text
        assert b"table.json" not in text
