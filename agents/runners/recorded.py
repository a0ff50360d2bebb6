"""Replaying a recording: each ask gets its recorded answer, and the files that changed are written."""

import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from threading import Condition
from typing import Final

from interlock.agents.ask import Answer, Ask, RunnerError
from interlock.agents.changes import MEASURED, TITLE
from interlock.agents.confined import delete_confined, write_confined
from interlock.agents.files import ScopedFiles, files_of
from interlock.agents.quoting import visible
from interlock.agents.recording import AskObserver, Listing
from interlock.agents.recording_file import Change, Recorded, Row, apply, is_report, read_recording
from interlock.redaction import Redactor

ORDER_SECONDS: Final = 5.0
"""How long an ask waits for those that were answered before it; where the run goes another way, they may never come."""

_DIGEST: Final = re.compile(r"\b[0-9a-f]{64}\b|(?<=\(sha256 )[0-9a-f]{16}(?=…\))", re.ASCII)
_SECONDS: Final = re.compile(r"\b[0-9]+\.[0-9]+ ?s\b", re.ASCII)
_MEASURED: Final = re.compile(rf'^(<data from="(?:{"|".join(MEASURED)}) .*>\n)(?:\|.*\n)*', re.MULTILINE)
"""Quoted logs: Interlock makes them again, and times, addresses and folders in them may differ."""
_CHANGES: Final = re.compile(rf"^## {TITLE}\n(?:(?!## ).*\n)*", re.MULTILINE)
"""What a run changed, which follows from the tree, that is compared, and from files before it and outside the scope."""
_MAX_SHOWN: Final = 200
_MAX_NAMED: Final = 5
_FIX: Final = (
    "Replay it on the files, the task and the configuration that it was recorded with, with this version of Interlock, "
    "or record the run again."
)


class RecordedRunner(AskObserver):
    """The runner of every role of a run that is replayed, and the order in which they answer."""

    def __init__(self, recorded: Recorded, listing: Listing, redactor: Redactor) -> None:
        self._recorded = recorded
        self._listing = listing
        self._redactor = redactor
        self._rows: dict[str, list[int]] = {}
        for place, row in enumerate(recorded.rows):
            self._rows.setdefault(row.name, []).append(place)
        self._turns = Condition()
        self._is_busy = False
        self._over: set[str] = set()
        self._replayed: set[str] = set()

    @classmethod
    def load(cls, path: Path, listing: Listing, redactor: Redactor) -> "RecordedRunner":
        """Return the player of a file.

        Raises:
            AgentConfigError: It is no recording.
        """
        return cls(read_recording(path), listing, redactor)

    @property
    def unused(self) -> tuple[str, ...]:
        """The asks that were recorded and not made again."""
        return tuple(name for name in self._rows if name not in self._replayed)

    @contextmanager
    def alone(self, name: str) -> Generator[None]:
        """Let agents that were asked side by side answer one after another, as they did when they were recorded."""
        with self._turns:
            self._turns.wait_for(lambda: not self._is_busy and not self._awaits(name), timeout=ORDER_SECONDS)
            self._turns.wait_for(lambda: not self._is_busy)
            self._is_busy = True
        try:
            yield
        finally:
            with self._turns:
                self._is_busy = False
                self._over.add(name)
                self._turns.notify_all()

    def _awaits(self, name: str) -> bool:
        """Return whether an ask of the same phase, answered before this one, is still to come."""
        place = self._rows.get(name, [0])[0]
        rows = self._recorded.rows[: place + 1]
        role, phase = name.partition("/")[0], _phase(rows[-1]) if rows else ""
        others = (row for row in rows[:-1] if _phase(row) == phase and row.name.partition("/")[0] != role)
        return any(row.name not in self._over for row in others)

    def __call__(self, ask: Ask, /) -> Answer:
        """Compare an ask with the recorded one, put the files that changed, and return the answer.

        Raises:
            RunnerError: The ask differs or was not recorded, or a file cannot be put.
        """
        name = ask.name
        places = self._rows.get(name)
        if places is None:
            message = f"{_who(ask)} was not asked in the recording; it has {len(self._recorded.rows)} answers"
            raise RunnerError(message, _FIX)
        rows = [self._recorded.rows[place] for place in places]
        self._compare(ask, rows[0], places[0])
        # An answer that was lost with its process was asked for again; what both turns changed is there.
        for row in rows:
            _put(ask, row.changes)
        if rows[0].touched:
            self._compare_files(ask, places[-1])
        self._replayed.add(name)
        return rows[-1].answer

    def _compare(self, ask: Ask, row: Row, place: int) -> None:
        if row.tree != ask.tree and not row.touched:
            expected, found = f"the tree {row.tree}", f"the tree {ask.tree}"
            raise RunnerError(_differs(ask, "the scope", expected, found) + _named(*self._other_files(place)), _FIX)
        names = {
            **dict.fromkeys((self._recorded.run_id, ask.run_id), "{run_id}"),
            **dict.fromkeys((self._recorded.root, ask.root), "{root}"),
        }
        for what, recorded, present in (
            ("role prompt", row.system, self._redactor.text(ask.system)),
            ("assignment", row.prompt, self._redactor.text(ask.prompt)),
        ):
            pairs = zip_longest(_lines(recorded, names), _lines(present, names))
            for number, (expected, found) in enumerate(pairs, 1):
                if expected != found:
                    where = f"line {number} of the {what}"
                    raise RunnerError(_differs(ask, where, _quoted(expected), _quoted(found)), _FIX)

    def _compare_files(self, ask: Ask, place: int) -> None:
        """Compare the files after a turn before which somebody had changed them: the tree before it proves nothing."""
        paths, without_key = self._other_files(place + 1)
        if len(paths) > len(without_key):
            where = _differs(ask, "the scope after the answer", "the recorded files", "others")
            raise RunnerError(where + _named(paths, without_key), _FIX)

    def _other_files(self, place: int) -> tuple[list[str], list[str]]:
        """Return the files that are not as some rows left them, and those of them that lost a key in the recording."""
        files = dict(self._recorded.files)
        before = [change for row in self._recorded.rows[:place] for change in row.changes]
        apply(files, tuple(before))
        now = self._listing("")
        paths = sorted(path for path in {*files, *now} if not is_report(path) and files.get(path) != now.get(path))
        lost = {change.path for change in before if change.is_redacted}
        return paths, [path for path in paths if path in lost]


def _phase(row: Row) -> str:
    """Return what asks have in common that may be made side by side: the step and the round of work."""
    return f"{row.step} {row.name.partition('/')[2].partition('/')[0]}"


def _who(ask: Ask) -> str:
    return f"{ask.role}, attempt {ask.attempt}, turn {ask.turn}, re-ask {ask.reask},"


def _differs(ask: Ask, where: str, expected: str, found: str) -> str:
    return f"{_who(ask)} is asked something else than in the recording: {where}: expected {expected}, found {found}"


def _named(paths: Sequence[str], without_key: Sequence[str]) -> str:
    parts = ((". Other files: ", paths), (". A key was taken out of the recorded ", without_key))
    return "".join(words + ", ".join(map(visible, each[:_MAX_NAMED])) for words, each in parts if each)


def _lines(text: str, names: Mapping[str, str]) -> list[str]:
    """Return lines to compare: without what names run and root, and without what is measured again."""
    for value in sorted((value for value in names if len(value) > 1), key=len, reverse=True):
        text = text.replace(value, names[value])
    text = _SECONDS.sub("{seconds}", _DIGEST.sub("{sha256}", text))
    return _CHANGES.sub("", _MEASURED.sub(r"\1", text)).splitlines()


def _quoted(line: str | None) -> str:
    return "nothing" if line is None else f"`{visible(line)[:_MAX_SHOWN]}`"


def _put(ask: Ask, changes: Sequence[Change]) -> None:
    """Put the files that changed: a build role's under the leases of its run."""
    with ExitStack() as stack:
        files: ScopedFiles | None = None
        for change in changes:
            _check(ask, change)
            if is_report(change.path):
                if change.data is None:
                    delete_confined(ask.root, change.path)
                else:
                    write_confined(ask.root, change.path, change.data)
            else:
                writer = ask if ask.step == "build" else replace(ask, agent="")
                files = files or stack.enter_context(files_of(writer, ask.in_scope))
                path, data = change.path, change.data
                put = files.delete(path) if data is None else files.write_bytes(path, data)
                for row in put["errors"]:
                    raise RunnerError(f"{row['place']}: {row['code']} {row['message']}", row["fix"])
            if change.data is not None:
                _set_mode(f"{ask.root}/{change.path}", is_executable=change.value.startswith("100755"))


def _check(ask: Ask, change: Change) -> None:
    """Refuse a file that the recording does not hold, and one that this ask may not change."""
    path = visible(change.path)
    if change.left_out:
        message = f"{_who(ask)} changed {path}, which the recording does not hold: {change.left_out}"
        raise RunnerError(message, "Take that file out of the task's scope and record the run again.")
    if not change.path.startswith(f"{ask.reports_dir}/") and not ask.in_scope(change.path):
        message = f"the recording changes {path}, which is neither in scope nor in the reports folder"
        raise RunnerError(message, "Replay only recordings that `interlock run --record` wrote.")


def _set_mode(path: str, *, is_executable: bool) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode & 0o777
        os.fchmod(descriptor, mode | 0o111 if is_executable else mode & ~0o111)
    finally:
        os.close(descriptor)
