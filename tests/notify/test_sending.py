"""Notifications: what arrives in each way, once and in order, and what is said when it does not."""

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest

from interlock.notify import sending
from interlock.notify.sending import Event, deliver, missing, post
from interlock.notify.settings import Settings
from tests.notify.conftest import Hook, history, program
from tests.table import each_row

HOSTILE = "--help $(touch owned) `touch owned`; <b>x</b> & \x1b[31m\n\u202e"
ROW = Event("k", "waits", "stopped", "A-1.1", "a run stopped", HOSTILE).row("/srv/shop")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a project, and the key of its webhook."""
    (tmp_path / ".interlock").mkdir()
    monkeypatch.setenv("HOOK_KEY", "k3y")
    return str(tmp_path)


def event(key: str, text: str = "") -> Event:
    """Return an event."""
    return Event(key, "waits", "review", "A-1.1", "a review is wanted", text or key)


def table(hook: Hook) -> dict[str, Any]:
    """Return a table with a webhook."""
    return {"webhook": f"{hook.url}/in?x=1", "webhook_key_env": "HOOK_KEY"}


def texts(hook: Hook) -> list[str]:
    """Return what arrived."""
    return [json.loads(body)["text"] for _, _, body in hook.got]


def failure(channel: str, settings: Settings, root: str) -> tuple[str, str]:
    """Return code and message of a delivery that fails."""
    failed = deliver(channel, settings, root, ROW)
    assert failed is not None
    assert failed.fix
    return failed.code, failed.message


def test_events_are_sent_in_order_and_each_once_whoever_hands_it_over(root: str, hook: Hook) -> None:
    for _ in range(2):
        assert post(root, table(hook), [event("a"), event("b"), event("a")]) == []
    post(root, {}, [event("c")])
    assert texts(hook) == ["a", "b"]
    assert [row["id"] for row in history(root)] == ["b", "a"]


def test_a_failure_is_returned_and_written_down_once_and_the_other_way_is_taken(root: str, hook: Hook) -> None:
    both = {**table(hook), "command": ["./gone"]}
    assert [each.code for each in post(root, both, [event("a")])] == ["NTF103"]
    assert post(root, both, [event("a")]) == []
    command, webhook = history(root)[0]["deliveries"]
    assert (command["error"][:7], webhook, texts(hook)) == ("NTF103:", {"channel": "webhook", "error": ""}, ["a"])


def test_a_line_that_was_written_half_and_a_missing_folder_stop_nothing(root: str, hook: Hook) -> None:
    Path(root, ".interlock/notify.jsonl").write_bytes(b'\n{"id": "a", "ev')
    post(root, table(hook), [event("a")])
    post(f"{root}/gone", table(hook), [event("b")])
    assert ([row["id"] for row in history(root)], texts(hook)) == (["a"], ["a"])


def test_lines_of_somebody_else_are_passed_over(root: str, hook: Hook) -> None:
    lines = (b"1", b"{}", b"[]", b'{"id": "a"}', b'{"id": {}, "deliveries": []}', b"[" * 100_000)
    Path(root, ".interlock/notify.jsonl").write_bytes(b"\n".join(lines))
    post(root, table(hook), [event("a")])
    assert (history(root)[0]["id"], texts(hook)) == ("a", ["a"])


def test_a_link_in_the_place_of_the_file_is_not_written_through(root: str, hook: Hook, tmp_path: Path) -> None:
    victim = tmp_path / "profile"
    victim.write_text("mine")
    file = Path(root, ".interlock/notify.jsonl")
    file.symlink_to(victim)
    post(root, table(hook), [event("a")])
    assert (victim.read_text(), texts(hook)) == ("mine", [])
    file.unlink()
    post(root, table(hook), [event("a")])
    assert file.stat().st_mode & 0o777 == 0o600


def test_keys_of_the_environment_leave_with_no_event(root: str, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "abcdefgh-12345678")
    post(root, table(hook), [event("a", "say abcdefgh-12345678")])
    assert texts(hook) == ["say [SHOP_TOKEN]"]


def test_a_request_is_signed_over_its_time_and_its_body(root: str, hook: Hook) -> None:
    assert deliver("webhook", Settings(**table(hook)), root, ROW) is None
    ((path, headers, body),) = hook.got
    signed = hmac.new(b"k3y", headers["interlock-timestamp"].encode() + b"." + body, hashlib.sha256)
    assert (path, json.loads(body), headers["content-type"]) == ("/in?x=1", ROW, "application/json")
    assert headers["interlock-signature"] == f"sha256={signed.hexdigest()}"
    assert b"k3y" not in body + str(headers).encode()


@each_row("status", [302, 404, 503])
def test_a_webhook_that_refuses_is_named_and_a_redirect_is_not_followed(root: str, hook: Hook, status: int) -> None:
    hook.answers, before = [status], len(hook.got)
    assert failure("webhook", Settings(**table(hook)), root) == ("NTF101", f"the webhook answered {status}")
    assert len(hook.got) == before + 1


def test_a_webhook_without_its_key_or_its_server_says_so(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(webhook="http://127.0.0.1:9/x", webhook_key_env="HOOK_KEY")
    assert failure("webhook", settings, root)[0] == "NTF101"
    monkeypatch.delenv("HOOK_KEY")
    assert failure("webhook", settings, root)[0] == "NTF103"


def test_a_command_reads_the_event_and_runs_without_a_shell(root: str) -> None:
    script = program(Path(root, "notify.sh"))
    assert deliver("command", Settings(command=("./notify.sh", "$(x)", "a b")), root, ROW) is None
    assert script.with_name("notify.sh.args").read_bytes() == b"$(x)\0a b\0"
    assert json.loads(script.with_name("notify.sh.input").read_bytes())["text"] == HOSTILE


@each_row(
    ("text", "said"),
    [
        ("#!/bin/sh\necho no >&2; exit 3\n", "ended with 3: no"),
        ("#!/bin/sh\nexec sleep 60\n", "took longer"),
        ("#!/no/such/program\n", "cannot be started"),
    ],
)
def test_a_command_that_fails_is_named_with_what_it_said(
    root: str, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr(sending, "SECONDS", 0.3)
    program(Path(root, "notify.sh"), text)
    code, message = failure("command", Settings(command=("./notify.sh",)), root)
    assert (code, said in message) == ("NTF101", True), message


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")
def test_apprise_sends_to_the_addresses_that_a_variable_holds(
    root: str, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    settings, address = Settings(apprise_env="PHONE"), hook.url.replace("http", "json")
    assert failure("apprise", settings, root)[0] == "NTF103"
    monkeypatch.setenv("PHONE", f"{address}/a {address}/b")
    assert deliver("apprise", settings, root, ROW) is None
    assert sorted(path for path, _, _ in hook.got) == ["/a", "/b"]
    monkeypatch.setenv("PHONE", "no-such-way://x")
    assert failure("apprise", settings, root)[0] == "NTF101"


def test_what_is_not_there_is_seen_without_trying(root: str) -> None:
    program(Path(root, "notify.sh"))
    settings = Settings(("./notify.sh",), "https://h.example.org", "K", "PHONE")
    env = {"K": "k", "PHONE": "json://h"}
    assert [missing(channel, settings, root, env) for channel in settings.channels] == [None, None, None]
    for channel, name, wrong, given in (
        ("command", "./gone", settings._replace(command=("./gone",)), env),
        ("webhook", "K", settings, {**env, "K": ""}),
        ("apprise", "PHONE", settings, {**env, "PHONE": ""}),
    ):
        failed = missing(channel, wrong, root, given)
        assert failed is not None
        assert name in failed.message
