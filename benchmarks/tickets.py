"""Measures the ticket pipeline side by side, in one run, on one machine: ratios count, seconds do not.

    python -m benchmarks.tickets               # a table
    python -m benchmarks.tickets --json        # the same as JSON
    python -m benchmarks.tickets --quick       # fewer rounds and 500 stored runs
    python -m benchmarks.tickets --runs 2000   # how many stored runs the large project has

Every server is a process of its own, spoken to over stdio by the SDK's client. It never fails by the clock.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

from mcp import Client, StdioServerParameters

_MEMORY: Final = Path("/dev/shm")  # a folder whose files cost no waiting for a disk
FILES: Final = 60
LINES: Final = 50

BARE: Final = """
import os, sys
from typing import Any
from mcp.server import MCPServer
from pydantic import BaseModel

class Validation(BaseModel):
    status: str
    errors: list[str]

class Ticket(BaseModel):
    schema_version: str
    run_id: str
    ticket_id: str
    state: str
    agent_role: str
    required_fields: list[str]
    payload: dict[str, Any]
    next_stage_fields: list[str]
    validation: Validation
    invalidation_report: dict[str, Any] | None
    history: list[dict[str, Any]]
    created_at: str
    updated_at: str
    revision: int

server = MCPServer("bare")
file = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

@server.tool()
def submit(ticket_json: str) -> str:
    ticket = Ticket.model_validate_json(ticket_json)
    os.write(file, ticket.model_dump_json().encode() + b"\\n")
    os.fsync(file)
    return ticket.state

server.run("stdio")
"""

EMPTY: Final = """
import langgraph.graph
from mcp.server import MCPServer
MCPServer("empty").run("stdio")
"""


# -- a project, and the walk of a ticket through it ----------------------------------------------------------------


def make_project(folder: Path) -> Path:
    """Make a git checkout with some source files, as small projects have them."""
    for number in range(FILES):
        file = folder / f"src/part_{number % 6}/module_{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"value_{line} = compute({number}, {line})\n" for line in range(LINES)))
    (folder / ".gitignore").write_text("artifacts/\ntickets/\n")
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "start"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    return folder


def payloads() -> dict[str, dict[str, Any]]:
    """Return what is submitted for each state, in the order of the states."""
    criteria = [f"The login page shows what is wrong with field {number}" for number in range(1, 5)]
    evidence = [
        {
            "source_id": f"ev_{number}",
            "source_type": "repo",
            "locator": f"src/part_{number}/module_{number}.py:3",
            "snippet": f"value_2 = compute({number}, 2)",
        }
        for number in range(1, 6)
    ]
    steps = [
        {
            "step_id": f"step_{number}",
            "intent": f"Show the message of field {number} beside the field",
            "requirement_refs": [f"ac_{number:03}"],
            "evidence_refs": [f"ev_{number}"],
        }
        for number in range(1, 5)
    ]
    return {
        "fetch_ticket": {
            "external_source": "jira",
            "external_ticket_id": "LOGIN-7",
            "title": "Say what is wrong on the login page",
            "description": "A user who mistypes a field sees nothing but a red border. " * 6,
        },
        "extract_requirements": {"acceptance_criteria": criteria, "constraints": ["No new dependency"], "unknowns": []},
        "scope_context": {
            "retrieval_targets": ["repo:src/part_1/**", "repo:src/part_2/**"],
            "retrieval_justification": "The fields and their checks are there.",
        },
        "gather_evidence": {"evidence_items": evidence},
        "propose_plan": {"plan_steps": steps},
        "act_via_tools": {
            "actions_taken": ["Edited src/part_1/module_1.py"],
            "outputs": ["src/part_1/module_1.py"],
            "checkpoints": ["The tests of the login page pass"],
        },
        "record_and_finalize": {
            "artifacts": ["src/part_1/module_1.py"],
            "final_summary": "Each field shows its own message. No file changed where the runs are stored.",
            "outcome": "success",
        },
    }


def act(root: Path) -> None:
    """Do what the plan says: change a file of its scope."""
    file = root / "src/part_1/module_1.py"
    file.write_text(file.read_text() + f"# changed at {time.time_ns()}\n")


# -- servers and clients -------------------------------------------------------------------------------------------


def interlock(root: Path) -> list[str]:
    """Return the command of the real server."""
    return [str(Path(sys.executable).with_name("interlock")), "mcp", "--root", str(root)]


@asynccontextmanager
async def connected(command: Sequence[str], folder: Path) -> AsyncGenerator[Client]:
    """Give a client of a server that runs as a process."""
    server = StdioServerParameters(command=command[0], args=list(command[1:]), cwd=folder, env=compiled_env())
    async with Client(server) as client:
        yield client


def compiled_env() -> dict[str, str]:
    """Return an environment in which modules are compiled once, as an installed package has them."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


async def call(client: Client, tool: str, arguments: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """Call a tool; return the seconds of the round trip and what came back."""
    start = time.perf_counter()
    result = await client.call_tool(tool, arguments)
    taken = time.perf_counter() - start
    assert not result.is_error, result
    return taken, cast("dict[str, Any]", result.structured_content)


async def walk(client: Client, root: Path, beside: Client | None = None) -> dict[str, list[float]]:
    """Walk one ticket from its beginning to `complete`, and return the seconds of each submission.

    Args:
        client: The real server.
        root: Its project.
        beside: The bare server; it gets each ticket too, in turns before and after.
    """
    times: dict[str, list[float]] = {"interlock": [], "bare": []}
    _, answer = await call(client, "interlock_begin_run", {"ticket_id": "LOGIN-7"})
    for number, (state, payload) in enumerate(payloads().items()):
        ticket = answer["ticket_json"]
        assert ticket["state"] == state, answer["gate_result"]
        if state == "act_via_tools":
            act(root)
        text = json.dumps({**ticket, "payload": payload})
        for turn in (number % 2, 1 - number % 2):
            if turn == 0:
                taken, answer = await call(client, "interlock_submit_ticket", {"ticket_json": text})
                times["interlock"].append(taken)
            elif beside is not None:
                taken, _ = await call(beside, "submit", {"ticket_json": text})
                times["bare"].append(taken)
    assert answer["next_state"] == "complete", answer["gate_result"]
    return times


# -- a: a submission over stdio ------------------------------------------------------------------------------------


async def submission(folder: Path, rounds: int) -> dict[str, Any]:
    """Compare a submission with a bare tool that parses the same ticket and appends it to a file."""
    root = make_project(folder / "submission")
    bare = [sys.executable, "-c", BARE, str(folder / "bare.jsonl")]
    async with connected(interlock(root), root) as client, connected(bare, folder) as beside:
        await walk(client, root, beside)
        walks = [await walk(client, root, beside) for _ in range(rounds)]
    ours, theirs = (spread([each for one in walks for each in one[name]]) for name in ("interlock", "bare"))
    ratios = [statistics.median(one["interlock"]) / statistics.median(one["bare"]) for one in walks]
    return {
        "interlock_ms": ours,
        "bare_ms": theirs,
        "ratio": round(statistics.median(ratios), 2),
        "stages_ms": {
            state: milliseconds([one["interlock"][number] for one in walks]) for number, state in enumerate(payloads())
        },
    }


def spread(seconds: list[float]) -> dict[str, float]:
    """Return median and 95th percentile in milliseconds."""
    ordered = sorted(seconds)
    return {"median": milliseconds(ordered), "p95": round(ordered[int(len(ordered) * 0.95)] * 1000, 2)}


def milliseconds(seconds: Sequence[float]) -> float:
    """Return the median in milliseconds."""
    return round(statistics.median(seconds) * 1000, 2)


# -- b: many stored runs -------------------------------------------------------------------------------------------


def store(root: str, names: Sequence[str]) -> None:
    """Walk a run for each name to its end, through the same code as the server."""
    from interlock.graph import Tickets  # noqa: PLC0415

    tickets = Tickets(Path(root))
    for journal in (tickets.open_runs.journal, tickets.open_runs.snapshots):
        journal.runs()  # read whole: no run is searched for
    for name in names:
        ticket: Any = tickets.begin(name.partition(".")[0], name)["ticket_json"]
        for payload in payloads().values():
            ticket = tickets.submit({**ticket, "payload": payload})["ticket_json"]
        assert ticket["state"] == "complete", ticket["validation"]


def prepare(folder: Path, runs: int) -> tuple[Path, float]:
    """Make a project with stored runs; return it, and the seconds that this took.

    The runs are made in memory where there is such a folder, and copied to the disk: its waiting is not measured here.
    """
    workers = min(os.cpu_count() or 1, runs)
    names = [f"STORED-{number}.{number:08x}" for number in range(runs)]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as made:
        root = make_project(Path(made))
        (root / "interlock.toml").write_text('[tickets]\nunchanged = "warn"\n')
        makers = [
            subprocess.Popen([sys.executable, __file__, "--store", str(root), *names[each::workers]])
            for each in range(workers)
        ]
        for maker in makers:
            if maker.wait():
                raise SystemExit("the stored runs could not be made; see the error above")
        subprocess.run(["cp", "-a", str(root), str(folder)], check=True)
    subprocess.run(["sync"], check=True)
    return folder, time.perf_counter() - start


async def stored(few: Path, many: Path, rounds: int) -> dict[str, Any]:
    """Compare the step of a project with many stored runs with that of one with few."""
    medians: dict[str, list[float]] = {"few": [], "many": []}
    first: dict[str, float] = {}
    roots = {"few": few, "many": many}
    async with connected(interlock(few), few) as one, connected(interlock(many), many) as other:
        clients = {"few": one, "many": other}
        for name, client in clients.items():
            first[name], _ = await call(client, "interlock_begin_run", {"ticket_id": "FIRST-1"})
            await walk(client, roots[name])
        for number in range(rounds):
            for name in ("few", "many") if number % 2 else ("many", "few"):
                medians[name] += (await walk(clients[name], roots[name]))["interlock"]
    ours = {name: spread(times) for name, times in medians.items()}
    return {
        "step_ms": ours,
        "ratio": round(ours["many"]["median"] / ours["few"]["median"], 2),
        "first_call_ms": {name: round(taken * 1000) for name, taken in first.items()},
        "journal_mib": round((many / "artifacts/interlock/events.jsonl").stat().st_size / 2**20, 1),
        "snapshots_mib": round((many / "artifacts/interlock/tickets.jsonl").stat().st_size / 2**20, 1),
    }


# -- c: start ------------------------------------------------------------------------------------------------------


async def first_answer(command: Sequence[str], folder: Path, ask: "Callable[[Client], Any]") -> float:
    """Return the seconds from the start of a process to its first answer."""
    start = time.perf_counter()
    async with connected(command, folder) as client:
        await ask(client)
        return time.perf_counter() - start


async def starting(few: Path, many: Path, rounds: int) -> dict[str, Any]:
    """Compare the start of the server with that of an empty one that imports langgraph."""

    async def tools(client: Client) -> None:
        await client.list_tools()

    async def begin(client: Client) -> None:
        await call(client, "interlock_begin_run", {"ticket_id": "START-1"})

    contenders = {
        "empty + langgraph": ([sys.executable, "-c", EMPTY], few, tools),
        "tool list": (interlock(few), few, tools),
        "tool list, stored runs": (interlock(many), many, tools),
        "first run begun": (interlock(few), few, begin),
        "first run begun, stored runs": (interlock(many), many, begin),
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        order = list(contenders.items())
        for name, (command, folder, ask) in order if number % 2 else reversed(order):
            taken = await first_answer(command, folder, ask)
            if number:
                times[name].append(taken)
    base = statistics.median(times["empty + langgraph"])
    return {
        name: {"ms": milliseconds(taken), "ratio": round(statistics.median(taken) / base, 2)}
        for name, taken in times.items()
    }


# -- d: where the time goes ----------------------------------------------------------------------------------------


class Shares:
    """Counts the time that each part of a step takes for itself, without the parts that it calls."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner: list[float] = []

    def watch(self, owner: object, name: str, part: "str | Callable[[Any], str]", *, outermost: bool = False) -> None:
        """Replace a function by one that is counted while the outermost one runs.

        Args:
            owner: The module or class of the function.
            name: Its name there.
            part: What its time is counted as; a function gets the first argument.
            outermost: Whether the count begins here.
        """
        inner = getattr(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            if not self._inner and not outermost:
                return inner(*args, **kwargs)
            start = time.perf_counter()
            self._inner.append(0.0)
            try:
                return inner(*args, **kwargs)
            finally:
                taken = time.perf_counter() - start
                key = part if isinstance(part, str) else part(args[0])
                self.seconds[key] = self.seconds.get(key, 0.0) + taken - self._inner.pop()
                if self._inner:
                    self._inner[-1] += taken

        setattr(owner, name, watched)


def shares(folder: Path, rounds: int) -> dict[str, Any]:
    """Take the time of a step apart, in this process and without MCP: the mean milliseconds of each part."""
    from interlock.graph import TicketStore  # noqa: PLC0415
    from interlock.graph.ticket import build, open_runs, tickets  # noqa: PLC0415
    from interlock.journal import Journal  # noqa: PLC0415

    counted = Shares()
    counted.watch(tickets.Tickets, "submit", "reading, comparing, lock, answer", outermost=True)
    counted.watch(open_runs.OpenRuns, "open", "reading the checkpoint")
    counted.watch(open_runs.OpenRuns, "resume", "graph and checkpoint")
    counted.watch(build, "judge_stage", "judge")
    counted.watch(open_runs, "list_tree", "tree listing (two of seven steps)")
    counted.watch(TicketStore, "write_copies", "copies for people")
    counted.watch(os, "fsync", "waiting for the disk: journal, snapshot")
    for name in ("append", "extend", "find", "head"):
        counted.watch(Journal, name, lambda journal: "snapshot" if journal.path.name == "tickets.jsonl" else "journal")
    root = make_project(folder)
    runs = tickets.Tickets(root)
    steps: list[float] = []
    for number in range(rounds + 1):
        if number == 1:
            counted.seconds.clear()
            steps.clear()
        ticket: Any = runs.begin("SHARES-1")["ticket_json"]
        for state, payload in payloads().items():
            if state == "act_via_tools":
                act(root)
            text = json.dumps({**ticket, "payload": payload})
            start = time.perf_counter()
            ticket = runs.submit(text)["ticket_json"]
            steps.append(time.perf_counter() - start)
    parts = sorted(counted.seconds.items(), key=lambda item: -item[1])
    return {
        "step_ms": spread(steps) | {"mean": round(statistics.mean(steps) * 1000, 2)},
        "parts_ms": {name: round(taken * 1000 / len(steps), 2) for name, taken in parts},
    }


# -- all of it -----------------------------------------------------------------------------------------------------


def table(results: dict[str, Any]) -> str:
    """Return the results as lines for a terminal."""
    first, second, parts = results["submission"], results["stored runs"], results["shares"]

    def row(name: str, found: dict[str, float]) -> str:
        return f"  {name:34}{found['median']:10.2f} ms   p95 {found['p95']:8.2f} ms"

    lines = ["A submission over stdio (medians of whole walks; at most 10)"]
    lines += [row("interlock_submit_ticket", first["interlock_ms"]), row("bare tool", first["bare_ms"])]
    lines += [f"  {'ratio':34}{first['ratio']:10.2f}"]
    lines += [f"    {state:32}{taken:10.2f} ms" for state, taken in first["stages_ms"].items()]
    few, many = results["runs"]["few"], results["runs"]["many"]
    lines += ["", f"A step with {many} stored runs and with {few} (at most 1.3)"]
    lines += [row(f"{few} runs", second["step_ms"]["few"]), row(f"{many} runs", second["step_ms"]["many"])]
    lines += [f"  {'ratio':34}{second['ratio']:10.2f}"]
    calls = second["first_call_ms"]
    lines += [f"  {'first call of a process':34}{calls['many']:7} ms   with {few} runs {calls['few']} ms"]
    lines += [f"  {'journal and snapshots':34}{second['journal_mib']:7} MiB and {second['snapshots_mib']} MiB"]
    lines += [f"  {'making the runs':34}{results['runs']['seconds']:7} s"]
    lines += ["", "From the start of a process to its first answer (tool list at most 1.5)"]
    for name, found in results["start"].items():
        lines.append(f"  {name:34}{found['ms']:10.1f} ms  {found['ratio']:6.2f}")
    lines += ["", f"Where a step goes, without MCP (mean {parts['step_ms']['mean']} ms)"]
    lines += [f"  {name:34}{taken:10.2f} ms" for name, taken in parts["parts_ms"].items()]
    return "\n".join(lines)


async def measure(folder: Path, rounds: int, runs: int) -> dict[str, Any]:
    """Run every measurement that needs servers."""
    few, _ = prepare(folder / "few", 10)
    many, seconds = prepare(folder / "many", runs)
    return {
        "submission": await submission(folder, rounds),
        "runs": {"few": 10, "many": runs, "seconds": round(seconds)},
        "stored runs": await stored(few, many, rounds),
        "start": await starting(few, many, max(rounds // 3, 3)),
    }


def main() -> None:
    """Run every measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and 500 stored runs")
    parser.add_argument("--runs", type=int, help="how many runs the large project has (default 10000)")
    parser.add_argument("--store", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.store:
        store(args.store[0], args.store[1:])
        return
    rounds = 5 if args.quick else 25
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # The parts are named after functions: if one of them is gone, that shows in a second and not at the end.
        results = {"shares": shares(folder / "shares", rounds)}
        results |= asyncio.run(measure(folder, rounds, args.runs or (500 if args.quick else 10_000)))
    print(json.dumps(results, indent=2) if args.json else table(results))


if __name__ == "__main__":
    main()
