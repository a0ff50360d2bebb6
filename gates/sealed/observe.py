"""The gate's side of observing: a socket that runners report to, and what their events come to.

Answers T2. Tested code shares a process with the observer of its runner, so an event proves only that it came over the
connection that was made before the product was imported: each line begins with a token that this connection alone was
given. A connection is a *session* unless its own process or one above it is connected already (tests that start a
runner). A worker below a session that said it is a controller is a session of its own, which its controller's tests run
in; one below another session is of a runner that a test started, in its own process or not. A session that lies about
that gains nothing: its process could report such tests itself. No session undoes what another reported: the worst of
several outcomes of a test counts, and each has to say that it was finished.

The protocol is in docs/history/016.
"""

import json
import os
import secrets
import socket
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil

from interlock.gates.sealed.outcomes import BAD, GOOD, SKIPPED, TestCase, TestRun, bounded

_LOADED: Final = ("loaded", "session")
"""Events that say what was loaded: before the first test, for runs that are cut off, and at the end."""
_CONTROLLER: Final = {"e": "begin", "controller": True}
"""A session says with it that its tests run in workers, and starts them when this was answered."""
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
        return text + _LINE.format(file=f"{probes}/python_observer.py", probes=probes).encode()
    # The first line of a script may be its shebang, which has to stay the first.
    first, _, rest = text.partition(b"\n")
    load = 'import "{}"\n' if path.endswith(".mjs") else 'require("{}")\n'
    return first + b"\n" + load.format(f"{probes}/node_observer.cjs").encode() + rest


@dataclass(slots=True)
class _Session:
    """What one process of a runner reported; `forged` lines do not begin with the token."""

    runner: str
    pid: int
    worker: str = ""
    is_controller: bool = False
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
        keep_going: Run the tests of other files where a file cannot be collected.
    """

    def __init__(self, folder: Path, root: str, *, keep_going: bool = False) -> None:
        self._path = folder / "socket"
        self._spec = {"root": root, "keep_going": keep_going}
        self._sessions: list[_Session] = []
        self._lock = threading.Lock()
        self._readers: list[tuple[threading.Thread, socket.socket]] = []
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> "Observation":
        self._server.bind(os.fspath(self._path))
        self._server.listen(64)
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._listener.join()
        self._server.close()
        for thread, connection in self._readers:
            # What was sent is still read, however long that takes; a process that was left behind is not waited for.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
            thread.join()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._readers.append((thread, connection))
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, ValueError, KeyError, TypeError):
            # The kernel says who connected; what the process says of itself could be made up.
            about = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            lines = connection.makefile("rb")
            hello = json.loads(lines.readline())
            worker = str(hello.get("worker") or "")
            session = self._admitted(str(hello["runner"]), _CREDENTIALS.unpack(about)[0], worker)
            token = secrets.token_hex(32)
            answer = {**self._spec, "ignored": session is None, "token": token}
            connection.sendall(json.dumps(answer).encode() + b"\n")
            if session is not None:
                _read(session, connection, lines, token.encode())

    def _admitted(self, runner: str, pid: int, worker: str) -> _Session | None:
        with self._lock:
            known = {session.pid: session for session in self._sessions}
            # A runner that a test starts is below an observed one and none of ours, but for a worker below its
            # controller.
            above = next((known[each] for each in _ancestors(pid) if each in known), None)
            if pid in known or (above is not None and not (worker and above.is_controller and not above.worker)):
                return None
            session = _Session(runner, pid, worker if above is not None else "")
            self._sessions.append(session)
            return session

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


def _read(session: _Session, connection: socket.socket, lines: Iterable[bytes], token: bytes) -> None:
    for line in lines:
        given, _, body = line.rstrip(b"\n").partition(b" ")
        # Product that finds the socket can write lines, and they are counted; it cannot know the token by means of
        # the protocol.
        if secrets.compare_digest(given, token):
            session.events.append(json.loads(body))
            # Answered once, so that a process which reads nothing holds nobody up.
            if session.events[-1] == _CONTROLLER and not session.is_controller:
                session.is_controller = True
                connection.sendall(b"\n")
        else:
            session.forged += 1


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
        # Two sessions may run one test: the worse outcome stays, so that no second run whitewashes it.
        if case.id not in cases or _rank(case) > _rank(cases[case.id]):
            cases[case.id] = case
    controllers = [each for each in sessions if not each.worker]
    statuses = [int(end["status"]) for each in controllers for end in each.ends]
    # 5 is what pytest and unittest end with where they found no tests.
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
        equals=texts("equals", *_LOADED),
    )


def _case(event: Mapping[str, Any]) -> TestCase:
    if event["outcome"] not in (*BAD, *GOOD, *SKIPPED):
        raise ValueError(event["outcome"])
    fields = {name: event[name] for name in ("id", "outcome", "file", "ran", "when")}
    return TestCase(**fields, seconds=float(event["seconds"]), message=bounded(event["message"]))


def _rank(case: TestCase) -> int:
    return 0 if case.outcome in GOOD else 2 if case.outcome in BAD else 1


def _ancestors(pid: int) -> Iterator[int]:
    """Yield the processes above one, the nearest first."""
    with suppress(psutil.Error):
        yield from (each.pid for each in psutil.Process(pid).parents())
