"""The table of the rule: who was at work, and what is done."""

import pytest

from interlock.reservations.versions.store import Call
from interlock.reservations.versions.verdict import Change, Verdict, decide

FILE = "/p/ann.py"


def call(begun: float = 0.0, *, background: bool = False, edits: bool = False) -> Call:
    paths, expected = ((FILE,), {FILE: ""}) if edits else ((), {})
    return Call(1, "x", "s", "", "Bash", "/p", paths, expected, begun, background, None, "")


RUN, EARLY, LATE = call(), call(1.0), call(8.0)
JUST = call(3.9)
SERVER = call(-3600.0, background=True)
EDIT = call(edits=True)


@pytest.mark.parametrize(
    ("digest", "mine", "others", "is_hooked", "there", "gone"),
    [
        pytest.param("new", [EDIT], [RUN], True, "keep", "back", id="the holder's tool wrote just this"),
        pytest.param("x", [], [], False, "keep", "keep", id="nobody, and a person holds it"),
        pytest.param("x", [], [], True, "both", "back", id="nobody"),
        pytest.param("x", [RUN], [], True, "keep", "keep", id="the holder alone"),
        pytest.param("x", [], [RUN], True, "back", "back", id="others alone"),
        pytest.param("x", [], [RUN], False, "both", "back", id="others, and a person holds it"),
        pytest.param("x", [EDIT], [RUN], True, "back", "back", id="not what the holder's tool writes"),
        pytest.param("x", [EARLY], [LATE], True, "keep", "both", id="changed before the other began"),
        pytest.param("x", [LATE], [EARLY], True, "back", "back", id="changed before the holder began"),
        pytest.param("x", [EARLY], [EARLY], True, "both", "back", id="both at once"),
        pytest.param("x", [EARLY], [JUST], True, "back", "back", id="the other began just before"),
        pytest.param("x", [JUST], [EARLY], True, "both", "both", id="the holder began just before"),
        pytest.param("x", [SERVER], [EARLY], True, "back", "back", id="a server of the holder beside it"),
        pytest.param("x", [EARLY], [SERVER], True, "both", "both", id="a server of another beside it"),
    ],
)
def test_the_table(
    digest: str, mine: list[Call], others: list[Call], is_hooked: bool, there: Verdict, gone: Verdict
) -> None:
    changed = Change(FILE, is_gone=False, changed_at=4.0, is_expected=digest == "new")
    assert decide(changed, mine, others, is_hooked=is_hooked).verdict == there
    removed = Change(FILE, is_gone=True, changed_at=4.0)
    assert decide(removed, mine, others, is_hooked=is_hooked).verdict == gone


def test_others_are_told_where_they_may_have_done_it() -> None:
    change = Change(FILE, is_gone=False, changed_at=4.0)
    assert decide(change, [EARLY], [EARLY], is_hooked=True).tells_them
    assert not decide(change, [JUST], [EARLY], is_hooked=True).tells_them
