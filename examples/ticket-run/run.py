"""Plays a ticket through `interlock mcp` as an agent would: with a file, over stdio, by the protocol's minimal loop.

    python examples/ticket-run/run.py [--dir FOLDER]

The agent makes three mistakes on purpose: it quotes what no file says, it sets the ticket's state by hand, and it
submits a ticket twice. It does not act itself: each step of its plan becomes a task with scripted agents that really
edit files, behind the tests of the project, and what came of the tasks is the payload of the acting stage. Exit 0 only
when the run ends `complete`.
"""

import argparse
import asyncio
import json
import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

import interlock

HERE: Final = Path(__file__).resolve().parent
PACKAGE: Final = Path(interlock.__file__).parent
MARK: Final = ".interlock-demo"
COPIED: Final = ("core/errors.py", "cli/main.py")
"""Files of Interlock itself that the ticket is about; they are copied, since the run edits one."""
TICKET: Final = Path("tickets", "ticket.json")
TICKET_ID: Final = "EXIT-CODES-1"
CODE: Final = "interlock/core/errors.py"
HELP: Final = "interlock/cli/main.py"

GATES: Final = ("GATE-MSG-STRICT", "GATE-TESTS", "GATE-REVIEW")
WAIT_SECONDS: Final = 20.0

Response = dict[str, Any]


class NoAnswerError(Exception):
    """The server gave an error where the protocol promises an answer."""


class Agent:
    """An agent that knows the three tools and keeps its ticket in a file.

    Args:
        client: Connected to the server.
        root: The project's folder.
    """

    def __init__(self, client: Client, root: Path) -> None:
        self.client = client
        self.root = root
        self.file = root / TICKET
        self.path: list[str] = []
        self.started = time.monotonic()

    @property
    def ticket(self) -> Response:
        """The ticket as the file holds it."""
        return json.loads(self.file.read_text(encoding="utf-8"))

    async def begin(self) -> None:
        """Begin a run and save its ticket."""
        answer = await self.call("interlock_begin_run", ticket_id=TICKET_ID)
        self.save(answer)
        self.say("begin", f"run {self.ticket['run_id']}, state {self.ticket['state']}")

    async def submit(self, payload: Mapping[str, Any], note: str, **forged: str) -> Response:
        """Fill the payload, submit the whole file, and replace it with what came back.

        Args:
            payload: The fields of the present stage.
            note: What is submitted, for the reader.
            forged: Fields of the server, set by hand.
        """
        state = self.ticket["state"]
        self.file.write_text(json.dumps({**self.ticket, **forged, "payload": payload}, indent=2), encoding="utf-8")
        self.say(state, f"submits {note}")
        answer = await self.call("interlock_submit_ticket", ticket_json=self.file.read_text(encoding="utf-8"))
        self.save(answer)
        self.report(answer)
        codes = " ".join(dict.fromkeys(issue["code"] for issue in answer["gate_result"]["issues"]))
        self.path.append(state if answer["gate_result"]["status"] == "pass" else f"{state} ({codes})")
        return answer

    async def call(self, tool: str, **arguments: Any) -> Response:
        """Call a tool and return its structured answer."""
        result = await self.client.call_tool(tool, arguments)
        if result.structured_content is None:
            raise NoAnswerError(f"{tool} gave no answer: {result.content}")
        return cast("Response", result.structured_content)

    def save(self, answer: Response) -> None:
        """Replace the file with the ticket that came back."""
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(json.dumps(answer["ticket_json"], indent=2, ensure_ascii=False), encoding="utf-8")

    def report(self, answer: Response) -> None:
        """Print what came back: the status, where the run is, and each finding with its fix."""
        gate = answer["gate_result"]
        self.say("", f"→ {gate['status']}: {answer['reason']}")
        for issue in gate["issues"]:
            print(f"{'':<33}{issue['code']} ({issue['level']}) {issue['field']}: {issue['message']}")
            for name in ("found", "expected", "fix"):
                print(f"{'':<35}{name + ':':<10}{issue[name]}")

    def say(self, state: str, text: str) -> None:
        """Print one line."""
        print(f"{time.monotonic() - self.started:6.1f} s  {state:<22}{text}")


def quote(root: Path, path: str, first: str, last: str) -> dict[str, str]:
    """Return an evidence item: the lines of a file from the one that holds `first` to the one that holds `last`."""
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if first in line)
    end = next(number for number, line in enumerate(lines) if last in line and number >= start)
    locator = f"{path}:{start + 1}-{end + 1}"
    return {"source_type": "repo", "locator": locator, "snippet": "\n".join(lines[start : end + 1])}


async def walk(agent: Agent, root: Path) -> Response:
    """Walk the ticket from `fetch_ticket` to its end; return the last answer."""
    await agent.begin()
    await agent.submit(
        {
            "external_source": "user",
            "external_ticket_id": TICKET_ID,
            "title": "Say what each exit code means",
            "description": "Scripts branch on the exit codes, and no page says what they mean. Write one.",
        },
        "the ticket's text",
    )
    await agent.submit(
        {
            "acceptance_criteria": ["A page names every exit code with its meaning.", "The code points to the page."],
            "constraints": ["No exit code changes."],
            "unknowns": [],
        },
        "2 criteria, 1 constraint",
    )
    scope = {
        "retrieval_targets": [f"repo:{CODE}", f"repo:{HELP}"],
        "retrieval_justification": "One defines the codes, the other says in its help text what they mean.",
    }
    old = {**agent.ticket, "payload": scope}
    first = await agent.submit(scope, "2 files to read")
    await repeat(agent, old, first)
    await gather(agent, root)
    return await plan_and_act(agent)


async def repeat(agent: Agent, old: Response, first: Response) -> None:
    """Submit the same ticket once more, as after a lost answer: the first result comes back and nothing changes."""
    agent.say("", "the answer is taken for lost: submits the same ticket again")
    again = await agent.call("interlock_submit_ticket", ticket_json=json.dumps(old))
    agent.path.append(f"{old['state']} (again)")
    same = "the same answer as before" if again == first else "ANOTHER ANSWER"
    agent.say("", f"→ {same}; the revision stays {again['ticket_json']['revision']}")


async def gather(agent: Agent, root: Path) -> None:
    """Quote two places: one wrongly at first, and correctly after the refusal."""
    code = {"source_id": "ev_codes", **quote(root, CODE, "class Exit", "SYSTEM = ")}
    meaning = {"source_id": "ev_help", **quote(root, HELP, "epilog=", "70 internal")}
    invented = {**code, "snippet": code["snippet"].replace("SYSTEM = 74", "SYSTEM = 75")}
    await agent.submit({"evidence_items": [invented, meaning]}, "2 quotations, one with a wrong number")
    await agent.submit({"evidence_items": [code, meaning]}, "both as they are in the files")


async def plan_and_act(agent: Agent) -> Response:
    """Forge a state, plan in earnest, have tasks act, and finish."""
    steps = [
        {
            "step_id": "step_1",
            "intent": "Write docs/exit-codes.md with a row for every code",
            "requirement_refs": ["ac_001", "con_001"],
            "evidence_refs": ["ev_codes", "ev_help"],
        },
        {
            "step_id": "step_2",
            "intent": "Name the page in the docstring of Exit",
            "requirement_refs": ["ac_002"],
            "evidence_refs": ["ev_codes"],
        },
    ]
    await agent.submit({"plan_steps": steps}, "a plan, and a state set by hand", state="record_and_finalize")
    agent.say("", f"the file holds the server's ticket again: state {agent.ticket['state']}")
    await agent.submit({"plan_steps": steps}, "2 steps")
    outcomes = await act(agent, steps)
    agent.say("", f"the tasks ended {', '.join(outcomes.values())}")
    if set(outcomes.values()) != {"APPROVED"}:
        return {"next_state": agent.ticket["state"]}
    acted = {
        "actions_taken": [f"{step}: task {task_id(step)} ended {status}" for step, status in outcomes.items()],
        "outputs": ["docs/exit-codes.md", CODE],
        "checkpoints": [f"{step}: {', '.join(GATES)} passed" for step in outcomes],
    }
    await agent.submit(acted, "what came of the tasks")
    final = {
        "artifacts": ["docs/exit-codes.md", CODE],
        "final_summary": "A page names every exit code with its meaning, and the code points to it.",
        "outcome": "success",
    }
    return await agent.submit(final, "2 artifacts, outcome success")


async def act(agent: Agent, steps: list[dict[str, Any]]) -> dict[str, str]:
    """Have each step carried out as a task, one after the other, until one is not approved; return how each ended."""
    outcomes: dict[str, str] = {}
    for step in steps:
        name = step["step_id"]
        agent.say("act_via_tools", f"{name} becomes task {task_id(name)}")
        task = {
            "task_id": task_id(name),
            "task": step["intent"],
            "gates_required": list(GATES),
            "scope": ["docs/**", "interlock/**"],
        }
        state = await agent.call("task_begin", task=task)
        while state["phase"] != "done":
            state = await agent.call("task_next", run_id=state["run_id"], wait_seconds=WAIT_SECONDS)
        outcomes[name] = state["status"]
        if state["status"] != "APPROVED":
            explained = await agent.call("task_status", run_id=state["run_id"])
            agent.say("", f"  {name} failed: {'; '.join(explained['fail_reasons'])}")
            agent.say("", f"  more: interlock explain {task_id(name)} --root {shlex.quote(str(agent.root))}")
            break
    return outcomes


def task_id(step: str) -> str:
    """Return the id of the task that a step of the plan became."""
    return f"{TICKET_ID}-S{step.removeprefix('step_')}"


def prepare(folder: Path) -> None:
    """Make the project's folder; one that no demo made is left alone."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            sys.stderr.write(
                f"error: {folder} is not empty and was not made by a demo\n"
                "  fix: Choose another folder: `--dir DIR`, or `make demo-ticket DIR=DIR`.\n"
            )
            raise SystemExit(2)
        shutil.rmtree(folder)
    shutil.copytree(HERE / "project", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / MARK).write_text("This folder is emptied by the next demo.\n", encoding="utf-8")
    for name in COPIED:
        (folder / "interlock" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / name, folder / "interlock" / name)


def show_end(agent: Agent) -> None:
    """Print what was submitted, with the codes of what was refused, and where everything is."""
    ticket = agent.ticket
    records = "artifacts/interlock"
    rows = {
        "run": ticket["run_id"],
        "state": ticket["state"],
        "submitted": " → ".join(agent.path),
        "ticket": TICKET,
        "snapshots": f"{records}/tickets.jsonl",
        "journal": f"{records}/events.jsonl",
        "payloads": f"{records}/tickets/{ticket['run_id']}/",
        "folder": agent.root,
    }
    for name, value in rows.items():
        print(f"{name:<10}{value}")


async def main() -> int:
    """Start the server, walk the ticket, and say how it ended."""
    parser = argparse.ArgumentParser(description="Play a ticket through `interlock mcp`.")
    parser.add_argument("--dir", type=Path, default=Path("interlock-demo-ticket"), help="where to run it")
    root: Path = parser.parse_args().dir.resolve()
    prepare(root)
    # -P: the folder holds copies of Interlock's own files, which must not be imported in place of the package.
    server = StdioServerParameters(command=sys.executable, args=["-P", "-m", "interlock", "mcp"], cwd=root)
    print(f"demo in {root}")
    state = ""
    async with Client(server) as client:
        agent = Agent(client, root)
        try:
            state = (await walk(agent, root))["next_state"]
        except NoAnswerError as error:
            print(error, file=sys.stderr)
        else:
            show_end(agent)
    return 0 if state == "complete" else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
