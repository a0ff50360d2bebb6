"""An agent that wants to cheat, lose, corrupt or stick a ticket run: what must hold whatever it submits and edits."""

import json
import os
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest

from interlock.agents import Ask
from interlock.gates.stages import Surroundings, judge_stage
from interlock.graph.task.background import Drives
from interlock.graph.task.runs import drive, start_run, view_run
from interlock.graph.task.task import task_from_mapping
from interlock.graph.ticket.contract import SentTicket
from interlock.graph.ticket.spec import TICKET
from interlock.graph.ticket.store import TicketStore
from interlock.graph.ticket.tickets import Tickets
from tests.child import git, python
from tests.graph.ticket import ticket_team, walk
from tests.graph.ticket.walk import PAYLOADS, SOURCE, codes, do_the_work, filled, team, ticket_of

REPOSITORY = Path(__file__).parents[3]


def walk_to(tickets: Tickets, state: str, **payloads: dict[str, Any]) -> SentTicket:
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


def test_a_huge_schema_version_gets_an_answer_and_leaves_no_run_that_nobody_can_use(tickets: Tickets) -> None:
    ticket = walk_to(tickets, "extract_requirements")
    answer = tickets.submit({**ticket, "schema_version": "9" * 300_000})
    assert answer["gate_result"]["status"] in {"stop", "retry"}
    after = tickets.submit(filled(ticket))
    assert after["gate_result"]["status"] in {"stop", "pass"}


def test_findings_about_long_names_in_any_script_can_always_be_written_down(tickets: Tickets) -> None:
    targets = [f"repo:{number:02d}{'😀' * 78}/**" for number in range(24)]
    scope = {"retrieval_targets": targets, "retrieval_justification": "All of them matter."}
    ticket = walk_to(tickets, "act_via_tools", scope_context=scope)
    do_the_work(tickets.root)
    for number in range(25):
        (tickets.root / f"outside_{number}.py").touch()
    answer = tickets.submit(filled(ticket))
    assert answer["gate_result"]["status"] == "retry"
    assert set(codes(answer)) == {"STG607"}


def test_a_busy_run_is_a_finding_of_begin_too(tickets: Tickets, monkeypatch: pytest.MonkeyPatch) -> None:
    tickets.begin("SHOP-7", "run-1")
    with TicketStore(tickets.root, "run-1").locked():
        monkeypatch.setattr(TicketStore.locked, "__defaults__", (0.01,))
        answer = tickets.begin("SHOP-7", "run-1")
    assert (codes(answer), answer["gate_result"]["status"], answer["continue"]) == (["TKT114"], "retry", True)


# -- ending or repeating what is not one's own ---------------------------------------------------------------------


@pytest.mark.parametrize("kept", [(), ("revision",)], ids=["only the run id", "an old revision"])
def test_a_partial_ticket_of_another_version_does_not_end_a_run(tickets: Tickets, kept: tuple[str, ...]) -> None:
    """Two keys that anybody can write would end the work of somebody else for good."""
    old = ticket_of(tickets.begin("SHOP-7", "run-1"))
    walk_to(tickets, "gather_evidence")
    rest = {name: cast("dict[str, Any]", old)[name] for name in kept}
    tickets.submit({"run_id": "run-1", "schema_version": "0.9.0", **rest})
    assert tickets.ticket("run-1")["state"] == "gather_evidence"


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


@pytest.mark.parametrize("revision", [True, "1", [1], {"revision": 1}, 10**300, -1, 0, 1.5, None])
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
    assert codes(answer) == ["STG303"]


def test_what_interlock_wrote_about_a_run_is_no_evidence(tickets: Tickets) -> None:
    ticket = walk_to(tickets, "gather_evidence")
    own = "artifacts/interlock/tickets/run-1/scope_context.json"
    lines = (tickets.root / own).read_text().splitlines()
    at = next(number for number, line in enumerate(lines, 1) if "holds the greeting" in line)
    answer = tickets.submit({**ticket, "payload": evidence(locator=f"{own}:{at}", snippet="holds the greeting")})
    assert codes(answer) == ["STG303"]


def test_evidence_from_a_file_that_was_edited_and_restored_is_reported(tickets: Tickets) -> None:
    ticket = walk_to(tickets, "gather_evidence")
    (tickets.root / "app.py").write_text(f"# Nobody may greet.\n{SOURCE}")
    answer = tickets.submit({**ticket, "payload": evidence(locator="app.py:1", snippet="# Nobody may greet.")})
    (tickets.root / "app.py").write_text(SOURCE)
    plan = tickets.submit(filled(ticket_of(answer))) if answer["gate_result"]["status"] == "pass" else answer
    assert codes(answer) + codes(plan)


@pytest.mark.parametrize("kind", ["rep\u200bo", "r\u0435po", "\uff52\uff45\uff50\uff4f"], ids=ascii)
def test_a_source_type_that_only_looks_like_repo_is_refused(root: Path, kind: str) -> None:
    payload = evidence(source_type=kind, locator="app.py:2", snippet="return 'What I wish it said'")
    issues = judge_stage(TICKET.stage("gather_evidence"), payload, {}, Surroundings(root))
    assert "STG301" in [item.code for item in issues]


def test_a_number_that_is_part_of_a_longer_one_contradicts_it(tickets: Tickets) -> None:
    ticket = walk_to(tickets, "gather_evidence")
    payload = evidence()
    payload["evidence_items"] += [
        {"source_id": "ev_3", "source_type": "web", "locator": "limits", "snippet": "at most 10"},
        {"source_id": "ev_4", "source_type": "web", "locator": "limits", "snippet": "at most 100"},
    ]
    assert codes(tickets.submit({**ticket, "payload": payload})) == ["STG401"]


def test_a_file_that_git_was_told_to_overlook_after_the_plan_is_seen(root: Path) -> None:
    git(root, "init", "-q")
    tickets = Tickets(root)
    ticket = walk_to(tickets, "act_via_tools")
    do_the_work(root)
    exclude = root / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("outside.py\n")
    (root / "outside.py").write_text("print('not in the plan')\n")
    assert codes(tickets.submit(filled(ticket))) == ["STG607"]


def test_a_plan_that_covers_the_ignore_file_does_not_cover_what_it_hides(root: Path) -> None:
    git(root, "init", "-q")
    tickets = Tickets(root)
    scope = {"retrieval_targets": ["repo:.gitignore"], "retrieval_justification": "It is to be tidied up."}
    ticket = walk_to(tickets, "act_via_tools", scope_context=scope)
    do_the_work(root)
    (root / ".gitignore").write_text("outside.py\n")
    (root / "outside.py").write_text("print('not in the plan')\n")
    assert codes(tickets.submit(filled(ticket))) == ["STG607"]


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
    assert set(codes(tickets.submit(filled(ticket)))) == {"STG607"}


# -- delegated acting ----------------------------------------------------------------------------------------------


def build(root: Path, greeting: str = "hello") -> None:
    """Answer for the remote builder of the first step, from outside of the ticket."""
    waiting = view_run("run-1.s1", root=root).waiting[0]
    (root / "wanted").write_text(greeting)
    (root / "src" / "greeting.txt").unlink(missing_ok=True)
    prompt = waiting.request["prompt"]
    ask = Ask("run-1.s1", "SHOP-7-S1", "builder", 1, 0, "build", prompt, str(root), "", {}, "", "")
    drive("run-1.s1", root=root, answers={"builder": ticket_team.builder(ask)})


def begin_own(root: Path, task_id: str, scope: str) -> None:
    """Begin a task of the agent's own under the name of a step's run."""
    agents = {role: {"runner": "remote"} for role in ("builder", "tester", "reviewer")}
    gates = ["GATE-MSG-STRICT", "GATE-TESTS", "GATE-REVIEW"]
    own = {"task_id": task_id, "task": "Nothing", "gates_required": gates, "scope": [scope], "agents": agents}
    Drives(root).advance(start_run(root, task_from_mapping(own, base=str(root)), run_id="run-1.s1"))


def test_a_task_begun_under_a_steps_name_after_its_start_failed_is_not_taken_over(tmp_path: Path) -> None:
    """The agent makes the start fail with other roles, and brings agents of its own: itself."""
    root = team(tmp_path, wait=2.0)
    tickets = Tickets(root)
    ticket = walk_to(tickets, "act_via_tools")
    config = (root / "interlock.toml").read_text()
    (root / "interlock.toml").write_text(config.replace("the tests pass", "the tests may fail"))
    assert codes(tickets.submit({**ticket, "payload": {}})) == ["TKT143"]
    (root / "interlock.toml").write_text(config)
    begin_own(root, "SHOP-7-S1", "src/old.txt")
    answer = tickets.submit({**ticket, "payload": {}})
    assert "waits for builder" not in answer["reason"], "the agent's own task counts as the plan's"


def test_a_plan_with_a_target_that_is_no_pattern_can_still_be_carried_out_or_is_refused(tmp_path: Path) -> None:
    tickets = Tickets(team(tmp_path, scope=""))
    ticket = walk_to(tickets, "scope_context")
    payload = {"retrieval_targets": ["repo:src/**", "repo:../up"], "retrieval_justification": "Both matter."}
    answer = tickets.submit({**ticket, "payload": payload})
    while answer["gate_result"]["status"] == "pass" and answer["next_state"] != "record_and_finalize":
        ticket = ticket_of(answer)
        payload = {} if ticket["state"] == "act_via_tools" else PAYLOADS[ticket["state"]]
        answer = tickets.submit({**ticket, "payload": payload})
    assert "TKT143" not in codes(answer), "the run is in a stage that it can never leave"


def test_a_gate_that_was_redefined_after_the_run_began_does_not_judge_its_steps(tmp_path: Path) -> None:
    root = team(tmp_path, builder="remote")
    tickets = Tickets(root)
    ticket = walk_to(tickets, "act_via_tools")
    config = (root / "interlock.toml").read_text()
    (root / "interlock.toml").write_text(config.replace('["sh", "check.sh"]', '["true"]'))
    assert ticket_of(tickets.submit({**ticket, "payload": {}})) == ticket
    (root / "interlock.toml").write_text(config)
    if view_or_none(root) is not None:
        build(root, "nothing that the tests want")
        (root / "wanted").write_text("hello")
        tickets.submit({**ticket, "payload": {}})
    assert tickets.state("run-1")["outcomes"].get("step_1") != "APPROVED"


def view_or_none(root: Path) -> object:
    """Return the task run of the first step, or None when it was not started."""
    return (
        view_run("run-1.s1", root=root) if (root / ".interlock" / "runs" / "run-1.s1" / "run.json").exists() else None
    )


def test_files_that_change_after_their_task_was_approved_do_not_count_as_approved(tmp_path: Path) -> None:
    root = team(tmp_path, builder="remote")
    tickets = Tickets(root)
    ticket = walk_to(tickets, "act_via_tools")
    tickets.submit({**ticket, "payload": {}})
    build(root)
    assert view_run("run-1.s1", root=root).status == "APPROVED"
    (root / "src" / "greeting.txt").write_text("what no gate has seen\n")
    answer = tickets.submit({**ticket, "payload": {}})
    assert answer["gate_result"]["status"] != "pass" or codes(answer)


def test_a_minimal_ticket_that_was_carried_out_by_tasks_can_be_repeated(tmp_path: Path) -> None:
    tickets = Tickets(team(tmp_path))
    base = {"ticket_id": "SHOP-7", "title": "Greet", "run_id": "run-1"}
    tickets.next_step({**base, "state": "intake"})
    for state in ("extract_requirements", "scope_context", "gather_evidence", "propose_plan"):
        tickets.next_step({**base, "state": state, "payload": PAYLOADS[state]})
    passed = tickets.next_step({**base, "state": "act", "payload": {}})
    assert cast("Any", passed)["next_state"] == "finalize"
    assert tickets.next_step({**base, "state": "act", "payload": {}}) == passed
