"""Which agent a program works for: one name at every entry point.

The edit hook, the MCP server, the shell and git's hooks are different processes below one client. They find the same
name: by the environment, by the session, or by what session-start stored for the client's process.

That keeps honest agents apart and together. All of them are processes of one user, and nothing keeps one that wants to
from setting `INTERLOCK_AGENT_ID` to the name of another; the guard of shell commands refuses what it sees of that.
"""

import os
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from interlock.core.record import Record
from interlock.reservations import process
from interlock.reservations.store.records import AgentKind

if TYPE_CHECKING:
    from interlock.reservations.store.choice import Store

NAMES: Final = ("INTERLOCK_AGENT_ID", "INTERMUTE_AGENT_ID")
SESSION: Final = "CLAUDE_SESSION_ID"
EXPORTED: Final = "INTERLOCK_AGENT_SESSION"
"""Set by session-start beside a name that it made of the session itself. A client that is started inside such a session
inherits both and is another agent: that name counts only when nothing nearer says who this is."""
MAX_SESSION: Final = 80
_UUID: Final = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
APART: Final = frozenset({"hook", "mcp"})
"""The entry points that a client starts itself. Where nothing says who it is, its process does: two clients are two."""


class Known(Record):
    """Who calls, `person` for `user@host`, and the client's process that it is; None when there is none."""

    name: str
    kind: AgentKind
    pid: int | None
    started: str


def who(
    env: Mapping[str, str], store: "Store", session_id: str = "", client: str = "claude", *, via: str = ""
) -> Known:
    """Return the agent and its process.

    The name, in this order: `INTERLOCK_AGENT_ID`, `INTERMUTE_AGENT_ID`, `CLIENT-SESSION` of a hook's input,
    `claude-$CLAUDE_SESSION_ID`, what is stored for the nearest ancestor process, `user@host`. The process is the
    ancestor that the name was stored for, else `process.client()`.

    As the last resort a client is `user@host:PID-MARK`, an agent, with the number of its process and a mark that
    no later process and no other container's has; a shell is `user@host`.

    Args:
        client: What kind of client sent the hook's input: `claude`, `codex`, `gemini`.
        via: The entry point by which it calls; `hook` and `mcp` are a client's own.
    """
    name = stated_name(env, session_id, client)
    if not name and (bound := _bound(store)) is not None:
        return bound
    pid, started = process.client()
    if name := name or _given(env):
        return Known(name, "agent", pid, started)
    if pid is None and via == "mcp":
        # The client is in another container: this server is all that there is of it here.
        pid, started = process.own()
    if pid is None or via not in APART:
        return Known(person(env), "person", pid, started)
    return Known(f"{person(env)}:{pid}-{_mark(started)}", "agent", pid, started)


def stated_name(env: Mapping[str, str], session_id: str = "", client: str = "claude") -> str:
    """Return the name that the environment or the session gives, or nothing; `who` asks the store as well."""
    given = "" if env.get(EXPORTED) else _given(env)
    if given or session_id:
        return given or of_session(session_id, client)
    return of_session(env[SESSION]) if env.get(SESSION) else ""


def of_session(session_id: str, client: str = "claude") -> str:
    """Return the name of a session's agent: letters, digits, `.`, `_` and `-` of its id, the last 8 of a UUID."""
    if re.fullmatch(_UUID, session_id):
        session_id = session_id[-8:]  # its beginning may be the time alone
    kept = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in session_id)
    return f"{client}-{kept[:MAX_SESSION]}"


def exports(env: Mapping[str, str], name: str, session_id: str) -> dict[str, str]:
    """Return the variables that give a session's shell commands the session's agent."""
    own = stated_name(env, "") != name
    return {NAMES[0]: name, **({EXPORTED: session_id} if own and session_id else {})}


def _given(env: Mapping[str, str]) -> str:
    return next((name for variable in NAMES if (name := env.get(variable, "").strip())), "")


def _bound(store: "Store") -> Known | None:
    """Return what is stored for the nearest ancestor; none above the first init, which strangers share."""
    above = _above()
    machine = process.host()
    with store.transaction() as tx:
        for parent in above:
            if name := tx.agent_of_process(machine, parent.pid, parent.started):
                row = tx.agent(name)
                return Known(name, "agent" if row is None else row.kind, parent.pid, parent.started)
    return None


def _above() -> list[process.Process]:
    """Return the ancestors below the first init; what init adopts shares it with strangers."""
    return list(takewhile(lambda parent: parent.name not in process.INITS, process.ancestors()))


AGENT_VARIABLES: Final = (
    *NAMES,
    SESSION,
    EXPORTED,
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_THREAD_ID",
    "GEMINI_CLI",
    "CURSOR_AGENT",
    "CURSOR_TRACE_ID",
    "OPENCODE",
    "AIDER_MODEL",
    "AI_AGENT",
)
"""Variables that agents' clients, and Interlock for them, set for the commands that they run."""
AGENT_PROGRAMS: Final = frozenset(
    {
        "claude",
        "codex",
        "gemini",
        "cursor-agent",
        "opencode",
        "aider",
        "goose",
        "amp",
        "copilot",
        "qwen",
        "crush",
        "interlock",
        "interlock-mcp",
    }
)
"""Programs that run agents, and ours: what Interlock starts works for one."""
_OF_INSTALLED: Final = re.compile(r"/node_modules/(@anthropic-ai|@openai|@google)/|/cursor-agent/")
"""Where the scripts of clients lie whose file is called otherwise, such as `cli.js`."""


def agent_behind(env: Mapping[str, str]) -> str:
    """Return what says that an agent calls and no person: a variable or an ancestor; empty when nothing does.

    A hurdle, and no proof: a program of the same user can take both away.
    """
    named = next((name for name in AGENT_VARIABLES if env.get(name, "").strip()), "")
    if named:
        return f"the variable {named}"
    for parent in process.ancestors():
        words = process.words_of(parent.pid)
        texts = (parent.name, *words[:1], *_script(words))
        programs = {os.path.basename(text).casefold() for text in texts}
        if AGENT_PROGRAMS & programs or any(map(_OF_INSTALLED.search, texts)):
            return f"the ancestor {parent.name} ({parent.pid})"
    return ""


def _script(words: Sequence[str]) -> list[str]:
    """Return the script, or the module after `-m`, that Python or Node was started with."""
    if not words or not re.fullmatch(r"python[\d.]*|node|nodejs|bun", os.path.basename(words[0])):
        return []
    named = [*words[words.index("-m") + 1 :]] if "-m" in words else [word for word in words[1:] if word[:1] != "-"]
    return [] if "-c" in words else named[:1]


def _mark(started: str) -> str:
    """Return four digits that differ between processes of one number on different machines or at different times."""
    from binascii import crc_hqx  # noqa: PLC0415 - only without any name

    return f"{crc_hqx(f'{process.host()} {started}'.encode(), 0):04x}"


def person(env: Mapping[str, str]) -> str:
    """Return the name of the person who works here: `user@host`, by the login name."""
    user = env.get("LOGNAME") or env.get("USER")
    if not user:
        try:
            import pwd  # noqa: PLC0415 - only without the usual variables

            user = pwd.getpwuid(os.getuid()).pw_name
        except (ImportError, KeyError):
            user = str(os.getuid())
    return f"{user}@{os.uname().nodename}"
