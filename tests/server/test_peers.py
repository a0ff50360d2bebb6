"""What the texts of other tools of this kind have their agents send is taken, and what is only claimed is checked."""

import json
from pathlib import Path

import pytest
from mcp import Client

from tests.server.reservation_team import call, team

pytestmark = pytest.mark.anyio


async def test_a_path_may_be_absolute_below_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    async with team(tmp_path, "anna", "ben") as (anna, ben):
        made = await call(anna, "reserve_files", patterns=[f"{tmp_path}/src/a.py"])
        assert [row["pattern"] for row in made["reservations"]] == ["src/a.py"]
        found = await call(ben, "check_conflicts", patterns=[f"{tmp_path}/src/*.py"])
        assert [row["held_pattern"] for row in found["conflicts"]] == ["src/a.py"]
        asked = await call(ben, "negotiate_release", file=f"{tmp_path}/src/a.py", reason="r")
        assert asked["status"] == "pending"
        for path in ("/etc/passwd", f"{tmp_path}/../x", f"{tmp_path}x/a.py"):
            refused = await call(ben, "reserve_files", patterns=[path])
            assert [row["code"] for row in refused["errors"]] == ["RSV101"]


async def test_an_answer_is_shown_as_an_acknowledgement(anna: Client, ben: Client) -> None:
    await call(anna, "reserve_files", patterns=["a.py"])
    asked = await call(ben, "negotiate_release", file="a.py", reason="r", urgency="urgent")
    thread = {"thread_id": asked["thread_id"], "action": "defer", "eta_minutes": 5}
    assert (await call(anna, "respond_to_release", **thread))["status"] == "deferred"
    (row,) = json.loads((await ben.read_resource("interlock://reservations")).contents[0].text)["negotiations"]  # type: ignore[union-attr]
    assert (row["ack_required"], row["acked_at"] is not None) == (True, True)
