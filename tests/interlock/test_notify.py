"""`interlock notify` as a person meets it."""

import json
from pathlib import Path

from tests.interlock.test_cli import data, interlock
from tests.notify.conftest import program


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


def test_the_channels_are_listed(project: Path) -> None:
    assert "docs/watch.md" in interlock(project, "notify").stdout
    (project / "interlock.toml").write_text('[notify]\ncommand = ["./notify.sh"]\n')
    assert data(interlock(project, "notify", "--json"))["channels"] == ["command"]
