"""What one caller may use: who waits for answers is slowed, who floods is refused. The clock is the test's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.server.http.bounds import Bucket, Limits, Meter, TooMuchError


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


LIMITS = Limits(rate=10.0, burst=3, patience_seconds=0.5, in_flight=100)


def waits(meter: Meter, count: int, key: str = "a") -> list[float]:
    found: list[float] = []
    for _ in range(count):
        with meter.request(key) as wait:
            found.append(round(wait, 6))
    return found


def test_a_burst_goes_through_then_requests_are_held_back_then_refused() -> None:
    meter = Meter(LIMITS, Clock())
    assert waits(meter, 8) == [0, 0, 0, 0.1, 0.2, 0.3, 0.4, 0.5]
    with pytest.raises(TooMuchError) as caught, meter.request("a"):
        pass
    assert caught.value.retry_seconds == pytest.approx(0.1)


def test_a_refused_request_costs_nothing_and_time_gives_back() -> None:
    clock = Clock()
    meter = Meter(LIMITS, clock)
    waits(meter, 8)
    for _ in range(50):
        with pytest.raises(TooMuchError), meter.request("a"):
            pass
    clock.now += 0.1
    assert waits(meter, 1) == [0.5]
    clock.now += 60
    assert waits(meter, 4) == [0, 0, 0, 0.1]


def test_callers_do_not_share() -> None:
    meter = Meter(LIMITS, Clock())
    waits(meter, 8, "a")
    assert waits(meter, 3, "b") == [0, 0, 0]


def test_a_clock_that_goes_back_gives_nothing_and_takes_nothing() -> None:
    clock = Clock()
    meter = Meter(LIMITS, clock)
    waits(meter, 3)
    clock.now -= 500
    assert waits(meter, 1) == [0.1]


def test_open_requests_are_bounded_and_a_closed_one_frees_its_slot() -> None:
    meter = Meter(Limits(in_flight=2), Clock())
    with meter.request("a"):
        with meter.request("a"):
            with pytest.raises(TooMuchError), meter.request("a"):
                pass
            with meter.request("b"):
                pass
        with meter.request("a"):
            pass


def test_a_request_that_fails_gives_its_place_back() -> None:
    meter = Meter(Limits(in_flight=1), Clock())
    for _ in range(5):
        with pytest.raises(ZeroDivisionError), meter.request("a"):
            _ = 1 / 0


@given(st.lists(st.floats(0, 2), min_size=1, max_size=60), st.floats(0.5, 50), st.integers(1, 20))
def test_no_more_pass_in_any_time_than_the_rate_and_one_burst(gaps: list[float], rate: float, burst: int) -> None:
    bucket, now, passed = Bucket(rate, burst, 0.0), 0.0, 0
    for gap in gaps:
        now += gap
        taken, wait = bucket.take(now, 1.0)
        assert wait >= 0
        assert not taken or wait <= 1.0
        passed += taken
    assert passed <= burst + rate * (now + 1.0) + 1e-6
