"""Pictures of the status machine, made from the transition rows."""

from interlock.envelope.protocol import STATUS_MEANING, STATUSES, TRANSITIONS, Transition


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


def _who(row: Transition) -> str:
    if row.target == "BLOCKED":
        return "a gate failed"
    return f"{row.by}, {row.after}".replace(":", " -")


def transition_table() -> str:
    """Return the transition rows as a Markdown table, statuses first."""
    lines = ["| status | meaning |", "|---|---|"]
    lines += [f"| {status} | {STATUS_MEANING[status]} |" for status in STATUSES]
    lines += ["", "| from | to | set by | after | source |", "|---|---|---|---|---|"]
    lines += [
        f"| {row.source or '(start)'} | {row.target} | {row.by} | {row.after} | {row.clause} |" for row in TRANSITIONS
    ]
    return "\n".join(lines) + "\n"
