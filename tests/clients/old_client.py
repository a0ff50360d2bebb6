"""An agent of another framework, with a client of yesterday: it works a ticket and a task through `interlock mcp`.

Runs in `.venv-clients` and not in this project's environment, as `python -m tests.clients.old_client ROOT COMMAND…`.
A scripted chat model replaces the model: each of its tool calls follows from the tool results that it sees.
Prints one JSON object with what happened.
"""
# pyright: basic, reportMissingImports=false
# What it imports is not installed where the types are checked.

import asyncio
import json
import sys
from collections.abc import Generator
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

from tests.clients.scripted import PAYLOADS, TASK, answer, rewrite

Call = tuple[str, dict[str, Any]]
Steps = Generator[Call, dict[str, Any], dict[str, Any]]


class Player(BaseChatModel):
    """A chat model that follows a script: a generator which yields calls and is sent what came of them."""

    steps: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_settings: Any) -> "Player":
        """Take the tools as they are: the script names them."""
        return self

    def _generate(self, messages: list[BaseMessage], *_more: Any, **_settings: Any) -> ChatResult:
        last = messages[-1]
        try:
            name, arguments = self.steps.send(result_of(last)) if isinstance(last, ToolMessage) else next(self.steps)
        except StopIteration as end:
            message = AIMessage(content=json.dumps(end.value))
        else:
            call = {"name": name, "args": arguments, "id": f"call-{len(messages)}"}
            message = AIMessage(content="", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


def result_of(message: ToolMessage) -> dict[str, Any]:
    """Return the JSON that a tool answered, as the model reads it: from the text."""
    parts = message.content if isinstance(message.content, list) else [message.content]
    text = "".join(part if isinstance(part, str) else part["text"] for part in parts)
    return json.loads(text)


def work_ticket(root: Path) -> Steps:
    """Work a ticket from its first state to `complete`: with an invented quotation, and a state set by hand."""
    begun = yield "interlock_begin_run", {"ticket_id": "SHOP-7"}
    ticket, states, refusals = begun["ticket_json"], [], []
    go_on = begun["continue"]
    while go_on:
        state = ticket["state"]
        payload = deepcopy(PAYLOADS[state])
        if state == "gather_evidence" and not refusals:
            payload["evidence_items"][0]["snippet"] = "The greeting is carved in stone."
        submitted = {**ticket, "payload": payload}
        if state == "propose_plan" and len(refusals) == 1:
            submitted["state"] = "record_and_finalize"
        if state == "act_via_tools":
            rewrite(root)
        # Every other stage hands the ticket in as text, as the protocol's own loop does.
        given = submitted if len(states) % 2 else json.dumps(submitted)
        result = yield "interlock_submit_ticket", {"ticket_json": given}
        if result["gate_result"]["status"] == "pass":
            states.append(state)
        else:
            refusals.append([state, *(issue["code"] for issue in result["gate_result"]["issues"])])
        ticket, go_on = result["ticket_json"], result["continue"]
    status = yield "interlock_run_status", {"run_id": ticket["run_id"]}
    return {"states": [*states, ticket["state"]], "refusals": refusals, "status": status["state"]}


def work_task(root: Path) -> Steps:
    """Drive a task from dispatch to APPROVED: with an answer that is no envelope, and one for the wrong role."""
    begun = yield "task_begin", {"task": TASK}
    run_id, steps = begun["run_id"], []
    wrong = yield "task_submit", {"run_id": run_id, "role": "reviewer", "envelope": "Looks good to me!"}
    step = yield "task_next", {"run_id": run_id}
    while step["phase"] != "done":
        for ask in step["asks"]:
            text = "Done!" if not steps else answer(root, ask)
            call = {"run_id": run_id, "role": ask["role"], "envelope": text, "ask_id": ask["ask_id"]}
            done = yield "task_submit", call
            steps.append(f"{ask['role']} {done['outcome']}")
        step = yield "task_next", {"run_id": run_id}
    status = yield "task_status", {"run_id": run_id}
    passed = [gate["gate"] for gate in status["gates"] if gate["passed"]]
    return {"steps": steps, "wrong": wrong["error"]["code"], "status": step["status"], "passed": passed}


async def main(root: Path, command: list[str]) -> dict[str, Any]:
    """Connect, and let one agent work the ticket and another drive the task."""
    server = {"transport": "stdio", "command": command[0], "args": command[1:], "cwd": str(root)}
    client = MultiServerMCPClient({"interlock": server})
    async with client.session("interlock", auto_initialize=False) as session:
        greeting = await session.initialize()
        tools = await load_mcp_tools(session)
        ends = {}
        for name, steps in (("ticket", work_ticket(root)), ("task", work_task(root))):
            agent = create_agent(Player(steps=steps), tools)
            asked: Any = {"messages": [("user", f"Work the {name}.")]}
            said = await agent.ainvoke(asked, {"recursion_limit": 100})
            ends[name] = json.loads(said["messages"][-1].content)
    return {
        "protocol": greeting.protocolVersion,
        "sdk": version("mcp"),
        "adapters": version("langchain-mcp-adapters"),
        "tools": [tool.name for tool in tools],
        **ends,
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))))
