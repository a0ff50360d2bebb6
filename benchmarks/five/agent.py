"""One of the five: a process with its own MCP client and server that edits in all repositories under the guards.

    python -m benchmarks.five.agent PART.json

It keeps the reservations of its last repositories until somebody asks for them, as real agents do, answers requests
between two steps of its own work, and writes what it did into a log of its own. It meets the stage manager over
standard output and input: one JSON line for its state, one line to go on.
"""

import json
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TextIO, TypeAlias

import anyio
from mcp import Client, StdioServerParameters

from benchmarks.five.checkout import Checkout, Layout, environment
from interlock.reservations import Caller, NotCoveredError, Reservations, guarded, open_reservations, process

WAIT_SECONDS: Final = 2.0
"""How long one call waits; between two, the agent answers what others ask of it."""
PAUSE_SECONDS: Final = 0.05
"""How often an agent looks that has nothing to do but wait."""
GIVE_UP_SECONDS: Final = 90.0
"""After this time a conflict counts as one without an end."""
LATE_SECONDS: Final = 1.5
"""A late holder defers, and releases this much later."""
KEPT: Final = 6
"""How many finished repositories stay reserved."""
SHORT_TTL_MINUTES: Final = 1.5 / 60
"""The lease of the agent that is stopped."""
HOLD_SECONDS: Final = 60.0
"""How long git may need for a commit."""
Role: TypeAlias = Literal["steady", "dies", "pauses", "rival"]
INTERLOCK: Final = str(Path(sys.executable).with_name("interlock"))


@dataclass(frozen=True, slots=True)
class Part:
    """What one agent is to do.

    Args:
        name: Who it is.
        root: The workspace.
        layout: See `checkout.Layout`.
        order: The repositories in its order.
        log: Where it writes what it did.
        seed: For its choices.
        role: `dies` and `pauses` happen in `scene`; the `rival` works there while the other one is stopped.
        scene: A repository.
        cue: A file that is there once the rival may go to the scene.
    """

    name: str
    root: str
    layout: Layout
    order: list[str]
    log: str
    seed: int
    role: Role = "steady"
    scene: str = ""
    cue: str = ""


@dataclass(slots=True)
class Grant:
    """What an agent holds of a repository: reservation ids, and the fencing token for each path."""

    ids: list[str]
    tokens: dict[str, int]


@dataclass
class Agent:
    """An agent at work.

    Args:
        part: What it is to do.
        client: Its MCP client.
        log: See `Part`.
        calls: The same agent, for the guard around a commit, which the library has and no tool.
    """

    part: Part
    client: Client
    log: TextIO
    calls: Reservations
    rng: random.Random = field(init=False)
    checkout: Checkout = field(init=False)
    current: str = ""
    requests: int = 0
    kept: dict[str, Grant] = field(default_factory=dict[str, Grant])
    promised: dict[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])

    def __post_init__(self) -> None:
        self.rng = random.Random(self.part.seed)
        self.checkout = Checkout(Path(self.part.root), self.part.layout, len(self.part.order))

    # -- the sweep -------------------------------------------------------------------------------------------------

    async def sweep(self) -> None:
        """Visit every repository once, then give everything back."""
        line = list(self.part.order)
        while line:
            here = line.pop(0)
            if self.part.role == "rival" and here == self.part.scene and not Path(self.part.cue).exists():
                line.append(here)
                await anyio.sleep(0.0 if line[0] != here else PAUSE_SECONDS)
                await self.attend()
                continue
            await self.visit(here)
        while self.promised:
            await anyio.sleep(PAUSE_SECONDS)
            await self.attend()
        await self.attend()
        await self.call("release_all")
        self.note("done")

    async def visit(self, here: str) -> None:
        """Reserve a repository's files, write into each, commit, and keep them for a while."""
        self.current = here
        on_scene = here == self.part.scene
        if on_scene and self.part.role == "pauses":
            await self.pause(here)
        grant = await self.acquire(here)
        if grant is None:
            return
        for number, path in enumerate(self.checkout.paths(here)):
            await self.edit(here, path, grant)
            if on_scene and number == 0 and self.part.role in {"dies", "rival"}:
                await self.meet("on the scene")
        await self.commit(here)
        self.current = ""
        self.kept[here] = grant
        while len(self.kept) > KEPT:
            oldest = next(iter(self.kept))
            await self.call("release_files", reservation_ids=self.kept.pop(oldest).ids)
        await self.attend()

    # -- reservations ----------------------------------------------------------------------------------------------

    async def acquire(self, here: str, ttl_minutes: float | None = None) -> Grant | None:
        """Reserve the files of a repository; whoever is in the way is waited for in the queue or asked."""
        start = time.monotonic()
        wanted = {"patterns": self.checkout.paths(here), "reason": f"sweep of {here}", "ttl_minutes": ttl_minutes}
        asks, how, conflict = self.rng.random() < 0.5, "at once", False
        while True:
            waits = WAIT_SECONDS if conflict and not asks else 0
            answer = await self.call("reserve_files", **wanted, wait_seconds=waits)
            waited = time.monotonic() - start
            if not answer["errors"]:
                how = "takeover" if answer.get("taken_over") else how
                break
            codes = sorted({row["code"] for row in answer["errors"]})
            if not conflict:
                conflict = True
                rows = [row["conflict"] for row in answer["errors"] if "conflict" in row]
                states = {row["holder"]: row["holder_state"] for row in rows}
                self.note("conflict", repository=here, codes=codes, holders=states, asks=asks)
            if waited > GIVE_UP_SECONDS:
                self.note("unresolved", repository=here, seconds=waited)
                return None
            if "RSV204" in codes:
                await self.step_back()
            await self.attend()
            how = await self.ask(here) if asks else "line"
        self.note("granted", repository=here, how=how, conflict=conflict, seconds=waited)
        rows = answer["reservations"]
        tokens = {path: max(row["token"] for row in rows) for path in self.checkout.paths(here)}
        return Grant([row["reservation_id"] for row in rows], tokens)

    async def ask(self, here: str) -> str:
        """Ask for the whole repository, and wait a moment for the answer; returns what became of it."""
        urgency = self.rng.choice(("normal", "urgent"))
        asked = await self.call(
            "negotiate_release", file=f"{here}/**", reason="my sweep", urgency=urgency, wait_seconds=WAIT_SECONDS
        )
        if asked.get("deadlock"):
            await self.step_back()
        return {"release": "negotiation", "free": "freed"}.get(asked["status"], "line")

    async def step_back(self) -> None:
        """Give up what is finished: somebody waits for it while this agent waits for somebody."""
        ids = [each for grant in self.kept.values() for each in grant.ids]
        self.kept.clear()
        self.note("stepped back", leases=len(ids))
        if ids:
            await self.call("release_files", reservation_ids=ids)

    async def attend(self) -> None:
        """Read the inbox and answer: now what is finished, later what is at work or when this holder is a late one."""
        answer: dict[str, Any] = {"next_cursor": None}
        while True:
            answer = await self.call("fetch_inbox", cursor=answer["next_cursor"])
            for message in answer["messages"]:
                if message["topic"] == "release-request":
                    await self.consider(message)
                elif message["topic"] == "granted":
                    await self.drop_claims()
            if answer["next_cursor"] is None:
                break
        for thread, (here, due) in list(self.promised.items()):
            if here != self.current and time.monotonic() >= due:
                del self.promised[thread]
                await self.respond(thread, "release", here)

    async def consider(self, message: dict[str, Any]) -> None:
        """Answer one request; every third of them late, the first one too."""
        thread, here = message["thread_id"], json.loads(message["body"])["file"].split("/")[0]
        if thread in self.promised:
            return
        self.requests += 1
        late = self.requests % 3 == 1
        if here == self.current or late:
            self.promised[thread] = (here, time.monotonic() + (LATE_SECONDS if late else 0.0))
            await self.respond(thread, "defer", here, late=late)
        else:
            await self.respond(thread, "release", here)

    async def respond(self, thread: str, action: str, here: str, *, late: bool = False) -> None:
        """Send an answer."""
        more = {"eta_minutes": 1, "reason": "not yet"} if action == "defer" else {}
        answer = await self.call("respond_to_release", thread_id=thread, action=action, **more)
        if action == "release":
            self.kept.pop(here, None)
        self.note("responded", thread=thread, action=action, status=answer["status"], late=late)

    async def drop_claims(self) -> None:
        """Give back what the queue brought after it had come another way."""
        held = (await self.call("my_reservations"))["reservations"]
        ids = [row["reservation_id"] for row in held if row["claim"] and not row["pattern"].startswith(self.current)]
        if ids and self.current:
            await self.call("release_files", reservation_ids=ids)

    # -- the guarded entry points ----------------------------------------------------------------------------------

    async def edit(self, here: str, path: str, grant: Grant) -> None:
        """Add a line to a file as an editing tool does: the hook is asked, the file is read, and written as a whole."""
        file = self.checkout.root / path
        while not await self.hook(path, line := f"{self.part.name} {here} {grant.tokens[path]}\n"):
            self.note("hook refused", path=path)
            again = await self.acquire(here)
            if again is None:
                return
            grant.ids, grant.tokens = again.ids, again.tokens
        before = file.read_text()
        await anyio.sleep(self.rng.uniform(0.002, 0.02))
        file.write_text(before + line)
        self.note("wrote", path=path, line=line.rstrip())

    async def hook(self, path: str, line: str) -> bool:
        """Run `interlock hook pre-edit` as a client does that adds a line; False when it refused.

        The edit is the one that follows: what the tool of a holder did not announce may be somebody else's command's,
        and is put back.
        """
        before = (self.checkout.root / path).read_text()
        event = {
            "session_id": self.part.name,
            "cwd": self.part.root,
            "hook_event_name": "PreToolUse",
            "tool_name": "Edit",
            "tool_input": {
                "file_path": str(self.checkout.root / path),
                "old_string": before,
                "new_string": before + line,
            },
        }
        done = await anyio.run_process(
            [INTERLOCK, "hook", "pre-edit"], input=json.dumps(event).encode(), cwd=self.part.root, check=False
        )
        if done.returncode == 2 and b"RSV201" in done.stderr:
            return False
        assert done.returncode == 0, done.stderr.decode()
        return True

    async def commit(self, here: str) -> None:
        """Commit the files of a repository: by `interlock commit`, or by git under the guard where it cannot work."""
        if self.part.layout == "folders":
            command = [INTERLOCK, "commit", "--json", "-m", f"{self.part.name} {here}", here]
            done = await anyio.run_process(command, cwd=self.part.root, check=False)
            assert done.returncode == 0, (done.stdout + done.stderr).decode()
            made = json.loads(done.stdout)["commit"]
        else:
            top, files = self.checkout.top(here), [Path(path).name for path in self.checkout.paths(here)]
            with guarded(self.calls, self.checkout.paths(here), hold_seconds=HOLD_SECONDS) as guard:
                message = f"{self.part.name} {here}"
                guard.confirm()
                await anyio.run_process(["git", "commit", "-q", "-m", message, "--only", "--", *files], cwd=top)
                head = await anyio.run_process(["git", "rev-parse", "HEAD"], cwd=top)
            made = head.stdout.decode().strip()
        self.note("committed", repository=here, commit=made, paths=self.checkout.paths(here))

    async def pause(self, here: str) -> None:
        """Be stopped past the lease, between reading and writing, then try to go on as if nothing had happened."""
        grant = await self.acquire(here, SHORT_TTL_MINUTES)
        assert grant is not None
        path = self.checkout.paths(here)[0]
        line = f"{self.part.name} {here} stale\n"
        stale = (self.checkout.root / path).read_text() + line
        await self.meet("about to write")
        self.note("stale write", via="hook", accepted=await self.hook(path, line))
        for via, seconds in (("guard", None), ("commit", HOLD_SECONDS)):
            accepted = False
            try:
                with guarded(self.calls, [path], hold_seconds=seconds) as guard:
                    if guard.tokens[path] == grant.tokens[path]:
                        (self.checkout.root / path).write_text(stale)
                        accepted = True
            except NotCoveredError as refused:
                self.note("stale write refused", via=via, codes=[row["code"] for row in refused.errors])
            self.note("stale write", via=via, accepted=accepted)
        if self.part.layout == "folders":
            command = [INTERLOCK, "commit", "-m", "stale", here]
            done = await anyio.run_process(command, cwd=self.part.root, check=False)
            self.note("stale write", via="interlock commit", accepted=done.returncode == 0)
        await self.meet("tried")

    # -- the stage -------------------------------------------------------------------------------------------------

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its answer."""
        result = await self.client.call_tool(
            tool, {key: value for key, value in arguments.items() if value is not None}
        )
        assert not result.is_error, result.content
        assert result.structured_content is not None
        return result.structured_content

    async def meet(self, where: str) -> None:
        """Report the state of this agent to the stage manager, and wait until it may go on."""
        print(json.dumps({"agent": self.part.name, "at": where}), flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)

    def note(self, kind: str, **facts: Any) -> None:
        """Add a line to the log."""
        row = {"agent": self.part.name, "kind": kind, "at": time.monotonic(), **facts}
        self.log.write(json.dumps(row) + "\n")
        self.log.flush()


async def play(part: Part) -> None:
    """Play one part."""
    named = environment(INTERLOCK_AGENT_ID=part.name, INTERLOCK_PROJECT=part.root)
    server = StdioServerParameters(command=sys.executable, args=["-m", "interlock", "mcp"], cwd=part.root, env=named)
    opened = open_reservations(part.root, "cli", name=part.name)
    caller = Caller(part.name, "agent", part.root, "cli", process.host())
    with Path(part.log).open("a") as log:
        async with Client(server, mode="auto") as client:
            agent = Agent(part, client, log, Reservations(opened.runtime, caller))
            await agent.call("my_reservations")
            await agent.meet("ready")
            await agent.sweep()


def main() -> None:
    """Read the part and play it."""
    anyio.run(play, Part(**json.loads(Path(sys.argv[1]).read_text())))


if __name__ == "__main__":
    main()
