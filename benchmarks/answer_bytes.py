"""Measures what an agent pays for tickets: the bytes of the tool list and of the answers, as structured JSON.

    python -m benchmarks.answer_bytes          # a table
    python -m benchmarks.answer_bytes --json   # the same as JSON

The ticket is that of `benchmarks.tickets`. Bytes are the same on every machine, but for the length of ids and times.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from benchmarks.tickets import act, make_project, payloads
from interlock.graph import TicketResponse, Tickets
from interlock.server import make_server

UNTIL_PLAN: Final = 5
"""So many stages are passed until the plan has passed."""


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    as_json = parser.parse_args().json
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder))
    if as_json:
        print(json.dumps(found))
        return
    for name, size in found.items():
        print(f"{size:>8}  {name.replace('_', ' ')}")


def measure(folder: Path) -> dict[str, int]:
    """Return bytes by what they are of.

    Args:
        folder: An empty folder for two projects.
    """
    return {
        "tool_list": tool_list(folder),
        "six_passing_answers_to_the_plan": sum(walk(make_project(folder / "passing"), refused=False)[: UNTIL_PLAN + 1]),
        "a_small_ticket_with_four_refusals": sum(walk(make_project(folder / "refused"), refused=True)),
    }


def tool_list(folder: Path) -> int:
    """Return the bytes of all tools with their schemas."""
    tools = asyncio.run(make_server(folder).list_tools())
    return size([tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools])


def walk(root: Path, *, refused: bool) -> list[int]:
    """Work a ticket to its end and return the bytes of each answer.

    Args:
        root: The project.
        refused: Whether four payloads are refused on the way.
    """
    tickets = Tickets(root)
    answer = tickets.begin("LOGIN-7", "run-1")
    sizes = [size(answer)]
    for state, payload in payloads().items():
        if state == "act_via_tools":
            act(root)
        spoilt = [WRONG[state](payload)] if refused and state in WRONG else []
        for given in (*spoilt, payload):
            answer = _submit(tickets, answer, given)
            sizes.append(size(answer))
        assert answer["gate_result"]["status"] == "pass", answer
    assert answer["next_state"] == "complete"
    return sizes


def _submit(tickets: Tickets, answer: TicketResponse, payload: Mapping[str, Any]) -> TicketResponse:
    assert answer["ticket_json"] is not None
    return tickets.submit_payload("run-1", answer["ticket_json"]["revision"], dict(payload))


def _without(payload: Mapping[str, Any]) -> dict[str, Any]:
    return dict([*payload.items()][:1])


def _other_kind(payload: Mapping[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(payload, 7)


def _invented(payload: Mapping[str, Any]) -> dict[str, Any]:
    made = deepcopy(dict(payload))
    made["evidence_items"][0]["snippet"] = "a line that is nowhere"
    return made


def _unknown(payload: Mapping[str, Any]) -> dict[str, Any]:
    made = deepcopy(dict(payload))
    made["plan_steps"][0]["requirement_refs"] = ["ac_9"]
    return made


WRONG: Final = {
    "fetch_ticket": _without,
    "scope_context": _other_kind,
    "gather_evidence": _invented,
    "propose_plan": _unknown,
}
"""How a payload is spoilt, by state."""


def size(value: object) -> int:
    """Return the bytes of a value as compact JSON."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


if __name__ == "__main__":
    main()
