import pytest
from billing import split, split_by_weight


def test_equal_shares_differ_by_at_most_one_cent():
    assert split(1000, 3) == [334, 333, 333]


def test_nobody_to_share_with_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        split(1000, 0)


def test_shares_are_in_proportion_to_the_weights():
    assert split_by_weight(900, [2, 1]) == [600, 300]


def test_weighted_shares_add_up_to_the_amount():
    assert sum(split_by_weight(1000, [1, 1, 1])) == 1000


def test_weights_that_are_all_zero_are_an_error():
    with pytest.raises(ValueError, match="one of them is more"):
        split_by_weight(1000, [0, 0])
