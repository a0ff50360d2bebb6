"""How long an answer may be: nothing is lost without being counted, and what fits comes as it is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.reservations.truncation import MAX_ANSWER_BYTES, bounded, size

pytestmark = pytest.mark.usefixtures("each_store")

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc",)), max_size=2000)
ROWS = st.lists(st.fixed_dictionaries({"pattern": TEXTS, "reason": TEXTS}), max_size=40)
ANSWERS = st.fixed_dictionaries({}, optional={"errors": ROWS, "reservations": ROWS, "clear": st.lists(TEXTS)})


@given(ANSWERS)
def test_an_answer_fits_and_every_row_that_it_leaves_out_is_counted(answer: dict[str, Any]) -> None:
    fitted: dict[str, Any] = bounded(answer)
    assert size(fitted) <= MAX_ANSWER_BYTES
    assert (fitted is answer) == (size(answer) <= MAX_ANSWER_BYTES)
    for name, rows in answer.items():
        shown = fitted[name]
        assert (shown, len(shown) + fitted.get("rest", {}).get(name, 0)) == (rows[: len(shown)], len(rows))
