"""What a run freezes for its sealed gates when it starts: the base, the kept folders, the programs of the commands."""

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from interlock.envelope.protocol import GateSpec
from interlock.gates.sealed import base as bases
from interlock.gates.sealed import keep
from interlock.gates.sealed.base import Base
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.heldout import load_held_out
from interlock.gates.sealed.listing import list_tree
from interlock.gates.sealed.protect import decides_above
from interlock.gates.sealed.runners import recognise
from interlock.gates.sealed.settings import Seal

_ASK_PYTHON: Final = (
    "import json,sys,sysconfig;p=sysconfig.get_paths();"
    "print(json.dumps([[p[n] for n in ('stdlib','platstdlib','purelib','platlib')],[sys.prefix,sys.base_prefix]]))"
)
_ASK_SECONDS: Final = 20
_CARGO: Final = (".cargo/config", ".cargo/config.toml")
_SHEBANG_BYTES: Final = 512
_MAX_READ_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Frozen:
    """What the sealed gates of a run go by; JSON values only.

    Args:
        base: Digest of the base.
        kept: Each kept folder, absolute, to the digest of its record.
        path: PATH, as it was when the run started.
        path_folders: Each folder of PATH in which this user can put programs, to the digest of the record of its files.
        programs: What the names of programs that the gates ask for meant then: name to absolute path, or to "".
        words: Absolute path of each file outside the base that a command names, its program included, to its SHA-256.
        top: The checkout that the base is of, absolute.
        around: Absolute path of each file above the checkout that a test runner looks for there, to its SHA-256.
        heldout: Gate id to the digest of its held-out checks.
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


def freeze(
    root: Path,
    gates: Sequence[tuple[GateSpec, Seal]],
    *,
    base: Base | None = None,
    path: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Frozen:
    """Freeze what sealed gates need.

    Args:
        root: The project's root.
        gates: The gates with how they are sealed.
        base: The base to use; None: the tree as it is now.
        path: PATH of the commands; None: that of this process.
        progress: Called with the files done and the files in all.

    Raises:
        SealError: The tree cannot be frozen.
        HeldOutError: The held-out checks of a gate cannot be used.
    """
    real = Path(os.path.realpath(root))
    top, relative = bases.place_of(real) if base is None else (base.top, base.root)
    listing = list_tree(top, relative)
    found = base or bases.freeze(real, listing=listing, progress=progress)
    given = os.environ.get("PATH", os.defpath) if path is None else path
    path = os.pathsep.join(dict.fromkeys(part for part in given.split(os.pathsep) if os.path.isabs(part)))
    words: dict[str, str] = {}
    programs: dict[str, str] = {}
    folders: list[str] = []
    own = [row for row in path.split(os.pathsep) if _is_users(row) and not f"{row}/".startswith(f"{top}/")]
    for gate, seal in gates:
        programs |= _programs(gate, seal, found, real, seal.env.get("PATH", path))
        folders += keep.kept_folders(top, relative, listing, seal.keep)
        if found.inside("package.json") in found.files:
            folders += [f"{above}/node_modules" for above in top.parents if os.path.isdir(f"{above}/node_modules")]
        for argv in (gate.command, *seal.prepare):
            for name in named_files(argv, real, seal.env.get("PATH", path)):
                if found.files.get(os.path.relpath(name, top)) is None:
                    words[name] = _digest(name)
            program = program_of(argv, real, seal.env.get("PATH", path))
            folders += [row for row in python_folders(program) if not row.startswith(f"{top}/")] if program else []
    return Frozen(
        found.digest,
        {folder: keep.record(folder) for folder in folders},
        path,
        {folder: keep.record(folder, deep=False) for folder in own},
        programs,
        words,
        os.fspath(top),
        deciding_above(top),
        {gate.id: load_held_out(real / seal.heldout, checkout=top).digest for gate, seal in gates if seal.heldout},
    )


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


def _programs(gate: GateSpec, seal: Seal, base: Base, root: Path, path: str) -> dict[str, str]:
    """Return what the names of programs mean now: those of the commands, and those that its runner asks for."""
    found: dict[str, str] = {argv[0]: program_of(argv, root, path) for argv in (gate.command, *seal.prepare) if argv}

    def which(name: str) -> str | None:
        found[name] = program_of((name,), root, path)
        return found[name] or None

    recognise(gate.command, read_file=reader(base), which=which, tests=seal.tests, junit=seal.junit)
    return found


def reader(base: Base) -> Callable[[str], bytes | None]:
    """Return what reads a file of a base by its path relative to the root, or one of the machine by its own path."""

    def read(path: str) -> bytes | None:
        if not os.path.isabs(path):
            return base.content(base.inside(path))
        with suppress(OSError), open(path, "rb") as file:
            return file.read(_MAX_READ_BYTES)
        return None

    return read


def _is_users(folder: str) -> bool:
    """Return whether this user, and so an agent, may put programs into a folder of PATH."""
    try:
        status = os.stat(folder)
    except OSError:
        return False
    home = os.path.realpath(os.path.expanduser("~"))
    below = f"{os.path.realpath(folder)}/".startswith(f"{home}/")
    return below or (os.access(folder, os.W_OK) and status.st_uid != 0)


def changed_words(frozen: Frozen, files: Sequence[str]) -> Iterator[str]:
    """Yield what of a command's own files is not what it was when the run started."""
    for name in files:
        before = frozen.words.get(name)
        if before is not None:
            with suppress(OSError):
                if _digest(name) == before:
                    continue
            yield f"{name} was changed"


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


def interpreter_of(program: str) -> str:
    """Return the Python that a program is or names in its first line; empty when it is none."""
    if os.path.basename(program).startswith(("python", "pypy")):
        return program
    try:
        with open(program, "rb") as file:
            line = file.read(_SHEBANG_BYTES).partition(b"\n")[0]
    except OSError:
        return ""
    if not line.startswith(b"#!"):
        return ""
    words = os.fsdecode(line[2:]).split()
    found = next((word for word in words if os.path.basename(word).startswith(("python", "pypy"))), "")
    return found if os.path.isabs(found) else ""


def python_folders(program: str) -> tuple[str, ...]:
    """Return the folders that the Python of a program loads its library and packages from, where this user can write.

    Raises:
        SealError: `SEAL103` it does not say.
    """
    names = sorted({os.path.normpath(name) for name in _asked(interpreter_of(program))[0]})
    outer = [name for name in names if not any(name.startswith(f"{other}/") for other in names)]
    return tuple(name for name in outer if os.path.isdir(name) and os.access(name, os.W_OK))


def prefixes(program: str) -> tuple[str, ...]:
    """Return the folders that the Python of a program is installed in; none for another program."""
    return tuple(dict.fromkeys(_asked(interpreter_of(program))[1]))


@cache
def _asked(python: str) -> tuple[list[str], list[str]]:
    if not python:
        return [], []
    try:
        done = subprocess.run(
            [python, "-I", "-c", _ASK_PYTHON], capture_output=True, timeout=_ASK_SECONDS, check=True, cwd="/"
        )
        folders, installed = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        message = f"The Python {python} of a gate's command does not say where its packages are: {error}."
        raise SealError("SEAL103", message, "Repair it, or name another program in `command`.") from error
    return folders, installed


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return sha256(file.read()).hexdigest()
