"""The contract in the notations that models and tools are held to: Lark, llguidance, GBNF and JSON schema."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from interlock.envelope.protocol import DEFAULT_PROTOCOL, Protocol

if TYPE_CHECKING:
    from interlock.envelope.export.language import Bounds

Form: TypeAlias = Literal["lark", "gbnf", "llguidance", "json-schema"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)

__all__ = ["FORMS", "Form", "export"]


def export(
    form: Form,
    protocol: Protocol = DEFAULT_PROTOCOL,
    *,
    agent: str | None = None,
    task_id: str | None = None,
    task: str | None = None,
    gates: Sequence[str] = (),
    bounds: "Bounds | None" = None,
) -> str:
    """Return the contract in one notation, made from the protocol tables.

    Every form accepts a part of what the validator accepts: the canonical spelling.

    Args:
        form: Which notation.
        protocol: Names the roles that ASSIGNED_AGENT may hold.
        agent: Hold ASSIGNED_AGENT to this role, and STATUS to what it may set or echo.
        task_id: Hold TASK_ID to this value.
        task: Hold TASK to this line.
        gates: Hold GATES_REQUIRED to these gates, in this order, and GATES_PASSED to some of them.
        bounds: Hold lists, lines and texts to these sizes, so that every answer ends. Without them every valid
            envelope in the canonical spelling is accepted.

    Raises:
        KeyError: The protocol has no such role.
    """
    from interlock.envelope.export.language import Known, to_grammar  # noqa: PLC0415 - only who exports pays for it

    known = Known(agent, task_id, task, tuple(gates))
    if form == "json-schema":
        import json  # noqa: PLC0415

        from interlock.envelope.export.schema import to_json_schema  # noqa: PLC0415

        return json.dumps(to_json_schema(protocol, known, bounds), indent=2) + "\n"
    return to_grammar(form, protocol, known, bounds)
