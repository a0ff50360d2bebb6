"""The toolset `tasks`: the steps of the status machine, so that an agent host drives a task with its own agents.

What the tools do is in `TaskCalls`, for a caller that may be known.
"""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from interlock import graph
from interlock.envelope import MAX_BYTES
from interlock.gates.by_hand import collect_by_hand
from interlock.graph import UNANSWERED, Drives, GraphError, TaskError
from interlock.redaction import redactor_for
from interlock.server.mcp.app import READS, WRITES, InterlockServer
from interlock.server.mcp.concurrency import CallSlots
from interlock.server.mcp.project import tables
from interlock.server.mcp.task_results import (
    Collected,
    Judged,
    Step,
    Submitted,
    TaskState,
    collected,
    judged,
    open_asks,
    task_state,
)
from interlock.server.mcp.trust import own_files, own_inputs, own_page, refuse_power
from interlock.server.rules import CallError

if TYPE_CHECKING:
    from interlock.envelope.protocol import EvidenceKey, Protocol
    from interlock.gates.config import Config

MAX_WAIT_SECONDS: Final = 40.0
"""How long one call waits at most; the clients that wait least give up after 60 seconds."""

_POLL_SECONDS: Final = 0.5
"""How often a call that waits for its role's turn looks."""

_REMOTE: Final = {"runner": "remote"}

BROWSERS: Final = 2
"""How many browsers of one caller are open at once."""

TaskArgument = Annotated[
    str | dict[str, Any],
    Field(description="The keys of a task file as an object, or the path of a task file below the root."),
]
RunArgument = Annotated[str | None, Field(description="A name of your choice; the same one again begins nothing new.")]
RoleArgument = Annotated[str | None, Field(description="Only this role's ask; the call waits until it is asked.")]
WaitArgument = Annotated[float, Field(ge=0, le=MAX_WAIT_SECONDS)]
EnvelopeArgument = Annotated[str, Field(description="The whole response of the role: an envelope and nothing else.")]
AskArgument = Annotated[str | None, Field(description="The ask_id that it answers; makes a repetition safe.")]
KindsArgument = Annotated[
    list[Literal["screenshots", "console", "a11y"]] | None, Field(description="Which; default: all three.")
]


class TaskCalls:
    """The calls on the task runs of one root."""

    def __init__(self, root: Path, drives: Drives) -> None:
        self.root = root
        self.drives = drives

    def begin(self, given: str | dict[str, Any], run_id: str | None, *, caller: str = "") -> TaskState:
        """Start a run and take it to its first ask, or to its place in the queue where others hold its files.

        Raises:
            TaskError, ConfigError, AgentConfigError: The task cannot start.
            RunBusyError: The run id is taken by another task.
            CallError: The task names a runner that a task over MCP may not name.
        """
        task = self._task(given, caller)
        own_page(self.root, task.page, caller)
        if caller:
            own_files(self.root, task)
        # The answer to the same call was lost: the run goes on. Another task under this id is refused by `start_run`.
        if run_id is not None and graph.RunStore(self.root, run_id).exists():
            view = graph.view_run(run_id, root=self.root)
            if view.task.fingerprint() == task.fingerprint():
                return task_state(self.drives.advance(run_id, until_queued=True))
        run_id = graph.start_run(self.root, task, run_id=run_id)
        return task_state(self.drives.advance(run_id, until_queued=True))

    def next(self, run_id: str, role: str | None, wait_seconds: float, *, caller: str = "") -> Step:
        """Take a run on, and return who acts now; with a role, once that role is asked or the time is over.

        Raises:
            CallError: The role is not the caller's, or not of this run.
            UnknownRunError, RunDamagedError, RunnerError: The run cannot be taken on.
        """
        role = _own_role(role, caller)
        until = time.monotonic() + wait_seconds
        while True:
            # Looking takes no lock, so that a call which only waits is in nobody's way.
            view = self.drives.look(run_id)
            if view.phase in ("new", "running"):
                view = self.drives.advance(run_id, wait_seconds=max(0.0, until - time.monotonic()))
            asks = open_asks(view)
            if role is not None:
                _known_role(role, view)
                asks = {role: asks[role]} if role in asks else {}
            left = until - time.monotonic()
            # Without a role the call never waits: it returns what is open, whoever has to answer it.
            if asks or role is None or view.phase == "done" or left <= 0:
                # Whoever is asked works in the files from now on, and is known to its hooks by its own name.
                self.drives.keep_files(view, caller if asks else None)
                return Step(**task_state(view), asks=list(asks.values()))
            time.sleep(min(left, _POLL_SECONDS))

    def submit(self, run_id: str, role: str, text: str, ask_id: str | None, *, caller: str = "") -> Submitted:
        """Hand in an answer, unless this very answer to this very ask was handed in before.

        Raises:
            CallError: The role is not the caller's, or not of this run.
            GraphError: The run does not wait for this role, or asks something else by now; nothing was done.
            RunBusyError: The run was driven all the time; nothing was done.
        """
        _own_role(role, caller)
        view = graph.view_run(run_id, root=self.root)
        _known_role(role, view)
        if caller:
            own_inputs(self.root, text, view.task.inputs)
        # As it is kept, or it would not be known again.
        text = redactor_for(self.root, graph.key_variables(view.policy)).text(text)
        before = self._repeated(view, role, text, ask_id)
        if before is None:
            asks = {} if ask_id is None else {role: ask_id}
            try:
                view = self.drives.advance(run_id, answers={role: text}, asks=asks)
            except GraphError as error:
                if error.code != graph.ANSWER:
                    raise
                # The same answer may have come in twice at once.
                before = self._repeated(graph.view_run(run_id, root=self.root), role, text, ask_id)
                if before is None:
                    raise
        if before is not None:
            return _submitted(self.drives.look(run_id), before, repeated=True)
        found = judged(view, self.root, role, ask_id)
        # Without an ask id the last answer is found, which may be another one: only what came of this text counts.
        mine = found is not None and found.sha256 == _digest(text)
        return _submitted(view, found if mine else None, repeated=False)

    def status(self, run_id: str, *, caller: str = "") -> dict[str, Any]:
        """Return why a run is where it is, and whether anybody drives it at this moment.

        Raises:
            UnknownRunError, RunDamagedError: It cannot be read.
        """
        view = self.drives.look(run_id)
        return {**graph.explain_run(view, self.root, shared_only=bool(caller)), **task_state(view)}

    def collect(self, page: str, kinds: "Sequence[EvidenceKey] | None", *, caller: str = "") -> Collected:
        """Collect evidence of a page by hand.

        Raises:
            CallError: The page is one that the caller may not see.
            CollectorError, TreeError: There is no evidence.
        """
        own_page(self.root, page, caller)
        keys = kinds or ("screenshots", "console", "a11y")
        return collected(collect_by_hand(page, keys, root=self.root, timeout_seconds=MAX_WAIT_SECONDS / 2))

    def _task(self, given: str | dict[str, Any], caller: str) -> "graph.Task":
        """Return the task with a remote runner for each role that has no other and that the task needs."""
        config, protocol = tables(self.root)
        if isinstance(given, str):
            if caller:
                raise CallError(
                    "MCP403",
                    "a caller with a token names no task file",
                    "Send the keys of the task file as an object.",
                )
            task = graph.load_task(self._below(given))
        else:
            task = graph.task_from_mapping(given, base=str(self.root))
            refuse_power(task)
        task = graph.with_files(self.root, task)
        # A role that has a runner keeps it; the others answer through this server.
        agents = {**task.agents, **dict.fromkeys(_remote_roles(task, config, protocol), _REMOTE)}
        return replace(task, agents=agents)

    def _below(self, name: str) -> Path:
        """Return the path of a file below the root."""
        try:
            path = (self.root / name).resolve()
        except (ValueError, RuntimeError, OSError):
            # A zero byte, links in a circle, a name that is too long.
            path = Path()
        if not path.is_relative_to(self.root):
            raise TaskError(
                f"{name[:200]!r} is no file below {self.root}",
                "Name a file below the root, or send the task as an object.",
            )
        return path

    def _repeated(self, view: "graph.RunView", role: str, text: str, ask_id: str | None) -> Judged | None:
        """Return what came of this answer when it was handed in before; only an ask id shows that."""
        found = None if ask_id is None else judged(view, self.root, role, ask_id)
        return found if found is not None and found.sha256 == _digest(text) else None


def _submitted(view: "graph.RunView", found: Judged | None, *, repeated: bool) -> Submitted:
    return Submitted(
        **task_state(view),
        ok=None if found is None else found.outcome not in UNANSWERED,
        outcome=None if found is None else found.outcome,
        findings=[] if found is None else found.findings,
        reask="" if found is None else found.reask,
        repeated=repeated,
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text[: MAX_BYTES + 1].encode("utf-8", "surrogatepass")).hexdigest()


def _own_role(role: str | None, caller: str) -> str | None:
    if caller and role not in (None, caller):
        raise CallError(
            "MCP401",
            f"the token is {caller}'s, and the call is for the role `{str(role)[:80]}`",
            f"Name the role {caller} if it is one, or call with a token of that role: `interlock token create ROLE`.",
        )
    return caller or role


def _known_role(role: str, view: "graph.RunView") -> None:
    roles = view.policy.protocol.roles
    if role not in roles:
        raise CallError(
            "MCP402",
            f"run {view.run_id} has no role `{role[:80]}`",
            f"Name one of {', '.join(roles)}; a token answers for a role of its own name.",
        )


def _remote_roles(task: "graph.Task", config: "Config", protocol: "Protocol") -> list[str]:
    """Return the roles that take part by answering from outside.

    Those are the build roles, unless one that hands over has a runner, and the QA and review roles whose gate the task
    requires. Of a kind that would have nobody, all take part, so that the task is refused for the gates it lacks.
    """
    settled = {*config.agents, *task.agents}
    builds = protocol.of_kind("build")
    needed = [] if any(role.hands_over and role.name in settled for role in builds) else list(builds)
    for judges in (protocol.of_kind("qa"), protocol.of_kind("review")):
        asked = [role for role in judges if role.certifies in task.gates_required]
        needed += asked or ([] if any(role.name in settled for role in judges) else judges)
    return [role.name for role in needed if role.name not in settled]


def register(server: InterlockServer) -> None:
    """Add the tools to a server."""
    at_work, waiting = server.at_work, server.waiting
    calls, browsers = TaskCalls(server.root, Drives(server.root)), CallSlots(BROWSERS)

    @server.tool(annotations=WRITES)
    async def task_begin(task: TaskArgument, run_id: RunArgument = None) -> TaskState:
        """Begin a run of a task and see who acts first. Roles without a configured runner answer by task_submit."""
        return await at_work(lambda who: calls.begin(task, run_id, caller=who))

    @server.tool(annotations=WRITES)
    async def task_next(run_id: str, role: RoleArgument = None, wait_seconds: WaitArgument = MAX_WAIT_SECONDS) -> Step:
        """Take a run on and get who acts now: each ask with prompt, role prompt, evidence and ask_id."""
        return await at_work(lambda who: calls.next(run_id, role, wait_seconds, caller=who), waiting)

    @server.tool(annotations=WRITES)
    async def task_submit(run_id: str, role: str, envelope: EnvelopeArgument, ask_id: AskArgument = None) -> Submitted:
        """Hand in a role's answer; returns what came of it, every finding, and what is next."""
        return await at_work(lambda who: calls.submit(run_id, role, envelope, ask_id, caller=who))

    @server.tool(annotations=READS)
    async def task_status(run_id: str) -> dict[str, Any]:
        """Explain the status of a task: which gates are missing, whether they can be met, and what to do."""
        return await at_work(lambda who: calls.status(run_id, caller=who))

    @server.tool(annotations=WRITES)
    async def collect_evidence(
        page: Annotated[str, Field(description="An HTML file below the root, or a URL.")], kinds: KindsArgument = None
    ) -> Collected:
        """Look at a page with Interlock's browser, as a rehearsal; a run collects its own evidence."""
        return await at_work(lambda who: calls.collect(page, kinds, caller=who), browsers)
