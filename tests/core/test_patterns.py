"""The canonical form of a pattern, what is refused, and paths of tool calls as patterns."""

import os
from collections.abc import Callable

import pytest

from interlock.core.finding import Finding
from interlock.core.patterns import (
    MAX_CHARACTERS,
    Pattern,
    ancestors,
    canonical,
    matches,
    overlaps,
    quote,
    relative,
)
from tests.table import each_row

CANONICAL = [
    ("a", "a"),
    ("./a", "a"),
    ("a//b", "a/b"),
    ("a/./b", "a/b"),
    ("a/.//./b", "a/b"),
    ("src/", "src/**"),
    ("src//", "src/**"),
    ("src/.", "src/**"),
    ("src/*/", "src/*/**"),
    (".", "**"),
    ("./", "**"),
    ("**/", "**"),
    ("**", "**"),
    ("***", "**"),
    ("a/****/b", "a/**/b"),
    ("a/**/**/b", "a/**/b"),
    ("**/**", "**"),
    ("**/*", "**/*"),
    ("a**b", "a*b"),
    ("a***", "a*"),
    ("a/**b", "a/*b"),
    ("[a]", "a"),
    ("[a-c]", "[a-c]"),
    ("[^a]", "[^a]"),
    ("[!!]", "[!!]"),
    ("[]a]", "[]a]"),
    ("[]]", "[]]"),
    ("]", "[]]"),
    ("[[]", "[[]"),
    ("[*?]", "[*?]"),
    ("[*]", "[*]"),
    ("[{]", "[{]"),
    ("[,]", ","),
    ("[.]/a", "a"),
    ("[~]/a", "[~]/a"),
    ("{[~],b}/x", "{b/x,[~]/x}"),
    ("{a,a}", "a"),
    ("{b,a}", "{a,b}"),
    ("{a,b}{c,d}", "{ac,ad,bc,bd}"),
    ("src/{b,a}.py", "src/{a.py,b.py}"),
    ("{src/a,src/b}/x", "src/{a/x,b/x}"),
    ("a{,/b}", "{a,a/b}"),
    ("{,a/}b", "{a/b,b}"),
    ("{a/,b}", "{a/**,b}"),
    ("{[,],a}", "{[,],a}"),
    ("{a[,;],b}", "{a[,;],b}"),
    ("{a,b}/x,y", "{a/x[,]y,b/x[,]y}"),
    ("{[}],a}", "{[}],a}"),
    ("e\u0301", "e\u0301"),
    ("a b", "a b"),
    ("a,b", "a,b"),
    ("...", "..."),
]


@each_row(("text", "expected"), CANONICAL)
def test_equal_patterns_get_one_form_and_keep_it(text: str, expected: str):
    pattern = read(text)
    assert pattern.text == expected
    assert read(pattern.text) == pattern


def read(text: str, is_folder: Callable[[str], bool] | None = None) -> Pattern:
    pattern = canonical(text, is_folder=is_folder)
    assert isinstance(pattern, Pattern), pattern
    return pattern


REFUSED = {
    "RSV101": [
        "/",
        "/etc/passwd",
        "//a",
        "..",
        "../a",
        "a/..",
        "a/../b",
        "./..",
        "~",
        "{~/a,b}",
        "{a,..}/b",
        "a/{..,b}",
        "[.][.]/a",
        "{,a}/b",
        ".[.]/x",
    ],
    "RSV102": [
        "",
        "a\\b",
        "\\",
        "\\*",
        "[\\]",
        "a\nb",
        "a\0",
        "\t",
        "a\x7f",
        "a\x85",
        "\ud800",
        "a\udcff",
        "[",
        "a[",
        "[]",
        "[!",
        "[!]",
        "[^]",
        "[a",
        "[a/b]",
        "a[/]b",
        "[!/]",
        "[z-a]",
        "[b-a]",
        "[[:alpha:]]",
        "[[.a.]]",
        "{",
        "}",
        "a}",
        "{a",
        "{a,b",
        "{a,{b,c}",
        "{}",
        "{a}",
        "a{}b",
        "{a}/{b}",
        "{1..}",
        "{{a,b}}",
        "{a{b,c}}",
        "{,}",
        "{a,}",
        "a/{b",
        "[{a,b]}",
        "{a,{b,c}}",
        "a" * (MAX_CHARACTERS + 1),
        "{a,b}" * 9,
        "{a,b}" * 200,
    ],
}


@each_row(("code", "text"), [(code, text) for code, texts in REFUSED.items() for text in texts])
def test_a_text_that_is_no_pattern_is_refused_with_a_fix(code: str, text: str):
    problem = canonical(text)
    assert isinstance(problem, Finding)
    assert problem.code == code
    assert problem.message
    assert problem.expected
    assert problem.fix


@each_row(
    "text",
    ["a" * MAX_CHARACTERS, "*a" * (MAX_CHARACTERS // 2), "{a,b}" * 6],
)
def test_a_pattern_at_a_bound_is_accepted(text: str):
    pattern = read(text)
    assert read(pattern.text) == pattern


# -- folders and real names --------------------------------------------------------------------------------------


def test_a_literal_that_is_a_folder_is_everything_below_it():
    asked: list[str] = []

    def is_folder(path: str) -> bool:
        asked.append(path)
        return path in {"src", "a[b]", "lib"}

    assert read("src", is_folder).text == "src/**"
    assert read("src/app.py", is_folder).text == "src/app.py"
    assert read("a[[]b]", is_folder).text == "a[[]b[]]/**"
    assert read("{lib,src,x}", is_folder).text == "{lib/**,src/**,x}"
    assert asked == ["src", "src/app.py", "a[b]", "lib", "src", "x"]
    asked.clear()
    assert read("sr*", is_folder).text == "sr*"
    assert asked == []


def test_brackets_in_a_real_name_are_that_name_where_it_exists():
    there = {"app/[slug]", "app/[slug]/page.tsx", "{{name}}", "a[b].py"}

    def text_of(text: str) -> str:
        pattern = canonical(text, exists=there.__contains__)
        assert isinstance(pattern, Pattern), pattern
        return pattern.text

    assert text_of("app/[slug]/page.tsx") == "app/[[]slug[]]/page.tsx"
    assert text_of("app/[slug]/new.tsx") == "app/[[]slug[]]/new.tsx"
    assert text_of("app/[slug]/**") == "app/[[]slug[]]/**"
    assert text_of("{{name}}/x") == "[{][{]name[}][}]/x"
    assert text_of("a[b].py") == "a[[]b[]].py"
    assert text_of("app/[ab]/x") == "app/[ab]/x"
    assert text_of("*/[slug]") == "*/[slug]"
    assert text_of("app/[slug]*") == "app/[slug]*"


def test_what_exists_is_asked_for_paths_inside_alone():
    asked: list[str] = []
    assert isinstance(canonical("../[a]", exists=lambda path: bool(asked.append(path))), Finding)
    assert isinstance(canonical("a/../../[a]", exists=lambda path: bool(asked.append(path))), Finding)
    assert isinstance(canonical("/[a]", exists=lambda path: bool(asked.append(path))), Finding)
    assert asked == []


@each_row("name", ["a[b].py", "{x}", "a*b", "what?", "]", "[]", "[[]]", "a,b", "~", "!x", "^", "-", " a "])
def test_a_real_name_is_held_literally_whatever_characters_it_has(name: str):
    pattern = read(quote(name))
    assert pattern.literal
    assert (pattern.path, pattern.prefix) == (name, name)
    assert matches(pattern, name)
    assert not overlaps(pattern, quote(name + "x"))
    assert pattern.text == quote(name)


# -- the index ---------------------------------------------------------------------------------------------------


@each_row(
    ("text", "prefix"),
    [
        ("a", "a"),
        ("src/app.py", "src/app.py"),
        ("src/*.py", "src/"),
        ("src/app/**", "src/app/"),
        ("src/a*/b", "src/"),
        ("*", ""),
        ("**/a", ""),
        ("src/{a,b}.py", "src/"),
        ("{src,lib}/x", ""),
        ("{src/a,src/b/c}", "src/"),
        ("{src,src/a}", ""),
        ("[[]x]/*.py", "[x]/"),
        ("a[[]b].py", "a[b].py"),
    ],
)
def test_the_index_prefix_is_the_literal_beginning(text: str, prefix: str):
    assert read(text).prefix == prefix


def test_the_ancestors_of_a_prefix_are_its_folders_and_itself():
    assert ancestors("") == ("",)
    assert ancestors("a") == ("", "a")
    assert ancestors("src/app/") == ("", "src/", "src/app/")
    assert ancestors("src/app/x.py") == ("", "src/", "src/app/", "src/app/x.py")


# -- paths of tool calls -----------------------------------------------------------------------------------------


@each_row(
    ("path", "expected"),
    [
        ("/repo/src/app.py", "src/app.py"),
        ("src/app.py", "src/app.py"),
        ("./src//app.py", "src/app.py"),
        ("/repo/src/../lib/a", "lib/a"),
        ("/repo//src/./a", "src/a"),
        ("//repo/a", "a"),
        ("/other/../repo/a", "a"),
        ("src/..", None),
        ("/repo", None),
        ("/repo/", None),
        ("/", None),
        ("/repository/a", None),
        ("../repo2/a", None),
        ("../../etc/passwd", None),
        ("/etc/passwd", None),
        ("/repo/a[b].py", "a[[]b[]].py"),
        ("/repo/{x}/*", "[{]x[}]/[*]"),
        ("~/a", "[~]/a"),
        ("/repo/a\\b", "a?b"),
        ("/repo/a\nb", "a?b"),
        ("/repo/a\udcffb", "a?b"),
        ("/Repo/a", None),
    ],
)
def test_a_path_of_a_tool_call_is_a_pattern_below_the_root(path: str, expected: str | None):
    found = relative(path, "/repo")
    if expected is None:
        assert isinstance(found, Finding)
        assert found.code == "RSV101"
    else:
        assert found == expected
        assert read(expected).text == expected


@pytest.mark.parametrize("path", ["", "a\0b", "/repo/\0"])
def test_a_path_that_no_file_can_have_is_refused(path: str):
    found = relative(path, "/repo")
    assert isinstance(found, Finding)
    assert found.code == "RSV102"


def test_the_root_may_end_with_a_slash_and_be_the_root_of_all():
    assert relative("/repo/a", "/repo/") == "a"
    assert relative("/etc/a", "/") == "etc/a"
    assert isinstance(relative("/", "/"), Finding)


@each_row("name", [b"a\xff.py", b"\x80\x81", b"a\x01b", b"tab\t", b"back\\slash", "ü".encode("latin-1")])
def test_a_name_that_a_pattern_cannot_spell_is_held_all_the_same(name: bytes):
    path = os.fsdecode(name)
    found = relative("/repo/" + path, "/repo")
    assert isinstance(found, str)
    assert matches(found, path)


# -- case --------------------------------------------------------------------------------------------------------
