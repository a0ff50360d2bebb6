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
import re
import secrets
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from interlock.gates.sealed.outcomes import BAD, GOOD, TestCase, TestRun, bounded

SOCKET: Final = "socket"
_LOADED: Final = ("loaded", "session")
"""Events that say what was loaded: before the first test, for runs that are cut off, and at the end."""
_MAX_BYTES: Final = 256 * 1024 * 1024
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
    def finished(self) -> bool:
        return any(event["e"] == "session" for event in self.events)

    def of(self, *kinds: str) -> Iterator[Mapping[str, Any]]:
        return (event for event in self.events if event["e"] in kinds)


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
        self._path = folder / SOCKET
        self._spec = {"root": root, "only": list(only), "keep_going": keep_going}
        self._progress = progress
        self._sessions: list[_Session] = []
        self._command = -1
        self._lock = threading.Lock()
        self._ended = self._bytes = 0
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
            self._threads.append(thread)
            thread.start()

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
            known = {session.pid: session for session in self._sessions}
            above = next((known[each] for each in _ancestors(pid) if each in known), None)
            if pid in known or (above is not None and (not worker or above.worker)):
                return None
            command = _command_of(pid)
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
            self._bytes += len(line)
            if found != expected or self._bytes > _MAX_BYTES:
                session.forged += 1
                continue
            mac = expected
            read: object = json.loads(body)
            event = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
            if not isinstance(event.get("e"), str):
                session.forged += 1
                continue
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
    cases: dict[str, TestCase] = {}
    for session in sessions:
        for event in session.of("case"):
            case = _case(event)
            # The worst of several outcomes counts: no later report takes a failure back.
            if case.id not in cases or _rank(case) > _rank(cases[case.id]):
                cases[case.id] = case
    controllers = [each for each in sessions if not each.worker]
    started = [str(event["id"]) for each in sessions for event in each.of("start")]
    forged = sum(each.forged for each in sessions)
    statuses = [int(event["status"]) for each in controllers for event in each.of("session")]
    judge = f"{forged} lines were not written by the observer" if forged else ""
    if not judge and exit_status == 0 and any(status not in (0, 5) for status in statuses):
        bad = next(status for status in statuses if status not in (0, 5))
        judge = f"{controllers[0].runner} ended with status {bad}, and the command with status 0"
    return TestRun(
        runner=controllers[0].runner,
        cases=tuple(cases.values()),
        collected=_texts(sessions, "ids", "collected"),
        running=tuple(dict.fromkeys(each for each in started if each not in cases)),
        broken=_pairs(sessions, "broken"),
        skipped_files=_pairs(sessions, "skipped_file"),
        deselected=_texts(sessions, "ids", "deselected"),
        complete=exit_status is not None and all(each.finished for each in sessions),
        exit_status=exit_status,
        sessions=len(controllers),
        judge=judge,
        loaded=tuple(
            sorted({(str(one), str(two)) for each in sessions for event in each.of(*_LOADED)
                    for one, two in event["loaded"]})
        ),
        frozen=tuple(sorted(_texts(sessions, "frozen", *_LOADED))),
        early=tuple(sorted(_texts(sessions, "early", *_LOADED))),
        roots=tuple(sorted(_texts(sessions, "roots", *_LOADED))),
        changed=tuple(sorted(_texts(sessions, "changed", *_LOADED))),
    )  # fmt: skip


def _case(event: Mapping[str, Any]) -> TestCase:
    texts = {name: str(event.get(name) or "") for name in ("ran", "when", "equals")}
    outcome = event["outcome"]
    if outcome not in (*BAD, *GOOD, "skipped", "xfailed"):
        raise ValueError(outcome)
    message, file = bounded(str(event["message"])), str(event["file"])
    return TestCase(str(event["id"]), outcome, float(event["seconds"]), message, file, **texts)  # pyright: ignore[reportArgumentType]


def _rank(case: TestCase) -> int:
    return 0 if case.outcome in GOOD else 2 if case.outcome in BAD else 1


def _texts(sessions: Sequence[_Session], name: str, *kinds: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(text) for each in sessions for event in each.of(*kinds) for text in event[name]))


def _pairs(sessions: Sequence[_Session], kind: str) -> tuple[tuple[str, str], ...]:
    """Return each file once, with the first message about it."""
    found: dict[str, str] = {}
    for session in sessions:
        for event in session.of(kind):
            found.setdefault(str(event["file"]), bounded(str(event["message"])))
    return tuple(found.items())


def _ancestors(pid: int) -> Iterator[int]:
    """Yield the processes above one, the nearest first."""
    while pid > 1:
        try:
            about = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        except OSError:
            return
        pid = int(about.rpartition(")")[2].split()[1])
        yield pid


def _command_of(pid: int) -> int | None:
    """Return the command that a process descends from: 0 without a sandbox; None where it has lost its parent.

    In a sandbox the command is the child of its first process; one that has lost its parent becomes a child of it, too.
    """
    line = [pid, *_ancestors(pid)]
    if os.getpid() not in line:
        return None
    first = next((at for at, each in enumerate(line) if _is_first(each)), 0)
    return line[first - 1] if first else 0


def _is_first(pid: int) -> bool:
    """Return whether a process is the first one of a sandbox."""
    with suppress(OSError):
        numbers = re.search(r"^NSpid:(.*)$", Path(f"/proc/{pid}/status").read_text("utf-8", "replace"), re.MULTILINE)
        return numbers is not None and numbers[1].split()[1:][-1:] == ["1"]
    return False
