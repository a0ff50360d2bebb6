"""Who is there: registration, signs of life, and who counts as dead."""

import pytest

from interlock.reservations.leases import calls, liveness
from interlock.reservations.leases.runtime import Caller, Context
from interlock.reservations.service import Reservations
from interlock.reservations.store.records import Agent, replace
from tests.reservations.world import HOST, ROOT, START, World
from tests.table import each_row

pytestmark = pytest.mark.usefixtures("each_store")


def stored(world: World, name: str) -> Agent:
    with world.store.transaction() as tx:
        agent = tx.agent(name)
    assert agent is not None
    return agent


def test_the_first_call_registers_the_agent_and_binds_its_process(world: World) -> None:
    world.look("Ann")
    agent = stored(world, "ann")
    assert (agent.name, agent.pid, agent.client, agent.joined_at) == ("Ann", 100, "mcp", START)
    with world.store.transaction() as tx:
        assert tx.agent_of_process(HOST, 100, "once") == "Ann"


@each_row(("seconds", "written"), [(100, True), (0.5, False), (-5000, True)])
def test_every_call_is_a_sign_of_life_after_a_second_or_a_clock_set_back(seconds: float, written: bool) -> None:
    world = World()
    world.look("ann")
    before = world.store.stamp()
    world.now += seconds
    world.look("ann")
    assert (world.store.stamp() != before) is written
    assert (stored(world, "ann").last_seen, stored(world, "ann").joined_at) == (START + seconds * written, START)


def test_a_program_that_calls_for_an_agent_becomes_its_process_only_when_that_has_ended(world: World) -> None:
    world.look("ann")
    calls.mine(Context(world.runtime, replace(world.caller("ann"), pid=998)))
    assert stored(world, "ann").pid == 100
    world.ended.add(998)
    with calls.entered(world.agent("bob")) as entry:
        assert liveness.state(entry, "ann") == "alive"
    world.end_process("ann")
    calls.mine(Context(world.runtime, replace(world.caller("ann"), pid=999)))
    assert stored(world, "ann").pid == 999
    with calls.entered(world.agent("bob")) as entry:
        assert liveness.state(entry, "ann") == "alive"


def test_a_call_without_a_process_clears_one_that_ended(world: World) -> None:
    world.look("ann")
    over_http = replace(world.caller("ann"), host="", pid=None, started="")
    calls.mine(Context(world.runtime, over_http))
    assert stored(world, "ann").pid == 100
    world.end_process("ann")
    calls.mine(Context(world.runtime, over_http))
    assert stored(world, "ann").pid is None


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ({}, "alive"),
        ({"last_seen": START - 300}, "alive"),
        ({"last_seen": START - 301}, "silent"),
        ({"last_seen": START - 301, "kind": "person"}, "alive"),
        ({"pid": 7}, "gone"),
        ({"pid": 7, "kind": "person"}, "gone"),
        ({"pid": 7, "last_seen": START - 301}, "gone"),
        ({"pid": 7, "host": "elsewhere"}, "alive"),
        ({"pid": 7, "host": "elsewhere", "last_seen": START - 301}, "silent"),
        ({"pid": None, "host": ""}, "alive"),
        ({"pid": None, "host": "", "last_seen": START - 301}, "silent"),
    ],
)
def test_the_dead_are_those_whose_process_ended_and_agents_that_were_silent_for_long(
    world: World, agent: dict[str, object], expected: str
) -> None:
    world.ended.add(7)
    row = Agent("ann", "agent", HOST, 100, "once", "mcp", START, START)
    assert liveness.state_of(world.runtime, replace(row, **agent), START) == expected


def test_nobody_is_gone_who_calls(world: World) -> None:
    world.look("ann")
    world.end_process("ann")
    with calls.entered(world.agent("ann")) as entry:
        assert liveness.state(entry, "ANN") == "alive"


def test_each_process_is_asked_about_once_in_a_call(world: World) -> None:
    asked: list[int] = []

    def is_running(_host: str, pid: int, _started: str) -> bool:
        asked.append(pid)
        return True

    world.agent("ann").reserve_files([f"f{number}" for number in range(50)])
    runtime = replace(world.runtime, is_running=is_running)
    calls.reserve(Context(runtime, replace(world.caller("bob"), root=ROOT)), ["**"])
    assert asked == [100]


def test_a_shell_command_neither_becomes_the_agents_process_nor_gives_its_name_to_it(world: World) -> None:
    shell = Caller("alice", "agent", ROOT, "cli", HOST, 7, "once")
    Reservations(world.runtime, shell).reserve_files(["a.py"])
    with world.store.transaction() as tx:
        assert tx.agent_of_process(HOST, 7, "once") is None
    assert stored(world, "alice").pid is None
    world.ended.add(7)
    assert world.agent("bob").reserve_files(["a.py"])["errors"][0]["code"] == "RSV201"
