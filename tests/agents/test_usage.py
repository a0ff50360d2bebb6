"""Usage adds up, and a limit is spent exactly when nothing of it is left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.agents.usage import LIMIT_NAMES, Limits, Usage, total

usages = st.builds(
    Usage,
    st.integers(0, 50),
    st.integers(0, 9000),
    st.integers(0, 9000),
    st.floats(0, 600),
    st.none() | st.floats(0, 20),
)
limits = st.builds(
    Limits,
    st.none() | st.integers(0, 60),
    st.none() | st.integers(0, 20_000),
    st.none() | st.floats(0, 700),
    st.none() | st.floats(0, 30),
)


def test_the_sum_of_nothing_is_nothing() -> None:
    assert total([]) == Usage()
    assert Limits().spent(Usage(10**6, 10**6, 10**6, 1e6, None)) == ""


def test_money_of_one_unknown_price_makes_the_sum_unknown() -> None:
    assert total([Usage(usd=1.5), Usage(usd=None), Usage(usd=2.0)]).usd is None


@given(usages, usages)
def test_usage_comes_back_from_json(one: Usage, other: Usage) -> None:
    row = (one + other).to_json()
    assert Usage.from_json(row).to_json() == row
    assert Usage.from_json({}) == Usage()


@given(limits, usages)
def test_a_limit_is_spent_exactly_when_nothing_is_left(allowed: Limits, used: Usage) -> None:
    left = allowed.after(used)
    nothing = [name for name in LIMIT_NAMES if getattr(left, name) is not None and getattr(left, name) <= 0]
    assert bool(allowed.spent(used)) == bool(nothing)
    if nothing:
        assert nothing[0] in allowed.spent(used)


@given(limits, limits)
def test_what_both_allow_is_the_smaller_of_each(one: Limits, other: Limits) -> None:
    both = one.within(other)
    assert both == other.within(one)
    for name in LIMIT_NAMES:
        given = [value for value in (getattr(one, name), getattr(other, name)) if value is not None]
        assert getattr(both, name) == (min(given) if given else None)


@pytest.mark.parametrize(
    ("used", "words"),
    [
        (Usage(calls=3), "3 of 3 calls are spent"),
        (Usage(input_tokens=800, output_tokens=200), "1000 of 1000 tokens are spent"),
        (Usage(seconds=61.26), "61.26 of 60 seconds are spent"),
        (Usage(usd=None), "money of an unknown price was spent, of 2.0 usd allowed"),
    ],
)
def test_what_is_spent_is_said_with_both_figures(used: Usage, words: str) -> None:
    assert Limits(3, 1000, 60.0, 2.0).spent(used) == words
