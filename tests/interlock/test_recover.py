"""`interlock recover`: what was put back, and any version of it back again."""

import json
import os
from pathlib import Path

import pytest

from tests import warm
from tests.child import Ran
from tests.reservations.versions.sharing import WORK, Sharing, make


@pytest.fixture
def sharing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sharing:
    """Give a checkout in which a command of bob wrote over a file of ann, which was put back."""
    monkeypatch.setenv("INTERLOCK_STATE", str(tmp_path / "state"))
    made = make(tmp_path.resolve() / "project")
    made.hold("ann.py")
    made.shell("echo theirs > ann.py")
    return made


def interlock(sharing: Sharing, *words: str, by: str = "ann", status: int = 0) -> Ran:
    done = warm.interlock(sharing.root, *words, env={**os.environ, "INTERLOCK_AGENT_ID": by})
    assert done.returncode == status, done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)


def test_what_was_undone_is_listed_and_shown(sharing: Sharing) -> None:
    lines = interlock(sharing, "recover").out.splitlines()
    assert "ann.py: what others wrote there, undone (bob)" in lines[0]
    assert "held by ann" in lines[1]
    number = lines[0].split()[0]
    assert "+theirs" in interlock(sharing, "recover", "--show", number).out
    rows = json.loads(interlock(sharing, "recover", "ann.py", "--json").out)["versions"]
    assert [row["why"] for row in rows] == ["undone", "held", "expected", "held"]


def test_a_version_comes_back_and_the_restore_can_be_undone(sharing: Sharing) -> None:
    number = str(sharing.versions("ann.py")[0].number)
    said = interlock(sharing, "recover", "--restore", number)
    assert sharing.read("ann.py") == "theirs\n"
    undo = said.err.partition("interlock ")[2].split()
    interlock(sharing, *undo)
    assert sharing.read("ann.py") == WORK
    sharing.shell("true")
    assert sharing.read("ann.py") == WORK


def test_nobody_restores_over_what_another_holds(sharing: Sharing) -> None:
    number = str(sharing.versions("ann.py")[0].number)
    assert "ann.py is held by ann" in interlock(sharing, "recover", "--restore", number, by="bob", status=5).err
    assert sharing.read("ann.py") == WORK


def test_what_is_not_kept_and_wrong_usage_are_said(sharing: Sharing) -> None:
    assert "there is no version 999" in interlock(sharing, "recover", "--show", "999", status=2).err
    interlock(sharing, "recover", "--show", "1", "--restore", "1", status=2)


def test_status_names_what_was_undone(sharing: Sharing) -> None:
    assert "Held files that others changed" in interlock(sharing, "status", "--reservations").out
    held = json.loads(interlock(sharing, "status", "--reservations", "--json").out)["reservations"]
    assert [(row["path"], row["why"], row["others"]) for row in held["disturbed"]] == [("ann.py", "undone", ["bob"])]
