"""The ask: everything that an agent is given for one answer; the answer; and the runner between the two."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from hashlib import sha256
from os import PathLike, fsencode
from os.path import realpath
from typing import Any, Final, Literal, Protocol, TypeAlias

from interlock.agents.usage import Limits, Usage
from interlock.core.errors import InterlockError
from interlock.envelope.protocol import EvidenceKey
from interlock.envelope.protocol import Protocol as EnvelopeProtocol
from interlock.redaction import Redactor

Step: TypeAlias = Literal["build", "qa", "review"]

Notice: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Takes a step of a run as it happens, also from other threads."""

RUN: Final = "INTERLOCK_RUN"
REQUEST_SCHEMA: Final = "interlock.ask/1"

# The reservations take no longer name of an agent.
_MAX_NAME_CHARS: Final = 100
_PUBLIC: Final = (
    "ask_id",
    "run_id",
    "task_id",
    "role",
    "step",
    "attempt",
    "turn",
    "reask",
    "tree",
    "evidence",
    "reports_dir",
    "system",
    "prompt",
)
"""What an agent in another process gets of an ask."""


def agent_of_run(run_id: str) -> str:
    """Return the name of the agent that a run is among the reservations: `run:` and its id, a long one cut."""
    name = f"run:{run_id}"
    if len(name) <= _MAX_NAME_CHARS:
        return name
    # The digest keeps two long ids apart that begin alike; with its hyphen it takes 17 characters.
    return f"{name[: _MAX_NAME_CHARS - 17]}-{sha256(run_id.encode()).hexdigest()[:16]}"


def run_mark(root: str | PathLike[str], run_id: str) -> str:
    """Return what the programs of a run have in `INTERLOCK_RUN`: runs of other folders have the same ids."""
    return f"{run_id}:{sha256(fsencode(realpath(root))).hexdigest()[:16]}"


def name_of(role: str, attempt: int, turn: int, reask: int) -> str:
    """Return the name of an ask within its run."""
    return f"{role}/{attempt}.{turn}/{reask}"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What the programs of an agent are kept in.

    Args:
        words: The beginning of a command line, to which `--` and the program are added.
        clients: A folder that is writable inside, for state and caches of the client.
    """

    words: tuple[str, ...]
    clients: str

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables for programs inside, where caches of the person cannot be written."""
        return {
            "XDG_CACHE_HOME": f"{self.clients}/cache",
            "XDG_STATE_HOME": f"{self.clients}/state",
            "npm_config_cache": f"{self.clients}/npm",
            # Not `/tmp`: clients make no programs below it, and the home folder of a test may be.
            "TMPDIR": f"{self.clients}/tmp",  # noqa: S108 - a folder of its own
        }


@dataclass(frozen=True, slots=True)
class Ask:
    """One request for one answer of one role.

    Args:
        run_id: The run that asks.
        task_id: The task that is worked on.
        role: The role that must answer, as in ASSIGNED_AGENT.
        attempt: The round of work, from 1; every rework adds one.
        reask: 0 for the first ask of an attempt, then the number of refused answers before this one.
        step: What the run is doing.
        prompt: The assignment, and after a refusal the findings too.
        root: Absolute path of the folder that the task works in.
        tree: Digest of the files in scope when the ask was made.
        evidence: Files that Interlock collected for this role, by EVIDENCE key, relative to the root.
        reports_dir: Folder for the reports of this agent, relative to the root; it may not exist yet.
        system: The prompt of the role; its contract is in `prompt`.
        turn: Which hand of the build phase this is within the attempt, from 1; progress reports make it grow.
        agent: The name under which the run holds its files; empty when it holds none.
        task: What is to be done, one line: TASK.
        required: GATES_REQUIRED.
        status: The status of the task when the ask was made.
        protocol: The roster and the gates that the answer is judged by; None when they are not known.
        in_scope: Returns whether a path relative to the root is in the scope of the task.
        keeps_base: Returns whether a change of such a path would be put back at the hand-over: no gate takes it.
        inputs: Files and folders that the task names as its sources: an agent may read them outside the scope too.
        commands: argv by name: what an agent may have run; for a build role the commands of the task's gates too.
        limits: What is left of the budgets for this answer.
        sandbox: What programs that do the work are kept in; None where they are not.
        at_work: Called with the process id of a program that does the work, and with None when all of it has ended.
        notice: Called with what the agent is doing meanwhile, as `{kind: "working", role, tool, calls, tokens,
            usd}`; `usd` is None where the price is not known.
    """

    run_id: str
    task_id: str
    role: str
    attempt: int
    reask: int
    step: Step
    prompt: str
    root: str
    tree: str
    evidence: Mapping[EvidenceKey, tuple[str, ...]]
    reports_dir: str
    system: str
    turn: int = 1
    agent: str = ""
    task: str = ""
    required: tuple[str, ...] = ()
    status: str = ""
    # What follows is the same for a whole run or cannot be compared: two asks are equal by what is asked.
    protocol: EnvelopeProtocol | None = field(default=None, compare=False, repr=False)
    in_scope: Callable[[str], bool] = field(default=lambda _path: False, compare=False, repr=False)
    keeps_base: Callable[[str], bool] = field(default=lambda _path: False, compare=False, repr=False)
    inputs: tuple[str, ...] = ()
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    limits: Limits = field(default_factory=Limits)
    sandbox: Sandbox | None = field(default=None, compare=False, repr=False)
    notice: Notice = field(default=lambda _step: None, compare=False, repr=False)
    at_work: Callable[[int | None], None] = field(default=lambda _pid: None, compare=False, repr=False)

    @property
    def edits(self) -> bool:
        """Return whether the role changes files of the scope: it builds, and leaves that to no other role."""
        row = None if self.protocol is None else self.protocol.roles.get(self.role)
        return self.step == "build" and (row is None or row.hands_over)

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables for a program that does the work: its hooks then know it as the run itself."""
        return {"INTERLOCK_AGENT_ID": self.agent} if self.agent else {}

    @property
    def own_mark(self) -> dict[str, str]:
        """Return the variable by which a program that does the work is known later as one of this run."""
        return {RUN: run_mark(self.root, self.run_id)}

    @property
    def name(self) -> str:
        """Return the name of this ask within its run, the same in every run of the task."""
        return name_of(self.role, self.attempt, self.turn, self.reask)

    @property
    def ask_id(self) -> str:
        """Return the name of this ask, the same in every process that makes it again."""
        return f"{self.run_id}/{self.task_id}/{self.name}"


@dataclass(frozen=True, slots=True)
class Answer:
    """One response of an agent.

    A runner may return the bare text instead; then nothing is known but that.

    Args:
        text: What the agent said; it is judged like any other text.
        usage: What it cost.
        model: The model that said it, as its provider calls it; empty when that is not known.
        tool_calls: How many tools the agent called; None when that cannot be known.
        stopped: The limit that ended the work before there was an answer, with its figures; empty when there is one.
        cost_reported: Whether the runner reported what it cost; False when that was measured around it.
        opened: The files that tools of ours showed the agent or wrote for it, relative to the root; None when that is
            not known.
    """

    text: str
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    tool_calls: int | None = None
    stopped: str = ""
    cost_reported: bool = True
    opened: tuple[str, ...] | None = None


def remote_request(ask: Ask) -> dict[str, object]:
    """Return what an agent outside this process is shown while the run waits for its answer, as JSON types.

    The root stays out: a remote agent may work in another checkout, and every path is relative to it.
    """
    row: dict[str, object] = {"schema": REQUEST_SCHEMA, **{name: getattr(ask, name) for name in _PUBLIC}}
    return row | {"evidence": {key: list(paths) for key, paths in ask.evidence.items()}}


class Runner(Protocol):
    """What gets the text of an agent: a function from an ask to a response, with its cost where it is known.

    It is called with one positional argument, may be called again for the same ask after a crash, and raises
    `RunnerError` when there is no response. What the text says is not its concern.
    """

    def __call__(self, ask: Ask, /) -> str | Answer:
        """Return the response to an ask."""
        ...


class Remote(Enum):
    """The type of `REMOTE`, so that a type checker can distinguish a runner from the marker."""

    REMOTE = "remote"


REMOTE: Final = Remote.REMOTE
"""In place of a runner when the answer comes from outside: the run waits until it is handed in."""


class RunnerError(InterlockError):
    """There is no response to an ask. The runner, its script or its environment must be fixed.

    Fix: The program or model gave no text: see in the message whether it is missing, refused the call or ran out of
    time. Repair that, then `interlock resume RUN` asks again.

    `spent` is what was spent before, as far as the runner knows it; None when it knows nothing.
    """

    code = "AGT902"

    def __init__(self, message: str, fix: str, spent: Usage | None = None) -> None:
        super().__init__(message, fix)
        self.spent = spent


class AgentConfigError(InterlockError):
    """The user's configuration of an agent cannot be used.

    Fix: Nothing was asked yet. Correct the key that the message names, in `[agents.ROLE]` of interlock.toml or of
    the task.

    `key` is the place in the file, such as `agents.visual-qa.script`.
    """

    code = "AGT901"

    def __init__(self, path: str, key: str, message: str, fix: str) -> None:
        super().__init__(message, fix)
        self.path = path
        self.key = key

    def __str__(self) -> str:
        """Return the place and the message on one line."""
        return f"{self.path}: {self.key}: {self.message}"


def brought(runner: Runner, ask: Ask, redactor: Redactor, most_chars: int) -> Answer:
    """Return the answer of a runner, as `kept`, with its cost as it was measured here where the runner reports none.

    Raises:
        RunnerError: It has none; a key that the error quotes is taken out.
    """
    started = time.monotonic()
    try:
        answer = runner(ask)
    except RunnerError as error:
        message, fix = redactor.text(error.message), redactor.text(error.fix)
        if (message, fix) == (error.message, error.fix):
            raise
        # Without its cause, whose text has the key still.
        raise RunnerError(message, fix, error.spent) from None
    if isinstance(answer, str):
        answer = Answer(answer, Usage(calls=1, seconds=time.monotonic() - started, usd=None), cost_reported=False)
    if not isinstance(answer, Answer):  # pyright: ignore[reportUnnecessaryIsInstance] - a user's function may lie
        raise RunnerError(f"the runner of {ask.role} returned {type(answer).__name__}, not a text", "Return a str.")
    return kept(answer, redactor, most_chars)


def kept(answer: Answer, redactor: Redactor, most_chars: int) -> Answer:
    """Return an answer as it is kept and judged: without keys, and cut where it is too large to be accepted."""
    # Keys go before the text is cut, since half of one would not be known as a key.
    text, model, stopped = map(redactor.text, (answer.text, answer.model, answer.stopped))
    return replace(answer, text=text[:most_chars], model=model, stopped=stopped)
