"""Many patterns beside a path or a pattern: the same answers as comparing each, for a fraction of the work."""

from itertools import product

import pytest

from interlock.reservations.patterns import Pattern, canonical, matches, overlaps, prefix_index
from interlock.reservations.patterns.prefix_index import Near

PARTS = ("a", "b", "ä", "*", "a*", "**", "[ab]", "[[]a]", "{a,b/c}")
PATHS = ("a", "b", "ä", "a\u0308", "[a]", "a/b", "b/c", "a/a/b", "ab", "a/[a]", "c/d/e")


def texts() -> list[str]:
    """Return all patterns of one to three parts, in canonical form, each once."""
    spelled = ("/".join(parts) for size in (1, 2) for parts in product(PARTS, repeat=size))
    more = (f"a/{one}/{two}" for one, two in product(PARTS, repeat=2))
    return list(dict.fromkeys(read(text).text for text in (*spelled, *more)))


def read(text: str) -> Pattern:
    found = canonical(text)
    assert isinstance(found, Pattern)
    return found


TEXTS = texts()


@pytest.fixture
def every(monkeypatch: pytest.MonkeyPatch) -> Near[str]:
    monkeypatch.setattr(prefix_index, "MAX_COMPARED", len(TEXTS) ** 2)
    return Near((text, read(text).prefix, text) for text in TEXTS)


def test_a_path_is_covered_by_what_matches_it(every: Near[str]) -> None:
    for path in PATHS:
        assert sorted(every.covering(path)) == sorted(text for text in TEXTS if matches(text, path)), path


def test_a_pattern_meets_what_overlaps_it(every: Near[str]) -> None:
    for wanted in TEXTS:
        assert sorted(every.meeting(wanted)) == sorted(text for text in TEXTS if overlaps(wanted, text)), wanted


def test_what_cannot_be_read_meets_everything(every: Near[str]) -> None:
    assert len(every.meeting("../x")) == len(every) == len(TEXTS)
    assert Near([("../x", "", "odd")]).covering("a") == ["odd"]
    assert Near([("../x", "", "odd")]).meeting("a*") == ["odd"]


@pytest.mark.long
@pytest.mark.parametrize("form", ["src/{}/x.py", "src/{}/**"])
def test_of_ten_thousand_patterns_none_is_read_that_is_a_path_or_a_folder(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(read(form.format(number)), number) for number in range(10_000)]
    many = Near((pattern.text, pattern.prefix, number) for pattern, number in rows)
    calls: list[str] = []

    def counted(text: str) -> object:
        calls.append(text)
        return canonical(text)

    monkeypatch.setattr(prefix_index, "canonical", counted)
    assert many.covering("src/7/x.py") == [7]
    assert many.meeting("src/7/**") == [7]
    assert many.meeting("*.py") == many.meeting("lib/**/*.py") == []
    assert len(many.meeting("src/*/x.py")) == len(many.meeting("**/x.py")) == 10_000
    assert len(calls) == 5


def test_more_comparisons_than_are_made_in_a_moment_count_as_met() -> None:
    many = Near((f"src/{number}/*.py", f"src/{number}/", number) for number in range(prefix_index.MAX_COMPARED + 5))
    assert many.meeting("src/**/*.c") == list(range(prefix_index.MAX_COMPARED, prefix_index.MAX_COMPARED + 5))
