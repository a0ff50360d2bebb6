"""The toolset `envelope`: check an agent's response before it is handed in, and get a form to fill in."""

from pathlib import Path
from typing import Annotated, Any, Final, TypedDict

from pydantic import Field

from interlock.agents.contract import contract
from interlock.core.text import closest
from interlock.envelope import Status, Verdict
from interlock.envelope.template import template
from interlock.gates.response import Expected, distinct_gates
from interlock.graph import judge
from interlock.server.mcp.app import READS, InterlockServer
from interlock.server.mcp.concurrency import CallSlots
from interlock.server.mcp.project import tables
from interlock.server.rules import CallError

CALLS: Final = 1
"""How many calls of one caller are at work at once: a long text is judged for seconds, by the processor alone."""


class Judged(TypedDict):
    """What `validate_envelope` answers; a finding has the keys that `validate-envelope --format json` prints.

    Shapes: `reask` is the text to send back to the agent, empty when no finding is an error; `verdict` is PASS or FAIL
    of a QA or review role; `normalised` says what extraction left out.
    """

    ok: bool
    effective_status: Status
    verdict: Verdict | None
    findings: list[dict[str, Any]]
    normalised: list[str]
    reask: str


class Form(TypedDict):
    """What `envelope_template` answers: an envelope with holes, and the contract of the role."""

    text: str
    contract: str


def register(server: InterlockServer) -> None:
    """Add the tools to a server."""
    slots = CallSlots(CALLS, CALLS, leave=True)

    @server.tool(annotations=READS)
    async def validate_envelope(
        text: Annotated[str, Field(description="The whole response.")],
        agent: str | None = None,
        task_id: str | None = None,
        gates: Annotated[list[str] | None, Field(description="The gates that the task requires.")] = None,
        current_status: Status | None = None,
        extract: Annotated[bool, Field(description="Find the envelope inside a longer message.")] = False,
    ) -> Judged:
        """Check a response and its evidence, by default as the open run of its task would; changes nothing."""
        expected = Expected(agent, task_id, distinct_gates(gates), current_status)
        return await server.at_work(
            slots, lambda who: _judged(server.root, text, expected, extract=extract, shared_only=bool(who))
        )

    @server.tool(annotations=READS)
    async def envelope_template(role: str, task_id: str | None = None) -> Form:
        """Get an envelope to fill in, and what a role may say in it."""
        return await server.at_work(slots, lambda _who: _form(server.root, role, task_id))


def _judged(root: Path, text: str, expected: Expected, *, extract: bool, shared_only: bool) -> Judged:
    config, protocol = tables(root)
    report = judge(
        text, root=str(root), protocol=protocol, inputs=config.envelope.inputs, expected=expected, extract=extract,
        shared_only=shared_only,
    )  # fmt: skip
    return Judged(
        ok=report.ok,
        effective_status=report.effective_status,
        verdict=report.verdict,
        findings=[finding.to_json() for finding in report.findings],
        normalised=list(report.normalised),
        reask=report.as_reask(),
    )


def _form(root: Path, role: str, task_id: str | None) -> Form:
    _, protocol = tables(root)
    if role not in protocol.roles:
        near = closest(role, protocol.roles)
        fix = f"Write `{near}`." if near else f"Name one of {', '.join(protocol.roles)}."
        raise CallError("MCP302", f"the roster has no role `{role[:80]}`", fix)
    return Form(text=template(role, protocol, task_id=task_id), contract=contract(role, protocol, examples=False))
