"""One session of the Agent Client Protocol: what is said to an agent, what it says, and what it asks for. No I/O.

Lines of JSON-RPC come in by `feed` and go out by `talk`, in version 1 of the protocol; the tests hold what is sent to
the schema of the library `agent-client-protocol`. The library itself is not used: it reads a line of any length into
memory, logs what an agent sends, and ends one process, where some agents go on in a second one.

An agent that asks is told no more than yes or no. So the reasons are its next prompt, in the same session, once its
turn has ended: some end it at a refusal, and wait for just that.

Nothing is offered on `fs/*` and `terminal/*`. An agent that calls them all the same reads and writes by the same rules,
and gets no terminal. What it sends is bounded, and any of it may be wrong: what is no message is passed over, and what
is no request that is known here gets an error.
"""

import json
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from math import inf
from typing import Any, Final, TypeAlias

from interlock import __version__
from interlock.agents.ask import Answer, Ask, RunnerError
from interlock.agents.file_refusals import refusal_row
from interlock.agents.files import ScopedFiles
from interlock.agents.quoting import bullets
from interlock.agents.readable_files import MAX_LINES
from interlock.agents.runners.acp_agents import Agent
from interlock.agents.runners.acp_permission import SERVER, Permissions
from interlock.agents.runners.program_output import Stream, number_of, object_of, objects_of
from interlock.agents.usage import Price, Usage
from interlock.core.process import GRACE_SECONDS, MAX_OUTPUT_BYTES
from interlock.core.text import few, shown

MAX_SESSION_BYTES: Final = 256 * 1024 * 1024
"""An agent that sends more than so much for one answer is ended."""
HELLO_SECONDS: Final = 60.0
"""How long a program may take to say that it speaks the protocol."""
TURNS: Final = 4
"""How often an agent is prompted for one answer: once, and again with the reasons of what was refused."""

_KNOWN_CALLS: Final = 100
_REASONS_BYTES: Final = 8 * 1024
_ABOUT_CALL: Final = ("kind", "title", "locations", "content", "rawInput")
_VERSION: Final = 1
_NOTHING_OFFERED: Final = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
_ANSWERED: Final = ("session/request_permission", "fs/read_text_file", "fs/write_text_file")
_AUTH_REQUIRED, _REFUSED, _UNKNOWN, _INVALID = -32000, -32001, -32601, -32602

Steps: TypeAlias = Generator[tuple[str, Mapping[str, Any]], Mapping[str, Any], None]
"""What an agent is asked: yields method and parameters, and is sent the result."""


class _RequestError(Exception):
    """A request of the agent gets an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.row = {"code": code, "message": message}


class Session(Stream):
    """A session with an agent, for one ask.

    Args:
        ask: The ask.
        agent: The agent.
        files: The files of the ask, with `scope_of` as their scope.
        heard: Called with the session after each message.
        seconds: How long it may take.
        prices: What the tokens of models cost, by `provider:name`.

    Attributes:
        stopped: The limit that ended the work; empty when none did.
        is_late: Whether that was the time.
        is_over: Whether nothing more is said; it came to its end unless `stopped` is set.
        speaks: Whether it has answered `initialize`.
        about: What the agent calls itself, and its version.
        asked: The kinds of tools that it called, each with whether it asked for permission.
    """

    def __init__(
        self,
        ask: Ask,
        agent: Agent,
        files: ScopedFiles,
        heard: Callable[[Stream], object],
        seconds: float,
        prices: Mapping[str, Price] | None = None,
    ) -> None:
        super().__init__(heard, prices, agent.command.model)
        self.provider = agent.provider
        self.stopped, self.is_late, self.is_over = "", False, False
        self.speaks, self.about = False, ""
        self.asked: dict[str, bool] = {}
        self._ask, self._agent, self._files = ask, agent, files
        self._permissions = Permissions(ask, files)
        self._hello_end = time.monotonic() + HELLO_SECONDS
        self._end = time.monotonic() + seconds
        self._out, self._bytes = bytearray(), 0
        self._request, self._turn, self._session = 0, 0, ""
        self._calls: dict[str, dict[str, Any]] = {}
        self._refused: dict[str, None] = {}
        self._message, self._begins = "", True
        self._parts: list[str] = []
        self._said_bytes = 0
        self._steps = self._conversation()
        self._next(None)

    # -- lines -------------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take the next piece of what the agent writes.

        Raises:
            RunnerError: There will be no answer.
        """
        self._bytes += len(data)
        if self._bytes > MAX_SESSION_BYTES or max(len(self._out), self._said_bytes) > MAX_OUTPUT_BYTES:
            raise RunnerError("the agent sends more than an answer can be, and was ended", "See by hand what it does.")
        if not self.is_over:
            super().feed(data)

    def talk(self) -> bytes | None:
        """Return what is to be written to the agent now; None once the session is over."""
        now = time.monotonic()
        if now >= self._end and not self.stopped:
            self.is_late = True
            self.cancel("its time is up")
        if now >= self._hello_end and not self.speaks:
            self.is_over = True
        if now >= self._end + GRACE_SECONDS:
            self.is_over = True
        said, self._out = bytes(self._out), bytearray()
        return said or (None if self.is_over else b"")

    def cancel(self, stopped: str) -> None:
        """Have the agent stop, once; it has a moment to say what it spent."""
        if self.stopped or self.is_over:
            return
        self.stopped, self._end = stopped, min(self._end, time.monotonic())
        if self._turn:
            self._send(method="session/cancel", params={"sessionId": self._session})
        else:
            self.is_over = True

    def end(self) -> Answer:
        """Return the last message of the agent: its answer."""
        return Answer("".join(self._parts), self.used, self.model, self.tool_calls)

    def _send(self, **row: Any) -> None:
        self._out += json.dumps({"jsonrpc": "2.0", **row}).encode() + b"\n"

    def _read(self, row: Mapping[str, Any]) -> None:
        method, number, params = row.get("method"), row.get("id"), object_of(row.get("params"))
        if method == "initialize":
            name = self._agent.command.argv[0]
            message = f"{name} does not speak the Agent Client Protocol: it sends back our request"
            raise RunnerError(message, "Name a program that does, with the arguments that it needs for it.")
        if isinstance(method, str) and "id" in row:
            try:
                answer: dict[str, Any] = {"result": self._answer(method, params)}
            except _RequestError as error:
                answer = {"error": error.row}
            self._send(id=number if isinstance(number, (int, str)) else None, **answer)
        elif method == "session/update" and params.get("sessionId") == self._session:
            self._update(object_of(params.get("update")))
        elif method is None and type(number) is int and number == self._request:
            self._next(row)

    # -- what the agent is asked -------------------------------------------------------------------------------------

    def _next(self, row: Mapping[str, Any] | None) -> None:
        """Go on with the conversation: begin it, or go on with the answer to the last request."""
        self.speaks = row is not None
        if error := object_of(None if row is None else row.get("error")):
            self.is_over = True
            if not self.stopped:
                sign_in = "Sign in once with the program itself, or give it its key by `environment` (and `sign_in`)."
                fix = sign_in if error.get("code") == _AUTH_REQUIRED else "Do what it says."
                raise RunnerError(f"the agent says: {shown(error.get('message'))}", fix)
            return
        try:
            method, params = next(self._steps) if row is None else self._steps.send(object_of(row.get("result")))
        except StopIteration:
            self.is_over = True
            return
        self._request += 1
        self._send(id=self._request, method=method, params=params)

    def _conversation(self) -> Steps:
        about = {"name": "interlock", "version": __version__}
        begin = {"protocolVersion": _VERSION, "clientCapabilities": _NOTHING_OFFERED, "clientInfo": about}
        hello = yield "initialize", begin
        if hello.get("protocolVersion") != _VERSION:
            message = f"the agent speaks version {shown(hello.get('protocolVersion'))} of the Agent Client Protocol"
            raise RunnerError(message, f"Use a version of it that speaks {_VERSION}, as Interlock does.")
        says = object_of(hello.get("agentInfo"))
        self.about = shown(f"{says.get('title') or says.get('name') or ''} {says.get('version') or ''}".strip())
        if self._agent.sign_in:
            yield "authenticate", {"methodId": self._agent.sign_in}
        session = yield "session/new", {"cwd": self._ask.root, "mcpServers": [_server(self._ask)]}
        self._session = str(session.get("sessionId") or "")
        if not self._session:
            raise RunnerError("the agent answers session/new without a session", "Use another version of the agent.")
        yield from self._choose(session, "mode", self._agent.mode)
        if not self._agent.command.naming:  # else its arguments have named the model
            yield from self._choose(session, "model", self._asked_for)
        prompt = "\n\n".join(filter(None, (self._ask.system, self._ask.prompt)))
        while self._turn < TURNS:
            self._turn += 1
            self.asks_next = self._begins = True
            text = {"type": "text", "text": prompt}
            self._count((yield "session/prompt", {"sessionId": self._session, "prompt": [text]}))
            if self.stopped or not self._refused:
                return
            # Whoever hears that the model would be asked again ends the session where nothing is left for that.
            self.asks_next = True
            self._heard(self)
            if self.stopped:
                return
            prompt = _reasons(self._refused)
            self._refused.clear()

    def _choose(self, session: Mapping[str, Any], what: str, value: str) -> Steps:
        """Choose the mode or the model that is wanted, by the way that the agent offers."""
        if not value:
            return
        modes = object_of(session.get("modes")) if what == "mode" else {}
        offered = {str(each.get("id")) for each in objects_of(modes.get("availableModes"))}
        options = [each for each in objects_of(session.get("configOptions")) if each.get("category") == what]
        if value in offered:
            yield "session/set_mode", {"sessionId": self._session, "modeId": value}
        elif options and not offered:
            choice = {"configId": str(options[0].get("id")), "value": value}
            yield "session/set_config_option", {"sessionId": self._session, **choice}
        else:
            message = f"the agent offers no {what} `{value}`: {few(sorted(offered), 9) or 'none can be chosen'}"
            raise RunnerError(message, f"Correct `{what}` in the table of the role, or give the program `arguments`.")

    def _count(self, done: Mapping[str, Any]) -> None:
        """Note what a turn spent: by the protocol, or where agents said it before the protocol did."""
        quota = object_of(object_of(done.get("_meta")).get("quota"))
        models = [str(each.get("model")) for each in objects_of(quota.get("model_usage"))]
        self.model = models[0] if len(models) == 1 else self.model
        row = object_of(done.get("usage")) or object_of(quota.get("token_count"))
        sent, written = (
            number_of(row, f"{way}Tokens") or number_of(row, f"{way}_tokens") for way in ("input", "output")
        )
        cached, kept, every = (number_of(row, f"{what}Tokens") for what in ("cachedRead", "cachedWrite", "total"))
        figures = {"input_tokens": sent, "output_tokens": written, "total_tokens": every}
        if every >= sent + written + cached + kept:  # some count what was cached apart from what was sent
            figures |= {"cache_read_input_tokens": cached, "cache_creation_input_tokens": kept}
        else:
            figures["cached_input_tokens"] = cached
        if sent or written:
            self._spent.pop("now", None)
            self._spends(f"turn {self._turn}", self.model, figures)
        self.calls = max(self.calls, self._turn)

    # -- what the agent does -----------------------------------------------------------------------------------------

    def _update(self, update: Mapping[str, Any]) -> None:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                self._spoke()
                self._say(str(update.get("messageId") or ""), object_of(update.get("content")).get("text"))
            case "agent_thought_chunk":
                self._spoke()
            case "tool_call" | "tool_call_update":
                self._call(update)
                if update.get("status") in ("completed", "failed"):
                    self.asks_next, self.doing = True, ""
            case "usage_update":
                # What is in the model's context was sent to it at least once.
                self._spent["now"] = Usage(0, number_of(update, "used"), usd=None)
                cost = object_of(update.get("cost"))
                amount = cost.get("amount")
                if cost.get("currency") == "USD" and isinstance(amount, (int, float)) and 0 <= amount < inf:
                    self._usd = float(amount)
            case _:
                pass

    def _say(self, message: str, text: object) -> None:
        """Take a piece of a message; the last one of all is the answer."""
        # Once messages have names, a piece without one is a notice of the program itself.
        if self._message and not message:
            return
        if self._begins or message != self._message:
            self._message, self._begins = message, False
            self._parts, self._said_bytes = [], 0
        if isinstance(text, str):
            self._parts.append(text)
            self._said_bytes += len(text)

    def _call(self, update: Mapping[str, Any]) -> Mapping[str, Any]:
        """Note what is said of a tool call, and return what is known of it by now."""
        name = shown(update.get("toolCallId"))
        known = self._calls.pop(name, None)
        if known is None:
            self._spoke()
            self._begins = True
            self.tool_calls += 1
        call = {**(known or {}), **{key: update[key] for key in _ABOUT_CALL if update.get(key) is not None}}
        self._calls[name] = call
        if len(self._calls) > _KNOWN_CALLS:
            del self._calls[next(iter(self._calls))]
        if len(self.asked) < _KNOWN_CALLS:
            self.asked.setdefault(shown(call.get("kind")), False)
        places = [str(each["path"]) for each in objects_of(call.get("locations")) if each.get("path")]
        self.doing = " ".join(f"{call.get('kind')} {(places or [call.get('title')])[0]}".split())
        return call

    # -- what the agent asks for -------------------------------------------------------------------------------------

    def _answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request of the agent.

        Raises:
            _RequestError: It gets an error.
        """
        if method.startswith("terminal/"):
            found = "a terminal of Interlock: there is none"
            self._refuse("execute", [refusal_row("AGT922", str(params.get("command")), found)])
        if method not in _ANSWERED:
            raise _RequestError(_UNKNOWN, f"{shown(method)} is not offered")
        if params.get("sessionId") != self._session:
            raise _RequestError(_INVALID, f"there is no session {shown(params.get('sessionId'))}")
        if method == "session/request_permission":
            return {"outcome": self._outcome(objects_of(params.get("options")), object_of(params.get("toolCall")))}
        path, text = params.get("path"), params.get("content")
        if isinstance(path, str) and method == "fs/read_text_file":
            first, lines = max(1, number_of(params, "line")), number_of(params, "limit") or MAX_LINES
            found = self._files.read(self._permissions.relative(path), first, lines)
            self._refuse("read", found["errors"])
            return {"content": found["text"]}
        if not isinstance(path, str) or not isinstance(text, str):
            raise _RequestError(_INVALID, "a file has a path, and what is written is a text")
        self._refuse("edit", self._permissions.change(path))
        self._refuse("edit", self._files.write(self._permissions.relative(path), text)["errors"])
        return {}

    def _outcome(self, options: list[dict[str, Any]], asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request for permission: an option of the right kind, or none."""
        call = self._call(asked)
        if self.stopped:
            return {"outcome": "cancelled"}
        rows = self._permissions.call(call)
        # What is allowed for good would not be asked again, where another file or command may not be allowed.
        chosen = None if rows else _option(options, "allow_once")
        if chosen is None:
            rows = rows or [refusal_row("AGT923", shown(call.get("title")), "it cannot be allowed just once")]
            chosen = _option(options, "reject_once", "reject_always")
        kind = shown(call.get("kind"))
        if kind in self.asked:
            self.asked[kind] = True
        if len(self._refused) < _KNOWN_CALLS:
            self._refused |= {self._reported(kind, row): None for row in rows}
        return {"outcome": "cancelled"} if chosen is None else {"outcome": "selected", "optionId": chosen}

    def _refuse(self, kind: str, rows: list[Mapping[str, Any]]) -> None:
        if rows:
            self._reported(kind, rows[0])
            raise _RequestError(_REFUSED, _reason(rows[0]))

    def _reported(self, kind: str, row: Mapping[str, Any]) -> str:
        """Report a refusal, and return it with its reason."""
        self.doing = f"refused: {kind} {row['place']} ({row['code']})"
        return f"{kind} {row['place']}: {_reason(row)}"


def _server(ask: Ask) -> dict[str, Any]:
    """Return our MCP server: an answer can be checked there and, in a shared checkout, files of others be asked for."""
    toolsets = "envelope,reservations" if ask.agent and ask.sandbox is None else "envelope"
    words = ["-P", "-m", "interlock", "mcp", "--toolsets", toolsets, "--root", ask.root]
    named = {**ask.environment, **ask.own_mark}
    env = [{"name": name, "value": value} for name, value in named.items()]
    return {"name": SERVER, "command": sys.executable, "args": words, "env": env}


def _option(options: list[dict[str, Any]], *kinds: str) -> str | None:
    """Return the option that is of one of these kinds, the first kind first."""
    found = {str(each.get("kind")): str(each.get("optionId")) for each in reversed(options)}
    return next((found[kind] for kind in kinds if kind in found), None)


def _reason(row: Mapping[str, Any]) -> str:
    """Return a refusal as an agent reads it."""
    expected = "" if row["expected"] == row["message"] else f" Expected: {row['expected']}."
    return f"{row['code']} {row['message']} Found: {row['found']}.{expected} {row['fix']}"


def _reasons(refused: Iterable[str]) -> str:
    """Return the next prompt: what was refused and why."""
    rows = bullets([*refused], _REASONS_BYTES)
    return (
        f"Interlock refused what you asked for, and these are the reasons:\n\n{rows}\n\n"
        "Go on with your assignment within these limits, and end with your whole answer in the form that it asks for."
    )
