"""`interlock notify` and the check of `interlock doctor`, as a person meets them."""

import json
import time
from pathlib import Path

import pytest

from interlock.notify import Event
from interlock.notify.queue import post, send, waiting
from tests.interlock.doctoring import look
from tests.interlock.test_cli import data, interlock
from tests.notify.conftest import program, unsent

EVENT = Event("k", "ended", "approved", "A-1.1", "a run is APPROVED", "A-1.1 is APPROVED: greet \x1b[31m")


def test_a_test_event_goes_every_way_and_each_failure_is_shown_with_its_fix(project: Path) -> None:
    assert interlock(project, "notify", "--test").returncode == 2, "nothing is configured"
    script = program(project / "notify.sh")
    table = '[notify]\ncommand = ["./notify.sh"]\n'
    (project / "interlock.toml").write_text(table)
    assert data(interlock(project, "notify", "--test", "--json"))["channels"] == [
        {"channel": "command", "ok": True, "error": None}
    ]
    assert json.loads(script.with_name("notify.sh.input").read_text())["event"] == "test"
    (project / "interlock.toml").write_text(
        f'{table}webhook = "http://127.0.0.1:9/x"\nwebhook_key_env = "NO_SUCH_VARIABLE"\n'
    )
    failed = interlock(project, "notify", "--test")
    assert (failed.returncode, failed.stdout) == (1, "command   delivered\nwebhook   failed\n")
    assert failed.stderr.startswith("error NTF103: the variable NO_SUCH_VARIABLE is not set")
    assert "\n  fix: " in failed.stderr


def test_what_was_sent_is_listed_and_what_waits_is_sent_on(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "interlock.toml").write_text('[notify]\ncommand = ["./notify.sh"]\n')
    (project / ".interlock").mkdir()
    assert look(project, "notify").found.startswith("./notify.sh is not there")
    program(project / "notify.sh")
    assert look(project, "notify").verdict == "ok"
    with monkeypatch.context() as patch:
        unsent(patch)
        post(project, {"command": ["./gone"]}, [EVENT])
        assert look(project, "notify").fix == "Run `interlock notify`."
        send(str(project))
        found = look(project, "notify")
        assert (found.verdict, "NTF101" in found.found) == ("warn", True)
        post(project, {"command": ["./notify.sh"]}, [EVENT._replace(key="l", run="B-1.1")])
    shown = interlock(project, "notify")
    assert (shown.returncode, "(command failed)" in shown.stdout, "\x1b" in shown.stdout) == (1, True, False)
    begun = time.monotonic()
    while waiting(str(project)):
        assert time.monotonic() < begun + 60
        time.sleep(0.02)
    listed = data(interlock(project, "notify", "--json"))
    assert (listed["ok"], [row["run"] for row in listed["sent"]]) == (True, ["B-1.1", "A-1.1"])
    assert look(project, "notify").verdict == "ok"
