"""The toolset `tasks`: the steps of the status machine, so that an agent host drives a task with its own agents."""

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from interlock.gates.by_hand import TASK_ID
from interlock.server.app import READS, WRITES, InterlockServer
from interlock.server.collected import Collected
from interlock.server.places import Places
from interlock.server.standing import Abandoned, Standing, Step, Submitted
from interlock.server.task_calls import MAX_WAIT_SECONDS, TaskCalls

CALLS: Final = 32
WAITING_CALLS: Final = 64
COLLECTING_CALLS: Final = 2
"""How many calls of one caller are at work at once: those that act or look, that wait for a role, that use a browser.

Each sort has places of its own, so that an answer never stands behind the calls that wait for it.
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


def register(server: InterlockServer) -> None:
    """Add the tools to a server."""
    at_work = server.at_work
    calls = TaskCalls(server.root, server.drives)
    # A call whose client went away is left to its thread: what it began goes on without it.
    acting = Places(CALLS, CALLS_ON_A_RUN, leave=True)
    waiting = Places(WAITING_CALLS, WAITING_CALLS_ON_A_RUN, leave=True)
    collecting = Places(COLLECTING_CALLS, COLLECTING_CALLS, leave=True)

    @server.tool(annotations=WRITES)
    async def task_begin(task: TaskArgument, run_id: RunArgument = None) -> Standing:
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
        places = collecting if run_id is None else acting
        return await at_work(places, lambda who: calls.collect(page, task_id, kinds, run_id, caller=who), run_id or "")
