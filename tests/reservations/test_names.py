"""What an agent types as the name of something that is there is that file, through every entry point."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlock.cli.main import interlock
from interlock.core.project import NoProject
from interlock.journal import journal_of
from interlock.reservations.leases.fencing import NotCoveredError, guarded
from interlock.reservations.leases.runtime import Caller
from interlock.reservations.place import Place
from interlock.reservations.service import Reservations, open_reservations, open_runtime
from interlock.reservations.store import outbox
from tests.reservations.hooks.checkout import Checkout
from tests.reservations.world import World, codes, ids
from tests.server.reservation_team import call, team

PAGE = "app/[slug]/page.tsx"
QUOTED = "app/[[]slug[]]/page.tsx"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project with a folder and files whose names have brackets."""
    root = tmp_path / "project"
    (root / "app" / "[slug]").mkdir(parents=True)
    for name in ("interlock.toml", PAGE, "app/{a,b}.tsx"):
        (root / name).touch()
    return root


def agent(root: Path, name: str) -> Reservations:
    return open_reservations(str(root), name=name)


@pytest.mark.parametrize("typed", [PAGE, QUOTED, "app/[slug]/./page.tsx"])
def test_every_call_takes_a_file_that_is_there_for_that_file(project: Path, typed: str) -> None:
    ann, bob = agent(project, "ann"), agent(project, "bob")
    assert [row["pattern"] for row in ann.reserve_files([typed])["reservations"]] == [QUOTED]
    assert bob.check_conflicts(["app/s/page.tsx"])["clear"] == ["app/s/page.tsx"]
    (conflict,) = bob.check_conflicts([typed])["conflicts"]
    assert (conflict["holder"], conflict["pattern"]) == ("ann", typed)
    asked = bob.negotiate_release(typed, "why")
    assert asked["status"] == "pending"
    assert ann.respond_to_release(str(asked["thread_id"]), "release")["status"] == "released"
    assert [row["pattern"] for row in bob.my_reservations()["reservations"]] == [QUOTED]
    assert codes(ann.request_release("bob", typed, "why")) == []


def test_a_class_is_a_class_where_nothing_has_that_name(project: Path) -> None:
    ann = agent(project, "ann")
    ann.reserve_files(["app/[abc].tsx", "app/[slug]/**", "app/{a,b}.tsx", "lib/{a,b}"])
    patterns = [row["pattern"] for row in ann.my_reservations()["reservations"]]
    assert patterns == ["app/[[]slug[]]/**", "app/[abc].tsx", "app/[{]a,b[}].tsx", "lib/{a,b}"]


@pytest.mark.anyio
async def test_a_file_with_brackets_is_the_same_through_the_tools_the_shell_and_the_hook(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with team(project, "ann") as (ann,):
        held = await call(ann, "reserve_files", patterns=[PAGE])
        assert [row["pattern"] for row in held["reservations"]] == [QUOTED]
        ran = Checkout(project).edit("one", PAGE)
        assert (ran.status, "RSV201" in ran.err) == (2, True)
        monkeypatch.chdir(project)
        monkeypatch.setenv("INTERLOCK_AGENT_ID", "bob")
        assert CliRunner().invoke(interlock, ["reserve", PAGE]).exit_code == 5
        assert CliRunner().invoke(interlock, ["reserve", "app/[slug]/**"]).exit_code == 5
        await call(ann, "release_all")
    assert CliRunner().invoke(interlock, ["reserve", "app/[slug]/**"]).exit_code == 0
    done = CliRunner().invoke(interlock, ["release", PAGE, "--json"])
    assert len(json.loads(done.stdout)["released"]) == 1


# -- what no store can hold ----------------------------------------------------------------------------------------


def test_a_checkout_whose_path_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoProject):
        Caller("ann", "agent", str(tmp_path / "a\udc80"), "cli")


def test_an_event_about_a_name_that_is_no_text_does_not_keep_the_others_from_the_journal(tmp_path: Path) -> None:
    runtime = open_runtime(Place(str(tmp_path), "", str(tmp_path / ".interlock" / "reservations.sqlite")))
    with runtime.store.transaction() as tx:
        tx.add_event(str(tmp_path), "guard_refused", json.dumps({"paths": ["a\udc80.py"]}), 1.0)
        tx.add_event(str(tmp_path), "agent_joined", "{}", 2.0)
    assert outbox.drain_events(runtime.store, str(tmp_path)) == 2
    data = [entry.data for entry in journal_of(tmp_path).entries(outbox.JOURNAL_RUN)]
    assert data[0]["paths"] == ["a?.py"]


def test_a_path_that_is_no_text_is_refused_by_the_guard_with_a_name_that_can_be_sent(world: World) -> None:
    assert len(ids(world.agent("ann").reserve_files(["a"]))) == 1
    with pytest.raises(NotCoveredError) as caught, guarded(world.agent("ann"), ["a\udc80.py"]):
        pass
    assert json.dumps(caught.value.errors, ensure_ascii=False).encode()
    assert [row["code"] for row in caught.value.errors] == ["RSV206"]
