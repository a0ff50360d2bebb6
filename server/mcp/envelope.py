"""The toolset `envelope`: check an agent's response before it is handed in, and get a form to fill in."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pydantic import Field

from interlock.agents.contract import contract
from interlock.envelope import Case, Verdict
from interlock.envelope.protocol import Status
from interlock.envelope.template import template
from interlock.gates.response import distinct_gates, judge_response
from interlock.server.mcp.app import READS, InterlockServer
from interlock.server.mcp.project import tables
from interlock.server.rules import CallError


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

    @server.tool(annotations=READS)
    async def validate_envelope(
        text: Annotated[str, Field(description="The whole response.")],
        agent: str | None = None,
        task_id: str | None = None,
        gates: Annotated[list[str] | None, Field(description="The gates that the task requires.")] = None,
        current_status: Status | None = None,
        extract: Annotated[bool, Field(description="Find the envelope inside a longer message.")] = False,
    ) -> Judged:
        """Check a response and its evidence; changes nothing."""
        case = Case(agent, task_id, distinct_gates(gates), current_status)
        return await server.at_work(
            lambda who: _judged(server.root, text, case, extract=extract, shared_only=bool(who))
        )

    @server.tool(annotations=READS)
    async def envelope_template(role: str, task_id: str | None = None) -> Form:
        """Get an envelope to fill in, and what a role may say in it."""
        return await server.at_work(lambda _who: _form(server.root, role, task_id))


def _judged(root: Path, text: str, case: Case, *, extract: bool, shared_only: bool) -> Judged:
    config, protocol = tables(root)
    case = replace(case, protocol=protocol, inputs=config.envelope.inputs)
    report = judge_response(text, case, root=str(root), extract=extract, shared_only=shared_only).report
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
        raise CallError("MCP402", f"the roster has no role `{role[:80]}`", f"Name one of {', '.join(protocol.roles)}.")
    return Form(text=template(role, protocol, task_id=task_id), contract=contract(role, protocol, examples=False))
