"""One command in a sandbox: an export at the checkout's own path, a network of its own, nothing left running.

Answers T2. Bubblewrap makes the namespaces; where it cannot, there are none, the command runs in the folder of the
export, and its level says so. Inside, of the machine only what its distribution installs (`SYSTEM`) and the places that
are named are seen; the export, a private HOME and `/tmp` can be written, and no further namespace can be made, in which
something else could be mounted over a test. Nothing above the export is there.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from interlock.core import process
from interlock.core.locks import locked
from interlock.core.process import Ended
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.settings import Network

Level: TypeAlias = Literal["namespaces", "none"]

SYSTEM: Final = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/nix/store",
    "/gnu/store",
    "/snap",
    "/sys/devices/system",
)
"""Where distributions install: seen inside as they are."""

PRIVATE: Final = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108 - their empty doubles inside
"""Folders of which a sandbox has empty ones of its own."""
_EMPTY: Final = ("/home", "/root", "/media", "/mnt", "/opt", "/srv", "/var")
"""Folders that programs may look for; nothing is in them inside."""
_FOLDER: Final = "interlock-gate-"
"""How the names of folders for runs of gates begin."""
_TRIAL_SECONDS: Final = 20
MEMORY_DISK: Final = "/dev/shm"  # noqa: S108 - files of a gate are written into a folder of their own there


@dataclass(frozen=True, slots=True)
class Bind:
    """A place of the machine that is seen inside, at a path of its own; without a source an empty, writable folder."""

    source: str
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """What a command sees beside `SYSTEM`: places, symbolic links (path to text), and its network.

    A bare one shows the whole machine as it is, its network too, with the places in it.
    """

    binds: tuple[Bind, ...]
    links: Mapping[str, str]
    network: Network = "loopback"
    bare: bool = False


@cache
def level() -> Level:
    """Return the level of isolation that is to be had on this machine; it is tried once in this process."""
    words = _words(("true",), Box((), {}), "/")
    try:
        tried = subprocess.run(words, capture_output=True, timeout=_TRIAL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "none"
    return "namespaces" if tried.returncode == 0 else "none"


def run(
    argv: Sequence[str],
    box: Box | None,
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout_seconds: float,
    output: Callable[[bytes], object],
    stdin: bytes = b"",
) -> Ended:
    """Run a command to its end or its time limit, and end everything that it started.

    Without a box it sees the machine as it is. `cwd` is where it runs, as seen inside; `env` is its whole environment.

    Raises:
        OSError: The program cannot be started.
    """
    words, where = (list(argv), cwd) if box is None else (_words(argv, box, cwd), "/")
    return process.run(words, cwd=where, env=env, timeout_seconds=timeout_seconds, output=output, stdin=stdin)


def _words(argv: Sequence[str], box: Box, cwd: str) -> list[str]:
    # `--dev-bind / /` is the machine as it is, and the binds are mounted over it.
    if box.bare:
        words = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--new-session", "--dev-bind", "/", "/"]
        for bind in box.binds:
            words += ["--bind", bind.source, bind.target]
        return [*words, "--chdir", cwd, "--", *argv]
    words = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--new-session", "--unshare-user", "--unshare-pid"]
    # A further user namespace could mount over the tests what it likes.
    words += ["--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL", "--disable-userns"]
    words += [] if box.network == "host" else ["--unshare-net"]
    # The root becomes read-only at last, when all places to mount on have been made in it.
    words += ["--dev", "/dev", "--proc", "/proc", *_mounts(box), "--remount-ro", "/", "--chdir", cwd]
    return [*words, "--", *argv]


def _mounts(box: Box) -> Iterator[str]:
    """Yield the words for what is seen inside; a place comes after the one that it lies in."""
    rows: list[tuple[str, tuple[str, ...]]] = [(name, ("--dir", name)) for name in (*_EMPTY, os.path.expanduser("~"))]
    rows += [(name, ("--tmpfs", name)) for name in PRIVATE]
    for name in SYSTEM:
        # On merged systems `/bin` is a link to `usr/bin`, and a mount in its place would be seen as a folder.
        if os.path.islink(name):
            rows.append((name, ("--symlink", os.readlink(name), name)))
        elif os.path.isdir(name):
            rows.append((name, ("--ro-bind", name, name)))
    for bind in box.binds:
        words = ("--bind" if bind.writable else "--ro-bind", bind.source, bind.target)
        rows.append((bind.target, words if bind.source else ("--tmpfs", bind.target)))
    seen = (*SYSTEM, *(bind.target for bind in box.binds))
    rows += [(path, ("--symlink", text, path)) for path, text in box.links.items() if not is_below(path, seen)]
    for _, words in sorted(rows, key=lambda row: row[0].count("/")):
        yield from words


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of these folders or lies in one."""
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


@contextmanager
def private_folder(size_bytes: int = 0) -> Generator[Path]:
    """Make a folder for one run of a gate, in memory where so many bytes have room, and remove it in the end.

    It is locked meanwhile, by which those that a killed process left are told apart: they are removed first.
    """
    remove_left_folders()
    try:
        space = os.statvfs(MEMORY_DISK)
        # The size is an estimate by the number of files, so a multiple of it has to be free.
        roomy = space.f_bavail * space.f_frsize > 4 * size_bytes and os.access(MEMORY_DISK, os.W_OK)
    except OSError:
        roomy = False
    try:
        made = tempfile.mkdtemp(prefix=f".{_FOLDER}", dir=MEMORY_DISK if roomy else None)
    except OSError as error:
        raise SealError("SEAL122", f"No temporary folder can be made: {error.strerror}.", "Free disk space.") from error
    # Nobody looks for it until it is locked and has its name.
    folder = Path(made).with_name(Path(made).name[1:])
    with _opened(made) as descriptor, locked(descriptor):
        Path(made).rename(folder)
        try:
            yield folder
        finally:
            _remove(folder)


def remove_left_folders() -> None:
    """Remove the folders of gates whose processes were killed."""
    for parent in (MEMORY_DISK, tempfile.gettempdir()):
        for folder in Path(parent).glob(f"{_FOLDER}*"):
            with suppress(OSError), _opened(folder) as descriptor, locked(descriptor, seconds=0) as free:
                if free:
                    _remove(folder)


@contextmanager
def _opened(folder: str | Path) -> Generator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _remove(folder: Path) -> None:
    for words in (("rm", "-rf"), ("chmod", "-R", "u+rwx"), ("rm", "-rf")):  # what a test left without permissions
        if folder.exists():
            subprocess.run([*words, folder], capture_output=True, check=False)
