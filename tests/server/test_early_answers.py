"""A corrected answer over MCP, before its role is asked again: taken, kept, judged, and reported at each step."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from interlock.server import make_server
from tests.clients.scripted import CONFIG, GATES, TASK, answer, envelope, make_project
from tests.graph.test_early_answers import STYLIST
from tests.server.test_tasks import RUN, Caller, Host

pytestmark = pytest.mark.anyio

TWO = {**TASK, "gates_required": [*GATES[:2], "GATE-STYLE", *GATES[2:]]}
NEXT = f"{RUN}/HELLO-001/tester/1.1/1"


def full(root: Path, ask: dict[str, Any]) -> str:
    """Do the work of the asked role and return its envelope, with the gates of this task."""
    if ask["role"] == "stylist":
        text = envelope(ask, "QA_IN_PROGRESS", passed=("GATE-STYLE",), reports=tuple(ask["evidence"]["reports"]))
    else:
        text = answer(root, ask)
    return text.replace("- GATE-TESTS\n- GATE-REVIEW", "- GATE-TESTS\n- GATE-STYLE\n- GATE-REVIEW")


@pytest.fixture
def caller() -> Caller:
    """Give the identity of the next calls, which a test can change."""
    return Caller()


@pytest.fixture
async def host(tmp_path: Path, caller: Caller) -> AsyncIterator[Host]:
    """Connect a client to a server of a project with two QA roles."""
    root = make_project(tmp_path / "project", CONFIG + STYLIST)
    async with Client(make_server(root, caller=caller)) as client:
        yield Host(client, root)


async def refused_once(host: Host) -> dict[str, dict[str, Any]]:
    """Take a run to where the tester was refused and the stylist has not answered; return what they were asked."""
    await host.call("task_begin", task=TWO)
    await host.hand_in(ask := await host.ask(), full(host.root, ask))
    asks = {ask["role"]: ask for ask in (await host.call("task_next", run_id=RUN))["asks"]}
    done = await host.hand_in(asks["tester"], "nonsense")
    assert (done["outcome"], done["waiting"]) == ("invalid", ["stylist"])
    assert NEXT in done["next"], "it learns what it can do"
    return asks


async def test_a_corrected_answer_is_kept_until_the_role_beside_has_answered(host: Host) -> None:
    asks = await refused_once(host)
    text = full(host.root, asks["tester"])
    for repeated in (False, True):
        kept = await host.hand_in({**asks["tester"], "ask_id": NEXT}, text)
        assert (kept["ok"], kept["outcome"], kept["repeated"], kept["waiting"]) == (None, None, repeated, ["stylist"])
        assert f"{NEXT} is kept" in kept["next"]
    assert f"{NEXT} is kept" in (await host.call("task_next", run_id=RUN, role="tester", wait_seconds=0))["next"]
    done = await host.hand_in(asks["stylist"], full(host.root, asks["stylist"]))
    assert (done["ok"], done["status"], done["waiting"]) == (True, "READY_FOR_REVIEW", ["reviewer"])
    again = await host.hand_in({**asks["tester"], "ask_id": NEXT}, text)
    assert (again["repeated"], again["outcome"]) == (True, "pass")


async def test_only_the_one_corrected_answer_is_taken_early(host: Host, caller: Caller) -> None:
    asks = await refused_once(host)
    text = full(host.root, asks["tester"])
    over = await host.refused("task_submit", run_id=RUN, role="tester", envelope=text, ask_id=asks["tester"]["ask_id"])
    assert (over["code"], NEXT in over["message"]) == ("RUN605", True)
    for role in ("builder", "reviewer"):
        assert (await host.refused("task_submit", run_id=RUN, role=role, envelope="x"))["code"] == "RUN605"
    caller.name = "stylist"
    assert (await host.refused("task_submit", run_id=RUN, role="tester", envelope=text))["code"] == "MCP401"
    caller.name = "tester"
    await host.call("task_submit", run_id=RUN, role="tester", envelope=text)
    assert (await host.refused("task_submit", run_id=RUN, role="tester", envelope=text + " "))["code"] == "RUN605"
