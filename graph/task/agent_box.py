"""The sandbox of agents' programs in a tree of its own: what they see of the machine, and what they can write.

Answers T2. The machine is read-only. `/tmp`, `/run` and the like are empty folders of their own, so that no socket of
another program is there; the state folder, and what Interlock keeps in the project, are not to be seen. Written can be
the tree, the folder of the role's reports, and state and caches of the client, which are kept for this run alone: a
hook written into the person's own client would run outside later. Processes end with the program. Network, and what
the person's home folder has to read, stay: clients need both.

No capability is left, and what is mounted cannot be mounted otherwise. Namespaces within are allowed, since clients
make sandboxes of their own.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from interlock.agents.ask import Sandbox
from interlock.core import state
from interlock.core.database import ADDRESS
from interlock.gates.sealed import PRIVATE, is_below, place_of
from interlock.graph.task.clone import Clone, bubblewrap

_RESOLVER: Final = "/etc/resolv.conf"
_NOBODY: Final = "65534"
"""A user that every machine has a name for."""


def sandbox_of(clone: Clone, reports: str, evidence: Iterable[str]) -> Sandbox:
    """Return the sandbox for an ask, in the process that drives the run.

    Args:
        clone: The tree of the run.
        reports: The folder of the role's reports, relative to the root.
        evidence: Files that the role is to read, relative to the root.
    """
    root = clone.inside
    (root / reports).mkdir(parents=True, exist_ok=True)
    clients = os.fspath(clone.folder / "clients")
    words = [bubblewrap(), "--die-with-parent", "--new-session", "--unshare-user", "--unshare-pid", "--unshare-ipc"]
    words += ["--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    if os.getuid() == 0:
        # Without capabilities the user 0 could not make a namespace within, as sandboxes of clients do.
        words += ["--uid", _NOBODY, "--gid", _NOBODY]
    for folder in PRIVATE:
        words += ["--tmpfs", folder]
    for place in _visible():
        words += ["--ro-bind", place, place]
    for place in _secrets() if os.environ.get(ADDRESS) else ():
        words += ["--tmpfs", os.fspath(place)] if place.is_dir() else ["--ro-bind", os.devnull, os.fspath(place)]
    words += ["--tmpfs", state.folder(), "--bind", os.fspath(clone.place), os.fspath(clone.place)]
    if clone.mounted:
        words += ["--ro-bind", os.fspath(clone.folder / "objects"), os.fspath(clone.folder / "objects")]
    for name in (".interlock", "artifacts"):
        words += ["--tmpfs", os.fspath(root / name)]
    words += ["--bind", os.fspath(root / reports), os.fspath(root / reports)]
    for path in evidence:
        if not path.startswith(f"{reports}/"):
            words += ["--ro-bind", os.fspath(root / path), os.fspath(root / path)]
    return Sandbox((*words, "--bind", clients, clients), clients)


def hiding(program: str, root: Path) -> str:
    """Return the folder that hides a program from agents in a tree, since theirs is empty there; nothing for others."""
    seen = (os.fspath(root), os.fspath(place_of(root)[0]), *_visible())
    if found := shutil.which(os.fspath(root / program) if "/" in program else program):
        for path in (found, os.path.realpath(found)):
            for folder in PRIVATE:
                if is_below(path, (folder,)) and not is_below(path, seen):
                    return folder
    return ""


def _secrets() -> Iterator[Path]:
    """Yield where libpq finds what this user reaches the database with."""
    home = Path.home()
    named = [os.environ.get(name, "") for name in ("PGPASSFILE", "PGSERVICEFILE", "PGSSLKEY")]
    own = [home / ".pgpass", home / ".pg_service.conf", home / ".postgresql"]
    for place in (*(Path(name) for name in named if name), *own):
        if place.exists():
            yield place.resolve()


def _visible() -> Iterator[str]:
    """Yield what has to be seen although it lies in a folder that is private: names of hosts, the home, programs."""
    installed = [Path(each).parent for each in os.get_exec_path() if each.startswith("/")]
    for path in dict.fromkeys([Path(_RESOLVER).resolve(), Path.home(), *installed]):
        place = os.fspath(path)
        if is_below(place, PRIVATE) and place not in PRIVATE and path.exists():
            yield place
