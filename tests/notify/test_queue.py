"""Events on their way: each is sent once, no run is heard of too often, and nothing is lost."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.notify.queue import (
    APART_SECONDS,
    DELAYS_SECONDS,
    Event,
    forget,
    history,
    is_sending,
    post,
    send,
    waiting,
)
from tests.notify.conftest import Hook, program, unsent

START = 1_000_000.0


class Clock:
    """Time that passes only where somebody waits for it; at each wait, `then` may do something once."""

    def __init__(self) -> None:
        self.now = START
        self.then: Iterator[Callable[[], object]] = iter(())

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += max(seconds, 0.01)
        next(self.then, lambda: None)()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a project in which no sender is started by itself."""
    (tmp_path / ".interlock").mkdir()
    unsent(monkeypatch)
    monkeypatch.setenv("HOOK_KEY", "k3y")
    return str(tmp_path)


def event(key: str, run: str = "A-1.1") -> Event:
    """Return an event."""
    return Event(key, "waits", "review", run, "a review is wanted", f"{run}: {key}")


def table(hook: Hook) -> dict[str, Any]:
    """Return a table with a webhook."""
    return {"webhook": f"{hook.url}/in", "webhook_key_env": "HOOK_KEY"}


def texts(hook: Hook) -> list[tuple[str, list[str]]]:
    """Return what arrived: the text of each, and those of the earlier events in it."""
    rows = [json.loads(body) for _, _, body in hook.got]
    return [(row["text"], [each["text"] for each in row["earlier"]]) for row in rows]


def test_an_event_is_sent_once_whoever_hands_it_over_how_often(root: str, hook: Hook) -> None:
    for _ in range(2):
        post(root, table(hook), [event("a")])
        send(root, clock=(clock := Clock()), pause=clock.pause)
    post(root, table(hook), [event("a")])
    assert (texts(hook), waiting(root)) == ([("A-1.1: a", [])], 0)


def test_what_comes_within_a_minute_of_a_run_goes_into_one_and_nothing_is_lost(root: str, hook: Hook) -> None:
    clock = Clock()
    post(root, table(hook), [event("a")])
    post(root, table(hook), [event("x", "C-1.1")])
    send(root, clock=clock, pause=clock.pause)
    clock.then = iter([lambda: post(root, table(hook), [event("d"), event("y", "B-1.1")])])
    post(root, table(hook), [event("b"), event("c")])
    send(root, clock=clock, pause=clock.pause)
    assert texts(hook) == [
        ("A-1.1: a", []), ("C-1.1: x", []), ("B-1.1: y", []), ("A-1.1: d", ["A-1.1: c", "A-1.1: b"]),
    ]  # fmt: skip
    assert APART_SECONDS <= clock.now - START < APART_SECONDS + 2


def test_a_server_that_is_down_is_tried_again_with_longer_waits_and_the_same_id(root: str, hook: Hook) -> None:
    hook.answers, clock = [503, 503, 204], Clock()
    post(root, table(hook), [event("a")])
    send(root, clock=clock, pause=clock.pause)
    assert len({json.loads(body)["id"] for _, _, body in hook.got}) == 1
    assert sum(DELAYS_SECONDS[:2]) <= clock.now - START < sum(DELAYS_SECONDS[:2]) + 2
    assert history(root)[0]["deliveries"] == [{"channel": "webhook", "tries": 3, "error": "", "state": "sent"}]


def test_what_cannot_be_delivered_is_given_up_and_written_down(root: str, hook: Hook) -> None:
    hook.answers, clock = [503], Clock()
    post(root, {**table(hook), "command": ["./gone"]}, [event("a")])
    send(root, clock=clock, pause=clock.pause)
    rows = {row["channel"]: row for row in history(root)[0]["deliveries"]}
    assert {name: (row["state"], row["tries"], row["error"][:6]) for name, row in rows.items()} == {
        "webhook": ("failed", len(DELAYS_SECONDS) + 1, "NTF102"), "command": ("failed", 1, "NTF101"),
    }  # fmt: skip
    assert waiting(root) == 0


def test_another_sender_goes_on_where_one_was_killed(root: str, hook: Hook) -> None:
    hook.answers, clock = [503, 200], Clock()

    def killed() -> None:
        raise KeyboardInterrupt

    clock.then = iter([killed])
    post(root, table(hook), [event("a")])
    with pytest.raises(KeyboardInterrupt):
        send(root, clock=clock, pause=clock.pause)
    assert waiting(root) == 1
    send(root, clock=clock, pause=clock.pause)
    assert (len(hook.got), waiting(root)) == (2, 0)


def test_one_sender_works_at_a_time(root: str, hook: Hook) -> None:
    hook.answers, clock = [503, 200], Clock()
    seen: list[tuple[bool, int]] = []

    def another() -> None:
        send(root, clock=clock, pause=clock.pause)
        seen.append((is_sending(root), len(hook.got)))

    clock.then = iter([another])
    post(root, table(hook), [event("a")])
    send(root, clock=clock, pause=clock.pause)
    assert (seen, is_sending(root), len(hook.got)) == ([(True, 1)], False, 2)


def test_keys_of_the_environment_leave_with_no_event(root: str, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "abcdefgh-12345678")
    post(root, table(hook), [event("a")._replace(text="say abcdefgh-12345678")])
    send(root, clock=(clock := Clock()), pause=clock.pause)
    assert texts(hook) == [("say [SHOP_TOKEN]", [])]


def test_trouble_is_nobodys_reason_to_stop_and_a_pruned_run_is_forgotten(root: str, hook: Hook) -> None:
    post(f"{root}/gone", table(hook), [event("a")])
    post(root, {}, [event("a")])
    assert not (Path(root) / ".interlock/notify.sqlite").exists()
    post(root, table(hook), [event("a")])
    send(root, clock=(clock := Clock()), pause=clock.pause)
    forget(root, "A-1.1")
    assert history(root) == []
    (Path(root) / ".interlock/notify.sqlite").write_bytes(b"no database" * 100)
    post(root, table(hook), [event("b")])
    with pytest.raises(sqlite3.Error):
        waiting(root)


def test_a_process_of_its_own_sends_after_the_one_that_had_the_event_has_ended(tmp_path: Path) -> None:
    (tmp_path / ".interlock").mkdir()
    (tmp_path / "json.py").write_text("raise SystemExit('a file of the project was imported')\n")
    script = program(tmp_path / "notify.sh")
    said = 'import sys; from interlock.notify import Event, post; post(sys.argv[1], {"command": ["./notify.sh"]}, [E])'
    said = said.replace("[E]", '[Event("k", "ended", "approved", "A-1.1", "a run is APPROVED", "done")]')
    begun = time.monotonic()
    subprocess.run([sys.executable, "-P", "-c", said, str(tmp_path)], check=True, cwd=tmp_path, env=dict(os.environ))
    kept = script.with_name("notify.sh.input")
    while not (kept.exists() and kept.read_bytes().endswith(b"\n")) or is_sending(str(tmp_path)):
        assert time.monotonic() < begun + 60
        time.sleep(0.02)
    assert json.loads(kept.read_bytes())["text"] == "done"
    assert history(str(tmp_path))[0]["deliveries"][0]["state"] == "sent"
