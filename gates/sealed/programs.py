"""Programs that nobody may read: the kernel then lets no other process into the memory of one that runs them.

A test may start tested code as a process of its own. It has the same user as the test runner, and could open its
`/proc/PID/mem` and `environ`, trace it or take its descriptors; of a process whose program its user may not read Linux
refuses all of these. The program is copied, without the right to read, and mounted in its own place.
"""

import os
import shutil
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from interlock.gates.sealed.errors import SealError

_HEAD_BYTES: Final = 4096
_ELF: Final = b"\x7fELF"
_MAX_STEPS: Final = 4


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
            os.chmod(found[name], 0o111)  # noqa: S103 - it may be run, and not read
    except OSError as error:
        message = f"The programs of the gate cannot be copied to {folder}: {error.strerror}."
        raise SealError("SEAL122", message, "Free some disk space, and make them readable.") from error
    try:
        yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
