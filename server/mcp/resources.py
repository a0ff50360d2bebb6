"""Resources: what a client may read without calling a tool."""

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from interlock import graph
from interlock.core.json import compact
from interlock.envelope.protocol import ECHO, EVIDENCE_KEYS, LABELS, STATUS_MEANING, STATUS_OWNER, STATUSES, TRANSITIONS
from interlock.graph import UnknownRunError
from interlock.server.mcp.app import EVENTS_URI, TASK_URI, TICKET_URI, InterlockServer
from interlock.server.mcp.project import tables
from interlock.server.mcp.results import sentences
from interlock.server.rules import cut, problem, refusal_data, shown

PROTOCOL_URI: Final = "interlock://protocol"
GATES_URI: Final = "interlock://gates"

MAX_EVENTS: Final = 200
"""The most events that one reading returns; `next_after` says where the next one begins."""
MAX_COMPLETIONS: Final = 100
"""The most values that the protocol lets one completion hold."""

HANDS_OVER: Final = "frontend-implementer"
"""How the protocol tables name the role that hands over; a project may have given it another name."""

_JSON: Final = "application/json"


def register(server: InterlockServer) -> None:
    """Add the resources, and the completion of run ids, to a server."""

    @server.resource(TICKET_URI, name="ticket", description="The authoritative ticket of a run.", mime_type=_JSON)
    async def ticket(run_id: str) -> str:
        return await _read(server, lambda: compact(server.tickets.ticket(run_id)))

    @server.resource(
        EVENTS_URI + "{?after,limit}",
        name="events",
        description="What happened in a run, oldest first; `after` is a sequence number, `limit` at most 200.",
        mime_type=_JSON,
    )
    async def events(run_id: str, after: str = "0", limit: str = str(MAX_EVENTS)) -> str:
        # Texts, since the SDK has no words for one that is no number.
        first, wanted = _number("after", after), max(1, min(_number("limit", limit), MAX_EVENTS))

        def read() -> str:
            rows = server.tickets.events(run_id, after=first, limit=wanted)
            more = rows[-1].seq if len(rows) == wanted else None
            return compact({"run_id": run_id, "events": [asdict(row) for row in rows], "next_after": more})

        return await _read(server, read)

    @server.resource(
        TASK_URI, name="task", description="The status of a task, why, and what is missing.", mime_type=_JSON
    )
    async def task(task_id: str) -> str:
        who = server.caller()
        return await _read(server, lambda: compact(task_object(server.root, task_id, shared_only=bool(who))))

    @server.resource(
        PROTOCOL_URI,
        name="protocol",
        description="Statuses, roles, owners and legal moves of this project.",
        mime_type=_JSON,
    )
    async def protocol() -> str:
        return await _read(server, lambda: compact(protocol_object(server.root)))

    @server.resource(GATES_URI, name="gates", description="The gates of this project.", mime_type=_JSON)
    async def gates() -> str:
        def read() -> str:
            rows = [asdict(gate) for gate in tables(server.root)[1].gates.values()]
            return compact({"schema": "interlock.gates/1", "gates": rows})

        return await _read(server, read)

    def task_names() -> Iterable[str]:
        runs = graph.list_runs(server.root, "runs")
        return dict.fromkeys(name for run in runs for name in (run.rpartition(".")[0], run) if name)

    @server.completion()
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,  # noqa: ARG001 - the SDK calls with three
    ) -> Completion | None:
        if isinstance(ref, PromptReference) or argument.name not in {"run_id", "task_id"}:
            return None
        names = await server.reading(server.tickets.runs if argument.name == "run_id" else task_names)
        found = [name for name in names if name.startswith(argument.value)]
        return Completion(values=found[:MAX_COMPLETIONS], total=len(found), has_more=len(found) > MAX_COMPLETIONS)


def task_object(root: Path, task_id: str, *, shared_only: bool = False) -> dict[str, Any]:
    """Return the newest run of a task, or the run of an id, as `status --json` and `explain --json` print it.

    A caller with a token sees shared files alone (`gates.shared`).

    Raises:
        UnknownRunError: There is no such task here.
    """
    run_id = graph.find_run(root, "runs", task_id)
    if run_id is None:
        raise UnknownRunError(f"there is no run or task `{task_id[:80]}` here", "`interlock status` lists the runs.")
    view = graph.view_run(run_id, root=root)
    # What a role is asked is that role's to read, with task_next.
    status = {
        **graph.run_summary(view, root),
        **graph.tree_after(view, root, shared_only=shared_only),
        "waiting": [item.role for item in view.waiting],
    }
    return {"status": status, "explanation": graph.explain_run(view, root, shared_only=shared_only)}


def protocol_object(root: Path) -> dict[str, Any]:
    """Return the protocol tables with the roster of a project."""
    _, protocol = tables(root)
    hands_over = " or ".join(role.name for role in protocol.of_kind("build") if role.hands_over)
    return {
        "schema": "interlock.protocol/1",
        "labels": list(LABELS),
        "evidence_keys": list(EVIDENCE_KEYS),
        "statuses": [
            {
                "status": status,
                "meaning": STATUS_MEANING[status],
                "owner": hands_over if STATUS_OWNER[status] == HANDS_OVER else STATUS_OWNER[status],
            }
            for status in STATUSES
        ],
        "echo": dict(ECHO),
        "roles": [asdict(role) for role in protocol.roles.values()],
        "transitions": [
            {
                "from": row.source,
                "to": row.target,
                "by": hands_over if row.by == HANDS_OVER else row.by,
                "after": row.after,
                "source": row.clause,
            }
            for row in TRANSITIONS
        ],
    }


def _number(name: str, text: str) -> int:
    """Return a number of a query; refuse what is none."""
    if re.fullmatch(r"-?[0-9]{1,15}", text):
        return int(text)
    wrong = problem(
        "MCP204", f"`{name}` is no whole number.", place=name, found=shown(cut(text)),
        expected="a whole number", fix=f"Write digits, such as `{name}=100`, or leave `{name}` out.",
    )  # fmt: skip
    raise MCPError(INVALID_PARAMS, f"MCP204: {wrong.message} {wrong.fix}", data=refusal_data(wrong))


async def _read(server: InterlockServer, work: Callable[[], str]) -> str:
    """Read in a thread; a name that nothing has is not found, with what to do."""
    try:
        return await server.reading(work)
    except UnknownRunError as error:
        raise ResourceNotFoundError(f"{error.code}: {sentences(error.message, error.fix)}") from error
