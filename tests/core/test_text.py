"""Texts: what was meant, and what others wrote made safe to print."""

from interlock.core.text import closest, nearest, one_line, shown, visible
from tests.table import each_row


@each_row(
    ("word", "choices", "meant"),
    [
        ("ENV2O3", ("ENV203", "EVD501"), "ENV203"),
        ("frontend-implementor", ("frontend-implementer", "visual-qa"), "frontend-implementer"),
        ("xyz", ("frontend-implementer",), ""),
        ("", ("a",), ""),
        ("x" * 100_000, ("xx", "y"), ""),
    ],
)
def test_a_misspelt_word_leads_to_the_nearest(word: str, choices: tuple[str, ...], meant: str) -> None:
    assert closest(word, choices, 0.5) == meant


def test_several_that_are_near_come_in_order() -> None:
    assert nearest("anne", ("anna", "ben", "anne-2"), 2, 0.5) == ["anne-2", "anna"]


def test_visible_text_keeps_what_shows_and_escapes_the_rest() -> None:
    assert visible("café 東京 🎉") == "café 東京 🎉"
    assert visible("\x1b\u200b\ud800\U000e0041\n") == "\\u{001B}\\u{200B}\\u{D800}\\u{E0041}\\n"
    assert visible("a\n\tb\r", keep="\n\t") == "a\n\tb\\r"
    assert visible("\u0430b", ascii_only=True) == "\\u{0430}b"


def test_shown_text_is_bounded_and_says_where_it_was_cut() -> None:
    assert shown("x" * 400) == "x" * 400
    assert shown("x" * 401) == "x" * 400 + "…"


def test_a_line_of_somebody_else_stays_one_line() -> None:
    assert one_line("  a\nb\x1b[2J\u202e c ") == "a b [2J c"
