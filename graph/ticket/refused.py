"""Submissions that are refused before any gate: each is in the journal, and they are bounded like gate failures."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from interlock.agents.secrets import redact
from interlock.gates.stages import Issue
from interlock.graph.engine.paths import journal_beside, journal_run
from interlock.graph.ticket import answers
from interlock.graph.ticket.machine import digest, signature
from interlock.graph.ticket.rules import issue
from interlock.graph.ticket.state import RunState
from interlock.graph.ticket.store import TicketStore
from interlock.journal import Journal, canonical

MAX_KEPT_CHARS: Final = 8 * 1024
"""So much of a refused submission is kept, as JSON; its digest is of the whole."""

REFUSED: Final = "tamper_refused"
UNHEARD: Final = "submission_refused"


def kept(submitted: Mapping[str, Any]) -> dict[str, Any]:
    """Return a submission as the journal keeps it: its digest, its size, and its beginning without keys."""
    text = canonical(submitted).decode()
    return {
        "submitted_sha256": digest(submitted),
        "submitted_bytes": len(text),
        "submitted": redact(text)[:MAX_KEPT_CHARS],
    }


def record_refusal(
    journal: Journal,
    state: RunState,
    wrong: Sequence[Issue],
    call: Mapping[str, str],
    submitted: Mapping[str, Any],
    *,
    closing: bool = False,
) -> Issue | None:
    """Write a refusal into the journal of its run; return the finding that ends the run once the budget is spent.

    Refusals have the budgets of gate failures and are counted apart from them: so many of one kind, in one stage and in
    the run. What is handed over after the end, `closing`, has lines beside those of the run.
    """
    name = journal_beside(state["run_id"]) if closing else journal_run(state["run_id"])
    before = _rows(journal, name)
    row: dict[str, Any] = {
        **call,
        "state": state["state"],
        "revision": state["revision"],
        "signature": signature(wrong),
        "issues": cast("list[Any]", answers.records(wrong)),
        **kept(submitted),
    }
    journal.append(name, f"refused/{len(before) + 1}", REFUSED, row)
    return _spent(state, [*before, row], wrong[0])


def closing_spent(journal: Journal, state: RunState) -> bool:
    """Return whether so much was refused of what a run hands over after its end that nothing more is looked at."""
    rows = _rows(journal, journal_beside(state["run_id"]))
    return bool(rows) and _why(state, rows) is not None


def _rows(journal: Journal, name: str) -> list[Mapping[str, Any]]:
    return [entry.data for entry in journal.entries(name) if entry.type == REFUSED]


def _spent(state: RunState, rows: Sequence[Mapping[str, Any]], last: Issue) -> Issue | None:
    why = _why(state, rows)
    if why is None:
        return None
    return issue(
        "TKT124", last.field, f"{why[:1].upper()}{why[1:]}; the last one: {last.message}", found=why,
        expected="the ticket as the server returned it last, with `payload` filled in",
        fix="Begin a new run, and submit its tickets as they come back.",
    )  # fmt: skip


def _why(state: RunState, rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return which budget some refusals have spent, the last one of them; None where something is left of each."""
    policy, row = state["policy"], rows[-1]
    here = [each for each in rows if each["state"] == row["state"]]
    same = sum(each.get("signature") == row["signature"] for each in here)
    if same >= policy["max_identical"]:
        return f"{same} submissions were refused with the same findings"
    if len(here) > policy["max_retries"]:
        return f"{len(here)} submissions of this stage were refused"
    if len(rows) > policy["max_retries_run"]:
        return f"{len(rows)} submissions of this run were refused"
    return None


def note_unheard(
    journal: Journal, store: TicketStore, code: str, call: Mapping[str, str], submitted: Mapping[str, Any]
) -> None:
    """Count a submission of which nothing was looked at; the journal has a line at each power of two.

    Such a submission cannot be read, comes from another caller, or after the end of the run.
    """
    count = store.count_refused()
    if count & (count - 1) == 0:
        row: dict[str, Any] = {**call, "code": code, "refused_so_far": count, **kept(submitted)}
        journal.append(journal_beside(store.run_id), f"unheard/{count}", UNHEARD, row)
