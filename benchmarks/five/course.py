"""The stage manager: starts the agents, kills one, stops another past its lease, and waits until all are through."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Final, TypeAlias

from benchmarks.five.agent import Part, Role
from benchmarks.five.checkout import Checkout, environment, orders
from interlock.reservations import SqliteStore, drain_events, place

HOME: Final = Path(__file__).resolve().parents[2]
LIMIT_SECONDS: Final = 900.0

Process: TypeAlias = "subprocess.Popen[str]"
Heard: TypeAlias = tuple[str, str]
"""An agent, and the state that it reports."""


class Failed(Exception):  # noqa: N818 - named by what is the case
    """An agent ended with an error, or the course did not end."""


@dataclass(frozen=True, slots=True)
class Course:
    """A course that was run.

    Args:
        checkout: The workspace as it was left.
        logs: What each agent did, in its order.
        dead: The agent that was killed.
        seconds: How long it took, from the first step to the last.
    """

    checkout: Checkout
    logs: dict[str, list[dict[str, Any]]]
    dead: str
    seconds: float


def parts(checkout: Checkout, agents: int, seed: int, folder: Path) -> list[Part]:
    """Return who does what: the first dies, the second is stopped, the third works there meanwhile.

    The scene of the stop comes early for the one who is stopped. The scene of the death is the last repository of the
    last agent, which therefore meets the leases of the dead.
    """
    if agents < 3 or checkout.count < 4:
        raise ValueError("a course has at least 3 agents and 4 repositories")
    lines = orders(checkout.names, agents, seed)
    death, stop = lines[0][checkout.count // 2], lines[1][checkout.count // 8]
    lines[-1].remove(death)
    lines[-1].append(death)
    steady: tuple[Role, str] = ("steady", "")
    roles: list[tuple[Role, str]] = [("dies", death), ("pauses", stop), ("rival", stop), *[steady] * (agents - 3)]
    cue = str(folder / "stopped")
    return [
        Part(name, str(checkout.root), checkout.layout, line, str(folder / f"{name}.jsonl"), number, role, scene, cue)
        for number, (line, (role, scene)) in enumerate(zip(lines, roles, strict=True), seed * 100)
        for name in (f"agent-{number % 100 + 1}",)
    ]


def run(checkout: Checkout, agents: int, seed: int, folder: Path) -> Course:
    """Make the workspace and let the agents sweep it.

    Args:
        checkout: What to make.
        agents: How many.
        seed: For orders and choices.
        folder: Where logs and messages of the agents go.

    Raises:
        Failed: An agent ended with an error, or the course did not end.
    """
    checkout.make()
    cast = {part.name: part for part in parts(checkout, agents, seed, folder)}
    with _started(cast.values(), folder) as (processes, heard):
        seconds = _Stage(cast, processes, heard, folder).direct()
    found = place.find(str(checkout.root))
    drain_events(SqliteStore(found.store_path), found.root)
    logs = {name: [json.loads(line) for line in Path(part.log).read_text().splitlines()] for name, part in cast.items()}
    return Course(checkout, logs, next(part.name for part in cast.values() if part.role == "dies"), seconds)


@contextmanager
def _started(cast: Iterable[Part], folder: Path) -> Generator[tuple[dict[str, Process], Queue[Heard]]]:
    """Start the agents and listen to them; none outlives the course."""
    processes: dict[str, Process] = {}
    heard: Queue[Heard] = Queue()
    listeners: list[threading.Thread] = []
    try:
        for part in cast:
            script = folder / f"{part.name}.json"
            script.write_text(json.dumps(asdict(part)))
            env = environment(INTERLOCK_AGENT_ID=part.name, INTERLOCK_PROJECT=part.root, PYTHONPATH=str(HOME))
            with (folder / f"{part.name}.err").open("w") as errors:
                processes[part.name] = subprocess.Popen(
                    [sys.executable, "-m", "benchmarks.five.agent", str(script)],
                    cwd=HOME,
                    env=env,
                    text=True,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                )
            listeners.append(threading.Thread(target=_listen, args=(part.name, processes[part.name], heard)))
            listeners[-1].start()
        yield processes, heard
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
        for listener in listeners:
            listener.join()
        for process in processes.values():
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with suppress(BrokenPipeError):
                    pipe.close()


def _listen(name: str, process: Process, heard: Queue[Heard]) -> None:
    """Pass on what an agent says; its end is said too."""
    assert process.stdout is not None
    for line in process.stdout:
        heard.put((name, json.loads(line)["at"]))
    heard.put((name, "ended"))


class _Stage:
    """The state of each agent, and what happens then.

    Args:
        cast: The parts by name.
        processes: Their processes.
        heard: What they say.
        folder: Where their messages are.
    """

    def __init__(
        self, cast: Mapping[str, Part], processes: Mapping[str, Process], heard: Queue[Heard], folder: Path
    ) -> None:
        self._cast = cast
        self._processes = processes
        self._heard = heard
        self._folder = folder
        self._by_role = {part.role: part.name for part in cast.values()}
        self._playing = set(cast)
        self._deadline = time.monotonic() + LIMIT_SECONDS

    def direct(self) -> float:
        """Let the course run to its end; returns how many seconds it took."""
        for _ in self._cast:
            self._hear("ready")
        start = time.monotonic()
        for name in self._cast:
            self._go(name)
        acts = {
            ("dies", "on the scene"): self._kill,
            ("pauses", "about to write"): self._stop,
            ("rival", "on the scene"): self._wake,
            ("pauses", "tried"): lambda: self._go(self._by_role["rival"], self._by_role["pauses"]),
        }
        while self._playing:
            name, at = self._hear()
            if at == "ended":
                self._end(name)
            else:
                acts.pop((self._cast[name].role, at))()
        if acts:
            raise Failed(f"never happened: {sorted(acts)}")
        return time.monotonic() - start

    def _hear(self, wanted: str = "") -> Heard:
        try:
            name, at = self._heard.get(timeout=max(0.0, self._deadline - time.monotonic()))
        except Empty:
            raise Failed(f"{', '.join(sorted(self._playing))} did not end within {LIMIT_SECONDS:.0f} s") from None
        if wanted and at != wanted:
            raise Failed(f"{name} {at} in place of {wanted}: {self._said(name)}")
        return name, at

    def _go(self, *names: str) -> None:
        for name in names:
            pipe = self._processes[name].stdin
            assert pipe is not None
            pipe.write("go\n")
            pipe.flush()

    def _kill(self) -> None:
        self._processes[self._by_role["dies"]].kill()

    def _stop(self) -> None:
        self._processes[self._by_role["pauses"]].send_signal(signal.SIGSTOP)
        (self._folder / "stopped").touch()

    def _wake(self) -> None:
        self._processes[self._by_role["pauses"]].send_signal(signal.SIGCONT)
        self._go(self._by_role["pauses"])

    def _end(self, name: str) -> None:
        self._playing.discard(name)
        code = self._processes[name].wait()
        expected = -signal.SIGKILL if self._cast[name].role == "dies" else 0
        if code != expected:
            raise Failed(f"{name} ended with {code}: {self._said(name)}")

    def _said(self, name: str) -> str:
        return (self._folder / f"{name}.err").read_text()[-4000:]
