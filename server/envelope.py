"""The toolset `envelope`: check an agent's response before it is handed in, and get a form to fill in."""

from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict

from mcp_types import ToolAnnotations
from pydantic import Field

from interlock.agents.contract import contract
from interlock.envelope import MAX_BYTES, Status, Verdict
from interlock.envelope.labels import closest
from interlock.envelope.renderers.json import finding_object
from interlock.envelope.template import template
from interlock.gates.response import Expected, distinct_gates, judge_response
from interlock.server.project import tables

if TYPE_CHECKING:
    from interlock.server.app import InterlockServer


class UnknownRoleError(Exception):
    """A role is named that the roster does not have.

    Args:
        role: The name.
        roles: The names of the roster.
    """

    code = "MCP302"

    def __init__(self, role: str, roles: list[str]) -> None:
        near = closest(role, roles)
        self.message = f"the roster has no role `{role[:80]}`"
        self.fix = f"Write `{near}`." if near else f"Name one of {', '.join(roles)}."
        super().__init__(self.message)


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


_READS: Final = ToolAnnotations(read_only_hint=True)


def register(server: "InterlockServer") -> None:
    """Add the tools to a server."""

    @server.tool(annotations=_READS)
    def validate_envelope(
        text: Annotated[str, Field(description="The whole response.")],
        agent: str | None = None,
        task_id: str | None = None,
        gates: Annotated[list[str] | None, Field(description="The gates that the task requires.")] = None,
        current_status: Status | None = None,
        extract: Annotated[bool, Field(description="Find the envelope inside a longer message.")] = False,
    ) -> Judged:
        """Check a response against the envelope's rules and the evidence files that it cites; changes nothing."""
        config, protocol = tables(server.root)
        report = judge_response(
            text,
            root=str(server.root),
            protocol=protocol,
            inputs=config.envelope.inputs,
            expected=Expected(agent, task_id, distinct_gates(gates), current_status),
            extract=extract,
            max_bytes=MAX_BYTES,
        )
        return Judged(
            ok=report.ok,
            effective_status=report.effective_status,
            verdict=report.verdict,
            findings=[finding_object(finding) for finding in report.findings],
            normalised=list(report.normalised),
            reask=report.as_reask(),
        )

    @server.tool(annotations=_READS)
    def envelope_template(role: str, task_id: str | None = None) -> Form:
        """Get an envelope to fill in, and what a role may say in it."""
        _, protocol = tables(server.root)
        if role not in protocol.roles:
            raise UnknownRoleError(role, list(protocol.roles))
        text = template(role, protocol, task_id=task_id)
        return Form(text=text, contract=contract(role, protocol, examples=False))
