"""Programs that nobody may read: the kernel then lets no other process into the memory of one that runs them.

A test may start tested code as a process of its own. It has the same user as the test runner, and could open its
`/proc/PID/mem` and `environ`, trace it or take its descriptors; of a process whose program its user may not read Linux
refuses all of these. The program is copied, without the right to read, and mounted in its own place.
"""

import fcntl
import os
import shutil
import signal
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from interlock.gates.sealed.errors import SealError

_HEAD_BYTES: Final = 4096
_ELF: Final = b"\x7fELF"
_MAX_STEPS: Final = 4
_SETTLE_SECONDS: Final = 5.0


@contextmanager
def unreadable(programs: Iterable[str], which: str, folder: Path) -> Generator[dict[str, str]]:
    """Copy programs, and those that their first lines name (by PATH `which`), until the context ends.

    What is no program of this machine, or is not there, is left out. The folder lies where programs may be run. Yields
    the path of a program, without symbolic links, to that of its copy; `SEAL122` where they cannot be copied.
    """
    shutil.rmtree(folder, ignore_errors=True)
    found = dict[str, str]()
    try:
        folder.mkdir()
        for name in dict.fromkeys(path for each in programs for path in _executed(each, which)):
            found[name] = f"{folder}/{len(found)}"
            shutil.copyfile(name, found[name])
            settle(found[name])
            os.chmod(found[name], 0o111)  # noqa: S103 - it may be run, and not read
    except OSError as error:
        message = f"The programs of the gate cannot be copied to {folder}: {error.strerror}."
        raise SealError("SEAL122", message, "Free some disk space, and make them readable.") from error
    try:
        yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def settle(path: str) -> None:
    """Wait until nobody has a program open for writing; until then Linux does not run it ("Text file busy").

    A process that another thread starts has the descriptors of this one for a moment, also the one that wrote the file.
    """
    end = time.monotonic() + _SETTLE_SECONDS
    with open(path, "rb") as file, suppress(AttributeError, OSError):  # a system, or a file system, without leases
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)  # to whoever has a lease at the next open: this one is ignored
        while time.monotonic() < end:
            with suppress(BlockingIOError):
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)  # refused while somebody may write
                return
            time.sleep(0.001)


def _executed(program: str, which: str) -> Iterator[str]:
    """Yield the programs that run when a path is started: itself, or what its first line names, and so on."""
    for _ in range(_MAX_STEPS):
        path = os.path.realpath(program)
        try:
            with open(path, "rb") as file:
                head = file.read(_HEAD_BYTES)
        except OSError:
            return
        if head.startswith(_ELF):
            yield path
        if not head.startswith(b"#!"):
            return
        words = os.fsdecode(head[2:].partition(b"\n")[0]).split()
        if not words:
            return
        program = words[0]
        if os.path.basename(program) == "env":
            name = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
            program = shutil.which(name, path=which) or ""
