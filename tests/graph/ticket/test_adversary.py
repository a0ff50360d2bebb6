"""An agent that wants to cheat, lose, corrupt or stick a ticket run: what must hold whatever it submits and edits."""

import json
import os
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest

from interlock.graph.ticket.contract import Ticket
from interlock.graph.ticket.store import TicketStore
from interlock.graph.ticket.tickets import Tickets
from tests.child import git, python
from tests.graph.ticket import walk
from tests.graph.ticket.walk import PAYLOADS, codes, do_the_work, filled, ticket_of

REPOSITORY = Path(__file__).parents[3]


def walk_to(tickets: Tickets, state: str, **payloads: dict[str, Any]) -> Ticket:
    """Take a new run to a state, with some payloads replaced; without a configuration, in a checkout of one agent."""
    if not (config := tickets.root / "interlock.toml").exists():
        config.write_text('[tickets]\nunattributed = "error"\n')
    return walk.walk_to(tickets, state, "run-1", **payloads)


def evidence(**item: str) -> dict[str, Any]:
    """Return evidence whose first item has other fields; the plan refers to it as `ev_1`."""
    payload = deepcopy(PAYLOADS["gather_evidence"])
    payload["evidence_items"][0].update(item)
    return payload


# -- what one failed call leaves behind ----------------------------------------------------------------------------


def test_a_busy_run_is_a_finding_of_begin_too(tickets: Tickets, monkeypatch: pytest.MonkeyPatch) -> None:
    tickets.begin("SHOP-7", "run-1")
    with TicketStore(tickets.root, "run-1").locked():
        monkeypatch.setattr(TicketStore.locked, "__defaults__", (0.01,))
        answer = tickets.begin("SHOP-7", "run-1")
    assert (codes(answer), answer["gate_result"]["status"], answer["continue"]) == (["TKT114"], "retry", True)


# -- ending or repeating what is not one's own ---------------------------------------------------------------------


def test_a_repeated_minimal_ticket_gets_the_answer_with_which_its_stage_passed(tickets: Tickets) -> None:
    """The same payload failed first, and passed once the file was there."""
    base = {"ticket_id": "SHOP-7", "title": "Greet", "run_id": "run-1"}
    tickets.next_step({**base, "state": "intake"})
    for state in ("extract_requirements", "scope_context"):
        tickets.next_step({**base, "state": state, "payload": PAYLOADS[state]})
    given = {**base, "state": "gather_evidence", "payload": evidence(locator="late.py:1", snippet="late = 1")}
    assert cast("Any", tickets.next_step(given))["status"] == "retry"
    (tickets.root / "late.py").write_text("late = 1\n")
    passed = tickets.next_step(given)
    assert cast("Any", passed)["status"] == "pass"
    assert tickets.next_step(given) == passed


def test_the_intake_of_a_run_cannot_give_it_another_ticket(tickets: Tickets) -> None:
    base = {"ticket_id": "SHOP-7", "run_id": "run-1"}
    tickets.begin(base["ticket_id"], base["run_id"], pipeline="poc")
    answer = tickets.submit_payload("run-1", 1, {"ticket_id": "OTHER-1", "title": "Greet"})
    assert answer["gate_result"]["status"] != "pass"
    assert tickets.ticket("run-1")["state"] == "intake"


@pytest.mark.parametrize("revision", [True, "1", 10**300, 0, None])
def test_a_revision_of_another_kind_is_a_finding_and_changes_nothing(tickets: Tickets, revision: Any) -> None:
    ticket = ticket_of(tickets.begin("SHOP-7", "run-1"))
    answer = tickets.submit_payload("run-1", revision, PAYLOADS["fetch_ticket"])
    assert codes(answer) == ["TKT122"]
    assert tickets.ticket("run-1") == ticket


def test_a_revision_that_counts_the_first_time_counts_when_it_is_repeated(tickets: Tickets) -> None:
    """JSON does not distinguish 1 from 1.0."""
    tickets.begin("SHOP-7", "run-1")
    first = tickets.submit_payload("run-1", 1.0, PAYLOADS["fetch_ticket"])
    assert tickets.submit_payload("run-1", 1.0, PAYLOADS["fetch_ticket"]) == first


_RIVAL = """
import json, sys
from pathlib import Path
from interlock.graph.ticket.tickets import Tickets
tickets, name = Tickets(Path(sys.argv[1])), sys.argv[2]
tickets.begin("WARM", f"warm-{name}")
print("ready", flush=True)
for line in sys.stdin:
    run = line.strip()
    begun = tickets.begin("SHOP-7", run)["gate_result"]["status"]
    payload = {"external_source": "jira", "external_ticket_id": "7", "title": name, "description": "d"}
    answer = tickets.submit_payload(run, 1, payload)
    print(json.dumps([begun, answer["gate_result"]["status"]]), flush=True)
"""


@pytest.mark.long
def test_of_processes_that_begin_one_run_and_submit_one_revision_exactly_one_wins(root: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    rivals = [python(_RIVAL, root, number, env=environment) for number in range(3)]
    try:
        assert {rival.line() for rival in rivals} == {"ready\n"}
        for number in range(20):
            for rival in rivals:
                rival.say(f"run-{number}")
            answers = [json.loads(rival.line()) for rival in rivals]
            assert [begun for begun, _ in answers] == ["pass"] * 3
            assert sorted(status for _, status in answers) == ["pass", "retry", "retry"]
    finally:
        for rival in rivals:
            rival.kill()
            rival.communicate()
    tickets = Tickets(root)
    assert {len(tickets.ticket(f"run-{number}")["history"]) for number in range(20)} == {1}


# -- evidence that nobody could have found -------------------------------------------------------------------------


def test_the_tickets_own_file_is_no_evidence(tickets: Tickets) -> None:
    """It holds the agent's own words."""
    ticket = walk_to(tickets, "gather_evidence")
    (tickets.root / "tickets").mkdir()
    (tickets.root / "tickets" / "ticket.json").write_text(json.dumps(ticket))
    answer = tickets.submit(
        {**ticket, "payload": evidence(locator="tickets/ticket.json:1", snippet="holds the greeting")}
    )
    assert codes(answer) == ["STG304"]


def test_what_interlock_wrote_about_a_run_is_no_evidence(tickets: Tickets) -> None:
    ticket = walk_to(tickets, "gather_evidence")
    own = "artifacts/interlock/tickets/run-1/scope_context.json"
    lines = (tickets.root / own).read_text().splitlines()
    at = next(number for number, line in enumerate(lines, 1) if "holds the greeting" in line)
    answer = tickets.submit({**ticket, "payload": evidence(locator=f"{own}:{at}", snippet="holds the greeting")})
    assert codes(answer) == ["STG304"]


def test_a_file_that_git_was_told_to_overlook_after_the_plan_is_seen(root: Path) -> None:
    git(root, "init", "-q")
    tickets = Tickets(root)
    ticket = walk_to(tickets, "act_via_tools")
    do_the_work(root)
    exclude = root / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("outside.py\n")
    (root / "outside.py").write_text("print('not in the plan')\n")
    assert codes(tickets.submit(filled(ticket))) == ["STG605"]


@pytest.mark.parametrize("trick", ["link", "mode", "hard link", "folder link"])
def test_edits_outside_the_plan_are_seen_however_they_are_made(tickets: Tickets, trick: str) -> None:
    root = tickets.root
    (root / "lib").mkdir()
    (root / "lib" / "a.py").write_text("a = 1\n")
    ticket = walk_to(tickets, "act_via_tools")
    do_the_work(root)
    before = (root / "README.md").stat()
    match trick:
        case "link":
            (root / "README.md").unlink()
            (root / "README.md").symlink_to("app.py")
        case "mode":
            (root / "README.md").chmod(0o755)
        case "hard link":
            (root / "app.py").unlink()
            (root / "app.py").hardlink_to(root / "README.md")
            (root / "app.py").write_text("# Changed\n")
            os.utime(root / "README.md", ns=(before.st_atime_ns, before.st_mtime_ns))
        case _:
            (root / "lib").rename(root.parent / "elsewhere")
            (root / "lib").symlink_to(root.parent / "elsewhere")
    assert set(codes(tickets.submit(filled(ticket)))) == {"STG605"}
