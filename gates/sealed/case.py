"""One sealed gate of a run, with everything that it goes by: what was recorded when the run began.

What was changed or removed since then is `SEAL201`, or `SEAL202` where a command names the file; `SEAL104` is raised
where what this user may write cannot be searched.
"""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from interlock.envelope.protocol import GateSpec
from interlock.gates.sealed import keep, sandbox
from interlock.gates.sealed.base import Base, load
from interlock.gates.sealed.dependencies import searching
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.frozen import Frozen, deciding_above, named_files, path_folders, reader, unchanged
from interlock.gates.sealed.protect import is_code
from interlock.gates.sealed.runners import Runner, recognise
from interlock.gates.sealed.runners.python import PythonRunner
from interlock.gates.sealed.settings import Seal


@dataclass(frozen=True)
class GateCase:
    """A sealed gate of a run, with everything that it goes by.

    `root` is without symbolic links; `bytecode` is the digest of the record of compiled dependencies, or empty.
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

    @property
    def commands(self) -> tuple[Sequence[str], ...]:
        """Its commands, those of `prepare` behind its own."""
        return (self.gate.command, *self.seal.prepare)

    @property
    def python_path(self) -> tuple[str, ...]:
        """The folders of the project that are first on the path of a Python that tests start, relative to the root."""
        if self.runner.name not in ("pytest", "unittest", "exit"):
            return ()
        named = {**self.seal.env, **self.runner.env}.get("PYTHONPATH", "").split(os.pathsep)
        found = (os.path.relpath(os.path.join(self.root, name), self.root) for name in named if name)
        return (".", *(name for name in found if not name.startswith("..")))

    @property
    def python(self) -> str:
        """The interpreter of the command, else what `python3` meant; empty where there was none."""
        own = self.runner.interpreter[0] if isinstance(self.runner, PythonRunner) else ""
        return own or self.frozen.programs.get("python3", "")

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
        """The files of the base that a command of the gate names; as `--option=FILE` or `@FILE` what is not code."""
        names: set[str] = set()
        for argv in self.commands:
            # An option names the product too.
            joined = [name for word in argv for name in (word.partition("=")[2], word.removeprefix("@"))]
            words = (*argv, *(name for name in joined if name not in argv and not is_code(name)))
            names.update(named_files(words, self.root, self.path))
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
        """Refuse dependencies and programs that are not what they were when the run started."""
        for name in (name for argv in self.commands for name in named_files(argv, self.root, self.path)):
            if not unchanged(self.frozen, name):
                message = f"{self.gate.id} cannot be judged: {name} was changed since the run began."
                raise SealError("SEAL202", message, "Restore it and start a new run.")
        self.__dict__.pop("unrecorded", None)
        _ = self.unrecorded

    @contextmanager
    def unchanged(self) -> Generator[None]:
        """Run commands; when they have ended, everything that they could read must still be what it was at the start.

        A process that was left behind could change it for just as long.
        """
        self.check_kept()
        with searching(self.frozen.system, self.frozen.began_ns) as found:
            yield
            first = next(iter(found()), None)
        if first is not None:
            raise self.unfit(first, "changed")
        self.check_kept()


def not_sealed(case: GateCase, why: str) -> SealError:
    """Return the error for a run that judged something other than the export."""
    return SealError(
        "SEAL301",
        f"The result of {case.gate.id} is not sealed: {why}.",
        "Install bubblewrap (`apt-get install bubblewrap`) or allow user namespaces, so that the export can be mounted "
        "in the place of the checkout; `interlock doctor` says what this machine has.",
    )
