"""What is wrong with a call: its name, its arguments, or a key in a name."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

from pydantic import ValidationError

from interlock.core.finding import Finding
from interlock.redaction import KeyRefused
from interlock.server.rules import cut, problem, shown

MAX_PROBLEMS: Final = 20
"""How many problems of one call are said: each takes time in which no other caller is answered."""


def key_problem(refused: KeyRefused) -> Finding:
    """Return the finding for an argument that names something and holds a key."""
    return problem("MCP205", f"{refused.message}.", place=cut(refused.place), found="a key", fix=refused.fix)


def unknown_tool(name: str, known: Sequence[str]) -> Finding:
    """Return the finding for a tool that is not offered."""
    fix = f"Call one of {', '.join(known)}."
    return problem("MCP201", f"There is no tool `{cut(name)}` here.", place="name", found=name, fix=fix)


def argument_problems(tool: str, schema: Mapping[str, Any], error: ValidationError) -> list[Finding]:
    """Return a finding for each argument that the tool does not have, that is missing, or that does not fit.

    Only the first `MAX_PROBLEMS` of them.
    """
    expected: dict[str, list[str]] = {}
    found: dict[str, str] = {}
    # An argument that may have several types has a row for each of them, and a list one for each of its entries.
    for row in error.errors():
        name = str(row["loc"][0])
        expected.setdefault(name, []).append(row["msg"])
        found[name] = "nothing" if row["type"] == "missing" else shown(row["input"])
    call = f"Call `{_signature(tool, schema)}`, with each value as it is expected."
    return [
        problem(
            "MCP202",
            f"The argument `{cut(name)}` does not fit.",
            place=cut(name),
            found=found[name],
            expected=cut(" or ".join(dict.fromkeys(messages))),
            fix=call,
        )
        for name, messages in islice(expected.items(), MAX_PROBLEMS)
    ]


def _signature(tool: str, schema: Mapping[str, Any]) -> str:
    """Return how a tool is called; what may be left out has a question mark."""
    required = schema.get("required", ())
    names = [name if name in required else f"{name}?" for name in schema["properties"]]
    return f"{tool}({', '.join(names)})"
