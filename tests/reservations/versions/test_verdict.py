"""The table of the rule: who was at work, and what is done."""

import pytest

from interlock.reservations.versions.store import Call
from interlock.reservations.versions.verdict import Change, Verdict, decide

FILE = "/p/ann.py"


def call(begun: float = 0.0, *, background: bool = False, expected: tuple[str, ...] | None = None) -> Call:
    results = {} if expected is None else {FILE: [*expected]}
    paths = () if expected is None else (FILE,)
    return Call(1, "x", "s", "", "Bash", "/p", paths, results, begun, background, None, "")


RUN, EARLY, LATE = call(), call(1.0), call(8.0)
SERVER = call(background=True)
EDIT = call(expected=("new",))


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
        pytest.param("x", [EARLY], [EARLY], True, "both", "back", id="both at once"),
        pytest.param("x", [EARLY], [LATE], True, "keep", "back", id="changed before the other began"),
        pytest.param("x", [LATE], [EARLY], True, "back", "back", id="changed before the holder began"),
        pytest.param("x", [SERVER], [RUN], True, "back", "back", id="the holder in the background alone"),
        pytest.param("x", [RUN], [SERVER], True, "keep", "keep", id="the other in the background alone"),
    ],
)
def test_the_table(
    digest: str, mine: list[Call], others: list[Call], is_hooked: bool, there: Verdict, gone: Verdict
) -> None:
    changed = Change(FILE, digest, is_gone=False, changed_at=4.0)
    assert decide(changed, mine, others, 9.0, is_hooked=is_hooked)[0] == there
    removed = Change(FILE, "", is_gone=True, changed_at=4.0)
    assert decide(removed, mine, others, 9.0, is_hooked=is_hooked)[0] == gone
