"""The tests of a base, before anything is spent: run sealed, compared with a bare run, and what is the product.

Answers T1: a wrong configuration must never be called a fault of the code. Where a test does not pass sealed, the same
tree runs once more at the checkout's path with the whole machine around it, its network, the user's variables, what
git ignores, and no observer, so that what the observer breaks is found as well. What passes bare and fails sealed is a
fault of the set-up. pytest writes a JUnit report for this; of other commands the exit status counts.

What a base came to is kept by its tree, the command and its settings, unless it could not be read, was not finished, or
the set-up is at fault: that may be the machine's fault of the moment. `check`, `gate` and `run` ask for the same thing,
so the answer does not depend on who asked first.
"""

import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from interlock.core.finding import Finding
from interlock.core.locks import locked
from interlock.gates.command import Output
from interlock.gates.sealed import sandbox
from interlock.gates.sealed.case import GateCase
from interlock.gates.sealed.compare import PARAMETERS, BaseTests
from interlock.gates.sealed.environment import files_in
from interlock.gates.sealed.execution import Execution, Workspace, execute, workspace
from interlock.gates.sealed.npm import NODE_TESTS
from interlock.gates.sealed.outcomes import GOOD, TestRun
from interlock.gates.sealed.product import Product, derive, inline_tests, keyed
from interlock.gates.sealed.sandbox import Bind, Box, is_below
from interlock.gates.sealed.store import write

Progress = Callable[[str], None]
"""Takes a line about what the gate does now."""

# Part of the name of every kept result: raise it where `BaseCheck` gets another shape or a run another meaning.
_VERSION: Final = 4
_TAIL_BYTES: Final = 4000
_MAX_WORDS: Final = 300
# Each is a mount of the bare run, which bubblewrap makes one by one; what is left out can only cost a hint.
_MAX_BINDS: Final = 200
_MAX_FAULTS: Final = 20
_LIMIT_SECONDS: Final = 120.0
_NODE: Final = ("node", "jest", "vitest")
_NO_TESTS: Final = 5
"""What pytest and unittest end with where there are no tests yet."""
_CAUSE: Final = re.compile(r"Error\b|error:|No module named|not found|Cannot find")
_COMMITTED: Final = (
    ("git", "init", "-q"),
    ("git", "add", "-A"),
    ("git", "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", "base"),
)
_HINTS: Final = (
    (
        re.compile(r"not a git repository|Command '\['git'|unable to detect version"),
        f"prepare = {json.dumps(_COMMITTED)}: the .git of an export is empty",
    ),
    (
        re.compile(r"Network is unreachable|name resolution|ENETUNREACH|EAI_AGAIN|Connection ?[Rr]efused|ECONNREFUSED"),
        'network = "host"',
    ),
)
"""What the message of a failed test says about the key that helps, where no file or variable of the machine does."""
_OTHERWISE: Final = "keep, env, pass_env, prepare or network, by what the log says; `sealed = false` gives the seal up"


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
    path.parent.mkdir(parents=True, exist_ok=True)
    # Runs that begin at once on one base would each run its tests: all but the first wait, and know the result then.
    with path.with_name(f"{path.name}.lock").open("ab") as file, locked(file):
        if known:
            # A result that cannot be read, or is of another shape, is made anew; pydantic's refusal is a ValueError.
            with suppress(OSError, ValueError):
                return replace(_checks().validate_python(json.loads(path.read_bytes())), cached=True)
        return _checked(case, path, progress)


def _checked(case: GateCase, path: Path, progress: Progress) -> BaseCheck:
    """Run the tests of the base, and keep what they came to."""
    progress("the tests of the base, the tree without the work, run in a sealed copy")
    bytecode = bytecode_folder(case)
    # What an earlier, unfinished run compiled may be of dependencies that have changed since.
    shutil.rmtree(bytecode, ignore_errors=True)
    bytecode.mkdir(parents=True, exist_ok=True)
    with workspace(case, case.frozen.base, bytecode=os.fspath(bytecode), writes_bytecode=True) as here:
        done = execute(here, keep_going=True)
        product = _product(case, here, done.tests)
        root = here.root
    # The tests of the base run code of the checkout, which may have written into what `keep` names.
    case.check_dependencies()
    output, log = done.output.finish()[0], f"{path}.log"
    write(log, output)
    check = BaseCheck(BaseTests(done.tests), product, log=log, bytecode=_bytecode_digest(case))
    check = replace(check, inline=tuple(sorted(inline_tests(done.tests, root))), note=_note(done))
    faults = _faults(case, done, product, root, output[-_TAIL_BYTES:].decode("utf-8", "replace"), progress)
    check = replace(check, faults=tuple(faults))
    # Only a whole result is kept: a fault of the moment, such as no network, would else be believed for ever.
    if not faults and not done.tests.judge and not done.tests.problem and done.tests.complete:
        _keep(case, check)
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
    # With faults the first run was not kept, so the second one must not bring it in.
    if check.cached or not check.faults:
        _keep(case, confirmed)
    return confirmed


def _place(case: GateCase) -> Path:
    parts = (_VERSION, case.frozen.base, case.digest, sandbox.level())
    return case.store.folder / "results" / f"{sha256(repr(parts).encode()).hexdigest()[:40]}.json"


@cache
def _checks() -> TypeAdapter[BaseCheck]:
    return TypeAdapter(BaseCheck)


def _keep(case: GateCase, check: BaseCheck) -> None:
    data = _checks().dump_python(check, mode="json", exclude={"faults", "cached"})
    write(_place(case), json.dumps(data, separators=(",", ":")).encode())


def _product(case: GateCase, here: Workspace, tests: TestRun) -> Product:
    seal = case.seal
    if seal.product:
        return keyed(seal.product, seal.tests, case.files, tests, here.root)
    if not tests.sessions:
        return _listed_product(case, here)
    # A helper of tests in a flat layout is loaded like the product, and no runner names it.
    known = NODE_TESTS if tests.runner in _NODE else ()
    return derive(tests, here.root, case.files, case.environment.names, (*seal.tests, *known))


def _note(done: Execution) -> str:
    if done.tests.runner == "exit" and not done.unprepared:
        return (
            "Nobody observes this command: its exit status decides. A product that ends the process with status 0, "
            "or that changes what the runner asserts, would pass."
        )
    if not done.tests.sessions and not done.unprepared and done.tests.runner != "sarif":
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
        if found := _bare_faults(case, tests, tail):
            return found
    if tests.judge or tests.problem:
        message = f"The tests of the base cannot be watched: {tests.judge or tests.problem}."
        return [Finding("SEAL403", "error", "command", message, fix="Remove what causes it.")]
    # Status 0 and `_NO_TESTS` are no fault here: a project whose first tests the work is to write.
    none = tests.parsed and tests.runner != "sarif" and not tests.cases and not tests.broken
    if none and tests.exit_status not in (None, 0, _NO_TESTS):
        message = f"No test can run, in the checkout or sealed: exit status {tests.exit_status}; {_cause(tail)}."
        fix = (
            "Write the command that runs the tests in a shell without an active virtual environment, such as "
            'command = [".venv/bin/pytest", "-q"], and install the project there (`.venv/bin/pip install -e .`).'
        )
        return [Finding("SEAL408", "error", "command", message, fix=fix)]
    return _without_product(case, tests, product, tail)


def _cause(tail: str) -> str:
    """Return the last line of an output that names an error, else its last line."""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    last = lines[-1] if lines else "no output"
    return next((line for line in reversed(lines) if _CAUSE.search(line)), last)[:_MAX_WORDS]


def _without_product(case: GateCase, tests: TestRun, product: Product, tail: str) -> list[Finding]:
    """Return that the keys are needed, with the lines to write; patterns that match nothing yet may match new files."""
    if case.seal.product or (product and (tests.sessions or tests.parsed)):
        return []
    folders = sorted({path.split("/")[0] for path in case.files if "/" in path and not path.startswith(".")})
    # A guess for the line that people copy, and the one place where a name suggests anything; nothing is judged by
    # it.
    test = [name for name in folders if name.lower().startswith(("test", "spec"))]
    rest = [f"{name}/**" for name in folders if name not in test][:6] or ["src/**"]
    held = [*(f"{name}/**" for name in test), *(NODE_TESTS if "package.json" in case.files else ())]
    lines = f"product = {json.dumps(rest)} and tests = {json.dumps(held)}"
    why = "nobody observes the command" if not tests.sessions else "its run loaded no file of the project but tests"
    message, first = f"What of the work is judged is not known: {why}.", ""
    if tests.exit_status:
        message += f" It ended with status {tests.exit_status}: {_cause(tail)}."
        first = "If tests should have run, correct that first. " if not tests.sessions else ""
    elif tests.exit_status is None:
        message += f" It did not end within {case.gate.timeout_seconds:g} seconds."
        first = "If it needs longer, write `timeout_seconds`. "
    fix = f"{first}Say what the work may change and what tests are, such as {lines}; the rest keeps its base content."
    return [Finding("SEAL412", "error", "product", message, fix=fix)]


# -- the bare run ------------------------------------------------------------------------------------------------------


def _bare_faults(case: GateCase, sealed: TestRun, tail: str) -> list[Finding]:
    """Return what passes bare and not sealed, each with what to write; `tail` is the end of the sealed output."""
    # What fails bare as well is a fault of the base, which the comparison knows how to deal with.
    status, passed = _run(case)
    if passed is None:
        if status != 0 or sealed.exit_status == 0:
            return []
        return [_fault(case, "the command", tail)]
    failing = {case_.id: case_.message or case_.outcome for case_ in sealed.cases if case_.outcome not in GOOD}
    failing |= dict.fromkeys(sealed.running, "it had begun when the run ended")
    faults = [_fault(case, name, message) for name, message in failing.items() if _junit(name) in passed]
    for path, message in (*sealed.broken, *sealed.skipped_files):
        module = path.removesuffix(".py").replace("/", ".")
        if any(classname == module or classname.startswith(f"{module}.") for classname, _ in passed):
            faults.append(_fault(case, path, message))
    # Nothing ran sealed and something did bare, but under names that match none of ours.
    if not faults and not sealed.cases and passed:
        faults.append(_fault(case, "the command", tail))
    return faults[:_MAX_FAULTS]


def _run(case: GateCase) -> tuple[int | None, set[tuple[str, str]] | None]:
    """Run the command bare; return its exit status, and the tests that passed by their names in a JUnit report."""
    with workspace(case, case.frozen.base) as here:
        report = here.folder / "bare.xml"
        # The family whose class names are the paths of files; `_junit` compares with them.
        options = f"{os.environ.get('PYTEST_ADDOPTS', '')} --junitxml={report} -o junit_family=xunit1".strip()
        env = {**os.environ, **case.seal.env, "PYTEST_ADDOPTS": options}
        env["PYTHONPYCACHEPREFIX"] = f"{here.folder}/bytecode"
        env["PATH"] = f"{here.seen(case.programs_folder)}:{env.get('PATH', os.defpath)}".lstrip(":")
        if not here.closed:
            env["PYTHONPATH"] = here.environment()["PYTHONPATH"]
        binds = (Bind(os.fspath(here.export), case.frozen.top), *_ignored(case, here))
        ended = here.run(case.gate.command, env=env, box=Box(binds, {}, bare=True))
        return ended.exit_status, _passed(report)


def _ignored(case: GateCase, here: Workspace) -> Iterator[Bind]:
    """Put what git ignores of the checkout into an export, by links where nothing can be mounted."""
    for path in [".git/", *case.store.ignored()][:_MAX_BINDS]:
        source, place = f"{case.frozen.top}/{path}".rstrip("/"), here.export / path
        if not os.path.lexists(source):
            continue
        # The export has an empty `.git`, and may have the folder of an ignored file, in the place of what is to be
        # seen.
        with suppress(OSError):
            place.rmdir()
        place.parent.mkdir(parents=True, exist_ok=True)
        # A link is made anew, since a mount would follow it.
        if os.path.islink(source) or not here.closed:
            with suppress(FileExistsError):
                place.symlink_to(os.readlink(source) if os.path.islink(source) else source)
            continue
        place.mkdir(exist_ok=True) if os.path.isdir(source) else place.touch()
        seen = source
        if os.path.basename(source) == "node_modules":  # tools write there, which would be a question to a person
            seen = f"{here.folder}/copies{source}"
            os.makedirs(os.path.dirname(seen))
            subprocess.run(["cp", "-a", source, seen], check=True, capture_output=True)
        yield Bind(seen, source)
    for target, source in case.environment.kept.items():
        if target != source and here.closed:
            yield Bind(source, target)


def _passed(report: Path) -> set[tuple[str, str]] | None:
    try:
        root = ET.parse(report).getroot()  # noqa: S314 - pytest wrote it, and it decides nothing but a hint
    except (OSError, ET.ParseError):
        return None
    bad = ("failure", "error", "skipped")
    return {
        (node.get("classname", ""), node.get("name", ""))
        for node in root.iter("testcase")
        if not any(child.tag in bad for child in node)
    }


def _junit(identity: str) -> tuple[str, str]:
    """Return the names that a JUnit report of pytest has for the id of a test."""
    brackets = PARAMETERS.search(identity)
    names = PARAMETERS.sub("", identity).split("::")
    names[0] = names[0].removesuffix(".py").replace("/", ".")
    return ".".join(names[:-1]), names[-1] + (brackets[0] if brackets else "")


def _fault(case: GateCase, test: str, found: str) -> Finding:
    words = " ".join(found.split())[-_MAX_WORDS:] or "no message"
    text = f"{test} passes in the checkout and fails sealed: {words}."
    return Finding("SEAL401", "error", "keep", text, fix=next(_hints(case, found), _OTHERWISE))


def _hints(case: GateCase, message: str) -> Iterator[str]:
    """Yield what to write into the gate's table, the most certain first."""
    words = set(re.findall(r"[\w.-]+", message))
    # `package.module` in a message names the file `module.py`, too.
    words |= {part for word in words for part in word.split(".")}
    for name in os.environ:
        if name in words and name not in ("PATH", "HOME", "USER", "PWD", "LANG", "TERM", "SHELL"):
            yield f'pass_env = ["{name}"]'
    kept = [*case.environment.kept]
    for path in case.store.ignored():
        name = os.path.basename(path.rstrip("/"))
        place = f"{case.frozen.top}/{path}".rstrip("/")
        if {name, name.removesuffix(".py")} & words and not is_below(place, kept):
            rows = [*dict.fromkeys((*case.seal.keep, os.path.relpath(place, case.root)))]
            yield f"keep = {json.dumps(rows)}"
    yield from (fix for pattern, fix in _HINTS if pattern.search(message))


def foreign_code(case: GateCase, run: TestRun, root: str) -> Finding | None:
    """Return that other code was tested than that of the tree, which has such a file; None where nothing says so."""
    files = {path for path in case.files if path.endswith((".py", ".js", ".mjs", ".cjs", ".ts"))}
    for name, path in run.loaded:
        if path.startswith(f"{root}/"):
            continue
        if path.startswith(f"{case.root}/") and not is_below(path, case.environment.kept):
            message = f"Without namespaces the code of the checkout itself was loaded: {path}."
            fix = (
                "Install bubblewrap, or allow user namespaces; or install the project without `-e`, and write "
                'env = { PYTHONPATH = "src" } into the gate\'s table, with the folder of the sources.'
            )
            return Finding("SEAL301", "error", "command", message, fix=fix)
        # The end of the path that the name of the module stands for: `a/b.py` of `a.b`, `a/b/__init__.py` of the
        # package `a.b`.
        tail = "/".join(path.split("/")[-len(name.split(".")) - path.endswith("/__init__.py") :])
        if tail in files or ("/" in tail and any(each.endswith(f"/{tail}") for each in files)):
            message = f"Other code is tested: {path} was loaded in place of that of {case.root}."
            fix = _own_environment(case)
            if not os.path.exists(path):  # a test wrote it, into the temporary folder of the run
                fix = "Let the test that wrote it load it in a process of its own, or take it out of `sys.modules`."
            return Finding("SEAL302", "error", "command", message, fix=fix)
    # Names that came from the tree itself are tested as they should be, wherever else they lie too.
    loaded = {name.partition(".")[0] for name, path in run.loaded if path.startswith(f"{root}/")}
    names = {path.removesuffix("/__init__.py").removesuffix(".py").rpartition("/")[2] for path in files} - loaded
    for folder, named in case.environment.editable:
        seen = is_below(folder, (case.frozen.top, *case.environment.places)) or not os.path.isdir(folder)
        if not seen and names & {entry.partition(".")[0] for entry in os.listdir(folder)}:
            message = f"The environment is that of another checkout: {named} leads to {folder}."
            return Finding("SEAL302", "error", "command", message, fix=_own_environment(case))
    return None


def _own_environment(case: GateCase) -> str:
    return (
        f"Give {case.frozen.top} an environment of its own: `rm -rf .venv && python3 -m venv .venv && "
        ".venv/bin/pip install -e .` and what the tests need."
    )


# -- compiled dependencies --------------------------------------------------------------------------------------------
# Python reads compiled code from a folder of ours alone. A run of the base fills it, and leaves nothing of the tree
# itself there, since a work of the same second and size would be taken for it.


def bytecode_folder(case: GateCase) -> Path:
    """Return the folder of the compiled dependencies of a gate."""
    parts = (case.frozen.base, case.digest)
    return case.store.folder / "bytecode" / sha256(repr(parts).encode()).hexdigest()[:32]


def usable_bytecode(case: GateCase, digest: str) -> str:
    """Return the folder of compiled dependencies where it is what the base's run left; else nothing."""
    return os.fspath(bytecode_folder(case)) if digest and _bytecode_digest(case) == digest else ""


def _bytecode_digest(case: GateCase) -> str:
    folder = bytecode_folder(case)
    if not folder.is_dir():
        return ""
    return case.store.recorded(os.fspath(folder), files_in(os.fspath(folder)), Path(f"{folder}.index"))


# -- the product of Go and Rust ----------------------------------------------------------------------------------------
# Their runs say nothing of what they load, so the toolchain is asked.

_GO_PRODUCT = ("CFiles", "HFiles", "SFiles", "EmbedFiles")
_GO_FORMAT = "".join(f"{{{{range .{name}}}}}{{{{$.Dir}}}}/{{{{.}}}}\n{{{{end}}}}" for name in _GO_PRODUCT)
"""What `go list` prints of a package: the paths of its files that are no Go, one a line."""


def _listed_product(case: GateCase, here: Workspace) -> Product:
    """Return the packages of a Go module, or the targets of a Rust crate; nothing for other projects."""
    if "go.mod" in case.files and "go" in case.environment.programs:
        return _go(case, here)
    if "Cargo.toml" in case.files and "cargo" in case.environment.programs:
        return _rust(case, here)
    return Product()


def _go(case: GateCase, here: Workspace) -> Product:
    lines = _ask(here, ("go", "list", "-e", "-f", _GO_FORMAT, "./...")).splitlines()
    found = {os.path.relpath(line, here.root) for line in lines if line.startswith(f"{here.root}/")}
    # What is a test, and what is not the module's own, Go itself decides by these names.
    product = ("**/*.go", *sorted(path for path in found if not path.endswith(".go")))
    return keyed(product, ("**/*_test.go", "**/testdata/**", "vendor/**"), case.files, TestRun("go"), here.root)


def _rust(case: GateCase, here: Workspace) -> Product:
    text = _ask(here, ("cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"))
    try:
        data: dict[str, Any] = json.loads(text[text.index("{") :])
    except ValueError:
        return Product()
    packages, tests = set[str](), set[str]()
    for package in data["packages"]:
        for target in package["targets"]:
            folder = os.path.dirname(os.path.relpath(target["src_path"], here.root))
            is_product = {"lib", "bin", "proc-macro", "rlib", "cdylib"} & set(target["kind"])
            (packages if is_product else tests).add(folder)
    packages -= {""}
    frozen = [path for path in case.files if any(path.startswith(f"{each}/") for each in tests - packages)]
    # A target at the root has no folder of its own, and all of the crate would be product.
    return Product(tuple(sorted(packages)), frozen=tuple(frozen))


def _ask(here: Workspace, argv: Sequence[str]) -> str:
    output = Output()
    here.run(argv, output=output.add, timeout_seconds=_LIMIT_SECONDS)
    return output.finish()[0].decode("utf-8", "replace")
