"""The canonical and the compact form of JSON: the bytes that digests in journals and stores were made of."""

import json
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.core.json import canonical, compact, fingerprint
from tests.effort import examples

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(200))
@given(VALUES)
def test_every_value_has_the_digest_that_older_versions_gave_it(value: object) -> None:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    assert canonical(value) == text.encode("ascii")
    assert fingerprint(value) == f"sha256:{sha256(text.encode()).hexdigest()}"
    assert json.loads(compact(value)) == value


def test_the_compact_form_keeps_letters_and_the_order_of_keys_and_what_is_no_json_has_no_form() -> None:
    assert compact({"z": "é", "a": [1, None]}) == '{"z":"é","a":[1,null]}'
    for write in (canonical, fingerprint, compact):
        with pytest.raises(ValueError, match="JSON compliant"):
            write({"a": float("nan")})
