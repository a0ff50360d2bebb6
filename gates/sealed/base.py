"""The tests of a base, before anything is spent: run sealed, compared with a bare run, and what is the product.

Answers T1. What a base came to is kept by its tree, the command and its settings, unless it could not be read, was not
finished, or the set-up is at fault: that may be the machine's fault of the moment. `check`, `gate` and `run` ask for
the same thing, so the answer does not depend on who asked first.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from interlock.core.finding import Finding
from interlock.gates.sealed import sandbox
from interlock.gates.sealed.bare import bare_faults, foreign_code
from interlock.gates.sealed.case import GateCase
from interlock.gates.sealed.compare import BaseTests
from interlock.gates.sealed.execution import Execution, Workspace, execute, workspace
from interlock.gates.sealed.listings import listed_product
from interlock.gates.sealed.outcomes import BAD, TestRun
from interlock.gates.sealed.product import Product, derive, inline_tests, keyed
from interlock.gates.sealed.store import write

Progress = Callable[[str], None]
"""Takes a line about what the gate does now."""

_VERSION: Final = 1
_TAIL_BYTES: Final = 4000
_MAX_WORDS: Final = 300
_CAUSE: Final = re.compile(r"Error\b|error:|No module named|not found|Cannot find")
_NO_TESTS: Final = 5
"""What pytest and unittest end with where there are no tests yet."""
_MAKE: Final = re.compile(r"^make(?:\[\d+\])?: (?:'.*' is up to date|Nothing to be done for '.*')\.$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class BaseCheck:
    """What the base of a gate came to.

    Args:
        tests: The tests of the base, as a sealed run found them.
        product: What of the work is judged.
        faults: Why the gate cannot judge; the fix says what to write into its table.
        note: Why the tests are not known one by one; empty where they are.
        log: Where the output of the sealed run is kept, outside the checkout.
        inline: Files that hold their own tests, which are not sealed.
        bytecode: Digest of the compiled dependencies.
        cached: It was known from an earlier run.
    """

    tests: BaseTests
    product: Product
    faults: tuple[Finding, ...] = ()
    note: str = ""
    log: str = ""
    inline: tuple[str, ...] = ()
    bytecode: str = ""
    cached: bool = False
    level: str = field(default_factory=sandbox.level)

    def to_json(self) -> dict[str, Any]:
        """Return what is kept of the check, as JSON values."""
        return {name: value for name, value in asdict(self).items() if name not in ("faults", "cached")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "BaseCheck":
        """Return the check that `to_json` wrote, or raise KeyError, TypeError or ValueError."""
        fields: dict[str, Any] = {**data, "inline": tuple(data["inline"]), "cached": True}
        fields |= {"tests": BaseTests.from_json(data["tests"]), "product": Product(**data["product"])}
        return cls(**fields)

    @property
    def digest(self) -> str:
        """What a run keeps of it."""
        values = {"run": asdict(self.tests.run), "product": asdict(self.product), "bytecode": self.bytecode}
        return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def check_base(case: GateCase, *, progress: Progress = lambda _line: None, known: bool = True) -> BaseCheck:
    """Run the tests of the base, sealed, and bare where something did not pass, unless that is known.

    Raises:
        CollectorError: The command cannot be started, or the base cannot be exported.
    """
    path = _place(case)
    if known:
        with suppress(OSError, KeyError, TypeError, ValueError):
            return BaseCheck.from_json(json.loads(path.read_bytes()))
    progress("the tests of the base, the tree without the work, run in a sealed copy")
    bytecode = bytecode_folder(case)
    shutil.rmtree(bytecode, ignore_errors=True)
    bytecode.mkdir(parents=True, exist_ok=True)
    with workspace(case, case.frozen.base, bytecode=os.fspath(bytecode), writes_bytecode=True) as here:
        done = execute(here, keep_going=True)
        product = _product(case, here, done.tests)
        root = here.root
    case.check_dependencies()
    output, log = done.output.finish()[0], f"{path}.log"
    write(log, output)
    check = BaseCheck(BaseTests(done.tests), product, log=log, bytecode=tree_digest(bytecode))
    check = replace(check, inline=tuple(sorted(inline_tests(done.tests, root))), note=_note(done))
    faults = _faults(case, done, product, root, output[-_TAIL_BYTES:].decode("utf-8", "replace"), progress)
    check = replace(check, faults=tuple(faults))
    if not faults and not done.tests.judge and not done.tests.problem and done.tests.complete:
        write(path, json.dumps(check.to_json(), separators=(",", ":")).encode())
        case.accept_places()
    return check


def confirm_base(case: GateCase, check: BaseCheck, progress: Progress = lambda _line: None) -> BaseCheck:
    """Run the tests of the base a second time, unless that was done: which of them are flaky or have unstable ids."""
    if check.tests.again is not None:
        return check
    progress("the tests of the base run once more, to tell flaky ones apart")
    with workspace(case, case.frozen.base, bytecode=usable_bytecode(case, check.bytecode)) as here:
        done = execute(here, keep_going=True)
    if done.unprepared:
        return check
    confirmed = replace(check, tests=BaseTests(check.tests.run, done.tests))
    if check.cached or not check.faults:
        write(_place(case), json.dumps(confirmed.to_json(), separators=(",", ":")).encode())
    return confirmed


def _place(case: GateCase) -> Path:
    parts = (_VERSION, case.frozen.base, case.digest, sandbox.level())
    return case.store.folder / "results" / f"{sha256(repr(parts).encode()).hexdigest()[:40]}.json"


def _product(case: GateCase, here: Workspace, tests: TestRun) -> Product:
    seal = case.seal
    if seal.product:
        return keyed(seal.product, seal.tests, case.files, tests, here.root)
    if not tests.sessions:
        return listed_product(case, here)
    return derive(tests, here.root, case.files, case.environment.packages.names, seal.tests)


def _note(done: Execution) -> str:
    if done.tests.runner == "exit" and not done.unprepared:
        return (
            "Nobody observes this command: its exit status decides. A product that ends the process with status 0 "
            "before a test runs would pass."
        )
    if not done.tests.sessions and not done.unprepared:
        return "The tests are read from a report, which the process of the tested code writes, and which is believed."
    return ""


def _faults(
    case: GateCase, done: Execution, product: Product, root: str, tail: str, progress: Progress
) -> list[Finding]:
    tests = done.tests
    if done.unprepared:
        last = tail.strip().rpartition("\n")[2][:_MAX_WORDS] or "no output"
        message = f"A command of `prepare` failed on the base: {done.unprepared}; {last}."
        fix = "Correct it; it runs in an export, as tests do, and finds what `keep` names and the variables of `env`."
        return [Finding("SEAL410", "error", "prepare", message, fix=fix)]
    if (foreign := foreign_code(case, tests, root)) is not None:
        return [foreign]
    if not tests.passes or tests.judge:
        progress("the same tests run in the checkout's place, not sealed")
        if found := bare_faults(case, tests, tail) or _without_content(case):
            return found
    if tests.judge or tests.problem:
        message = f"The tests of the base cannot be watched: {tests.judge or tests.problem}."
        return [Finding("SEAL403", "error", "command", message, fix="Remove what causes it.")]
    if tests.runner == "exit" and (said := _MAKE.search(tail)):
        message = f"The command runs no test: {said[0]} `make` takes a file for the target."
        fix = "Declare the target in the Makefile: `.PHONY: test`, and commit it."
        return [Finding("SEAL408", "error", "command", message, fix=fix)]
    none = tests.parsed and not tests.cases and not tests.broken
    if none and tests.exit_status not in (None, 0, _NO_TESTS):
        message = f"No test can run, in the checkout or sealed: exit status {tests.exit_status}; {_cause(tail)}."
        fix = (
            "Write the command that runs the tests in a shell without an active virtual environment, such as "
            'command = [".venv/bin/pytest", "-q"], and install the project there (`.venv/bin/pip install -e .`).'
        )
        return [Finding("SEAL408", "error", "command", message, fix=fix)]
    return _without_product(case, tests, product, tail)


def _without_content(case: GateCase) -> list[Finding]:
    """Return that tests fail because a file is a pointer of git-lfs: they name it when it is not there at all."""
    pointers = case.base.below(case.store.pointers(case.frozen.base))
    if not pointers:
        return []
    tree = case.store.compose(case.frozen.base, {case.base.inside(path): None for path in pointers})
    with workspace(case, tree) as here:
        tests = execute(here, keep_going=True).tests
    words = "\n".join([*(row.message for row in tests.cases if row.outcome in BAD), *(row[1] for row in tests.broken)])
    named = [path for path in pointers if os.path.basename(path) in words]
    message = f"Tests of the base need {', '.join(named[:3])}, and git-lfs has only a pointer there."
    return [Finding("SEAL133", "error", "command", message, fix="Run `git lfs pull`.")] if named else []


def _cause(tail: str) -> str:
    """Return the last line of an output that names an error, else its last line."""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    last = lines[-1] if lines else "no output"
    return next((line for line in reversed(lines) if _CAUSE.search(line)), last)[:_MAX_WORDS]


def _without_product(case: GateCase, tests: TestRun, product: Product, tail: str) -> list[Finding]:
    """Return that the keys are needed, with the lines to write; patterns that match nothing yet may match new files."""
    if case.seal.product or (product and (tests.sessions or tests.runner in ("go", "nextest"))):
        return []
    folders = sorted({path.split("/")[0] for path in case.files if "/" in path and not path.startswith(".")})
    test = [name for name in folders if name.lower().startswith(("test", "spec"))]
    rest = [f"{name}/**" for name in folders if name not in test][:6] or ["src/**"]
    lines = f"product = {json.dumps(rest)} and tests = {json.dumps([f'{name}/**' for name in test])}"
    why = "nobody observes the command" if not tests.sessions else "its run loaded no file of the project but tests"
    message, first = f"What of the work is judged is not known: {why}.", ""
    if tests.exit_status:
        message += f" It ended with status {tests.exit_status}: {_cause(tail)}."
        first = "If tests should have run, correct that first. " if not tests.sessions else ""
    fix = f"{first}Say what the work may change and what tests are, such as {lines}; the rest keeps its base content."
    return [Finding("SEAL412", "error", "product", message, fix=fix)]


# -- compiled dependencies --------------------------------------------------------------------------------------------
# Python reads compiled code from a folder of ours alone. A run of the base fills it, and leaves nothing of the tree
# itself there, since a work of the same second and size would be taken for it.


def bytecode_folder(case: GateCase) -> Path:
    """Return the folder of the compiled dependencies of a gate."""
    parts = (case.frozen.base, case.digest)
    return case.store.folder / "bytecode" / sha256(repr(parts).encode()).hexdigest()[:32]


def usable_bytecode(case: GateCase, digest: str) -> str:
    """Return the folder of compiled dependencies where it is what the base's run left; else nothing."""
    folder = bytecode_folder(case)
    return os.fspath(folder) if digest and tree_digest(folder) == digest else ""


def tree_digest(folder: Path) -> str:
    """Return a digest of the files below a folder; empty where there is none."""
    digest, number = sha256(), 0
    for path in sorted(folder.rglob("*.pyc")):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(folder)}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
        number += 1
    return digest.hexdigest() if number else ""
