"""The MCP server: every call checked, and every change sent to the clients that listen to its address."""

import inspect
import logging
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, InputRequiredResult, ToolAnnotations
from mcp_types import Tool as ListedTool
from pydantic import AnyUrl, ValidationError, create_model

from interlock import __version__, graph
from interlock.graph import UnknownRunError
from interlock.redaction import KeyRefused, clean_arguments, redact, redactor_for
from interlock.server.mcp.arguments import argument_problems, key_problem, unknown_tool
from interlock.server.mcp.concurrency import CallSlots
from interlock.server.mcp.results import (
    ToolAnswer,
    defect,
    describe,
    error_result,
    refused_call,
    sentences,
    without_keys,
)
from interlock.server.mcp.schemas import answer_schema, trimmed
from interlock.server.rules import problem, refusal_data, shown

if TYPE_CHECKING:
    from mcp.server.lowlevel.helper_types import ReadResourceContents


ReadT = TypeVar("ReadT")

INSTRUCTIONS: Final = """\
Others may edit here: `reserve_files` before you edit, `fetch_inbox` between steps, `release_files` when done. For a \
ticket: `interlock_begin_run`, then one payload a stage with `interlock_submit_payload` until `continue` is false.
A ticket:
1. Interlock decides when it moves; you do the work of one stage at a time. Keep the ticket in tickets/RUN_ID.json \
(or tickets/ticket.json, if you are alone here). `agent_role` says what to do, `required_fields` what `payload` holds.
2. Send the payload for the ticket's `revision`, or the whole ticket with `interlock_submit_ticket`; replace your copy \
by the ticket that comes back.
3. On `retry`, fix what `gate_result.issues` names and send again. On `stop`, report `reason` and \
`invalidation_report`, and end.
4. Change no file of the project before the plan has passed."""

# Every hint that counts is given, for a client takes what is left out for the worst: without `destructiveHint` and
# `openWorldHint` Codex asks a person before each call, and `codex exec` has nobody to ask.
READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
"""Changes nothing."""
WRITES: Final = ToolAnnotations(destructive_hint=False, idempotent_hint=True, open_world_hint=False)
"""Adds to what is kept; the same call again changes nothing more."""
SENDS: Final = ToolAnnotations(destructive_hint=False, idempotent_hint=False, open_world_hint=False)
"""Adds to what is kept, each time."""

_LOG: Final = logging.getLogger("interlock.server")


class InterlockServer(MCPServer[Any]):
    """The MCP server of one project.

    It differs from the SDK's server in what a client can rely on: an argument that a tool does not have is refused, a
    text argument reaches its tool unparsed, every failure is an error result with code, message and fix, and changes
    are sent to clients that listen (`subscriptions/listen`).

    Args:
        root: The project's root.
        caller: Gives the agent that a request comes from; empty on stdio, where the client is trusted.
        instructions: What a client gets when it connects.
    """

    def __init__(self, root: Path, *, caller: Callable[[], str] = lambda: "", instructions: str = INSTRUCTIONS) -> None:
        self._listeners = InMemorySubscriptionBus()
        # In place of the SDK's own list of tools, which has other schemas and answers failures in other words.
        self._offered: dict[str, Tool] = {}
        super().__init__(
            "interlock",
            version=__version__,
            instructions=instructions,
            log_level="WARNING",
            subscriptions=self._listeners,
        )
        self.root = root
        self.caller = caller
        self.on_close: Callable[[], object] = lambda: None
        self._acting = CallSlots()
        self.waiting = CallSlots()
        """Places for calls that wait, so that the answers that they wait for pass them by."""

    async def at_work(self, work: Callable[[str], ReadT], slots: CallSlots | None = None) -> ReadT:
        """Run a call in a thread, when its caller, whom it is called with, has a place for it."""
        who = self.caller()
        return await (slots or self._acting).work(lambda: work(who), who)

    @cached_property
    def tickets(self) -> "graph.Tickets":
        """The ticket runs, imported and opened on first use: that takes a second, and not every client needs them."""
        return graph.Tickets(self.root)

    # -- tools ---------------------------------------------------------------------------------------------------

    def add_tool(self, fn: Callable[..., Any], *given: Any, **options: Any) -> None:
        """Add a tool; it returns a `TypedDict` or a dictionary, and answers structured content of that shape."""
        shape = inspect.signature(fn, eval_str=True).return_annotation
        options |= {"description": options.get("description") or inspect.getdoc(fn), "structured_output": False}
        tool = Tool.from_function(fn, *given, **options)
        tool.parameters = trimmed(tool.parameters)
        # The SDK would leave out an argument that the tool does not have, and make a number of a text.
        taken = tool.fn_metadata.arg_model
        exact = create_model(taken.__name__, __base__=taken, __cls_kwargs__={"extra": "forbid", "strict": True})
        tool.fn_metadata = ToolAnswer(arg_model=exact, output_schema=answer_schema(shape))
        self._offered[tool.name] = tool

    async def list_tools(self) -> list[ListedTool]:
        """Return the tools with their schemas, in the order in which they were added."""
        return [
            ListedTool(
                name=tool.name,
                description=tool.description,
                input_schema=tool.parameters,
                output_schema=tool.output_schema,
                annotations=tool.annotations,
            )
            for tool in self._offered.values()
        ]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; whatever goes wrong is an error result whose text is `{"error": {code, message, fix}}`.

        Keys of the environment are taken out of what comes in before anything reads it, and of the answer.
        """
        redactor = redactor_for(self.root)
        try:
            # A name that holds a key is refused, and prose is cleaned: half a path would name something else.
            result = await self._called(name, clean_arguments(arguments, redactor), context)
        except KeyRefused as refused:
            result = refused_call([key_problem(refused)])
        return without_keys(result, redactor) if isinstance(result, CallToolResult) else result

    async def _called(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        tool = self._offered.get(name)
        if tool is None:
            return refused_call([unknown_tool(name, [*self._offered])])
        try:
            # The SDK's own context has its request; a call in this process, as in tests, has none.
            return await tool.run(arguments, context or Context(mcp_server=self), convert_result=True)
        except ToolError as error:
            # One that was raised inside of the tool is a defect, and says nothing of the arguments.
            if isinstance(error.__cause__, ValidationError) and not isinstance(error, UnexpectedToolError):
                return refused_call(argument_problems(name, tool.parameters, error.__cause__))
            # The SDK wraps whatever a tool raised in an error of its own.
            return error_result(_described(error.__cause__ or error, f"tool {name}"))

    # -- resources -----------------------------------------------------------------------------------------------

    async def announce(self, uris: Iterable[str]) -> None:
        """Notify every client that listens to one of these resources that it changed."""
        for uri in uris:
            await self._listeners.publish(ResourceUpdated(uri=uri))

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> "Iterable[ReadResourceContents] | InputRequiredResult":
        """Read a resource; an error names what is wrong and what to do, as a tool's does."""
        try:
            return await super().read_resource(uri, context)
        # The protocol has an answer of its own for an address that nothing has.
        except ResourceNotFoundError:
            raise
        except ResourceError as error:
            cause, code = error.__cause__ or error, INTERNAL_ERROR
            if isinstance(cause, ValidationError):
                # Only the query has types: what is in the path is a text.
                row, code = cause.errors()[0], INVALID_PARAMS
                found: Mapping[str, Any] = refusal_data(
                    problem(
                        "MCP202",
                        "The query does not fit.",
                        place=str(row["loc"][0]),
                        found=shown(row["input"]),
                        expected=row["msg"],
                        fix="Send what is expected, or leave it out.",
                    )
                )
            else:
                found = _described(cause, f"resource {uri}")
                code = INVALID_PARAMS if isinstance(cause, UnknownRunError) else INTERNAL_ERROR
            text = f"{found['code']}: {sentences(found['message'], found['fix'])}"
            raise MCPError(code=code, message=text, data=dict(found)) from error

    # -- transports ----------------------------------------------------------------------------------------------

    async def run_stdio_async(self) -> None:
        """Serve one client on standard input and output until its side closes."""
        try:
            await super().run_stdio_async()
        except* BrokenPipeError:
            pass  # the client is gone, and nobody reads an answer
        finally:
            self.close()

    def close(self) -> None:
        """Write into the journal what happened to reservations since the last answer; call it when the service ends."""
        self.on_close()


def _described(error: BaseException, what: str) -> dict[str, Any]:
    """Return what a client gets of an error; a defect goes to the log with its trace."""
    found = describe(error)
    if found is None:
        _LOG.error("%s failed\n%s", redact(what), redact("".join(traceback.format_exception(error))))
    return found or defect(error)
