"""What a run freezes for its sealed gates when it starts: the base, the kept folders, the programs of the commands."""

import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from interlock.envelope.protocol import GateSpec
from interlock.gates.sealed import base as bases
from interlock.gates.sealed import dependencies, keep
from interlock.gates.sealed.base import Base
from interlock.gates.sealed.dependencies import ABSOLUTE, Dependencies, interpreter_of
from interlock.gates.sealed.heldout import load_held_out
from interlock.gates.sealed.keep import Place
from interlock.gates.sealed.listing import list_tree
from interlock.gates.sealed.protect import decides_above
from interlock.gates.sealed.runners import recognise
from interlock.gates.sealed.runners.python import PythonRunner
from interlock.gates.sealed.sandbox import is_below, is_system
from interlock.gates.sealed.settings import Seal

_CARGO: Final = (".cargo/config", ".cargo/config.toml")
_RECIPES: Final = ("Makefile", "makefile", "GNUmakefile", "justfile", "package.json", "tox.ini")
_PATHS: Final = ("PYTHONPATH", "NODE_PATH")
_TOOLS: Final = (("node", "package.json"), ("npm", "package.json"), ("go", "go.mod"), ("cargo", "Cargo.toml"))
"""Programs that commands start without naming them, each with the file of a project that needs it."""
_MAX_READ_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Frozen:
    """What the sealed gates of a run go by; JSON values only.

    Args:
        base: Digest of the base.
        kept: Each place that commands may read beside the base, absolute, to the digest of its record: kept folders of
            the checkout, and what is needed outside of it.
        links: Each symbolic link outside of these places that leads to one, absolute, to its text.
        path: PATH, as it was when the run started.
        path_folders: Each folder of PATH in which users put programs, to the digest of the record of its files.
        programs: What the names of programs that the gates ask for meant then: name to absolute path, or to "".
        words: Absolute path of each file outside the base that a command names, its program included, to its SHA-256.
        top: The checkout that the base is of, absolute.
        around: Absolute path of each file above the checkout that a test runner looks for there, to its SHA-256.
        heldout: Gate id to the digest of its held-out checks.
        caches: Variables of toolchains whose caches are among the kept places.
        system: Folders of the distribution in which this user may write.
        began_ns: When the run began, in nanoseconds of the clock of the file system.
    """

    base: str
    kept: Mapping[str, str] = field(default_factory=dict[str, str])
    path: str = ""
    path_folders: Mapping[str, str] = field(default_factory=dict[str, str])
    programs: Mapping[str, str] = field(default_factory=dict[str, str])
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    top: str = ""
    around: Mapping[str, str] = field(default_factory=dict[str, str])
    heldout: Mapping[str, str] = field(default_factory=dict[str, str])
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    caches: Mapping[str, str] = field(default_factory=dict[str, str])
    system: Sequence[str] = ()
    began_ns: int = 0


def freeze(
    root: Path,
    gates: Sequence[tuple[GateSpec, Seal]],
    *,
    base: Base | None = None,
    path: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    note: Callable[[str], None] = lambda _line: None,
) -> Frozen:
    """Freeze what sealed gates need.

    The base is by default the tree as it is now, `path` the PATH of this process. `progress` is called with the files
    done and the files in all; `note` takes what is done beside that and may take a while.

    Raises:
        CollectorError: The tree cannot be frozen, or the held-out checks of a gate cannot be used.
    """
    real, began_ns = Path(os.path.realpath(root)), time.time_ns()
    top, relative = bases.place_of(real) if base is None else (base.top, base.root)
    listing = list_tree(top, relative)
    found = base or bases.freeze(real, listing=listing, progress=progress)
    given = os.environ.get("PATH", os.defpath) if path is None else path
    path = os.pathsep.join(dict.fromkeys(part for part in given.split(os.pathsep) if os.path.isabs(part)))
    words: dict[str, str] = {}
    programs: dict[str, str] = {}
    caches: dict[str, str] = {}
    folders = list[str]()
    needs = Dependencies(top, real, note)
    for gate, seal in gates:
        where = seal.env.get("PATH", path)
        programs |= _programs(gate, seal, found, needs, where)
        folders += keep.kept_folders(top, relative, listing, seal.keep)
        _add_needs(needs, found, seal)
        caches |= dependencies.caches(needs, found, seal.env)
        for argv in (gate.command, *seal.prepare):
            for name in named_files(argv, real, where):
                if found.files.get(os.path.relpath(name, top)) is None:
                    words[name] = _digest(name)
                    needs.add(name)
            for name in argv[1:]:
                if os.path.isdir(real / name):
                    needs.project(os.path.normpath(real / name))
    given = os.pathsep.join((path, *(seal.env.get("PATH", "") for _, seal in gates)))
    names = [name for name in dict.fromkeys(given.split(os.pathsep)) if os.path.isabs(name)]
    own = path_folders(names, top)
    for name in (*names, *own):
        needs.path_folder(name)
    kept = needs.records(folders)
    return Frozen(
        found.digest,
        kept,
        path,
        {folder: needs.record(Place(folder, deep=False)) for folder in own},
        programs,
        words,
        os.fspath(top),
        deciding_above(top),
        {gate.id: load_held_out(real / seal.heldout, checkout=top).digest for gate, seal in gates if seal.heldout},
        needs.links,
        caches,
        dependencies.writable_system(needs.imported) if gates else (),
        began_ns,
    )


def _add_needs(needs: Dependencies, base: Base, seal: Seal) -> None:
    """Add what a gate needs outside of the checkout, beside its programs."""
    needs.tree(base)
    for name in seal.keep:
        if name.startswith(("/", "~/")):
            needs.add(os.path.normpath(os.path.expanduser(name)))
    for variable in _PATHS:
        for name in seal.env.get(variable, "").split(os.pathsep):
            if name:
                needs.project(os.path.normpath(needs.root / name))
    if base.inside("package.json") in base.files:
        for above in base.top.parents:
            needs.add(f"{above}/node_modules")


def path_folders(names: Iterable[str], top: Path) -> list[str]:
    """Return the folders of PATH that are no part of the distribution or the checkout, without symbolic links."""
    found = dict.fromkeys(os.path.realpath(name) for name in names)
    return [name for name in found if os.path.isdir(name) and not is_system(name) and not is_below(name, (f"{top}",))]


def deciding_above(top: Path) -> dict[str, str]:
    """Return the files above a checkout that decide how tests run, such as `conftest.py`, each with its SHA-256.

    Test runners and compilers look for them in every folder upwards. What cannot be read has no digest.
    """
    found: dict[str, str] = {}
    for folder in top.parents:
        try:
            names = [name for name in os.listdir(folder) if decides_above(name)]
        except OSError:
            found[os.fspath(folder)] = ""
            continue
        for name in (*names, *_CARGO):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                found[path] = ""
                with suppress(OSError):
                    found[path] = _digest(path)
    return found


def _programs(gate: GateSpec, seal: Seal, base: Base, needs: Dependencies, path: str) -> dict[str, str]:
    """Return what the names of programs mean now, and add what they need.

    They are those of the commands, those that the runner asks for, and those that run held-out checks.
    """
    found: dict[str, str] = {}

    def which(name: str) -> str | None:
        found[name] = program_of((name,), needs.root, path)
        if os.path.basename(os.path.dirname(found[name])) == "shims" and interpreter_of(found[name]):
            found[name] = needs.asked(found[name])["executable"]
        return found[name] or None

    for argv in (gate.command, *seal.prepare):
        which(argv[0])
    runner = recognise(gate.command, read_file=reader(base), which=which, tests=seal.tests, junit=seal.junit)
    python = runner.interpreter[0] if isinstance(runner, PythonRunner) else ""
    tools = [name for name, file in _TOOLS if base.inside(file) in base.files]
    if seal.heldout:
        tools.append("node")
    if not python and (seal.heldout or any(name.endswith(".py") for name in base.files)):
        tools += ["python3", "python"]
    for name in tools:
        which(name)
    for name in dict.fromkeys((*found.values(), python, *_called(base))):
        if name:
            needs.program(name)
    return found


def _called(base: Base) -> Iterator[str]:
    for file in _RECIPES:
        text = (base.content(base.inside(file)) or b"").decode("utf-8", "replace")
        for name in ABSOLUTE.findall(text):
            if os.path.isfile(name) and os.access(name, os.X_OK):
                yield name


def reader(base: Base) -> Callable[[str], bytes | None]:
    """Return what reads a file of a base by its path relative to the root, or one of the machine by its own path."""

    def read(path: str) -> bytes | None:
        if not os.path.isabs(path):
            return base.content(base.inside(path))
        with suppress(OSError), open(path, "rb") as file:
            return file.read(_MAX_READ_BYTES)
        return None

    return read


def unchanged(frozen: Frozen, name: str) -> bool:
    """Return whether a file that a command names is what it was when the run started, or is part of the base."""
    with suppress(OSError):
        return name not in frozen.words or _digest(name) == frozen.words[name]
    return False


def program_of(argv: Sequence[str], root: Path, path: str) -> str:
    """Return the absolute path of a command's program; empty when it is not found. Links are not followed."""
    if not argv:
        return ""
    if "/" in argv[0]:
        name = os.path.normpath(root / argv[0])
        return name if os.access(name, os.X_OK) and os.path.isfile(name) else ""
    found = shutil.which(argv[0], path=path)
    return os.path.abspath(found) if found else ""


def named_files(argv: Sequence[str], root: Path, path: str) -> list[str]:
    """Return the absolute paths of the files that a command names, its program first."""
    names = [program_of(argv, root, path)]
    for word in argv[1:]:
        with suppress(OSError, ValueError):
            name = os.path.normpath(root / word)
            if word and stat.S_ISREG(os.stat(name).st_mode):
                names.append(name)
    return [name for name in dict.fromkeys(names) if name]


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return sha256(file.read()).hexdigest()
