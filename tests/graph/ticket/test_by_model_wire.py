"""A ticket worked over the providers' own wire protocols, with the model that `[tickets.agent]` names."""

import json
from pathlib import Path

import pytest

from interlock.graph.ticket.ticket_agent import ticket_agent
from interlock.graph.ticket.tickets import Tickets
from tests.agents.providers.anthropic import Anthropic
from tests.agents.providers.base import Provider, Reply
from tests.agents.providers.google import Google
from tests.agents.providers.ollama import Ollama
from tests.agents.providers.openai import OpenAI
from tests.graph.ticket.scripted import EDIT, WHOLE
from tests.graph.ticket.test_by_model import drive
from tests.graph.ticket.walk import PAYLOADS

READS = ("read_file", {"path": "app.py"})
SCRIPT = [
    Reply(tool_calls=[READS], usage=(100, 10)),
    *(Reply(tool_calls=[(call["name"], call["args"]) for call in said.tool_calls], usage=(100, 10)) for said in WHOLE),
]


def configure(root: Path, url: str, provider: str, more: str = "") -> None:
    """Write the table of the model."""
    (root / "interlock.toml").write_text(
        f'[prices."{provider}:m"]\ninput = 1.0\noutput = 10.0\n'
        f'[tickets.agent]\nmodel = "{provider}:m"\nbase_url = "{url}"\ntimeout_seconds = 20\n{more}'
    )


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(
    ("provider", "server"), [("openai", OpenAI), ("anthropic", Anthropic), ("google_genai", Google), ("ollama", Ollama)]
)
def test_a_ticket_is_worked_over_the_wire(root: Path, provider: str, server: type[Provider]) -> None:
    with server(SCRIPT) as served:
        configure(root, served.url, provider)
        agent = ticket_agent(root)
        tickets = Tickets(root)
        end = drive(tickets, agent.runner())
    state = tickets.state(end.run_id)
    assert (end.kind, state["state"], state["failures"]) == ("over", "complete", [])
    assert EDIT[1]["new"] in (root / "app.py").read_text()
    assert (end.usage.calls, end.usage.input_tokens, end.usage.output_tokens) == (8, 800, 80)
    assert end.usage.usd == pytest.approx(8 * 0.0002)
    assert "def greet(name)" in served.requests[1].words
    assert {request.tools[-1] for request in served.requests} == set(PAYLOADS) - {"fetch_ticket"}


@pytest.mark.long
def test_a_model_without_tools_is_held_to_the_schema_by_its_provider(root: Path) -> None:
    wanted = [stage for stage in PAYLOADS if stage not in ("fetch_ticket", "act_via_tools", "record_and_finalize")]
    with OpenAI([Reply(text=json.dumps(PAYLOADS[stage])) for stage in wanted]) as served:
        configure(root, served.url, "openai", "tools = false\n[tickets.agent.budget]\ncalls = 4\n")
        tickets = Tickets(root)
        agent = ticket_agent(root)
        end = drive(tickets, agent.runner(), limits=agent.limits)
    assert (end.kind, tickets.state(end.run_id)["state"]) == ("spent", "act_via_tools")
    forms = [request.json["response_format"]["json_schema"]["name"] for request in served.requests]
    assert (forms, {request.tools for request in served.requests}) == (wanted, {()})
