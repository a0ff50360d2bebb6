"""A cheating, careless or unlucky agent against the leases, the line and the answers."""

import asyncio
import json
import os
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client

from interlock.reservations.place import is_folder
from interlock.reservations.settings import Settings
from interlock.reservations.store.records import replace
from tests.reservations.hooks.checkout import HOOK, Checkout, environment, git
from tests.reservations.world import World, codes, ids, inbox
from tests.server.reservation_team import call, team
from tests.server.stdio_process import INITIALIZE, INITIALIZED, Wire
from tests.server.stdio_process import call as asked

CLIENT_LIMIT_CHARS = 70_916
"""The answer that outgrew a client in the field had so many characters."""
UNDER_A_CLIENT = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-m', 'interlock', 'mcp']))"
"""A client of its own: a process that is no shell and starts the server."""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root = tmp_path.resolve() / "project"
    (root / "src").mkdir(parents=True)
    for name in ("ann.py", "bob.py", "src/app.py"):
        (root / name).write_text("one\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return Checkout(root)


def interlock(checkout: Checkout, who: str, *arguments: str, cwd: Path | None = None) -> int:
    """Run a command of ours as an agent; return its exit status."""
    done = subprocess.run(
        (HOOK[0], *arguments), cwd=cwd or checkout.root, env=environment(INTERLOCK_AGENT_ID=who), capture_output=True,
        timeout=60, check=False,
    )  # fmt: skip
    return done.returncode


@pytest.fixture
def unhooked(checkout: Checkout) -> Iterator[list[Wire]]:
    """Give two servers, each under a client of its own; nothing says who their agents are."""
    wires: list[Wire] = []
    for _ in range(2):
        process = subprocess.Popen(
            (sys.executable, "-c", UNDER_A_CLIENT), cwd=checkout.root, env=environment(), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        wires.append(Wire(process))
    yield wires
    for wire in wires:
        wire.process.communicate(timeout=60)


# -- two holders of one file ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_two_clients_without_hooks_do_not_both_hold_one_file(unhooked: list[Wire]) -> None:
    """Architecture §8: two exclusive holders of overlapping patterns must be impossible, with no hook installed too."""
    answers: list[dict[str, object]] = []
    for wire in unhooked:
        wire.send(INITIALIZE)
    for wire in unhooked:
        wire.read()
        wire.send(INITIALIZED)
        wire.send(asked("reserve_files", {"patterns": ["ann.py"]}))
        answers.append(wire.read()["result"]["structuredContent"])
    assert answers[0]["reservations"]
    assert codes(answers[1]) == ["RSV201"]


def test_folder_reached_through_a_symbolic_link_has_one_holder(checkout: Checkout) -> None:
    """Architecture §8: one file is held once; the hook follows links, so the tools and the command line have to."""
    (checkout.root / "link").symlink_to("src")
    assert interlock(checkout, "ann", "reserve", "link/app.py") == 0
    assert checkout.edit("s2", "src/app.py").status == 2, checkout.leases


@pytest.mark.long
def test_file_of_a_worktree_inside_the_checkout_has_one_name_through_every_door(checkout: Checkout) -> None:
    """Architecture §8: the hook counts it from the worktree's root, and so must the tools and the command line."""
    git(checkout.root, "worktree", "add", "-q", ".worktrees/ann")
    file = ".worktrees/ann/src/app.py"
    assert interlock(checkout, "ann", "reserve", file) == 0
    assert checkout.edit("s2", file).status == 2, checkout.leases


@pytest.mark.long
def test_slash_behind_a_file_holds_the_file(checkout: Checkout) -> None:
    """Architecture §8: what was granted for `src/app.py/` covers the file that is there, or is refused."""
    granted = interlock(checkout, "ann", "reserve", "src/app.py/") == 0
    also_granted = interlock(checkout, "bob", "reserve", "src/app.py") == 0
    assert not (granted and also_granted), checkout.leases


def test_folder_spelled_with_combining_marks_holds_what_is_in_it(checkout: Checkout) -> None:
    """Patterns are compared in NFC (design 004): a folder whose name on the disk is NFD is a folder all the same."""
    name = unicodedata.normalize("NFD", "données")
    (checkout.root / name).mkdir()
    ann, bob = (checkout.agent(who) for who in ("ann", "bob"))
    for agent in (ann, bob):
        agent.runtime = replace(agent.runtime, is_folder=is_folder)
    assert ids(ann.reserve_files([name]))
    assert codes(bob.reserve_files([f"{name}/x.py"])) == ["RSV201"]


# -- taken from the living -----------------------------------------------------------------------------------------


def test_configuration_of_ones_own_worktree_takes_nothing_from_others(checkout: Checkout) -> None:
    """Architecture §8: one store, one set of rules; no agent decides alone how soon the others are dead."""
    git(checkout.root, "worktree", "add", "-q", "../own")
    own = checkout.root.parent / "own"
    (own / "interlock.toml").write_text("[reservations]\ndead_after_minutes = 0.01\n")
    ann = checkout.agent("ann")
    ann.runtime = replace(ann.runtime, clock=lambda: time.time() - 5)
    assert ids(ann.reserve_files(["ann.py"]))
    interlock(checkout, "bob", "reserve", "ann.py", cwd=own)
    assert checkout.leases == {"ann.py": "ann"}


def test_escalation_takes_the_reservation_that_was_asked_for_and_no_wider_one() -> None:
    """Field note 9, PRD F5: a request is pinned to a reservation id, and what is taken is that reservation."""
    world = World(settings=Settings(escalation="force"))
    ann, bob = world.join("ann"), world.join("bob")
    ann.reserve_files(["src/app.py"])
    assert bob.negotiate_release("src/app.py", "mine next", "urgent")["status"] == "pending"
    assert codes(ann.reserve_files(["src/**"])) == ["RSV201"], "bob waits in front for a part of it"
    bob.release_all()
    assert codes(ann.reserve_files(["src/**"])) == []
    world.minutes(6, ann, bob)
    bob.fetch_inbox()
    assert codes(world.join("cid").reserve_files(["src/other.py"])) == ["RSV201"]


# -- waiting -------------------------------------------------------------------------------------------------------


def test_wait_ends_in_its_time_when_the_clock_is_set_back() -> None:
    """Architecture §8: `wait_seconds` bounds the wait; clients give up after a minute, whatever the clock says."""
    world = World()
    world.agent("ann").reserve_files(["x"], ttl_minutes=60)
    bob = world.agent("bob")
    waited = 0.0

    def pause(seconds: float) -> None:
        nonlocal waited
        waited += seconds
        world.now += seconds - (3600 if waited == seconds else 0)
        assert waited < 60, "a wait of 5 seconds goes on for a minute"

    bob.runtime = replace(bob.runtime, pause=pause, monotonic=lambda: waited)
    assert codes(bob.reserve_files(["x"], wait_seconds=5)) == ["RSV201"]


def test_asking_for_everything_again_and_again_keeps_nobody_from_free_files() -> None:
    """Design 004: a place that is wider than what is held ends soon after the time limit of the request."""
    world = World()
    ann, bob, cid = (world.agent(name) for name in ("ann", "bob", "cid"))
    ann.reserve_files(["a"], ttl_minutes=600)
    for _ in range(120):
        bob.negotiate_release("**", "all of it")
        ann.my_reservations()
        world.now += 30
    assert codes(cid.reserve_files(["unrelated"])) == []


# -- answers -------------------------------------------------------------------------------------------------------


def test_ack_of_another_agent_in_the_words_of_the_prd_is_marked() -> None:
    """PRD F1 gives a release_ack no field `type`; one that is sent by hand for another is refused or carries a note."""
    world = World()
    mallory, cid = world.join("mallory"), world.join("cid")
    world.join("bob").reserve_files(["x"])
    cid.negotiate_release("x", "mine next")
    body = json.dumps({"file": "x", "released": True, "released_by": "bob"})
    sent = mallory.send_message("cid", body, topic="Release-Ack")
    assert not sent["sent"] or "note" in inbox(cid)[-1]


@pytest.mark.long
def test_refusal_of_a_hundred_patterns_stays_small_enough_for_a_client(checkout: Checkout) -> None:
    """Architecture §10: bounded answers. One in the field outgrew its client with 70,916 characters."""
    patterns = [f"packages/number_{number:03}/{'x' * 150}.py" for number in range(100)]

    async def refused() -> str:
        async with team(checkout.root, "ann", "bob") as (ann, bob):
            await call(ann, "reserve_files", patterns=patterns)
            return await _text(bob, patterns)

    assert len(asyncio.run(refused())) < CLIENT_LIMIT_CHARS


async def _text(client: Client, patterns: list[str]) -> str:
    """Return the answer as the model gets it."""
    result = await client.call_tool("reserve_files", {"patterns": patterns})
    return "".join(getattr(part, "text", "") for part in result.content)


# -- somebody else's name ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("via", ["session of the environment", "input of a hook"])
def test_shell_command_in_the_name_of_another_session_is_refused(checkout: Checkout, via: str) -> None:
    """Coverage: another agent's name in a command is refused; else one line releases what a living agent holds."""
    checkout.edit("ann", "ann.py")
    over = json.dumps(checkout.event("ann", "SessionEnd"))
    command = {
        "session of the environment": f"CLAUDE_SESSION_ID=ann {HOOK[0]} release --all",
        "input of a hook": f"echo '{over}' | {HOOK[0]} hook stop",
    }[via]
    if checkout.hook("pre-edit", checkout.call("bob", "Bash", {"command": command})).status == 0:
        env = environment(CLAUDE_SESSION_ID="bob", PATH=os.environ["PATH"])
        subprocess.run(("sh", "-c", command), cwd=checkout.root, env=env, capture_output=True, timeout=60, check=False)
    assert checkout.leases == {"ann.py": "claude-ann"}
