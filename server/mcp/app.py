"""The MCP server: every call checked, and every change sent to the clients that listen to its address."""

import asyncio
import inspect
import logging
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin, is_typeddict

from mcp.server import MCPServer
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError, UnexpectedToolError
from mcp.server.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    EmptyResult,
    GetPromptResult,
    InputRequiredResult,
    Prompt,
    SubscribeRequestParams,
    ToolAnnotations,
    UnsubscribeRequestParams,
)
from pydantic import AnyUrl, ValidationError

from interlock import __version__, graph
from interlock.redaction import KeyRefused, Redactor, clean_arguments, redact, redactor_for
from interlock.server.mcp import prompts
from interlock.server.mcp.arguments import check_arguments, key_problem, refined, unknown_tool
from interlock.server.mcp.concurrency import READS as READING_CALLS
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
from interlock.server.mcp.stdio import serve_stdio
from interlock.server.mcp.subscribers import Subscribers
from interlock.server.rules import refusal_data

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

TICKET_URI: Final = "interlock://runs/{run_id}/ticket"
EVENTS_URI: Final = "interlock://runs/{run_id}/events"
TASK_URI: Final = "interlock://tasks/{task_id}"

_LOG: Final = logging.getLogger("interlock.server")


class InterlockServer(MCPServer[Any]):
    """The MCP server of one project.

    It differs from the SDK's server in what a client can rely on: calls are checked against the tool's schema before
    anything runs, a text argument reaches its tool unparsed, every failure is an error result with code, message and
    fix, and changes are sent to clients of either protocol revision.

    Args:
        root: The project's root.
        caller: Gives the agent that a request comes from; empty on stdio, where the client is trusted.
        instructions: What a client gets when it connects.
    """

    def __init__(self, root: Path, *, caller: Callable[[], str] = lambda: "", instructions: str = INSTRUCTIONS) -> None:
        with _root_logger_untouched():
            super().__init__("interlock", version=__version__, instructions=instructions, log_level="WARNING")
        self.root = root
        self.caller = caller
        self._opening = threading.RLock()
        self._drives: graph.Drives | None = None
        self._tickets: graph.Tickets | None = None
        self.on_close: Callable[[], object] = lambda: None
        self._subscribers = Subscribers()
        self._reading = CallSlots(READING_CALLS, READING_CALLS, leave=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._announcing: set[asyncio.Task[None]] = set()
        low = self._lowlevel_server
        low.add_request_handler("resources/subscribe", SubscribeRequestParams, self._subscribe)
        low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)

    async def reading(self, work: Callable[[], ReadT]) -> ReadT:
        """Run what reads for a resource, a prompt or a completion in a thread, when its caller has a slot for it."""
        return await self._reading.work(work, self.caller())

    async def at_work(self, slots: CallSlots, work: Callable[[str], ReadT], run_id: str | None = None) -> ReadT:
        """Run a call in a thread, when its caller, whom it is called with, has a slot for it and for the run."""
        who = self.caller()
        return await slots.work(lambda: work(who), who, run_id or "")

    @property
    def drives(self) -> "graph.Drives":
        """What drives the task runs of this process, made on first use."""
        with self._opening:
            if self._drives is None:
                self._drives = graph.Drives(self.root, watcher=self._watch)
            return self._drives

    @property
    def tickets(self) -> "graph.Tickets":
        """The ticket runs, imported and opened on first use: that takes a second, and not every client needs them."""
        with self._opening:
            if self._tickets is None:
                self._tickets = graph.Tickets(self.root, drives=self.drives)
            return self._tickets

    def _watch(self, run_id: str, step: Mapping[str, Any]) -> None:
        if step.get("kind") == "status":
            names = dict.fromkeys((_task_of(self.root, run_id), run_id))
            self.announce_soon(TASK_URI.format(task_id=name) for name in names)

    # -- tools ---------------------------------------------------------------------------------------------------

    def add_tool(self, fn: Callable[..., Any], *given: Any, **options: Any) -> None:
        """Add a tool; one that returns a `TypedDict` or a dictionary answers structured content of that shape."""
        shape = inspect.signature(fn, eval_str=True).return_annotation
        options["description"] = options.get("description") or inspect.getdoc(fn)
        plain = _is_object(shape)
        if plain:
            options["structured_output"] = False
        tool = self._tool_manager.add_tool(fn, *given, **options)
        tool.parameters = trimmed(tool.parameters)
        if plain:
            model = tool.fn_metadata.arg_model
            tool.fn_metadata = ToolAnswer(arg_model=model, output_schema=answer_schema(shape))

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; whatever goes wrong is an error result whose text is `{"error": {code, message, fix}}`.

        Keys of the environment are taken out of what comes in before anything reads it, and of the answer.
        """
        self._loop = asyncio.get_running_loop()
        redactor = redactor_for(self.root)
        try:
            result = await self._called(name, clean_arguments(arguments, redactor), context)
        except KeyRefused as refused:
            result = refused_call([key_problem(refused)])
        return without_keys(result, redactor) if isinstance(result, CallToolResult) else result

    async def _called(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            return refused_call([unknown_tool(name, [each.name for each in self._tool_manager.list_tools()])])
        problems = check_arguments(tool.parameters, arguments)
        if problems:
            return refused_call(problems)
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError) and not isinstance(error, UnexpectedToolError):
                return refused_call(refined(error.__cause__))
            return error_result(_described(error.__cause__ or error, f"tool {name}"))

    # -- changes -------------------------------------------------------------------------------------------------

    async def announce(self, uris: Iterable[str]) -> None:
        """Notify every client that listens to one of these resources that it changed."""
        for uri in uris:
            await self._subscriptions.publish(ResourceUpdated(uri=uri))
            await self._subscribers.notify(uri)

    def announce_soon(self, uris: Iterable[str]) -> None:
        """Announce changes from a thread that waits for nobody; without a client there is nobody to notify."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._announce_later, tuple(uris))

    def _announce_later(self, uris: tuple[str, ...]) -> None:
        task = asyncio.ensure_future(self.announce(uris))
        self._announcing.add(task)
        task.add_done_callback(self._announcing.discard)

    async def _subscribe(self, ctx: ServerRequestContext[Any], params: SubscribeRequestParams) -> EmptyResult:
        with _described_errors("resources/subscribe"):
            self._subscribers.add(ctx.session, str(params.uri))
        return EmptyResult()

    async def _unsubscribe(self, ctx: ServerRequestContext[Any], params: UnsubscribeRequestParams) -> EmptyResult:
        self._subscribers.remove(ctx.session, str(params.uri))
        return EmptyResult()

    # -- resources and prompts -----------------------------------------------------------------------------------

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> "Iterable[ReadResourceContents] | InputRequiredResult":
        """Read a resource; an error names what is wrong and what to do, as a tool's does."""
        redactor = redactor_for(self.root)
        _named({"uri": str(uri)}, redactor)
        with _described_errors(f"resource {uri}"):
            found = await super().read_resource(uri, context)
            if isinstance(found, InputRequiredResult):
                return found
            return [replace(each, content=_shown(each.content, redactor)) for each in found]

    async def list_prompts(self) -> list[Prompt]:
        """Return the prompts: one for each role of the present roster, and those of the ticket workflow."""
        with _described_errors("prompts"):
            return await self.reading(lambda: prompts.listing(self.root))

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[Any, Any] | None = None,  # noqa: ARG002 - the SDK calls with it
    ) -> GetPromptResult | InputRequiredResult:
        """Return one prompt with its arguments filled in."""
        redactor = redactor_for(self.root)
        given = arguments or {}
        _named({"name": name, "arguments": given}, redactor)
        with _described_errors(f"prompt {name}"):
            made = await self.reading(lambda: prompts.render(self.root, name, given))
        return GetPromptResult.model_validate(redactor.value(made.model_dump(mode="json")))

    # -- transports ----------------------------------------------------------------------------------------------

    async def run_stdio_async(self, *, leaving: Callable[[], None] = lambda: None) -> None:
        """Serve one client on standard input and output, every line inspected before it is parsed."""
        try:
            await serve_stdio(self._lowlevel_server, leaving=leaving)
        finally:
            self.close()

    def close(self) -> None:
        """Write into the journal what happened to reservations since the last answer; call it when the service ends."""
        self.on_close()


@lru_cache(maxsize=1000)
def _task_of(root: Path, run_id: str) -> str:
    return graph.RunStore(root, run_id).load()[0].task_id


def _is_object(shape: Any) -> bool:
    members = get_args(shape) if get_origin(shape) is not dict and not is_typeddict(shape) else (shape,)
    return bool(members) and all(is_typeddict(each) or get_origin(each) is dict for each in members)


def _named(arguments: Mapping[str, Any], redactor: Redactor) -> None:
    """Refuse names that hold a key."""
    try:
        clean_arguments(arguments, redactor, prose=())
    except KeyRefused as refused:
        wrong = key_problem(refused)
        raise MCPError(
            INVALID_PARAMS, f"{wrong.code}: {wrong.message} {wrong.fix}", data=refusal_data(wrong)
        ) from refused


def _shown(content: str | bytes, redactor: Redactor) -> str | bytes:
    return redactor.text(content) if isinstance(content, str) else redactor.data(content)


def _described(error: BaseException, what: str) -> dict[str, Any]:
    """Return what a client gets of an error; a defect goes to the log with its trace."""
    found = describe(error)
    if found is None:
        _LOG.error("%s failed\n%s", redact(what), redact("".join(traceback.format_exception(error))))
    return found or defect(error)


def _protocol_error(error: Mapping[str, Any]) -> MCPError:
    text = f"{error['code']}: {sentences(error['message'], error['fix'])}"
    return MCPError(code=INTERNAL_ERROR, message=text, data=dict(error))


@contextmanager
def _described_errors(what: str) -> Generator[None]:
    try:
        yield
    except (MCPError, ResourceNotFoundError):
        raise
    except Exception as error:
        cause = error.__cause__ if isinstance(error, ResourceError) else None
        raise _protocol_error(_described(cause or error, what)) from error


@contextmanager
def _root_logger_untouched() -> Generator[None]:
    """Keep the SDK from configuring the logging of the program that embeds the server: it does so if nobody did."""
    held = logging.NullHandler()
    logging.root.addHandler(held)
    try:
        yield
    finally:
        logging.root.removeHandler(held)
