"""The toolset `tasks`: the steps of the status machine, so that an agent host drives a task with its own agents.

What the tools do is in `TaskCalls`, for a caller that may be known.
"""

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from interlock import graph
from interlock.core.text import closest
from interlock.envelope import MAX_BYTES
from interlock.gates.by_hand import TASK_ID, collect_by_hand
from interlock.graph import UNANSWERED, AnswerError, Drives, TaskError
from interlock.redaction import redactor_for
from interlock.server.http.tokens import RESERVED
from interlock.server.mcp.app import READS, WRITES, InterlockServer
from interlock.server.mcp.concurrency import CallSlots
from interlock.server.mcp.project import tables
from interlock.server.mcp.task_results import (
    Abandoned,
    Collected,
    Judged,
    Step,
    Submitted,
    TaskState,
    collected,
    judged,
    made_by_a_run,
    made_by_hand,
    open_asks,
    task_state,
)
from interlock.server.mcp.trust import own_files, own_inputs, own_page, refuse_hidden, refuse_power
from interlock.server.rules import CallError

if TYPE_CHECKING:
    from interlock.envelope.protocol import EvidenceKey, Protocol
    from interlock.gates.config import Config

MAX_WAIT_SECONDS: Final = 40.0
"""How long one call waits at most; the clients that wait least give up after 60 seconds."""

_POLL_SECONDS: Final = 0.5
"""How often a call that waits for its role's turn looks."""

_REMOTE: Final = {"runner": "remote"}

CALLS: Final = 32
WAITING_CALLS: Final = 64
COLLECTING_CALLS: Final = 2
"""How many calls of one caller are at work at once: those that act or look, that wait for a role, that use a browser.

Each sort has slots of its own, so that an answer never waits behind the calls that wait for it.
"""
CALLS_ON_A_RUN: Final = 8
WAITING_CALLS_ON_A_RUN: Final = 16
"""How many of them are about one run."""

TaskArgument = Annotated[
    str | dict[str, Any],
    Field(description="The keys of a task file as an object, or the path of a task file below the root."),
]
RunArgument = Annotated[str | None, Field(description="A name of your choice; the same one again begins nothing new.")]
RoleArgument = Annotated[str | None, Field(description="Only this role's ask; the call waits until it is asked.")]
WaitArgument = Annotated[float, Field(description=f"At most {MAX_WAIT_SECONDS:.0f}.")]
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
        if run_id is not None and graph.RunStore(self.root, run_id).exists():
            view = graph.view_run(run_id, root=self.root)
            if view.task.fingerprint() == task.fingerprint():
                return task_state(self.drives.advance(run_id, until_queued=True))
        run_id = graph.start_run(self.root, task, run_id=run_id)
        graph.RunStore(self.root, run_id).keep_owner(caller)
        return task_state(self.drives.advance(run_id, until_queued=True))

    def next(self, run_id: str, role: str | None, wait_seconds: float, *, caller: str = "") -> Step:
        """Take a run on, and return who acts now; with a role, once that role is asked or the time is over.

        Raises:
            CallError: The role is not the caller's, not of this run, or the time is no time.
            UnknownRunError, RunDamagedError, RunnerError: The run cannot be taken on.
        """
        if not 0 <= wait_seconds <= MAX_WAIT_SECONDS:
            raise CallError(
                "MCP404",
                f"`wait_seconds` is {wait_seconds}; it is from 0 to {MAX_WAIT_SECONDS:.0f}",
                "Wait less, and call again.",
            )
        role = _own_role(self.root, role, caller)
        until = time.monotonic() + wait_seconds
        while True:
            # Looking takes no lock, so that a call which only waits is in nobody's way.
            view = self.drives.look(run_id)
            if view.phase in ("new", "running"):
                view = self.drives.advance(run_id, wait_seconds=max(0.0, until - time.monotonic()))
            asks = open_asks(view)
            if role is not None:
                _known_role(role, view, caller)
                asks = {role: asks[role]} if role in asks else {}
            left = until - time.monotonic()
            if asks or role is None or view.phase == "done" or left <= 0:
                # Whoever is asked works in the files from now on, and is known to its hooks by its own name.
                self.drives.keep_files(view, caller if asks else None)
                return Step(**task_state(view), asks=list(asks.values()))
            time.sleep(min(left, _POLL_SECONDS))

    def submit(self, run_id: str, role: str, text: str, ask_id: str | None, *, caller: str = "") -> Submitted:
        """Hand in an answer, unless this very answer to this very ask was handed in before.

        One to a re-ask that the run has not come to yet is kept, and judged when it does.

        Raises:
            CallError: The role is not the caller's, or not of this run.
            AnswerError: The run does not wait for this role, or asks something else by now; nothing was done.
            RunBusyError: The run was driven all the time; nothing was done.
        """
        _own_role(self.root, role, caller)
        view = graph.view_run(run_id, root=self.root)
        _known_role(role, view, caller)
        if caller:
            own_inputs(self.root, text, view.task.inputs)
        # As it is kept, or it would not be known again.
        text = redactor_for(self.root, graph.key_variables(view.policy)).text(text)
        before = self._repeated(view, role, text, ask_id)
        store = graph.RunStore(self.root, run_id)
        kept = role in view.kept and graph.kept_answer(view.values, role, store) == text[: MAX_BYTES + 1]
        if before is None:
            asks = {} if ask_id is None else {role: ask_id}
            try:
                view = self.drives.advance(run_id, answers={role: text}, asks=asks)
            except AnswerError:
                # The same answer may have come in twice at once.
                before = self._repeated(graph.view_run(run_id, root=self.root), role, text, ask_id)
                if before is None:
                    raise
        if before is not None:
            return _submitted(self.drives.look(run_id), before, repeated=True)
        found = judged(view, self.root, role, ask_id)
        mine = found is not None and found.sha256 == _digest(text)
        return _submitted(view, found if mine else None, repeated=kept and not mine)

    def status(self, run_id: str, *, caller: str = "") -> dict[str, Any]:
        """Return why a run is where it is, and whether anybody drives it at this moment.

        Raises:
            UnknownRunError, RunDamagedError: It cannot be read.
        """
        view = self.drives.look(run_id)
        return {**graph.explain_run(view, self.root, shared_only=bool(caller)), **task_state(view)}

    def abandon(self, run_id: str, *, caller: str = "") -> Abandoned:
        """End a run for good, as `interlock abandon` does.

        Raises:
            CallError: Another caller began it.
            UnknownRunError, RunBusyError, RunDamagedError: It cannot be ended.
        """
        store = graph.RunStore(self.root, run_id)
        if caller and store.exists() and store.owner() != caller:
            raise CallError(
                "MCP409",
                f"run {run_id} was not begun with a token of {caller}",
                "Have whoever began it end it, or end it where the server runs: `interlock abandon`.",
            )
        return Abandoned(run_id=run_id, ended=graph.abandon(self.root, run_id))

    def collect(
        self,
        page: str | None,
        task_id: str,
        kinds: "Sequence[EvidenceKey] | None",
        run_id: str | None,
        *,
        caller: str = "",
    ) -> Collected:
        """Collect evidence of a page by hand, or return what a run collected in its present attempt.

        Raises:
            CallError: Neither or both are named, or the evidence would take the place of a run's.
            CollectorError, TreeError: There is no evidence.
            UnknownRunError, RunDamagedError: The run cannot be read.
        """
        if (page is None) == (run_id is None):
            found = "neither" if page is None else "both"
            raise CallError(
                "MCP405", f"`page` and `run_id`: found {found}, expected one of them", "Name a page, or a run."
            )
        if run_id is not None:
            values = graph.view_run(run_id, root=self.root).values
            return collected(made_by_a_run(values.get("collected", {}), int(values.get("attempt", 0))))
        own_page(self.root, page, caller)
        if graph.find_run(self.root, "runs", task_id) is not None:
            raise CallError(
                "MCP406",
                f"the task `{task_id[:80]}` has runs here, which make their own evidence in the same place",
                "Leave `task_id` out, or choose one that no run has.",
            )
        keys = kinds or ("screenshots", "console", "a11y")
        made = collect_by_hand(page or "", keys, root=self.root, task_id=task_id, timeout_seconds=MAX_WAIT_SECONDS / 2)
        return collected(made_by_hand(each) for each in made)

    def _task(self, given: str | dict[str, Any], caller: str) -> "graph.Task":
        """Return the task with a remote runner for each role that has no other and that the task needs."""
        config, protocol = tables(self.root)
        if isinstance(given, str):
            if caller:
                refuse_hidden(self.root, "task", [given])
            try:
                path = (self.root / given).resolve()
            except (ValueError, RuntimeError, OSError) as error:
                # A zero byte, half a surrogate pair; links in a circle; a name that is too long.
                raise TaskError(
                    f"{given[:200]!r} is no path of a task file: {str(error)[:200]}",
                    "Name a file below the root, or send the task as an object.",
                ) from error
            if not path.is_relative_to(self.root):
                raise TaskError(
                    f"the task file `{given[:200]}` is not below {self.root}",
                    "Name a file below the root, or send the task as an object.",
                )
            try:
                task = graph.load_task(path)
            except TaskError as error:
                if caller:  # who may not learn what the file holds
                    raise TaskError(
                        f"{given[:200]!r} is no task file that can be used",
                        "Send the task as an object, or have `interlock check` say on the machine itself what is wrong "
                        "with the file.",
                    ) from error
                raise
        else:
            task = graph.task_from_mapping(given, base=str(self.root))
        if caller or not isinstance(given, str):
            refuse_power(task, config)
        agents = {**task.agents, **dict.fromkeys(_remote_roles(task, config, protocol), _REMOTE)}
        return replace(task, agents=agents)

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


def _own_role(root: Path, role: str | None, caller: str) -> str | None:
    if caller and role not in (None, caller):
        _, protocol = tables(root)
        raise CallError(
            "MCP401",
            f"the token is {caller}'s, and the call is for the role `{str(role)[:80]}`",
            f"Name the role {caller}, or call with the token of that role."
            if caller in protocol.roles
            else _no_role(caller, protocol.roles, role),
        )
    return caller or role


def _no_role(caller: str, roles: Iterable[str], role: str | None = None) -> str:
    named = [name for name in roles if name not in RESERVED]
    wanted = role if role in named else "ROLE"
    which = "" if wanted == role else f", with one of {', '.join(named)}"
    return (
        f"{caller} is no role, so its token answers for none. Have a token of the role made where the server runs, and "
        f"call with that: `interlock token create {wanted}`{which}."
    )


def _known_role(role: str, view: "graph.RunView", caller: str) -> None:
    roles = view.policy.protocol.roles
    if role in roles:
        return
    near = closest(role, roles)
    fix = _no_role(caller, roles) if caller else f"Write `{near}`." if near else "Name one of them."
    whose = ", whose token this is" if caller else ""
    message = f"run {view.run_id} has no role `{role[:80]}`{whose}; its roles are {', '.join(roles)}"
    raise CallError("MCP402", message, fix)


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
    at_work = server.at_work
    calls = TaskCalls(server.root, server.drives)
    # A call whose client went away is left to its thread: what it began goes on without it.
    acting = CallSlots(CALLS, CALLS_ON_A_RUN, leave=True)
    waiting = CallSlots(WAITING_CALLS, WAITING_CALLS_ON_A_RUN, leave=True)
    collecting = CallSlots(COLLECTING_CALLS, COLLECTING_CALLS, leave=True)

    @server.tool(annotations=WRITES)
    async def task_begin(task: TaskArgument, run_id: RunArgument = None) -> TaskState:
        """Begin a run of a task and see who acts first. Roles without a configured runner answer by task_submit."""
        return await at_work(acting, lambda who: calls.begin(task, run_id, caller=who), run_id)

    @server.tool(annotations=WRITES)
    async def task_next(run_id: str, role: RoleArgument = None, wait_seconds: WaitArgument = MAX_WAIT_SECONDS) -> Step:
        """Take a run on and get who acts now: each ask with prompt, role prompt, evidence and ask_id."""
        return await at_work(waiting, lambda who: calls.next(run_id, role, wait_seconds, caller=who), run_id)

    @server.tool(annotations=WRITES)
    async def task_submit(run_id: str, role: str, envelope: EnvelopeArgument, ask_id: AskArgument = None) -> Submitted:
        """Hand in a role's answer; returns what came of it, every finding, and what is next."""
        return await at_work(acting, lambda who: calls.submit(run_id, role, envelope, ask_id, caller=who), run_id)

    @server.tool(annotations=READS)
    async def task_status(run_id: str) -> dict[str, Any]:
        """Explain the status of a task: which gates are missing, whether they can be met, and what to do."""
        return await at_work(acting, lambda who: calls.status(run_id, caller=who), run_id)

    @server.tool(annotations=WRITES)
    async def task_abandon(run_id: str) -> Abandoned:
        """End a run for good."""
        return await at_work(acting, lambda who: calls.abandon(run_id, caller=who), run_id)

    @server.tool(annotations=WRITES)
    async def collect_evidence(
        page: Annotated[str | None, Field(description="An HTML file below the root, or a URL.")] = None,
        task_id: Annotated[str, Field(description="Files it under this task; not one that has runs here.")] = TASK_ID,
        kinds: KindsArgument = None,
        run_id: Annotated[str | None, Field(description="In place of a page: what this run collected.")] = None,
    ) -> Collected:
        """Look at a page with Interlock's browser, as a rehearsal; with run_id, see what the run collected itself."""
        slots = collecting if run_id is None else acting
        return await at_work(slots, lambda who: calls.collect(page, task_id, kinds, run_id, caller=who), run_id or "")
