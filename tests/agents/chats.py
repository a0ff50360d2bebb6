"""Chat runners against loopback providers, for the tests of this package."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from interlock.agents import Answer, Ask
from interlock.agents.runners.chat import ChatRunner
from interlock.agents.runners.models import chat_model, read_model
from interlock.agents.tables import Table
from interlock.agents.usage import Price
from tests.agents.providers.anthropic import Anthropic
from tests.agents.providers.base import Provider, Script
from tests.agents.providers.google import Google
from tests.agents.providers.ollama import Ollama
from tests.agents.providers.openai import OpenAI

WIRES: Mapping[str, tuple[type[Provider], Mapping[str, Any]]] = {
    "chat completions": (OpenAI, {"model": "openai:m"}),
    "responses": (OpenAI, {"model": "openai:m", "options": {"use_responses_api": True}}),
    "anthropic": (Anthropic, {"model": "anthropic:m"}),
    "google": (Google, {"model": "google_genai:m"}),
    "ollama": (Ollama, {"model": "ollama:m"}),
}


class Box:
    """A toolbox with one tool, which keeps what it was asked and gives the result that it was made with."""

    def __init__(self, result: Any = "it says: hello") -> None:
        self.result = result
        self.asked: list[str] = []
        self.open = 0

    @contextmanager
    def __call__(self, _ask: Ask) -> Generator[list[BaseTool]]:
        self.open += 1
        try:
            yield [StructuredTool.from_function(self.read_file)]
        finally:
            self.open -= 1

    def read_file(self, path: str) -> Any:
        """Read a file."""
        self.asked.append(path)
        return self.result


def chat(
    url: str,
    settings: Mapping[str, Any],
    *,
    box: Box | None = None,
    price: Price | None = None,
    clock: Callable[[], float] = lambda: 100.0,
    **more: Any,
) -> ChatRunner:
    """Make a runner that asks a loopback provider; its clock stands still."""
    table = Table({"base_url": url, **settings, **more}, "interlock.toml", "agents.visual-qa")
    asked = read_model(table)
    return ChatRunner(chat_model(asked, table), asked, price, toolbox=box or Box(), clock=clock)


def said(script: Script, ask: Ask, wire: str = "anthropic", **more: Any) -> tuple[Answer, Provider]:
    """Return what a runner answers to one ask when the provider of a wire says a script, and the provider."""
    server, settings = WIRES[wire]
    with server(script) as provider:
        return chat(provider.url, settings, **more)(ask), provider


def notices() -> tuple[list[Mapping[str, Any]], Any]:
    """Return a list and a function that fills it."""
    rows: list[Mapping[str, Any]] = []
    return rows, rows.append


def tools_reported(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return which tools were reported, in their order."""
    return [row["tool"] for row in rows if row["tool"]]
