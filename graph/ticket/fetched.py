"""The first stage of a ticket of a source: what Interlock fetched stands in the place of what an agent would report."""

from pathlib import Path
from typing import Any, Final

from interlock.agents.quoting import data_block, visible
from interlock.core.errors import InterlockError
from interlock.core.json import canonical
from interlock.core.text import count
from interlock.gates.stages import Issue, Stage, Surroundings, judge_stage
from interlock.graph.errors import SOURCE_ANSWER, GraphError
from interlock.graph.sources.ticket import fetch, source_of
from interlock.graph.ticket.rules import issue
from interlock.graph.ticket.state import RunState, earlier

FETCHED_STAGE: Final = "fetch_ticket"
MAX_PAYLOAD_BYTES: Final = 24 * 1024
"""How long the payload of the stage may be as JSON; it stays in the state of the run."""
_MAX_CHARS: Final = 15_000


def fetched_stage(root: Path, ticket_id: str, stage: Stage) -> Any:
    """Return what the run of a ticket begins with besides: `source` and `fetched`; nothing for one of no source.

    The text is there word for word, its end left out where it is too long for a ticket.

    Raises:
        GraphError: The ticket cannot be fetched.
    """
    if source_of(root, ticket_id) is None:
        return {}
    ticket = fetch(root, ticket_id)
    payload = {
        "external_source": ticket.source,
        "external_ticket_id": visible(ticket.tracker_id),
        "title": visible(ticket.title),
    }
    text, limit = ticket.text.replace("\r\n", "\n"), _MAX_CHARS
    while limit:
        kept, left = visible(text[:limit]), len(text) - limit
        kept += f"\n[{count(left, 'more character')} left out]" if left > 0 else ""
        payload["description"] = kept if kept.strip() else "(The ticket has no text.)"
        # As the gate of the stage will judge it: else the run would wait there, and take what an agent writes.
        is_short = len(canonical(payload)) <= MAX_PAYLOAD_BYTES
        if is_short and not judge_stage(stage, payload, {}, Surroundings(root)):
            return {"source": ticket.record(), "fetched": payload}
        limit = limit * 3 // 4
    fix = f"Look at it: `interlock source show {ticket.name}`."
    raise GraphError(f"{ticket.name} holds what no ticket can", fix, SOURCE_ANSWER)


def ticket_text(state: RunState) -> str:
    """Return the ticket of a run as its agent is shown it: quoted, material and never an instruction."""
    source, known = state.get("source", {}), earlier(state)
    about = f"{source.get('source')}:{source.get('id')}, as it was at {source.get('at')}"
    return data_block(f"the ticket {about}", f"{known.get('title')}\n\n{known.get('description')}", 4 * _MAX_CHARS)


def changed_source(root: Path, state: RunState) -> list[Issue]:
    """Return the finding about a ticket that is not as it was fetched, or about a source that does not say."""
    source = state.get("source")
    if source is None:
        return []
    name = f"{source['source']}:{source['id']}"
    try:
        now = fetch(root, name)
    except InterlockError as error:  # also where the table of the source is gone
        message = f"Whether {name} has changed since {source['at']} cannot be seen: {error.message}."
        return [
            issue("TKT133", "", message, found=error.code, expected="the ticket as its source has it", fix=error.fix)
        ]
    if now.sha256 == source["sha256"]:
        return []
    message = f"The ticket {name} has changed at its source since {source['at']}; this run goes by what it was then."
    fix = "Tell the user. Where what is asked for has changed, end here, and begin a new run of the ticket."
    expected = f"sha256:{source['sha256']}, {source['bytes']} bytes"
    return [
        issue(
            "TKT132",
            "",
            message,
            found=f"sha256:{now.sha256}, {now.record()['bytes']} bytes",
            expected=expected,
            fix=fix,
        )
    ]


def unfetched(ticket_id: str, error: GraphError) -> Issue:
    """Return the finding about a ticket that cannot be fetched."""
    message = f"The ticket cannot be fetched: {error.code} {error.message}."
    return issue(
        "TKT115", "ticket_id", message, found=ticket_id, expected="a ticket that its source gives", fix=error.fix
    )
