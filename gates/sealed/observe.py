"""The gate's side of observing: a socket that runners report to, and what their events come to.

Answers T2. Tested code shares a process with the observer of its runner, so an event proves only that it came over the
connection that was made before the product was imported, in the order in which it was sent: each line carries a keyed
digest of itself and of the line before. A connection is a *session* unless a process above it is connected already
(tests that start a runner), its own process is, or it does not descend from the command any more: what tested code
left behind to report later has lost its parent. A worker of a controller is a session of its own, which its
controller's tests run in. A session that was there before and did not finish, or a test that failed in one, is not
undone by another.

The protocol is in docs/design/016.
"""

import hmac
import json
import os
import secrets
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from interlock.gates.sealed.outcomes import BAD, GOOD, SKIPPED, TestCase, TestRun, bounded

_LOADED: Final = ("loaded", "session")
"""Events that say what was loaded: before the first test, for runs that are cut off, and at the end."""
_WAIT_SECONDS: Final = 5.0
_CREDENTIALS: Final = struct.Struct("3i")
_LINE: Final = (
    '\nexec(compile(__spec__.loader.get_data({file!r}), {file!r}, "exec"), '
    '{{"__name__": __name__, "FOLDER": {probes!r}, "TARGET": globals()}})\n'
)


def with_observer(path: str, folder: str) -> bytes:
    """Return the text of a file of a runner with one line more, which brings the observer in.

    `folder` has the socket and the probes, as the runner sees it.
    """
    text, probes = Path(path).read_bytes(), f"{folder}/probes"
    if path.endswith(".py"):
        return text + _LINE.format(file=f"{probes}/observer.py", probes=probes).encode()
    first, _, rest = text.partition(b"\n")
    load = 'import "{}"\n' if path.endswith(".mjs") else 'require("{}")\n'
    return first + b"\n" + load.format(f"{probes}/node_observer.cjs").encode() + rest


@dataclass(slots=True)
class _Session:
    """What one process of a runner reported; `forged` lines do not carry the digest that they must."""

    runner: str
    pid: int
    worker: str = ""
    events: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    forged: int = 0

    @property
    def ends(self) -> list[Mapping[str, Any]]:
        return [event for event in self.events if event["e"] == "session"]


class Observation:
    """Listens for the sessions of one run of a command; use it as a context.

    Args:
        folder: Where the socket is made; its path must be short.
        root: The project's root, as the command sees it.
        only: Ids of the tests to run; all where there are none.
        progress: Takes how many tests have ended so far.
        keep_going: Run the tests of other files where a file cannot be collected.
    """

    def __init__(
        self, folder: Path, root: str, *, only: Sequence[str] = (), keep_going: bool = False,
        progress: Callable[[int], None] = lambda _count: None,
    ) -> None:  # fmt: skip
        self._path = folder / "socket"
        self._spec = {"root": root, "only": list(only), "keep_going": keep_going}
        self._progress = progress
        self._sessions: list[_Session] = []
        self._command = -1
        self._lock = threading.Lock()
        self._ended = 0
        self._threads: list[threading.Thread] = []
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def __enter__(self) -> "Observation":
        self._server.bind(os.fspath(self._path))
        self._server.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in self._threads:
            thread.join(_WAIT_SECONDS)
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, ValueError, KeyError, TypeError):
            about = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            pid = _CREDENTIALS.unpack(about)[0]
            lines = connection.makefile("rb")
            hello = json.loads(lines.readline())
            session = self._admitted(str(hello["runner"]), pid, str(hello.get("worker") or ""))
            key = secrets.token_bytes(32)
            answer = {**self._spec, "ignored": session is None, "key": key.hex()}
            connection.sendall(json.dumps(answer).encode() + b"\n")
            if session is not None:
                self._read(session, lines, key)

    def _admitted(self, runner: str, pid: int, worker: str) -> _Session | None:
        with self._lock:
            known, line = {session.pid: session for session in self._sessions}, _lineage(pid)
            above = next((known[each] for each, _ in line[1:] if each in known), None)
            if pid in known or (above is not None and (not worker or above.worker)):
                return None
            command = _command_of(line)
            if command is None or (self._sessions and command != self._command):
                return None
            self._command = command
            session = _Session(runner, pid, worker if above is not None else "")
            self._sessions.append(session)
            return session

    def _read(self, session: _Session, lines: Iterable[bytes], key: bytes) -> None:
        mac = b""
        for line in lines:
            body, _, found = line.rstrip(b"\n").rpartition(b" ")
            expected = hmac.new(key, mac + body, "sha256").hexdigest().encode()
            if found != expected:
                session.forged += 1
                continue
            mac = expected
            event = json.loads(body)
            session.events.append(event)
            if event["e"] == "case":
                with self._lock:
                    self._ended += 1
                    self._progress(self._ended)

    def result(self, exit_status: int | None) -> TestRun | None:
        """Return what was observed; None where no runner began. One that only prints its version does not."""
        sessions = [each for each in self._sessions if each.events or each.forged]
        if not sessions:
            return None
        try:
            return _run_of(sessions, exit_status)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            judge = bounded(f"an event of the observer is not as the observer writes it: {error!r}")
            return TestRun(sessions[0].runner, complete=False, exit_status=exit_status, judge=judge)


def _run_of(sessions: Sequence[_Session], exit_status: int | None) -> TestRun:
    events = [event for each in sessions for event in each.events]

    def of(*kinds: str) -> list[Mapping[str, Any]]:
        return [event for event in events if event["e"] in kinds]

    def texts(name: str, *kinds: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(text) for event in of(*kinds) for text in event[name]))

    def files(kind: str) -> tuple[tuple[str, str], ...]:
        first: dict[str, str] = {}
        for event in of(kind):
            first.setdefault(str(event["file"]), bounded(str(event["message"])))
        return tuple(first.items())

    cases: dict[str, TestCase] = {}
    for case in map(_case, of("case")):
        # The worst of several outcomes counts: no later report takes a failure back.
        if case.id not in cases or _rank(case) > _rank(cases[case.id]):
            cases[case.id] = case
    controllers = [each for each in sessions if not each.worker]
    statuses = [int(end["status"]) for each in controllers for end in each.ends]
    forged, bad = sum(each.forged for each in sessions), [each for each in statuses if each not in (0, 5)]
    judge = f"{forged} lines were not written by the observer" if forged else ""
    if not judge and exit_status == 0 and bad:
        judge = f"{controllers[0].runner} ended with status {bad[0]}, and the command with status 0"
    started = [str(event["id"]) for event in of("start")]
    modules = {(str(name), str(path)) for event in of(*_LOADED) for name, path in event["loaded"]}
    return TestRun(
        runner=controllers[0].runner,
        cases=tuple(cases.values()),
        collected=texts("ids", "collected"),
        running=tuple(dict.fromkeys(each for each in started if each not in cases)),
        broken=files("broken"),
        skipped_files=files("skipped_file"),
        deselected=texts("ids", "deselected"),
        complete=exit_status is not None and all(each.ends for each in sessions),
        exit_status=exit_status,
        sessions=len(controllers),
        judge=judge,
        loaded=tuple(sorted(modules)),
        frozen=tuple(sorted(texts("frozen", *_LOADED))),
        early=tuple(sorted(texts("early", *_LOADED))),
        roots=tuple(sorted(texts("roots", *_LOADED))),
        changed=tuple(sorted(texts("changed", *_LOADED))),
    )


def _case(event: Mapping[str, Any]) -> TestCase:
    if event["outcome"] not in (*BAD, *GOOD, *SKIPPED):
        raise ValueError(event["outcome"])
    fields = {name: event[name] for name in ("id", "outcome", "file", "ran", "when", "equals")}
    return TestCase(**fields, seconds=float(event["seconds"]), message=bounded(event["message"]))


def _rank(case: TestCase) -> int:
    return 0 if case.outcome in GOOD else 2 if case.outcome in BAD else 1


def _lineage(pid: int) -> list[tuple[int, bool]]:
    """Return a process and those above it, the nearest first, and of each whether it is the first one of a sandbox."""
    found: list[tuple[int, bool]] = []
    with suppress(OSError):
        while pid:
            about = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
            numbers = about.partition("\nNSpid:")[2].partition("\n")[0].split()
            found.append((pid, numbers[1:][-1:] == ["1"]))
            pid = int(about.partition("\nPPid:")[2].split(None, 1)[0])
    return found


def _command_of(line: Sequence[tuple[int, bool]]) -> int | None:
    """Return the command that a process descends from: 0 without a sandbox; None where it has lost its parent.

    In a sandbox the command is the child of its first process; one that has lost its parent becomes a child of it, too.
    """
    if os.getpid() not in [pid for pid, _ in line]:
        return None
    first = next((at for at, (_, is_first) in enumerate(line) if is_first), 0)
    return line[first - 1][0] if first else 0
