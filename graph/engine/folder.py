"""The runs below a root: their names in files and journal, which there are, and the folder of each with its locks."""

import json
import os
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast

from typing_extensions import TypedDict

from interlock.core.files import write_atomically
from interlock.core.locks import locked
from interlock.graph.engine import mirror
from interlock.graph.errors import RunBusyError, RunDamagedError, UnknownRunError
from interlock.journal import Journal
from interlock.journal import journal_of as journal_at
from interlock.journal import path_of as journal_path_at

MAX_RUN_ID_CHARS: Final = 128
RUN_ID: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_RUN_ID_CHARS - 1}}}", re.ASCII)
"""What the runs of tasks and of tickets may be called."""
RUN_ID_FORM: Final = f"letters, digits, `.`, `_` and `-`, at most {MAX_RUN_ID_CHARS}, beginning with a letter or digit"


def is_run_id(name: object) -> bool:
    """Return whether a value has the form of a run id."""
    return isinstance(name, str) and RUN_ID.fullmatch(name) is not None


RECORD_VARIABLE: Final = "INTERLOCK_RECORD"
"""In a tree at its own path, where there are no namespaces: the root of the checkout, which keeps the record."""


def record_of(root: Path) -> Path:
    """Return the root that keeps the record of a root's runs: itself, but in a tree at a path of its own."""
    return Path(os.environ.get(RECORD_VARIABLE) or root)


def state_dir(root: Path) -> Path:
    """Return the folder of Interlock's own state, made on first use and ignored by git."""
    folder = record_of(root) / ".interlock"
    folder.mkdir(exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        write_atomically(ignore, b"*\n")
    return folder


def journal_path(root: Path) -> Path:
    """Return the path of the journal of a root."""
    return journal_path_at(record_of(root))


def snapshots_path(root: Path) -> Path:
    """Return where every snapshot of every ticket is kept."""
    return journal_path_at(record_of(root), "tickets")


def journal_of(root: Path) -> Journal:
    """Return the journal of a root; with a database its file is a copy, which each call brings up to date.

    Raises:
        DatabaseError: What names the database is no address of one.
    """
    return journal_at(record_of(root))


def snapshots_of(root: Path) -> Journal:
    """Return the journal that holds every snapshot of every ticket, as `journal_of` does."""
    return journal_at(record_of(root), "tickets")


def copies_dir(root: Path, run_id: str) -> Path:
    """Return the folder of a ticket run's payloads and of its last ticket, for people."""
    return record_of(root) / "artifacts" / "interlock" / "tickets" / run_id


def journal_run(run_id: str) -> str:
    """Return the name of a ticket run in the journal, where task runs have names of the same form."""
    return f"ticket:{run_id}"


def beside_run(run_id: str) -> str:
    """Return the journal name for lines that are about a task run and do not move it."""
    return f"{run_id}{_BESIDE}"


def is_beside(name: str) -> bool:
    """Return whether a journal name is for lines that are about a run and do not move it."""
    return name.endswith(_BESIDE)


# The end of a run is pinned by its head, so lines that people write at any time need a chain of their own.
_BESIDE: Final = "/beside"
"""No run id holds a slash."""


Kind: TypeAlias = Literal["runs", "tickets"]
"""The folder in `.interlock` of the runs of tasks, and of tickets."""

BEGIN: Final = "run.json"
"""The file that holds what a run began with; a folder without it is not a run."""


def list_runs(root: Path, kind: Kind) -> list[str]:
    """Return the ids of all runs, the oldest first."""
    return _by_age(_folders(root, kind))


def runs_of(root: Path, kind: Kind, name: str) -> list[str]:
    """Return the runs of a task or ticket, the newest first; one whose file cannot be read goes by its id."""
    return _by_age(folder for folder in _folders(root, kind) if _name(folder) == name)[::-1]


def find_run(root: Path, kind: Kind, name: str) -> str | None:
    """Return the run of that id, or the newest run of the task or ticket of that name, or None."""
    mirror.copy_runs(record_of(root) / ".interlock")
    # A run id goes first: a task may be called as an older run is.
    if is_run_id(name) and (record_of(root) / ".interlock" / kind / name / BEGIN).exists():
        return name
    # Of a task with candidates, the one that was not given up.
    candidate = re.compile(rf"{re.escape(name)}-C\d\.")
    kept = (run for run in list_runs(root, kind) if candidate.match(run) and not _is_abandoned(root, kind, run))
    return next(iter(runs_of(root, kind, name)), None) or next(kept, None)


def _is_abandoned(root: Path, kind: Kind, run_id: str) -> bool:
    return (record_of(root) / ".interlock" / kind / run_id / ABANDONED).exists()


def _folders(root: Path, kind: Kind) -> Iterator[Path]:
    mirror.copy_runs(record_of(root) / ".interlock")
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(record_of(root) / ".interlock" / kind) as entries:
        for entry in entries:
            if is_run_id(entry.name) and os.path.exists(os.path.join(entry.path, BEGIN)):  # noqa: PTH110, PTH118 - many
                yield Path(entry.path)


def _by_age(folders: Iterator[Path]) -> list[str]:
    # Copies of the runs of other machines may be made at one moment: then `T.9` goes before `T.10`.
    return [run for *_, run in sorted((made(folder), len(folder.name), folder.name) for folder in folders)]


def _name(folder: Path) -> str:
    try:
        begun = cast("dict[str, Any]", json.loads((folder / BEGIN).read_bytes()))
        return str(begun["task"]["task_id"] if "task" in begun else begun["ticket_id"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return folder.name.rpartition(".")[0]


def made(folder: Path) -> int:
    """Return when a run was made, in nanoseconds since the epoch: nothing changes what it began with."""
    return (folder / BEGIN).stat().st_mtime_ns


ABANDONED: Final = "abandoned"
"""The file and the journal line that say that a run was ended for good."""
LANDED: Final = "landed"
"""The journal line, beside a run, that says where its work has landed."""
PRUNED: Final = "pruned"
"""The journal line, beside a run, that says that a person had its folder removed, and where its lines ended."""


class HeadRecord(TypedDict):
    """The journal's head of a run: the number of its last line and that line's hash."""

    seq: int
    hash: str


def restore(then: str) -> str:
    """Return the fix for a journal that is not what was written; `then` is what to do once it is."""
    return f"Run `interlock verify`, restore artifacts/interlock from a copy, and {then}."


class RunFolder:
    """The files of one run below `.interlock/<kind>/<run_id>/`.

    Raises:
        UnknownRunError: The run id is not a legal name.
    """

    kind: ClassVar[Kind]

    def __init__(self, root: Path, run_id: str) -> None:
        if not is_run_id(run_id):
            raise UnknownRunError(
                f"`{str(run_id)[:80]}` is not a run id", f"Use {RUN_ID_FORM}; `interlock status` lists runs."
            )
        self.root = root
        self.run_id = run_id
        record = record_of(root) / ".interlock"
        self.folder = record / self.kind / run_id
        mirror.copy_runs(record)

    def exists(self) -> bool:
        """Return whether this run was begun."""
        return (self.folder / BEGIN).exists()

    def keep(self, name: str, data: bytes, *, saved: str = "") -> None:
        """Write a file of the run, for every machine that works on the project; `saved` as in `graph.task.carried`."""
        mirror.keep(self.folder, name, data, saved=saved)

    def drop(self, name: str) -> None:
        """Remove a file of the run, if it is there."""
        if (self.folder / name).exists():
            mirror.keep(self.folder, name, None)

    def keep_begin(self, data: bytes) -> None:
        """Keep what the run begins with; from then on it exists.

        Raises:
            RunBusyError: Another machine has begun a run of that name.
        """
        state_dir(self.root)
        if not mirror.keep(self.folder, BEGIN, data, first=True):
            raise RunBusyError(f"run {self.run_id} was begun on another machine", "Choose another run id.")

    def abandoned(self) -> bool:
        """Return whether this run was ended for good; its journal says so too."""
        return (self.folder / ABANDONED).exists()

    def damaged(self, name: str, why: str) -> RunDamagedError:
        """Return the error for a file of this run that cannot be read back."""
        folder = f".interlock/{self.kind}/{self.run_id}"
        return RunDamagedError(
            f"{folder}/{name} cannot be read back: {why}",
            f"Restore {folder} from a copy, or move it out of .interlock/{self.kind} and begin a new run.",
        )

    @contextmanager
    def holding(self, name: str, seconds: float | None, busy: tuple[str, str]) -> Generator[None]:
        """Hold a lock of the run; a killed holder's is free again at once.

        `seconds=None` waits without limit; `busy` is the message and the fix of the error.

        Raises:
            RunBusyError: Another process or call holds it for that long.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / name).open("ab") as file:
            while True:
                with locked(file, seconds=seconds) as held:
                    if held:
                        yield
                        return
                # A process that only checks whether it is held shares the lock for an instant: no reason to fail.
                with locked(file, shared=True, seconds=0) as unheld:
                    if not unheld:
                        raise RunBusyError(*busy)

    def held(self, name: str) -> bool:
        """Return whether some process holds a lock of the run at this moment; a killed one does not."""
        try:
            with (self.folder / name).open("rb") as file, locked(file, shared=True, seconds=0) as free:
                return not free
        except FileNotFoundError:
            return False
