"""A table that one test goes through fails where any of its rows does, and says which."""

import pytest

from tests.table import each_row


def test_every_row_is_tried_and_each_that_fails_is_named() -> None:
    tried = list[tuple[int, str]]()

    @each_row(("number", "word"), [(1, "one"), (2, "two"), (3, "three")])
    @each_row("unused", [None])
    def test(number: int, word: str, unused: None) -> None:
        tried.append((number, word))
        assert number != 2
        assert word != "three"

    with pytest.raises(BaseExceptionGroup, match=r"2 of 3 rows fail: 2 - 'two'; 3 - 'three'"):
        test()
    assert tried == [(1, "one"), (2, "two"), (3, "three")]


def test_an_expected_error_that_does_not_come_fails_its_row() -> None:
    @each_row("text", ["", "x"], ids=["empty", "letter"])
    def test(text: str) -> None:
        with pytest.raises(IndexError):
            text[0]

    with pytest.raises(BaseExceptionGroup, match="1 of 2 rows fail: letter"):
        test()


def test_a_table_that_would_check_nothing_is_refused() -> None:
    async def test(row: int) -> None: ...

    with pytest.raises(ValueError, match="without rows"):
        each_row("row", [])
    with pytest.raises(ValueError, match="zip"):
        each_row(("one", "two"), [(1,)])
    with pytest.raises(TypeError, match="asynchronous"):
        each_row("row", [1])(test)  # pyright: ignore[reportArgumentType]
