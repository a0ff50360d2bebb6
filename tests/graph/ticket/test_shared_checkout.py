"""Several agents with a ticket each in one checkout: nobody answers for the changes of another."""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from interlock.graph.ticket.tickets import Tickets
from interlock.reservations import place
from tests.child import git
from tests.graph.ticket.walk import PAYLOADS, codes, ticket_of
from tests.reservations.hooks.checkout import Checkout

AGENTS = 3
Act = Callable[[], Any]


@pytest.fixture
def shared(tmp_path: Path) -> Checkout:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    for number in range(AGENTS):
        (root / f"src/app{number}.py").write_text("def greet(name):\n    return 'Hello ' + name\n")
    (root / "src/util.py").write_text("x = 1\n")
    (root / ".gitignore").write_text(".interlock/\nartifacts/\n")
    git(root, "init", "-q")
    git(root, "add", "--all")
    git(root, "commit", "-qm", "Start")
    return Checkout(root)


def payload(stage: str, path: str) -> dict[str, Any]:
    """Return what passes a stage of a ticket about one file."""
    return json.loads(json.dumps(PAYLOADS[stage]).replace("app.py", path))


def walk(tickets: Tickets, agent: str, path: str, *, until: str = "act_via_tools") -> dict[str, Any]:
    """Take a ticket of an agent to a stage."""
    ticket = ticket_of(tickets.begin("SHOP-7", f"run-{agent}"))
    while ticket["state"] != until:
        ticket = ticket_of(submit(tickets, agent, path, ticket["revision"], ticket["state"]))
    return dict(ticket)


def submit(tickets: Tickets, agent: str, path: str, revision: int, stage: str, **changes: Any) -> Any:
    return tickets.submit_payload(f"run-{agent}", revision, payload(stage, path) | changes, agent=agent)


@pytest.fixture
def act(shared: Checkout) -> Act:
    """Take a ticket of claude-s1 about `src/app0.py` to its acting stage, and return what hands that stage in."""
    tickets, path = Tickets(shared.root), "src/app0.py"
    walk(tickets, "claude-s1", path)
    return lambda: submit(tickets, "claude-s1", path, tickets.ticket("run-claude-s1")["revision"], "act_via_tools")


def test_what_another_agent_holds_is_none_of_the_tickets(shared: Checkout, act: Act) -> None:
    assert shared.agent("ann").reserve_files(["src/util.py", "src/new_by_ann.py"])["errors"] == []
    (shared.root / "src/util.py").write_text("x = 2\n")
    (shared.root / "src/new_by_ann.py").write_text("y = 1\n")
    assert shared.edit("s1", shared.root / "src/app0.py").status == 0
    (shared.root / "src/app0.py").write_text("def greet(name):\n    return 'Hello ' + name + '!'\n")
    answer = act()
    assert (answer["gate_result"]["status"], codes(answer)) == ("pass", ["STG605"])
    (finding,) = answer["gate_result"]["issues"]
    assert "held by ann" in finding["found"]
    assert "Leave the files as they are" in finding["fix"]


def test_what_another_agent_held_or_committed_since_the_plan_passed_is_not_either(shared: Checkout, act: Act) -> None:
    ann = shared.agent("ann")
    assert ann.reserve_files(["src/util.py"])["errors"] == []
    (shared.root / "src/util.py").write_text("x = 2\n")
    git(shared.root, "commit", "-qam", "By ann")
    ann.release_all()
    answer = act()
    assert codes(answer) == ["STG602"]
    assert "held by ann" in answer["gate_result"]["issues"][0]["found"]


def test_an_edit_outside_the_plan_is_refused_until_it_is_taken_back(shared: Checkout, act: Act) -> None:
    # A wide lease of one's own covers the edits below it, and says nothing of who made which.
    assert shared.agent("claude-s1").reserve_files(["src/**"])["errors"] == []
    for name in ("app0.py", "util.py"):
        assert shared.edit("s1", shared.root / "src" / name).status == 0
        (shared.root / "src" / name).write_text("x = 3\n")
    (shared.root / "src/app1.py").write_text("somebody else\n")
    answer = act()
    assert codes(answer) == ["STG601", "STG605"]
    assert answer["gate_result"]["issues"][0]["fix"].startswith('Restore "src/util.py"')
    (shared.root / "src/util.py").write_text("x = 1\n")
    answer = act()
    assert (answer["next_state"], codes(answer)) == ("record_and_finalize", ["STG605"])


def test_a_copy_of_a_ticket_is_nobodys_to_hold(shared: Checkout) -> None:
    tickets = Tickets(shared.root)
    walk(tickets, "claude-s1", "src/app0.py")
    assert shared.agent("ann").reserve_files(["tickets/**"])["errors"] == []
    for name in ("ticket.json", "run-claude-s1.json"):
        assert shared.edit("s1", shared.root / "tickets" / name).status == 0
    assert shared.edit("s1", shared.root / "tickets/other.json").status == 2
    assert list(shared.leases) == ["tickets/**"]


def test_agents_with_a_ticket_each_in_one_checkout_all_end_and_nothing_is_lost(shared: Checkout) -> None:
    root, ends, begun = shared.root, dict[str, Any](), threading.Barrier(AGENTS)

    def work(number: int) -> None:
        agent, path, tickets = f"claude-s{number}", f"src/app{number}.py", Tickets(root)
        ticket = walk(tickets, agent, path)
        begun.wait(60)
        copy = root / "tickets" / f"run-{agent}.json"
        for edited, text in ((root / path, f"app = {number}\n"), (copy, json.dumps(ticket))):
            assert shared.edit(f"s{number}", edited).status == 0
            edited.parent.mkdir(exist_ok=True)
            edited.write_text(text)
        begun.wait(60)
        answer = submit(tickets, agent, path, ticket["revision"], "act_via_tools")
        ends[agent] = submit(tickets, agent, path, ticket_of(answer)["revision"], "record_and_finalize"), answer

    with ThreadPoolExecutor(AGENTS) as pool:
        list(pool.map(work, range(AGENTS)))
    assert {agent: (last["next_state"], codes(acted)) for agent, (last, acted) in ends.items()} == {
        f"claude-s{number}": ("complete", ["STG605"]) for number in range(AGENTS)
    }
    for number in range(AGENTS):
        assert (root / f"src/app{number}.py").read_text() == f"app = {number}\n"
        assert json.loads((root / "tickets" / f"run-claude-s{number}.json").read_text())["state"] == "act_via_tools"


def test_an_own_edit_is_not_another_agents_who_held_the_file_for_a_moment(shared: Checkout, act: Act) -> None:
    bob = shared.agent("bob")
    assert bob.reserve_files(["src/*.py"])["errors"] == []
    bob.release_all()
    for name in ("app0.py", "util.py"):
        assert shared.edit("s1", shared.root / "src" / name).status == 0
        (shared.root / "src" / name).write_text("x = 3\n")
    assert codes(act()) == ["STG601"]


def test_what_another_agent_wrote_inside_the_plan_is_no_work_of_this_one(
    shared: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shared.root / "interlock.toml").write_text('[tickets]\nunchanged = "error"\n')
    tickets = Tickets(shared.root)
    ticket = walk(tickets, "claude-s1", "src/app0.py")
    assert shared.agent("ann").reserve_files(["src/app0.py"])["errors"] == []
    (shared.root / "src/app0.py").write_text("by ann\n")

    def later(_path: str) -> float:
        return time.time() + 2

    monkeypatch.setattr("interlock.reservations.git.attribution.time_of", later)
    answer = submit(tickets, "claude-s1", "src/app0.py", ticket["revision"], "act_via_tools")
    assert (codes(answer), answer["next_state"]) == (["STG602"], "act_via_tools")
    assert "held by ann" in answer["gate_result"]["issues"][0]["found"]


def test_no_agent_is_told_to_remove_what_another_one_wrote_after_its_own_edit_came_to_nothing(
    shared: Checkout, act: Act
) -> None:
    assert shared.edit("s1", shared.root / "src/new.py").status == 0  # and the user says no
    shared.agent("claude-s1").release_all()
    assert shared.edit("s2", shared.root / "src/new.py").status == 0
    for name in ("app0.py", "new.py"):
        (shared.root / "src" / name).write_text("x = 3\n")
    answer = act()
    assert codes(answer) == ["STG605"]
    assert "held by claude-s2" in answer["gate_result"]["issues"][0]["found"]


def test_nobody_is_blamed_for_an_edit_that_was_let_through_and_never_written(
    shared: Checkout, act: Act, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shared.edit("s1", shared.root / "src/util.py").status == 0
    monkeypatch.setattr("interlock.reservations.git.attribution.EDIT_SECONDS", 0.2)
    time.sleep(0.5)
    for name in ("app0.py", "util.py"):
        (shared.root / "src" / name).write_text("a person's\n")
    assert codes(act()) == ["STG605"]


def test_records_that_cannot_be_read_are_named_and_blame_nobody(shared: Checkout, act: Act) -> None:
    (shared.root / "src/app0.py").write_text("x = 3\n")
    assert shared.agent("ann").reserve_files(["src/util.py"])["errors"] == []
    Path(place.find(str(shared.root)).store_path).write_bytes(b"no store" * 1000)
    answer = act()
    assert codes(answer) == ["STG605"]
    assert "cannot be read" in answer["gate_result"]["issues"][0]["found"]
