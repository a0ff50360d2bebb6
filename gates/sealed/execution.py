"""One run of a gate's command on one tree: an export of it in a sandbox, with observers in the runners.

Answers T1 and T2. Inside, the export lies at the checkout's own path, so that editable installs, workspace links and
shebangs lead into it. Read-only are dependencies and what decides the run; what else of the base the run wrote is seen
afterwards (`TestRun.written`). Over pytest's and unittest's own packages a copy is mounted with one line more, which
brings the observer in from below: tests see no variable, no argument and no file of it.

Without namespaces the command runs in the folder of the export, variables bring the observers in, and a loaded file of
the checkout itself refuses the result.

Where nobody observes the runner, its outcomes stand in what it prints or writes: `go test`, cargo nextest, and JUnit
XML of any other. What the tested code writes into such a report is believed.
"""

import errno
import json
import os
import shutil
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from interlock.core.process import Ended
from interlock.gates.command import Output, unstartable
from interlock.gates.heldout.judge import PROBES as HELD_OUT_PROBES
from interlock.gates.sealed import sandbox
from interlock.gates.sealed.against_base import Lines, Place, read_coverage, read_sarif
from interlock.gates.sealed.case import GateCase
from interlock.gates.sealed.environment import SCRATCH
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.observe import Observation, with_observer
from interlock.gates.sealed.outcomes import Outcome, TestCase, TestRun, bounded
from interlock.gates.sealed.sandbox import Bind, Box, Level, is_below
from interlock.gates.sealed.settings import Seal

PROBES: Final = Path(__file__).resolve().parent / "probes"
"""The folder of the files that run beside the tested code."""

_INSIDE: Final = "/run/interlock"
_HOME: Final = "/tmp/home"  # noqa: S108 - of the sandbox
_MAX_BINDS: Final = 256
"""So many files that decide a run are mounted read-only singly; each costs time, and bubblewrap ends near 3,000."""
_MAX_REPORT_BYTES: Final = 64 * 1024 * 1024

Kind: TypeAlias = Literal["go", "nextest", "junit", "exit"]
"""`exit` is a command of which nothing is known but its exit status."""

_OUTCOMES: Final[Mapping[str, Outcome]] = {
    "pass": "passed",
    "fail": "failed",
    "skip": "skipped",
    "ok": "passed",
    "failed": "failed",
    "ignored": "skipped",
    "failure": "failed",
    "error": "error",
    "skipped": "skipped",
}


@dataclass(frozen=True, slots=True)
class Execution:
    """What came of one run of a command: its tests, how it ended, what was printed, and how it was isolated.

    `root` is the project's root as the command saw it, `coverage` which lines ran, where a report says that.
    `unprepared` says which command of `prepare` failed, so that the gate's own did not run.
    """

    tests: TestRun
    ended: Ended
    output: Output
    level: Level
    root: str = ""
    unprepared: str = ""
    coverage: Lines = field(default_factory=dict[str, dict[int, bool]])


@dataclass(slots=True)
class Workspace:
    """Where the commands of one gate run.

    Args:
        case: The gate.
        folder: A private folder with the export and what else one run needs.
        frozen: Files of the export that are read-only, relative to the root.
        bytecode: A folder of compiled dependencies; empty: the commands compile them for themselves.
        writes_bytecode: The commands may write there.
    """

    case: GateCase
    folder: Path
    frozen: Sequence[str] = ()
    bytecode: str = ""
    writes_bytecode: bool = False
    output: Output = field(default_factory=Output)
    prepared: bool = False

    @property
    def closed(self) -> bool:
        """Whether commands see the export at the checkout's own path, in a sandbox."""
        return sandbox.level() == "namespaces"

    @property
    def export(self) -> Path:
        """The folder that holds the tree."""
        return self.folder / "tree"

    @property
    def root(self) -> str:
        """The project's root, as commands see it."""
        return self.seen(os.fspath(self.case.root))

    def seen(self, path: str) -> str:
        """Return a path of the machine's checkout as commands see it."""
        if self.closed or not is_below(path, (self.case.frozen.top,)):
            return path
        # Without namespaces the export lies elsewhere, so every path of the checkout is moved there.
        return path.replace(self.case.frozen.top, os.fspath(self.export), 1)

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        timeout_seconds: float | None = None,
        output: Callable[[bytes], object] | None = None,
        stdin: bytes = b"",
        box: Box | None = None,
    ) -> Ended:
        """Run one command in the export; `box` is what it sees, by default what a sealed one does.

        Raises:
            CollectorError: Its program is not to be had (`COL202`, `SEAL107`).
        """
        gate, seen = self.case.gate, (box or self._box()) if self.closed else None
        try:
            return sandbox.run(
                [self._program(argv[0]), *argv[1:]],
                seen,
                cwd=self.seen(self.case.cwd),
                env=self.environment() if env is None else env,
                timeout_seconds=timeout_seconds or gate.timeout_seconds,
                output=output or self.output.add,
                stdin=stdin,
            )
        except (OSError, ValueError) as error:
            raise unstartable(gate, error, argv[0]) from error

    def environment(self) -> dict[str, str]:
        """Return the environment of the commands: small, and not the agent's."""
        case, inside = self.case, self.case.environment
        # An empty value in its place would let tests fail with words that name no cause.
        missing = [name for name in case.seal.pass_env if name not in os.environ]
        if missing:
            raise SealError(
                "SEAL106",
                f"{case.gate.id} needs the variable {missing[0]}, which is not set.",
                f"Set it: `export {missing[0]}=…`, or take it out of `pass_env` in [gates.{case.gate.id}].",
            )
        home = _HOME if self.closed else f"{self.folder}/home"
        run = _INSIDE if self.closed else f"{self.folder}/run"
        path = f"{self.seen(case.programs_folder)}:{inside.path}"
        found = {
            "PATH": path.lstrip(":"),
            "HOME": home,
            "TMPDIR": "/tmp" if self.closed else f"{self.folder}/tmp",  # noqa: S108
            "LANG": "C.UTF-8",
            "USER": "interlock",
            "LOGNAME": "interlock",
            "PYTHONNOUSERSITE": "1",
            "GOENV": "off",
            "PYTHONPYCACHEPREFIX": f"{run}/bytecode",
            "GOCACHE": f"{home}/.cache/go-build",
            **inside.variables,
        }
        # The order is who wins: the person's `env` over the shell's variables over ours.
        found |= {name: os.environ[name] for name in case.seal.pass_env}
        found |= case.seal.env
        if "node" in inside.programs or "npm" in inside.programs:
            found["NODE_OPTIONS"] = f"{found.get('NODE_OPTIONS', '')} --require {run}/probes/node_observer.cjs".strip()
        if not self.closed:
            roots = [self.seen(path) for path, _ in case.environment.editable]
            paths = [f"{run}/probes/unmounted", *(found.get("PYTHONPATH", "").split(os.pathsep)), *roots]
            found["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        return found

    @property
    def held_out_probes(self) -> str:
        """The folder of the programs that make one call of a held-out table, as commands see it."""
        return f"{_INSIDE}/heldout" if self.closed else os.fspath(HELD_OUT_PROBES)

    def interpreter(self, language: str) -> str:
        """Return the program that runs a language: that of a kept environment, else what its name means on PATH."""
        names = ("python", "python3") if language == "python" else ("node",)
        inside = self.case.environment
        for target, source in inside.kept.items():
            for name in names:
                if os.access(f"{source}/bin/{name}", os.X_OK):
                    return f"{target}/bin/{name}"
        return inside.programs.get(names[-1]) or inside.programs.get(names[0]) or names[-1]

    def _program(self, name: str) -> str:
        """Return where a program lies, as commands see it."""
        case = self.case
        place = case.environment.programs.get(name, name if os.path.isabs(name) else "")
        if not place and "/" not in name:
            raise FileNotFoundError(errno.ENOENT, "it is not on PATH")
        place = place or os.path.normpath(f"{case.cwd}/{name}")
        kept = next((each for each in case.environment.kept if is_below(place, (each,))), "")
        inside = is_below(place, (case.frozen.top,)) and not kept and not is_below(place, case.environment.links)
        real = place.replace(kept, case.environment.kept.get(kept, ""), 1)
        if os.path.lexists(self.export / os.path.relpath(place, case.frozen.top) if inside else real):
            return self.seen(place)
        if not inside:
            raise FileNotFoundError(errno.ENOENT, "it is not there")
        if not os.path.isdir(self.export / os.path.relpath(case.cwd, case.frozen.top)):
            message = f"`cwd` of {case.gate.id} is no folder of the base: {case.seal.cwd}."
            raise SealError("SEAL107", message, "Write the path of one, relative to the project's root.")
        message = f"`{name}` of {case.gate.id} is neither in the base nor kept."
        folder = os.path.relpath(place, case.root).split("/")[0]
        fix = f'Write keep = ["{folder}"] into [gates.{case.gate.id}], or install what it is part of.'
        raise SealError("SEAL107", message, fix)

    def _box(self) -> Box:
        case, inside = self.case, self.case.environment
        top = case.frozen.top
        binds = [
            Bind(os.fspath(self.export), top, writable=True),
            Bind(f"{self.folder}/home", _HOME, writable=True),
            Bind(f"{self.folder}/run", _INSIDE),
            Bind(os.fspath(PROBES), f"{_INSIDE}/probes"),
            Bind(os.fspath(HELD_OUT_PROBES), f"{_INSIDE}/heldout"),
            *self._compiled(),
            *(Bind(place, place) for place in inside.places),
            *(Bind("", place) for place in inside.hidden),
        ]
        for target, source in self.case.environment.kept.items():
            binds.append(Bind(source, target))
            # Vite and vitest write caches into the folder of dependencies, which is read-only here.
            if os.path.basename(target) == "node_modules":
                binds += [Bind("", f"{target}/{name}") for name in SCRATCH if os.path.isdir(f"{source}/{name}")]
        prefix = f"{top}/{case.frozen.root}".rstrip("/")
        # What is not mounted read-only is still found afterwards, as written (EVD588).
        for path in self.frozen[:_MAX_BINDS]:
            if os.path.isfile(place := f"{self.export}/{case.base.inside(path)}"):
                binds.append(Bind(place, f"{prefix}/{path}"))
        binds += [Bind(made, path) for path, made in self._observers().items()]
        return Box(tuple(binds), inside.links, case.seal.network)

    def _compiled(self) -> Iterator[Bind]:
        """Yield where compiled code lies: of dependencies as the base's run left it, of the tree nowhere."""
        inside, top = f"{_INSIDE}/bytecode", self.case.frozen.top
        # Of dependencies it is shared by all runs of a base, since compiling them takes as long as many tests.
        place = self.bytecode or f"{self.folder}/bytecode"
        writable = self.writes_bytecode or not self.bytecode
        os.makedirs(f"{place}{top}", exist_ok=True)
        yield Bind(place, inside, writable)
        # An empty folder over that of the tree: compiled code of one work must never be read for another.
        yield Bind("", f"{inside}{top}")
        for target, source in self.case.environment.kept.items():
            if os.path.isdir(source):
                os.makedirs(f"{place}{target}", exist_ok=True)
                yield Bind(f"{place}{target}", f"{inside}{target}", writable)

    def _observers(self) -> dict[str, str]:
        """Return the files over which an observer is mounted, each with the file that takes its place."""
        folder = self.folder / "observers"
        folder.mkdir(exist_ok=True)
        sources = {source: target for target, source in self.case.environment.kept.items()}
        found: dict[str, str] = {}
        for number, path in enumerate(self.case.environment.runners):
            made = folder / str(number)
            made.write_bytes(with_observer(path, _INSIDE))
            shutil.copystat(path, made)
            place = next((each for each in sources if is_below(path, (each,))), "")
            found[path.replace(place, sources[place], 1) if place else path] = os.fspath(made)
        return found

    def prepare_folders(self) -> None:
        """Make what is mounted, and what is mounted on where bubblewrap cannot make it in the export."""
        case, inside = self.case, self.case.environment
        for name in ("home", "run/probes", "run/heldout", "run/bytecode", "bytecode", "tmp"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        if os.path.lexists(f"{case.frozen.top}/.git"):
            (self.export / ".git").mkdir()  # by that tests find the top
        for path, text in inside.links.items():
            if is_below(path, (case.frozen.top,)) and not is_below(path, inside.kept):
                place = self.export / os.path.relpath(path, case.frozen.top)
                with suppress(FileExistsError):
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.symlink_to(text if self.closed else os.path.realpath(path))
        for target, source in inside.kept.items():
            if not self.closed:
                place = self.export / os.path.relpath(target, case.frozen.top)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(source)
            elif os.path.basename(target) == "node_modules" and os.path.isdir(f"{source}/vite"):
                for name in SCRATCH:
                    Path(source, name).mkdir(exist_ok=True)
        if not self.closed:
            shutil.copytree(PROBES, f"{self.folder}/run/probes", dirs_exist_ok=True)


@contextmanager
def workspace(
    case: GateCase,
    tree: str,
    *,
    frozen: Sequence[str] = (),
    bytecode: str = "",
    writes_bytecode: bool = False,
    laid_over: Mapping[str, bytes] | None = None,
) -> Generator[Workspace]:
    """Make the export of a tree, to run commands in; `laid_over` are files that are written over it, by path."""
    with sandbox.private_folder(len(case.files) * 8192) as folder:
        here = Workspace(case, folder, frozen, bytecode, writes_bytecode)
        here.export.mkdir()
        case.store.export(tree, here.export)
        here.prepare_folders()
        for path, data in (laid_over or {}).items():
            place = here.export / case.base.inside(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        yield here


def execute(here: Workspace, *, keep_going: bool = False) -> Execution:
    """Run the commands of `prepare`, then the gate's own, and read what came of it.

    Raises:
        CollectorError: The command cannot be started.
    """
    if failed := prepare(here):
        run = TestRun("exit", complete=False, problem=failed)
        return Execution(run, Ended(0, 0.0, "unstarted"), here.output, sandbox.level(), here.root, failed)
    case = here.case
    kind, argv, variables = report_of(case.gate.command, case.seal)
    printed = bytearray()

    def show(data: bytes) -> None:
        printed.extend(data[: _MAX_REPORT_BYTES - len(printed)])
        here.output.add(data)

    seal = case.seal
    names = {name for name in (seal.junit, seal.sarif, seal.coverage) if name}
    places = {name: here.export / case.base.inside(os.path.join(seal.cwd, name)) for name in names}
    for place in places.values():
        # A report that lies in the base is not one of this run.
        place.unlink(missing_ok=True)
    with Observation(here.folder / "run", here.root, keep_going=keep_going) as seen:
        ended = here.run(argv, env={**here.environment(), **variables}, output=show)
    # Bubblewrap says itself why it could not begin; the command would else be blamed for its status.
    if bytes(printed[:7]) == b"bwrap: ":
        raise SealError(
            "SEAL105",
            f"The sandbox of {case.gate.id} cannot be made: {printed[7:300].decode('utf-8', 'replace').strip()}.",
            "Correct what it names; `interlock doctor` says what this machine allows.",
        )
    tests = seen.result(ended.exit_status)
    if tests is None:
        data = _read(places[seal.junit], here.export) if seal.junit else bytes(printed)
        tests = read_report(kind, data, ended.exit_status, seal.junit or "its output")
    tests, coverage = _with_reports(here, tests, {name: _read(place, here.export) for name, place in places.items()})
    written = case.store.written(here.export)
    tests = replace(tests, written=tuple(written))
    return Execution(tests, ended, here.output, sandbox.level(), here.root, coverage=coverage)


def _with_reports(here: Workspace, tests: TestRun, reports: Mapping[str, bytes]) -> tuple[TestRun, Lines]:
    """Return a run with the findings of its SARIF report, and which lines ran; what cannot be read is a problem."""
    seal, lines = here.case.seal, cast("Lines", {})
    place = Place(here.root, seal.cwd, here.export / here.case.frozen.root)
    for name in filter(None, (seal.sarif, seal.coverage)):
        why = "" if reports[name] else "the command did not write it"
        try:
            if name == seal.sarif:
                tests = replace(tests, results=read_sarif(reports[name], place))
            else:
                lines = read_coverage(reports[name], place)
        except (LookupError, TypeError, ValueError, AttributeError, ET.ParseError, RecursionError) as error:
            # Tests that failed may end the command before it writes what ran, and say more.
            if name == seal.sarif or tests.passes:
                tests = replace(tests, problem=f"{name}: {why or f'{type(error).__name__}: {error}'}")
    checked = seal.sarif and tests.runner == "exit"
    return replace(tests, runner="sarif") if checked else tests, lines


def prepare(here: Workspace) -> str:
    """Run the commands of `prepare`, once in each export; return why one failed, or nothing."""
    # The held-out checks prepare before they run the command, which prepares as well.
    commands = () if here.prepared else here.case.seal.prepare
    here.prepared = True
    for argv in commands:
        ended = here.run(argv)
        if ended.exit_status != 0:
            how = "did not end in time" if ended.timed_out else f"ended with status {ended.exit_status}"
            return f"`{' '.join(argv)}` {how}"
    return ""


def _read(place: Path, export: Path) -> bytes:
    """Read a report; nothing where there is none, or a link leads out to it."""
    with suppress(OSError):
        real = os.path.realpath(place)
        if is_below(real, (os.path.realpath(export),)) and os.path.getsize(real) <= _MAX_REPORT_BYTES:
            return Path(real).read_bytes()
    return b""


# -- reports ----------------------------------------------------------------------------------------------------------


def report_of(argv: Sequence[str], seal: Seal) -> tuple[Kind, tuple[str, ...], Mapping[str, str]]:
    """Return who reports where no runner is observed, the command with the options for it, and variables for it."""
    words, name = tuple(argv), os.path.basename(argv[0])
    if seal.junit:
        return "junit", words, {}
    if name == "go" and words[1:2] == ("test",) and not {"-json", "-c"} & {*words}:
        return "go", (words[0], "test", "-json", *words[2:]), {}
    if name == "cargo" and words[1:3] == ("nextest", "run") and not any("--message-format" in word for word in words):
        options = ("--message-format", "libtest-json")
        return "nextest", (*words[:3], *options, *words[3:]), {"NEXTEST_EXPERIMENTAL_LIBTEST_JSON": "1"}
    return "exit", words, {}


def read_report(kind: Kind, data: bytes, exit_status: int | None, where: str = "its output") -> TestRun:
    """Return what a report says; one that is missing, empty or not one is a problem."""
    run = TestRun(kind, complete=exit_status is not None, exit_status=exit_status)
    if kind == "exit":
        return run
    if not data.strip():
        return replace(run, problem=f"{kind} left no report in {where}")
    try:
        cases, broken = _READERS[kind](data)
    except (KeyError, TypeError, ValueError, ET.ParseError, RecursionError) as error:
        return replace(run, problem=f"{where} is no report of {kind}: {type(error).__name__}: {error}")
    return replace(run, cases=tuple(_unique(cases)), broken=tuple(broken.items()))


def _unique(cases: Iterable[TestCase]) -> Iterator[TestCase]:
    """Yield the cases, a number added to an id that was there before."""
    seen: Counter[str] = Counter()
    for case in cases:
        seen[case.id] += 1
        yield case if seen[case.id] == 1 else replace(case, id=f"{case.id} ({seen[case.id]})")


_Read: TypeAlias = tuple[list[TestCase], dict[str, str]]
"""The tests, and the packages that failed without one, each with what it printed."""


def _lines(report: bytes) -> Iterator[dict[str, Any]]:
    for line in report.splitlines():
        if line.startswith(b"{"):
            with suppress(ValueError):
                yield json.loads(line)


def _read_go(report: bytes) -> _Read:
    cases: list[TestCase] = []
    broken: dict[str, str] = {}
    packages = 0
    output: defaultdict[str, str] = defaultdict(str)
    for row in _lines(report):
        package, test, action = (str(row.get(key, "")) for key in ("Package", "Test", "Action"))
        name = f"{package}.{test}" if test else package or str(row.get("ImportPath", ""))
        output[name] += str(row.get("Output", ""))
        if action in _OUTCOMES and test:
            words = bounded(output[name]) if action != "pass" else ""
            cases.append(TestCase(name, _OUTCOMES[action], float(row.get("Elapsed", 0.0)), words, package))
        elif action in _OUTCOMES:
            packages += 1
            if action == "fail":
                broken[package] = bounded(output[str(row.get("FailedBuild", ""))] or output[package])
    if not packages:
        raise ValueError("no package ended")
    for case in cases:
        if case.outcome == "failed":
            # Go calls the package failed as well, which says nothing beside the failed test.
            broken.pop(case.file, None)
    return cases, broken


def _read_nextest(report: bytes) -> _Read:
    cases: list[TestCase] = []
    suites = 0
    for row in _lines(report):
        kind, event = row.get("type"), str(row.get("event", ""))
        if kind == "test" and event in _OUTCOMES:
            words = bounded(str(row.get("stdout", "")))
            cases.append(TestCase(str(row["name"]), _OUTCOMES[event], float(row.get("exec_time", 0.0)), words))
        suites += kind == "suite" and event in _OUTCOMES
    if not suites:
        raise ValueError("no suite ended")
    return cases, {}


def _read_junit(report: bytes) -> _Read:
    cases: list[TestCase] = []
    for node in ET.fromstring(report).iter("testcase"):  # noqa: S314  (expat itself refuses entities that grow)
        bad = next((child for child in node if child.tag in _OUTCOMES), None)
        outcome: Outcome = "passed" if bad is None else _OUTCOMES[bad.tag]
        words = "" if bad is None else bounded("\n".join(filter(None, (bad.get("message"), bad.text))))
        name = "::".join(filter(None, (node.get("file"), node.get("classname"), node.get("name"))))
        cases.append(TestCase(name, outcome, float(node.get("time") or 0), words, node.get("file") or ""))
    if not cases:
        raise ValueError("it has no test case")
    return cases, {}


_READERS: Final = {"go": _read_go, "nextest": _read_nextest, "junit": _read_junit}
