"""One identity at three entry points, with real processes; and which name takes precedence."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.reservations import identity, process
from interlock.reservations.leases import calls
from interlock.reservations.leases.runtime import Caller, Context, Runtime
from interlock.reservations.store.sqlite import SqliteStore
from tests.child import environment, git
from tests.reservations.hooks.checkout import Checkout
from tests.table import each_row

CLIENT = Path(__file__).with_name("client.py")
WHO = """
import json, os
from interlock.reservations import identity, place
from interlock.reservations.store.sqlite import SqliteStore
known = identity.who(os.environ, SqliteStore(place.find(os.getcwd()).store_path))
print(json.dumps([known.name, known.kind, known.pid]))
"""


def put(store: SqliteStore, name: str, pid: int, started: str, host: str = "") -> None:
    with store.transaction() as tx:
        tx.bind_process(host or process.host(), pid, started, name, 0.0)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root = tmp_path.resolve() / "project"
    root.mkdir()
    git(root, "init", "-q")
    (root.parent / "who.py").write_text(WHO)
    return Checkout(root)


def client(checkout: Checkout, session: str, **env: str) -> dict[str, Any]:
    """Run a client from start to end, and return what its programs said."""
    who = checkout.root.parent / "who.py"
    hook = checkout.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\n"{sys.executable}" "{who}" > .git/{session}.who\n')
    hook.chmod(0o755)
    command = [sys.executable, str(CLIENT), session, str(who)]
    done = subprocess.run(
        command,
        cwd=checkout.root,
        env=environment(**env),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
def test_hook_server_shell_and_git_hook_of_one_client_are_one_agent(checkout: Checkout) -> None:
    answer = client(checkout, "one")
    assert len(answer["names"]) == 5
    assert all(row == ["claude-one", "agent", answer["pid"]] for row in answer["names"].values())
    assert checkout.leases == {"one.py": "claude-one"}
    with checkout.runtime.store.transaction() as tx:
        assert [agent.name for agent in tx.agents()] == ["claude-one"]


@pytest.mark.long
def test_two_clients_are_two_agents(checkout: Checkout) -> None:
    one, two = client(checkout, "one"), client(checkout, "two")
    assert {row[0] for row in one["names"].values()} == {"claude-one"}
    assert {row[0] for row in two["names"].values()} == {"claude-two"}


def test_a_given_name_is_the_name_at_every_entry_point(checkout: Checkout) -> None:
    answer = client(checkout, "one", INTERLOCK_AGENT_ID="alice")
    assert {row[0] for row in answer["names"].values()} == {"alice"}


@pytest.mark.long
def test_a_client_inside_a_session_is_an_agent_of_its_own(checkout: Checkout) -> None:
    inherited = {"INTERLOCK_AGENT_ID": "claude-outer", "INTERLOCK_AGENT_SESSION": "outer"}
    answer = client(checkout, "inner", **inherited)
    assert {row[0] for row in answer["names"].values()} == {"claude-inner"}
    assert checkout.leases == {"inner.py": "claude-inner"}


GIVEN = [
    ({"INTERLOCK_AGENT_ID": "a", "INTERMUTE_AGENT_ID": "b", "CLAUDE_SESSION_ID": "c"}, "d", "a"),
    ({"INTERLOCK_AGENT_ID": " ", "INTERMUTE_AGENT_ID": "b", "CLAUDE_SESSION_ID": "c"}, "d", "b"),
    ({"CLAUDE_SESSION_ID": "c"}, "d", "claude-d"),
    ({"CLAUDE_SESSION_ID": "c"}, "", "claude-c"),
    ({"INTERLOCK_AGENT_ID": "claude-x", "INTERLOCK_AGENT_SESSION": "x"}, "d", "claude-d"),
    ({"INTERLOCK_AGENT_ID": "claude-x", "INTERLOCK_AGENT_SESSION": "x"}, "", "claude-x"),
]


@each_row(("env", "session", "name"), GIVEN)
def test_the_order_of_names(env: dict[str, str], session: str, name: str) -> None:
    known = identity.who(env, SqliteStore(":memory:"), session)
    assert (known.name, known.kind) == (name, "agent")


def test_without_any_name_it_is_the_person_at_this_machine() -> None:
    known = identity.who({"LOGNAME": "ada"}, SqliteStore(":memory:"))
    assert (known.name, known.kind) == (f"ada@{os.uname().nodename}", "person")
    assert identity.who({}, SqliteStore(":memory:")).name.endswith(f"@{os.uname().nodename}")


@pytest.mark.parametrize("via", ["mcp", "hook"])
def test_a_client_without_any_name_is_an_agent_of_its_own_process(via: str) -> None:
    pid, started = process.client()
    known = identity.who({"LOGNAME": "ada"}, SqliteStore(":memory:"), via=via)
    assert known[1:] == ("agent", pid, started)
    assert known.name.startswith(f"ada@{os.uname().nodename}:{pid}-")
    assert identity.who({"LOGNAME": "ada"}, SqliteStore(":memory:"), via=via) == known


def test_a_later_client_of_the_same_number_has_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names: set[str] = set()
    for started in ("one", "two"):
        monkeypatch.setattr(process, "client", lambda started=started: (7, started))
        names.add(identity.who({"LOGNAME": "ada"}, SqliteStore(":memory:"), via="mcp").name)
    assert len(names) == 2


def test_a_server_whose_client_is_out_of_sight_is_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "client", lambda: (None, ""))
    assert identity.who({}, SqliteStore(":memory:"), via="mcp").pid == os.getpid()
    assert identity.who({}, SqliteStore(":memory:"), via="hook").kind == "person"


def test_what_a_client_without_a_name_starts_is_found_by_its_process() -> None:
    store = SqliteStore(":memory:")
    known = identity.who({}, store, via="mcp")
    caller = Caller(known.name, known.kind, "/", "mcp", process.host(), known.pid, known.started)
    with calls.entered(Context(Runtime(store), caller)):
        pass
    assert identity.who({}, store) == known
    assert identity.who({"CLAUDE_SESSION_ID": "other"}, store).name == "claude-other"


def test_what_names_a_session_goes_before_what_the_process_is_known_for() -> None:
    store = SqliteStore(":memory:")
    parent = next(iter(process.ancestors()))
    put(store, "claude-own", parent.pid, parent.started)
    assert identity.who({}, store).name == "claude-own"
    assert identity.who({"CLAUDE_SESSION_ID": "other"}, store).name == "claude-other"
    assert identity.who({"CLAUDE_SESSION_ID": "other"}, store, "third").name == "claude-third"
    assert identity.who({"CLAUDE_SESSION_ID": "other", "INTERLOCK_AGENT_ID": "alice"}, store).name == "alice"


def test_the_nearest_stored_ancestor_says_who_it_is() -> None:
    store = SqliteStore(":memory:")
    above = [row for row in process.ancestors() if row.name not in process.INITS]
    put(store, "far", above[-1].pid, above[-1].started)
    assert identity.who({}, store)[:3] == ("far", "agent", above[-1].pid)
    put(store, "near", above[0].pid, above[0].started)
    assert identity.who({}, store).name == "near"


@pytest.mark.parametrize(
    ("name", "started", "host"), [("stale", "another time", ""), ("stale", "", "another machine"), ("", "", "")]
)
def test_a_later_process_of_its_number_and_an_agent_that_left_are_not_found(name: str, started: str, host: str) -> None:
    store = SqliteStore(":memory:")
    parent = next(iter(process.ancestors()))
    put(store, name, parent.pid, started or parent.started, host)
    assert identity.who({"USER": "ada"}, store).kind == "person"


def test_a_stored_person_stays_a_person() -> None:
    store = SqliteStore(":memory:")
    parent = next(iter(process.ancestors()))
    caller = Caller("ada@here", "person", "/", "mcp", process.host(), parent.pid, parent.started)
    with calls.entered(Context(Runtime(store), caller)):
        pass
    assert identity.who({}, store)[:2] == ("ada@here", "person")


@pytest.mark.parametrize(
    ("session", "name"),
    [
        ("a1-b2.c_3", "claude-a1-b2.c_3"),
        ("../x y\n", "claude-..-x-y-"),
        ("é", "claude--"),
        ("x" * 500, f"claude-{'x' * 80}"),
    ],
)
def test_a_session_makes_a_name_of_plain_characters(session: str, name: str) -> None:
    assert identity.of_session(session) == name


def test_only_a_name_made_of_the_session_is_exported_as_such() -> None:
    assert identity.exports({}, "claude-s", "s") == {"INTERLOCK_AGENT_ID": "claude-s", "INTERLOCK_AGENT_SESSION": "s"}
    given = {"INTERLOCK_AGENT_ID": "alice"}
    assert identity.exports(given, "alice", "s") == {"INTERLOCK_AGENT_ID": "alice"}
