"""One run of a gate's command on one tree: in its export and enclosure, or bare, with a probe where there is one."""

import errno
import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Final

from interlock.envelope.protocol import GateSpec
from interlock.gates.command import Output, unstartable
from interlock.gates.sealed import bytecode, keep, runners, sandbox
from interlock.gates.sealed.base import LINK, Base, load, read_entry
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.export import Plan, bring, remove_tree
from interlock.gates.sealed.frozen import (
    Frozen,
    changed_words,
    deciding_above,
    named_files,
    path_folders,
    reader,
)  # fmt: skip
from interlock.gates.sealed.heldout import places_of
from interlock.gates.sealed.outcomes import TestRun
from interlock.gates.sealed.places import Search
from interlock.gates.sealed.runners import Runner, recognise
from interlock.gates.sealed.runners.python import PythonRunner
from interlock.gates.sealed.sandbox import Bind, Channel, Enclosure, Ended, Level, Pipes
from interlock.gates.sealed.settings import Seal
from interlock.gates.sealed.store import state_folder

_INSIDE: Final = "/tmp/.interlock"  # noqa: S108 - in the private folder of the enclosure
_CASE: Final = b'{"e": "case"'
_TELL_SECONDS: Final = 1.0
_MAX_REPORT_BYTES: Final = 64 * 1024 * 1024
_MAX_STREAM_BYTES: Final = 128 * 1024 * 1024


@dataclass(frozen=True)
class GateCase:
    """A sealed gate of a run, with everything that it goes by.

    Args:
        gate: The gate.
        seal: How it is sealed.
        frozen: What the run froze.
        root: The project's root, without symbolic links.
        bytecode: Digest of the record of compiled dependencies; empty where there are none.
    """

    gate: GateSpec
    seal: Seal
    frozen: Frozen
    root: Path
    bytecode: str = ""

    @cached_property
    def base(self) -> Base:
        """The base of the run."""
        return load(self.root, self.frozen.base, self.frozen.top)

    @cached_property
    def path(self) -> str:
        """PATH of the command."""
        return self.seal.env.get("PATH", self.frozen.path)

    @cached_property
    def kept(self) -> Mapping[str, str]:
        """The kept places in the checkout, with their records."""
        inside = f"{self.base.top}/"
        return {folder: digest for folder, digest in self.frozen.kept.items() if folder.startswith(inside)}

    @cached_property
    def runner(self) -> Runner:
        """What runs the tests, by the command and the settings of the base."""
        return recognise(
            self.gate.command,
            read_file=reader(self.base),
            which=lambda name: self.frozen.programs.get(name) or None,
            tests=self.seal.tests,
            junit=self.seal.junit,
        )

    def program(self, argv: Sequence[str]) -> str:
        """Return the program of a command: where its name led when the run started, or an absolute path as it is."""
        return self.frozen.programs.get(argv[0], argv[0] if os.path.isabs(argv[0]) else "")

    @property
    def places(self) -> list[str]:
        """The kept places outside of the checkout that are not seen anyway."""
        return [path for path in self.frozen.kept if path not in self.kept]

    @cached_property
    def unrecorded(self) -> tuple[str, ...]:
        """What lies in places that are seen and is not recorded; nothing inside may see it.

        These are folders that are left out, bytecode that was written since, and programs in folders of PATH that are
        new.

        Raises:
            SealError: `SEAL201` what was recorded was changed or removed, or there is nothing to hide with.
        """
        enclosed = sandbox.level() != "none"
        found = [name for digest in self.frozen.kept.values() for name in keep.left_out(digest)]
        for path, change in keep.changed(self.frozen.kept):
            if change != "bytecode":
                raise self.unfit(path, change)
            found.append(os.path.dirname(path))
        for path, change in keep.changed(self.frozen.path_folders):
            if change not in ("added", "bytecode") or not enclosed:
                raise self.unfit(path, change)
            found.append(path)
        for path, text in self.frozen.links.items():
            if not os.path.islink(path) or os.readlink(path) != text:
                raise self.unfit(path, "changed")
        before, now = self.frozen.around, deciding_above(self.base.top)
        for path in sorted(before.keys() | now.keys()):
            if before.get(path) != now.get(path) and (path in before or not enclosed):
                raise self.unfit(path, "removed" if path not in now else "changed" if path in before else "added")
        for path in () if enclosed else path_folders(self.path.split(os.pathsep), self.base.top):
            if path not in self.frozen.path_folders:
                raise self.unfit(path, "added")
        return tuple(dict.fromkeys(found))

    def unfit(self, path: str, change: str) -> SealError:
        """Return the error for a file that the gate depends on and that is not what it was."""
        return SealError(
            "SEAL201",
            f"{self.gate.id} cannot be judged: {path} was {change} since the run began.",
            "Restore it, or install the dependencies again and start a new run; a step that builds or installs them "
            "belongs into `prepare`.",
        )

    @cached_property
    def named(self) -> tuple[str, ...]:
        """The files of the base that a command of the gate names, relative to the root."""
        commands = (self.gate.command, *self.seal.prepare)
        names = {name for argv in commands for name in named_files(argv, self.root, self.path)}
        inside = (os.path.relpath(name, self.root) for name in names)
        return tuple(sorted(name for name in inside if self.base.inside(name) in self.base.files))

    @cached_property
    def command_digest(self) -> str:
        """`sha256:…` over the commands, their settings, the kept folders, and what they name outside the base."""
        digest = sha256(repr((self.gate.command, self.seal, self.path)).encode("utf-8", "surrogateescape"))
        for name, value in sorted({**self.frozen.words, **self.frozen.around}.items()):
            digest.update(f"{name}\0{value}\0".encode("utf-8", "surrogateescape"))
        for folder, record in sorted(self.frozen.kept.items()):
            digest.update(f"{folder}\0{keep.contents(record)}\0".encode("utf-8", "surrogateescape"))
        return f"sha256:{digest.hexdigest()}"

    def check_kept(self) -> None:
        """Refuse dependencies and programs that are not what they were when the run started.

        Raises:
            SealError: `SEAL201` a kept file, `SEAL202` a file that a command names.
        """
        files = [
            name for argv in (self.gate.command, *self.seal.prepare) for name in named_files(argv, self.root, self.path)
        ]
        first = next(changed_words(self.frozen, files), None)
        if first is not None:
            raise SealError(
                "SEAL202",
                f"{self.gate.id} cannot be judged: {first} since the run began.",
                "Restore it and start a new run.",
            )
        self.__dict__.pop("unrecorded", None)
        _ = self.unrecorded

    @contextmanager
    def unchanged(self) -> Generator[None]:
        """Run commands; when they have ended, everything that they could read must still be what it was at the start.

        A process that was left behind could change it for just as long.

        Raises:
            SealError: `SEAL201`, `SEAL202` as `check_kept`; `SEAL104` what this user may write cannot be searched.
        """
        self.check_kept()
        with Search.start(self.frozen.system, self.frozen.began_ns) as search:
            yield
            first = next(iter(search.found()), None)
        if first is not None:
            raise self.unfit(first, "changed")
        self.check_kept()


@dataclass(frozen=True, slots=True)
class Execution:
    """What came of one run of a command.

    Args:
        tests: Its tests.
        ended: How it ended.
        output: What it and the commands before it printed.
        level: How it was isolated.
    """

    tests: TestRun
    ended: Ended
    output: Output
    level: Level


@dataclass(slots=True)
class Workspace:
    """Where the commands of one gate run: an export in its enclosure.

    Args:
        case: The gate.
        export: The folder that holds the tree.
        private: A folder for the command's HOME and for reports.
        bytecode: The folder with bytecode of dependencies, which is read-only; empty: commands write their own.
        output: What its commands printed.
        progress: Takes the number of tests that ended so far.
    """

    case: GateCase
    export: Path
    private: str
    bytecode: str = ""
    output: Output = field(default_factory=Output)
    closed: bool = field(default_factory=lambda: sandbox.level() == "namespaces")
    progress: Callable[[int], None] | None = None

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
        """Run one command in the export.

        Raises:
            CollectorError: `COL202` it cannot be started.
        """
        case = self.case
        program = case.program(argv)
        if not self.closed:
            program = program.replace(f"{case.base.top}/", f"{self.export}/", 1) if self._exported(program) else program
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

    def _exported(self, program: str) -> bool:
        return os.path.relpath(program, self.case.base.top) in self.case.base.files if program else False

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
            Bind(os.fspath(sandbox.PROBES), os.fspath(sandbox.PROBES)),
            Bind(f"{self.private}/home", f"{_INSIDE}/home", writable=True),
            Bind(self.bytecode or f"{self.private}/bytecode", bytecode.INSIDE, writable=not self.bytecode),
        ]  # fmt: skip
        heldout = places_of(case.root / case.seal.heldout) if case.seal.heldout else ()
        hidden = (os.fspath(state_folder()), *heldout, *case.unrecorded)
        return Enclosure(tuple(binds), hidden, case.seal.network, case.frozen.links)


@contextmanager
def workspace(case: GateCase, plan: Plan) -> Generator[Workspace]:
    """Make the export of a plan, to run commands in.

    Args:
        case: The gate.
        plan: What the export holds.

    Raises:
        SealError: The export cannot be made (`SEAL1xx`), or would not be told from the checkout (`SEAL301`).
    """
    with case.base.store.export() as folder, sandbox.private_folder() as private:
        _fill(case, plan, folder)
        for name in ("home", "bytecode"):
            os.mkdir(f"{private}/{name}")
        yield Workspace(case, folder, private, bytecode.folder_of(case.bytecode))


def fresh_export(case: GateCase, plan: Plan, here: Workspace) -> None:
    """Make the export what its plan says once more, after commands ran in it; HOME and bytecode begin empty too.

    Raises:
        SealError: It cannot be made.
    """
    for name in ("home", "bytecode"):
        remove_tree(f"{here.private}/{name}")
        os.mkdir(f"{here.private}/{name}")
    _fill(case, plan, here.export)


def _fill(case: GateCase, plan: Plan, folder: Path) -> None:
    """Make an export hold its plan, and an empty `.git` where the checkout has one: by that tests find the top."""
    bring(plan, folder)
    if os.path.lexists(case.base.top / ".git"):
        os.mkdir(folder / ".git")
    if sandbox.level() == "none":
        _link_kept(case, folder)


def execute(
    case: GateCase, here: Workspace, *, collect_only: bool = False, only: Sequence[str] = (), keep_going: bool = False
) -> Execution:
    """Run the gate's command with its probe, and read what came of it.

    Args:
        case: The gate.
        here: Where it runs.
        collect_only: List the tests and run none.
        only: Run these ids alone.
        keep_going: Run the tests of other files where a file cannot be collected.

    Raises:
        CollectorError: The command cannot be started.
    """
    stream, report_name, ended_tests = bytearray(), "report", 0
    began = told = time.monotonic()

    def take(data: bytes) -> None:
        nonlocal ended_tests, told
        if len(stream) > _MAX_STREAM_BYTES:
            raise _TooMuchError
        stream.extend(data)
        ended_tests += data.count(_CASE)
        if here.progress is not None and (now := time.monotonic()) - told >= _TELL_SECONDS:
            told = now
            here.progress(ended_tests)

    report_host = f"{here.private}/home/{report_name}"
    channel = Channel(take)
    try:
        plan = runners.Plan(
            root=here.root,
            env=here.environment(),
            spec_fd=channel.spec_fd,
            stream_fd=channel.stream_fd,
            report_path=f"{here.home}/{report_name}",
            collect_only=collect_only,
            only=tuple(only),
            keep_going=keep_going,
        )
        launch = case.runner.launch(plan)
        channel.spec = launch.spec
        place = _report_place(here, launch, report_host)
        with suppress(OSError):
            os.unlink(place)
        whole = Tee(here.output.add, _MAX_REPORT_BYTES) if launch.report == "stdout" else None
        pipes = Pipes(here.output.add if whole is None else whole.add, channel if launch.spec else None)
        ended = here.run(launch.argv, env=launch.env, pipes=pipes)
    except _TooMuchError:
        words = f"more than {_MAX_STREAM_BYTES >> 20} MiB were written to the probe's channel, and the run was ended"
        tests = TestRun(case.runner.name, complete=False, exit_status=None, problem=words)
        ended = Ended(None, timed_out=False, seconds=time.monotonic() - began)
        return Execution(tests, ended, here.output, "namespaces" if here.closed else "none")
    finally:
        channel.close()
    if here.progress is not None and ended_tests:
        here.progress(ended_tests)
    report = bytes(whole.data) if whole is not None else _read(place) if launch.report == "file" else b""
    tests = case.runner.read(launch, bytes(stream), report, exit_status=ended.exit_status)
    return Execution(tests, ended, here.output, "namespaces" if here.closed else "none")


def prepare(case: GateCase, here: Workspace) -> str:
    """Run the commands of `prepare`; return why one failed, or nothing.

    Raises:
        CollectorError: `COL202` one cannot be started.
    """
    for argv in case.seal.prepare:
        ended = here.run(argv)
        if ended.exit_status != 0:
            how = "did not end in time" if ended.timed_out else f"ended with status {ended.exit_status}"
            return f"`{' '.join(argv)}` {how}"
    return ""


class _TooMuchError(Exception):
    """The command wrote more to the channel of its probe than any run of tests."""


@dataclass(slots=True)
class Tee:
    """Keeps what passes by, up to a limit."""

    sink: Callable[[bytes], None]
    limit: int
    data: bytearray = field(default_factory=bytearray)

    def add(self, data: bytes) -> None:
        """Take some more."""
        self.data += data[: self.limit - len(self.data)]
        self.sink(data)


def _report_place(here: Workspace, launch: runners.Launch, own: str) -> str:
    """Return where a report lies, as Interlock sees it."""
    if not launch.report_file or launch.report_file.startswith(f"{here.home}/"):
        return own
    relative = os.path.relpath(os.path.join(here.root, launch.report_file), here.root)
    return os.path.join(here.export, here.case.base.inside(relative))


def _read(path: str) -> bytes:
    """Read a report without following a link out of the export; nothing where there is none, or a larger one."""
    with suppress(SealError, OSError):
        if os.lstat(path).st_size <= _MAX_REPORT_BYTES:
            entry, data = read_entry(Path(path).parent, os.path.basename(path))
            return data if entry.mode != LINK else b""
    return b""


def compile_dependencies(here: Workspace) -> str:
    """Compile the recorded dependencies that a run of the base imported; return the digest of the record of them.

    Returns:
        The digest; empty without namespaces, and where no Python is known.
    """
    case = here.case
    python = (
        case.runner.interpreter[0] if isinstance(case.runner, PythonRunner) else case.frozen.programs.get("python3")
    )
    if not here.closed or not python:
        return ""
    places = (*case.kept, *(path for path in case.places if not sandbox.is_system(path)))
    return bytecode.compiled(f"{here.private}/bytecode", python, places, case.frozen.links)


def _link_kept(case: GateCase, folder: Path) -> None:
    """Without namespaces, link the kept folders into the export; refuse where they lead back into the checkout.

    Raises:
        SealError: `SEAL301` code would be found that is not the export's.
    """
    first = next(keep.leads_back(case.frozen.kept, case.base.top), None)
    if first is not None:
        raise not_sealed(case, f"{first} leads back into the checkout")
    for name in case.kept:
        link = folder / os.path.relpath(name, case.base.top)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(name)


def not_sealed(case: GateCase, why: str) -> SealError:
    """Return the error for a run that judged something other than the export."""
    return SealError(
        "SEAL301",
        f"The result of {case.gate.id} is not sealed: {why}.",
        "Install bubblewrap (`apt-get install bubblewrap`) or allow user namespaces, so that the export can be mounted "
        "in the place of the checkout; `interlock doctor` says what this machine has.",
    )
