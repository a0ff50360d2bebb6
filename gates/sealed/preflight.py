"""The base of a gate before anything is spent: its tests run bare and sealed, and what the seal breaks is reported.

A test that passes bare and fails sealed is a fault of the seal, never of the work: a dependency that is not kept, a
variable, a network. It is named with the key of `[gates.X]` that helps. What the tests of a base came to is kept by
tree and command, so that a second run of the same task does not run them again.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from interlock.core.finding import Finding
from interlock.core.process import environment_of
from interlock.gates.command import KEPT_ENVIRONMENT
from interlock.gates.errors import CollectorError
from interlock.gates.sealed import sandbox
from interlock.gates.sealed.bytecode import folder_of
from interlock.gates.sealed.case import GateCase
from interlock.gates.sealed.compare import BaseList, compare, make_base_list
from interlock.gates.sealed.dependencies import ABSOLUTE
from interlock.gates.sealed.execution import Workspace, compile_dependencies, execute, prepare, replacing, workspace
from interlock.gates.sealed.export import Plan
from interlock.gates.sealed.gate import Progress
from interlock.gates.sealed.heldout_run import load_for
from interlock.gates.sealed.listing import list_tree
from interlock.gates.sealed.loaded_code import foreign_code, own_environment
from interlock.gates.sealed.outcomes import TestRun, run_from_json
from interlock.gates.sealed.store import write

_VERSION: Final = 5
_KINDS: Final = frozenset({"unread", "incomplete", "judge", "failed", "missing", "skipped", "xfailed", "not_collected",
                           "exit_status", "nothing_ran"})  # fmt: skip
_HINTS: Final = (
    (re.compile(r"setuptools.scm|unable to detect version"),
     "env", "env, such as SETUPTOOLS_SCM_PRETEND_VERSION: the .git of an export is empty"),
    (re.compile(r"not a git repository|Command '\['git'"),
     "prepare", 'prepare = [["git", "init", "-q"], ["git", "add", "-A"]]: the .git of an export is empty'),
    (re.compile(r"Network is unreachable|Temporary failure in name resolution|ENETUNREACH|EAI_AGAIN|getaddrinfo|"
                r"Name or service not known|Max retries exceeded|ConnectionRefused|ECONNREFUSED"),
     "network", 'network = "host", or "loopback" for servers that the tests start themselves'),
    (re.compile(r"Cannot find (?:module|package)|No module named|ModuleNotFoundError|cannot find -l|"
                r"ERR_MODULE_NOT_FOUND|"
                r"no required module provides|inconsistent vendoring|missing go.sum entry|command not found"),
     "keep", "keep = [FOLDERS], of which one folder holds it; or a `prepare` step that makes it"),
    (re.compile(r"KeyError: '[A-Z][A-Z0-9_]+'|environment variable|is not set"),
     "env", 'env = { NAME = "value" }'),
    (re.compile(r"No such file or directory|FileNotFoundError|ENOENT"),
     "prepare", "keep = [FOLDERS] for files in an ignored folder, or prepare = [[…]] for files that a build makes"),
    (re.compile(r"Read-only file system|EROFS|Permission denied"),
     "prepare", "a path of the project or /tmp: nothing else can be written in a sealed gate"),
)  # fmt: skip
"""What a message of a failed test says about the key that helps; FOLDERS is replaced by the ignored folders."""

_BY_THE_LOG: Final = "keep, env, prepare or network, by what the log says; `sealed = false` gives the seal up"

_MISSING: Final = re.compile(
    r"(?:No such file or directory|FileNotFoundError|ENOENT|does not exist|not found|Cannot find|cannot open)"
)

_CACHES: Final = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", "htmlcov"})
_MAX_WORDS: Final = 300
_NO_TESTS: Final = 5
"""What pytest and unittest end with where there are no tests yet."""
_CAUSE: Final = re.compile(r"Error\b|error:|No module named|not found|Cannot find")
_ANOTHER_COMMAND: Final = (
    "Write the command that runs the tests in a shell without an active virtual environment, such as "
    'command = [".venv/bin/pytest", "-q"], and install the project there (`.venv/bin/pip install -e .`).'
)
_TAIL_BYTES: Final = 4000


@dataclass(frozen=True, slots=True)
class BaseCheck:
    """What the base of a gate came to.

    Args:
        tests: The tests of the base, as a sealed run found them.
        bare: The tests as they ran in the checkout.
        faults: What works bare and not sealed, by the key of the gate that most likely helps; the fix of a `SEAL401` is
            what to write there.
        note: Why the tests are not parsed or watched; empty where they are.
        log: Where the output of the sealed run is kept, outside the checkout.
        cached: It was known from an earlier run.
        bytecode: Digest of the record of compiled dependencies, for `GateCase`.
    """

    tests: BaseList
    bare: TestRun
    faults: tuple[Finding, ...] = ()
    note: str = ""
    log: str = ""
    cached: bool = False
    level: str = field(default_factory=sandbox.level)
    bytecode: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the check as JSON values."""
        return {
            "tests": self.tests.to_json(), "bare": asdict(self.bare), "note": self.note, "log": self.log,
            "faults": [row.to_json() for row in self.faults], "bytecode": self.bytecode,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, cached: bool = False) -> "BaseCheck":
        """Return the check that `to_json` wrote, or raise KeyError, TypeError or ValueError."""
        return cls(
            BaseList.from_json(data["tests"]), run_from_json(data["bare"]), note=str(data["note"]),
            log=str(data["log"]), cached=cached, bytecode=str(data["bytecode"]),
        )  # fmt: skip


def check_base(
    case: GateCase, *, progress: Progress = lambda _line: None, bare: bool = True, known: bool = True
) -> BaseCheck:
    """Run the tests of the base, sealed and bare, unless that is known.

    `bare`: the checkout is still the base, so that the tests can run there too. `known`: an earlier run counts.

    Raises:
        CollectorError: The command cannot be started, or the base cannot be exported.
    """
    parts = (_VERSION, case.frozen.base, case.command_digest, sandbox.level())
    key = sha256(repr(parts).encode()).hexdigest()[:40]
    path = case.base.store.folder / "results" / f"{key}.json"
    if known:
        with suppress(OSError, KeyError, TypeError, ValueError):
            return BaseCheck.from_json(json.loads(path.read_bytes()), cached=True)
    load_for(case)
    progress("the tests of the base, the tree without the work, run in a sealed copy")
    base = case.base
    plan = Plan(base, base.files, frozenset(), (), (), ())
    with case.unchanged(), workspace(case, plan, writes_bytecode=True) as here:
        failed = prepare(here)
        tests = TestRun(case.runner.name, problem=failed) if failed else execute(here, keep_going=True).tests
        tests = replace(tests, touched=tuple(dict.fromkeys((*tests.touched, *sorted(replacing(here))))))
        again = execute(here, collect_only=True).tests if case.runner.collects and not failed else None
        bytecode = compile_dependencies(here)
    log, (output, _) = f"{path}.log", here.output.finish()
    write(log, output)
    tail = output[-_TAIL_BYTES:].decode("utf-8", "replace")
    if failed:
        last = tail.strip().rpartition("\n")[2]
        message = f"A command of `prepare` failed on the base: {failed}; {last[:_MAX_WORDS] or 'no output'}."
        fix = (
            "Correct it; it runs in an export, as the tests do, and finds the kept folders and the variables of `env`."
        )
        return BaseCheck(BaseList(tests), tests, (Finding("SEAL410", "error", "prepare", message, fix=fix),), log=log)
    listed = make_base_list(tests, again)
    if not bare:
        return _kept(path, BaseCheck(listed, tests, (), case.runner.note, log, bytecode=bytecode))
    progress("the same tests run in the checkout itself, not sealed")
    unsealed = _bare(case, bytecode)
    faults = tuple(_faults(unsealed, tests, tail, _folders(case), partial(_is_unseen, case)))
    faults = faults or _unusable(case, tests, tail)
    return _kept(path, BaseCheck(listed, unsealed, faults, case.runner.note, log, bytecode=bytecode))


def _kept(path: Path, check: BaseCheck) -> BaseCheck:
    """Keep what a base came to, unless the seal broke something: that may be the machine's fault of the moment."""
    if not check.faults:
        write(path, json.dumps(check.to_json(), separators=(",", ":")).encode())
    return check


class _Bare(Workspace):
    """The checkout itself, as a person runs the command in it. Bytecode that lies there is not read."""

    __slots__ = ()

    @property
    def root(self) -> str:
        return os.fspath(self.case.root)

    @property
    def home(self) -> str:
        return f"{self.private}/home"

    def environment(self) -> dict[str, str]:
        known = environment_of(KEPT_ENVIRONMENT)
        own = {"PYTHONPYCACHEPREFIX": self.bytecode or f"{self.private}/bytecode", "PYTHONDONTWRITEBYTECODE": "1"}
        return {**known, "PATH": self.case.path, **own, **self.case.seal.env}

    def _program(self, argv: Sequence[str]) -> str:
        return argv[0]


def _bare(case: GateCase, compiled: str) -> TestRun:
    with sandbox.private_folder() as private:
        os.mkdir(f"{private}/home")
        plan = Plan(case.base, {}, frozenset(), (), (), ())
        here = _Bare(case, plan, case.base.top, private, folder_of(compiled), closed=False)
        try:
            # What `prepare` makes belongs into exports alone.
            return execute(here, keep_going=True).tests
        except CollectorError as error:
            return TestRun(case.runner.name, problem=error.message)


def _is_unseen(case: GateCase, path: str) -> bool:
    seen = (os.fspath(case.base.top), *sandbox.SYSTEM, *case.frozen.kept, *sandbox.PRIVATE, "/proc", "/dev")
    return os.path.exists(path) and not sandbox.is_below(path, seen)


def _faults(
    bare: TestRun, sealed: TestRun, tail: str, folders: str, unseen: Callable[[str], bool] = lambda _: False
) -> list[Finding]:
    """Return what passes bare and not sealed.

    `tail` is the end of the sealed run's output, `folders` are words of TOML for `keep`, and `unseen` returns whether a
    path of the machine is there, and not seen in a sealed gate.
    """
    if bare.problem or bare.judge:
        return []
    never = frozenset[str]().__contains__
    listed = make_base_list(bare)
    wrong_bare = {(row.code, row.field) for row in compare(listed, bare, may_change=never, changed=never).faults}
    passed = {case.id for case in bare.cases if case.outcome in ("passed", "xpassed")}
    found = [
        row
        for row in compare(listed, sealed, may_change=never, changed=never).faults
        if row.code in _KINDS
        and (row.code, row.field) not in wrong_bare
        and (not row.field or row.field in passed or row.code == "not_collected")
    ]
    if not bare.parsed and bare.exit_status != 0:
        return [_sealing_fault("", tail, "", folders, unseen)] if _outside(tail, unseen) else []
    known = dict(bare.broken)
    messages = {case.id: case.message for case in sealed.cases} | dict(sealed.broken)
    return [
        _sealing_fault(row.field, row.found, messages.get(row.field, "") if row.field else tail, folders, unseen)
        for row in found
        if row.field not in known
    ]


def _unusable(case: GateCase, tests: TestRun, tail: str) -> tuple[Finding, ...]:
    """Return why no work could ever pass: other code is tested, or no test can be collected at all."""
    if found := foreign_code(case, case.base.files, tests.loaded):
        message = f"Other code is tested: {found}."
        return (Finding("SEAL302", "error", "command", message, fix=own_environment(case)),)
    none = tests.parsed and not tests.cases and not tests.broken and not tests.problem
    if not none or tests.exit_status in (None, _NO_TESTS) or (tests.complete and tests.exit_status == 0):
        return ()
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    why = next((line for line in reversed(lines) if _CAUSE.search(line)), lines[-1] if lines else "no output")
    message = f"No test can run, in the checkout or sealed: exit status {tests.exit_status}; {why[:_MAX_WORDS]}."
    return (Finding("SEAL408", "error", "command", message, fix=_ANOTHER_COMMAND),)


def _sealing_fault(test: str, found: str, message: str, folders: str, unseen: Callable[[str], bool]) -> Finding:
    """Return that a test, or the whole command, works bare and not sealed, and the key that most likely helps."""
    text = f"{found}\n{message}"
    rows = ((key, fix.replace("FOLDERS", folders)) for pattern, key, fix in _HINTS if pattern.search(text))
    key, fix = next(rows, ("keep", _BY_THE_LOG))
    if missing := _outside(text, unseen):
        key, fix = "keep", f"keep = [{folders}, {json.dumps(missing, ensure_ascii=False)}], or a folder around it"
    last = found.strip().rpartition("\n")[2][:200] or "no message"
    message = f"{test or 'the command'} passes in the checkout and fails sealed: {last}."
    return Finding("SEAL401", "error", key, message, fix=fix)


def _outside(text: str, unseen: Callable[[str], bool]) -> str:
    """Return a path of the machine that a text says is missing; empty where it says no such thing."""
    return next(filter(unseen, ABSOLUTE.findall(text)), "") if _MISSING.search(text) else ""


def _folders(case: GateCase) -> str:
    """Return the kept folders and the ignored ones that might be, by path from the root, as words of TOML."""
    base = case.base
    kept = [path.removeprefix(f"{base.top}/") for path in case.kept]
    missing = [
        path
        for path in list_tree(base.top, base.root).ignored
        if _CACHES.isdisjoint(path.split("/")) and not any(f"{path}/".startswith(f"{row}/") for row in kept)
    ]
    names = [base.outside(path) for path in (*sorted(kept), *sorted(missing))]
    return ", ".join(json.dumps(name, ensure_ascii=False) for name in names if name)[:_MAX_WORDS] or '".venv"'
