"""One run of a gate's command on one tree: in its export and enclosure, or bare, with a probe where there is one.

A command that cannot be started is a `CollectorError` (`COL202`), an export that cannot be made or watched a
`SealError` (`SEAL1xx`), and so is one that cannot be kept apart from the checkout (`SEAL301`).
"""

import errno
import os
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from interlock.core.process import Channel, Ended
from interlock.gates.command import Output, unstartable
from interlock.gates.sealed import bytecode, home, keep, runners, sandbox
from interlock.gates.sealed.added_files import displacing, loadable, top_level
from interlock.gates.sealed.base import LINK, read_entry
from interlock.gates.sealed.case import GateCase, not_sealed
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.export import Plan, folders_of, forget, remove_tree, touched, unplanned, write_export
from interlock.gates.sealed.heldout import paths_of
from interlock.gates.sealed.inotify import Seen, watched
from interlock.gates.sealed.outcomes import TestRun
from interlock.gates.sealed.programs import unreadable
from interlock.gates.sealed.protect import kind_of
from interlock.gates.sealed.sandbox import Bind, Enclosure, Level, Pipes
from interlock.gates.sealed.store import state_folder

_INSIDE: Final = "/tmp/.interlock"  # noqa: S108 - in the private folder of the enclosure
_CASE: Final = b'{"e": "case"'
_PROGRESS_SECONDS: Final = 1.0
_MAX_REPORT_BYTES: Final = 64 * 1024 * 1024
_MAX_STREAM_BYTES: Final = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Execution:
    """What came of one run of a command: its tests, how it ended, what was printed, and how it was isolated."""

    tests: TestRun
    ended: Ended
    output: Output
    level: Level


@dataclass(slots=True)
class Workspace:
    """Where the commands of one gate run: an export in its enclosure.

    Args:
        plan: What the export held before any command ran in it.
        export: The folder that holds the tree.
        private: A folder for the command's HOME and for reports.
        bytecode: The folder with bytecode of dependencies, which is read-only; empty: commands write their own.
        programs: Path of a program to that of its copy that cannot be read.
        touched: What commands did to the files that the export held: as `TestRun.touched`.
        prepared: The files that `prepare` made.
        progress: Takes the number of tests that ended so far.
        writes_bytecode: Commands may write bytecode where there is none yet.
    """

    case: GateCase
    plan: Plan
    export: Path
    private: str
    bytecode: str = ""
    output: Output = field(default_factory=Output)
    programs: Mapping[str, str] = field(default_factory=dict[str, str])
    touched: set[str] = field(default_factory=set[str])
    prepared: frozenset[str] = frozenset()
    closed: bool = field(default_factory=lambda: sandbox.level() == "namespaces")
    progress: Callable[[int], None] | None = None
    writes_bytecode: bool = False

    @property
    def root(self) -> str:
        """The project's root, as commands see it."""
        return os.fspath(self.case.root) if self.closed else os.path.join(self.export, self.case.base.root).rstrip("/")

    @property
    def home(self) -> str:
        """HOME, as commands see it; outside it is `home` of the private folder."""
        return f"{_INSIDE}/home" if self.closed else f"{self.private}/home"

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        timeout_seconds: float | None = None,
        pipes: Pipes | None = None,
    ) -> Ended:
        """Run one command in the export."""
        case = self.case
        program = case.program(argv)
        if not self.closed and program and os.path.relpath(program, case.base.top) in case.base.files:
            program = program.replace(f"{case.base.top}/", f"{self.export}/", 1)
        if not program and "/" not in argv[0]:
            raise unstartable(case.gate, FileNotFoundError(errno.ENOENT, "it is not on PATH"), argv[0])
        try:
            return sandbox.run(
                [program or argv[0], *argv[1:]],
                self._enclosure() if self.closed else None,
                cwd=self.root,
                env=self.environment() if env is None else env,
                timeout_seconds=timeout_seconds or case.gate.timeout_seconds,
                pipes=pipes or Pipes(self.output.add),
            )
        except (OSError, ValueError) as error:
            raise unstartable(case.gate, error, argv[0]) from error

    def environment(self) -> dict[str, str]:
        """Return the environment of the commands: small, and not the agent's."""
        environment = {
            "PATH": self.case.path,
            "HOME": self.home,
            "TMPDIR": "/tmp" if self.closed else self.private,  # noqa: S108 - of the enclosure
            "LANG": "C.UTF-8",
            "USER": "interlock",
            "LOGNAME": "interlock",
            "PYTHONPYCACHEPREFIX": bytecode.INSIDE if self.closed else f"{self.private}/bytecode",
            "GOCACHE": f"{self.home}/.cache/go-build",
            **home.ENVIRONMENT,
            **self.case.frozen.caches,
        }
        return environment | dict(self.case.seal.env)

    def _enclosure(self) -> Enclosure:
        case, base = self.case, self.case.base
        around = [name for name, digest in case.frozen.around.items() if digest]
        binds = [
            Bind(os.fspath(self.export), os.fspath(base.top), writable=True),
            *(Bind(path, path) for path in (*case.kept, *case.places, *case.frozen.path_folders, *around)
              if not sandbox.is_system(path)),
            Bind(os.fspath(runners.PROBES), os.fspath(runners.PROBES)),
            Bind(f"{self.private}/home", f"{_INSIDE}/home", writable=True),
            Bind(self.bytecode or f"{self.private}/bytecode", bytecode.INSIDE, writable=self.writes_bytecode),
        ]  # fmt: skip
        seen = [*sandbox.SYSTEM, *(bind.target for bind in binds[1:])]
        binds += [Bind(copy, path) for path, copy in self.programs.items() if sandbox.is_below(path, seen)]
        heldout = paths_of(case.root / case.seal.heldout) if case.seal.heldout else ()
        hidden = (os.fspath(state_folder()), *heldout, *case.unrecorded)
        return Enclosure(tuple(binds), hidden, case.seal.network, case.frozen.links)

    @contextmanager
    def observed(self) -> Generator[Seen]:
        """Run commands and yield what is seen of them; `touched` then says what they did to files of the export."""
        plan, changed = self.plan, None
        try:
            with watched(os.fspath(self.export), folders_of(plan), plan.files.keys()) as seen:
                yield seen
            self.touched |= {*touched(plan, self.export, seen.written), *seen.moved}
            changed = None if seen.moved else seen.written
        finally:
            forget(self.export, changed)


@contextmanager
def workspace(case: GateCase, plan: Plan, *, writes_bytecode: bool = False) -> Generator[Workspace]:
    """Make the export of a plan, to run commands in."""
    with case.base.store.export() as folder, sandbox.private_folder() as private:
        compiled = bytecode.folder_of(case.bytecode)
        here = Workspace(case, plan, folder, private, compiled, writes_bytecode=writes_bytecode)
        fresh_export(here, plan)
        with ExitStack() as held:
            if here.closed:
                names = (*case.frozen.programs.values(), case.python)
                here.programs = held.enter_context(unreadable(names, case.path, folder.with_name("programs")))
            yield here


def fresh_export(here: Workspace, plan: Plan) -> None:
    """Make the export what its plan says once more, after commands ran in it; HOME and bytecode begin empty too."""
    for name in ("home", "bytecode"):
        if os.path.lexists(f"{here.private}/{name}"):
            remove_tree(f"{here.private}/{name}")
        os.mkdir(f"{here.private}/{name}")
    write_export(plan, here.export)
    if os.path.lexists(here.case.base.top / ".git"):
        os.mkdir(here.export / ".git")  # by that tests find the top
    if sandbox.level() == "none":
        _link_kept(here.case, here.export)
    here.plan, here.prepared = plan, frozenset()
    here.touched.clear()


def execute(
    here: Workspace, *, collect_only: bool = False, only: Sequence[str] = (), keep_going: bool = False
) -> Execution:
    """Run the gate's command with its probe, and read what came of it.

    With `collect_only` tests are listed and none run, with `only` these ids alone; with `keep_going` the tests of other
    files run where a file cannot be collected.

    Raises:
        CollectorError: The command cannot be started.
    """
    case, stream, printed, ended_tests = here.case, bytearray(), bytearray(), 0
    began = shown = time.monotonic()

    def take(data: bytes) -> None:
        nonlocal ended_tests, shown
        if len(stream) > _MAX_STREAM_BYTES:
            raise OverflowError("the command wrote more to the channel of its probe than any run of tests")
        stream.extend(data)
        ended_tests += data.count(_CASE)
        if here.progress is not None and ended_tests and (now := time.monotonic()) - shown >= _PROGRESS_SECONDS:
            shown = now
            here.progress(ended_tests)

    def show(data: bytes) -> None:
        printed.extend(data[: _MAX_REPORT_BYTES - len(printed)])
        here.output.add(data)

    level: Level = "namespaces" if here.closed else "none"
    channel = Channel(take)
    try:
        plan = runners.Plan(
            root=here.root,
            env=here.environment(),
            spec_fd=channel.spec_fd,
            stream_fd=channel.stream_fd,
            report_path=f"{here.home}/report",
            collect_only=collect_only,
            only=tuple(only),
            keep_going=keep_going,
        )
        launch = case.runner.launch(plan)
        channel.spec = launch.spec
        place = f"{here.private}/home/report"
        if launch.report_file and not launch.report_file.startswith(f"{here.home}/"):
            relative = os.path.relpath(os.path.join(here.root, launch.report_file), here.root)
            place = report_place(here.export, case.base.inside(relative))
        with suppress(OSError):
            os.unlink(place)
        pipes = Pipes(show if launch.report == "stdout" else here.output.add, channel if launch.spec else None)
        with here.observed() as seen:
            ended = here.run(launch.argv, env=launch.env, pipes=pipes)
    except OverflowError:
        words = f"more than {_MAX_STREAM_BYTES >> 20} MiB were written to the probe's channel, and the run was ended"
        tests = TestRun(case.runner.name, complete=False, exit_status=None, problem=words)
        ended = Ended(0, time.monotonic() - began, "flood")
        return Execution(tests, ended, here.output, level)
    finally:
        channel.close()
    if here.progress is not None and ended_tests:
        here.progress(ended_tests)
    report = read_report(place, here.export, _MAX_REPORT_BYTES) if launch.report == "file" else bytes(printed)
    tests = case.runner.read(launch, bytes(stream), report, exit_status=ended.exit_status)
    tests = replace(tests, touched=(*sorted(here.touched), *_planted(here, seen)))
    return Execution(tests, ended, here.output, level)


def prepare(here: Workspace) -> str:
    """Run the commands of `prepare`; return why one failed, or nothing."""
    if not here.case.seal.prepare:
        return ""
    with here.observed():
        for argv in here.case.seal.prepare:
            ended = here.run(argv)
            if ended.exit_status != 0:
                how = "did not end in time" if ended.timed_out else f"ended with status {ended.exit_status}"
                return f"`{' '.join(argv)}` {how}"
    home.empty(f"{here.private}/home")
    here.prepared = frozenset(unplanned(here.plan, here.export))
    outside = here.plan.base.outside
    here.touched |= {path for path in here.prepared if kind_of(outside(path) or "")}
    return ""


def replacing(here: Workspace) -> set[str]:
    """Return what `prepare` made in the place of another file, or of a module of the standard library.

    What the base makes is no fault: extensions are built beside the modules that they are built from.
    """
    first = {os.path.normpath(os.path.join(here.case.base.root, folder)) for folder in here.case.python_path}
    library = {path for path in here.prepared if top_level(path, first) in sys.stdlib_module_names}
    return library | displacing(here.prepared, here.plan.files).keys()


def _planted(here: Workspace, seen: Seen) -> list[str]:
    """Return what a run of the tests made and that may be loaded unasked, also where it is gone by now."""
    if not here.plan.files:
        return []
    mounts = {f"{os.path.relpath(path, here.case.base.top)}/" for path in here.case.kept}
    made = {*unplanned(here.plan, here.export), *seen.made} - here.prepared - here.plan.files.keys() - mounts
    return sorted(loadable(made, here.plan.files))


def compile_dependencies(here: Workspace) -> str:
    """Compile the recorded dependencies that a run of the base imported; return the digest of the record of them.

    It is empty without namespaces, and where no Python is known.
    """
    case = here.case
    if not here.closed or not case.python:
        return ""
    places = (*case.kept, *(path for path in case.places if not sandbox.is_system(path)))
    return bytecode.compiled(f"{here.private}/bytecode", case.python, places, case.frozen.links)


def _link_kept(case: GateCase, folder: Path) -> None:
    """Without namespaces, link the kept folders into the export; refuse where they lead back into the checkout."""
    first = next(keep.leads_back(case.frozen.kept, case.base.top), None)
    if first is not None:
        raise not_sealed(case, f"{first} leads back into the checkout")
    for name in case.kept:
        link = folder / os.path.relpath(name, case.base.top)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(name)


def report_place(export: Path, path: str) -> str:
    """Return where a report of the export lies, as Interlock sees it; nothing where links lead out on the way."""
    place, top = os.path.normpath(export / path), os.path.realpath(export)
    return place if f"{os.path.realpath(os.path.dirname(place))}/".startswith(f"{top}/") else ""


def read_report(place: str, export: Path, most: int) -> bytes:
    """Read a report; nothing where there is none, it is a link or larger than it may be, or links lead out to it."""
    inside = not place.startswith(f"{export}/") or report_place(export, os.path.relpath(place, export))
    with suppress(SealError, OSError):
        if place and inside and os.lstat(place).st_size <= most:
            entry, data = read_entry(Path(place).parent, os.path.basename(place))
            return data if entry.mode != LINK else b""
    return b""
