"""Locks on files: one holder, or several that share; free at once when the holder is gone."""

import os
from pathlib import Path

from interlock.core.locks import locked


def test_a_second_holder_waits_until_its_time_is_up(tmp_path: Path) -> None:
    now = 0.0

    def pause(seconds: float) -> None:
        nonlocal now
        now += seconds

    with (tmp_path / "lock").open("ab") as one, (tmp_path / "lock").open("ab") as two:
        with locked(one) as first:
            assert first
            with locked(two, seconds=3, clock=lambda: now, pause=pause) as second:
                assert not second
            assert 3 <= now < 3.1
        with locked(two, seconds=0) as second:
            assert second


def test_who_shares_a_lock_keeps_only_those_out_who_want_it_alone(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("ab") as one, (tmp_path / "lock").open("ab") as two, locked(one, shared=True):
        with locked(two, shared=True, seconds=0) as held:
            assert held
        with locked(two, seconds=0) as held:
            assert not held


def test_a_child_that_was_forked_meanwhile_does_not_keep_the_lock(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with (tmp_path / "lock").open("ab") as one, locked(one):
        child = os.fork()
        if not child:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
    try:
        with (tmp_path / "lock").open("ab") as two, locked(two, seconds=0) as held:
            assert held
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(child, 0)


def test_a_lock_that_was_not_got_is_not_given_up(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("ab") as one, (tmp_path / "lock").open("ab") as two, locked(one):
        with locked(two, seconds=0):
            pass
        with locked(two, seconds=0) as held:
            assert not held
