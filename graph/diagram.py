"""Pictures of the status machine and of the ticket pipelines, made from their rows."""

from interlock.envelope.protocol import STATUS_MEANING, STATUSES, TRANSITIONS, Transition
from interlock.graph.ticket.contract import FAIL_CLOSED
from interlock.graph.ticket.spec import PipelineSpec


def status_mermaid() -> str:
    """Return the status machine as Mermaid text; arrows of one pair are merged, loops on BLOCKED left out."""
    lines = ["stateDiagram-v2"]
    for row in TRANSITIONS:
        if row.source == row.target == "BLOCKED":
            continue
        source = "[*]" if row.source is None else row.source
        lines.append(f"    {source} --> {row.target}: {_who(row)}")
    lines.append("    APPROVED --> [*]")
    return "\n".join(lines) + "\n"


def pipeline_mermaid(spec: PipelineSpec) -> str:
    """Return a ticket pipeline as Mermaid text; every stage can be tried again and can stop the run."""
    names = [stage.name for stage in spec.stages]
    # Where the last stage and the end share a name, as in the Governance Design, the end is the end of the diagram.
    last = [spec.end_state] if spec.end_state not in names else []
    lines = ["stateDiagram-v2", f"    [*] --> {names[0]}"]
    for name, following in zip(names, [*names[1:], *(last or ["[*]"])], strict=True):
        lines += [f"    {name} --> {following}: pass", f"    {name} --> {name}: retry"]
        lines.append(f"    {name} --> {FAIL_CLOSED}: stop")
    lines += [f"    {name} --> [*]" for name in (*last, FAIL_CLOSED)]
    return "\n".join(lines) + "\n"


def _who(row: Transition) -> str:
    if row.target == "BLOCKED":
        return "a gate failed"
    by = "the build agent that hands over" if row.by == "frontend-implementer" else row.by
    return f"{by}, {row.after}".replace(":", " -")


def transition_table() -> str:
    """Return the transition rows as a Markdown table, statuses first."""
    lines = ["| status | meaning |", "|---|---|"]
    lines += [f"| {status} | {STATUS_MEANING[status]} |" for status in STATUSES]
    lines += ["", "| from | to | set by | after | source |", "|---|---|---|---|---|"]
    lines += [
        f"| {row.source or '(start)'} | {row.target} | {row.by} | {row.after} | {row.clause} |" for row in TRANSITIONS
    ]
    return "\n".join(lines) + "\n"
