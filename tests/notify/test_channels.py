"""One attempt in each way: what arrives, and what is said when it does not."""

import hashlib
import hmac
import json
import os
from pathlib import Path

import pytest

from interlock.notify import channels
from interlock.notify.channels import DeliveryError, body_of, deliver, missing
from interlock.notify.settings import Settings
from tests.notify.conftest import Hook, program
from tests.table import each_row

HOSTILE = "--help $(touch owned) `touch owned`; <b>x</b> & \x1b[31m\n\u202e"
BODY = body_of({"id": 7, "title": "a run stopped", "text": HOSTILE})


def hooked(hook: Hook) -> Settings:
    """Return settings with the webhook of a server."""
    return Settings(webhook=f"{hook.url}/in?x=1", webhook_key_env="HOOK_KEY")


def failure(channel: str, settings: Settings, root: Path) -> DeliveryError:
    """Return why an attempt fails."""
    with pytest.raises(DeliveryError) as failed:
        deliver(channel, settings, str(root), BODY)
    assert failed.value.fix
    return failed.value


def test_a_request_is_signed_over_its_time_and_its_body(
    hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_KEY", "k3y")
    deliver("webhook", hooked(hook), str(tmp_path), BODY)
    ((path, headers, body),) = hook.got
    signed = hmac.new(b"k3y", headers["interlock-timestamp"].encode() + b"." + body, hashlib.sha256)
    assert (path, body, headers["content-type"]) == ("/in?x=1", BODY, "application/json")
    assert headers["interlock-signature"] == f"sha256={signed.hexdigest()}"
    assert json.loads(body)["schema"] == "interlock.notification/1"
    assert b"k3y" not in body + str(headers).encode()


@each_row(
    ("status", "again"), [(301, False), (302, False), (307, False), (404, False), (408, True), (429, True), (503, True)]
)
def test_a_refusal_is_final_or_worth_another_attempt_and_a_redirect_is_not_followed(
    hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, again: bool
) -> None:
    monkeypatch.setenv("HOOK_KEY", "k3y")
    hook.answers, before = [status], len(hook.got)
    failed = failure("webhook", hooked(hook), tmp_path)
    assert (failed.code, failed.again, len(hook.got) - before) == ("NTF102", again, 1)


def test_a_webhook_without_its_key_or_its_server_says_so(
    hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failure("webhook", hooked(hook), tmp_path).code == "NTF103"
    monkeypatch.setenv("HOOK_KEY", "k3y")
    failed = failure("webhook", hooked(hook)._replace(webhook="http://127.0.0.1:9/x"), tmp_path)
    assert (failed.code, failed.again, hook.got) == ("NTF102", True, [])


def test_a_command_reads_the_event_and_runs_without_a_shell(tmp_path: Path) -> None:
    script = program(tmp_path / "notify.sh")
    deliver("command", Settings(command=("./notify.sh", "$(x)", "a b")), str(tmp_path), BODY)
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr(channels, "SECONDS", 0.3)
    program(tmp_path / "notify.sh", text)
    failed = failure("command", Settings(command=("./notify.sh",)), tmp_path)
    assert (failed.code, failed.again, said in failed.message) == ("NTF101", False, True), failed.message


@pytest.mark.parametrize("name", ["notify-send", "osascript"])
def test_texts_on_the_desktop_are_arguments_and_nothing_in_them_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    shower = program(tmp_path / name)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(channels, "DESKTOP", name)
    monkeypatch.chdir(tmp_path)
    deliver("desktop", Settings(desktop=True), str(tmp_path), BODY)
    *before, title, text = shower.with_name(f"{name}.args").read_text().split("\0")[:-1]
    assert (title, before[-1]) == ("Interlock: a run stopped", "--" if name == "notify-send" else "end run")
    assert text.startswith("--help $(touch owned) `touch owned`; ")
    assert ("&lt;b&gt;" in text, "<b>" in text) == (name == "notify-send", name != "notify-send")
    assert "\x1b" not in text and "\n" not in text and "\u202e" not in text  # noqa: PT018
    assert not (tmp_path / "owned").exists()
    assert not any("owned" in word for word in before), "no text of an event is part of the script"


def test_what_is_not_there_is_seen_without_trying(tmp_path: Path) -> None:
    program(tmp_path / "notify.sh")
    settings = Settings(("./notify.sh",), "https://h.example.org", "K", desktop=True)
    program(tmp_path / channels.DESKTOP)
    env = {"PATH": str(tmp_path), "K": "k"}
    assert missing(settings, str(tmp_path), env) is None
    cases = {
        "NTF101": (settings._replace(command=("./gone",)), env),
        "NTF103": (settings, {**env, "K": ""}),
        "NTF104": (settings, {**env, "PATH": "/nowhere"}),
    }
    for code, (found, given) in cases.items():
        error = missing(found, str(tmp_path), given)
        assert error is not None and error.code == code  # noqa: PT018
